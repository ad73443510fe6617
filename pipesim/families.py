"""A protocol's trip counts, and what is proved for all of their values: between the proof and those who ask."""

from __future__ import annotations

from collections.abc import Mapping

from pipesim.errors import PipesimError
from pipesim.model.program import Program
from pipesim.protocols.catalog import Target
from pipesim.prove.family import Build, EveryValue, Family, SomeValues

_LONG = 30_000  #: operations
_SMALL = 2  #: a value at which a loop goes round


def trip_counts(target: Target, params: Mapping[str, int], program: Program) -> tuple[str, ...]:
    """The parameters that count the trips of a loop: those that marks name, else those with which code grows.

    Empty for a flat program, whose parameters are past. ``program`` is the target's with these parameters.
    """
    named = tuple(name for name in dict.fromkeys(program.loops) if name in target.defaults)
    if named or target.program is not None:
        return named
    return tuple(name for name in target.defaults if _grows(building(target, params, name)))


def family(target: Target, params: Mapping[str, int], parameter: str) -> Family:
    """The programs that ``target`` makes where this parameter varies and the others are as given."""
    return Family(parameter, building(target, params, parameter))


class Families:
    """A program's trip counts, each varied with the others as they are; each family is looked at once, when asked."""

    def __init__(self, target: Target, params: Mapping[str, int], program: Program) -> None:
        self._program = program
        self._values = {**target.defaults, **params}
        self._families = {name: family(target, params, name) for name in trip_counts(target, params, program)}
        self._verdicts: dict[str, EveryValue | SomeValues] = {}

    def ranges(self, most: int) -> tuple[EveryValue | SomeValues, ...]:
        """Of so many trip counts the values that are proved; of a long program those of the first that is a loop."""
        found: list[EveryValue | SomeValues] = []
        for name in list(self._families)[:most]:
            if not self.long or not any(isinstance(each, EveryValue) for each in found):
                found.append(self._verdict(name))
        return tuple(found)

    @property
    def long(self) -> bool:
        """True if a proof by laps is sooner than a run."""
        return sum(map(len, self._program.code)) > _LONG

    def cover(self) -> bool:
        """True if some trip count is proved for every value, and the program is what that speaks of.

        It is compared operation by operation, which is done much sooner than a run if the program is long.
        """
        for name, looked in self._families.items():
            every = self._verdict(name)
            if isinstance(every, EveryValue):
                return looked.covers(every, self._values[name], self._program)
        return False

    def _verdict(self, name: str) -> EveryValue | SomeValues:
        if name not in self._verdicts:
            self._verdicts[name] = self._families[name].verdict()
        return self._verdicts[name]


def building(target: Target, params: Mapping[str, int], parameter: str) -> Build:
    """The target's program by the value of one parameter; None where the protocol refuses it."""

    def build(value: int) -> Program | None:
        try:
            return target.build({**params, parameter: value}, twice=False)  # the program that was asked for was
        except PipesimError:
            return None

    return build


def _grows(build: Build) -> bool:
    """True if a value more adds operations, and nothing else differs that a loop's trips leave alone."""
    short, long = build(_SMALL), build(_SMALL + 1)
    if short is None or long is None or (short.agents, short.barriers) != (long.agents, long.barriers):
        return False
    more = [len(b) - len(a) for a, b in zip(short.code, long.code, strict=True)]
    return min(more) >= 0 and max(more) > 0
