"""Which captures would determine the values that the recordings do not: chosen one by one from candidates.

A candidate is simulated with each value a little higher and lower; what its times would say about the values is added
to what the recordings say. The candidate is taken that makes most values determined, and among these the one that
narrows their intervals most; until no candidate helps.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from pipesim.conform.fit.observation import Vector, is_wide, observe
from pipesim.conform.fit.problem import COARSE, FitProblem
from pipesim.conform.fit.values import Proposal
from pipesim.conform.steady import read
from pipesim.model.program import Program
from pipesim.model.steady import waits_per_trip
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile
from pipesim.trace.arrays import np
from pipesim.trace.schema import Run, Trace

_MOST = 8  #: captures that are proposed
_GAIN = 0.3  #: by how much the logarithms of the widths together must fall for one more capture
_LOOSE = 100.0  #: how wide a value is taken to be that nothing is known about, in units of itself


@dataclass(frozen=True)
class CandidateQuestion:
    """What a candidate is asked: what its times under ``profile`` would say about values ``names``."""

    label: str
    program: Program
    names: tuple[str, ...]
    profile: Profile


#: Answers of :func:`information_of`; the function is called with how many questions are answered, and of how many.
Inform = Callable[[Sequence[CandidateQuestion], Callable[[int, int], None]], Sequence[Vector | None]]


def information_of(asked: CandidateQuestion) -> Vector | None:
    """What a capture of a candidate would say about the values, each in units of itself; None if nothing."""
    observation = observe(asked.label, asked.program, expected_trace(asked.program, asked.profile), asked.profile)
    if observation is None:
        return None
    one = FitProblem([observation], asked.profile, frozenset(asked.names))
    return _information(one, asked.names, _values(asked.names, one, asked.profile))


def one_by_one(questions: Sequence[CandidateQuestion], tell: Callable[[int, int], None]) -> list[Vector | None]:
    """The answers, in this process."""
    found = []
    for number, each in enumerate(questions):
        tell(number, len(questions))
        found.append(information_of(each))
    return found


def propose(
    problem: FitProblem,
    wanted: Sequence[str],
    candidates: Sequence[tuple[str, Program]],
    profile: Profile,
    tell: Callable[[int, int], None] = lambda _done, _of: None,
    inform: Inform = one_by_one,
) -> tuple[tuple[Proposal, ...], tuple[str, ...]]:
    """The captures, in the order in which they help most; and the wanted values that none of them determines."""
    names = tuple(sorted({*problem.start, *wanted}))
    x = _values(names, problem, profile)
    unit = np.maximum(x, 20.0)
    known = _information(problem, names, x) + np.eye(len(names)) / _LOOSE**2
    answers = inform([CandidateQuestion(label, program, names, profile) for label, program in candidates], tell)
    offered = [(label, more) for (label, _), more in zip(candidates, answers, strict=True) if more is not None]
    chosen: list[Proposal] = []
    open_names = [name for name in wanted if _is_open(known, names.index(name), x, unit)]
    while open_names and offered and len(chosen) < _MOST:
        at = [names.index(name) for name in open_names]
        scores = [_score(known + more, at, x, unit) for _, more in offered]
        best = max(range(len(offered)), key=lambda n: (scores[n], -n))
        if scores[best][0] == 0 and scores[best][1] - _score(known, at, x, unit)[1] < _GAIN:
            break
        label, more = offered.pop(best)
        known = known + more
        done = tuple(name for name in open_names if not _is_open(known, names.index(name), x, unit))
        chosen.append(Proposal(label, done))
        open_names = [name for name in open_names if name not in done]
    return tuple(chosen), tuple(open_names)


def _values(names: Sequence[str], problem: FitProblem, profile: Profile) -> Vector:
    return np.array([float(profile.values.get(name, problem.start.get(name, 0))) for name in names])


def _information(problem: FitProblem, names: Sequence[str], x: Vector) -> Vector:
    """What the observations say about the values, each in units of itself."""
    found, unit = np.zeros((len(names), len(names))), np.maximum(x, 20.0)
    mine = [name for name in names if name in problem.start]
    at = [names.index(name) for name in mine]
    slopes = problem.slopes(mine, x[at], COARSE[0], one_sided=True) * unit[at]
    found[np.ix_(at, at)] = slopes.T @ slopes
    return found


def _widths(known: Vector, unit: Vector) -> Vector:
    return np.asarray(2.0 * np.sqrt(np.maximum(np.diag(np.linalg.inv(known)), 0.0)) * unit)


def _is_open(known: Vector, at: int, x: Vector, unit: Vector) -> bool:
    return is_wide(float(_widths(known, unit)[at]), float(x[at]))


def _score(known: Vector, at: Sequence[int], x: Vector, unit: Vector) -> tuple[int, float]:
    """How many of the values are determined, and how narrow their intervals are together."""
    widths = _widths(known, unit)
    closed = sum(not is_wide(float(widths[n]), float(x[n])) for n in at)
    return closed, -float(sum(np.log(widths[n] / unit[n]) for n in at))


def expected_trace(program: Program, profile: Profile) -> Trace:
    """What a recording would say if the device had these values: the events of a recorded launch, and the cycles and
    the period of one launch without recording.
    """
    plain = simulate(program, profile)
    reading = read(plain.trace, waits_per_trip(program))
    period = reading.period_millicycles if reading is not None else None
    recorded = simulate(program, profile, traced=True).trace
    runs = (Run(traced=False, repetition=0, cycles=(plain.cycles,), period_millicycles=(period or 0,)),)
    return Trace(replace(recorded.meta, runs=runs), recorded.events)
