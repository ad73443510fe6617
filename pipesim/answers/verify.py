"""The main job: check a protocol for every schedule, simulate it, and compare it with the hardware."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pipesim.answers.budget import budget_of
from pipesim.answers.checking import Asked, Checking
from pipesim.answers.compare import trace_comparison
from pipesim.answers.evidence import Capture, CollectedTraces, HardwareSource, collect
from pipesim.answers.progress import SILENT, Progress, Stage
from pipesim.answers.run import run
from pipesim.answers.views.heading import heading
from pipesim.answers.views.run import RunReport
from pipesim.answers.views.trace import TraceComparison
from pipesim.answers.views.verify import VerifyReport
from pipesim.errors import EvidenceError
from pipesim.model.program import Program
from pipesim.process.limits import LimitReachedError
from pipesim.process.watch import current
from pipesim.targets import Target
from pipesim.timed.choice import DEFAULT, profile_for
from pipesim.timed.profile import Profile, load_profile

MOST_STATES = 50_000  #: searched where one run does not decide; `pipesim check --max-states` searches more


def verify(
    target: Target,
    params: Mapping[str, int],
    *,
    profile: Profile | None = None,
    traces: Path | None = None,
    hardware: HardwareSource = HardwareSource.GPU_OR_RECORDED,
    tolerance: float | None = None,
    ctas: int | None = None,
    capture: Capture | None = None,
    max_states: int = MOST_STATES,
    time_limit: float | None = None,
    keeps_known: bool = False,
    progress: Progress = SILENT,
) -> VerifyReport:
    """The verdict on a protocol, its simulation, and every trace that there is of it.

    ``profile``: for all simulations (default: the one of each device that was recorded). ``traces``: a folder of
    recorded traces to use. ``tolerance``: of the simulated period, in percent of the measured one. ``ctas``: of the
    launch. ``capture``: what records a fresh trace where there is a GPU (default: the kernel of pipesim).
    ``time_limit``: seconds of each step of the check after its verdict (default: the usual one). ``keeps_known``: a
    KeyboardInterrupt after the verdict ends the work, and the answer has what is known; else it is raised. Missing
    evidence is part of the answer. Raises as ``Target.build`` does.
    """
    with progress.doing(Stage.FLATTEN, target.name):
        program = target.build(params, grid=ctas)
    collected = collect(target, program, hardware, traces, capture, progress)
    if collected.missing is not None:
        progress.missing(collected.missing)  # now: the simulation may take long, and its report follows all the same
    asked = Asked(target, params, program, ctas, max_states, most_ranges=1)
    checking = Checking(asked, budget_of(time_limit), progress)
    runs: list[RunReport] = []
    compared: list[TraceComparison] = []
    unusable, interrupted, cut = None, False, None
    try:
        checking.verdict()
        checking.details()
        if not checking.is_cut:
            runs.extend(_simulated(program, collected, profile, progress))
            for found in _compared(program, collected, profile, tolerance, progress):
                if isinstance(found, EvidenceError):
                    unusable = unusable or found
                else:
                    compared.append(found)
    except LimitReachedError as reached:
        current().resume()
        cut = reached.limit
    except KeyboardInterrupt:
        if not keeps_known or not checking.has_verdict:
            raise
        current().resume()
        checking.interrupted()
        interrupted = True
    if collected.missing is None and unusable is not None:
        progress.missing(unusable)
    proof = checking.report()
    wrong = [*proof.findings, *(finding for ran in runs for finding in ran.findings)]
    return VerifyReport(
        heading=heading(program),
        proof=proof,
        simulations=tuple(ran.simulation for ran in runs),
        hardware=tuple(compared),
        missing=collected.missing or unusable,
        cut=proof.cut or cut,
        left_out=hardware is HardwareSource.LEFT_OUT,
        findings=tuple(dict.fromkeys(wrong)),
        advisories=tuple(dict.fromkeys(note for ran in runs for note in ran.advisories)),
        interrupted=interrupted,
    )


def _simulated(
    program: Program, collected: CollectedTraces, chosen: Profile | None, progress: Progress
) -> Iterator[RunReport]:
    """A run on every profile that matters: the one that was chosen, else that of each device."""
    near = [chosen] if chosen else [profile_for(trace.meta.device.name) for _, trace in collected.traces]
    for profile in {p.name: p for p in near or [load_profile(DEFAULT)]}.values():
        with progress.doing(Stage.SIMULATE, program.name, profile.name):
            ran = run(program, profile)
        yield ran


def _compared(
    program: Program, collected: CollectedTraces, profile: Profile | None, tolerance: float | None, progress: Progress
) -> Iterator[TraceComparison | EvidenceError]:
    """Every trace beside the program, or the error of one that cannot be compared."""
    for source, trace in collected.traces:
        found: TraceComparison | EvidenceError
        with progress.doing(Stage.COMPARE, source):
            try:
                found = trace_comparison(program, trace, source, profile, tolerance)
            except EvidenceError as error:
                found = error
        yield found
