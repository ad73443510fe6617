"""A protocol's trip counts, and what is proved for all of their values: between the proof and those who ask."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

from pipesim.answers.checking.counterexample import refuted_at
from pipesim.answers.views.check import ProvedTogether
from pipesim.errors import ParameterError, PipesimError
from pipesim.model.coverage import Assumption
from pipesim.model.program import Program
from pipesim.prove.any_size.family import Build, Family, ProvedRange, Stop
from pipesim.prove.any_size.laps import holds
from pipesim.targets import Target

_LONG = 30_000  #: operations
_SIDE = 4  #: values of each trip count that are tried together with those of the others
_MOST_TOGETHER = 64  #: combinations of them
_SMALL = 2  #: a value at which a loop goes round


def trip_counts(target: Target, params: Mapping[str, int], program: Program) -> tuple[str, ...]:
    """The parameters that count the iterations of a loop: those that marks name, else those with which code grows.

    Empty for a flat program, whose parameters are past. ``program`` is the target's with these parameters.
    """
    named = tuple(name for name in dict.fromkeys(program.loops) if name in target.defaults)
    if named or target.program is not None:
        return named
    return tuple(name for name in target.defaults if _grows(build_by(target, params, name)))


def require_trip_counts(names: Sequence[str], target: Target, params: Mapping[str, int], program: Program) -> None:
    """ParameterError for a name that is none of the trip counts."""
    known = trip_counts(target, params, program)
    for name in names:
        if name not in known:
            raise ParameterError(
                f"--any {name}: {target.name} has no such trip count", correction=f"it has {', '.join(known) or 'none'}"
            )


def family(target: Target, params: Mapping[str, int], parameter: str) -> Family:
    """The programs that ``target`` makes where this parameter varies and the others are as given."""
    return Family(parameter, build_by(target, params, parameter))


class Families:
    """A program's trip counts, each varied with the others as they are; each family is examined once, on demand.

    ``by_commit_order``: False if the program is proved whatever the order in which commits of one thread arrive.
    """

    def __init__(
        self, target: Target, params: Mapping[str, int], program: Program, *, by_commit_order: bool = True
    ) -> None:
        self._target = target
        self._params = params
        self._program = program
        self._values = {**target.defaults, **params}
        first = [target.strictness | {Assumption.COMMITS}] if program.commits_again and not by_commit_order else []
        self._rules = dict.fromkeys([*first, target.strictness])
        self._names = trip_counts(target, params, program)
        self._verdicts: dict[str, ProvedRange] = {}
        self.by_commit_order: set[str] = set()  #: the trip counts whose proof needs the order of one thread's commits

    def ranges(self, most: int) -> tuple[ProvedRange, ...]:
        """For this many trip counts the values that are proved; in a long program for the first that is a loop."""
        found: list[ProvedRange] = []
        for name in self._names[:most]:
            if not self._long or not any(each.lap for each in found):
                found.append(self._verdict(name))
        return tuple(found)

    def proved(self, shown: ProvedRange) -> ProvedRange:
        """The same as a part of a report, with whether the first value beyond it is refuted."""
        if shown.lap:
            kept = {name: self._values[name] for name in self._names if name != shown.parameter}
            ruled_out = Assumption.PATTERN in self._program.strictness
            shown = replace(shown, others=kept)
            return replace(shown, lap=0, why=Stop.RULED_OUT) if ruled_out else shown
        wrong = refuted_at(self._target, {**self._params, shown.parameter: shown.fails}) if shown.fails >= 0 else None
        return shown if wrong is None else replace(shown, refuted=wrong[1].refutations[0].kind)

    def together(self, ranges: Sequence[ProvedRange]) -> ProvedTogether | None:
        """What is proved where several trip counts change together; None where fewer than two have every value."""
        free = [each for each in ranges if each.lap]
        if len(free) < 2:
            return None
        names = tuple(each.parameter for each in free)
        tried = 0
        for values in _small(free):
            at = dict(zip(names, values, strict=True))
            made = build_by(self._target, self._values | at, names[0])(values[0])
            if made is not None and not holds(made):
                wrong = refuted_at(self._target, {**self._params, **at}) is not None
                return ProvedTogether(names, tried, at, refuted=wrong)
            tried += made is not None
        return ProvedTogether(names, tried, {})

    @property
    def _long(self) -> bool:
        return sum(map(len, self._program.code)) > _LONG

    def _verdict(self, name: str) -> ProvedRange:
        """What is proved of a family; not every value if the program that was asked for is not what that refers to."""
        if name not in self._verdicts:
            for rules in self._rules:
                looked = family(self._target.with_strictness(rules), self._params, name)
                found = looked.verdict()
                if found.why is not Stop.NOT_RIGHT:
                    break
            if found.lap:
                given = looked.covers(found, self._values[name], self._program)
                found = looked.far(found) if given else found.without_laps(Stop.OTHERWISE)
            self._verdicts[name] = found
            if len(self._rules) > 1 and Assumption.COMMITS not in rules:
                self.by_commit_order.add(name)
        return self._verdicts[name]


def _small(free: Sequence[ProvedRange]) -> Iterator[tuple[int, ...]]:
    """Combinations of small values, those with the least sum first."""
    sides = [range(each.least, each.least + _SIDE) for each in free]
    yield from sorted(product(*sides), key=lambda values: (sum(values), values))[:_MOST_TOGETHER]


def build_by(target: Target, params: Mapping[str, int], parameter: str, grid: int | None = None) -> Build:
    """The target's program by the value of one parameter; None where the protocol refuses it."""

    def build(value: int) -> Program | None:
        try:
            # not twice, as the program that was asked for was
            return target.build({**params, parameter: value}, grid=grid, twice=False)
        except PipesimError:
            return None

    return build


def _grows(build: Build) -> bool:
    """True if the next value adds operations, and nothing else differs that a loop's iterations leave alone."""
    short, long = build(_SMALL), build(_SMALL + 1)
    if short is None or long is None or (short.agents, short.barriers) != (long.agents, long.barriers):
        return False
    more = [len(b) - len(a) for a, b in zip(short.code, long.code, strict=True)]
    return min(more) >= 0 and max(more) > 0
