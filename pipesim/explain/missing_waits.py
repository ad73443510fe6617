"""Agents that never wait, although what they touch is another's: a mistake in every schedule but the lucky ones.

A simulation follows one schedule, in which such an agent may come late enough to find what it needs. That nothing makes
it wait can be seen from its operations alone, and only what is certain is reported: an agent that waits anywhere
after the first synchronisation, which all agents share, is left to those who look at every schedule.
"""

from __future__ import annotations

from collections.abc import Iterator

from pipesim.model.finding import Advisory
from pipesim.model.groups import MEETING_WAITS, READS_MEMORY, WAITS_FOR_OTHERS, WRITES_MEMORY
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program

_Write = tuple[int, int]  # agent, pc


def advisories(program: Program) -> tuple[Advisory, ...]:
    """What agents that never wait do with the tiles of others, once for each role and line."""
    starts = [next((pc + 1 for pc, op in enumerate(code) if op[0] in MEETING_WAITS), 0) for code in program.code]
    free = [agent for agent, code in enumerate(program.code) if not _waits(code, starts[agent])]
    if not free:
        return ()
    writes = _writes(program)
    found: dict[tuple[str, str], Advisory] = {}
    for agent in free:
        for advisory in _advisories_for(program, agent, starts, writes):
            found.setdefault((advisory.role, advisory.line), advisory)
    return tuple(found.values())


def _waits(code: tuple[Operation, ...], start: int) -> bool:
    return any(op[0] in WAITS_FOR_OTHERS for op in code[start:])


def _advisories_for(
    program: Program, agent: int, starts: list[int], writes: dict[int, list[_Write]]
) -> Iterator[Advisory]:
    """The first read of what another writes, and the first copy over a copy of its own."""
    mine: set[int] = set()
    copied: set[int] = set()
    role = program.agents[agent].role
    read = again = False
    for pc, op in enumerate(program.code[agent]):
        if op[0] in READS_MEMORY and not read:
            access = operand(op, "access")
            other = (
                _filled_by(program, agent, access, starts, writes) if mine.isdisjoint(_cells(program, access)) else ""
            )
            if other:
                read = True
                tile = program.access_name(access)
                claim = f"{role} never waits: its read of {tile} is not ordered after the write by {other}"
                yield Advisory(role, claim, program.line(agent, pc), "race")
        elif op[0] in WRITES_MEMORY:
            access = operand(op, "access")
            cells = _cells(program, access)
            if op[0] == Op.TMA_LOAD and not again and not copied.isdisjoint(cells):
                again = True
                tile = program.access_name(access)
                claim = f"{role} never waits: its copy into {tile} is not ordered after the read of its previous copy"
                yield Advisory(role, claim, program.line(agent, pc), "race")
            mine.update(cells)
            if op[0] == Op.TMA_LOAD:
                copied.update(cells)


def _filled_by(program: Program, agent: int, access: int, starts: list[int], writes: dict[int, list[_Write]]) -> str:
    """The role that alone fills this access, after the synchronisation that it shares with ``agent``; "" if none is."""
    if not starts[agent]:
        return ""
    sync, me = program.code[agent][starts[agent] - 1], program.agents[agent]
    found = ""
    for cell in _cells(program, access):
        for other, pc in writes.get(cell, ()):
            them = program.agents[other]
            shared = starts[other] and program.code[other][starts[other] - 1] == sync
            if (them.cta, them.warp) == (me.cta, me.warp) or not shared or pc < starts[other]:
                return ""
            found = them.role
    return found


def _writes(program: Program) -> dict[int, list[_Write]]:
    """For each cell the first write of each agent that writes it."""
    writes: dict[int, list[_Write]] = {}
    for agent, code in enumerate(program.code):
        seen: set[int] = set()
        for pc, op in enumerate(code):
            if op[0] not in WRITES_MEMORY:
                continue
            for cell in _written_cells(program, op):
                if cell not in seen:
                    seen.add(cell)
                    writes.setdefault(cell, []).append((agent, pc))
    return writes


def _written_cells(program: Program, op: Operation) -> Iterator[int]:
    """The cells that an operation writes: those of a multicast in every CTA of its mask."""
    for access in program.accesses_of(op):
        yield from _cells(program, access)


def _cells(program: Program, access: int) -> range:
    return range(*program.cells[access])
