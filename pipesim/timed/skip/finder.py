"""Finds the period of a simulation: looks at it once in each iteration of one agent until a snapshot comes again.

The snapshots are compared with one that is replaced after twice as many iterations each time (Brent, 1980), so that few
are kept and every period is found in time. A repetition counts when it has been seen twice in a row and all counts
have grown by the same numbers: then what follows is decided by the code alone, which is also compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipesim.model.groups import TAKES_REGISTERS
from pipesim.model.ops import AT, Op
from pipesim.model.positions import COPY_MASK
from pipesim.model.program import Program
from pipesim.timed.plan import skeleton
from pipesim.timed.skip.snapshot import RunSnapshot

FEWEST_TRIPS = 100  #: of the agent that is followed: below, little is gained
LEAST_GAIN = 200  #: operations left out by a leap that is worth it


@dataclass(frozen=True)
class Leap:
    """What can be left out: ``times`` more of what happened between two snapshots, of which the later is now."""

    before: RunSnapshot
    now: RunSnapshot
    times: int


class Finder:
    """Follows one run. ``marks``: the places in the code of ``leader`` at whose reaching it wants to look."""

    def __init__(self, program: Program) -> None:
        self._code = RepeatedCode(program)
        trips = skeleton(program).trips
        self.leader = max(range(len(trips)), key=lambda agent: len(trips[agent]), default=-1)
        self.marks: Sequence[int] = trips[self.leader] if trips and len(trips[self.leader]) >= FEWEST_TRIPS else ()
        self._fruitless = self._next = 0  # snapshots taken that repeat nothing, and when the next may be
        self._anchor: tuple[tuple[int, ...], RunSnapshot] | None = None
        self._second: RunSnapshot | None = None  # repeats the anchor
        self._trip = self._anchored = self._confirmed_at = 0
        self._room = 1  # iterations after which the anchor is replaced

    def look(self, glance: tuple[int, ...], take: Callable[[], RunSnapshot]) -> Leap | None:
        """What can be left out now, if anything. Called once for each mark.

        ``glance``: what is equal wherever snapshots repeat each other and costs less than to ``take`` one.
        """
        self._trip += 1
        if self._anchor is None or (self._second is None and self._trip - self._anchored > self._room):
            self._anchor, self._anchored = (glance, take()), self._trip
            self._room *= 2
        elif self._second is not None:
            if self._trip == self._confirmed_at:
                return self._confirm(self._anchor[1], self._second, take())
        elif glance == self._anchor[0] and self._trip >= self._next:
            now = take()
            if now.repeats(self._anchor[1]) and self._gain(self._anchor[1], now) >= LEAST_GAIN:
                self._second, self._confirmed_at = now, 2 * self._trip - self._anchored
            else:  # the more often in vain, the more seldom
                self._fruitless += 1
                self._next = self._trip + self._fruitless // 16
        return None

    def _confirm(self, first: RunSnapshot, second: RunSnapshot, third: RunSnapshot) -> Leap | None:
        self._second = None
        if not third.repeats(second) or third.since(second) != second.since(first):
            return None
        self._anchor = None  # the next repetition is another one
        self._fruitless = 0
        return Leap(second, third, self._more(first, second) - 1)

    def _gain(self, first: RunSnapshot, second: RunSnapshot) -> int:
        """Operations that a leap would leave out."""
        return (self._more(first, second) - 1) * (second.clocks.steps - first.clocks.steps)

    def _more(self, first: RunSnapshot, second: RunSnapshot) -> int:
        """How many more times what all agents did between two snapshots follows in their code."""
        pairs = list(enumerate(zip(first.pcs, second.pcs, strict=True)))
        if any(self._code.takes_registers(agent, start, end) for agent, (start, end) in pairs):
            return 0
        return min(self._code.more(agent, start, end) for agent, (start, end) in pairs)


UNLIMITED = 1 << 62

_Numbers = NDArray[np.int64]


class RepeatedCode:
    """The code of a program's agents, as far as it has been asked for."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._agents: dict[int, tuple[_Numbers, _Numbers]] = {}

    def more(self, agent: int, start: int, end: int) -> int:
        """How many more times the operations ``start..end`` follow one another from ``end`` on."""
        length = end - start
        if not length:
            return UNLIMITED
        kinds, items = self._columns(agent)
        kinds, items = kinds[start:], items[start:]
        if len(kinds) < 2 * length:
            return 0
        same = _count_leading(kinds[length:] == kinds[:-length])
        steps = items[length:] - items[:-length]
        even = _count_leading(steps[length:] == steps[:-length]) + length
        negative = _count_leading((steps == 0) | ((items[length:] >= 0) & (items[:-length] >= 0)))
        return int(min(same, even, negative)) // length

    def _columns(self, agent: int) -> tuple[_Numbers, _Numbers]:
        """For each operation which it is, but for its item, and the item."""
        found = self._agents.get(agent)
        if found is None:
            code, at = self._program.code[agent], AT["item"]
            kinds = np.array(skeleton(self._program).places[agent], dtype=np.int64)
            items = np.array([op[at[op[0]]] if op[0] in at else 0 for op in code], dtype=np.int64)
            if self._program.ctas > 1:
                masks = np.array([op[COPY_MASK] if op[0] == Op.TMA_LOAD else 0 for op in code], dtype=np.int64)
                kinds = kinds << 16 | masks
            found = self._agents[agent] = kinds, items
        return found

    def takes_registers(self, agent: int, start: int, end: int) -> bool:
        """True if one of these operations does: who may have some depends on where agents are in their code."""
        return any(op[0] in TAKES_REGISTERS for op in self._program.code[agent][start:end])


def _count_leading(true: NDArray[np.bool_]) -> int:
    """How many are true before the first that is not."""
    return int(np.argmin(true)) if not true.all() else len(true)
