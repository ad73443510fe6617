"""``pipesim check --redundant``: what a proved protocol does not need, what is executed most often first."""

from pipesim.answers.views.check import Brief
from pipesim.answers.views.redundant import RedundantReport, Removable, Sizes
from pipesim.findings.assumptions import ASSUMPTIONS
from pipesim.model.coverage import Assumption
from pipesim.model.finding import Verdict
from pipesim.report.findings.brief import shortened
from pipesim.report.sentences.check import step_left_out
from pipesim.report.text.console import mark
from pipesim.report.text.layout import field, heading_lines, middle, wrap
from pipesim.report.text.source import with_source
from pipesim.report.text.words import count, listed, number, place


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


def redundant_brief(report: RedundantReport) -> Brief:
    """The answer in at most 2 kB: ``correction`` has the removals, those of the set that is proved as a whole first."""
    order = [*report.together, *(n for n in range(len(report.alone)) if n not in report.together)]
    together = f"together: {together_words(report)}" if report.together else ""
    at = list(dict.fromkeys(place(line) for n in order for line in report.alone[n].lines if line))[:2]

    def made(most: int) -> Brief:
        removals = "; ".join(f"{n + 1}: {report.alone[n].said}" for n in order)
        said, correction = (middle(text, 2 * most) for text in (redundant_sentence(report), removals))
        places = tuple(middle(each, most // 2) for each in at)
        return Brief(report.verdict.value, said, claim=middle(together, most), places=places, correction=correction)

    return shortened(made)


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


_MOST_LINES = 4  #: source lines of one removal that are shown


def redundant_lines(report: RedundantReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    parts = [report.verdict.value, count(report.operations, "operation")]
    lines = [*heading_lines(report.heading, width), "", *field("check", parts, width)]
    if report.rules:
        lines += field("rules", [*report.rules], width)
    if report.assumed:
        said = f"{listed(list(report.assumed))}: broken by the protocol itself; a removal breaks it at no further line"
        lines += field("not kept", [said], width)
    if report.tried:
        lines += field("tried", _tried_removals(report), width)
    if report.sizes and report.alone:
        lines += field("sizes", [sizes_words(each) for each in report.sizes], width)
    for n, each in enumerate(report.alone, 1):
        lines += ["", *_removable(n, each, width)]
    if report.together:
        lines += ["", *field("together", [together_words(report)], width)]
    if report.left_out:
        lines += ["", *field("left out", [step_left_out(each) for each in report.left_out], width)]
    return [*lines, "", *wrap(redundant_sentence(report), width, f"{mark(report.conclusion.ok)} ")]


def _tried_removals(report: RedundantReport) -> list[str]:
    said = [f"{count(report.tried, 'removal')}, each alone"]
    if report.unfit:
        said.append(f"{number(report.unfit)} proved at this size only")
    if report.guarding:
        said.append(f"{number(report.guarding)} may guard the allocation of tensor memory")
    return said


def _removable(n: int, each: Removable, width: int) -> list[str]:
    """One removal, how often it is executed, and its source lines."""
    times = count(each.removal.times, "execution") + " by an agent"
    first, *rest = each.lines or ("",)
    indent = " " * (len(str(n)) + 4)
    lines = with_source(f"{each.said} · {times}", first, width, f"  {n}  ", indent)
    for line in rest[: _MOST_LINES - 1]:
        lines += with_source("", line, width, indent, indent)[1:] or wrap(line, width, indent)
    more = len(rest) - (_MOST_LINES - 1)
    return [*lines, f"{indent}and {count(more, 'more line')}"] if more > 0 else lines
