"""``pipesim run --schedule``: a schedule move by move as a timeline, and what is wrong where it ends."""

from __future__ import annotations

from pipesim.answers.views.check import WalkReport
from pipesim.model.finding import Deadlock
from pipesim.prove.counterexample.activity import FOREVER, Activity, Span
from pipesim.report.findings.finding import finding_lines
from pipesim.report.pictures.timeline import picture_lines
from pipesim.report.sentences.check import walk_sentence
from pipesim.report.text.console import mark
from pipesim.report.text.layout import field, heading_lines, wrap
from pipesim.report.text.words import count
from pipesim.trace.activity import FOREVER as OPEN
from pipesim.trace.activity import Picture, SliceKind, Track, wait_kind


def walk_lines(report: WalkReport, width: int) -> list[str]:
    """The report in lines of at most ``width`` cells."""
    lines = [*heading_lines(report.heading, width), "", *field("schedule", [count(report.moves, "move")], width)]
    groups = list(dict.fromkeys((span.barrier, span.awaited) for span in report.spans if span.barrier))
    drawn = picture_lines(_picture(report), groups, width)
    lines += ["", *drawn] if drawn else []
    for finding in report.findings:
        lines += ["", *finding_lines([finding], width)]
    return [*lines, "", *wrap(walk_sentence(report), width, f"{mark(report.conclusion.ok)} ")]


def _picture(report: WalkReport) -> Picture:
    tracks = []
    for number, agent in enumerate(report.agents):
        spans = [
            (span.first, OPEN if span.end == FOREVER else span.end, _kind(span))
            for span in report.spans
            if span.agent == number
        ]
        tracks.append(Track(agent, tuple(spans)))
    stuck = any(isinstance(finding, Deadlock) for finding in report.findings)
    return Picture("schedule", -1, tuple(tracks), 0, report.moves, report.moves, stuck, part=False, unit="move")


def _kind(span: Span) -> SliceKind:
    if span.activity is Activity.WAITS:
        return wait_kind(span.awaited)
    return SliceKind.WORK if span.activity is Activity.WORKS else SliceKind.ISSUE
