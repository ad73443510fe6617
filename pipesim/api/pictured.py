"""What an exported picture shows: the scene of a run or of two, and the page of a run or of a counterexample."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipesim.answers.views.check import CheckReport, Counterexample
from pipesim.export.html.page import Page, SourceText
from pipesim.model.program import Program
from pipesim.report.findings.in_short import in_short
from pipesim.report.pages.check import check_lines
from pipesim.report.text.console import text_of
from pipesim.report.text.printable import printable
from pipesim.report.text.source import lines_around
from pipesim.report.text.words import parameters, place
from pipesim.scene.parts import Scene
from pipesim.scene.runs import simulated_scene, trace_scene
from pipesim.scene.story import Story, story
from pipesim.timed.choice import profile_for
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Trace
from pipesim.trace.sites import optional_of

WIDTH = 110  #: cells of the report on a page


def beside(program: Program, trace: Trace, profile: Profile | None, label: str) -> Scene:
    """A trace, and above it what the simulation of its program does, with what recording costs on the chip.

    ``profile``: that of the trace's device if None.
    """
    chosen = profile or profile_for(trace.meta.device.name)
    simulated, _ = simulated_scene(program, chosen, traced=True, also=optional_of(trace.meta))
    title = printable(f"{program.name}: simulation and {trace.meta.device.name or trace.meta.source}")
    return Scene(title, (simulated, trace_scene(trace, program, label)))


def comparison_report(program: Program, trace: Trace, source: str, profile: Profile | None) -> list[str]:
    """The lines of the report on a trace beside its program."""
    from pipesim.answers.compare import compare_trace
    from pipesim.report.pages.verify import compare_lines

    return lines_of(compare_lines(compare_trace(program, trace, source, profile), WIDTH))


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


def lines_of(lines: Sequence[str]) -> list[str]:
    """The lines of a report as a page shows them."""
    return text_of(lines).split("\n")


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
