"""One run that stands for all schedules, and the reasons why it may not.

The program runs once, in the canonical order. For every agent this observer knows what *occurs before* its next
operation: how far it has seen the other agents go, and which phases it knows to be complete. If that relation holds
every arrival, wait and access in its place, each schedule makes the same phases of the same parts, and what this run
shows holds for all of them:

* a part of phase k+1 comes after the completion of phase k;
* a wait for phase k comes after the completion of phase k-1, and phase k+1, if it completes, needs something that comes
  after the wait has passed;
* what raises a count comes before an arrival of the same phase, so no phase completes without it;
* conflicting accesses are ordered.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pipesim.model.barrier import MAX_COUNT
from pipesim.model.machine import TMA, Flight, State, Step
from pipesim.model.ops import Engine, Op, Operation, Space
from pipesim.model.program import Program
from pipesim.prove.accesses import OWN, Access, Accesses
from pipesim.prove.clock import Clock
from pipesim.prove.doubt import Doubt, Why
from pipesim.prove.moves import PRIVATE
from pipesim.prove.snapshot import Marks, Snapshot

_UNSUPPORTED = frozenset({Op.INVAL, Op.ARRIVE_DROP, Op.ARRIVE_NO_COMPLETE, Op.WAIT_STATE, Op.TEST_STATE, Op.JUMP_IF,
                          Op.PENDING_COUNT})  # fmt: skip
_PASSED_OVER = PRIVATE - _UNSUPPORTED
_ON_BARRIER = frozenset({Op.ARRIVE, Op.EXPECT_TX, Op.COMPLETE_TX, Op.WAIT, Op.WAIT_UNLESS, Op.TRY_WAIT, Op.TEST_WAIT,
                         Op.CP_ASYNC_ARRIVE})  # fmt: skip
_TRANSFERS = frozenset({Op.TMA_LOAD, Op.TRANSFER_READ, Op.TRANSFER_WRITE, Op.COMMIT, Op.COMMIT_MULTICAST,
                        Op.CP_ASYNC_ARRIVE})  # fmt: skip


@dataclass
class _Open:
    """The open phase of a channel: what occurs before its parts, and before its arrivals alone."""

    parts: Clock
    arrivals: Clock
    raises: list[tuple[int, int]] = field(default_factory=list)
    expected: int = 0
    landed: int = 0


class _Remote(NamedTuple):
    """A part of a phase of a barrier in another CTA: of an operation, or of a flight (0: none) on this engine."""

    bar: int
    phase: int
    agent: int
    pc: int
    flight: int
    engine: int


@dataclass
class _Try:
    """A try whose answer an agent holds: what it asked, the phase it would have seen, and whether it has."""

    barrier: int
    parity: int
    pc: int
    known: int
    phase: int
    passed: bool


def awaited(program: Program) -> frozenset[tuple[int, int]]:
    """The (agent, engine) whose groups somebody waits for: the agent, or for a wgmma any of its warp group."""
    waits = {(a, op[1]) for a, code in enumerate(program.code) for op in code if op[0] == Op.WAIT_GROUP}
    groups = {(member, engine) for a, engine in waits if engine == Engine.WGMMA for member in program.warp_groups[a]}
    return frozenset(waits | groups)


def _all(clocks: list[Clock]) -> tuple[int, ...]:
    """The operations of each agent that one of the clocks has seen."""
    return tuple(map(max, *(clock.seen for clock in clocks))) if len(clocks) > 1 else tuple(clocks[0].seen)


def _afar(program: Program, access: Access) -> int:
    """The other CTA whose memory the access is to, -1 if none; a multicast lands where its barrier is."""
    op = program.code[access.agent][access.pc]
    if op[0] == Op.TMA_LOAD and op[5]:
        return -1
    memory = program.accesses[op[1] if op[0] in (Op.READ, Op.WRITE) else op[2]]
    away = memory.cta != program.agents[access.agent].cta and memory.space != Space.GLOBAL
    return memory.cta if away else -1


def _mark(marks: Marks, clock: Clock) -> None:
    marks.operations += enumerate(clock.seen)
    marks.phases += enumerate(clock.known)


class Certificate:
    """Watches one run; once it is over and :meth:`close` was called, it stands for all if ``doubts`` is empty."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._channels = len(program.barriers) + len(program.named_barriers) + 1
        self._nothing = Clock((0,) * len(program.agents), (0,) * self._channels)
        self._clocks = [self._nothing] * len(program.agents)  # of others: how far itself has come each agent knows
        self._open = [_Open(self._nothing, self._nothing) for _ in range(self._channels)]
        self._done: list[list[Clock]] = [[] for _ in range(self._channels)]
        self._saw: list[list[tuple[int, int]]] = [[] for _ in range(self._channels)]  # waits for the latest phase
        self._inits: dict[int, tuple[int, int]] = {}
        self._joined: dict[tuple[int, int], int] = {}  # (agent, channel) → generation it has arrived in
        self._tries: dict[tuple[int, int], _Try] = {}
        self._issued: dict[int, tuple[Clock, Flight]] = {}
        self._flown: dict[tuple[int, int], list[Flight]] = {}  # by agent and engine: transfers nobody has waited for
        self._closed: dict[tuple[int, int], list[Clock]] = {}  # by agent and engine: when each group was closed
        self._waited: dict[tuple[int, int], int] = {}  # by agent and engine: groups that it has waited for
        self._awaited = awaited(program)
        self._accesses = Accesses()
        self._remote: list[_Remote] = []
        self._afar: list[tuple[int, Access]] = []  # accesses to the memory of another CTA, and that CTA
        self._doubts: dict[Doubt, None] = {}

    def fork(self, program: Program) -> Certificate:
        """The same for another program, which has the same tables and began with the same operations."""
        twin = Certificate(program)
        twin._clocks = self._clocks.copy()
        twin._open = [replace(phase, raises=phase.raises.copy()) for phase in self._open]
        twin._done = [done.copy() for done in self._done]
        twin._saw = [saw.copy() for saw in self._saw]
        twin._inits = self._inits.copy()
        twin._joined = self._joined.copy()
        twin._tries = self._tries.copy()
        twin._issued = self._issued.copy()
        twin._flown = {key: flights.copy() for key, flights in self._flown.items()}
        twin._closed = {key: clocks.copy() for key, clocks in self._closed.items()}
        twin._waited = self._waited.copy()
        twin._nothing = self._nothing
        twin._accesses = self._accesses.fork()
        twin._remote = self._remote.copy()
        twin._afar = self._afar.copy()
        twin._doubts = self._doubts.copy()
        return twin

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Every reason once, in the order in which they were met."""
        return tuple(self._doubts)

    def close(self) -> None:
        """The run is over: judge the phases that have not completed, and what came to a CTA that may have ended."""
        for channel in range(len(self._program.barriers)):
            self._judge(channel)
        for remote in self._remote:
            ends = self._ends(self._program.barriers[remote.bar].cta)
            if ends and not any(self._knows(clock, remote) for clock in ends):
                self._doubt(Doubt(Why.EXIT, remote.agent, remote.pc, _all(ends), where=remote.bar))
        for cta, access in self._afar:
            ends = self._ends(cta)
            if ends and not any(self._accesses.over(clock, access) for clock in ends):
                self._doubt(Doubt(Why.EXIT, access.agent, access.pc, _all(ends)))

    def _ends(self, cta: int) -> list[Clock]:
        """What each agent of a CTA knows at its end. A CTA without agents has none, and never exits."""
        return [self._clocks[a].after(a, len(self._program.code[a]) - 1) for a in self._of_cta(cta)]

    def _knows(self, clock: Clock, remote: _Remote) -> bool:
        """True if this part of a phase occurs before the moment."""
        if clock.known[remote.bar] > remote.phase:
            return True
        if not remote.flight:
            return clock.covers(remote.agent, remote.pc)
        return self._accesses.committed_since(clock, remote.agent, remote.engine, remote.flight)

    def snapshot(self) -> Snapshot:
        """Where this observer stands: everything that it may yet compare, and nothing that grows with the run."""
        marks = Marks()
        for clock in self._clocks:
            _mark(marks, clock)
        for channel in range(self._channels):
            self._mark_channel(marks, channel)
        for (agent, channel), generation in sorted(self._joined.items()):
            marks.shape += (agent, channel, generation < len(self._done[channel]))
            marks.phases.append((channel, generation))
            if generation < len(self._done[channel]):
                _mark(marks, self._done[channel][generation])
        for (agent, register), asked in sorted(self._tries.items()):
            marks.shape += (agent, register, asked.barrier, asked.parity, asked.passed)
            marks.operations.append((agent, asked.pc))
            marks.phases += ((asked.barrier, asked.known), (asked.barrier, asked.phase))
        for clock, flight in self._issued.values():
            _mark(marks, clock)
            marks.operations.append((flight.agent, flight.pc))
        self._mark_groups(marks)
        self._mark_remote(marks)
        self._accesses.mark(marks)
        marks.operations += sorted(self._inits.values())
        return marks.snapshot()

    def _mark_channel(self, marks: Marks, channel: int) -> None:
        done, phase = self._done[channel], self._open[channel]
        marks.phases.append((channel, len(done)))
        if done:
            _mark(marks, done[-1])
        for clock in (phase.parts, phase.arrivals):
            marks.shape.append(clock is self._nothing)
            _mark(marks, clock)
        marks.shape += (bool(done), phase.expected, phase.landed, len(phase.raises), len(self._saw[channel]))
        marks.operations += phase.raises
        marks.operations += self._saw[channel]

    def _mark_groups(self, marks: Marks) -> None:
        """Groups that somebody may yet wait for, counted back from the last one closed."""
        for agent, engine in sorted(self._awaited):
            closed, flown = self._closed.get((agent, engine), []), self._of(agent, engine)
            members = self._program.warp_groups[agent] if engine == Engine.WGMMA else (agent,)
            waited = [self._waited.get((member, engine), 0) for member in members]
            first = max(min(waited) - 1, 0)
            marks.shape += (agent, engine, len(flown), *(len(closed) - least for least in waited))
            for clock in closed[first:]:
                _mark(marks, clock)
            for flight in flown:
                marks.shape.append(len(closed) - flight.group)
                marks.operations.append((flight.agent, flight.pc))

    def _mark_remote(self, marks: Marks) -> None:
        """Parts of phases in other CTAs of which their CTA does not know yet: what it knows once it knows for good."""
        self._remote = [
            remote
            for remote in self._remote
            if not any(
                self._knows(self._clocks[a], remote) for a in self._of_cta(self._program.barriers[remote.bar].cta)
            )
        ]
        self._afar = [
            (cta, access)
            for cta, access in self._afar
            if not any(self._accesses.over(self._clocks[a], access) for a in self._of_cta(cta))
        ]
        for cta, access in self._afar:
            marks.shape += (cta, access.flight > 0, access.engine)
            marks.operations.append((access.agent, access.pc))
            if access.flight:
                self._accesses.mark_end(marks, access.agent, access.engine, access.flight)
        for remote in self._remote:
            marks.shape += (remote.bar, remote.flight > 0, remote.engine)
            marks.phases.append((remote.bar, remote.phase))
            marks.operations.append((remote.agent, remote.pc))
            if remote.flight:
                self._accesses.mark_end(marks, remote.agent, remote.engine, remote.flight)

    def _of_cta(self, cta: int) -> list[int]:
        """The agents of a CTA."""
        return [a for a, agent in enumerate(self._program.agents) if agent.cta == cta]

    # watching

    def stepped(self, before: State, agent: int, result: Step) -> None:
        """An agent moved, or was blocked."""
        pc = before.pcs[agent]
        op = self._program.code[agent][pc]
        if op[0] == Op.BAR_SYNC and not before.holds[agent]:
            self._arrive_at(len(self._program.barriers) + op[1], agent, pc, result)
        if result.state.pcs[agent] == pc:
            return
        if op[0] not in _PASSED_OVER:
            self._moved(before, agent, pc, op, result)

    def landed(self, flight: Flight, nbytes: int, result: Step) -> None:
        """A transfer delivered its bytes, or the arrival that it stands for."""
        clock, _ = self._issued.pop(flight.sequence)
        if flight.barrier < 0:
            return
        bar, phases = flight.barrier, len(self._done[flight.barrier]) + 1
        self._part(bar, clock, flight.agent, flight.pc, (flight.sequence, flight.engine))
        if flight.engine == TMA:
            self._open[bar].landed += nbytes
            self._accesses.landed(flight.sequence, bar, phases)
        else:
            op = self._program.code[flight.agent][flight.pc]
            if op[0] != Op.CP_ASYNC_ARRIVE or op[3]:  # else it only takes back what it raised
                self._open[bar].arrivals = self._open[bar].arrivals.join(clock)
            self._accesses.committed(flight.agent, flight.engine, flight.sequence, bar, phases)
        self._complete(bar, result)

    def _moved(self, before: State, agent: int, pc: int, op: Operation, result: Step) -> None:
        code = op[0]
        if code in _UNSUPPORTED:
            self._doubt(Doubt(Why.UNSUPPORTED, agent, pc))
        elif code == Op.INIT:
            if op[1] in self._inits:
                self._doubt(Doubt(Why.UNSUPPORTED, agent, pc))
            self._inits[op[1]] = (agent, pc)
        if code in _ON_BARRIER:
            self._require_published(op[1], agent, pc)
        if code in (Op.ARRIVE, Op.EXPECT_TX, Op.COMPLETE_TX):
            self._contribute(agent, pc, op, result)
        elif code in (Op.WAIT, Op.WAIT_UNLESS):
            self._wait(before, agent, pc, op)
        elif code in (Op.TRY_WAIT, Op.TEST_WAIT):
            self._try(agent, pc, op, result)
        elif code in (Op.BAR_ARRIVE, Op.CLUSTER_ARRIVE):
            self._arrive_at(self._channel_of(op), agent, pc, result)
        elif code in (Op.BAR_SYNC, Op.CLUSTER_WAIT):
            channel = self._channel_of(op)
            self._see(agent, channel, self._joined.pop((agent, channel), -1))  # -1: it waits without having arrived
        elif code in (Op.READ, Op.WRITE):
            first, end = self._program.cells[op[1]]
            clock = self._clocks[agent]
            self._access(clock, Access(agent, pc, code == Op.WRITE, OWN, -1, clock.seen), first, end)
        elif code == Op.WAIT_GROUP:
            self._wait_group(before, agent, pc, op)
        if code in _TRANSFERS:
            self._issue(before, agent, pc, op, result)
        if code == Op.COMMIT and op[2] < 0 and (agent, op[1]) in self._awaited:
            self._closed.setdefault((agent, op[1]), []).append(self._clocks[agent].after(agent, pc))

    # parts of phases

    def _contribute(self, agent: int, pc: int, op: Operation, result: Step) -> None:
        bar = op[1]
        clock = self._clocks[agent].after(agent, pc)
        self._part(bar, clock, agent, pc)
        phase = self._open[bar]
        if op[0] == Op.ARRIVE:
            phase.arrivals = clock if phase.arrivals is self._nothing else phase.arrivals.join(clock)
            phase.expected += op[3]
        elif op[0] == Op.EXPECT_TX:
            phase.raises.append((agent, pc))
            phase.expected += op[2]
        else:
            phase.landed += op[2]
        self._complete(bar, result)

    def _part(self, channel: int, clock: Clock, agent: int, pc: int, flight: tuple[int, int] = (0, 0)) -> None:
        """Something is counted in the open phase: it must not be possible that it comes in the one before."""
        phase = self._open[channel]
        if clock.known[channel] < len(self._done[channel]):
            self._doubt(Doubt(Why.EARLY_PART, agent, pc, clock.seen, where=channel))
        barriers = self._program.barriers
        if channel < len(barriers) and barriers[channel].cta != self._program.agents[agent].cta:
            self._remote.append(_Remote(channel, len(self._done[channel]), agent, pc, *flight))
        phase.parts = clock if phase.parts is self._nothing else phase.parts.join(clock)

    def _complete(self, channel: int, result: Step) -> None:
        if result.signalled != channel:
            return
        self._judge(channel)
        parts = self._open[channel].parts
        for agent, pc in self._saw[channel]:
            if not parts.covers(agent, pc):
                self._doubt(Doubt(Why.LAP, agent, pc, parts.seen, where=channel))
        self._done[channel].append(parts.knowing(channel, len(self._done[channel]) + 1))
        self._saw[channel] = []
        self._open[channel] = _Open(self._nothing, self._nothing)

    def _judge(self, bar: int) -> None:
        phase = self._open[bar]
        for agent, pc in phase.raises:
            if not phase.arrivals.covers(agent, pc):
                self._doubt(Doubt(Why.LATE_RAISE, agent, pc, phase.arrivals.seen, where=bar))
        if phase.landed > phase.expected or phase.expected > MAX_COUNT:
            self._doubt(Doubt(Why.BYTES, -1, -1, where=bar))

    # waits

    def _wait(self, before: State, agent: int, pc: int, op: Operation) -> None:
        bar, phase, known = op[1], len(self._done[op[1]]) - 1, self._clocks[agent].known[op[1]]
        if op[0] == Op.WAIT_UNLESS and op[3] >= 0:
            asked = self._tries.get((agent, op[3]))
            if asked is None or (asked.barrier, asked.parity) != (bar, op[2]):
                self._doubt(Doubt(Why.STALE_TRY, agent, pc, self._past(agent, pc), where=bar))
                return
            known = min(known, asked.known)
            if before.registers[agent][op[3]] and asked.phase != phase:
                self._doubt(Doubt(Why.STALE_TRY, agent, pc, self._past(agent, pc), where=bar))
                return
        if known < phase:
            self._doubt(Doubt(Why.EARLY_PASS, agent, pc, self._past(agent, pc), where=bar))
        self._saw[bar].append((agent, pc))
        self._see(agent, bar, phase)

    def _try(self, agent: int, pc: int, op: Operation, result: Step) -> None:
        if op[3] >= 0:
            passed = bool(result.state.registers[agent][op[3]])
            phase = len(self._done[op[1]]) - 1
            self._tries[agent, op[3]] = _Try(op[1], op[2], pc, self._clocks[agent].known[op[1]], phase, passed)

    def _see(self, agent: int, channel: int, phase: int) -> None:
        """The agent comes to know that this phase is complete, and all that occurs before that."""
        if 0 <= phase < len(self._done[channel]):  # else the wait itself breaks a rule
            self._clocks[agent] = self._clocks[agent].join(self._done[channel][phase])

    def _arrive_at(self, channel: int, agent: int, pc: int, result: Step) -> None:
        """An arrival at a named barrier or the cluster barrier. That of a sync is the first half of its operation."""
        self._joined[agent, channel] = len(self._done[channel])
        clock = self._clocks[agent]
        sync = self._program.code[agent][pc][0] == Op.BAR_SYNC
        self._part(channel, clock.after(agent, pc - sync), agent, pc)
        self._complete(channel, result)

    def _channel_of(self, op: Operation) -> int:
        if op[0] in (Op.BAR_SYNC, Op.BAR_ARRIVE):
            return len(self._program.barriers) + op[1]
        return self._channels - 1

    def _past(self, agent: int, pc: int) -> tuple[int, ...]:
        """How far each agent must have gone before this operation."""
        return self._clocks[agent].after(agent, pc - 1).seen

    def _require_published(self, bar: int, agent: int, pc: int) -> None:
        init = self._inits.get(bar)
        if init is None or (init[0] != agent and not self._clocks[agent].covers(*init)):
            self._doubt(Doubt(Why.UNPUBLISHED, agent, pc, self._past(agent, pc), where=bar))

    # transfers

    def _issue(self, before: State, agent: int, pc: int, op: Operation, result: Step) -> None:
        """Something is put under way: remember its clock, enter its access, and what a commit follows."""
        clock = self._clocks[agent].after(agent, pc)
        if op[0] == Op.CP_ASYNC_ARRIVE and not op[3]:
            self._part(op[1], clock, agent, pc)
            self._open[op[1]].raises.append((agent, pc))
        for flight in result.state.flights:
            if flight.sequence <= before.issued:
                continue
            self._issued[flight.sequence] = (clock, flight)
            if flight.barrier >= 0:
                self._require_published(flight.barrier, agent, pc)
            if flight.end > flight.first:
                before_it = self._clocks[agent]
                access = Access(agent, pc, flight.writes, flight.sequence, flight.engine, before_it.seen)
                self._access(before_it, access, flight.first, flight.end)
                if (agent, flight.engine) in self._awaited:
                    self._of(agent, flight.engine).append(flight)

    def _of(self, agent: int, engine: int) -> list[Flight]:
        return self._flown.setdefault((agent, engine), [])

    def _wait_group(self, before: State, agent: int, pc: int, op: Operation) -> None:
        """A wait for an agent's own transfers; one for a wgmma also for what its whole warp group has issued."""
        engine = op[1]
        limit = before.commits[agent * len(Engine) + engine] - op[2]
        for member in self._program.warp_groups[agent] if engine == Engine.WGMMA else (agent,):
            for flight in self._of(member, engine):
                if flight.group < limit:
                    self._accesses.waited(flight.sequence, agent, pc)
            closed = self._closed.get((member, engine), [])
            if 0 < limit <= len(closed):
                self._clocks[agent] = self._clocks[agent].join(closed[limit - 1])
        self._forget(agent, engine, limit)

    def _forget(self, agent: int, engine: int, limit: int) -> None:
        """Flights that every warp of the group has waited for are of no interest to a later wait."""
        group = self._program.warp_groups[agent] if engine == Engine.WGMMA else (agent,)
        for member in group:
            self._waited[member, engine] = max(limit if member == agent else 0, self._waited.get((member, engine), 0))
        over = min(self._waited[member, engine] for member in group)
        for member in group:
            mine = self._of(member, engine)
            mine[:] = [flight for flight in mine if flight.group >= over]

    def _access(self, clock: Clock, access: Access, first: int, end: int) -> None:
        if self._program.ctas > 1:
            cta = _afar(self._program, access)
            if cta >= 0:
                self._afar.append((cta, access))
        for other in self._accesses.open(clock, access, first, end):
            past = list(map(max, access.past, other.past))
            for one in (access, other):
                past[one.agent] = max(past[one.agent], one.pc)
            self._doubt(Doubt(Why.RACE, access.agent, access.pc, tuple(past), other.agent, other.pc))

    def _doubt(self, doubt: Doubt) -> None:
        self._doubts.setdefault(doubt)
