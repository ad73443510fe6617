"""``pipesim check``: the verdict for every schedule, what it rests on, and a schedule for what is wrong."""

from __future__ import annotations

from rich.console import Console

from pipesim.model.finding import Deadlock, Finding, Verdict
from pipesim.prove.words import DoubtLine
from pipesim.report.console import mark, paint, width_of
from pipesim.report.finding import finding_lines
from pipesim.report.headline import heading_lines
from pipesim.report.layout import columns, field, middle, wrap, wrap_parts
from pipesim.report.view import CheckReport, Range, Shown
from pipesim.report.words import count, number, parameters, place

MOST_STEPS = 16  #: of a schedule: its last ones; all of them are in the JSON
MOST_DOUBTS = 4
_OK = {Verdict.PROVED: True, Verdict.REFUTED: False, Verdict.UNKNOWN: None}


def paint_check(console: Console, report: CheckReport) -> None:
    """Write the report."""
    paint(console, check_lines(report, width_of(console)))


def check_lines(report: CheckReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    parts = [count(report.operations, "operation"), *([count(report.phases, "phase")] if report.phases else [])]
    parts.append(report.how)
    parts += [f"{count(report.states, 'state')} searched"] if report.states else []
    lines = [*heading_lines(report.heading, width), "", *field("check", parts, width)]
    for each in report.ranges:
        lines += field("sizes", [_range(each)], width)
    lines += wrong_lines(report, width)
    return [*lines, "", *wrap(report.said, width, f"{mark(_OK[report.verdict])} ")]


def proof_lines(report: CheckReport, width: int) -> list[str]:
    """The verdict as one line of another report."""
    said = {Verdict.PROVED: "proved for every schedule", Verdict.REFUTED: "refuted", Verdict.UNKNOWN: "unknown"}
    how = [] if report.verdict is Verdict.PROVED else [report.how]
    parts = [f"{mark(_OK[report.verdict])} {said[report.verdict]}", *how, count(report.operations, "operation")]
    return field("proof", parts, width)


def _range(each: Range) -> str:
    """For which values of a trip count the verdict holds, and what is taken for granted beyond those that were run."""
    run = f"{number(each.least)} to {number(each.checked)} run one by one"
    if not each.lap:
        return f"{each.parameter}: {run}, not more: {each.why}"
    lap = f"{number(each.lap)} more are one more lap" if each.lap > 1 else "one more is one more lap"
    return (
        f"{each.parameter}: any number ({run}; from {number(each.first)} on {lap}, if its roles go on as they do there)"
    )


def wrong_lines(report: CheckReport, width: int) -> list[str]:
    """What is doubtful and what is wrong, each block behind an empty line; nothing of what is proved."""
    lines: list[str] = []
    if report.doubts and report.verdict is not Verdict.PROVED:
        lines += ["", *_doubts(report.doubts, width)]
    for shown in report.refutations:
        lines += ["", *_smallest(shown, width), *finding_lines([shown.finding], width)]
        lines += ["", *_schedule(shown, width)]
    return lines


def _smallest(shown: Shown, width: int) -> list[str]:
    if not shown.at:
        return []
    return [*wrap_parts(["smallest", *parameters(shown.at, ())], width, "  "), ""]


def _doubts(doubts: tuple[DoubtLine, ...], width: int) -> list[str]:
    """What may happen otherwise in another schedule, as the one run shows."""
    lines = ["  nothing holds these in their place"]
    for doubt in doubts[:MOST_DOUBTS]:
        lines += wrap(_at(doubt.what, doubt.line), width, "    ", "      ")
        if doubt.other:
            lines += wrap(f"and {_at(doubt.other, doubt.other_line)}", width, "    ", "      ")
        lines += wrap(doubt.why, width, "      ", "      ")
    if len(doubts) > MOST_DOUBTS:
        lines.append(f"    and {count(len(doubts) - MOST_DOUBTS, 'more')}")
    return lines


def _at(what: str, line: str) -> str:
    return f"{what} ({place(line)})" if line else what


def _schedule(shown: Shown, width: int) -> list[str]:
    """The steps that lead there: all, or those on the barriers that matter, or the last ones."""
    steps, head = shown.schedule, "the schedule"
    matter = _matter(shown.finding)
    if len(steps) > MOST_STEPS and matter:
        head = f"the schedule, {count(len(steps), 'step')}; those on {', '.join(matter)}"
        steps = tuple(step for step in steps if any(name in step.what for name in matter))
    if len(steps) > MOST_STEPS:
        head = f"the schedule, {count(len(shown.schedule), 'step')}; the last {MOST_STEPS}"
        steps = steps[-MOST_STEPS:]
    rows = [("step", "agent", "does")]
    rows += [(number(step.number), step.agent, middle(step.what, max(24, width - 36))) for step in steps]
    return [*wrap(head, width, "  "), *columns(rows, 3, width)]


def _matter(finding: Finding) -> list[str]:
    """The barriers on which nobody can help any more: a deadlock's cause, if it has one so plain."""
    if not isinstance(finding, Deadlock):
        return []
    return sorted({b.barrier for b in finding.blocked if b.parity >= 0 and not any(s.next_line for s in b.suppliers)})
