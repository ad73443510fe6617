"""The problem of a fit: observations and the values to fit, deviations and slopes as functions of the values.

What takes time is simulating. An observation is simulated again only where a value that it asks for has changed, and
all values that are needed together are requested together, so that several processes can share the work.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from itertools import pairwise

from pipesim.conform.fit.observation import RunObservation, Vector, values_read
from pipesim.timed.profile import AT_LEAST_ONE, AT_MOST, MAX_VALUE, Profile
from pipesim.trace.arrays import np

FINE, _LEAST_STEP = 0.04, 3  #: of a value: over how many cycles a slope is taken
#: The same while a solution is far: waits are polled, so that a time does not change for a while, and then jumps.
COARSE = (0.4, 0.12)
_MOST_TO_BOTH_SIDES = 12  #: observations

#: The deviations of observations, by number, each under a profile: in the order in which they are asked for.
Evaluate = Callable[[Sequence[tuple[int, Profile]]], Sequence[Vector]]


def least(name: str) -> int:
    """The least value that a profile may have: of a divisor 1."""
    return 1 if name in AT_LEAST_ONE else 0


class FitProblem:
    """Observations and the values to fit. They are simulated in this process, unless others do it for a while."""

    def __init__(
        self,
        observations: Sequence[RunObservation],
        base: Profile,
        only: frozenset[str] = frozenset(),
        fixed: frozenset[str] = frozenset(),
    ) -> None:
        self.observations = tuple(observations)
        self.base = base
        asked, self._values_read = values_read(observations, base)
        self.start = {n: value for n, value in asked.items() if (not only or n in only) and n not in fixed}
        self._evaluate: Evaluate = self._here
        self._known: dict[tuple[int, tuple[tuple[str, int], ...]], Vector] = {}
        self._idle: frozenset[tuple[int, str]] = frozenset()

    @contextmanager
    def evaluated_by(self, evaluate: Evaluate) -> Iterator[None]:
        """In the block ``evaluate`` simulates."""
        self._evaluate = evaluate
        try:
            yield
        finally:
            self._evaluate = self._here

    def profile(self, names: Sequence[str], x: Vector) -> Profile:
        """The base with these values."""
        values = {name: _within_limits(name, float(value)) for name, value in zip(names, x, strict=True)}
        return replace(self.base, values={**self.base.values, **values})

    def each(self, profile: Profile) -> tuple[Vector, ...]:
        """The deviations of each observation."""
        every = range(len(self.observations))
        return tuple(self._simulate([(n, profile) for n in every]))

    def together(self, profile: Profile) -> Vector:
        """All deviations, in one row."""
        return self.rows([profile])[0]

    def rows(self, profiles: Sequence[Profile]) -> list[Vector]:
        """All deviations under each profile, each in one row: simulated together."""
        number = len(self.observations)
        found = self._simulate([(n, profile) for profile in profiles for n in range(number)])
        parts = [found[number * at : number * (at + 1)] for at in range(len(profiles))]
        return [np.concatenate(part) if part else np.zeros(0) for part in parts]

    def slopes(self, names: Sequence[str], x: Vector, part: float = FINE, *, one_sided: bool = False) -> Vector:
        """The change of each deviation for one cycle of each value, over ``part`` of the value: towards longer times,
        so that what is not waited for yet is seen. A large part of few observations is taken to both sides, unless it
        is to be ``one_sided``.
        """
        both = not one_sided and part != FINE and len(self.observations) <= _MOST_TO_BOTH_SIDES
        here = self.profile(names, x)
        asked = [(n, here) for n in range(len(self.observations))]
        ends: list[tuple[int, int]] = []  # of each value
        for name in names:
            middle = here.values[name]
            step = _step(name, middle, part)
            ends.append((_within_limits(name, middle - step) if both else middle, _within_limits(name, middle + step)))
            sides = [replace(here, values={**here.values, name: end}) for end in ends[-1]]
            asked += [(n, side) for n in self._depend_on(name) for side in sides]
        found = iter(self._simulate(asked)[len(self.observations) :])
        slopes = np.zeros((self.parts[-1][1] if self.parts else 0, len(names)))
        for column, (name, (low, high)) in enumerate(zip(names, ends, strict=True)):
            for n in self._depend_on(name):
                off, moved = next(found), next(found)
                slopes[slice(*self.parts[n]), column] = (moved - off) / ((high - low) or 1)
        return slopes

    def note_idle(self, names: Sequence[str], slopes: Vector) -> None:
        """Take from slopes over a large part which values decide nothing in which observations: none is taken again."""
        self._idle |= {
            (n, name)
            for n, (first, end) in enumerate(self.parts)
            for column, name in enumerate(names)
            if not slopes[first:end, column].any()
        }

    def moves(self, names: Sequence[str]) -> Vector:
        """For each observation 1 for each value that it may depend on, else 0."""
        found = np.zeros((len(self.observations), len(names)))
        for column, name in enumerate(names):
            found[self._depend_on(name), column] = 1.0
        return found

    @property
    def parts(self) -> list[tuple[int, int]]:
        """Where the deviations of each observation begin and end in a row of all."""
        ends = np.cumsum([0, *(len(each.names) for each in self.observations)]).tolist()
        return list(pairwise(ends))

    def _depend_on(self, name: str) -> list[int]:
        return [n for n, asks in enumerate(self._values_read) if name in asks and (n, name) not in self._idle]

    def _simulate(self, asked: Sequence[tuple[int, Profile]]) -> list[Vector]:
        keys = [self._key(*each) for each in asked]
        new = {key: each for key, each in zip(keys, asked, strict=True) if key not in self._known}
        if new:
            self._known.update(zip(new, self._evaluate(list(new.values())), strict=True))
        return [self._known[key] for key in keys]

    def _key(self, number: int, profile: Profile) -> tuple[int, tuple[tuple[str, int], ...]]:
        return number, tuple((name, profile.values.get(name, -1)) for name in sorted(self._values_read[number]))

    def _here(self, asked: Sequence[tuple[int, Profile]]) -> list[Vector]:
        return [self.observations[number].deviations(profile) for number, profile in asked]


def _within_limits(name: str, value: float) -> int:
    return min(max(least(name), round(value)), AT_MOST.get(name, MAX_VALUE))


def _step(name: str, middle: int, part: float) -> int:
    """How far a value is moved: down if it is a rate or a clock, so that times become longer."""
    step = max(_LEAST_STEP, round(part * middle))
    if "per_kcycle" in name or name.startswith("clock."):
        return -min(step, middle - least(name)) or step
    return step
