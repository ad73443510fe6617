"""Whether the warps of a warp group may rely on a wgmma for the order of their own accesses, which it does not give.

A wgmma of four warps cannot end before each has issued it, so whatever a warp does before it occurs before the wait of
another. But neither the wgmma nor its wait is a release or an acquire (PTX ISA, "Asynchronous warpgroup-level matrix
instructions"): what a warp has written with ``st`` before is ordered for the others by a barrier alone.
"""

from __future__ import annotations

from typing import NamedTuple

from pipesim.model.groups import ACCESSES, ENGINE_ACCESSES, TOUCHES_MEMORY, WRITES_MEMORY
from pipesim.model.ops import Engine, Op, Operation, operand
from pipesim.model.positions import ASYNC_ACCESS, BARRIER, COPY_MASK, ENGINE
from pipesim.model.program import Program


class _Cells(NamedTuple):
    """Cells that an agent touches in some way: those that it writes, and those that it reads."""

    written: set[int]
    read: set[int]

    def conflicts(self, other: _Cells) -> bool:
        """True if a cell is in both, and one of the two writes it."""
        return not (
            self.written.isdisjoint(other.written)
            and self.written.isdisjoint(other.read)
            and self.read.isdisjoint(other.written)
        )


def may_rely_on_a_wgmma(program: Program) -> bool:
    """True if a warp of such a group makes accesses of its own that conflict with those of another agent."""
    members = sorted({agent for group in program.warp_groups if len(group) > 1 for agent in group})
    if not any(op[0] == Op.WAIT_GROUP and op[ENGINE] == Engine.WGMMA for a in members for op in program.code[a]):
        return False
    every = [_cells(program, agent, own=False) for agent in range(len(program.code))]
    for agent in members:
        mine = _cells(program, agent, own=True)
        if any(mine.conflicts(theirs) for other, theirs in enumerate(every) if other != agent):
            return True
    return False


def _cells(program: Program, agent: int, *, own: bool) -> _Cells:
    """What the agent touches; ``own``: by itself or by ``cp.async``, which is made through the generic proxy."""
    cells = _Cells(set(), set())
    for op in set(program.code[agent]):
        if op[0] not in TOUCHES_MEMORY or (own and not _is_own(op)):
            continue
        found = cells.written if op[0] in WRITES_MEMORY else cells.read
        for access in _accesses(program, op):
            found.update(range(*program.cells[access]))
    return cells


def _is_own(op: Operation) -> bool:
    return op[0] in ACCESSES or (op[0] in ENGINE_ACCESSES and op[ENGINE] == Engine.CP_ASYNC)


def _accesses(program: Program, op: Operation) -> list[int]:
    if op[0] != Op.TMA_LOAD or not op[COPY_MASK]:
        return [operand(op, "access")]
    ranks = [rank for rank in range(program.ctas) if op[COPY_MASK] >> rank & 1]
    return [program.at_rank(op[BARRIER], op[ASYNC_ACCESS], rank)[1] for rank in ranks]
