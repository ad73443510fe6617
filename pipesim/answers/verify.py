"""The main job: check a protocol for every schedule, simulate it, and compare it with the hardware."""

import sys
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import BrokenExecutor
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import ClassVar

from pipesim.answers.budget import Budget
from pipesim.answers.check import check
from pipesim.answers.checking.failures import CheckQuestion
from pipesim.answers.checking.stepped import SteppedCheck
from pipesim.answers.compare import trace_comparison
from pipesim.answers.evidence import Capture, CollectedTraces, HardwareSource, collect
from pipesim.answers.progress import SILENT, Progress, Stage
from pipesim.answers.recorded_program import recorded_program
from pipesim.answers.run import run
from pipesim.answers.views.check import CheckReport
from pipesim.answers.views.conclusion import heading
from pipesim.answers.views.run import RunReport, SimulationLine
from pipesim.answers.views.summary import Failure, TraceLine
from pipesim.answers.views.trace import TraceComparison, VerifyReport
from pipesim.conform.agreement import Agreement, agreement_of
from pipesim.conform.compare import times_of
from pipesim.errors import EvidenceError, InternalError, PipesimError, internal_error
from pipesim.model.coverage import LENIENT, Strictness, switches
from pipesim.model.finding import Advisory, Finding
from pipesim.model.program import Program
from pipesim.process.limits import Limit, LimitReachedError, limit_error
from pipesim.process.watch import current
from pipesim.protocol_process import find
from pipesim.targets import Target
from pipesim.timed.profile import DEFAULT, Profile, load_profile, profile_for
from pipesim.trace.files import read_meta, read_trace
from pipesim.trace.library import device_slug

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
    runs, compared, unusable = list[RunReport](), list[TraceComparison](), list[EvidenceError]()
    cut, interrupted = None, False
    try:
        checking.verdict()
        checking.details()
        if checking.cut is None:
            runs.extend(_simulations(program, collected, profile, progress))
            for found in _comparisons(program, collected, profile, tolerance, progress):
                if isinstance(found, EvidenceError):
                    unusable.append(found)
                else:
                    compared.append(found)
    except LimitReachedError as reached:
        current().resume()
        cut = reached.limit
    except KeyboardInterrupt:
        if not keeps_known or not checking.has_verdict:
            raise
        current().resume()
        checking.interrupt()
        interrupted = True
    if collected.missing is None and unusable:
        progress.report_missing(unusable[0])
    proof = checking.report()
    wrong = [*proof.findings, *(finding for ran in runs for finding in ran.findings)]
    return VerifyReport(
        heading=heading(program),
        proof=proof,
        simulations=tuple(ran.simulation for ran in runs),
        hardware=tuple(compared),
        missing=collected.missing or next(iter(unusable), None),
        cut=proof.cut or cut,
        left_out=hardware is HardwareSource.LEFT_OUT,
        findings=tuple(dict.fromkeys(wrong)),
        advisories=tuple(dict.fromkeys(note for ran in runs for note in ran.advisories)),
        interrupted=interrupted,
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


@dataclass(frozen=True)
class Subject:
    """A protocol as a command line names it, with what it was given there."""

    name: str
    params: tuple[tuple[str, int], ...] = ()
    ctas: int | None = None
    strictness: Strictness = LENIENT

    def target(self) -> Target:
        """The protocol of this name. Raises as :func:`find` does."""
        return _target(self.name).with_strictness(self.strictness)

    def program(self) -> Program:
        """Its program with what was given. Raises as ``Target.build`` does."""
        return _program(self.name, self.params, self.ctas).with_strictness(self.strictness)

    def arguments(self) -> tuple[str, ...]:
        """How a command line says it."""
        words = [word for name, value in self.params for word in ("-p", f"{name}={value}")]
        words += ["--ctas", str(self.ctas)] if self.ctas is not None else []
        return (self.name, *words, *switches(self.strictness))


@dataclass(frozen=True)
class ProofPart:
    """To be checked for every schedule; ``time_limit``: seconds of each step after the verdict, None the usual ones."""

    subject: Subject
    time_limit: float | None = None
    stage: ClassVar = (Stage.CHECK, "")  #: what it does, and with which file ("": none)

    def compute(self) -> CheckReport:
        """Its result."""
        return check(
            self.subject.target(),
            dict(self.subject.params),
            max_states=MOST_STATES,
            ctas=self.subject.ctas,
            program=self.subject.program(),
            budget=Budget(self.time_limit),
        )


@dataclass(frozen=True)
class SimulationPart:
    """To be simulated on this profile (its name, or a file)."""

    subject: Subject
    profile: str
    stage: ClassVar = (Stage.SIMULATE, "")

    def compute(self) -> "SimulatedPart":
        """Its result."""
        ran = run(self.subject.program(), load_profile(self.profile))
        return SimulatedPart(ran.simulation, ran.cycles, ran.findings, ran.advisories)


@dataclass(frozen=True)
class TracesPart:
    """Traces of one configuration, files below ``folder``, to be compared with the program of that configuration."""

    subject: Subject
    folder: Path
    paths: tuple[Path, ...]

    @property
    def stage(self) -> tuple[Stage, str]:
        """What it does, and with which file."""
        return Stage.COMPARE, self.paths[0].name

    def compute(self) -> tuple[TraceLine, ...]:
        """Its results."""
        program = cache(lambda: _recorded_program(self))  # made once, and only where a trace can be read
        return tuple(_line(self, path, program) for path in self.paths)


Part = ProofPart | SimulationPart | TracesPart


@dataclass(frozen=True)
class SimulatedPart:
    """The result of one simulation, without its events; ``cycles`` from its first operation to its last."""

    line: SimulationLine
    cycles: int
    findings: tuple[Finding, ...]
    advisories: tuple[Advisory, ...]


Result = CheckReport | SimulatedPart | tuple[TraceLine, ...] | Failure


def carry_out(part: Part, seconds: float | None = None) -> Result:
    """Do one part. What is raised becomes a Failure, so that nothing is lost of the other parts; a limit as well.

    ``seconds``: what it may take. What a protocol prints goes to standard error, in another process as well.
    """
    watch = current()
    try:
        with redirect_stdout(sys.stderr):
            watch.start(seconds)
            result = part.compute()
            watch.stop()
            return result
    except (LimitReachedError, MemoryError) as error:
        watch.resume()
        reached = LimitReachedError(Limit.MEMORY, watch.most_bytes or 0) if isinstance(error, MemoryError) else error
        return failure(*part.stage, reached)
    except Exception as error:  # noqa: BLE001  # whatever it is, it is reported with its protocol; the others continue
        return failure(*part.stage, error)


def failure(stage: Stage, name: str, error: BaseException) -> Failure:
    """An exception as data, by its fact and place: a PipesimError, a limit, an end of the process, or a mistake in
    pipesim.
    """
    if isinstance(error, KeyboardInterrupt):
        return Failure(stage, name, "interrupted", interrupted=True)
    if isinstance(error, MemoryError):
        return Failure(stage, name, "there is not enough memory")
    if isinstance(error, BrokenExecutor):
        return Failure(stage, name, "its process ended before it had an answer")
    error = limit_error(error) if isinstance(error, LimitReachedError) else error
    said = error if isinstance(error, PipesimError) else internal_error(error)
    return Failure(stage, name, said.fact, said.place, internal=isinstance(said, InternalError))


@lru_cache(maxsize=64)
def _target(name: str) -> Target:
    with redirect_stdout(sys.stderr):
        return find(name)  # a user's file is run once in a process


@lru_cache(maxsize=4)
def _program(name: str, params: tuple[tuple[str, int], ...], grid: int | None) -> Program:
    with redirect_stdout(sys.stderr):
        return _target(name).build(dict(params), grid=grid)


def _line(part: TracesPart, path: Path, program: Callable[[], Program]) -> TraceLine:
    """One trace beside the program of its parameters; of evidence that cannot be used the line says why."""
    source = path.relative_to(part.folder).as_posix()
    device = device_slug(path.parent.name)
    try:
        trace = read_trace(path)
        device = device_slug(trace.meta.device.name)
        found = agreement_of(program(), trace)
    except EvidenceError as error:
        return TraceLine(source, str(path), device, Agreement.UNKNOWN, 0, unusable=error.fact)
    first = found.conformance.divergence
    claim = first.claim if first is not None and found.reason is not None else ""
    time = times_of(program(), trace)
    return TraceLine(source, str(path), device, found.agreement, len(trace.events), found.reason, claim, time=time)


def _recorded_program(part: TracesPart) -> Program:
    """The program of the configuration that all traces of a part have. EvidenceError if there is none."""
    try:
        return recorded_program(read_meta(part.paths[0]), part.subject.target())
    except EvidenceError:
        raise
    except PipesimError as error:
        raise EvidenceError(f"the protocol rejects its parameters: {error.fact}") from error


def same_values(recorded: Mapping[str, int], asked: tuple[tuple[str, int], ...]) -> bool:
    """True if a recording has every value that was asked for, whatever its other parameters are."""
    return all(recorded.get(name) == value for name, value in asked)
