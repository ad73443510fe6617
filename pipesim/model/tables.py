"""The data of a flat program: operations of every agent, and the tables that their operands index."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from typing import NamedTuple

from pipesim.model.coverage import BY_ITSELF, WHOLE, Coverage, Strictness
from pipesim.model.groups import ON_BARRIER, ON_ENGINE, TOUCHES_MEMORY
from pipesim.model.ops import Op, Operation, Space, operand

#: Class of work → what one unit of it is. All amounts are of one warp.
WORK_CLASSES: dict[str, str] = {
    "rounds": "accesses to shared memory that each need the result of the one before: batches of loads with their use",
    "fma": "warp instructions of floating-point arithmetic",
    "alu": "warp instructions of integer arithmetic, comparisons, conversions and moves",
    "exp2": "warp instructions on the special-function unit: exponentials, reciprocals",
    "shuffles": "warp shuffles that each need the one before",
    "shared_bytes": "bytes read from and written to shared memory",
    "global_accesses": "accesses to global memory that each need the result of the one before",
    "global_bytes": "bytes written to global memory",
    "global_lines": "lines of 128 bytes that accesses to global memory touch, each access apart",
    "copies": "instructions that start a bulk copy, beyond those that are operations of the program",
    "fresh_copies": "bulk copies of data that was written since the SM's side of the L2 cache read it last",
    "shared_copies": "bulk copies of data that other CTAs load at about the same time",
    "streamed_copies": "bulk copies of data that no other CTA loads, and this one once",
    "cluster_fences": "arrives at cluster scope, which take effect when all earlier accesses are done",
    "fences_beside": "other warps whose arrives at cluster scope may be under way at the same time",
    "proxy_fences": "fences between proxies that wait for accesses to shared memory before them",
    "mma": "multiply-adds of a warp's part of a matrix multiplication by its warp group",
    "mma_registers": "the same where one operand is in registers, not in shared memory",
    "warp_products": "256 multiply-adds of 16-bit operands by one warp alone (mma.sync)",
    "products": "instructions that these multiply-adds are divided among",
    "instructions": "instructions between two operations of a program that was read from PTX: the others say which",
    "unrecorded_alu": "warp instructions as of `alu` that only a launch executes that records nothing",
    "recorded": "not 0: only a launch that is recorded does the work; the compiler orders its instructions differently",
    "unrecorded": "not 0: only a launch that records nothing does it",
    "spin": "cycles that the work takes at least, because it reads the clock until they have passed",
}

_MOST_OF_NAME = 60  #: characters of a kernel's name in the names of its works
_NO_NAME = re.compile(r"[^a-z0-9_]+")


def kernel_in_names(name: str) -> str:
    """A kernel's name as the names of its works begin with it: small letters, digits and _."""
    return _NO_NAME.sub("_", name.lower())[:_MOST_OF_NAME].strip("_") or "kernel"


@dataclass(frozen=True)
class Work:
    """Side table: what the operations of one line do.

    ``line`` is an index of ``Program.sources``; ``name`` is ``kernel/work``, by which a profile knows it; ``amounts``
    are pairs of a class of :data:`WORK_CLASSES` and a number of its units. Of an operation that takes time by itself
    (READ, WRITE, WORK, ENGINE_WORK) the work is all that it does, and of a wait on an mbarrier what it takes if its
    phase is complete already; of any other one it comes after it.
    """

    line: int
    name: str
    amounts: tuple[tuple[str, int], ...] = ()

    def amount(self, kind: str) -> int:
        """How many units of this class, 0 if it has none."""
        return dict(self.amounts).get(kind, 0)

    def without(self, kind: str) -> "Work":
        """The same with no unit of this class."""
        return replace(self, amounts=tuple(each for each in self.amounts if each[0] != kind))


PROGRAM_VERSION = 1
#: Why an operation of ``Program.unsure`` may not happen, or all of its bytes but the first :data:`LEAST_COPY` may not
#: be touched: a value, or a word of the launch, decides that is not known; a copy whose bytes were inferred, or are
#: not known.
OPEN_VALUE, OPEN_WORD, SIZE_INFERRED, SIZE_UNKNOWN = 1, 2, 3, 4
LEAST_COPY = 16  #: bytes of the smallest bulk copy (PTX ISA, "cp.async.bulk"; of a box its innermost dimension)
MAX_REGISTERS = 1 << 16
MAX_THREAD_REGISTERS = 256  #: of the hardware, for one thread
MAX_ARCHITECTURE = 999  #: there are 50 to 121
BLACKWELL = 100  #: the first architecture with ``tcgen05``
ALL_LANES = (1 << 32) - 1
NAMED_BARRIERS = 16


def meeting_name(number: int) -> str:
    """``named barrier 3``, or from :data:`NAMED_BARRIERS` on ``the lanes of warp 2``, not a hardware barrier.

    These lanes meet at ``bar.warp.sync`` (PTX ISA); the first number is that of warp 0.
    """
    return f"named barrier {number}" if number < NAMED_BARRIERS else f"the lanes of warp {number - NAMED_BARRIERS}"


def number_runs(numbers: Sequence[int]) -> str:
    """``0 to 3, 5``."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ", ".join(str(a) if a == b else f"{a} to {b}" for a, b in runs)


MAX_CLUSTER = 16  #: CTAs of the largest cluster (CUDA programming guide; more than 8 must be asked for)
MAX_CTAS = 1 << 10  #: of a program: those of a grid that are followed together, and one for what is in no CTA
WARP_GROUP = 4  #: warps of a warp group, the first a multiple of 4 (PTX ISA, "Warpgroup")


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

    def __contains__(self, other: "Access") -> bool:
        """Whether another one is of bytes of this one alone."""
        ends = self.offset <= other.offset and other.offset + other.nbytes <= self.offset + self.nbytes
        return ends and (self.space, self.cta) == (other.space, other.cta)


@dataclass(frozen=True)
class Tile:
    """Side table: a named array of slots in memory, ``slots`` times ``nbytes`` from ``offset`` on."""

    name: str
    space: Space
    cta: int
    offset: int
    nbytes: int
    slots: int


class LeftOutLaps(NamedTuple):
    """Laps of a loop that a program goes through from ``begin`` to ``end``, agent by agent, of ``lap`` operations each.

    The kernel goes through ``more`` of them, which the program leaves out.
    """

    begin: tuple[int, ...]
    end: tuple[int, ...]
    lap: tuple[int, ...]
    more: int


@dataclass(frozen=True)
class ProgramData:
    """Operations of every agent, and the tables their operands index; :class:`~pipesim.model.program.Program` if valid.

    ``code[a]`` is the straight line of agent a with forward jumps only, so no operation runs twice. ``lines[a][i]``
    indexes ``sources`` ("file:line" of the author). ``loops`` names the iteration parameter of each mark, "" if
    unknown. In a cluster every CTA has the barriers and accesses that a multicast names, at the same place.
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
    named_barriers: tuple[tuple[int, int], ...] = ()  #: (CTA, hardware id 0..15) of each named barrier
    #: used; an id of 16 + w is ``bar.warp.sync`` of warp w, whose lanes are several agents
    loops: tuple[str, ...] = ()
    registers: int = 0  #: registers of each agent
    ctas: int = 1  #: CTAs in the cluster that the program is
    grid: int = 1
    smem_bytes: int = 0  #: shared memory of one CTA, barriers included
    version: int = PROGRAM_VERSION
    notes: tuple[str, ...] = field(default=())  #: what the flattener added, in words
    pipelines: tuple[str, ...] = ()  #: pipeline structs that its roles made, by upstream's names
    launch_registers: int = 0  #: registers of each thread at the launch, 0 if not known
    architecture: int = 0  #: 100 of ``sm_100a``; 0 if not known
    coverage: Coverage = WHOLE  #: what it leaves out of the kernel that it was read from
    cut: tuple[int, ...] = ()  #: agents whose code ends before they do: what they do next was not read
    stored: tuple[int, ...] = ()  #: accesses that a TMA_LOAD writes through the generic proxy: st.async, red.async
    filled: tuple[int, ...] = ()  #: accesses of bytes that stores may have written which are no operations
    #: Agent, position, and why, as above: accesses that may not happen, or not to all of these bytes.
    unsure: tuple[tuple[int, int, int], ...] = ()
    silent: tuple[int, ...] = ()  #: those of them that complete no phase of an mbarrier in what was not read
    work: tuple[Work, ...] = ()  #: what agents do between their barrier operations, by the line of an operation
    #: Barriers that several pipelines have, in words: for an author to read, and not part of its JSON form.
    overlaps: tuple[str, ...] = field(default=(), compare=False)
    #: What it leaves out of long loops; not part of its JSON form, which is then that of a beginning.
    laps: tuple[LeftOutLaps, ...] = field(default=(), compare=False)
    #: Which optional rules it is checked for: the caller says so, and its JSON form does not.
    strictness: Strictness = field(default=BY_ITSELF, compare=False)

    @property
    def operations(self) -> Iterator[Operation]:
        """Those of all agents, one agent after the other."""
        return chain.from_iterable(self.code)

    @cached_property
    def words_cta(self) -> int:
        """The last CTA, if it has no agents: its barriers are words of global memory, by which the others talk, each a
        cluster of its own; else -1.
        """
        last = self.ctas - 1
        return last if last and all(agent.cta != last for agent in self.agents) else -1

    def tile_of(self, access: Access) -> Tile | None:
        """The tile that an access begins in; None if it has no name."""
        for t in self.tiles:
            if (t.space, t.cta) == (access.space, access.cta) and 0 <= access.offset - t.offset < t.nbytes * t.slots:
                return t
        return None

    def agent_name(self, agent: int) -> str:
        """``role``, or ``role/index`` where the role has several agents in a CTA, with ``@cta`` in a cluster."""
        me = self.agents[agent]
        name = me.role if self._warps[me.role, me.cta] == 1 else f"{me.role}/{me.index}"
        return name if self.ctas == 1 else f"{name}@{me.cta}"

    @cached_property
    def _warps(self) -> Counter[tuple[str, int]]:
        return Counter((agent.role, agent.cta) for agent in self.agents)

    def at_rank(self, barrier: int, access: int, rank: int) -> tuple[int, int]:
        """The access at the same place in the CTA of this rank, where a multicast lands, and the barrier it signals.

        The barrier is at the same place there too; but if the copy names the one of the other CTA of the pair that the
        access is in, as ``.cta_group::2`` allows, then each landing signals the CTA of that parity in its own pair.
        """
        a, counted = self.accesses[access], self.barriers[barrier].cta
        signalled = rank if counted == a.cta else rank & ~1 | counted & 1
        return self.barrier_at_rank(barrier, signalled), self._index[Access(a.space, rank, a.offset, a.nbytes)]

    def barrier_at_rank(self, barrier: int, rank: int) -> int:
        """The barrier at the same place in the CTA of this rank."""
        b = self.barriers[barrier]
        return self._index[Barrier(rank, b.name, b.stage)]

    def counterpart(self, barrier: int, rank: int) -> int | None:
        """The same, None if the CTA of this rank has no such barrier: of a program that may be wrong."""
        b = self.barriers[barrier]
        return self._index.get(Barrier(rank, b.name, b.stage))

    @cached_property
    def _index(self) -> dict[Barrier | Access, int]:
        tables: tuple[tuple[Barrier | Access, ...], ...] = (self.barriers, self.accesses)
        return {entry: i for table in tables for i, entry in enumerate(table)}


class SourceInstruction(NamedTuple):
    """One instruction of the author's: the operation, its line, and what it is about: a group of barriers, a tile.

    Operations of a loop that have the same are the same instruction, executed again.
    """

    op: int
    line: str
    about: str


def instructions(program: ProgramData) -> tuple[tuple[SourceInstruction, ...], ...]:
    """The instruction of each operation of each agent."""
    tiles = [tile.name if (tile := program.tile_of(access)) else "" for access in program.accesses]
    made: dict[tuple[Operation, int], SourceInstruction] = {}
    found = []
    for code, lines in zip(program.code, program.lines, strict=True):
        mine = []
        for op, line in zip(code, lines, strict=True):
            known = made.get((op, line))
            if known is None:
                known = made[op, line] = SourceInstruction(op[0], program.sources[line], _subject(program, op, tiles))
            mine.append(known)
        found.append(tuple(mine))
    return tuple(found)


def _subject(program: ProgramData, op: Operation, tiles: list[str]) -> str:
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
