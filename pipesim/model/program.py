"""The flat program, version 1: what a protocol becomes and what every engine runs. Nothing assumes Python wrote it.

A program is one CTA (or one cluster); ``grid`` says how many independent copies a launch runs side by side.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

from pipesim.model.coverage import Assumption, Coverage, Strictness
from pipesim.model.groups import (
    ACCESS,
    BARRIER,
    DELAYED_ARRIVALS,
    ENGINE,
    ITEM,
    ON_BARRIER,
    ON_ENGINE,
    ON_NAMED_BARRIER,
    READS_MEMORY,
    SKIP,
    TOUCHES_MEMORY,
    WRITES_MEMORY,
)
from pipesim.model.ops import Engine, Op, Operation, Space, operand, operands, ranks
from pipesim.model.rules.validation import validate
from pipesim.model.rules.warp_shape import RegisterPools
from pipesim.model.tables import BLACKWELL, WARP_GROUP, ProgramData, SourceInstruction, Work, instructions

Written = tuple[int, int]  #: an access and the item that is left there


# Writes of one item to the same bytes by several agents: whatever their order, memory holds the same in the end.
#
# PTX calls two such writes a race as well, but none of its axioms lets a read tell which of them it sees, and kernels
# rely on it: every warp of a group stores the same address or the same scalar. A read must still come after them all.


def written_alike(code: Sequence[Sequence[Operation]]) -> Mapping[Written, int]:
    """What more than one agent writes, with how many operations write it."""
    by_agent = [Counter((op[ACCESS], op[ITEM]) for op in each if op[0] == Op.WRITE and op[ITEM] >= 0) for each in code]
    agents = Counter(written for each in by_agent for written in each)
    return {written: sum(each[written] for each in by_agent) for written, several in agents.items() if several > 1}


@dataclass(frozen=True)
class Program(ProgramData):
    """A valid flat program: its data, and what engines ask of it. ProgramFormatError for one that makes no sense."""

    def __post_init__(self) -> None:
        validate(self)

    def __repr__(self) -> str:
        """One line: a program in full is as long as its code."""
        operations = sum(map(len, self.code))
        return f"<Program {self.name}: {len(self.agents)} agents, {operations:,} operations>"

    @property
    def agent_ctas(self) -> int:
        """CTAs of a cluster, or those that are followed together, without the one of words of global memory."""
        return self.ctas if self.words_cta < 0 else self.words_cta

    @property
    def with_laps(self) -> Program:
        """The program as the whole kernel, where that is shown of the laps that it leaves out."""
        return replace(self, laps=(), coverage=replace(self.coverage, stopped=()))

    def is_word(self, barrier: int) -> bool:
        """Whether it is a word of global memory; one that agents of one CTA alone use is in that CTA: ``flags[0]``."""
        b = self.barriers[barrier]
        return self.words_cta >= 0 and (b.cta == self.words_cta or b.name.endswith("]"))

    def is_access_to_word(self, op: Operation) -> bool:
        """Whether it is part of an access to a word of global memory."""
        return self.words_cta >= 0 and op[0] in ON_BARRIER and op[BARRIER] >= 0 and self.is_word(op[BARRIER])

    def barrier_name(self, barrier: int) -> str:
        """``group[stage]``, with ``@cta`` in a cluster; ``flags[0]`` of a word, which is in no CTA with agents."""
        b = self.barriers[barrier]
        if self.is_word(barrier):
            return b.name if not b.stage else f"{b.name} again ({b.stage})"
        name = f"{b.name}[{b.stage}]"
        return name if self.ctas == 1 else f"{name}@{b.cta}"

    def access_name(self, access: int) -> str:
        """``tile[slot]`` if the range is exactly one slot, else with its bytes: ``tile[0] bytes 3072 to 4095``."""
        a = self.accesses[access]
        t = self.tile_of(a)
        if t is None:
            return f"{a.space.name.lower()} {_byte_range(a.offset, a.nbytes)}"
        number, inside = divmod(a.offset - t.offset, t.nbytes)
        slot = t.name if t.space is Space.GLOBAL and t.slots == 1 else f"{t.name}[{number}]"
        return slot if not inside and a.nbytes == t.nbytes else f"{slot} {_byte_range(inside, a.nbytes)}"

    def slot_of(self, access: int) -> int:
        """The slot of the tile that the access lies in, -1 if it lies in none."""
        tile = self.tile_of(self.accesses[access])
        return -1 if tile is None else (self.accesses[access].offset - tile.offset) // tile.nbytes

    def landings(self, copy: Operation) -> list[tuple[int, int]]:
        """The barrier and the access of each landing of a bulk copy: in each CTA of a multicast, else one."""
        barrier, access, mask = operands(copy, "barrier", "access", "cta_mask")
        return [self.at_rank(barrier, access, rank) for rank in ranks(mask)] or [(barrier, access)]

    def accesses_of(self, op: Operation) -> list[int]:
        """The accesses that an operation makes or puts under way: those of a multicast in every CTA of its mask."""
        if op[0] == Op.TMA_LOAD:
            return [access for _, access in self.landings(op)]
        return [operand(op, "access")] if op[0] in TOUCHES_MEMORY else []

    def commit_barriers(self, op: Operation) -> list[int]:
        """The barriers that an operation arrives on as a commit, one in each CTA of a multicast; none for a group."""
        if op[0] == Op.COMMIT_MULTICAST:
            return [self.barrier_at_rank(operand(op, "barrier"), rank) for rank in ranks(operand(op, "cta_mask"))]
        return [operand(op, "barrier")] if op[0] == Op.COMMIT and operand(op, "barrier") >= 0 else []

    def named_barrier(self, op: Operation) -> int:
        """The author's number of the named barrier that an operation is on, -1 for another operation."""
        return self.named_barriers[operand(op, "named_barrier")][1] if op[0] in ON_NAMED_BARRIER else -1

    def line(self, agent: int, pc: int) -> str:
        """The author's source line of an operation, "" past the end."""
        return self.sources[self.lines[agent][pc]] if pc < len(self.code[agent]) else ""

    @cached_property
    def counts_instructions(self) -> bool:
        """Whether its works say of all instructions between two operations what they are, as of a kernel's PTX."""
        return any(work.amount("instructions") for work in self.work)

    @cached_property
    def work_of_line(self) -> Mapping[int, Work]:
        """The work of each line that has any: an index of ``sources``."""
        return {each.line: each for each in self.work}

    @cached_property
    def instructions(self) -> tuple[tuple[SourceInstruction, ...], ...]:
        """For each agent and operation the instruction of the author's that it executes."""
        return instructions(self)

    def without(self, begin: Sequence[int], end: Sequence[int]) -> Program:
        """The same without the operations ``begin[a]..end[a]`` of each agent, to be run with what has come before them.

        Not validated: they are operations of a valid program. Marks of loops tell the iterations of the whole.
        """
        assert self._tensor_written is not None  # of the whole, before operations that write are left out
        rest = copy(self)
        for known in ("register_pools", "instructions", "ends"):  # they know where operations stand in the code
            vars(rest).pop(known, None)
        for table in ("code", "lines"):
            rows = zip(getattr(self, table), begin, end, strict=True)
            object.__setattr__(rest, table, tuple(row[:a] + row[b:] for row, a, b in rows))
        return rest

    def with_strictness(self, strictness: Strictness) -> Program:
        """The same program under other optional rules. Not validated again."""
        if strictness == self.strictness:
            return self
        same = copy(self)
        object.__setattr__(same, "strictness", strictness)
        return same

    def with_coverage(self, coverage: Coverage) -> Program:
        """The same program, said to leave this out. Not validated again."""
        same = copy(self)
        object.__setattr__(same, "coverage", coverage)
        return same

    @property
    def commits_in_order(self) -> bool:
        """True if commits of one thread are assumed to arrive in the order of their issue."""
        return Assumption.COMMITS not in self.strictness

    @cached_property
    def commits_again(self) -> bool:
        """True if an agent commits to an mbarrier on one engine by two instructions, whose arrivals have an order."""
        for code in self.code:
            arriving = [op for op in code if op[0] in DELAYED_ARRIVALS and operand(op, "barrier") >= 0]
            if len(arriving) > len({op[0] == Op.CP_ASYNC_ARRIVE or operand(op, "engine") for op in arriving}):
                return True
        return False

    @cached_property
    def fences_reads(self) -> bool:
        """True if what a thread has read has to be fenced before an asynchronous write: of sm_100 and later.

        On sm_90 the measured hardware does not need it, which is an assumption (docs/memory-order.md). Where no
        architecture is named, ``tcgen05`` tells that it is one of those that have it.
        """
        if self.architecture:
            return self.architecture >= BLACKWELL
        on_engine = any(op[0] in ON_ENGINE and op[ENGINE] == Engine.TCGEN05 for code in self.code for op in code)
        return on_engine or any(access.space == Space.TENSOR for access in self.accesses)

    @cached_property
    def cell_bounds(self) -> dict[int, int]:
        """The byte at which each cell begins; after the last cell of an access, the one at which that ends."""
        found: dict[int, int] = {}
        for access, (first, end) in zip(self.accesses, self.cells, strict=True):
            found |= {first: access.offset, end: access.offset + access.nbytes}
        return found

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
    def agents_of_cta(self) -> tuple[tuple[int, ...], ...]:
        """For each CTA its agents."""
        return tuple(tuple(a for a, agent in enumerate(self.agents) if agent.cta == cta) for cta in range(self.ctas))

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
        Of global memory, which others have written before the launch, and of what is ``filled``, if the reader names
        no item.
        """
        if self.accesses[access].space == Space.GLOBAL or access in self.filled:
            return item < 0
        if self.accesses[access].space != Space.TENSOR or Assumption.TENSOR_MEMORY in self.strictness:
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
    def written_alike(self) -> Mapping[Written, int]:
        """What several agents write to the same bytes, as (access, item), with how many operations do."""
        return written_alike(self.code)

    def alike(self, op: Operation) -> tuple[int, ...]:
        """What an operation writes as another agent does: access, item, and how many operations do; else ()."""
        times = self.written_alike.get((op[ACCESS], op[ITEM])) if op[0] == Op.WRITE else None
        return (op[ACCESS], op[ITEM], times) if times else ()

    @cached_property
    def register_pools(self) -> RegisterPools | None:
        """The registers of its CTAs, None if no agent may have to wait for some."""
        if not any(op[0] == Op.SETMAXNREG for code in self.code for op in code):
            return None
        pools = RegisterPools(self.agents, self.code, self.launch_registers)
        return pools if pools.may_block else None

    @cached_property
    def ends(self) -> tuple[int, ...]:
        """Where each agent has ended: after its code, and for one that was not read to its end at no place of it."""
        return tuple(len(code) + (a in self.cut) for a, code in enumerate(self.code))

    @cached_property
    def leaves_cluster_barrier(self) -> bool:
        """True if agents arrive at the cluster barrier unequally often: it does not wait for those that have ended."""
        arrivals = [sum(op[0] == Op.CLUSTER_ARRIVE for op in code) for code in self.code]
        most = max(arrivals, default=0)
        return any(each < most for a, each in enumerate(arrivals) if a not in self.cut) or any(
            any(skipped[0] == Op.CLUSTER_ARRIVE for skipped in code[pc + 1 : pc + 1 + op[SKIP]])
            for code in (self.code if most else ())
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
