"""What each operation and each transfer touches, as sets of the parts of a state: the ground of memory and reduction.

Two moves of different processes, none of which writes what the other touches, can be exchanged: neither notices the
other. A range of memory is written by whoever changes it or opens it to write, and read by whoever looks at it or
opens it to read; both also when they close it again.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from pipesim.model.groups import (
    ACCESSES,
    ANSWER,
    ASKS,
    ASYNC_ACCESS,
    BARRIER,
    CHANGES_PHASE,
    CLUSTER,
    COMMIT_BARRIER,
    COPY_MASK,
    DELAYED_ARRIVALS,
    ENGINE,
    NAMED_BARRIER,
    NOINC,
    ON_NAMED_BARRIER,
    READS_MEMORY,
    SKIP,
    THREADS,
    TOKEN,
)
from pipesim.model.machine import TMA, Flight
from pipesim.model.ops import IN_ORDER, Engine, Op, Operation, Space
from pipesim.model.program import Program
from pipesim.model.rules.sync import WARP
from pipesim.prove.search.parts import Local, Parts, engines


class Touch(NamedTuple):
    """Bit masks of parts: what others can notice being ``read``, ``written`` or ``added`` to.

    Arrivals at a barrier add: they can be exchanged as long as no phase ends between them. ``looks`` holds what the
    outcome also depends on and no agent notices: what only its own agent changes, and the transfers under way, whose
    accesses count as those of their cells.
    """

    reads: int = 0
    writes: int = 0
    adds: int = 0
    looks: int = 0

    def join(self, other: Touch) -> Touch:
        """What either touches."""
        return Touch(
            self.reads | other.reads, self.writes | other.writes, self.adds | other.adds, self.looks | other.looks
        )

    def noticed(self, other: Touch) -> bool:
        """True if one writes, or adds to, what the other touches; that both add to it does not count."""
        return bool(
            (self.writes & (other.reads | other.writes | other.adds))
            | (other.writes & (self.reads | self.adds))
            | (self.reads & other.adds)
            | (self.adds & other.reads)
        )


NOTHING = Touch()


class Footprints:
    """What the operations and the transfers of one program touch."""

    def __init__(self, program: Program, parts: Parts) -> None:
        self._program = program
        self._parts = parts
        self._agreed = _agreed_barriers(program)
        self._open = {part: self._ever_open(*who) for who, part in parts.flights.items()}
        self.operations = [[self._operation(a, pc) for pc in range(len(c))] for a, c in enumerate(program.code)]
        self.issued = [[self._issued_touch(a, op) for op in code] for a, code in enumerate(program.code)]

    def of_agent(self, agent: int, local: Local) -> Touch:
        """The next operation of an agent that has not ended."""
        touch = self.operations[agent][local.pc]
        op = self._program.code[agent][local.pc]
        if op[0] == Op.BAR_SYNC and local.hold:  # it has arrived, and looks whether it may continue
            named = _bits([self._parts.named[op[NAMED_BARRIER]]])
            return touch._replace(reads=named, writes=touch.writes & ~named, adds=0)
        if op[0] == Op.WAIT_UNLESS and op[ANSWER] >= 0 and local.registers[op[ANSWER]]:
            return touch._replace(reads=0)
        return touch

    def of_flight(self, flight: Flight) -> Touch:
        """The next landing of a transfer or commit under way."""
        op = self._program.code[flight.agent][flight.pc]
        cells = self._cells(range(flight.first, flight.end))
        memory = Touch(writes=cells) if flight.writes else Touch(reads=cells)
        memory = memory.join(Touch(looks=_bits([self._parts.flights[flight.agent, flight.engine]])))
        touch = memory.join(self._group(flight.agent, flight.engine, follows=flight.after > 0))
        if flight.barrier >= 0:
            touch = touch.join(self._signal(flight.agent, flight.barrier, adds=flight.engine != TMA))
        if flight.first == flight.end:
            return touch
        access = op[ASYNC_ACCESS]
        if op[0] == Op.TMA_LOAD and op[COPY_MASK]:
            access = self._program.at_rank(op[BARRIER], access, self._program.cell_ctas[flight.first])[1]
        return touch.join(self._reaches(flight.agent, access))

    def _operation(self, agent: int, pc: int) -> Touch:
        code = self._program.code[agent]
        op = code[pc]
        end = self._end(agent, pc, op)
        touch = self._rule(agent, op).join(end).join(self._own(agent, op))
        if op[0] == Op.BAR_SYNC and end.writes:  # whether it is the last to arrive decides when it ends
            return touch._replace(writes=touch.writes | touch.adds, adds=0)
        return touch

    def _rule(self, agent: int, op: Operation) -> Touch:
        """What the rule of this operation looks at and changes that others can notice."""
        parts = self._parts
        if op[0] in CHANGES_PHASE:
            return self._signal(agent, op[BARRIER])
        if op[0] == Op.ARRIVE:
            return self._signal(agent, op[BARRIER], adds=op[TOKEN] < 0)
        if op[0] in ASKS:
            return Touch(reads=_bits([parts.barriers[op[BARRIER]]]))
        if op[0] == Op.CP_ASYNC_ARRIVE:
            barrier = _bits([parts.barriers[op[BARRIER]]])
            return Touch(reads=barrier) if op[NOINC] else Touch(writes=barrier)
        if op[0] in ON_NAMED_BARRIER:
            named = _bits([parts.named[op[NAMED_BARRIER]]])
            return Touch(adds=named) if op[NAMED_BARRIER] in self._agreed else Touch(writes=named)
        if op[0] == Op.SETMAXNREG:
            return Touch(writes=_bits(parts.pools[self._program.agents[agent].cta :][:1]))
        if op[0] in CLUSTER and parts.gone:  # either may be the one that completes it without those who have ended
            return Touch(writes=_bits([parts.cluster, *parts.gone]))
        if op[0] == Op.CLUSTER_ARRIVE:
            return Touch(adds=_bits([parts.cluster]))
        if op[0] == Op.CLUSTER_WAIT:
            return Touch(reads=_bits([parts.cluster]))
        if op[0] == Op.COMMIT and op[COMMIT_BARRIER] < 0:
            return Touch(writes=_bits([parts.commits[agent]]))
        if op[0] == Op.WAIT_GROUP:
            return self._awaited_touch(agent, op[ENGINE])
        touch = NOTHING
        for access in self._program.accesses_of(op):
            touch = touch.join(self._access(agent, access, writes=op[0] not in READS_MEMORY))
        return touch

    def _own(self, agent: int, op: Operation) -> Touch:
        """The agent's own transfers and groups, where the operation adds to them or is one of them."""
        mine = [self._parts.flights[agent, engine] for engine in engines(op)]
        return Touch(
            looks=_bits([*mine, *([self._parts.commits[agent]] if mine and agent in self._parts.commits else [])])
        )

    def _end(self, agent: int, pc: int, op: Operation) -> Touch:
        """With its last operation an agent ends, and with the last of them its CTA."""
        last = len(self._program.code[agent])
        ends = pc + 1 == last or (op[0] == Op.JUMP_IF and pc + 1 + op[SKIP] == last)
        if not ends:
            return NOTHING
        running = self._parts.running[self._program.agents[agent].cta : self._program.agents[agent].cta + 1]
        looks = _bits([self._parts.cluster]) if self._parts.gone else 0  # whether it has arrived in this generation
        return Touch(writes=_bits([*running, *self._parts.gone]), looks=looks)

    def _issued_touch(self, agent: int, op: Operation) -> Touch:
        """Everything that the transfers and commits touch later which this operation puts under way."""
        if op[0] in ACCESSES:
            return NOTHING
        touch = NOTHING
        for engine in engines(op):
            follows = op[0] in DELAYED_ARRIVALS
            touch = touch.join(self._group(agent, engine, follows=follows))
        for barrier in signals(self._program, op):
            touch = touch.join(self._signal(agent, barrier, adds=op[0] != Op.TMA_LOAD))
        for access in self._program.accesses_of(op):
            touch = touch.join(self._access(agent, access, writes=op[0] not in READS_MEMORY))
        return touch

    def _signal(self, agent: int, barrier: int, *, adds: bool = False) -> Touch:
        cta = self._program.barriers[barrier].cta
        part = _bits([self._parts.barriers[barrier]])
        return (Touch(adds=part) if adds else Touch(writes=part)).join(self._outlives(agent, cta))

    def _access(self, agent: int, access: int, *, writes: bool) -> Touch:
        cells = self._cells(range(*self._program.cells[access]))
        looks = _bits(part for part, ever in self._open.items() if ever & cells)
        touch = Touch(writes=cells, looks=looks) if writes else Touch(reads=cells, looks=looks)
        return touch.join(self._reaches(agent, access))

    def _reaches(self, agent: int, access: int) -> Touch:
        memory = self._program.accesses[access]
        return NOTHING if memory.space == Space.GLOBAL else self._outlives(agent, memory.cta)

    def _outlives(self, agent: int, cta: int) -> Touch:
        """An operation on another CTA is a fault once that has ended."""
        if cta == self._program.agents[agent].cta:
            return NOTHING
        return Touch(reads=_bits([self._parts.running[cta]]))

    def _group(self, agent: int, engine: int, *, follows: bool) -> Touch:
        """The transfers of an agent on an engine, of which one lands. No agent asks whether a TMA load has.

        Who waits for others to have landed is the writer here, and who lands without waiting a reader: those can be
        exchanged with each other, and not with the ones that wait.
        """
        if engine not in Engine.__members__.values():
            return NOTHING
        group = _bits([self._parts.flights[agent, engine]])
        return Touch(writes=group) if follows or engine in IN_ORDER else Touch(reads=group)

    def _awaited_touch(self, agent: int, engine: int) -> Touch:
        """The transfers and the closed groups for which a WAIT_GROUP waits."""
        members = self._program.warp_groups[agent] if engine == Engine.WGMMA else (agent,)
        flights = [self._parts.flights[m, engine] for m in members if (m, engine) in self._parts.flights]
        return Touch(
            reads=_bits(self._parts.commits[m] for m in members if m in self._parts.commits), writes=_bits(flights)
        )

    def _cells(self, cells: Iterable[int]) -> int:
        return _bits(self._parts.cells[cell] for cell in cells)

    def _ever_open(self, agent: int, engine: int) -> int:
        """The cells that the agent's transfers on this engine, or its own accesses, ever hold open."""
        ops = [op for op in self._program.code[agent] if engine in engines(op)]
        held = [access for op in ops for access in self._program.accesses_of(op)]
        return self._cells({cell for access in held for cell in range(*self._program.cells[access])})


def _agreed_barriers(program: Program) -> frozenset[int]:
    """The named barriers for which every operation gives the same number of threads, and that a right one."""
    threads: dict[int, set[int]] = {}
    for op in program.operations:
        if op[0] in ON_NAMED_BARRIER:
            threads.setdefault(op[NAMED_BARRIER], set()).add(op[THREADS])
    return frozenset(n for n, given in threads.items() if len(given) == 1 and min(given) > 0 and not min(given) % WARP)


def signals(program: Program, op: Operation) -> list[int]:
    """The barriers that the transfers or commits which an operation puts under way will signal."""
    if op[0] == Op.TMA_LOAD:
        return [barrier for barrier, _ in program.landings(op)]
    return [op[BARRIER]] if op[0] == Op.CP_ASYNC_ARRIVE else program.commit_barriers(op)


def _bits(parts: Iterable[int]) -> int:
    mask = 0
    for part in parts:
        mask |= 1 << part
    return mask
