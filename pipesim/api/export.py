"""``pipesim.export``: a run, a counterexample with its story, or a protocol as a file for another program."""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from os import PathLike
from pathlib import Path

from pipesim.answers.check import check
from pipesim.answers.views.check import CheckReport, Counterexample
from pipesim.api.call_arguments import (
    Given,
    GivenBoxes,
    GivenLaunch,
    GivenProfile,
    GivenWords,
    KernelLaunch,
    build_target,
)
from pipesim.api.timelines import WIDTH, lines_of
from pipesim.errors import UsageError
from pipesim.formats.html.page import Page, SourceText, page_parts
from pipesim.formats.pictures import COUNTEREXAMPLE, FORMATS, HANG, TIMELINE, require_drawn
from pipesim.formats.promela import to_promela
from pipesim.model.coverage import strictness_from
from pipesim.model.finding import Deadlock
from pipesim.model.program import Program
from pipesim.process.files import write_whole
from pipesim.ptx.source_files import lines_read_from
from pipesim.report.findings.brief import in_one_line, in_short
from pipesim.report.pages.checks.check import check_lines
from pipesim.report.pictures.hang_svg import hang_svg
from pipesim.report.pictures.schedule_svg import schedule_svg
from pipesim.report.text.source import lines_around
from pipesim.report.text.words import parameters, place, printable
from pipesim.scene.story import Story, story
from pipesim.targets import Target


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


PROMELA = "promela"


@dataclass(frozen=True)
class ExportResult:
    """What ``pipesim export`` writes: ``data`` is the file, in the format ``to``."""

    protocol: str
    to: str
    data: bytes = field(repr=False)

    def write(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the file. UsageError if there is one and ``force`` is not given."""
        write_whole(Path(path), iter([self.data]), force=force)


def export(
    x: Given,
    to: str,
    *,
    picture: str = TIMELINE,
    profile: GivenProfile = "h100",
    ctas: int | None = None,
    strict: bool | Collection[str] = (),
    launch: GivenLaunch = None,
    set: GivenWords = None,  # noqa: A002  # as the command's option
    box: GivenBoxes = None,
    **params: int,
) -> ExportResult:
    """Make a file for another program: of a simulation, of a counterexample, or a protocol in SPIN's language.

    ``x``, ``ctas``, ``strict``, ``launch``, ``set``, ``box`` and ``params`` as in :func:`pipesim.check`. ``to``:
    "perfetto", "html", "svg" or "promela". ``picture``: the "timeline" of a simulation with ``profile``, the
    "counterexample" of what is refuted (html, svg), or the "hang" of a deadlock (svg). Raises UsageError for what
    cannot be made.
    """
    given = KernelLaunch(launch, set, box)
    if to not in (*FORMATS, PROMELA):
        raise UsageError(f"nothing can be exported to {to!r}", correction=f"use {', '.join(FORMATS)} or {PROMELA}")
    require_drawn(picture, to)
    if picture != TIMELINE:
        target, whole, program = build_target(x, params, ctas, strictness_from(strict), launch=given)
        with lines_read_from(target.sources):
            return ExportResult(program.name, to, b"".join(counterexample_parts(target, whole, ctas, picture, to)))
    if to == PROMELA:
        program = build_target(x, params, ctas, launch=given)[2]
        return ExportResult(program.name, to, to_promela(program).encode())
    from pipesim.api.simulate import simulate
    from pipesim.timed.engine import DEFAULT_BUDGET

    run = simulate(
        x, profile, ctas=ctas, traced=False, max_steps=DEFAULT_BUDGET, launch=launch, set=set, box=box, **params
    )
    return ExportResult(run.program.name, to, run.export(to))


def counterexample_parts(
    target: Target, given: Mapping[str, int], ctas: int | None, picture: str, to: str
) -> Iterator[bytes]:
    """The file of a target's first counterexample. UsageError if there is none, or it is not a deadlock."""
    report = check(target, given, ctas=ctas)
    if not report.refutations:
        raise UsageError(
            f"there is no counterexample to draw: {in_one_line(report)}",
            correction=f"leave {picture} out: the simulation is drawn",
        )
    shown = report.refutations[0]
    if to == "html":
        program = target.with_settings(shown.settings).build({**given, **dict(shown.at)}, grid=ctas)
        return page_parts(counterexample_page(program, report, shown))
    if picture == HANG:
        if not isinstance(shown.finding, Deadlock):
            raise UsageError(
                "the counterexample is not a deadlock: no agent waits indefinitely",
                correction=f"draw the {COUNTEREXAMPLE}",
            )
        return iter([hang_svg(shown.finding).encode()])
    return iter([schedule_svg(shown).encode()])
