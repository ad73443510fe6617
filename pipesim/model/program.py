"""The flat program, version 1: what a protocol becomes and what every engine runs. Nothing assumes Python wrote it.

A program is one CTA (or one cluster); ``grid`` says how many independent copies a launch runs side by side.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain

from pipesim.errors import ProgramFormatError
from pipesim.model.groups import ON_ENGINE, READS_MEMORY, REGISTER_OPTIONAL, WRITES_MEMORY
from pipesim.model.ops import (
    OPERANDS,
    Engine,
    Fence,
    Op,
    Operation,
    Order,
    Scope,
    Space,
    operand,
    semantics,
    with_operand,
)
from pipesim.model.positions import ASYNC_ACCESS, BARRIER, COMMIT_BARRIER, COMMIT_MASK, COPY_MASK, ENGINE, SKIP
from pipesim.model.register_pool import RegisterPools
from pipesim.model.strictness import BY_ITSELF, Strictness

PROGRAM_VERSION = 1
MAX_REGISTERS = 1 << 16
MAX_THREAD_REGISTERS = 256  #: of the hardware, for one thread
ALL_LANES = (1 << 32) - 1
NAMED_BARRIERS = 16
MAX_CLUSTER = 16  #: CTAs of the largest cluster (CUDA programming guide; more than 8 must be asked for)
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
    named_barriers: tuple[tuple[int, int], ...] = ()  #: (CTA, hardware id 0..15) of each named barrier used
    loops: tuple[str, ...] = ()
    registers: int = 0  #: registers of each agent
    ctas: int = 1  #: CTAs in the cluster that the program is
    grid: int = 1
    smem_bytes: int = 0  #: shared memory of one CTA, barriers included
    version: int = PROGRAM_VERSION
    notes: tuple[str, ...] = field(default=())  #: what the flattener added, in words
    pipelines: tuple[str, ...] = ()  #: pipeline structs that its roles made, by upstream's names
    launch_registers: int = 0  #: registers of each thread at the launch, 0 if not known
    #: Which optional rules it is checked for: whoever asks says so, and its JSON form does not.
    strictness: Strictness = field(default=BY_ITSELF, compare=False)

    def __post_init__(self) -> None:
        _validate(self)

    def __repr__(self) -> str:
        """One line: a program in full is as long as its code."""
        operations = sum(map(len, self.code))
        return f"<Program {self.name}: {len(self.agents)} agents, {operations:,} operations>"

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
        """``tile[slot]`` if the range is exactly one slot, else with its bytes: ``tile[0] bytes 3072 to 4095``."""
        a = self.accesses[access]
        for t in self.tiles:
            inside = a.offset - t.offset
            if (t.space, t.cta) == (a.space, a.cta) and 0 <= inside < t.nbytes * t.slots:
                whole = inside % t.nbytes == 0 and a.nbytes == t.nbytes
                slot = f"{t.name}[{inside // t.nbytes}]"
                return slot if whole else f"{slot} {_byte_range(inside % t.nbytes, a.nbytes)}"
        return f"{a.space.name.lower()} {_byte_range(a.offset, a.nbytes)}"

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

    def without(self, begin: Sequence[int], end: Sequence[int]) -> Program:
        """The same without the operations ``begin[a]..end[a]`` of each agent, to be run with what has come before them.

        Not validated: they are operations of a valid program. Marks of loops tell the iterations of the whole.
        """
        assert self._tensor_written is not None  # of the whole, before operations that write are left out
        rest = copy(self)
        vars(rest).pop("register_pools", None)  # it knows where requests stand in the code
        for table in ("code", "lines"):
            rows = zip(getattr(self, table), begin, end, strict=True)
            object.__setattr__(rest, table, tuple(row[:a] + row[b:] for row, a, b in rows))
        return rest

    def judged(self, strictness: Strictness) -> Program:
        """The same program under other optional rules. Not validated again."""
        if strictness == self.strictness:
            return self
        same = copy(self)
        object.__setattr__(same, "strictness", strictness)
        return same

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
    def cell_ctas(self) -> tuple[int, ...]:
        """For each cell that an access covers the CTA in whose memory it is; -1 for cells between accesses."""
        ctas = [-1] * self.cell_count
        for access, (first, end) in zip(self.accesses, self.cells, strict=True):
            ctas[first:end] = [access.cta] * (end - first)
        return tuple(ctas)

    @cached_property
    def warp_groups(self) -> tuple[tuple[int, ...], ...]:
        """For each agent the agents that issue its wgmmas with it: those of its warp group, itself among them."""
        members: dict[tuple[int, int], list[int]] = {}
        for a, agent in enumerate(self.agents):
            if any(op[0] in ON_ENGINE and op[ENGINE] == Engine.WGMMA for op in self.code[a]):
                members.setdefault((agent.cta, agent.warp // WARP_GROUP), []).append(a)
        return tuple(tuple(members.get((agent.cta, agent.warp // WARP_GROUP), ())) for agent in self.agents)

    def may_hold_nothing(self, access: int, item: int) -> bool:
        """True if a read of this access may find bytes that nothing has written: of tensor memory, if the reader names
        no item, or if no operation of the program ever writes there. A note then, unless the rule is asked for.
        """
        if self.accesses[access].space != Space.TENSOR or self.strictness.tensor_memory:
            return False
        return item < 0 or self._tensor_written.isdisjoint(range(*self.cells[access]))

    @cached_property
    def reads_tensor_memory(self) -> bool:
        """True if an operation reads tensor memory."""
        tensor = {i for i, access in enumerate(self.accesses) if access.space == Space.TENSOR}
        return bool(tensor) and any(
            op[0] in READS_MEMORY and operand(op, "access") in tensor for code in self.code for op in code
        )

    @cached_property
    def _tensor_written(self) -> frozenset[int]:
        """The cells of tensor memory that an operation of the program writes."""
        written = {operand(op, "access") for code in self.code for op in code if op[0] in WRITES_MEMORY}
        tensor = (a for a in written if self.accesses[a].space == Space.TENSOR)
        return frozenset(cell for a in tensor for cell in range(*self.cells[a]))

    @cached_property
    def register_pools(self) -> RegisterPools | None:
        """The registers of its CTAs, None if no agent may have to wait for some."""
        if not any(op[0] == Op.SETMAXNREG for code in self.code for op in code):
            return None
        pools = RegisterPools(self.agents, self.code, self.launch_registers)
        return pools if pools.may_block else None

    @cached_property
    def leaves_cluster_barrier(self) -> bool:
        """True if agents arrive at the cluster barrier unequally often: it does not wait for those that have ended."""
        arrivals = {sum(op[0] == Op.CLUSTER_ARRIVE for op in code) for code in self.code}
        return len(arrivals) > 1 or any(
            any(skipped[0] == Op.CLUSTER_ARRIVE for skipped in code[pc + 1 : pc + 1 + op[SKIP]])
            for code in (self.code if arrivals != {0} else ())
            for pc, op in enumerate(code)
            if op[0] == Op.JUMP_IF
        )

    @cached_property
    def cell_count(self) -> int:
        """How many cells there are (one spare after each memory's last bound)."""
        return max((end for _, end in self.cells), default=0)


def _byte_range(first: int, nbytes: int) -> str:
    """``bytes 3072 to 4095``: the first and the last of them, as a person would say it."""
    return f"byte {first}" if nbytes == 1 else f"bytes {first} to {first + nbytes - 1}"


def _validate(program: Program) -> None:
    if not len(program.agents) == len(program.code) == len(program.lines):
        raise ProgramFormatError(
            f"{program.name}: {len(program.agents)} agents, {len(program.code)} lists of operations, "
            f"{len(program.lines)} lists of lines",
            correction="give one list of each for every agent",
        )
    wrong = _wrong_tables(program)
    if wrong:
        raise ProgramFormatError(f"{program.name}: {wrong}")
    for a, (code, lines) in enumerate(zip(program.code, program.lines, strict=True)):
        if len(code) != len(lines) or (lines and not 0 <= min(lines) <= max(lines) < len(program.sources)):
            raise ProgramFormatError(
                f"{program.name}: agent {a} does not have one valid source line for each operation"
            )
    limits = _limits(program)
    for a, code in enumerate(program.code):
        if _all_right(program, code, limits):
            continue
        for pc, operation in enumerate(code):
            wrong = _wrong_operation(program, operation, limits, len(code) - pc)
            if wrong:
                raise ProgramFormatError(wrong, place=_place(program, a, pc))


def _place(program: Program, agent: int, pc: int) -> str:
    return f"{program.name}: agent {agent}, operation {pc}: {program.code[agent][pc]} ({program.line(agent, pc)})"


def _wrong_tables(program: Program) -> str:
    """What is wrong with the side tables, "" if nothing is."""
    if not 1 <= program.ctas <= MAX_CLUSTER or program.grid < 1:
        return f"{program.ctas} CTAs, {program.grid} copies: 1 to {MAX_CLUSTER} and at least 1 are possible"
    if not 0 <= program.registers <= MAX_REGISTERS:
        return f"{program.registers} registers: 0 to {MAX_REGISTERS} are possible"
    if not 0 <= program.launch_registers <= MAX_THREAD_REGISTERS:
        return f"{program.launch_registers} registers a thread: 0 (not known) to {MAX_THREAD_REGISTERS} are possible"
    if program.smem_bytes < 0:
        return f"{program.smem_bytes} bytes of shared memory"
    for i, agent in enumerate(program.agents):
        if not 1 <= agent.lanes <= ALL_LANES:
            return f"agent {i} has lanes {agent.lanes:#x} of a warp's 32"
    for i, (_, number) in enumerate(program.named_barriers):
        if not 0 <= number < NAMED_BARRIERS:
            return f"named barrier {i} has number {number}; a CTA has 0 to {NAMED_BARRIERS - 1}"
    for i, access in enumerate(program.accesses):
        if access.offset < 0 or access.nbytes < 1:
            return f"access {i} is {access.nbytes} bytes at {access.offset}"
    for tile in program.tiles:
        if tile.offset < 0 or tile.nbytes < 1 or tile.slots < 1:
            return f"tile {tile.name} is {tile.slots} slots of {tile.nbytes} bytes at {tile.offset}"
    return _wrong_rank(program)


def _wrong_rank(program: Program) -> str:
    """What lies in a CTA that the cluster does not have, "" if nothing does."""
    ranks = [
        *((f"agent {i}", x.cta) for i, x in enumerate(program.agents)),
        *((f"barrier {i}", x.cta) for i, x in enumerate(program.barriers)),
        *((f"access {i}", x.cta) for i, x in enumerate(program.accesses)),
        *((f"tile {x.name}", x.cta) for x in program.tiles),
        *((f"named barrier {i}", cta) for i, (cta, _) in enumerate(program.named_barriers)),
    ]
    for what, cta in ranks:
        if not 0 <= cta < program.ctas:
            return f"{what} is in CTA {cta} of {program.ctas}"
    return ""


_UNBOUNDED = 1 << 62


def _limits(program: Program) -> dict[Op, tuple[tuple[str, int, int], ...]]:
    """For each operation its operands: name, least and largest value. Counts are free: wrong ones are the machine's."""
    least = {"bytes": 0, "expect": 0, "groups": 0, "cycles": 0, "trips": 0, "registers": 0, "lanes": 1, "item": -1}
    most = {
        "barrier": len(program.barriers) - 1,
        "access": len(program.accesses) - 1,
        "named_barrier": len(program.named_barriers) - 1,
        "register": program.registers - 1,
        "state_register": program.registers - 1,
        "loop": len(program.loops) - 1,
        "parity": 1,
        "noinc": 1,
        "engine": max(Engine),
        "fence": max(Fence),
        "semantics": semantics(Order.ACQ_REL, Scope.SYS),
        "cta_mask": (1 << program.ctas) - 1,
    }

    def bounds(op: Op, name: str) -> tuple[str, int, int]:
        low = least.get(name, 0 if name in most else -_UNBOUNDED)
        if (name == "register" and op in REGISTER_OPTIONAL) or (name == "barrier" and op == Op.COMMIT):
            low = -1
        if name == "item" and op in WRITES_MEMORY:
            low = 0
        return name, low, most.get(name, _UNBOUNDED)

    return {op: tuple(bounds(op, name) for name in names) for op, names in OPERANDS.items()}


def _all_right(
    program: Program, code: tuple[Operation, ...], limits: dict[Op, tuple[tuple[str, int, int], ...]]
) -> bool:
    """True only if :func:`_wrong_operation` finds nothing: the operations of a kind together, operand by operand."""
    kinds: defaultdict[int, list[Operation]] = defaultdict(list)
    for operation in code:
        if not operation:
            return False
        kinds[operation[0]].append(operation)
    if not kinds.keys() <= limits.keys():
        return False
    for kind, operations in kinds.items():
        op = Op(kind)
        width = len(limits[op]) + 1
        values = list(chain.from_iterable(operations))
        if set(map(len, operations)) != {width} or set(map(type, values)) != {int}:
            return False
        for at, (name, low, high) in enumerate(limits[op], 1):
            operand = set(values[at::width])
            if min(operand) < low or max(operand) > high:
                return False
            if name == "semantics" and any(value % 8 > Scope.SYS for value in operand):
                return False
        if any(_wrong_operation(program, each, limits, 1) for each in _with_a_mask(op, operations)):
            return False
    return Op.JUMP_IF not in kinds or all(
        0 <= operation[SKIP] < len(code) - pc for pc, operation in enumerate(code) if operation[0] == Op.JUMP_IF
    )


def _with_a_mask(op: Op, operations: list[Operation]) -> set[Operation]:
    """Those that name a place in every CTA of a mask, where there must be something; all items as one."""
    if op == Op.TMA_LOAD:
        return {with_operand(each, "item", 0) for each in operations if each[COPY_MASK]}
    return set(operations) if op == Op.COMMIT_MULTICAST else set()


def _wrong_operation(
    program: Program, operation: Operation, limits: dict[Op, tuple[tuple[str, int, int], ...]], left: int
) -> str:
    """What is wrong with an operation, "" if nothing is."""
    try:
        op = Op(operation[0])
    except (ValueError, IndexError):
        return f"this is not an operation of version {PROGRAM_VERSION}"
    wanted = limits[op]
    if len(wanted) != len(operation) - 1 or not all(type(value) is int for value in operation):
        return f"{op.name} takes {len(wanted)} integers: {', '.join(OPERANDS[op])}"
    for (name, low, high), value in zip(wanted, operation[1:], strict=True):
        if not low <= value <= high:
            return _out_of_range(op, name, value, low, high)
        if name == "semantics" and value % 8 > Scope.SYS:
            return f"semantics {value}: there is no scope {value % 8}"
    if op == Op.JUMP_IF and not 0 <= operation[SKIP] < left:
        return f"a jump over {operation[SKIP]} operations leaves the program: a jump goes forward, at most to the end"
    if op == Op.TMA_LOAD and operation[COPY_MASK]:
        return _wrong_multicast(program, operation)
    if op == Op.COMMIT_MULTICAST:
        return _wrong_commit(program, operation)
    return ""


def _out_of_range(op: Op, name: str, value: int, low: int, high: int) -> str:
    if name in {"barrier", "access", "named_barrier", "register", "state_register", "loop"}:
        return f"{op.name}: {name} {value} is outside the table of {high + 1}"
    return f"{op.name}: {name} {value} is outside {low}..{high if high < _UNBOUNDED else ''}"


def _wrong_commit(program: Program, operation: Operation) -> str:
    barrier, mask = operation[COMMIT_BARRIER], operation[COMMIT_MASK]
    if not mask:
        return "COMMIT_MULTICAST: an empty mask signals no CTA"
    for rank in range(program.ctas):
        if mask >> rank & 1:
            try:
                program.barrier_at_rank(barrier, rank)
            except KeyError:
                return f"the commit to CTA {rank} has no barrier at the same offset there"
    return ""


def _wrong_multicast(program: Program, operation: Operation) -> str:
    barrier, access, mask = operation[BARRIER], operation[ASYNC_ACCESS], operation[COPY_MASK]
    signalled, issued = program.barriers[barrier].cta, program.accesses[access].cta
    if signalled // 2 != issued // 2:
        return f"the multicast from CTA {issued} signals CTA {signalled}, which is not of the same pair"
    for rank in range(program.ctas):
        if mask >> rank & 1:
            try:
                program.at_rank(barrier, access, rank)
            except KeyError:
                return f"the multicast to CTA {rank} has no barrier or no access at the same offset there"
    return ""
