"""One recording as a fit sees it: its measured quantities, how exactly each is known, and how far a profile is off.

A deviation is (simulated - measured) / sigma, without unit. ``sigma`` is what the measurement and the model can be
expected to disagree by: the noise of the repetitions, half a percent of a period, one percent of a run, and three
percent of a wait or segment of a recorded launch, or five cycles.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from pipesim.conform.compare import as_launched
from pipesim.conform.quantities import Quantities, QuantityKind, QuantityName, measured_quantities, simulated_quantities
from pipesim.model.program import Program
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Trace

Vector = NDArray[np.float64]
_Default = TypeVar("_Default")

#: By kind: the part of a value, and the least cycles, that its sigma has.
_SIGMA = {
    QuantityKind.PERIOD: (0.005, 1.0),
    QuantityKind.RUN: (0.01, 10.0),
    QuantityKind.WAIT: (0.03, 5.0),
    QuantityKind.SEGMENT: (0.03, 5.0),
}


@dataclass(frozen=True)
class RunObservation:
    """A recording and the program that it is of. ``label`` names it: the path of its file."""

    label: str
    program: Program
    trace: Trace
    found: Quantities
    names: tuple[QuantityName, ...]
    sigma: tuple[float, ...]

    def deviations(self, profile: Profile) -> Vector:
        """How far a simulation on this profile is off, for each of ``names``. A number that it lacks counts as 0."""
        made = simulated_quantities(self.program, profile, self.trace).values()
        mine = self.found.values()
        return np.array(
            [(made.get(name, 0.0) - mine[name]) / sigma for name, sigma in zip(self.names, self.sigma, strict=True)]
        )

    def relative(self, name: QuantityName, deviation: float) -> float:
        """A deviation of one of ``names`` as a part of the measured value."""
        return deviation * self.sigma[self.names.index(name)] / max(self.found.values()[name], 1.0)


def observe(label: str, program: Program, trace: Trace, base: Profile) -> RunObservation | None:
    """The recording as an observation; None if nothing of it can be compared with a simulation."""
    program = as_launched(program, trace.meta)
    found = measured_quantities(trace)
    made = simulated_quantities(program, base, trace).values()
    mine = found.values()
    names = tuple(name for name in mine if name in made)
    if not names:
        return None
    sigma = tuple(_sigma(name, mine[name], found.noise) for name in names)
    return RunObservation(label, program, trace, found, names, sigma)


def _sigma(name: QuantityName, value: float, noise: float) -> float:
    part, least = _SIGMA[name.kind]
    return max(part * value, least, noise if name.kind is QuantityKind.PERIOD else 0.0)


class _RecordingValues(dict[str, int]):
    """The values of a profile that record which are read, with what is taken for one that is not there."""

    def __init__(self, values: Mapping[str, int], read: dict[str, int]) -> None:
        super().__init__(values)
        self._read = read

    def __getitem__(self, name: str) -> int:
        value = super().__getitem__(name)
        self._read[name] = value
        return value

    def get(self, name: str, default: _Default = None) -> int | _Default:  # type: ignore[assignment]
        if name in self:
            return self[name]
        if isinstance(default, int):
            self._read[name] = int(default)
        return default


def values_read(
    observations: Sequence[RunObservation], profile: Profile
) -> tuple[dict[str, int], tuple[frozenset[str], ...]]:
    """The values of the profile that decide these simulations, with where they stand, and those of named work that it
    lacks, with what is taken for them. For each observation the names of those that it reads.
    """
    together: dict[str, int] = {}
    each = []
    for observation in observations:
        read: dict[str, int] = {}
        recording = replace(profile, values=_RecordingValues(profile.values, read))
        simulated_quantities(observation.program, recording, observation.trace)
        together |= read
        each.append(frozenset(read))
    return dict(sorted(together.items())), tuple(each)


LEAST_WIDTH = 5.0  #: an interval within which any value counts as determined
_MIXED = 0.9  #: a correlation above which two values are only determined together
_CONFIDENCE = 0.975  #: of a two-sided interval of 95 %

#: Half of each value's 95 % interval (None: nothing depends on it), what it is mixed up with, and the scale.
Spread = tuple[list[float | None], list[tuple[str, ...]], float]


def is_wide(half_width: float, value: float) -> bool:
    """Whether an interval is too wide to say that the value is determined."""
    return half_width > max(abs(value), LEAST_WIDTH)


def spread(slopes: Sequence[Vector], off: Vector, names: Sequence[str], *, known: bool) -> Spread:
    """Intervals from slopes, of which there may be several (the wider interval counts), and deviations.

    ``known``: sigmas are taken at their word, as before a fit, when deviations are those of wrong values.
    """
    each = [_spread(one, off, names, known=known) for one in slopes]
    widths = [
        None if None in of else max(width for width in of if width is not None)
        for of in zip(*(e[0] for e in each), strict=True)
    ]
    return widths, each[0][1], each[0][2]


def _spread(slopes: Vector, off: Vector, names: Sequence[str], *, known: bool) -> Spread:
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
    return widths, _correlated_values(names, moved, covariance), scale


def _correlated_values(names: Sequence[str], moved: NDArray[np.bool_], covariance: Vector) -> list[tuple[str, ...]]:
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


def determined_values(
    slopes: Sequence[Vector], off: Vector, names: Sequence[str], x: Vector, *, known: bool
) -> list[int]:
    """The numbers of the names that are determined: the others are given up one by one."""
    kept = list(range(len(names)))
    while kept:
        widths, _, _ = spread([one[:, kept] for one in slopes], off, [names[n] for n in kept], known=known)
        excess = [
            np.inf if width is None else width / max(abs(float(x[n])), LEAST_WIDTH)
            for width, n in zip(widths, kept, strict=True)
        ]
        worst = int(np.argmax(excess))
        if excess[worst] <= 1:
            break
        del kept[worst]
    return kept
