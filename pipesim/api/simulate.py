"""``pipesim.simulate``: one schedule, and its time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipesim.answers.run import run
from pipesim.answers.views.run import RunReport
from pipesim.api.call_arguments import (
    Given,
    GivenBoxes,
    GivenLaunch,
    GivenProfile,
    GivenWords,
    KernelLaunch,
    at_least_one,
    build_target,
    profile_from,
)
from pipesim.api.finding import ReportedFinding
from pipesim.api.result import VerdictResult
from pipesim.api.timelines import MOST_DRAWN, WIDTH, lines_of, scene_picture, timeline_parts, timeline_picture
from pipesim.errors import UsageError
from pipesim.formats.pictures import FORMATS
from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock, FaultReport
from pipesim.model.program import Program
from pipesim.report.pages.run import run_lines
from pipesim.report.text.words import count, printable
from pipesim.scene.parts import Scene
from pipesim.scene.runs import simulated_scene
from pipesim.timed.engine import DEFAULT_BUDGET
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Trace


@dataclass(frozen=True, repr=False, eq=False)
class SimulationResult(VerdictResult):
    """One simulated run of ``program`` on ``profile``. ``report`` is the whole answer as data."""

    program: Program
    profile: Profile
    report: RunReport
    traced: bool = False  #: with what recording each event costs on the GPU

    @property
    def outcome(self) -> Ending:
        """How the run ended."""
        return self.report.simulation.outcome

    @property
    def trace(self) -> Trace:
        """Its events."""
        return self.report.trace

    @property
    def cycles(self) -> int:
        """Its length: the cycle at which the last agent ended, or the last thing happened."""
        return self.report.cycles

    @property
    def steps(self) -> int:
        """Operations executed."""
        return self.report.steps

    @property
    def period_millicycles(self) -> int | None:
        """From one tile to the next in the middle of the run, in 1/1000 cycle; None where it never became steady."""
        return self.report.simulation.period_millicycles

    @property
    def deadlock(self) -> Deadlock | None:
        """Which agent waits for which at the end, None if no agent does."""
        return self.report.deadlock

    @property
    def faults(self) -> tuple[FaultReport, ...]:
        """The rules that were broken."""
        return self.report.faults

    @property
    def findings(self) -> tuple[ReportedFinding, ...]:
        """The deadlock, then the faults; :func:`pipesim.check` adds counterexamples."""
        with self._source_reader():
            return tuple(ReportedFinding(each) for each in self.report.findings)

    def _in_short(self) -> str:
        return f"{self.program.name} on {self.profile.name}: {self.outcome.value} after {count(self.cycles, 'cycle')}"

    def _lines(self, width: int) -> list[str]:
        return run_lines(self.report, width)

    def to_arrow(self) -> Any:
        """The events of the run."""
        return self.trace.to_arrow()

    def export(self, to: str) -> bytes:
        """The timeline as a file, as ``pipesim export`` writes it: ``to`` is "perfetto", "html" or "svg"."""
        if to not in FORMATS:
            raise UsageError(f"nothing can be exported to {to!r}", correction=f"use {' or '.join(FORMATS)}")
        drawn, _ = simulated_scene(
            self.program, self.profile, traced=self.traced, max_steps=self.report.simulation.budget
        )
        scene = Scene(printable(f"{self.program.name}: {drawn.label}"), (drawn,))
        with self._source_reader():
            report = lines_of(run_lines(self.report, WIDTH)) if to == "html" else []
        return b"".join(timeline_parts(scene, to, report))

    def pictures(self) -> Sequence[tuple[str, str]]:
        """The timeline with its copies and MMAs in flight, as ``pipesim export`` draws it."""
        if not len(self.trace.events):
            return ()
        if len(self.trace.events) > MOST_DRAWN:
            return (timeline_picture(self.trace, None, f"simulation ({self.profile.name})"),)
        steps = self.report.simulation.budget
        drawn, _ = simulated_scene(self.program, self.profile, traced=self.traced, max_steps=steps)  # with its landings
        return (scene_picture(self.trace.meta.protocol, drawn),)


def simulate(
    x: Given,
    profile: GivenProfile = "h100",
    *,
    ctas: int | None = None,
    traced: bool = False,
    max_steps: int = DEFAULT_BUDGET,
    launch: GivenLaunch = None,
    set: GivenWords = None,  # noqa: A002  # as the command's option
    box: GivenBoxes = None,
    **params: int,
) -> SimulationResult:
    """Simulate one schedule of a protocol: does it finish, how long does it take, and where does the time go?

    ``x``, ``ctas``, ``launch``, ``set``, ``box`` and ``params`` as in :func:`pipesim.check`. ``profile``: a
    built-in latency profile ("h100", "h200"), the path of a JSON file, or a ``Profile``. ``traced`` adds what
    recording each event costs on the GPU, to be compared with a traced kernel. ``max_steps``: operations after
    which the outcome is unknown. Raises UsageError.
    """
    steps = at_least_one("max_steps", max_steps)
    chosen = profile_from(profile)
    _, _, program = build_target(x, params, ctas, timed=True, launch=KernelLaunch(launch, set, box))
    report = run(program, chosen, traced=bool(traced), max_steps=steps)
    return SimulationResult(program, chosen, report, bool(traced))
