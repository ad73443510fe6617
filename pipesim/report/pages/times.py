"""The times of several protocols, apart from their behaviour: how far the simulated ones are off, over all traces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipesim.answers.views.summary import ProtocolReport
from pipesim.conform.times import PERIOD, Assumed, AssumedKind, TimeComparison, TimeVerdict
from pipesim.report.sentences.times import WITHIN, assumed_words
from pipesim.report.text.layout import field
from pipesim.report.text.words import count, number, signed_percent


def times_lines(protocols: Iterable[ProtocolReport], width: int) -> list[str]:
    """A line for each protocol with recorded times; none if there are none."""
    lines: list[str] = []
    for each in protocols:
        found = [line.time for line in each.traces if line.time is not None]
        if found:
            lines += field("" if lines else "times", [f"{each.name}: {_verdicts(found)}", *_differences(found)], width)
    return lines


def _verdicts(found: Sequence[TimeComparison]) -> str:
    """How many of each verdict, with all that any of them assumes."""
    said = []
    for verdict in TimeVerdict:
        mine = [each for each in found if each.verdict is verdict]
        if mine:
            said.append(f"{number(len(mine))} {_verdict(verdict, mine)}")
    return ", ".join(said)


def _verdict(verdict: TimeVerdict, mine: Sequence[TimeComparison]) -> str:
    match verdict:
        case TimeVerdict.WITHIN_STATED_ERROR:
            return WITHIN
        case TimeVerdict.OFF if any(each.stated is not None for each in mine):
            return "off"
        case TimeVerdict.OFF:
            return "off (no error stated)"
        case TimeVerdict.NOT_MODELLED:
            # each role's work once, whatever was recorded of it
            assumed = {(one.kind, one.name): one for each in mine for one in each.assumed}
            return f"not modelled for: {assumed_words(sorted(assumed.values(), key=_order))}"
        case TimeVerdict.NOT_COMPARED:
            return "not compared"


def _order(one: Assumed) -> tuple[int, str]:
    return list(AssumedKind).index(one.kind), one.name


def _differences(found: Sequence[TimeComparison]) -> list[str]:
    """Median and worst difference of those that have one, and by what they were compared."""
    numbers = [(each.off_permille, each.figure == PERIOD) for each in found if each.off_permille is not None]
    if not numbers:
        return []
    offs = sorted(off for off, _ in numbers)
    median, worst = offs[len(offs) // 2], max(offs, key=lambda off: (abs(off), off))
    periods = sum(by_period for _, by_period in numbers)
    parts = [f"off by {signed_percent(median)} in the median, {signed_percent(worst)} at worst"]
    by = [count(periods, "period")] * bool(periods)
    by += [count(len(numbers) - periods, "whole run")] * (len(numbers) > periods)
    return [*parts, f"over {' and '.join(by)}"]
