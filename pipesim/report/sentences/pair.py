"""The verdict on two traces in words: their behaviour, how each compares with its protocol, and their times."""

from typing import assert_never

from pipesim.answers.views.trace import PairReport, PairSide
from pipesim.conform.agreement import Agreement
from pipesim.conform.pair.result import PERIOD, Behaviour, Ledger, PairFigure, PairTiming
from pipesim.conform.result import TraceVerdict
from pipesim.model.ending import HUNG, TRAPPED
from pipesim.report.sentences.trace import FAULT_NAMED, period_words, results_words
from pipesim.report.text.words import (
    count,
    difference,
    megahertz,
    nanoseconds,
    number,
    percent,
    signed_number,
    tenths,
)
from pipesim.trace.schema import TraceMeta

_HOW = dict.fromkeys(HUNG, "hung") | dict.fromkeys(TRAPPED, "trapped")
_DIFFERS = "does not conform to the protocol"
_INJECTED = f"has {FAULT_NAMED}"
MOST_SAID = 3  #: segments that the sentence names; the others are its rest


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
    """How the runs ended if neither finished, which leaves nothing to say about their speed; "" if one did."""
    if _HOW.get(a.status, "") == "" or _HOW.get(b.status, "") == "":
        return ""
    if _HOW[a.status] == _HOW[b.status]:
        return f"both {_HOW[a.status]}"
    return f"A {_HOW[a.status]}, B {_HOW[b.status]}"


def not_compared_words(side: PairSide) -> str:
    """Why a trace was not compared with its own protocol."""
    protocol = side.trace.meta.protocol
    if side.refused is not None:
        return f"not compared with {protocol}: {side.refused.fact}"
    return f"not compared with {protocol}, which is not built in"


def _protocol_clause(a: PairSide, b: PairSide) -> str:
    """What the verdict adds about how each agrees with its protocol, "" if nothing."""
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


# Time


def time_words(timing: PairTiming) -> str:
    """The sentence: ``B is 3.2 % slower: +36.0 cycles a tile, of which ...``; "" where no figure can decide.

    With different SM clocks slower is meant in time, which may be fewer cycles.
    """
    figure = timing.decides
    if figure is None or figure.difference is None:
        return ""
    change = _time_change(figure.name, figure.difference)
    speed = _speed(figure, timing)
    if figure.beyond_noise is False:
        noise = tenths((figure.noise_a or 0) + (figure.noise_b or 0))
        words = f"B takes the same number of cycles within the noise: {change}, noise ±{noise}"
        if figure.difference == 0:
            words = "B takes the same number of cycles"
        words += f"; {speed}{_clocks(timing)}" * timing.clocks_differ
        return words + _overhead(timing)
    words = f"{speed}: {change}{_clocks(timing)}"
    if figure.beyond_noise is None:
        words += ", noise not measured"
    return words if timing.unlike else words + _of_which(timing.ledgers[0], figure.difference) + _overhead(timing)


def _time_change(name: str, difference_: int) -> str:
    if name.startswith("period"):
        return f"{difference(difference_)} cycles a tile"
    part = "the compared iterations" if name.startswith("compared") else "the whole run"
    return f"{signed_number(difference_ // 1000)} cycles over {part}"


def _speed(figure: PairFigure, timing: PairTiming) -> str:
    """``B is 3.2 % slower``, in time where the clocks differ, else in cycles."""
    a, b = figure.a, figure.b
    where = " in time" if timing.clocks_differ else ""
    if timing.clocks_differ:
        a, b = nanoseconds(a, timing.khz_a), nanoseconds(b, timing.khz_b)
    assert a is not None
    assert b is not None
    if a == b:
        return f"B is as fast{where}"
    permille = permille_of(a, b)
    size = percent(abs(permille)) if permille else "less than 0.1 %"
    return f"B is {size} {'slower' if b > a else 'faster'}{where}"


def _clocks(timing: PairTiming) -> str:
    return f" at {megahertz(timing.khz_a)} in A, {megahertz(timing.khz_b)} in B" if timing.clocks_differ else ""


def _overhead(timing: PairTiming) -> str:
    """What recording costs in each, where that changed; "" if not, or if it is not known."""
    counted = timing.primary != PERIOD
    cost = timing.recording
    if cost is not None and cost.beyond_noise:
        told = f"; recording costs {tenths(cost.a)} cycles a tile in A, {tenths(cost.b)} in B"
        return f"{told}, {'' if counted else 'not '}included in these numbers"
    if cost is None and counted and timing.recorders_differ:
        return "; A and B were recorded in different ways; these numbers include the cost of recording"
    return ""


def _of_which(critical: Ledger, said: int) -> str:
    """The largest parts of the critical agent's change, and the rest, so that they add up.

    ``said`` is the change that the sentence began with: what the traces show is named too if it is another.
    """
    whole = critical.steady_b - critical.steady_a
    if not critical.steady_tiles:
        return ""
    parts = sorted(critical.segments, key=lambda s: -abs(s.steady_b - s.steady_a))[:MOST_SAID]
    told = [(s.what, s.steady_b - s.steady_a) for s in parts if s.steady_b != s.steady_a]
    rest = whole - sum(spent for _, spent in told)
    told += [("everything else", rest)] if rest else []
    if not told:
        return ""
    words = ", ".join(f"{what} {cycles_a_tile(spent, critical)}" for what, spent in told)
    if _per_tile(whole, critical) != said:
        return f"; in the traces, {critical.agent} takes {cycles_a_tile(whole, critical)} a tile, of which {words}"
    return f", of which {critical.agent} {words}"


def permille_of(a: int | None, b: int | None) -> int | None:
    """The difference of two numbers in thousandths of the first; None where there are not both."""
    return round(1000 * (b - a) / a) if a and b is not None else None


def cycles_a_tile(total: int, of: Ledger) -> str:
    """Cycles of the steady window as those of one tile."""
    return difference(_per_tile(total, of))


def _per_tile(total: int, of: Ledger) -> int | None:
    return round(1000 * total / of.steady_tiles) if of.steady_tiles else None
