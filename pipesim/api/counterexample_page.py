"""The page of a counterexample: its story, its report, and the source lines beside its steps."""

from __future__ import annotations

from dataclasses import replace

from pipesim.answers.views.check import CheckReport, Counterexample
from pipesim.api.timelines import WIDTH, lines_of
from pipesim.formats.html.page import Page, SourceText
from pipesim.model.program import Program
from pipesim.report.findings.brief import in_short
from pipesim.report.pages.check import check_lines
from pipesim.report.text.source import lines_around
from pipesim.report.text.words import parameters, place, printable
from pipesim.scene.story import Story, story


def counterexample_page(program: Program, report: CheckReport, shown: Counterexample) -> Page:
    """The page of a counterexample; ``program`` has the sizes at which it was found."""
    told = story(program, shown)
    at = f" ({', '.join(parameters(shown.at, ()))})" if shown.at else ""
    claim = shown.finding.claim if hasattr(shown.finding, "claim") else in_short(shown.finding)
    return Page(
        title=printable(f"{report.heading.protocol}{at}: {in_short(shown.finding)}"),
        story=_in_place(told),
        claim=printable(claim),
        report=lines_of(check_lines(report, WIDTH)),
        sources=_sources(told),
    )


def _in_place(told: Story) -> Story:
    """The story with source lines as a person would type them."""
    known: dict[str, str] = {}

    def moved(line: str) -> str:
        return known.setdefault(line, place(line))

    steps = tuple(
        step._replace(
            line=replace(step.line, line=moved(step.line.line)),
            agents=tuple(agent._replace(line=moved(agent.line)) for agent in step.agents),
        )
        for step in told.steps
    )
    return replace(told, steps=steps)


def _sources(told: Story) -> dict[str, SourceText]:
    """Around each source line of the steps, and of the waits at the end, its file's lines, where they can be read."""
    lines = [step.line.line for step in told.steps]
    lines += [agent.line for step in told.steps[-1:] for agent in step.agents]
    found = {line: lines_around(line) for line in dict.fromkeys(lines) if line}
    return {place(line): text for line, text in found.items() if text}
