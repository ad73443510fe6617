"""``pipesim.export``: a run, a counterexample or a protocol as a file for another program."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path

from pipesim.answers.check import check
from pipesim.api.call_arguments import (
    Given,
    GivenBoxes,
    GivenLaunch,
    GivenProfile,
    GivenWords,
    KernelLaunch,
    build_target,
)
from pipesim.api.counterexample_page import counterexample_page
from pipesim.api.simulate import simulate
from pipesim.errors import UsageError
from pipesim.formats.html.page import page_parts
from pipesim.formats.pictures import COUNTEREXAMPLE, FORMATS, HANG, TIMELINE, require_drawn
from pipesim.formats.promela import to_promela
from pipesim.model.coverage import strictness_from
from pipesim.model.finding import Deadlock
from pipesim.ptx.source_files import lines_read_from
from pipesim.report.findings.brief import in_one_line
from pipesim.report.pictures.hang_svg import hang_svg
from pipesim.report.pictures.schedule_svg import schedule_svg
from pipesim.targets import Target
from pipesim.timed.engine import DEFAULT_BUDGET
from pipesim.trace.whole import write_whole

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
        for name, value in shown.settings.items():
            target = target.with_setting(name, value)
        program = target.build({**given, **dict(shown.at)}, grid=ctas)
        return page_parts(counterexample_page(program, report, shown))
    if picture == HANG:
        if not isinstance(shown.finding, Deadlock):
            raise UsageError(
                "the counterexample is not a deadlock: no agent waits indefinitely",
                correction=f"draw the {COUNTEREXAMPLE}",
            )
        return iter([hang_svg(shown.finding).encode()])
    return iter([schedule_svg(shown).encode()])
