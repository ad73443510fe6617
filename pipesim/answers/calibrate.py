"""A latency profile from recordings: which of them are read, the fit, and the captures that would make it better."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pipesim.answers.calibrate_inputs import Inputs, RecordedFile, Tell, observations_of
from pipesim.answers.evidence import capture_trace
from pipesim.answers.spread import begin_process, children_started, processes, processors, spread
from pipesim.answers.views.calibrate import CalibrationReport, ResidualRow
from pipesim.conform.fit.least_squares import require_scipy
from pipesim.conform.fit.observation import RunObservation, Vector
from pipesim.conform.fit.problem import FitProblem
from pipesim.conform.fit.propose import CandidateQuestion, information_of, one_by_one, propose
from pipesim.conform.fit.solve import ProfileFit, SoFar, fit_profile, fit_so_far
from pipesim.conform.fit.values import CalibratedValue, ValueState
from pipesim.conform.quantities import QuantityKind
from pipesim.errors import ConfigurationError, ParameterError, UsageError
from pipesim.model.program import Program
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.process.watch import current
from pipesim.targets import find
from pipesim.timed.profile import Profile, profile_for
from pipesim.trace.arrays import np
from pipesim.trace.files import write_trace

_WORTH_PROCESSES = 200  #: simulations asked for together that take longer than starting processes
_TOGETHER = 4  #: simulations that a process is sent

_Asked = tuple[int, dict[str, int]]  #: an observation, and the values of a profile


class FitWorkers(ExitStack):
    """A context manager that simulates observations under profiles; the order of what it returns is that asked for.

    Processes are started as soon as they are worth it. They have the memory limit of this one and end with the block.
    """

    def __init__(self, observations: Sequence[RunObservation], base: Profile) -> None:
        super().__init__()
        self._problem = tuple(observations), base
        self._jobs = processors()
        self._pool: ProcessPoolExecutor | None = None

    def __call__(self, asked: Sequence[tuple[int, Profile]]) -> list[Vector]:
        """The deviations of each observation under its profile."""
        if self._jobs > 1 and (self._pool is not None or len(asked) >= _WORTH_PROCESSES):
            try:
                self._pool = self._pool or self.enter_context(processes(self._jobs, _begin, self._problem))
                return self._by_processes(self._pool, asked)
            except BrokenProcessPool:  # one died, as of too little memory: here that is an error that says so
                self.close()
                self._jobs = 1
        return [self._problem[0][number].deviations(profile) for number, profile in asked]

    def _by_processes(self, pool: ProcessPoolExecutor, asked: Sequence[tuple[int, Profile]]) -> list[Vector]:
        parts = [[(n, each.values) for n, each in asked[at : at + _TOGETHER]] for at in range(0, len(asked), _TOGETHER)]
        with children_started():
            waiting = [pool.submit(_deviations, part) for part in parts]
        return [vector for future in waiting for vector in future.result()]


_held: list[tuple[Sequence[RunObservation], Profile]] = []  #: of a process that was started


def _begin(parent: int, most_bytes: int | None, observations: Sequence[RunObservation], base: Profile) -> None:
    begin_process(parent, most_bytes)
    _held.append((observations, base))


def _deviations(asked: Sequence[_Asked]) -> list[Vector]:
    observations, base = _held[-1]
    return [observations[n].deviations(replace(base, values=values)) for n, values in asked]


_LARGER = (1, 2, 4)  #: what a parameter of a candidate is multiplied with, or divided by
_FULL = 132  #: CTAs of a launch on every SM
_MOST_OPERATIONS = 1_200  #: of a candidate's program: it is simulated many times
_SAME_AS = {"shared_bytes": "own_bytes"}
_FEW = 8  #: candidates that are not worth processes
#: Rings of copies: stages, bytes of a tile, consumer warps, cycles of work, CTAs (0: one on every SM). Small and large
#: tiles part latency from rate; one stage shows the whole round trip, several the copy engine; work hides the loads.
RINGS: tuple[tuple[int, int, int, int, int], ...] = (
    (1, 1024, 1, 0, 1), (1, 5120, 1, 0, 1), (1, 16384, 1, 0, 1), (2, 3072, 1, 150, 1), (2, 12288, 2, 300, 1),
    (4, 2048, 1, 0, 1), (4, 32768, 1, 0, 1), (4, 8192, 1, 1000, 1), (4, 16384, 4, 0, 1), (6, 4096, 2, 200, 1),
    (1, 4096, 1, 0, 0), (4, 16384, 2, 0, 0),
)  # fmt: skip
_TILES = 48


@dataclass(frozen=True)
class Calibration:
    """A report, and the profile with how each value was obtained."""

    report: CalibrationReport
    profile: Profile
    how: Mapping[str, str]


def calibrate(
    inputs: Inputs,
    base: Profile,
    name: str,
    only: frozenset[str] = frozenset(),
    tell: Tell = lambda _: None,
    known: Mapping[str, int] | None = None,
) -> tuple[Calibration, FitProblem]:
    """Fit a profile called ``name`` to recordings of one device. ``only``: these values alone. ``known``: values of the
    base that were measured otherwise, which are not fitted.

    EvidenceError if the recordings are of several devices; ParameterError for a value that no profile has;
    MissingExtraError without SciPy.
    """
    require_scipy()
    observations = observations_of(inputs, base, tell)
    device = observations[0].trace.meta.device
    base = replace(base, device=device.name, sms=device.sms or base.sms)
    known = known or {}
    base = replace(base, values={**base.values, **known})
    problem = FitProblem(observations, base, only, frozenset(known))
    _require_known(only, problem, base)
    fit, ended = _fit(problem, tell)
    values = fit.values + tuple(
        CalibratedValue(
            unused, base[unused], base[unused], None, ValueState.MEASURED if unused in known else ValueState.ASSUMED
        )
        for unused in base.values
        if unused not in problem.start
    )
    how = {each.name: each.state.value for each in values}
    profile = replace(
        fit.profile,
        name=name,
        fitted=f"by pipesim calibrate, from {len(observations)} recordings, on top of {base.name}",
        values=_values_to_write(values, base),
        errors=(),
    )
    order = tuple(sorted(values, key=lambda each: (each.state is ValueState.ASSUMED, each.name)))
    report = CalibrationReport(
        name, device.name, base.name, tuple(each.label for each in observations), inputs.left_out, order,
        tuple(residual_rows(observations, fit.before, fit.after)), repeated=inputs.repeated,
        not_chosen=len(inputs.files) - len(observations), ended=ended,
    )  # fmt: skip
    return Calibration(report, profile, how), problem


def _fit(problem: FitProblem, tell: Tell) -> tuple[ProfileFit, str]:
    """The fit, and what ended it before it was done ("" if nothing did); LimitReachedError if nothing is known yet."""
    so_far = SoFar()
    try:
        with FitWorkers(problem.observations, problem.base) as workers, problem.evaluated_by(workers):
            return fit_profile(problem, tell, so_far), ""
    except LimitReachedError as reached:
        if reached.limit is not Limit.TIME or not so_far.names:
            raise
        current().resume()
        return fit_so_far(problem, so_far), reached.in_words()


def with_proposals(
    calibration: Calibration, problem: FitProblem, tell: Callable[[int, int], None]
) -> CalibrationReport:
    """The report with the captures of pipesim's kernels that would determine what is only assumed, or with the limit
    that was reached before they were known.
    """
    if calibration.report.ended:
        return replace(calibration.report, no_proposals=calibration.report.ended)
    wanted = [each.name for each in calibration.report.values if each.state is ValueState.ASSUMED]
    try:
        with FitWorkers(problem.observations, problem.base) as workers, problem.evaluated_by(workers):
            chosen, never = propose(
                problem, wanted, list(candidates()), calibration.profile, tell, information_in_parallel
            )
    except LimitReachedError as reached:
        if reached.limit is not Limit.TIME:
            raise
        current().resume()
        return replace(calibration.report, no_proposals=reached.in_words())
    return replace(calibration.report, proposals=chosen, never=never)


def _require_known(only: frozenset[str], problem: FitProblem, base: Profile) -> None:
    for name in sorted(only - problem.start.keys()):
        raise ParameterError(
            f"no recording depends on {name}" if name in base.values else f"a profile has no value {name}",
            correction=f"values that they depend on: {', '.join(FitProblem(problem.observations, base).start)}",
        )


def _values_to_write(values: Sequence[CalibratedValue], base: Profile) -> dict[str, int]:
    """The values of the new profile: those of the base, and of a named work that it lacks both constants if one of
    them is fitted.
    """
    works = {each.name.rpartition(".")[0] for each in values if each.state is ValueState.FITTED}
    return {
        each.name: each.value for each in values if each.name in base.values or each.name.rpartition(".")[0] in works
    }


def residual_rows(
    observations: Sequence[RunObservation], before: Iterable[Vector], after: Iterable[Vector]
) -> Iterator[ResidualRow]:
    """The errors of each kind of quantity; ``before`` and ``after`` are the deviations of each observation."""
    offs = list(before), list(after)
    for kind in QuantityKind:
        first, last = (_relative(observations, off, kind) for off in offs)
        if first:
            yield ResidualRow(kind.value, len(first), *_summary(first), *_summary(last))


def _relative(observations: Sequence[RunObservation], each: Iterable[Vector], kind: QuantityKind) -> list[float]:
    return [
        abs(observation.relative(name, float(deviation)))
        for observation, deviations in zip(observations, each, strict=True)
        for name, deviation in zip(observation.names, deviations, strict=True)
        if name.kind is kind
    ]


def _summary(sizes: Sequence[float]) -> tuple[int, int]:
    return round(1000 * float(np.median(sizes))), round(1000 * max(sizes))


# the GPU of this machine


def calibrate_device(base: Profile | None, name: str) -> Calibration:
    """Measure and fit a profile called ``name``, on top of that of the device if no other one is given.

    HardwareError without a GPU that runs the kernels.
    """
    from hwkernels.device.launch import require_gpu
    from hwkernels.microbench.run import measure_device

    require_scipy()
    info = require_gpu()
    base = base or profile_for(info.name)
    known = {value: cycles for value, cycles in measure_device(info).items() if value in base.values}
    base = replace(base, device=info.name, sms=info.sms)
    with TemporaryDirectory(prefix="pipesim-") as folder:
        files = tuple(_captured_rings(Path(folder), info.sms))
        found, _ = calibrate(Inputs(files, 0), base, name, known=known)
    return found


def _captured_rings(folder: Path, sms: int) -> Iterator[RecordedFile]:
    """The rings, captured into the folder."""
    from hwkernels.capture import CaptureRequest, TwinSubject

    for number, (stages, nbytes, warps, work, ctas) in enumerate(RINGS, start=1):
        params = {
            "stages": stages, "tiles": _TILES, "tile_bytes": nbytes, "consumer_warps": warps, "work": work,
            "arrive_lanes": 1,
        }  # fmt: skip
        trace = capture_trace(CaptureRequest(TwinSubject("producer_consumer", ctas or sms), params, record_ctas=1))
        path = folder / f"ring-{number}.parquet"
        write_trace(trace, path)
        label = f"captured ring {stages} x {nbytes}, {warps} warps, work {work}, {ctas or sms} CTAs"
        yield RecordedFile(label, path, trace.meta)


# captures that can be made, and what they would say


def information_in_parallel(
    questions: Sequence[CandidateQuestion], tell: Callable[[int, int], None]
) -> list[Vector | None]:
    """What each candidate's capture would say, computed on all processors."""
    if len(questions) <= _FEW:
        return one_by_one(questions, tell)
    done = [0]

    def on_done(_: int) -> None:
        done[0] += 1
        tell(done[0], len(questions))

    return spread(questions, information_of, _no_information, on_done, processors())


def _no_information(_asked: CandidateQuestion, _error: BaseException) -> None:
    """For a candidate whose process died, as from too little memory: it is not proposed."""


def candidates() -> Iterator[tuple[str, Program]]:
    """Captures that can be made: of each kernel the defaults, each parameter smaller and larger, and a CTA an SM."""
    from hwkernels.twins import REGISTRY, find_twin

    for name in REGISTRY:
        defaults, twin = dict(find(name).defaults), find_twin(name)
        seen = set()
        for params, ctas in _variations(defaults):
            params |= {mine: params[other] for mine, other in _SAME_AS.items() if mine in params}
            key = tuple(params.items()), ctas
            if key in seen:
                continue
            seen.add(key)
            try:
                twin.check(params, max(1, ctas // max(params.get("cluster", 1), 1)))
                program = find(name).build(params, grid=ctas)
            except (ParameterError, ConfigurationError, UsageError):
                continue
            if sum(map(len, program.code)) <= _MOST_OPERATIONS:
                yield _command(name, defaults, params, ctas), program


def _variations(defaults: Mapping[str, int]) -> Iterator[tuple[dict[str, int], int]]:
    ctas = defaults.get("cluster", 1)
    yield dict(defaults), ctas
    yield dict(defaults), _FULL // ctas * ctas
    for name, value in defaults.items():
        for factor in _LARGER:
            for other in ({value * factor, value // factor} if value > 1 else {0, 1, 2}) - {value}:
                yield dict(defaults) | {name: other}, max(other, 1) if name == "cluster" else ctas


def _command(name: str, defaults: Mapping[str, int], params: Mapping[str, int], ctas: int) -> str:
    words = ["pipesim", "capture", name]
    words += [word for key, value in params.items() if defaults[key] != value for word in ("-p", f"{key}={value}")]
    return " ".join([*words, *(["--ctas", str(ctas)] if ctas != defaults.get("cluster", 1) else [])])
