"""Least squares over observations: values, confidence intervals, and which values the observations do not determine.

``scipy.optimize.least_squares`` with a loss that a few outliers do not rule. The simulation counts whole cycles, so its
slopes are differences over several of them. A value is determined if its 95 % confidence interval is not wider to one
side than the value itself (or five cycles, of a small one); the others are given up one by one, the least determined
first, until all that remain are, and the remaining ones are fitted again with those at the base profile's values.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pipesim.conform.fit.least_squares import descend, loss, unit_of
from pipesim.conform.fit.observation import Spread, Vector, determined_values, spread
from pipesim.conform.fit.problem import COARSE, FINE, FitProblem, least
from pipesim.conform.fit.values import CalibratedValue, ValueState
from pipesim.timed.profile import Profile
from pipesim.trace.arrays import np

_GOOD = 0.03  #: of the loss for each deviation: a quarter of what is expected of the sigmas, so nothing is looked for
_TRIES = 20  #: random points at each distance from a solution
_MOST_LOOKS = 100  #: the same, of all observations together
_AGAIN = 40  #: observations whose slopes are taken again where fewer values are fitted: of many not each time
_MOST_TURNS = 8  #: how often slopes over small parts are taken
_HELPS = 0.98  #: of the loss before: a turn that leaves more was the last
_REACHES = (4.0, 2.0, 1.0)  #: standard deviations that these are away


@dataclass(frozen=True)
class ProfileFit:
    """The profile as fitted, each value, the deviations of each observation before and after, and their scale.

    ``scale``: by which factor deviations are larger than their sigmas say; intervals have it in them.
    """

    profile: Profile
    values: tuple[CalibratedValue, ...]
    before: tuple[Vector, ...]
    after: tuple[Vector, ...]
    scale: float


@dataclass
class SoFar:
    """What a fit knows, for when it is ended: the best point that was tried, with the slopes that were taken first.

    ``names``: the values that the observations seemed to determine at the base; () as long as that is not known.
    """

    names: tuple[str, ...] = ()
    x: Vector = field(default_factory=lambda: np.zeros(0))
    least_loss: float = np.inf
    slopes: Vector = field(default_factory=lambda: np.zeros((0, 0)))
    first: Spread = ((), (), 1.0)  # type: ignore[assignment]

    def begin(self, names: Sequence[str], x: Vector, slopes: Vector) -> None:
        """These are fitted now."""
        self.names, self.x, self.slopes, self.least_loss = tuple(names), x, slopes, np.inf

    def add_point(self, x: Vector, its_loss: float) -> None:
        """A point was tried."""
        if its_loss < self.least_loss:
            self.x, self.least_loss = x.copy(), its_loss


def fit_profile(
    problem: FitProblem, tell: Callable[[str], None] = lambda _: None, so_far: SoFar | None = None
) -> ProfileFit:
    """Fit what the observations determine; ``tell`` is called with what is being done, ``so_far`` has what is known."""
    so_far = so_far or SoFar()
    names = list(problem.start)
    base = np.array([float(problem.start[name]) for name in names])
    off = problem.together(problem.base)
    tell(f"looking at {len(names)} values")
    slopes = problem.slopes(names, base, COARSE[0])
    problem.note_idle(names, slopes)
    so_far.first = spread([slopes], off, names, known=True)
    at = determined_values([slopes], off, names, base, known=True)
    kept, x, slopes = [names[n] for n in at], base[at], slopes[:, at]
    so_far.begin(kept, x, slopes)
    x, slopes = _first(problem, kept, x, slopes, so_far, tell)
    again = _AGAIN // max(1, len(problem.observations))
    checked = _slopes(problem, kept, x)
    while True:
        off = problem.together(problem.profile(kept, x))
        at = determined_values(checked, off, kept, x, known=False)
        if len(at) == len(kept):
            break
        kept, x, slopes, checked = [kept[n] for n in at], x[at], slopes[:, at], [one[:, at] for one in checked]
        so_far.begin(kept, x, checked[0])
        tell(f"fitting {len(kept)} of {len(names)} values")
        x, slopes = descend(problem, kept, x, slopes, FINE, so_far.add_point)
        if again > 0:
            again, checked = again - 1, _slopes(problem, kept, x)
    return _fit_result(problem, kept, x, spread(checked, off, kept, known=False), so_far.first)


def fit_so_far(problem: FitProblem, so_far: SoFar) -> ProfileFit:
    """The fit that was ended: the best point, and what the slopes that are known say there."""
    off = problem.together(problem.profile(so_far.names, so_far.x))
    at = determined_values([so_far.slopes], off, so_far.names, so_far.x, known=False)
    kept = [so_far.names[n] for n in at]
    widths = spread([so_far.slopes[:, at]], off, kept, known=False)
    return _fit_result(problem, kept, so_far.x[at], widths, so_far.first)


def _first(
    problem: FitProblem, names: Sequence[str], x: Vector, slopes: Vector, so_far: SoFar, tell: Callable[[str], None]
) -> tuple[Vector, Vector]:
    """A first solution: over large parts of the values, then smaller ones, then around it."""
    tell(f"fitting {len(names)} of {len(problem.start)} values")
    for part in COARSE:
        if part != COARSE[0]:
            slopes = problem.slopes(names, x, part)
        x, slopes = descend(problem, names, x, slopes, part, so_far.add_point)
    x, slopes = _finely(problem, names, x, so_far)
    if names and _loss(problem, names, x) > _GOOD * len(slopes):
        better = _hop(problem, names, x, slopes)
        if better is not x:
            x, slopes = _finely(problem, names, better, so_far)
    return x, slopes


def _finely(problem: FitProblem, names: Sequence[str], x: Vector, so_far: SoFar) -> tuple[Vector, Vector]:
    """Slopes over small parts, taken again as long as that helps: of many observations it takes too long."""
    slopes, before = np.zeros((0, len(names))), np.inf
    for _ in range(min(_MOST_TURNS, max(1, _MOST_LOOKS // (2 * len(problem.observations) or 1)))):
        slopes = problem.slopes(names, x)
        x, slopes = descend(problem, names, x, slopes, FINE, so_far.add_point)
        now = _loss(problem, names, x)
        if now > _HELPS * before:
            break
        before = now
    return x, slopes


def _slopes(problem: FitProblem, names: Sequence[str], x: Vector) -> list[Vector]:
    """Slopes over a large part of each value and over a smaller one: the wider interval counts."""
    return [problem.slopes(names, x, part) for part in COARSE]


def _fit_result(problem: FitProblem, kept: Sequence[str], x: Vector, now: Spread, first: Spread) -> ProfileFit:
    """The result. ``now``: intervals of those that are kept; ``first``: of all values, at the base."""
    profile = problem.profile(kept, x)
    widths, mixed, _ = first
    values = []
    for n, (name, base) in enumerate(problem.start.items()):
        if name in kept:
            width = now[0][kept.index(name)]
            values.append(CalibratedValue(name, base, profile.values[name], width, ValueState.FITTED))
        else:
            values.append(CalibratedValue(name, base, base, widths[n], ValueState.ASSUMED, mixed[n]))
    return ProfileFit(profile, tuple(values), problem.each(problem.base), problem.each(profile), now[2])


def _hop(problem: FitProblem, names: Sequence[str], x: Vector, slopes: Vector) -> Vector:
    """A better point near this solution, if one of some random ones is: the deviations have steps, and local minima.

    Drawn, with a fixed seed, as the solution is uncertain: along directions in which the deviations hardly change.
    """
    unit = unit_of(x)
    slopes = slopes * unit
    values, directions = np.linalg.eigh(slopes.T @ slopes + 0.01 * np.eye(len(names)))
    rng = np.random.default_rng([0, len(names)])
    low = np.array([float(least(name)) for name in names])
    tries = min(_TRIES, max(1, _MOST_LOOKS // len(problem.observations)))
    best, least_loss = x, _loss(problem, names, x)
    for reach in _REACHES:
        off = rng.standard_normal((tries, len(names))) / np.sqrt(values)
        points = [np.maximum(low, best + unit * (directions @ each) * reach) for each in off]
        for point, row in zip(points, problem.rows([problem.profile(names, each) for each in points]), strict=True):
            if loss(row) < least_loss:
                best, least_loss = point, loss(row)
    return best


def _loss(problem: FitProblem, names: Sequence[str], x: Vector) -> float:
    return loss(problem.together(problem.profile(names, x)))
