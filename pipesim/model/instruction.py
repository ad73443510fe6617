"""The instructions of a program as its author knows them: an operation, a line, and what it is about."""

from __future__ import annotations

from typing import NamedTuple

from pipesim.model.groups import ON_BARRIER, ON_ENGINE, TOUCHES_MEMORY
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.tables import ProgramData


class SourceInstruction(NamedTuple):
    """One instruction of the author's: the operation, its line, and what it is about: a group of barriers, a tile.

    Operations of a loop that have the same are the same instruction, executed again.
    """

    op: int
    line: str
    about: str


def instructions(program: ProgramData) -> tuple[tuple[SourceInstruction, ...], ...]:
    """The instruction of each operation of each agent."""
    tiles = [_tile(program, access) for access in range(len(program.accesses))]
    made: dict[tuple[Operation, int], SourceInstruction] = {}
    found = []
    for code, lines in zip(program.code, program.lines, strict=True):
        mine = []
        for op, line in zip(code, lines, strict=True):
            known = made.get((op, line))
            if known is None:
                known = made[op, line] = SourceInstruction(op[0], program.sources[line], _about(program, op, tiles))
            mine.append(known)
        found.append(tuple(mine))
    return tuple(found)


def _about(program: ProgramData, op: Operation, tiles: list[str]) -> str:
    """What an operation is about: a group of barriers, a tile, the number of an engine, or nothing that has a name.

    Named barriers have no name here: one instruction uses another number in each iteration.
    """
    if op[0] in ON_BARRIER and operand(op, "barrier") >= 0:
        return program.barriers[operand(op, "barrier")].name
    if op[0] in TOUCHES_MEMORY:
        return tiles[operand(op, "access")]
    if op[0] in ON_ENGINE:
        return str(operand(op, "engine"))
    return str(operand(op, "fence")) if op[0] == Op.FENCE else ""


def _tile(program: ProgramData, access: int) -> str:
    """The tile that an access is in, "" for one that has no name."""
    a = program.accesses[access]
    for t in program.tiles:
        if (t.space, t.cta) == (a.space, a.cta) and 0 <= a.offset - t.offset < t.nbytes * t.slots:
            return t.name
    return ""
