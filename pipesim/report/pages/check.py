"""``pipesim check``: the verdict for every schedule, what it rests on, and a schedule for what is wrong."""

from __future__ import annotations

from collections.abc import Mapping

from rich.console import Console

from pipesim.answers.view import CheckReport, Range, Shown
from pipesim.errors import PipesimError
from pipesim.model.finding import Verdict
from pipesim.prove.counterexample.words import DoubtLine
from pipesim.report.findings.finding import advisory_lines, finding_lines
from pipesim.report.findings.schedule import again_lines, schedule_block
from pipesim.report.text.console import mark, paint, width_of
from pipesim.report.text.headline import heading_lines
from pipesim.report.text.layout import field, wrap, wrap_parts
from pipesim.report.text.words import count, number, parameters, place

MOST_DOUBTS = 4
_OK = {Verdict.PROVED: True, Verdict.REFUTED: False, Verdict.UNKNOWN: None}


def paint_check(console: Console, report: CheckReport) -> None:
    """Write the report."""
    paint(console, check_lines(report, width_of(console)))


def paint_summary(console: Console, reports: Mapping[str, CheckReport], failed: Mapping[str, PipesimError]) -> None:
    """Write the verdicts on several protocols in a line each, and how many of them are proved.

    ``failed``: those that could not be built, each with its error.
    """
    lines = [f"  {mark(_OK[report.verdict])} {name}" for name, report in reports.items()]
    lines += [f"  {mark(None)} {name} could not be built" for name in failed]
    proved = sum(report.verdict is Verdict.PROVED for report in reports.values())
    refuted = any(report.verdict is Verdict.REFUTED for report in reports.values())
    several = len(reports) + len(failed)
    ok = False if refuted else True if proved == several else None
    paint(console, [*lines, "", f"{mark(ok)} {proved} of {count(several, 'protocol')} proved"])


def check_lines(report: CheckReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    parts = [count(report.operations, "operation"), *([count(report.phases, "phase")] if report.phases else [])]
    parts.append(report.how)
    parts += [f"{count(report.states, 'state')} searched"] if report.states else []
    lines = [*heading_lines(report.heading, width), "", *field("check", parts, width)]
    for each in report.ranges:
        lines += field("sizes", [_range(each)], width)
    lines += advisory_lines(report.advisories, width)
    lines += wrong_lines(report, width)
    return [*lines, "", *wrap(report.said, width, f"{mark(_OK[report.verdict])} ")]


def proof_lines(report: CheckReport, width: int) -> list[str]:
    """The verdict as one line of another report."""
    said = {Verdict.PROVED: "proved for every schedule", Verdict.REFUTED: "refuted", Verdict.UNKNOWN: "unknown"}
    how = [] if report.verdict is Verdict.PROVED else [report.how]
    free = [each.parameter for each in report.ranges if each.lap]
    sizes = [f"for any number of {' or of '.join(free)}"] if free else []
    parts = [f"{mark(_OK[report.verdict])} {said[report.verdict]}", *sizes, *how]
    parts.append(count(report.operations, "operation"))
    return field("proof", parts, width)


def _range(each: Range) -> str:
    """For which values of a trip count the verdict holds, and what is assumed for those that were not checked."""
    if each.checked < 0:
        return f"{each.parameter}: checked only as given: {each.why}"
    run = f"{number(each.least)} to {number(each.checked)} checked individually"
    if each.least == each.checked:
        run = f"only {number(each.least)} checked"
    if not each.lap:
        where = f"at {number(each.fails)} " if each.fails >= 0 else ""
        return f"{each.parameter}: {run}, no further value: {where}{each.why}"
    lap = f"{number(each.lap)} iterations repeat" if each.lap > 1 else "iteration repeats"
    beyond = f"from {number(each.first)} on, every further {lap} one lap (assumed to continue)"
    return f"{each.parameter}: any value: {run}; {beyond}"


def wrong_lines(report: CheckReport, width: int) -> list[str]:
    """The doubts and the findings, each block after an empty line; nothing if the protocol is proved."""
    lines: list[str] = []
    if report.doubts and report.verdict is not Verdict.PROVED:
        lines += ["", *_doubts(report.doubts, width)]
    for shown in report.refutations:
        lines += shown_lines(shown, width)
    if report.also:
        lines += ["", "  other schedules of this size end differently"]
        for said in report.also:
            lines += wrap(said, width, "    ", "      ")
    return lines


def shown_lines(shown: Shown, width: int) -> list[str]:
    """One way in which it fails: the sizes, the finding, its schedule, and how to see it again."""
    lines = ["", *_smallest(shown, width), *finding_lines([shown.finding], width), "", *schedule_block(shown, width)]
    for block in (_corrections(shown, width), again_lines(shown, width)):
        lines += ["", *block] if block else []
    return lines


def _corrections(shown: Shown, width: int) -> list[str]:
    """``likely correction: initialise empty with a count of 1 instead of 2 (ring.py:12); proved with this change``."""
    lines: list[str] = []
    for n, found in enumerate(shown.corrections):
        label = "or: " if n else "likely correction: "
        lines += wrap(f"{label}{_at(found.said, found.line)}; proved with this change", width, "  ", "    ")
    return lines


def _smallest(shown: Shown, width: int) -> list[str]:
    if not shown.at:
        return []
    return [*wrap_parts(["smallest", *parameters(shown.at, ())], width, "  "), ""]


def _doubts(doubts: tuple[DoubtLine, ...], width: int) -> list[str]:
    """What may happen differently in another schedule, as the one run shows."""
    lines = ["  not ordered with respect to other agents:"]
    doubts = tuple(dict.fromkeys(doubts))  # the next lap's says the same
    for doubt in doubts[:MOST_DOUBTS]:
        lines += wrap(_at(doubt.what, doubt.line), width, "    ", "      ")
        if doubt.other:
            lines += wrap(f"and {_at(doubt.other, doubt.other_line)}", width, "    ", "      ")
        lines += wrap(doubt.why, width, "      ", "      ")
    if len(doubts) > MOST_DOUBTS:
        lines.append(f"    and {number(len(doubts) - MOST_DOUBTS)} more")
    return lines


def _at(what: str, line: str) -> str:
    return f"{what} ({place(line)})" if line else what
