"""From recordings to a flat program: side tables, names of barriers, and registers packed as a compiler would."""

from __future__ import annotations

import heapq
from typing import TYPE_CHECKING

from pipesim.model.ops import OPERANDS, Op, Operation
from pipesim.model.program import Agent, Barrier, Program, Tile
from pipesim.model.recording import Recorder, Tables

if TYPE_CHECKING:
    from pipesim.model.protocol import Protocol

_READS = {Op.WAIT_UNLESS: "register", Op.WAIT_STATE: "register", Op.JUMP_IF: "register"}  #: "register" means a read here


def assemble(
    protocol: Protocol, recorders: list[Recorder], tables: Tables, params: dict[str, int], notes: tuple[str, ...]
) -> Program:
    """The flat program of one recording of every agent of ``protocol``."""
    agents = tuple(
        Agent(cta, role.first_warp + index, recorders[0].all_lanes, role.name, index)
        for cta in range(protocol.cluster)
        for role in protocol.roles
        for index in range(role.warps)
    )
    packed = [pack_registers(rec.code) for rec in recorders]
    return Program(
        name=protocol.name,
        params=params,
        agents=agents,
        barriers=_barriers(protocol),
        accesses=tuple(tables.accesses),
        tiles=tuple(
            Tile(t.name, t.space, cta, t.offset, t.nbytes, t.slots)
            for cta in range(protocol.cluster)
            for t in protocol.tiles
        ),
        code=tuple(tuple(code) for code, _ in packed),
        lines=tuple(tuple(rec.lines) for rec in recorders),
        sources=tuple(tables.sources),
        named_barriers=tuple(tables.named_barriers),
        loops=tuple(tables.loops),
        registers=max((count for _, count in packed), default=0),
        ctas=protocol.cluster,
        smem_bytes=protocol.smem_bytes,
        notes=notes,
    )


def _barriers(protocol: Protocol) -> tuple[Barrier, ...]:
    """Names: the group that a pipeline gave, led by its storage's name where two storages have a group of that name."""
    groups = [group for s in protocol.storages for group in {g for g, _ in s.labels.values()}]
    names: list[tuple[str, int]] = []
    for storage in protocol.storages:
        for index in range(storage.size):
            group, stage = storage.labels.get(index, ("", index))
            shared = groups.count(group) > 1
            names.append((f"{storage.name}.{group}" if shared else group or storage.name, stage))
    return tuple(Barrier(cta, name, stage) for cta in range(protocol.cluster) for name, stage in names)


def pack_registers(code: list[Operation]) -> tuple[list[Operation], int]:
    """Give results the lowest register that is free, and none to results that nobody reads; the code and its width.

    The recorder hands out a new register for every result. A straight line needs only as many as are alive at once.
    """
    last_read: dict[int, int] = {}
    for pc, operation in enumerate(code):
        for name, value in zip(OPERANDS[Op(operation[0])], operation[1:], strict=True):
            if _is_read(operation, name):
                last_read[value] = pc
    free: list[int] = []
    width = 0
    held: dict[int, int] = {}
    packed: list[Operation] = []
    for pc, operation in enumerate(code):
        operands = []
        for name, value in zip(OPERANDS[Op(operation[0])], operation[1:], strict=True):
            if _is_read(operation, name):
                value = held[value]
            elif name == "register" and value >= 0:
                if value not in last_read:
                    value = -1
                else:
                    if not free:
                        heapq.heappush(free, width)
                        width += 1
                    value = held.setdefault(value, heapq.heappop(free))
            operands.append(value)
        for value in _ending(operation, last_read, pc):
            heapq.heappush(free, held[value])
        packed.append((operation[0], *operands))
    return packed, width


def _is_read(operation: Operation, name: str) -> bool:
    return name == "state_register" or _READS.get(Op(operation[0])) == name


def _ending(operation: Operation, last_read: dict[int, int], pc: int) -> list[int]:
    """Registers of the recorder that this operation reads for the last time."""
    names = OPERANDS[Op(operation[0])]
    return sorted({v for n, v in zip(names, operation[1:], strict=True) if _is_read(operation, n) and last_read[v] == pc})
