"""The verdict on two traces in words: their behaviour, and how each compares with its protocol."""

from __future__ import annotations

from typing import assert_never

from pipesim.answers.views.trace import PairReport, PairSide
from pipesim.conform.agreement import Agreement
from pipesim.conform.pair.result import Behaviour
from pipesim.conform.result import TraceVerdict
from pipesim.model.ending import HUNG, TRAPPED
from pipesim.report.sentences.pair_figures import time_words
from pipesim.report.sentences.trace import FAULT_NAMED, period_words, results_words
from pipesim.report.text.words import count, number
from pipesim.trace.schema import TraceMeta

_HOW = dict.fromkeys(HUNG, "hung") | dict.fromkeys(TRAPPED, "trapped")
_DIFFERS = "does not conform to the protocol"
_INJECTED = f"has {FAULT_NAMED}"


def pair_sentence(report: PairReport) -> str:
    """The verdict: a difference beats the unknown, the unknown the tolerance."""
    a, b, pair = report.a, report.b, report.pair
    unfinished = unfinished_words(a.trace.meta, b.trace.meta)
    said = behaviour_words(pair.behaviour) + (f"; {unfinished}" if unfinished else "") + _protocol_clause(a, b)
    if pair.behaviour.verdict is not TraceVerdict.AGREES or a.leaves_protocol != b.leaves_protocol:
        return said
    if unfinished:
        return said + ("; neither finished, so the tolerance cannot be applied" if report.period else "")
    time = time_words(pair.timing) if pair.timing else ""
    said += f"; {time}" if time else ""
    if report.period is None:
        return said
    if report.period.off is None:
        return f"{said}; not both have a period, so the tolerance cannot be applied"
    outside = period_words(report.period, "B's period is", " A's")
    return f"{said}; {outside}" if outside else said


def behaviour_words(found: Behaviour) -> str:
    """``same behaviour``, or where it first differs, or why it cannot be said."""
    match found.verdict:
        case TraceVerdict.AGREES:
            return "same behaviour"
        case TraceVerdict.UNKNOWN:
            lost = [f"{count(n, 'record')} of {side}" for side, n in (("A", found.lost_a), ("B", found.lost_b)) if n]
            why = f"{' and '.join(lost)} lost" if lost else "a simulation ran out of its budget"
            return f"no difference found, but {why}: the rest was not compared"
        case TraceVerdict.DIFFERS:
            if not found.differences:
                return "the runs ended differently: " + ", ".join(
                    f"{s.what} {s.a} in A, {s.b} in B" for s in found.outcomes
                )
            first = found.differences[0]
            where = f"{first.agent}, CTA {first.cta}, iteration {number(first.iteration)}"
            return f"the behaviour differs, first at {where}: {first.kind.value}"


def unfinished_words(a: TraceMeta, b: TraceMeta) -> str:
    """How the runs ended if neither finished, which leaves nothing to say of their speed; "" if one did."""
    if _HOW.get(a.status, "") == "" or _HOW.get(b.status, "") == "":
        return ""
    if _HOW[a.status] == _HOW[b.status]:
        return f"both {_HOW[a.status].replace('was', 'were')}"
    return f"A {_HOW[a.status]}, B {_HOW[b.status]}"


def not_compared_words(side: PairSide) -> str:
    """Why a trace was not compared with its own protocol."""
    protocol = side.trace.meta.protocol
    if side.refused is not None:
        return f"not compared with {protocol}: {side.refused.fact}"
    return f"not compared with {protocol}, which is not built in"


def _protocol_clause(a: PairSide, b: PairSide) -> str:
    """What the verdict adds about how each stands to its protocol, "" if nothing."""
    of_a, of_b = _agreement_words(a), _agreement_words(b)
    if of_a == of_b == _DIFFERS:
        return "; neither conforms to the protocol"
    if of_a == of_b == _INJECTED:
        return f"; both have {FAULT_NAMED}"
    return "".join(f"; {side.label} {said}" for side, said in ((a, of_a), (b, of_b)) if said)


def _agreement_words(side: PairSide) -> str:
    """What one trace is or has that a run of its protocol does not, "" if nothing; how it ended is said before."""
    match side.agreement:
        case Agreement.FAULT_NAMED:
            return _INJECTED
        case Agreement.DIFFERS:
            results = results_words(side.reason)
            return f"does not agree with the protocol: {results}" if results else _DIFFERS
        case Agreement.CONFORMS | Agreement.HANGS_TOO | Agreement.UNKNOWN | None:
            return ""
        case _:
            assert_never(side.agreement)
