"""The verdict on two traces in words: their behaviour, and how each compares with its protocol."""

from __future__ import annotations

from pipesim.answers.views.trace import PairReport, PairSide
from pipesim.conform.pair.result import Behaviour
from pipesim.conform.result import TraceVerdict
from pipesim.model.ending import HUNG, TRAPPED
from pipesim.report.sentences.pair_figures import time_words
from pipesim.report.sentences.trace import period_words
from pipesim.report.text.words import count, number
from pipesim.trace.schema import TraceMeta

_HOW = dict.fromkeys(HUNG, "hung") | dict.fromkeys(TRAPPED, "trapped")


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
    if a.leaves_protocol and b.leaves_protocol:
        return "; neither conforms to the protocol"
    if a.leaves_protocol or b.leaves_protocol:
        return f"; {'A' if a.leaves_protocol else 'B'} does not conform to the protocol"
    return ""
