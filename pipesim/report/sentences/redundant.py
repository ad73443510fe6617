"""What could be removed, in sentences."""

from __future__ import annotations

from pipesim.answers.views.redundant import RedundantReport, Sizes
from pipesim.findings.assumptions import ASSUMPTIONS
from pipesim.model.coverage import Assumption
from pipesim.model.finding import Verdict
from pipesim.report.text.words import count, listed, number


def redundant_sentence(report: RedundantReport) -> str:
    """The answer in one line."""
    name = report.heading.protocol
    if report.withheld is not None:
        said = f"nothing is offered for {name}: {report.withheld.value}"
        return said if report.verdict is not Verdict.REFUTED else f"refuted: {said}"
    if report.left_out:
        return f"not everything was tried: {name} may have more that it does not need"
    if not report.alone:
        return f"every one of the {count(report.tried, 'removal')} tried breaks {name}, or what it assumes"
    return f"{name} stays proved with {_any_one(len(report.alone))} of the {count(report.tried, 'removal')} tried"


def _any_one(removals: int) -> str:
    return "one" if removals == 1 else f"any one of {number(removals)}"


def together_words(report: RedundantReport) -> str:
    """Which of the removals make the maximal set, and for which sizes it is proved."""
    numbers = [number(n + 1) for n in sorted(report.together)]
    free = [each.parameter for each in report.sizes if each.shown]
    sizes = (
        f"for any number of {' or of '.join(free)}, assuming that {ASSUMPTIONS[Assumption.PATTERN].clause}"
        if free
        else "at the sizes above"
    )
    if not report.sizes:
        sizes = "at this size"
    every = "all of them" if len(numbers) == len(report.alone) > 1 else listed(numbers)
    return f"{every}: proved as one edit {sizes}"


def sizes_words(each: Sizes) -> str:
    """At which values of a trip count each removal was proved."""
    if not each.values:
        return f"{each.parameter}: as given"
    return f"{each.parameter} {_runs(each.values)}"


def _runs(values: tuple[int, ...]) -> str:
    """``0 to 4 and 29 to 36``."""
    runs: list[list[int]] = []
    for value in values:
        if runs and value == runs[-1][-1] + 1:
            runs[-1].append(value)
        else:
            runs.append([value])
    return listed([number(run[0]) if len(run) == 1 else f"{number(run[0])} to {number(run[-1])}" for run in runs])
