"""The flat program, version 1: what a protocol becomes and what every engine runs. Nothing here assumes Python wrote it.

A program is one CTA (or one cluster); ``grid`` says how many independent copies a launch runs side by side.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from pipesim.errors import ProgramFormatError
from pipesim.model.ops import OPERANDS, Op, Operation, Space

PROGRAM_VERSION = 1
MAX_REGISTERS = 1 << 16
NO_BARRIER = -1


@dataclass(frozen=True)
class Agent:
    """An independent thread of control: (CTA, warp, set of lanes), and the role it plays.

    ``lanes`` is a bit mask of the lanes that run the program; ``index`` counts the agents of a role in a CTA.
    """

    cta: int
    warp: int
    lanes: int
    role: str
    index: int


@dataclass(frozen=True)
class Barrier:
    """Side table of one mbarrier: its CTA, its group's name and its stage in the group."""

    cta: int
    name: str
    stage: int


@dataclass(frozen=True)
class Access:
    """A range of bytes in one memory of one CTA. Ranges may overlap; names are in :class:`Tile`."""

    space: Space
    cta: int
    offset: int
    nbytes: int


@dataclass(frozen=True)
class Tile:
    """Side table: a named array of slots in memory, ``slots`` times ``nbytes`` from ``offset`` on."""

    name: str
    space: Space
    cta: int
    offset: int
    nbytes: int
    slots: int


@dataclass(frozen=True)
class Program:
    """Operations of every agent, and the tables their operands index.

    ``code[a]`` is the straight line of agent a with forward jumps only, so no operation runs twice. ``lines[a][i]``
    indexes ``sources`` ("file:line" of the author). ``loops`` names the trip parameter of each loop mark, "" if unknown.
    In a cluster every CTA has the barriers and accesses that a multicast names, at the same place.
    """

    name: str
    params: dict[str, int]
    agents: tuple[Agent, ...]
    barriers: tuple[Barrier, ...]
    accesses: tuple[Access, ...]
    tiles: tuple[Tile, ...]
    code: tuple[tuple[Operation, ...], ...]
    lines: tuple[tuple[int, ...], ...]
    sources: tuple[str, ...]
    named_barriers: tuple[tuple[int, int], ...] = ()  #: (CTA, hardware id 0..15) of each named barrier used
    loops: tuple[str, ...] = ()
    registers: int = 0  #: registers of each agent
    ctas: int = 1  #: CTAs in the cluster that the program is
    grid: int = 1
    smem_bytes: int = 0  #: shared memory of one CTA, barriers included
    version: int = PROGRAM_VERSION
    notes: tuple[str, ...] = field(default=())  #: what the flattener added, in words

    def __post_init__(self) -> None:
        _validate(self)

    def agent_name(self, agent: int) -> str:
        """``role``, or ``role/index`` where the role has several agents in a CTA, with ``@cta`` in a cluster."""
        me = self.agents[agent]
        alone = sum(1 for a in self.agents if a.role == me.role and a.cta == me.cta) == 1
        name = me.role if alone else f"{me.role}/{me.index}"
        return name if self.ctas == 1 else f"{name}@{me.cta}"

    def barrier_name(self, barrier: int) -> str:
        """``group[stage]``, with ``@cta`` in a cluster."""
        b = self.barriers[barrier]
        name = f"{b.name}[{b.stage}]"
        return name if self.ctas == 1 else f"{name}@{b.cta}"

    def access_name(self, access: int) -> str:
        """``tile[slot]`` if the range is exactly one slot, else the range in bytes."""
        a = self.accesses[access]
        for t in self.tiles:
            inside = a.offset - t.offset
            if (t.space, t.cta) == (a.space, a.cta) and 0 <= inside < t.nbytes * t.slots:
                whole = inside % t.nbytes == 0 and a.nbytes == t.nbytes
                return f"{t.name}[{inside // t.nbytes}]" + ("" if whole else f" bytes {inside % t.nbytes}+{a.nbytes}")
        return f"{a.space.name.lower()}[{a.offset}:{a.offset + a.nbytes}]"

    def slot_of(self, access: int) -> int:
        """The slot of the tile that the access lies in, -1 if it lies in none."""
        a = self.accesses[access]
        for t in self.tiles:
            inside = a.offset - t.offset
            if (t.space, t.cta) == (a.space, a.cta) and 0 <= inside < t.nbytes * t.slots:
                return inside // t.nbytes
        return -1

    def line(self, agent: int, pc: int) -> str:
        """The author's source line of an operation, "" past the end."""
        return self.sources[self.lines[agent][pc]] if pc < len(self.code[agent]) else ""

    def at_rank(self, barrier: int, access: int, rank: int) -> tuple[int, int]:
        """The barrier and the access at the same place in the CTA of this rank: where a multicast lands."""
        b, a = self.barriers[barrier], self.accesses[access]
        index = self._index
        return index[Barrier(rank, b.name, b.stage)], index[Access(a.space, rank, a.offset, a.nbytes)]

    @cached_property
    def _index(self) -> dict[Barrier | Access, int]:
        tables: tuple[tuple[Barrier | Access, ...], ...] = (self.barriers, self.accesses)
        return {entry: i for table in tables for i, entry in enumerate(table)}

    @cached_property
    def cells(self) -> tuple[tuple[int, int], ...]:
        """For each access its cells ``(first, end)``.

        The bounds of all accesses cut each memory into cells, so that any two accesses share whole cells or nothing.
        """
        cuts: dict[tuple[Space, int], list[int]] = {}
        for a in self.accesses:
            cuts.setdefault((a.space, a.cta), []).extend((a.offset, a.offset + a.nbytes))
        index: dict[tuple[Space, int, int], int] = {}
        for memory in sorted(cuts):
            for bound in sorted(set(cuts[memory])):
                index[*memory, bound] = len(index)
        return tuple(
            (index[a.space, a.cta, a.offset], index[a.space, a.cta, a.offset + a.nbytes]) for a in self.accesses
        )

    @cached_property
    def cell_count(self) -> int:
        """How many cells there are (one spare after each memory's last bound)."""
        return max((end for _, end in self.cells), default=0)


def _validate(program: Program) -> None:
    if not len(program.agents) == len(program.code) == len(program.lines):
        raise ProgramFormatError(
            f"{program.name}: {len(program.agents)} agents, {len(program.code)} lists of operations, "
            f"{len(program.lines)} lists of lines",
            correction="give one list of each for every agent",
        )
    bounds = {
        "barrier": len(program.barriers),
        "access": len(program.accesses),
        "named_barrier": len(program.named_barriers),
        "register": program.registers,
        "state_register": program.registers,
        "loop": len(program.loops),
    }
    for a, (code, lines) in enumerate(zip(program.code, program.lines, strict=True)):
        if len(code) != len(lines) or any(not 0 <= line < len(program.sources) for line in lines):
            raise ProgramFormatError(f"{program.name}: agent {a} does not have one valid source line for each operation")
        for pc, operation in enumerate(code):
            wrong = _wrong_operation(operation, bounds, len(code) - pc)
            if wrong:
                raise ProgramFormatError(wrong, place=f"{program.name}: agent {a}, operation {pc}: {operation}")


def _wrong_operation(operation: Operation, bounds: dict[str, int], left: int) -> str:
    """What is wrong with an operation, "" if nothing is."""
    try:
        op = Op(operation[0])
    except (ValueError, IndexError):
        return f"this is no operation of version {PROGRAM_VERSION}"
    names = OPERANDS[op]
    if len(names) != len(operation) - 1 or not all(type(value) is int for value in operation):
        return f"{op.name} takes {len(names)} integers: {', '.join(names)}"
    for name, value in zip(names, operation[1:], strict=True):
        bound = bounds.get(name)
        if bound is not None:
            optional = name == "register" or (op == Op.COMMIT and name == "barrier")
            if not (-1 if optional else 0) <= value < bound:
                return f"{name} {value} is outside the table of {bound}"
        elif name == "skip" and not 0 <= value < left:
            return f"a jump over {value} operations leaves the program: jumps go forward, at most to its end"
        elif name == "parity" and value not in (0, 1):
            return f"parity {value}: a parity is 0 or 1"
        elif name == "engine" and not 0 <= value <= 3:
            return f"engine {value} is none of 0 to 3"
    return ""
