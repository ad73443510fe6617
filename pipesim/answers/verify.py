"""The main job: check a protocol for every schedule, simulate it, and compare it with the hardware."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from pipesim.answers.budget import SILENT, Budget, Progress, Stage
from pipesim.answers.checking import SteppedCheck
from pipesim.answers.compare import trace_comparison
from pipesim.answers.evidence import Capture, CollectedTraces, HardwareSource, collect
from pipesim.answers.failures import CheckQuestion
from pipesim.answers.run import run
from pipesim.answers.views.check import CheckReport
from pipesim.answers.views.conclusion import heading
from pipesim.answers.views.run import RunReport
from pipesim.answers.views.trace import TraceComparison, VerifyReport
from pipesim.errors import EvidenceError
from pipesim.model.program import Program
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.process.watch import current
from pipesim.targets import Target
from pipesim.timed.profile import DEFAULT, Profile, load_profile, profile_for

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
    with progress.stage(Stage.FLATTEN, target.name):
        program = target.build(params, grid=ctas)
    collected = collect(target, program, hardware, traces, capture, progress)
    if collected.missing is not None:
        progress.report_missing(collected.missing)  # now: the simulation may take long, and the report follows it
    asked = CheckQuestion(target, params, program, ctas, max_states, most_ranges=1)
    checking = SteppedCheck(asked, Budget(time_limit), progress)
    rest = _Rest()
    try:
        checking.verdict()
        checking.details()
        if checking.cut is None:
            rest.runs.extend(_simulations(program, collected, profile, progress))
            for found in _comparisons(program, collected, profile, tolerance, progress):
                rest.add(found)
    except LimitReachedError as reached:
        current().resume()
        rest.cut = reached.limit
    except KeyboardInterrupt:
        if not keeps_known or not checking.has_verdict:
            raise
        current().resume()
        checking.interrupt()
        rest.interrupted = True
    if collected.missing is None and rest.unusable is not None:
        progress.report_missing(rest.unusable)
    return _report(program, checking.report(), collected, rest, left_out=hardware is HardwareSource.LEFT_OUT)


class _Rest:
    """What is known beside the proof: simulations, comparisons, and what ended the work early.

    ``unusable``: why the first trace of those that could not be compared was not.
    """

    def __init__(self) -> None:
        self.runs: list[RunReport] = []
        self.compared: list[TraceComparison] = []
        self.unusable: EvidenceError | None = None
        self.cut: Limit | None = None
        self.interrupted = False

    def add(self, found: TraceComparison | EvidenceError) -> None:
        """One trace beside the program, or why it could not be compared."""
        if isinstance(found, EvidenceError):
            self.unusable = self.unusable or found
        else:
            self.compared.append(found)


def _report(
    program: Program, proof: CheckReport, collected: CollectedTraces, rest: _Rest, *, left_out: bool
) -> VerifyReport:
    """Everything as one answer; what several parts found is in it once."""
    wrong = [*proof.findings, *(finding for ran in rest.runs for finding in ran.findings)]
    return VerifyReport(
        heading=heading(program),
        proof=proof,
        simulations=tuple(ran.simulation for ran in rest.runs),
        hardware=tuple(rest.compared),
        missing=collected.missing or rest.unusable,
        cut=proof.cut or rest.cut,
        left_out=left_out,
        findings=tuple(dict.fromkeys(wrong)),
        advisories=tuple(dict.fromkeys(note for ran in rest.runs for note in ran.advisories)),
        interrupted=rest.interrupted,
    )


def _simulations(
    program: Program, collected: CollectedTraces, chosen: Profile | None, progress: Progress
) -> Iterator[RunReport]:
    """A run on every profile that matters: the one that was chosen, else that of each device."""
    near = [chosen] if chosen else [profile_for(trace.meta.device.name) for _, trace in collected.traces]
    for profile in {p.name: p for p in near or [load_profile(DEFAULT)]}.values():
        with progress.stage(Stage.SIMULATE, program.name, profile.name):
            ran = run(program, profile)
        yield ran


def _comparisons(
    program: Program, collected: CollectedTraces, profile: Profile | None, tolerance: float | None, progress: Progress
) -> Iterator[TraceComparison | EvidenceError]:
    """Every trace beside the program, or the error of one that cannot be compared."""
    for source, trace in collected.traces:
        found: TraceComparison | EvidenceError
        with progress.stage(Stage.COMPARE, source):
            try:
                found = trace_comparison(program, trace, source, profile, tolerance)
            except EvidenceError as error:
                found = error
        yield found
