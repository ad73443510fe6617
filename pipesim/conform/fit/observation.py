"""One recording as a fit sees it: its measured quantities, how exactly each is known, and how far a profile is off.

A deviation is (simulated - measured) / sigma, without unit. ``sigma`` is what the measurement and the model can be
expected to disagree by: the noise of the repetitions, half a percent of a period, one percent of a run, and three
percent of a wait or segment of a recorded launch, or five cycles.
"""

from __future__ import annotations

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
