"""``times_of``: the times of one program under many profiles."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.timed.engine import simulate
from pipesim.timed.profile import Profile
from pipesim.timed.recurrence.derive import Derivation
from pipesim.timed.recurrence.evaluate import Evaluated, Evaluation
from pipesim.timed.recurrence.formula import Formula
from pipesim.timed.recurrence.prices import price_table

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
    """The formula of a program, or the reason why it has none."""

    formula: Formula | None
    reason: str


_KNOWN: dict[int, StaticOrder] = {}  # by identity: a program is too long to be compared


def static_order(program: Program, profile: Profile) -> StaticOrder:
    """The formula of a program, derived from one run under ``profile``; it is the same from every run that has one."""
    known = _KNOWN.get(id(program))
    if known is None:
        derivation = Derivation(program)
        run = simulate(program, profile, observers=[derivation])
        derivation.ended()
        broken = run.outcome is not Ending.FINISHED or run.faults
        reason = derivation.reason or ("it does not finish, or breaks a rule" if broken else "")
        known = _KNOWN[id(program)] = StaticOrder(None if reason else derivation.formula, reason)
        weakref.finalize(program, _KNOWN.pop, id(program)).atexit = False
    return known


def times_of(program: Program, profiles: Sequence[Profile], *, traced: bool = False) -> Timings:
    """The times of ``program`` under each of ``profiles``; ``traced``: with what recording costs.

    The same to the last cycle as :func:`~pipesim.timed.engine.simulate` says of each, in the time of a few of them
    where the order of resource use is static; where it is not, by simulating each.
    """
    profiles = tuple(profiles)
    cycles = np.zeros(len(profiles), dtype=np.int64)
    ends = np.zeros((len(program.agents), len(profiles)), dtype=np.int64)
    simulated = np.ones(len(profiles), dtype=bool)
    order = static_order(program, profiles[0]) if profiles else StaticOrder(None, "")
    if order.formula is not None:
        for begin, found in _evaluated(program, order.formula, profiles, traced=traced):
            part = slice(begin, begin + len(found.cycles))
            cycles[part], ends[:, part], simulated[part] = found.cycles, found.ends, found.undecided
    for i in np.flatnonzero(simulated):
        run = simulate(program, profiles[i], traced=traced)
        cycles[i], ends[:, i] = run.cycles, run.ends
    return Timings(program, profiles, cycles, ends, simulated, order.reason)


def _evaluated(
    program: Program, formula: Formula, profiles: tuple[Profile, ...], *, traced: bool
) -> Iterator[tuple[int, Evaluated]]:
    """The times of as many profiles at once as fit into memory, and the number of the first."""
    size = max(1, MOST_NUMBERS // max(1, formula.values))
    for begin in range(0, len(profiles), size):
        prices = price_table(program, formula, profiles[begin : begin + size], traced=traced)
        yield begin, Evaluation(formula, prices, events=False).times()
