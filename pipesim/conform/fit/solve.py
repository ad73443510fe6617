"""Least squares over observations: values, confidence intervals, and which values the observations do not determine.

``scipy.optimize.least_squares`` with a loss that a few outliers do not rule. The simulation counts whole cycles, so its
slopes are differences over several of them, taken here; an observation is simulated again only where a value that it
asks for has changed. A value is determined if its 95 % confidence interval is not wider to one side than the value
itself (or five cycles, of a small one); the others are given up one by one, the least determined first, until all that
remain are, and the remaining ones are fitted again with those at the base profile's values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pipesim.conform.fit.observation import RunObservation, Vector, asked_of
from pipesim.timed.profile import Profile

_FINE, _LEAST_STEP = 0.04, 3  #: of a value: over how many cycles a slope is taken
#: The same while a solution is far: waits are polled, so that a time does not change for a while, and then jumps.
_COARSE = (0.4, 0.12)
_LEAST_WIDTH = 5.0  #: an interval within which any value counts as determined
_ROUNDS, _COARSE_ROUNDS = 8, 4  #: of least squares
_GOOD = 0.03  #: of the loss for each deviation: a quarter of what is expected of the sigmas, so nothing is looked for
_HOPS, _TRIES = 1, 20  #: looks around a solution; random ones at each distance
_REACHES = (4.0, 2.0, 1.0)  #: standard deviations that these are away
_PULL = 0.3  #: deviations that a value counts for which is off its base by all of itself: what nothing determines stays
_MIXED = 0.9  #: a correlation above which two values are only determined together
_CONFIDENCE = 0.975  #: of a two-sided interval of 95 %


@dataclass(frozen=True)
class FittedValue:
    """One value of the profile: before, after, and its interval (``value`` plus or minus ``half_width``).

    ``determined``: by the observations; if not, the base's value is kept. ``with_others``: values that it is mixed up
    with, so that only all together have an effect. ``half_width`` is None where no observation depends on it.
    """

    name: str
    base: int
    value: int
    half_width: float | None
    determined: bool
    with_others: tuple[str, ...] = ()


@dataclass(frozen=True)
class ProfileFit:
    """The profile as fitted, each value, the deviations of each observation before and after, and their scale.

    ``scale``: by which factor deviations are larger than their sigmas say; intervals have it in them.
    """

    profile: Profile
    values: tuple[FittedValue, ...]
    before: tuple[Vector, ...]
    after: tuple[Vector, ...]
    scale: float


class FitProblem:
    """Observations and the values to fit: deviations and slopes as functions of the values."""

    def __init__(
        self,
        observations: Sequence[RunObservation],
        base: Profile,
        only: frozenset[str] = frozenset(),
        fixed: frozenset[str] = frozenset(),
    ) -> None:
        self.observations = tuple(observations)
        self.base = base
        asked, self._asks = asked_of(observations, base)
        self.start = {n: value for n, value in asked.items() if (not only or n in only) and n not in fixed}
        self._known: dict[tuple[int, tuple[tuple[str, int], ...]], Vector] = {}

    def profile(self, names: Sequence[str], x: Vector) -> Profile:
        """The base with these values."""
        values = {name: max(least(name), round(float(value))) for name, value in zip(names, x, strict=True)}
        return replace(self.base, values={**self.base.values, **values})

    def each(self, profile: Profile) -> tuple[Vector, ...]:
        """The deviations of each observation."""
        return tuple(self._one(n, profile) for n in range(len(self.observations)))

    def together(self, profile: Profile) -> Vector:
        """All deviations, in one row."""
        return np.concatenate(self.each(profile)) if self.observations else np.zeros(0)

    def slopes(self, names: Sequence[str], x: Vector, part: float = _FINE) -> Vector:
        """The change of each deviation for one cycle of each value, over ``part`` of the value to both sides.

        A fine slope is taken upwards only, which takes half the time.
        """
        here = self.together(self.profile(names, x))
        columns = []
        for column, name in enumerate(names):
            middle = round(float(x[column]))
            step = max(_LEAST_STEP, round(part * middle))
            low = middle if part == _FINE else max(least(name), middle - step)
            off = []
            for end in (low, middle + step):
                moved = x.copy()
                moved[column] = end
                off.append(self.together(self.profile(names, moved)))
            columns.append((off[1] - off[0]) / (middle + step - low))
        return np.stack(columns, axis=1) if columns else np.zeros((len(here), 0))

    def coarse_slopes(self, names: Sequence[str], x: Vector) -> Vector:
        """The slopes over a large part of each value: what a time says of it, whatever the steps of polled waits."""
        return self.slopes(names, x, _COARSE[0])

    def _one(self, number: int, profile: Profile) -> Vector:
        key = number, tuple((name, profile.values.get(name, -1)) for name in sorted(self._asks[number]))
        if key not in self._known:
            self._known[key] = self.observations[number].deviations(profile)
        return self._known[key]


def fit_profile(problem: FitProblem, tell: Callable[[str], None] = lambda _: None) -> ProfileFit:
    """Fit what the observations determine; ``tell`` is called with what is being done."""
    names = list(problem.start)
    base = np.array([float(problem.start[name]) for name in names])
    before = problem.each(problem.base)
    tell(f"looking at {len(names)} values")
    found, mixed, _ = intervals(problem, names, base, known=True)
    kept, solved = _determined(problem, names, base, known=True)
    coarse: tuple[float, ...] = _COARSE
    while True:
        tell(f"fitting {len(kept)} of {len(names)} values")
        solved, coarse = _least_squares(problem, kept, solved, coarse), ()
        for attempt in range(_HOPS):
            if _loss(problem, kept, solved) > _GOOD * len(problem.together(problem.base)):
                solved = _hop(problem, kept, solved, attempt)
        fewer, start = _determined(problem, kept, solved, known=False)
        if len(fewer) == len(kept):
            break
        kept, solved = fewer, start
    widths, _, scale = intervals(problem, kept, solved)
    profile = problem.profile(kept, solved)
    values = [
        FittedValue(
            name,
            problem.start[name],
            profile.values[name] if name in kept else problem.start[name],
            widths[kept.index(name)] if name in kept else found[n],
            name in kept,
            () if name in kept else mixed[n],
        )
        for n, name in enumerate(names)
    ]
    return ProfileFit(profile, tuple(values), before, problem.each(profile), scale)


def is_wide(half_width: float, value: float) -> bool:
    """Whether an interval is too wide to say that the value is determined."""
    return half_width > max(abs(value), _LEAST_WIDTH)


def least(name: str) -> int:
    """The least value that a profile may have: of a divisor 1."""
    return 1 if "per_kcycle" in name or "bytes" in name or name == "wait.poll" else 0


def intervals(
    problem: FitProblem, names: Sequence[str], x: Vector, *, known: bool = False
) -> tuple[list[float | None], list[tuple[str, ...]], float]:
    """Half of each value's 95 % interval (None: nothing depends on it), what it is mixed up with, and the scale.

    ``known``: sigmas are taken at their word, as before a fit, when deviations are those of wrong values.
    """
    return spread(
        _slopes(problem, names, x, known=known), problem.together(problem.profile(names, x)), names, known=known
    )


def _slopes(problem: FitProblem, names: Sequence[str], x: Vector, *, known: bool) -> tuple[Vector, ...]:
    """Slopes over a part of each value, and after a fit over a smaller one as well: the wider interval counts."""
    return tuple(problem.slopes(names, x, part) for part in (_COARSE[:1] if known else _COARSE))


def spread(
    slopes: Sequence[Vector], off: Vector, names: Sequence[str], *, known: bool
) -> tuple[list[float | None], list[tuple[str, ...]], float]:
    """The same from slopes and deviations."""
    each = [_spread(one, off, names, known=known) for one in slopes]
    widths = [
        None if None in of else max(width for width in of if width is not None)
        for of in zip(*(e[0] for e in each), strict=True)
    ]
    return widths, each[0][1], each[0][2]


def _spread(
    slopes: Vector, off: Vector, names: Sequence[str], *, known: bool
) -> tuple[list[float | None], list[tuple[str, ...]], float]:
    from scipy.stats import t

    weights = np.ones(len(off)) if known else 1 / np.sqrt(1 + off**2)  # those of the loss: outliers say little
    weighted = slopes * weights[:, None] ** 0.5
    free = max(1, len(off) - len(names))
    scale = float(np.sqrt(np.sum(weights * off**2) / free))
    sizes = np.sqrt((weighted**2).sum(axis=0))
    moved = sizes > 0
    covariance = np.full((len(names), len(names)), np.inf)
    if moved.any():
        scaled = weighted[:, moved] / sizes[moved]
        information = scaled.T @ scaled
        inverse = np.linalg.pinv(information + 1e-9 * np.eye(len(information)), hermitian=True)
        covariance[np.ix_(moved, moved)] = inverse / np.outer(sizes[moved], sizes[moved])
    factor = float(t.ppf(_CONFIDENCE, free)) * (1.0 if known else max(scale, 1.0))
    widths = [factor * float(np.sqrt(covariance[n, n])) if moved[n] else None for n in range(len(names))]
    return widths, _mixed(names, moved, covariance), scale


def _mixed(names: Sequence[str], moved: NDArray[np.bool_], covariance: Vector) -> list[tuple[str, ...]]:
    found: list[tuple[str, ...]] = []
    for n in range(len(names)):
        others = [
            names[m]
            for m in range(len(names))
            if m != n and moved[n] and moved[m]
            and abs(covariance[n, m]) > _MIXED * np.sqrt(covariance[n, n] * covariance[m, m])
        ]  # fmt: skip
        found.append(tuple(others))
    return found


def _determined(problem: FitProblem, names: Sequence[str], x: Vector, *, known: bool) -> tuple[list[str], Vector]:
    """The names, and their values, without those that are not determined: given up one by one."""
    kept, slopes = list(range(len(names))), _slopes(problem, names, x, known=known)
    off = problem.together(problem.profile(names, x))
    while kept:
        widths, _, _ = spread([one[:, kept] for one in slopes], off, [names[n] for n in kept], known=known)
        excess = [
            np.inf if width is None else width / max(abs(float(x[n])), _LEAST_WIDTH)
            for width, n in zip(widths, kept, strict=True)
        ]
        worst = int(np.argmax(excess))
        if excess[worst] <= 1:
            break
        del kept[worst]
    return [names[n] for n in kept], x[kept]


def _hop(problem: FitProblem, names: Sequence[str], x: Vector, attempt: int) -> Vector:
    """A better solution near this one, if one of some random ones is: the deviations have steps, and local minima.

    Drawn, with a fixed seed, as the solution is uncertain: along directions in which the deviations hardly change.
    """
    if not names:
        return x
    slopes = problem.slopes(names, x, _COARSE[1]) * _unit(x)
    values, directions = np.linalg.eigh(slopes.T @ slopes + 0.01 * np.eye(len(names)))
    rng = np.random.default_rng([attempt, len(names)])
    low = np.array([float(least(name)) for name in names])
    best, least_loss = x, _loss(problem, names, x)
    for reach in _REACHES:
        centre = best
        for _ in range(_TRIES):
            off = directions @ (rng.standard_normal(len(names)) / np.sqrt(values))
            tried = np.maximum(low, centre + _unit(x) * off * reach)
            loss = _loss(problem, names, tried)
            if loss < least_loss:
                best, least_loss = tried, loss
    return best if best is x else _least_squares(problem, names, best)


def _loss(problem: FitProblem, names: Sequence[str], x: Vector) -> float:
    off = problem.together(problem.profile(names, x))
    return float(np.sum(np.sqrt(1 + off**2) - 1))


def _unit(start: Vector) -> Vector:
    """What one step of a solver is for each value: itself, or 20 cycles of a small one."""
    return np.asarray(np.maximum(np.abs(start), 20.0), dtype=np.float64)


def _least_squares(problem: FitProblem, names: Sequence[str], start: Vector, coarse: Sequence[float] = ()) -> Vector:
    from scipy.optimize import least_squares

    if not names:
        return start
    unit = _unit(start)
    low = np.array([float(least(name)) for name in names])
    base = np.array([float(problem.start[name]) for name in names])
    x = np.maximum(start, low)
    for part in (*coarse, _FINE):
        solved = least_squares(
            lambda u: np.concatenate([problem.together(problem.profile(names, u * unit)), _PULL * (u - base / unit)]),
            x / unit,
            jac=lambda u, part=part: np.vstack([problem.slopes(names, u * unit, part) * unit, _PULL * np.eye(len(u))]),
            bounds=(low / unit - 1e-9, np.inf),
            loss="soft_l1" if part == _FINE else "linear",
            x_scale=1.0,
            max_nfev=_ROUNDS if part == _FINE else _COARSE_ROUNDS,
            xtol=1e-3,
            ftol=1e-3,
        )
        x = solved.x * unit
    return np.asarray(x, dtype=np.float64)
