"""The verdict on two traces in words: their behaviour, and how each compares with its protocol."""

from __future__ import annotations

from pipesim.conform.pair.result import Behaviour
from pipesim.conform.result import Conformance
from pipesim.model.finding import Verdict
from pipesim.report.text.words import count, number
from pipesim.trace.schema import TraceMeta

_HOW = {"deadline": "hung", "deadlock": "hung", "trap": "trapped", "fault": "trapped"}


def behaviour_words(found: Behaviour) -> str:
    """``same behaviour``, or where it first differs, or why it cannot be said."""
    match found.verdict:
        case Verdict.PROVED:
            return "same behaviour"
        case Verdict.UNKNOWN:
            lost = [f"{count(n, 'record')} of {side}" for side, n in (("A", found.lost_a), ("B", found.lost_b)) if n]
            why = f"{' and '.join(lost)} lost" if lost else "a simulation ran out of its budget"
            return f"no difference found, but {why}: the rest was not compared"
        case Verdict.REFUTED:
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


def conformance_clause(a: Conformance | None, b: Conformance | None) -> tuple[bool, str]:
    """Whether the two stand alike to their protocol, and what the verdict adds about it ("" if nothing)."""
    bad_a, bad_b = (held is not None and held.verdict is Verdict.REFUTED for held in (a, b))
    if bad_a and bad_b:
        return True, "; neither conforms to the protocol"
    if bad_a or bad_b:
        return False, f"; {'A' if bad_a else 'B'} does not conform to the protocol"
    return True, ""
