"""Least squares with few slopes: they are taken once for a part of the values, and learn from each step after that.

After a step each observation's slopes are changed as little as makes them say what the step has shown (Broyden's
update, of each observation for the values that it depends on). Only deviations are simulated then, which takes as many
simulations as there are observations, not that many for each value.
"""

import sys
from collections.abc import Callable, Sequence

from pipesim.conform.fit.observation import Vector
from pipesim.conform.fit.problem import FINE, FitProblem, least
from pipesim.errors import MissingExtraError
from pipesim.trace.arrays import np

_ROUNDS, _COARSE_ROUNDS = 16, 8  #: of least squares: deviations that are simulated
_FRESH = 24  #: observations whose slopes are taken again after a step: all of a few for several times, none of many
_PULL = 0.3  #: deviations that a value counts for which is off its base by all of itself: what nothing determines stays


def require_scipy() -> None:
    """Say what is missing before anything is simulated for a fit. MissingExtraError without SciPy."""
    try:
        import scipy.optimize
        import scipy.stats  # noqa: F401  # only whether it is there
    except ImportError as error:
        raise MissingExtraError(
            "a latency profile is fitted with the package scipy, which is not installed",
            place=sys.prefix,
            cause="it is an extra, which `pipesim calibrate` alone needs",
            correction="pip install 'pipesim[calibrate]'",
        ) from error


def loss(off: Vector) -> float:
    """What is minimized: of small deviations half their square, of large ones their size."""
    return float(np.sum(np.sqrt(1 + off**2) - 1))


def unit_of(start: Vector) -> Vector:
    """What one step of a solver is for each value: itself, or 20 cycles of a small one."""
    return np.asarray(np.maximum(np.abs(start), 20.0), dtype=np.float64)


class LearnedSlopes:
    """The slopes at a point, and the deviations there: both change with each step that is noted."""

    def __init__(self, problem: FitProblem, names: Sequence[str], slopes: Vector, x: Vector, off: Vector) -> None:
        self._parts = problem.parts
        self._moves = problem.moves(names)
        self.slopes, self._x, self._off = slopes.copy(), x.copy(), off

    def note(self, x: Vector, off: Vector) -> None:
        """The deviations at another point."""
        step = (x - self._x) / unit_of(self._x)
        change = off - self._off
        for n, (first, end) in enumerate(self._parts):
            mine = step * self._moves[n]
            length = float(mine @ mine)
            if length > 0:
                scaled = self.slopes[first:end] * unit_of(self._x)
                missed = change[first:end] - scaled @ mine
                self.slopes[first:end] = (scaled + np.outer(missed, mine) / length) / unit_of(self._x)
        self._x, self._off = x.copy(), off


def descend(
    problem: FitProblem,
    names: Sequence[str],
    start: Vector,
    slopes: Vector,
    part: float,
    seen: Callable[[Vector, float], None],
) -> tuple[Vector, Vector]:
    """A better solution near ``start``, at which ``slopes`` were taken over a ``part`` of each value; and the slopes as
    they have become. ``seen`` is called with each point that is tried and its loss.
    """
    from scipy.optimize import least_squares

    if not names:
        return start, slopes
    unit = unit_of(start)
    low = np.array([float(least(name)) for name in names])
    base = np.array([float(problem.start[name]) for name in names])
    x = np.maximum(start, low)
    learned = LearnedSlopes(problem, names, slopes, x, problem.together(problem.profile(names, x)))

    def deviations(u: Vector) -> Vector:
        off = problem.together(problem.profile(names, u * unit))
        seen(u * unit, loss(off))
        return np.concatenate([off, _PULL * (u - base / unit)])

    fresh = iter(range(_FRESH // max(1, len(problem.observations))))

    def slopes_at(u: Vector) -> Vector:
        now = u * unit
        learned.note(now, problem.together(problem.profile(names, now)))
        if (now != x).any() and next(fresh, None) is not None:
            learned.slopes = problem.slopes(names, now, part)
        return np.vstack([learned.slopes * unit, _PULL * np.eye(len(u))])

    solved = least_squares(
        deviations,
        x / unit,
        jac=slopes_at,
        bounds=(low / unit - 1e-9, np.inf),
        loss="soft_l1" if part == FINE else "linear",
        x_scale=1.0,
        max_nfev=_ROUNDS if part == FINE else _COARSE_ROUNDS,
        xtol=1e-3,
        ftol=1e-3,
    )
    return np.asarray(solved.x * unit, dtype=np.float64), learned.slopes
