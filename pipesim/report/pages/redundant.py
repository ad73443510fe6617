"""``pipesim check --redundant``: what a proved protocol does not need, what is executed most often first."""

from __future__ import annotations

from pipesim.answers.views.redundant import RedundantReport, Removable
from pipesim.report.sentences.check import step_left_out
from pipesim.report.sentences.redundant import redundant_sentence, sizes_words, together_words
from pipesim.report.text.console import mark
from pipesim.report.text.layout import field, heading_lines, wrap
from pipesim.report.text.source import with_source
from pipesim.report.text.words import count, listed, number

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
