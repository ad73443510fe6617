"""How often a stretch of code comes again: the same operations, each with an item that grows by the same number."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from pipesim.model.groups import TAKES_REGISTERS
from pipesim.model.ops import AT, Op
from pipesim.model.positions import COPY_MASK
from pipesim.model.program import Program
from pipesim.timed.skeleton import skeleton

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
        kinds, items = self._of(agent)
        kinds, items = kinds[start:], items[start:]
        if len(kinds) < 2 * length:
            return 0
        same = _leading(kinds[length:] == kinds[:-length])
        steps = items[length:] - items[:-length]
        even = _leading(steps[length:] == steps[:-length]) + length
        negative = _leading((steps == 0) | ((items[length:] >= 0) & (items[:-length] >= 0)))
        return int(min(same, even, negative)) // length

    def _of(self, agent: int) -> tuple[_Numbers, _Numbers]:
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


def _leading(true: NDArray[np.bool_]) -> int:
    """How many are true before the first that is not."""
    return int(np.argmin(true)) if not true.all() else len(true)
