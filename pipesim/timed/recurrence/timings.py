"""``times_of``: the times of one program under many profiles."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count

import numpy as np
from numpy.typing import NDArray

from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.timed.engine import simulate
from pipesim.timed.kept import kept
from pipesim.timed.profile import Profile
from pipesim.timed.recurrence.derivation.derive import Derivation
from pipesim.timed.recurrence.evaluate import Evaluated, FormulaTimes
from pipesim.timed.recurrence.many import ManyProfiles
from pipesim.timed.recurrence.prices import demands, price_table, price_tables

_Numbers = NDArray[np.int64]  #: of profiles

MOST_NUMBERS = 1 << 23  #: of all values together while a formula is evaluated: 64 MiB


@dataclass(frozen=True)
class Timings:
    """The times of a program under each profile.

    ``cycles[i]``: the length of the run under profile i; ``ends[a, i]``: when agent a ends, -1 if it does not.
    ``simulated[i]``: whether that profile was simulated one by one, because the order is not static (``reason``) or two
    things fall into one cycle whose order matters.
    """

    program: Program
    profiles: tuple[Profile, ...]
    cycles: NDArray[np.int64]
    ends: NDArray[np.int64]
    simulated: NDArray[np.bool_]
    reason: str = ""


@dataclass(frozen=True)
class StaticOrder:
    """What evaluates the formula of a program, or the reason why it has none."""

    times: FormulaTimes | None
    reason: str


LEAST_DECIDED = 8  #: profiles for which another formula is worth deriving, which takes as long as some simulations


SLOWED = "works slow each other, by how much depends on times"


def derived(program: Program, profile: Profile) -> StaticOrder:
    """The formula of a program, derived from its run under ``profile``."""
    if any(demands(program, profile)):
        return StaticOrder(None, SLOWED)
    derivation = Derivation(program)
    run = simulate(program, profile, observers=[derivation])
    derivation.ended()
    broken = run.outcome is not Ending.FINISHED or run.faults
    reason = derivation.reason or ("it does not finish, or breaks a rule" if broken else "")
    formula = None if reason else derivation.formula
    return StaticOrder(FormulaTimes(formula) if formula else None, reason)


@kept
def _known(_: Program) -> list[StaticOrder]:
    """The formulas of a program that have been derived so far."""
    return []


def times_of(program: Program, profiles: Sequence[Profile], *, traced: bool = False) -> Timings:
    """The times of ``program`` under each of ``profiles``; ``traced``: with what recording costs.

    The same to the last cycle as :func:`~pipesim.timed.engine.simulate` says of each, in the time of a few of them
    where the order of resource use is static, or is one of a few under these profiles: each order has a formula, which
    also finds another order of copies. Where there is none, and where few profiles share an order, by simulating each.
    """
    profiles = tuple(profiles)
    many = ManyProfiles(profiles)
    found = _TimesFound(program, many, traced=traced)
    every = np.arange(len(profiles))
    slowed = many.computed(every, partial(demands, program)).any(axis=0)
    left = every[~slowed]
    known = _known(program)
    reason = "" if len(left) else SLOWED
    decided = len(left)
    for number in count():
        if not len(left) or (number == len(known) and number and min(decided, len(left)) < LEAST_DECIDED):
            break
        if number == len(known):
            known.append(derived(program, profiles[left[0]]))
        times, reason = known[number].times, known[number].reason
        if times is None:
            break
        decided, left = len(left), found.queued(times, found.by_formula(times, left))
        decided -= len(left)
    left = np.concatenate([left, every[slowed]])
    found.simulate(left)
    simulated = np.zeros(len(profiles), dtype=bool)
    simulated[left] = True
    return Timings(program, profiles, found.cycles, found.ends, simulated, reason)


class _TimesFound:
    """The times that have been found so far."""

    def __init__(self, program: Program, many: ManyProfiles, *, traced: bool) -> None:
        self._program, self._many, self._traced = program, many, traced
        self.cycles = np.zeros(len(many.profiles), dtype=np.int64)
        self.ends = np.zeros((len(program.agents), len(many.profiles)), dtype=np.int64)

    def by_formula(self, times: FormulaTimes, which: _Numbers) -> _Numbers:
        """By formula for as many profiles at once as fit into memory. Those that it does not decide."""
        size = max(1, MOST_NUMBERS // max(1, times.formula.values))
        undecided = [np.zeros(0, dtype=np.int64)]
        for begin in range(0, len(which), size):
            part = which[begin : begin + size]
            prices = price_table(self._program, times.formula, self._many, part, traced=self._traced)
            undecided.append(self._take(part, times(prices)))
        return np.concatenate(undecided)

    def queued(self, times: FormulaTimes, which: _Numbers) -> _Numbers:
        """By formula for one profile after the other, in any order of copies. Those that it does not decide."""
        if not len(which) or not times.queues(len(which)):
            return which
        tables = price_tables(self._program, times.formula, self._many, which, traced=self._traced)
        parts = zip(which.reshape(-1, 1), tables, strict=True)
        return np.concatenate([self._take(part, times.queued(prices)) for part, prices in parts])

    def _take(self, part: _Numbers, found: Evaluated) -> _Numbers:
        """The times of a part of the profiles. Those that are not decided."""
        self.cycles[part] = found.cycles
        self.ends[:, part] = np.reshape(found.ends, (len(self.ends), len(part)))
        undecided: _Numbers = part[np.atleast_1d(found.undecided)]
        return undecided

    def simulate(self, which: _Numbers) -> None:
        """One profile after the other."""
        for i in which:
            run = simulate(self._program, self._many.profiles[i], traced=self._traced)
            self.cycles[i], self.ends[:, i] = run.cycles, run.ends
