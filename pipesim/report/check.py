"""``pipesim check``: the verdict for every schedule, what it rests on, and a schedule for what is wrong."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console

from pipesim.model.finding import Finding, Verdict
from pipesim.prove.words import DoubtLine, Line
from pipesim.report.console import mark, paint, width_of
from pipesim.report.finding import finding_lines
from pipesim.report.layout import columns, field, middle, wrap
from pipesim.report.verify import heading_lines
from pipesim.report.view import Heading
from pipesim.report.words import count, number, place

MOST_STEPS = 16  #: of a schedule: its last ones; all of them are in the JSON
MOST_DOUBTS = 4


@dataclass(frozen=True)
class Shown:
    """What is wrong, and the schedule that shows it."""

    finding: Finding
    schedule: tuple[Line, ...]


@dataclass(frozen=True)
class CheckReport:
    """The whole of ``pipesim check``. ``how``: what the verdict rests on; ``states`` were searched, 0 if none."""

    heading: Heading
    verdict: Verdict
    how: str
    operations: int
    phases: int
    states: int
    doubts: tuple[DoubtLine, ...]
    refutations: tuple[Shown, ...]
    said: str


def paint_check(console: Console, report: CheckReport) -> None:
    """Write the report."""
    paint(console, check_lines(report, width_of(console)))


def check_lines(report: CheckReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    parts = [count(report.operations, "operation"), count(report.phases, "phase"), report.how]
    parts += [f"{count(report.states, 'state')} searched"] if report.states else []
    lines = [*heading_lines(report.heading, width), "", *field("check", parts, width)]
    if report.doubts and report.verdict is not Verdict.PROVED:
        lines += ["", *_doubts(report.doubts, width)]
    for shown in report.refutations:
        lines += ["", *finding_lines([shown.finding], width), "", *_schedule(shown.schedule, width)]
    ok = {Verdict.PROVED: True, Verdict.REFUTED: False, Verdict.UNKNOWN: None}[report.verdict]
    return [*lines, "", *wrap(report.said, width, f"{mark(ok)} ")]


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


def _schedule(schedule: tuple[Line, ...], width: int) -> list[str]:
    """The last steps that lead there, one a line."""
    shown = schedule[-MOST_STEPS:]
    head = "the schedule" if len(shown) == len(schedule) else f"the last {len(shown)} of {count(len(schedule), 'step')}"
    rows = [("step", "agent", "does")]
    rows += [(number(step.number), step.agent, middle(step.what, max(24, width - 36))) for step in shown]
    return [f"  {head}", *columns(rows, 2, width)]
