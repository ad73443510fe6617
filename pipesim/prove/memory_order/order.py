"""Memory order of one run: what is in its place only on a machine with one memory (docs/memory-order.md).

The certificate knows what *occurs before* what, whatever the strength of the operations between. This observer knows
which of that the memory model of PTX keeps, too: a release and an acquire whose scopes reach each other, and between
the two proxies a fence. Two accesses that occur one after the other, and that nothing of this kind orders, are a fault;
the run then needs no other schedule to be wrong. Where the certificate holds, the same is true of every schedule.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import NamedTuple

from pipesim.model import groups
from pipesim.model.finding import Advisory, Fault, FaultKind
from pipesim.model.machine import TMA, Flight, State, Step
from pipesim.model.ops import Engine, Fence, Op, Operation, Order, Scope, Space, operand, order_of, scope_of
from pipesim.model.positions import (
    ACCESS,
    ANSWER,
    ASYNC_ACCESS,
    BARRIER,
    COMMIT_BARRIER,
    COMMIT_MASK,
    COPY_MASK,
    ENGINE,
    FENCE,
    GROUPS,
    PARITY,
)
from pipesim.model.program import Program
from pipesim.model.state import cluster_channel, meeting_channel, own_channel
from pipesim.prove.happens_before.accesses import OWN, Accesses, AccessEvent
from pipesim.prove.happens_before.clock import Clock
from pipesim.prove.happens_before.groups import Groups
from pipesim.prove.happens_before.moment import Knowledge, PhaseKnowledge
from pipesim.prove.happens_before.snapshot import Marks, Snapshot
from pipesim.prove.memory_order.may_fail import advisories

_RELEASES = frozenset({Order.DEFAULT, Order.RELEASE, Order.ACQ_REL})
_ACQUIRES = frozenset({Order.DEFAULT, Order.ACQUIRE, Order.ACQ_REL})


class _Weak(NamedTuple):
    """An operation that hands on, or takes, less than comes before it."""

    kind: FaultKind
    agent: int
    pc: int
    occurs: Clock


class _Issued(NamedTuple):
    """What is under way: the moment of its issue, and its number."""

    moment: Knowledge
    flight: int


class MemoryOrder:
    """Watches one run of any driver. ``faults``: each (kind, line, line of the other access) once, in order."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._channels = own_channel(program, 0)
        self._nothing = Clock((0,) * len(program.agents), (0,) * self._channels)
        self._start = Knowledge(*(self._nothing,) * 5)
        self._moments = [self._start] * len(program.agents)
        self._open: list[PhaseKnowledge | None] = [None] * self._channels
        self._done: list[list[PhaseKnowledge]] = [[] for _ in range(self._channels)]
        self._joined: dict[tuple[int, int], int] = {}  # (agent, channel) → generation it has arrived in
        self._released: dict[int, tuple[Knowledge, Scope]] = {}  # by agent: its last fence
        self._taken: dict[int, PhaseKnowledge] = {}  # by agent: what relaxed waits have seen and a fence may yet order
        self._tries: dict[tuple[int, int], tuple[int, int]] = {}  # (agent, register) → semantics and pc
        self._inits: dict[int, tuple[int, int]] = {}
        self._issued: dict[tuple[int, int, int], tuple[_Issued, ...]] = {}  # by agent, pc and barrier
        self._fresh: set[int] = set()  # mbarriers no phase of which has completed since their last init
        self._unordered = False
        self._flights = 0
        self._groups = Groups[Knowledge](program)
        self._accesses = Accesses()
        self._weak: list[_Weak] = []
        self._faults: dict[tuple[FaultKind, str, str], tuple[Fault, tuple[int, ...]]] = {}
        spaces = {Space.SHARED, Space.GLOBAL}
        self._proxies = {
            cell for a, (first, end) in zip(program.accesses, program.cells, strict=True) if a.space in spaces
            for cell in range(first, end)
        }  # fmt: skip

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong so far."""
        return tuple(fault for fault, _ in self._faults.values())

    @property
    def unordered(self) -> bool:
        """True if two accesses, or an init and a use, that no overlap shows were ordered by nothing that is known here.

        An exit, a request for registers or a count that is read orders agents in every schedule, and no memory.
        """
        return self._unordered

    @property
    def pasts(self) -> tuple[tuple[int, ...], ...]:
        """For each fault how many operations of each agent occur before it."""
        return tuple(past for _, past in self._faults.values())

    @property
    def advisories(self) -> tuple[Advisory, ...]:
        """What is not a fault and may be meant. A run is not needed to tell."""
        return advisories(self._program)

    def goes_on_in(self, program: Program) -> None:
        """From here on the run is that of another program, which has the same tables and began as this one."""
        self._program = program

    # watching

    def stepped(self, before: State, agent: int, result: Step) -> None:
        """An agent moved, or was blocked."""
        pc = before.pcs[agent]
        op = self._program.code[agent][pc]
        moved = result.state.pcs[agent] != pc
        if op[0] == Op.BAR_SYNC and not before.holds[agent] and (moved or result.state.holds[agent]):
            self._meet(meeting_channel(self._program, op), agent, pc, Order.DEFAULT, result)
        if moved:
            self._moved(before, agent, pc, op, result)

    def landed(self, flight: Flight, nbytes: int, result: Step) -> None:
        """A transfer delivered ``nbytes``, or the arrival that it represents."""
        key = (flight.agent, flight.pc, flight.barrier)
        issued, *others = self._issued[key]
        last = nbytes >= flight.remaining
        if last and others:
            self._issued[key] = tuple(others)
        elif last:
            del self._issued[key]
        if flight.barrier < 0:
            return
        phases = len(self._done[flight.barrier]) + 1
        if flight.engine != TMA:
            self._accesses.committed(flight.agent, flight.engine, issued.flight, flight.barrier, phases)
        elif last:
            self._accesses.landed(issued.flight, flight.barrier, phases)
        self._part(flight.barrier, PhaseKnowledge(issued.moment, issued.moment))
        self._complete(flight.barrier, result)

    def _moved(self, before: State, agent: int, pc: int, op: Operation, result: Step) -> None:
        code = Op(op[0])
        if code in groups.USES_BARRIER:
            self._use(op[BARRIER], agent, pc)
        if code in groups.SIGNALS:
            self._contribute(agent, pc, op, result)
        elif code in groups.BLOCKING_WAITS:
            self._wait(before, agent, pc, op)
        elif code in groups.TRIES:
            self._try(agent, pc, op, result)
        elif code in groups.MEETING_ARRIVALS:
            order = order_of(operand(op, "semantics")) if code == Op.CLUSTER_ARRIVE else Order.DEFAULT
            self._meet(meeting_channel(self._program, op), agent, pc, order, result)
        elif code in groups.MEETING_WAITS:
            self._complete(meeting_channel(self._program, op), result)  # of the cluster, if it was seen to be complete
            self._met(agent, pc, op)
        elif code == Op.FENCE:
            self._fence(agent, pc, Fence(op[FENCE]), scope_of(operand(op, "semantics")))
        elif code in groups.ACCESSES:
            self._touch(AccessEvent(agent, pc, code == Op.WRITE, OWN, -1, *self._program.cells[op[ACCESS]]))
        elif code == Op.WAIT_GROUP:
            self._wait_group(before, agent, pc, op)
        elif code == Op.INIT:
            self._inits[op[BARRIER]] = (agent, pc)
            self._open[op[BARRIER]] = None
            self._fresh.add(op[BARRIER])
        elif code == Op.INVAL:
            self._inits.pop(op[BARRIER], None)
        self._issue(before, agent, pc, op)

    # edges

    def _now(self, agent: int, pc: int) -> Knowledge:
        """The moment before the agent's operation at ``pc``, its own past included."""
        return self._moments[agent].after(agent, pc - 1)

    def _contribute(self, agent: int, pc: int, op: Operation, result: Step) -> None:
        bar, written = op[BARRIER], operand(op, "semantics")
        crossing = self._program.barriers[bar].cta != self._program.agents[agent].cta
        # relaxed, whatever is written on a transaction: PTX has nothing else
        order = Order.RELAXED if op[0] in groups.TRANSACTIONS else order_of(written)
        given = self._given(agent, pc, order, scope_of(written), crossing=crossing)
        near = given
        if crossing:
            near = given._replace(synced=self._nothing, proxied=self._nothing, published=self._nothing)
        self._part(bar, PhaseKnowledge(given, near))
        self._complete(bar, result)

    def _given(self, agent: int, pc: int, order: Order, scope: Scope, *, crossing: bool) -> Knowledge:
        """What an arrival hands on; a relaxed one what the agent's last fence before it does."""
        code = self._program.code[agent][pc][0]
        now = self._moments[agent].after(agent, pc - (code == Op.BAR_SYNC))
        reaches = written = not (crossing and scope == Scope.CTA)
        given = now
        if order not in _RELEASES:
            given, fenced = self._released.get(agent, (self._start, Scope.DEFAULT))
            reaches = reaches and not (crossing and fenced == Scope.CTA)
        if code != Op.EXPECT_TX and (order not in _RELEASES or not reaches):
            kind = FaultKind.NARROW_SCOPE if order in _RELEASES else FaultKind.WEAK_ORDER
            self._weak.append(_Weak(kind, agent, pc, now.occurs))
        return Knowledge(
            now.occurs,
            given.ordered,
            given.synced if reaches else self._nothing,
            given.proxied if reaches else self._nothing,
            now.published if written else self._nothing,
        )

    def _part(self, channel: int, part: PhaseKnowledge) -> None:
        phase = self._open[channel]
        self._open[channel] = part if phase is None else phase.join(part)

    def _complete(self, channel: int, result: Step) -> None:
        phase = self._open[channel]
        if result.signalled != channel or phase is None:
            return
        self._done[channel].append(phase.knowing(channel, len(self._done[channel]) + 1))
        self._open[channel] = None
        self._fresh.discard(channel)

    def _wait(self, before: State, agent: int, pc: int, op: Operation) -> None:
        code = Op(op[0])
        written = [operand(op, "semantics")]
        if op[BARRIER] in self._fresh or self._is_told_by_another(before, agent, op):
            return
        if code == Op.WAIT_UNLESS and op[ANSWER] >= 0 and (agent, op[ANSWER]) in self._tries:
            written.append(self._tries[agent, op[ANSWER]][0])  # it may be either of the two that sees the phase
        if self._done[op[BARRIER]]:
            for each in written[1:]:
                self._require_as_strong(agent, self._tries[agent, op[ANSWER]][1], each, written[0])
            acquires = all(order_of(each) in _ACQUIRES for each in written)
            narrow = any(scope_of(each) == Scope.CTA for each in written)
            self._take(agent, pc, self._done[op[BARRIER]][-1], acquires=acquires, narrow=narrow)

    def _is_told_by_another(self, before: State, agent: int, op: Operation) -> bool:
        """True of a wait that is skipped, though no try of its barrier and parity has said that its phase is over."""
        if op[0] != Op.WAIT_UNLESS or op[ANSWER] < 0 or not before.registers[agent][op[ANSWER]]:
            return False
        if (agent, op[ANSWER]) not in self._tries:
            return True
        tried = self._program.code[agent][self._tries[agent, op[ANSWER]][1]]
        return tried[BARRIER] != op[BARRIER] or operand(tried, "parity") != op[PARITY]

    def _require_as_strong(self, agent: int, pc: int, tried: int, waited: int) -> None:
        """Remember a try that is weaker than its wait as the operation to blame."""
        if order_of(tried) not in _ACQUIRES and order_of(waited) in _ACQUIRES:
            self._weak.append(_Weak(FaultKind.WEAK_ORDER, agent, pc, self._moments[agent].occurs))

    def _try(self, agent: int, pc: int, op: Operation, result: Step) -> None:
        register, written, bar = op[ANSWER], operand(op, "semantics"), op[BARRIER]
        if register < 0:
            return
        self._tries[agent, register] = (written, pc)
        if bar in self._fresh:
            return
        passed = result.state.registers[agent][register] and self._reader(agent, pc, register) == Op.JUMP_IF
        if passed and self._done[bar]:
            acquires, narrow = order_of(written) in _ACQUIRES, scope_of(written) == Scope.CTA
            self._take(agent, pc, self._done[bar][-1], acquires=acquires, narrow=narrow)

    def _reader(self, agent: int, pc: int, register: int) -> Op | None:
        """The first operation that reads the result of a try_wait."""
        for op in self._program.code[agent][pc + 1 :]:
            if op[0] in groups.BY_ANSWER and operand(op, "register") == register:
                return Op(op[0])
        return None

    def _take(self, agent: int, pc: int, phase: PhaseKnowledge, *, acquires: bool, narrow: bool) -> None:
        """The agent sees a phase: what it comes to stand behind."""
        mine, seen = self._moments[agent], phase.near if narrow else phase.wide
        if acquires:
            self._moments[agent] = mine.join(seen)
        else:
            self._moments[agent] = mine._replace(occurs=mine.occurs.join(seen.occurs))
            before = self._taken.get(agent)
            self._taken[agent] = (
                PhaseKnowledge(seen, phase.near) if before is None else before.join(PhaseKnowledge(seen, phase.near))
            )
        if not acquires or (narrow and phase.near.synced != phase.wide.synced):
            kind = FaultKind.NARROW_SCOPE if acquires else FaultKind.WEAK_ORDER
            self._weak.append(_Weak(kind, agent, pc, self._moments[agent].occurs))

    def _meet(self, channel: int, agent: int, pc: int, order: Order, result: Step) -> None:
        """An arrival at a named barrier or the cluster barrier. That of a sync is the first half of its operation."""
        self._joined[agent, channel] = len(self._done[channel])
        crossing = self._program.ctas > 1 and channel == cluster_channel(self._program)
        given = near = self._given(agent, pc, order, Scope.CLUSTER, crossing=crossing)
        if crossing:
            near = given._replace(synced=self._nothing, proxied=self._nothing, published=self._nothing)
        self._part(channel, PhaseKnowledge(given, near))
        self._complete(channel, result)

    def _met(self, agent: int, pc: int, op: Operation) -> None:
        channel = meeting_channel(self._program, op)
        generation = self._joined.pop((agent, channel), len(self._done[channel]))
        if generation < len(self._done[channel]):
            acquires = op[0] == Op.BAR_SYNC or order_of(operand(op, "semantics")) in _ACQUIRES
            self._take(agent, pc, self._done[channel][generation], acquires=acquires, narrow=False)

    def _fence(self, agent: int, pc: int, kind: Fence, scope: Scope) -> None:
        now = self._moments[agent].after(agent, pc)
        if kind in (Fence.ACQ_REL, Fence.SC):
            taken = self._taken.pop(agent, None)
            if taken is not None:
                self._moments[agent] = self._moments[agent].join(taken.near if scope == Scope.CTA else taken.wide)
                now = self._moments[agent].after(agent, pc)
            self._released[agent] = (now, scope)
        elif kind in (Fence.PROXY_ASYNC, Fence.MBARRIER_INIT):
            proxied = now.proxied.join(now.synced) if kind == Fence.PROXY_ASYNC else now.proxied
            self._moments[agent] = now._replace(proxied=proxied, published=now.published.join(now.synced))

    # transfers

    def _issue(self, before: State, agent: int, pc: int, op: Operation) -> None:
        """What the operation puts under way, if it does: an access, or an arrival that comes later."""
        moment, code = self._moments[agent].after(agent, pc), Op(op[0])
        if code == Op.TMA_LOAD:
            ranks = [rank for rank in range(self._program.ctas) if op[COPY_MASK] >> rank & 1]
            for bar, access in [self._program.at_rank(op[BARRIER], op[ASYNC_ACCESS], r) for r in ranks] or [
                (op[BARRIER], op[ASYNC_ACCESS])
            ]:
                self._use(bar, agent, pc, asynchronous=True)
                flight = self._flies(agent, pc, bar, moment)
                self._touch(AccessEvent(agent, pc, True, flight, TMA, *self._program.cells[access]))
        elif code in groups.ENGINE_ACCESSES:
            flight = self._flies(agent, pc, -1, moment)
            made = AccessEvent(
                agent, pc, code == Op.TRANSFER_WRITE, flight, op[ENGINE], *self._program.cells[op[ASYNC_ACCESS]]
            )
            self._touch(made)
            self._groups.issued(before.commits[agent * len(Engine) + op[ENGINE]], made)
        elif code == Op.CP_ASYNC_ARRIVE:
            self._flies(agent, pc, op[BARRIER], moment)
        elif code == Op.COMMIT and op[COMMIT_BARRIER] < 0:
            self._groups.closed(agent, op[ENGINE], moment)
        elif code in groups.COMMITS:
            mask = op[COMMIT_MASK] if code == Op.COMMIT_MULTICAST else 0
            ranks = [rank for rank in range(self._program.ctas) if mask >> rank & 1]
            for bar in [self._program.barrier_at_rank(op[COMMIT_BARRIER], rank) for rank in ranks] or [
                op[COMMIT_BARRIER]
            ]:
                self._use(bar, agent, pc, asynchronous=True)
                self._flies(agent, pc, bar, moment)

    def _flies(self, agent: int, pc: int, bar: int, moment: Knowledge) -> int:
        self._flights += 1
        key = agent, pc, bar  # of a multicast to a pair of CTAs two landings may be counted on one barrier
        self._issued[key] = (*self._issued.get(key, ()), _Issued(moment, self._flights))
        return self._flights

    def _wait_group(self, before: State, agent: int, pc: int, op: Operation) -> None:
        limit = before.commits[agent * len(Engine) + op[ENGINE]] - op[GROUPS]
        self._moments[agent] = self._groups.wait(agent, pc, op[ENGINE], limit, self._accesses, self._moments[agent])

    # comparing accesses

    def _touch(self, access: AccessEvent) -> None:
        """Enter an access; compare it with those before it."""
        here = self._now(access.agent, access.pc)
        for cell, other in self._accesses.enter(access):
            kind = self._wrong(here, cell, other, access)
            if kind is not None:
                self._report(kind, here, access.agent, access.pc, (other.agent, other.pc), -1, other)

    def _wrong(self, here: Knowledge, cell: int, other: AccessEvent, access: AccessEvent) -> FaultKind | None:
        ordered = self._accesses.ordered
        if not ordered(here.occurs, other, access):
            self._unordered = True
            return None  # a race in some schedule: the certificate's to tell
        if here.ordered is not here.occurs and not ordered(here.ordered, other, access):
            return FaultKind.WEAK_ORDER
        if here.synced is not here.ordered and not ordered(here.synced, other, access):
            return FaultKind.NARROW_SCOPE
        if other.generic == access.generic or cell not in self._proxies:
            return None
        if not self._needs_fence(other) or self._accesses.over(here.proxied, other):
            return None
        return FaultKind.MISSING_PROXY_FENCE if other.writes else FaultKind.READ_NOT_FENCED

    def _needs_fence(self, other: AccessEvent) -> bool:
        """True if a fence has to follow the access before one through the other proxy.

        What an engine has written is visible to whoever has waited for it; of reads it may be assumed that they have
        ended before the next arrive.
        """
        return other.generic if other.writes else self._program.strictness.proxies

    def _use(self, bar: int, agent: int, pc: int, *, asynchronous: bool = False) -> None:
        """An operation on a barrier, or (asynchronous) of an engine: its init must have come to it."""
        init, here = self._inits.get(bar), self._now(agent, pc)
        if init is not None and init[0] != agent and not here.occurs.covers(*init):
            self._unordered = True
        if init is None or not here.occurs.covers(*init) or here.published.covers(*init):
            return
        if here.synced.covers(*init) and (not asynchronous or self._is_enough(init, agent, pc)):
            return
        self._report(FaultKind.UNPUBLISHED_INIT, here, agent, pc, init, bar, None)

    def _is_enough(self, init: tuple[int, int], agent: int, pc: int) -> bool:
        """True if an init in a kernel of one CTA needs no fence: others first learn of it by a barrier of the CTA."""
        if self._program.strictness.init or self._program.ctas > 1:
            return False
        owner, began = init
        following = self._program.code[owner][began + 1 : pc if agent == owner else None]
        return next((op[0] in groups.MEETINGS for op in following if op[0] in groups.HANDS_ON), False)

    def _report(
        self,
        kind: FaultKind,
        here: Knowledge,
        agent: int,
        pc: int,
        other: tuple[int, int],
        bar: int,
        on: AccessEvent | None,
    ) -> None:
        key = (kind, self._program.line(agent, pc), self._program.line(*other))
        if key in self._faults:
            return
        cause = self._cause(kind, here.occurs, on) if on is not None else (-1, -1)
        fault = Fault(kind, agent, pc, bar, 0, 0, *other, *cause)
        self._faults[key] = (fault, here.occurs.seen)

    def _cause(self, kind: FaultKind, here: Clock, access: AccessEvent) -> tuple[int, int]:
        """The first operation between the two accesses that is too weak, (-1, -1) if no operation is."""
        for weak in self._weak:
            between = here.covers(weak.agent, weak.pc) and self._accesses.over(weak.occurs, access)
            if weak.kind is kind and between:
                return weak.agent, weak.pc
        return -1, -1

    # where it stands

    def fork(self) -> MemoryOrder:
        """The same, to continue by itself."""
        twin = object.__new__(MemoryOrder)
        vars(twin).update(vars(self))
        twin._moments = self._moments.copy()
        twin._open = self._open.copy()
        twin._done = [done.copy() for done in self._done]
        for name in ("_joined", "_released", "_taken", "_tries", "_inits", "_issued", "_faults", "_fresh"):
            setattr(twin, name, getattr(self, name).copy())
        twin._groups = self._groups.fork(self._program)
        twin._accesses = self._accesses.fork()
        twin._weak = self._weak.copy()
        return twin

    def standing(self) -> Hashable:
        """Equal for two observers of one program that will find the same faults in the same moves from here on."""
        marks = Marks()
        for key, flights in sorted(self._issued.items()):  # by agent and operation: in the order of issue
            marks.shape += (key, len(flights))
            for issued in flights:
                marks.moment(issued.moment)
        return self.snapshot(), marks.snapshot()

    def snapshot(self) -> Snapshot:
        """Everything that it may yet compare, and nothing that grows with the run."""
        marks = Marks([len(self._faults), *sorted(self._fresh)])
        for moment in self._moments:
            marks.moment(moment)
        for channel in range(self._channels):
            self._mark_channel(marks, channel)
        for agent, (moment, scope) in sorted(self._released.items()):
            marks.shape += (agent, scope)
            marks.moment(moment)
        for agent, taken in sorted(self._taken.items()):
            marks.shape.append(agent)
            marks.phase(taken)
        for (agent, register), (written, pc) in sorted(self._tries.items()):
            marks.shape += (agent, register, written)
            marks.operations.append((agent, pc))
        marks.shape += sorted(self._inits)
        marks.operations += [self._inits[bar] for bar in sorted(self._inits)]
        self._groups.mark(marks)
        self._accesses.mark(marks)
        return marks.snapshot()

    def _mark_channel(self, marks: Marks, channel: int) -> None:
        """Enter the open phase, the last one, and those for which somebody holds an arrival."""
        done, opened = self._done[channel], self._open[channel]
        marks.shape += (bool(done), opened is None)
        marks.phases.append((channel, len(done)))
        for phase in (*done[-1:], *([opened] if opened is not None else [])):
            marks.phase(phase)
        for agent, generation in sorted((a, n) for (a, where), n in self._joined.items() if where == channel):
            marks.shape += (agent, generation < len(done))
            marks.phases.append((channel, generation))
            if generation < len(done):
                marks.phase(done[generation])
