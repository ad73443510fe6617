"""Memory order of one run: what is ordered only on a machine with one memory (docs/memory-order.md).

The certificate knows what *occurs before* what, whatever the strength of the operations between. This observer knows
which of that the memory model of PTX keeps as well: a release and an acquire whose scopes reach each other, and between
the two proxies a fence. Two accesses that occur one after the other, and that nothing of this kind orders, are a fault;
the run then needs no other schedule to be wrong. Where the certificate holds, the same is true of every schedule.
"""

from collections.abc import Hashable
from typing import NamedTuple

from pipesim.model import groups
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import (
    ACCESS,
    ANSWER,
    ASYNC_ACCESS,
    BARRIER,
    COMMIT_BARRIER,
    ENGINE,
    FENCE,
    GROUPS,
    PARITY,
)
from pipesim.model.machine import TMA, Flight, State, Step
from pipesim.model.ops import Engine, Fence, Op, Operation, Order, Scope, Space, operand, order_of, scope_of
from pipesim.model.program import Program
from pipesim.model.state import cluster_channel, meeting_channel, own_channel
from pipesim.prove.happens_before.accesses import BY_THREAD, OWN, AccessEvent, Groups
from pipesim.prove.happens_before.snapshot import (
    Clock,
    FullFences,
    Knowledge,
    Marks,
    PhaseKnowledge,
    Snapshot,
    forget_before,
)
from pipesim.prove.memory_order.comparison import (
    AccessOrder,
    FenceReach,
    Fences,
    Observation,
    WeakTry,
    is_acquire,
    needs_tensor_fences,
    observation,
)
from pipesim.prove.memory_order.exchanged import ExchangedArrivals, first_of_instruction

_RELEASES = frozenset({Order.DEFAULT, Order.RELEASE, Order.ACQ_REL})
#: Whose arrival releases what its agent had done and seen before the issue. The bytes of a bulk copy and the arrival of
#: cp.async are ordered after the transfer's own accesses and nothing else of the issuing thread (PTX ISA, memory
#: consistency model, asynchronous operations); of tcgen05.commit PTX says nothing like it, and upstreams rely on it.
_RELEASE_THE_ISSUE = frozenset({Engine.TCGEN05})


class _IssuedTransfer(NamedTuple):
    """What is under way: what its agent knew before the issue, shared by all that it issues then, and its number."""

    before: Knowledge
    flight: int


class MemoryOrder:
    """Watches one run of any driver. ``faults``: each kind once at two roles and lines, in order."""

    def __init__(self, program: Program, exchanged: frozenset[int] = frozenset()) -> None:
        """``exchanged``: barriers whose phases may get each other's arrivals (:mod:`.exchanged`)."""
        self._program = program
        self._channels = own_channel(program, 0)
        self._nothing = Clock((0,) * len(program.agents), (0,) * self._channels)
        self._fenced_nothing = self._nothing if needs_tensor_fences(program) else None
        full = FullFences(*(self._nothing,) * 3) if _has_full_fences(program) else None
        self._start = Knowledge(*(self._nothing,) * 5, self._fenced_nothing, full)
        self._moments = [self._start] * len(program.agents)
        self._open: list[PhaseKnowledge | None] = [None] * self._channels
        self._done: list[list[PhaseKnowledge]] = [[] for _ in range(self._channels)]
        self._joined: dict[tuple[int, int], int] = {}  # (agent, channel) → generation it has arrived in
        self._released: dict[int, Fences] = {}  # by agent
        self._taken: dict[int, PhaseKnowledge] = {}  # by agent: what relaxed waits have seen and a fence may yet order
        self._tries: dict[tuple[int, int], WeakTry] = {}  # by agent and register
        self._issued: dict[tuple[int, int, int], tuple[_IssuedTransfer, ...]] = {}  # by agent, pc and barrier
        self._fresh: set[int] = set()  # mbarriers no phase of which has completed since their last init
        self._flights = 0
        self._groups = Groups[Knowledge](program)
        self._compared = AccessOrder(program)
        nothing = PhaseKnowledge(self._start, self._start)
        self._exchanged = {bar: ExchangedArrivals(nothing) for bar in exchanged}
        #: of each other CTA whose shared memory threads access the last such access of each agent
        self._reached: dict[tuple[int, int], int] = {}
        self._from_kernel = bool(program.coverage.extracted)
        self.exchange_fails = False  #: whether an arrival of a later phase would pass on less

    @property
    def faults(self) -> tuple[Fault, ...]:
        """What is wrong so far."""
        return self._compared.faults

    @property
    def unordered(self) -> bool:
        """True if two accesses, or an init and a use, that no overlap shows were ordered by nothing that is known here.

        An exit, a request for registers or a count that is read orders agents in every schedule, and no memory.
        """
        return self._compared.unordered

    @property
    def pasts(self) -> tuple[tuple[int, ...], ...]:
        """For each fault how many operations of each agent occur before it."""
        return self._compared.pasts

    def goes_on_in(self, program: Program) -> None:
        """From here on the run is that of another program, which has the same tables and began as this one."""
        self._program = program
        self._compared.goes_on_in(program)

    # watching

    def on_step(self, before: State, agent: int, result: Step) -> None:
        """An agent moved, or was blocked."""
        pc = before.pcs[agent]
        op = self._program.code[agent][pc]
        moved = result.state.pcs[agent] != pc
        if op[0] == Op.BAR_SYNC and not before.holds[agent] and (moved or result.state.holds[agent]):
            self._meet(meeting_channel(self._program, op), agent, pc, Order.DEFAULT, result)
        if moved:
            self._carry_out(before, agent, pc, op, result)
            self._look_at_end(agent, result.state)

    def on_landing(self, flight: Flight, nbytes: int, result: Step) -> None:
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
            self._compared.accesses.add_commit(flight.agent, flight.engine, issued.flight, flight.barrier, phases)
        elif last:
            self._compared.accesses.on_landing(issued.flight, flight.barrier, phases)
        handed = issued.before.after_operation(flight.agent, flight.pc)
        if flight.engine not in _RELEASE_THE_ISSUE:
            handed = Knowledge(handed.occurs, *(self._nothing,) * 4, self._fenced_nothing)
        elif handed.tensor is not None:  # a commit implies the fence before it
            handed = handed._replace(tensor=handed.tensor.after_operation(flight.agent, flight.pc))
        self._part(flight.barrier, PhaseKnowledge(handed, handed))
        self._complete(flight.barrier, result)

    def _carry_out(self, before: State, agent: int, pc: int, op: Operation, result: Step) -> None:
        code = Op(op[0])
        if code in groups.USES_BARRIER:
            self._compared.use(op[BARRIER], agent, pc, self._now(agent, pc))
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
            self._see_meeting(agent, pc, op)
        elif code == Op.FENCE:
            self._fence(agent, pc, Fence(op[FENCE]), scope_of(operand(op, "semantics")))
        elif code in groups.ACCESSES:
            cells, alike = self._program.cells[op[ACCESS]], self._program.alike(op)
            self._touch(AccessEvent(agent, pc, code == Op.WRITE, OWN, -1, *cells, (), alike))
            self._reach(agent, pc, op[ACCESS])
        elif code == Op.WAIT_GROUP:
            self._wait_group(before, agent, pc, op)
        elif code == Op.INIT:
            self._compared.begin_life(op[BARRIER], agent, pc)
            self._open[op[BARRIER]] = None
            self._fresh.add(op[BARRIER])
        elif code == Op.INVAL:
            self._compared.end_life(op[BARRIER])
        self._issue(before, agent, pc, op)

    def _reach(self, agent: int, pc: int, access: int) -> None:
        """A thread of a kernel accesses the shared memory of another CTA: that has to have started.

        CUDA C++ Programming Guide, "Distributed Shared Memory": all thread blocks have to exist, and each access has
        to happen before its thread block exits. A described pipeline begins when its CTAs have met.
        """
        program, a = self._program, self._program.accesses[access]
        if not self._from_kernel or a.space != Space.SHARED or a.cta == program.agents[agent].cta:
            return
        now, there = self._now(agent, pc), _agents_of(program, a.cta)
        if not any(now.occurs.seen[each] for each in there) and any(program.code[each] for each in there):
            self._compared.report_absent(now, agent, pc, access, started=False)
        self._reached[a.cta, agent] = pc

    def _look_at_end(self, agent: int, state: State) -> None:
        """Where the last agent of a CTA has ended, what others access there has to come before, in memory's order."""
        program, cta = self._program, self._program.agents[agent].cta
        mine = [(who, pc) for (of, who), pc in self._reached.items() if of == cta]
        there = _agents_of(program, cta) if mine else ()
        if all(state.pcs[each] == len(program.code[each]) for each in there):
            last = [self._moments[each] for each in there]
            for who, pc in mine:
                known = any(moment.occurs.covers(who, pc) for moment in last)
                if known and not any(moment.ordered.covers(who, pc) for moment in last):
                    access = program.code[who][pc][ACCESS]
                    self._compared.report_absent(self._moments[agent], who, pc, access, started=True)

    # edges

    def _now(self, agent: int, pc: int) -> Knowledge:
        """The moment before the agent's operation at ``pc``, its own past included."""
        return self._moments[agent].after_operation(agent, pc - 1)

    def _contribute(self, agent: int, pc: int, op: Operation, result: Step) -> None:
        bar, written = op[BARRIER], operand(op, "semantics")
        crossing = self._program.barriers[bar].cta != self._program.agents[agent].cta
        # relaxed, whatever is written on a transaction: PTX has nothing else
        order = Order.RELAXED if op[0] in groups.TRANSACTIONS else order_of(written)
        given = self._released_knowledge(agent, pc, order, scope_of(written), crossing=crossing)
        if given.full is not None and self._program.is_word(bar) and (now := self._moments[agent].full) is not None:
            given = given._replace(full=given.full._replace(told=now.before))
        near = given
        if crossing or (bar in self._exchanged and self._program.ctas > 1):
            near = self._of_no_other_cta(given)
        part = PhaseKnowledge(given, near)
        if bar in self._exchanged:
            first = first_of_instruction(self._program.code[agent], pc)
            before = PhaseKnowledge(_until(given, agent, first), _until(near, agent, first))
            self.exchange_fails |= not self._exchanged[bar].arrive(before, part)
            part = before
        self._part(bar, part)
        self._complete(bar, result)

    def _released_knowledge(self, agent: int, pc: int, order: Order, scope: Scope, *, crossing: bool) -> Knowledge:
        """What an arrival releases; a relaxed one what the agent's fences before it do, each as far as it reaches."""
        code = self._program.code[agent][pc][0]
        now = self._moments[agent].after_operation(agent, pc - (code == Op.BAR_SYNC))
        reaches = not (crossing and scope == Scope.CTA)
        ordered = synced = now
        if order not in _RELEASES:
            fences = self._released.get(agent, Fences(self._start, self._start))
            ordered, synced = fences.near, fences.wide if crossing else fences.near
        if code != Op.EXPECT_TX and (order not in _RELEASES or not reaches):
            kind = FaultKind.NARROW_SCOPE if order in _RELEASES else FaultKind.WEAK_ORDER
            self._compared.add_weak_operation(kind, agent, pc, now.occurs)
        return Knowledge(
            now.occurs,
            ordered.ordered,
            synced.synced if reaches else self._nothing,
            synced.proxied if reaches else self._nothing,
            now.published if reaches else self._nothing,
            now.tensor if reaches else self._fenced_nothing,
            synced.full if reaches else self._start.full,
        )

    def _of_no_other_cta(self, given: Knowledge) -> Knowledge:
        """What an agent learns of it whose wait reaches no other CTA."""
        nothing = self._nothing
        full = given.full and given.full._replace(before=nothing, open=nothing)
        return given._replace(
            synced=nothing, proxied=nothing, published=nothing, tensor=self._fenced_nothing, full=full
        )

    def _part(self, channel: int, part: PhaseKnowledge) -> None:
        phase = self._open[channel]
        self._open[channel] = part if phase is None else phase.join(part)

    def _complete(self, channel: int, result: Step) -> None:
        phase = self._open[channel]
        if result.signalled != channel or phase is None:
            return
        forget_before(channel, self._done[channel], self._joined)
        self._done[channel].append(phase.with_phases(channel, len(self._done[channel]) + 1))
        if channel in self._exchanged:
            self._exchanged[channel].complete()
        self._open[channel] = None
        self._fresh.discard(channel)

    def _wait(self, before: State, agent: int, pc: int, op: Operation) -> None:
        bar, written = op[BARRIER], operand(op, "semantics")
        if bar in self._fresh or self._is_told_by_another(before, agent, op):
            return
        seen, phase = observation(written), self._done[bar][-1] if self._done[bar] else None
        asked = self._tries.get((agent, op[ANSWER])) if op[0] == Op.WAIT_UNLESS and op[ANSWER] >= 0 else None
        if asked is not None:  # it may be either of the two that sees the phase
            tried = observation(asked.written)
            tried = tried._replace(now=max(tried.now, min(tried.fenced, asked.fenced)))
            if seen.now and not tried.now:  # the try is weaker than its wait, and the operation to blame
                self._compared.add_weak_operation(FaultKind.WEAK_ORDER, agent, asked.pc, self._moments[agent].occurs)
            seen = Observation(min(seen.now, tried.now), min(seen.fenced, tried.fenced))
            phase = asked.seen if before.registers[agent][op[ANSWER]] else phase
        if phase is not None:
            self.exchange_fails |= bar in self._exchanged and not self._exchanged[bar].see()
            self._take(agent, pc, phase, seen)

    def _is_told_by_another(self, before: State, agent: int, op: Operation) -> bool:
        """True of a wait that is skipped, though no try of its barrier and parity has said that its phase is over."""
        if op[0] != Op.WAIT_UNLESS or op[ANSWER] < 0 or not before.registers[agent][op[ANSWER]]:
            return False
        if (agent, op[ANSWER]) not in self._tries:
            return True
        tried = self._program.code[agent][self._tries[agent, op[ANSWER]].pc]
        by_parity = tried[0] in groups.PARITY_TRIES  # a try by state says nothing of a parity
        return not by_parity or tried[BARRIER] != op[BARRIER] or operand(tried, "parity") != op[PARITY]

    def _try(self, agent: int, pc: int, op: Operation, result: Step) -> None:
        register, written, bar = op[ANSWER], operand(op, "semantics"), op[BARRIER]
        if register < 0:
            return
        passed = result.state.registers[agent][register] and bar not in self._fresh
        phases = len(self._done[bar]) if passed else 0
        seen = self._done[bar][-1] if phases else None
        self._tries[agent, register] = WeakTry(written, pc, phases, seen, FenceReach.NOWHERE)
        if seen is not None and self._reader(agent, pc, register) == Op.JUMP_IF:
            self._take(agent, pc, seen, observation(written))

    def _reader(self, agent: int, pc: int, register: int) -> Op | None:
        """The first operation that reads the result of a try_wait."""
        for op in self._program.code[agent][pc + 1 :]:
            if op[0] in groups.BY_ANSWER and operand(op, "register") == register:
                return Op(op[0])
        return None

    def _take(self, agent: int, pc: int, phase: PhaseKnowledge, seen: Observation) -> None:
        """The agent sees a phase: what is ordered before it from now on, and what a later fence may order before it."""
        mine = self._moments[agent]
        if seen.now == FenceReach.NOWHERE:
            tensor = (phase.wide if seen.fenced == FenceReach.CLUSTER else phase.near).tensor
            if mine.tensor is not None and tensor is not None:
                mine = mine._replace(tensor=mine.tensor.join(tensor))
            self._moments[agent] = mine._replace(occurs=mine.occurs.join(phase.wide.occurs))
        else:
            self._moments[agent] = mine.join(phase.wide if seen.now == FenceReach.CLUSTER else phase.near)
        if (mine := self._moments[agent]).full is not None and mine.full is not None and phase.wide.full is not None:
            observed = mine.full.open.join(phase.wide.full.told)
            self._moments[agent] = mine._replace(full=mine.full._replace(open=observed))
        if seen.fenced > seen.now:
            taken = PhaseKnowledge(phase.wide if seen.fenced == FenceReach.CLUSTER else phase.near, phase.near)
            before = self._taken.get(agent)
            self._taken[agent] = taken if before is None else before.join(taken)
        narrow = seen.now == FenceReach.CTA and phase.near.synced != phase.wide.synced
        if seen.now == FenceReach.NOWHERE or narrow:
            kind = FaultKind.NARROW_SCOPE if narrow else FaultKind.WEAK_ORDER
            self._compared.add_weak_operation(kind, agent, pc, self._moments[agent].occurs)

    def _meet(self, channel: int, agent: int, pc: int, order: Order, result: Step) -> None:
        """An arrival at a named barrier or the cluster barrier. That of a sync is the first half of its operation."""
        self._joined[agent, channel] = len(self._done[channel])
        crossing = self._program.ctas > 1 and channel == cluster_channel(self._program)
        given = near = self._released_knowledge(agent, pc, order, Scope.CLUSTER, crossing=crossing)
        if crossing:
            near = self._of_no_other_cta(given)
        self._part(channel, PhaseKnowledge(given, near))
        self._complete(channel, result)

    def _see_meeting(self, agent: int, pc: int, op: Operation) -> None:
        channel = meeting_channel(self._program, op)
        generation = self._joined.pop((agent, channel), len(self._done[channel]))
        if generation < len(self._done[channel]):
            acquires = op[0] == Op.BAR_SYNC or is_acquire(operand(op, "semantics"))
            seen = Observation(FenceReach.CLUSTER if acquires else FenceReach.NOWHERE, FenceReach.CLUSTER)
            self._take(agent, pc, self._done[channel][generation], seen)

    def _fence(self, agent: int, pc: int, kind: Fence, scope: Scope) -> None:
        if kind in (Fence.ACQ_REL, Fence.SC):
            self._fence_order(agent, pc, scope, full=kind == Fence.SC and scope != Scope.CTA)
        elif kind in (Fence.PROXY_ASYNC, Fence.MBARRIER_INIT):
            now = self._moments[agent].after_operation(agent, pc)
            proxied = now.proxied.join(now.synced) if kind == Fence.PROXY_ASYNC else now.proxied
            published = now.published.join(self._inits_of_fence(agent, kind, now.synced))
            self._moments[agent] = now._replace(proxied=proxied, published=published)
        elif kind in (Fence.TCGEN05_BEFORE, Fence.TCGEN05_AFTER):
            self._fence_tensor(agent, pc, kind)

    def _inits_of_fence(self, agent: int, kind: Fence, before: Clock) -> Clock:
        """The moment up to which a fence publishes inits: ``fence.mbarrier_init`` those of its own thread alone
        (PTX ISA, "membar/fence", .op_restrict).
        """
        return before if kind == Fence.PROXY_ASYNC else self._nothing.after_operation(agent, before.seen[agent] - 1)

    def _fence_tensor(self, agent: int, pc: int, kind: Fence) -> None:
        """What the agent has done is ordered before what synchronises later; or what did so, before what it does."""
        tensor = self._moments[agent].tensor
        if tensor is not None and kind == Fence.TCGEN05_BEFORE:
            self._moments[agent] = self._moments[agent]._replace(tensor=tensor.after_operation(agent, pc))
        elif tensor is not None:
            self._compared.tensor_seen[agent] = tensor

    def _fence_order(self, agent: int, pc: int, scope: Scope, *, full: bool = False) -> None:
        """What relaxed waits have seen before is ordered from here on; what relaxed arrivals release later ends here.

        Every fence counts, as far as it reaches: one of the CTA takes nothing away from a wider one before or after it.
        One that is ``full`` comes after or before each other one that is (PTX ISA, "Fence-SC"). It comes after one of
        whose thread, or of one that this synchronises with, it has observed a write (:class:`FullFences`).
        """
        narrow = scope == Scope.CTA
        reach = FenceReach.CTA if narrow else FenceReach.CLUSTER
        taken = self._taken.get(agent)
        if taken is not None:
            self._moments[agent] = self._moments[agent].join(taken.near if narrow else taken.wide)
            if not narrow or taken.near == taken.wide:
                del self._taken[agent]
        for key, asked in self._tries.items():
            if key[0] == agent:
                self._tries[key] = asked._replace(fenced=max(asked.fenced, reach))
        mine = self._moments[agent]
        if full and (fences := mine.full) is not None:
            mine = mine._replace(ordered=mine.ordered.join(fences.open), synced=mine.synced.join(fences.open))
            before = fences.before.join(mine.synced.after_operation(agent, pc))
            self._moments[agent] = mine._replace(full=fences._replace(before=before))
        now = self._moments[agent].after_operation(agent, pc)
        wide = self._released.get(agent, Fences(self._start, self._start)).wide if narrow else now
        self._released[agent] = Fences(now, wide)

    # transfers

    def _issue(self, before: State, agent: int, pc: int, op: Operation) -> None:
        """What the operation puts under way, if it does: an access, or an arrival that comes later."""
        moment, code = self._moments[agent], Op(op[0])
        if code == Op.TMA_LOAD:
            for bar, access in self._program.landings(op):
                engine = BY_THREAD if access in self._program.stored else TMA
                self._compared.use(bar, agent, pc, self._now(agent, pc), asynchronous=engine == TMA)
                flight = self._flies(agent, pc, bar, moment)
                self._touch(AccessEvent(agent, pc, True, flight, engine, *self._program.cells[access]))
        elif code in groups.ENGINE_ACCESSES:
            flight = self._flies(agent, pc, -1, moment)
            made = AccessEvent(
                agent, pc, code == Op.TRANSFER_WRITE, flight, op[ENGINE], *self._program.cells[op[ASYNC_ACCESS]]
            )
            self._touch(made)
            self._groups.add_access(before.commits[agent * len(Engine) + op[ENGINE]], made)
        elif code == Op.CP_ASYNC_ARRIVE:
            self._flies(agent, pc, op[BARRIER], moment)
        elif code == Op.COMMIT and op[COMMIT_BARRIER] < 0:
            self._groups.close_group(agent, pc, op[ENGINE], moment)
        elif code in groups.COMMITS:
            for bar in self._program.commit_barriers(op):
                self._compared.use(bar, agent, pc, self._now(agent, pc), asynchronous=True)
                self._flies(agent, pc, bar, moment)

    def _flies(self, agent: int, pc: int, bar: int, moment: Knowledge) -> int:
        self._flights += 1
        key = agent, pc, bar  # of a multicast to a pair of CTAs two landings may be counted on one barrier
        self._issued[key] = (*self._issued.get(key, ()), _IssuedTransfer(moment, self._flights))
        return self._flights

    def _wait_group(self, before: State, agent: int, pc: int, op: Operation) -> None:
        """A wgmma ends when every warp of its group has issued it: that is before the wait, and orders no memory."""
        limit = before.commits[agent * len(Engine) + op[ENGINE]] - op[GROUPS]
        now = self._moments[agent]
        told = self._groups.wait(agent, pc, op[ENGINE], limit, self._compared.accesses, now)
        if told.occurs != now.occurs:
            self._moments[agent] = now._replace(occurs=told.occurs)

    def _touch(self, access: AccessEvent) -> None:
        self._compared.touch(access, self._now(access.agent, access.pc))

    # its place

    def fork(self) -> "MemoryOrder":
        """The same, to continue by itself."""
        twin = object.__new__(MemoryOrder)
        vars(twin).update(vars(self))
        twin._done = [done.copy() for done in self._done]
        for name in ("_moments", "_open", "_joined", "_released", "_taken", "_tries", "_issued", "_fresh", "_reached"):
            setattr(twin, name, getattr(self, name).copy())
        twin._groups = self._groups.fork(self._program)
        twin._compared = self._compared.fork()
        return twin

    def state_key(self) -> Hashable:
        """Equal for two observers of one program that will find the same faults in the same moves from here on."""
        marks = Marks()
        for key, flights in sorted(self._issued.items()):  # by agent and operation: in the order of issue
            marks.shape += (key, len(flights))
            for issued in flights:
                marks.moment(issued.before.after_operation(*key[:2]))
        return self.snapshot(), marks.snapshot()

    def snapshot(self) -> Snapshot:
        """Everything that it may yet compare, and nothing that grows with the run."""
        marks = Marks([*sorted(self._fresh)])
        for moment in self._moments:
            marks.moment(moment)
        for channel in range(self._channels):
            self._mark_channel(marks, channel)
        for agent, fences in sorted(self._released.items()):
            marks.shape.append(agent)
            marks.moment(fences.near)
            marks.moment(fences.wide)
        for agent, taken in sorted(self._taken.items()):
            marks.shape.append(agent)
            marks.phase(taken)
        for (agent, register), asked in sorted(self._tries.items()):
            marks.shape += (agent, register, asked.written, asked.fenced, asked.phases > 0)
            marks.operations.append((agent, asked.pc))
            if asked.seen is not None:
                marks.phases.append((self._program.code[agent][asked.pc][BARRIER], asked.phases))
                marks.phase(asked.seen)
        for place, pc in sorted(self._reached.items()):
            marks.shape.append(place)
            marks.operations.append((place[1], pc))
        self._groups.mark(marks, self._moments, self._compared.accesses)
        self._compared.mark(marks)
        return marks.snapshot()

    def _mark_channel(self, marks: Marks, channel: int) -> None:
        """Enter the open phase, the last one, and those for which an agent holds an arrival."""
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


def _agents_of(program: Program, cta: int) -> list[int]:
    return [n for n, each in enumerate(program.agents) if each.cta == cta]


def _has_full_fences(program: Program) -> bool:
    """Whether fences that are sequentially consistent may order what words of global memory do not."""
    fences = (op for op in program.operations if op[0] == Op.FENCE and op[FENCE] == Fence.SC)
    return program.words_cta >= 0 and any(scope_of(operand(op, "semantics")) != Scope.CTA for op in fences)


def _until(moment: Knowledge, agent: int, pc: int) -> Knowledge:
    """The same without what the agent has done from ``pc`` on."""

    def cut(clock: Clock) -> Clock:
        return clock if clock.seen[agent] <= pc else clock.after_operation(agent, pc - 1)

    occurs, ordered, synced, proxied, published, tensor, full = moment
    tensor = tensor if tensor is None else cut(tensor)
    return Knowledge(cut(occurs), cut(ordered), cut(synced), cut(proxied), cut(published), tensor, full)
