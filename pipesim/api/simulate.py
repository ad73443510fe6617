"""``pipesim.simulate``: one schedule, and its time. ``pipesim.verify``: every schedule, it, and the hardware."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

from pipesim.answers.evidence import HardwareSource
from pipesim.answers.run import run
from pipesim.answers.verify import MOST_STATES
from pipesim.answers.verify import verify as verify_answer
from pipesim.answers.views.run import RunReport
from pipesim.answers.views.trace import TraceComparison, VerifyReport
from pipesim.api.call_arguments import (
    Given,
    GivenBoxes,
    GivenLaunch,
    GivenProfile,
    GivenWords,
    KernelLaunch,
    above_zero,
    at_least_one,
    build_target,
    profile_from,
)
from pipesim.api.compare import comparison_pictures, percentage
from pipesim.api.finding import CheckFinding, ReportedFinding, check_findings
from pipesim.api.result import VerdictResult, diagram_picture
from pipesim.api.timelines import MOST_DRAWN, WIDTH, lines_of, scene_picture, timeline_parts, timeline_picture
from pipesim.errors import EvidenceError, UsageError
from pipesim.formats.pictures import FORMATS
from pipesim.model.coverage import strictness_from
from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock, FaultReport, Verdict
from pipesim.model.program import Program
from pipesim.report.pages.protocols.run import run_lines
from pipesim.report.pages.protocols.verify import verify_lines
from pipesim.report.text.words import count, printable
from pipesim.scene.parts import Scene
from pipesim.scene.runs import simulated_scene
from pipesim.timed.engine import DEFAULT_BUDGET
from pipesim.timed.profile import Profile, profile_for
from pipesim.trace.schema import Rows, Trace


@dataclass(frozen=True, repr=False, eq=False)
class VerifyResult(VerdictResult):
    """A protocol checked, simulated and compared with recorded traces. ``report`` is the whole answer as data.

    ``profile``: the one that was asked for, None: those of the traces' devices.
    """

    program: Program
    report: VerifyReport
    profile: Profile | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict on every schedule, whatever the traces say."""
        return self.report.proof.verdict

    @property
    def findings(self) -> tuple[ReportedFinding, ...]:
        """What is wrong: in some schedule, with its counterexample, then in the simulation."""
        known = self.report.proof.findings
        with self._source_reader():
            checked: tuple[CheckFinding, ...] = check_findings(self.report.proof.refutations)
            return (*checked, *(ReportedFinding(each) for each in self.report.findings if each not in known))

    @property
    def hardware(self) -> tuple[TraceComparison, ...]:
        """Each recorded trace, compared."""
        return self.report.hardware

    @property
    def missing(self) -> EvidenceError | None:
        """Why there is no (more) evidence of the hardware, None if there is or none was asked for."""
        return self.report.missing

    def _in_short(self) -> str:
        devices = ", ".join(f"behaviour {each.behaviour.value} ({each.device})" for each in self.hardware)
        if not devices and self.missing is not None:
            devices = "nothing to compare with"
        return f"{self.program.name}: {self.verdict.value}{f'; {devices}' if devices else ''}"

    def _lines(self, width: int) -> list[str]:
        return verify_lines(self.report, width)

    def _rows(self) -> Rows:
        columns = {"device": str, "source": str, "behaviour": str, "events": int, "figure": str}
        columns |= {"simulated_millicycles": int, "measured_millicycles": int}
        return columns, [
            {
                "device": each.device,
                "source": each.source,
                "behaviour": each.behaviour.value,
                "events": len(each.measured.events),
                "figure": each.time.figure,
                "simulated_millicycles": each.time.simulated,
                "measured_millicycles": each.time.measured,
            }
            for each in self.hardware
        ]

    def pictures(self) -> Sequence[tuple[str, str]]:
        """The counterexamples, and the first trace below its simulation; where there is neither the simulated run.

        The diagram where nothing was simulated either.
        """
        shown = [picture for each in self.findings for picture in each.pictures()]
        for each in self.hardware[:1]:
            shown += comparison_pictures(self.program, each, self.profile)
        return shown or (self._simulation_page(),)

    def _simulation_page(self) -> tuple[str, str]:
        """The first simulated run, as :func:`pipesim.simulate` draws it."""
        for line in self.report.simulations[:1]:
            profile = self.profile or profile_for(line.device)
            drawn, trace = simulated_scene(self.program, profile, max_steps=line.budget)
            if 0 < len(trace.events) <= MOST_DRAWN:
                return scene_picture(self.program.name, drawn)
        return diagram_picture(self.program)


def verify(
    x: Given,
    *,
    profile: GivenProfile | None = None,
    traces: str | PathLike[str] | None = None,
    hardware: bool | str = True,
    tolerance: float | None = None,
    ctas: int | None = None,
    max_states: int = MOST_STATES,
    time_limit: float | None = None,
    strict: bool | Collection[str] = (),
    launch: GivenLaunch = None,
    set: GivenWords = None,  # noqa: A002  # as the command's option
    box: GivenBoxes = None,
    **params: int,
) -> VerifyResult:
    """Check a protocol in every schedule, simulate it, and compare it with traces recorded on hardware.

    ``x``, ``ctas``, the launch, ``time_limit``, ``params`` and the strict rules as in :func:`pipesim.check`.
    ``profile``: one latency profile for all simulations, that of each device if None. ``traces``: a folder of
    recorded traces, those that came with pipesim if None. ``hardware``: True records a fresh trace if this machine
    has a GPU and pipesim a kernel of the protocol, else it takes the recorded ones; "recorded" never records; False
    leaves the hardware out. ``tolerance``: percent of the measured period. Missing evidence is part of the result.
    Raises UsageError.
    """
    source, within = _source(hardware), percentage(tolerance)
    folder = _folder(traces)
    if source is HardwareSource.LEFT_OUT and (folder is not None or within is not None):
        given = "traces" if folder is not None else "tolerance"
        raise UsageError(
            f"{given} asks for a comparison with the hardware, hardware=False leaves it out", correction="give only one"
        )
    most = at_least_one("max_states", max_states)
    chosen = None if profile is None else profile_from(profile)
    target, whole, program = build_target(
        x, params, ctas, strictness_from(strict), launch=KernelLaunch(launch, set, box)
    )
    report = verify_answer(
        target,
        whole,
        profile=chosen,
        traces=folder,
        hardware=source,
        tolerance=within,
        ctas=ctas,
        max_states=most,
        time_limit=above_zero("time_limit", time_limit),
    )
    return VerifyResult(program, report, chosen)


def _source(hardware: object) -> HardwareSource:
    match hardware:
        case True:
            return HardwareSource.GPU_OR_RECORDED
        case False:
            return HardwareSource.LEFT_OUT
        case "recorded":
            return HardwareSource.RECORDED
        case _:
            raise UsageError(f"hardware is {hardware!r}", correction='give True, False or "recorded"')


def _folder(traces: object) -> Path | None:
    if traces is None:
        return None
    if not isinstance(traces, str | PathLike):
        raise UsageError(f"traces is {traces!r}", correction="give the path of a folder with recorded traces")
    if not Path(traces).is_dir():
        raise UsageError(f"there is no folder {traces}", correction="check the path of traces")
    return Path(traces)


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
