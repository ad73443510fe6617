"""How simulated times compare with recorded ones, in words: apart from what is said about the order of events."""

from collections.abc import Sequence
from typing import assert_never

from pipesim.answers.views.trace import TraceComparison
from pipesim.conform.times import AssumedKind, NoTime, TimeAssumption, TimeComparison, TimeVerdict
from pipesim.report.text.words import count, cycles, number, percent, signed_percent
from pipesim.timed.profile import PERIOD, StatedError

WITHIN = TimeVerdict.WITHIN_STATED_ERROR.value
OUTSIDE = TimeVerdict.OUTSIDE.value
NOT_MEASURED = "not measured"
MOST_ASSUMED = 3  #: assumptions that a sentence names

_VALUES = {  # the profile's estimates, as a reader knows them
    "transfer.latency": "bulk stores and cp.async",
    "matrix.latency": "matrix multiplications",
    "sync.latency": "named and cluster barriers",
}


def time_words(found: TimeComparison, side: str = "measured") -> str:
    """``off by +61.0 % (period 3,120 simulated, 1,940 measured)``. ``side``: what the trace's times are called."""
    return "; ".join(filter(None, (_deviation(found, side), _not_modelled(found))))


def time_in_short(found: TimeComparison) -> str:
    """``off by +61.0 %``: the verdict without its numbers of cycles and without what is assumed."""
    if found.verdict is TimeVerdict.OFF:
        return f"off by {signed_percent(found.off_permille)}"
    return str(found.verdict.value)


def time_parts(found: TimeComparison, side: str = "measured") -> list[str]:
    """The same in parts, with what the profile states, and how long each role's work took."""
    parts = [_deviation(found, side), *_all_not_modelled(found)]
    if found.off_permille is not None:
        parts.append(_stated_words(found.stated) if found.stated is not None else _unstated_words(found))
    return [part for part in parts if part]


def times_clause(blocks: Sequence[TraceComparison], names: Sequence[str], sides: Sequence[str]) -> str:
    """``times: off by ...``: of several devices each with its name; what is not modelled follows at the end."""
    compared = [_deviation(block.time, side) for block, side in zip(blocks, sides, strict=True)]
    lacking = [_not_modelled(block.time) for block in blocks]
    if len(set(lacking)) > 1:
        compared = ["; ".join(filter(None, pair)) for pair in zip(compared, lacking, strict=True)]
        lacking = [""]
    if len(set(compared)) > 1:
        compared = [f"{name}: {words}" for name, words in zip(names, compared, strict=True)]
    return "times: " + "; ".join(filter(None, (*dict.fromkeys(compared), lacking[0])))


def _deviation(found: TimeComparison, side: str) -> str:
    """How far the times are off, or why that is not known; "" where there is no number."""
    match found.verdict:
        case TimeVerdict.WITHIN_STATED_ERROR:
            return f"{WITHIN} ({signed_percent(found.off_permille)}: {_numbers(found, side)})"
        case TimeVerdict.OFF:
            return f"off by {signed_percent(found.off_permille)} ({_numbers(found, side)})"
        case TimeVerdict.OUTSIDE if found.off_permille is None:
            return ""
        case TimeVerdict.OUTSIDE:
            return f"{OUTSIDE} (off by {signed_percent(found.off_permille)}: {_numbers(found, side)})"
        case TimeVerdict.NOT_COMPARED:
            return f"not compared: {(found.why or NoTime.NOT_RECORDED).value}"
        case _:
            assert_never(found.verdict)


def _not_modelled(found: TimeComparison) -> str:
    if not found.assumed:
        return ""
    return f"not modelled for: {assumed_words(found.assumed)}"


def _all_not_modelled(found: TimeComparison) -> list[str]:
    """Everything that is assumed, with how long each role's work took."""
    if not found.assumed:
        return []
    said = list(dict.fromkeys(_describe_assumption(each, details=True) for each in found.assumed))
    return [f"not modelled for: {said[0]}", *said[1:]]


def assumed_words(assumed: Sequence[TimeAssumption]) -> str:
    """What a simulation assumes: the most important, and how much more."""
    said = list(dict.fromkeys(_describe_assumption(each, details=False) for each in assumed))
    more = f" and {number(len(said) - MOST_ASSUMED)} more" if len(said) > MOST_ASSUMED else ""
    return ", ".join(said[:MOST_ASSUMED]) + more


def _describe_assumption(each: TimeAssumption, *, details: bool) -> str:
    if each.kind is AssumedKind.VALUE and each.name in _VALUES:
        return _VALUES[each.name]
    said = each.kind.value.format(name=each.name)
    return said + _work_words(each) if each.kind is AssumedKind.WORK and details else said


def _work_words(each: TimeAssumption) -> str:
    took = "not recorded" if each.recorded is None else f"{number(each.recorded)} recorded"
    return f" ({number(each.given)} cycles given, {took})"


def _numbers(found: TimeComparison, side: str) -> str:
    figure = "period" if found.figure == PERIOD else f"{found.figure}:"
    return f"{figure} {cycles(found.simulated)} simulated, {cycles(found.measured)} {side}"


def _stated_words(stated: StatedError) -> str:
    over = f"over {count(stated.configurations, 'configuration')} of {stated.kernel}"
    return f"stated: median {percent(stated.median_permille)}, at most {percent(stated.worst_permille)} {over}"


def _unstated_words(found: TimeComparison) -> str:
    if found.beyond:
        ranges = [f"{name} {number(least)} to {number(most)}" for name, (least, most) in found.beyond.items()]
        return f"the profile {found.profile} states its error for {', '.join(ranges)}"
    what = "this kernel" if found.figure == PERIOD else "whole runs of this kernel"
    return f"the profile {found.profile} states no error for {what}"
