"""One run that represents all schedules, and the reasons why it may not.

The program runs once, in the canonical order. For every agent this observer knows what *occurs before* its next
operation: how far it has seen the other agents go, and which phases it knows to be complete. If that relation orders
every arrival, wait and access, each schedule makes the same phases of the same parts, and what this run shows holds
for all of them:

* a part of phase k+1 comes after the completion of phase k;
* a wait for phase k comes after the completion of phase k-1, and phase k+1, if it completes, needs something that comes
  after the wait has passed;
* what raises a count comes before an arrival of the same phase, so no phase completes without it;
* conflicting accesses are ordered.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from pipesim.model import groups
from pipesim.model.barrier import MAX_COUNT
from pipesim.model.groups import (
    ACCESS,
    ANSWER,
    AWAITED_TOKEN,
    BARRIER,
    COMMIT_BARRIER,
    CP_ASYNC_LANES,
    ENGINE,
    EXPECT,
    GROUPS,
    NOINC,
    PARITY,
    TOKEN,
    TX_BYTES,
)
from pipesim.model.machine import TMA, Flight, State, Step
from pipesim.model.moves import Committer
from pipesim.model.ops import Engine, Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.state import meeting_channel, own_channel
from pipesim.prove.certificate.canonical import CanonicalRun, CommitOrder, Witness
from pipesim.prove.certificate.requirements import Lives, OtherCta, Phase, PhasePart, RegisterRequests
from pipesim.prove.happens_before.accesses import OWN, Accesses, AccessEvent, Groups
from pipesim.prove.happens_before.snapshot import Clock, Marks, Snapshot, forget_before
from pipesim.prove.memory_order.exchanged import ExchangedPhases, first_of_instruction
from pipesim.prove.refutation import Doubt, Why


@dataclass
class _OpenPhase:
    """The open phase of a channel: what occurs before its parts, and before its arrivals alone."""

    parts: Clock
    arrivals: Clock
    raises: list[tuple[int, int]] = field(default_factory=list)
    expected: int = 0
    landed: int = 0
    raised: int = 0  #: arrivals that ``cp.async`` adds to those the barrier expects


class _StepTaken(NamedTuple):
    """An operation that an agent has carried out: the state before it, and what came of it."""

    before: State
    agent: int
    pc: int
    op: Operation
    result: Step


class _Issued(NamedTuple):
    """A flight: what occurs before its agent's issue, and the last flight of the same operation."""

    before: Clock  #: shared by all that the agent issues until it hears of others: one for each is gigabytes
    last: int


_BY_STATE = -1
_MOST_OF_A_KIND = 4_000  #: doubts that are kept, each with the past of all agents; dozens are looked into
_NO_PHASE = 1 << 62  #: of an arrival that may be counted in others: no phase shows that it has come


class _Try(NamedTuple):
    """A try whose answer an agent holds: what it asked, the phases it knew of then, and the one it would have seen.

    Or an arrive whose state it holds (parity :data:`_BY_STATE`): that is of the phase in which it was counted.
    """

    barrier: int
    parity: int
    known: int
    phase: int


class Certificate:
    """Watches one run; once it is over and :meth:`close` was called, it represents all if ``doubts`` is empty."""

    def __init__(
        self, program: Program, *, keep_reads: bool = False, groups: Groups[Clock] | None = None,
        exchanged: frozenset[int] = frozenset(),
    ) -> None:  # fmt: skip
        """``exchanged``: barriers whose phases may get each other's arrivals; it is for one run, without forks."""
        self._program = program
        self._channels = own_channel(program, 0)
        self._nothing = Clock((0,) * len(program.agents), (0,) * self._channels)
        self._clocks = [self._nothing] * len(program.agents)  # of others: how far itself has come each agent knows
        self._open = [_OpenPhase(self._nothing, self._nothing) for _ in range(self._channels)]
        self._done: list[list[Clock]] = [[] for _ in range(self._channels)]
        self._saw: list[list[tuple[int, int]]] = [[] for _ in range(self._channels)]  # waits for the latest phase
        self._lives = Lives(program)
        self._joined: dict[tuple[int, int], int] = {}  # (agent, channel) → generation it has arrived in
        self._tries: dict[tuple[int, int], _Try] = {}
        self._issued: dict[int, _Issued] = {}  # by flight
        self._commits = CommitOrder(program)
        self._requests: list[tuple[int, int, int]] = []  # for more registers: CTA, agent, pc
        self._ungranted: list[tuple[int, int]] = []  # changes of registers that some request may need, or prevent
        self._asks_registers = program.register_pools is not None
        self._registers_held = RegisterRequests(program)
        self._waited_for: Phase | None = None  # by the operation that is looked at
        self._groups = groups or Groups[Clock](program)
        self.accesses = Accesses(keep_reads=keep_reads)  #: for those who ask what a read saw
        self._other_cta = OtherCta(program)
        self._raised = {op[BARRIER] for op in program.operations if op[0] == Op.CP_ASYNC_ARRIVE and not op[NOINC]}
        self._exchanged = {bar: ExchangedPhases(self._nothing) for bar in exchanged}
        self._doubts: dict[Doubt, None] = {}
        self._kinds: Counter[Why] = Counter()
        self._rules: list[Callable[[_StepTaken], None] | None] = [None] * (max(Op) + 1)  # by the operation's number
        for op, rule in self._by_op().items():
            self._rules[op] = rule

    def fork(self, program: Program) -> "Certificate":
        """The same for another program, which has the same tables and began with the same operations."""
        twin = Certificate(program, groups=self._groups.fork(program))
        for name in ("_clocks", "_joined", "_tries", "_issued", "_requests", "_ungranted", "_doubts", "_kinds"):
            setattr(twin, name, getattr(self, name).copy())
        twin._open = [replace(phase, raises=phase.raises.copy()) for phase in self._open]
        twin._done, twin._saw = [done.copy() for done in self._done], [saw.copy() for saw in self._saw]
        twin._lives, twin._commits = self._lives.fork(), self._commits.fork(program)
        twin._registers_held, twin._other_cta = self._registers_held.fork(program), self._other_cta.fork(program)
        twin._nothing, twin.accesses = self._nothing, self.accesses.fork()
        return twin

    def seen(self, agent: int) -> tuple[int, ...]:
        """How many operations of each other agent come before the next one of this agent."""
        return self._clocks[agent].seen

    @property
    def doubts(self) -> tuple[Doubt, ...]:
        """Every reason once, in the order in which they were met; of each kind the first ones."""
        return tuple(self._doubts)

    def close(self) -> None:
        """The run is over: check the phases that have not completed, and what reached a CTA that may have ended."""
        for channel in range(len(self._program.barriers)):
            self._check_phase(channel)
        if self._ungranted and not self._registers_held.all_granted():
            for agent, pc in self._ungranted:
                self._doubt(Doubt(Why.REGISTERS, agent, pc))
        for bar, exchanged in self._exchanged.items():
            if exchanged.ended:
                self._other_cta.all_arrived(bar, len(self._done[bar]) - 1)
        for doubt in self._other_cta.doubts(self._clocks, self.accesses):
            self._doubt(doubt)

    def snapshot(self) -> Snapshot:
        """Where this observer is: everything that it may yet compare, and nothing that grows with the run."""
        marks = Marks()
        for clock in self._clocks:
            marks.moment(clock)
        for channel in range(self._channels):
            self._mark_channel(marks, channel)
        for (agent, channel), generation in sorted(self._joined.items()):
            marks.shape += (agent, channel, generation < len(self._done[channel]))
            marks.phases.append((channel, generation))
            if generation < len(self._done[channel]):
                marks.moment(self._done[channel][generation])
        for (agent, register), asked in sorted(self._tries.items()):
            marks.shape += (agent, register, asked.barrier, asked.parity)
            marks.phases += ((asked.barrier, asked.known), (asked.barrier, asked.phase))
        self._commits.mark(marks)
        self._groups.mark(marks, self._clocks, self.accesses)
        self._other_cta.mark(marks, self._clocks, self.accesses)
        self.accesses.mark(marks)
        self._lives.mark(marks)
        return marks.snapshot()

    def _mark_channel(self, marks: Marks, channel: int) -> None:
        done, phase = self._done[channel], self._open[channel]
        marks.phases.append((channel, len(done)))
        if done:
            marks.moment(done[-1])
        for clock in (phase.parts, phase.arrivals):
            marks.shape.append(clock is self._nothing)
            marks.moment(clock)
        marks.shape += (bool(done), phase.expected, phase.landed, phase.raised)
        marks.shape += (len(phase.raises), len(self._saw[channel]))
        marks.operations += phase.raises
        marks.operations += self._saw[channel]

    # watching

    def on_step(self, before: State, agent: int, result: Step) -> None:
        """An agent moved, or was blocked."""
        pc = before.pcs[agent]
        op = self._program.code[agent][pc]
        if op[0] == Op.BAR_SYNC and not before.holds[agent]:
            self._arrive_at(meeting_channel(self._program, op), agent, pc, result)
        if result.state.pcs[agent] == pc:
            return
        rule, clock, self._waited_for = self._rules[op[0]], self._clocks[agent], None
        if rule is not None:
            rule(_StepTaken(before, agent, pc, op, result))
        if self._asks_registers:
            self._registers_held.record_operation(agent, pc, op, clock, self._clocks[agent], self._waited_for)

    def on_landing(self, flight: Flight, nbytes: int, result: Step) -> None:
        """A transfer delivered its bytes, or the arrival that it represents."""
        issued = self._issued.pop(flight.sequence)
        if flight.barrier < 0:
            return
        bar, phases = flight.barrier, len(self._done[flight.barrier]) + 1
        self._lives.land(bar, (flight.agent, flight.pc), phases - 1)
        by = self._commits.committer(flight.agent, self._program.code[flight.agent][flight.pc])
        moment = issued.before.after_operation(flight.agent, flight.pc)
        clock = self._commits.before_arrival(by, flight.pc, moment)
        self._part(bar, clock, flight.agent, flight.pc, issued.last, by)
        self._commits.arrival(bar, by, flight.pc, phases - 1)
        if flight.engine == TMA:
            self._open[bar].landed += nbytes
            self.accesses.on_landing(flight.sequence, bar, phases)
        else:
            op = self._program.code[flight.agent][flight.pc]
            if op[0] != Op.CP_ASYNC_ARRIVE or op[NOINC]:  # else it only takes back what it raised
                self._open[bar].arrivals = self._open[bar].arrivals.join(clock)
            place = flight.agent, flight.engine, flight.sequence, bar, phases
            self.accesses.add_commit(*place, in_order=by is not None)
        self._complete(bar, result)

    # one rule for each kind of operation

    def _by_op(self) -> dict[int, Callable[[_StepTaken], None]]:
        """What is not here concerns its own agent only (``groups.PRIVATE``)."""
        return {
            Op.INIT: self._init,
            Op.INVAL: self._inval,
            Op.ARRIVE: self._arrive,
            Op.ARRIVE_DROP: self._arrive_drop,
            Op.EXPECT_TX: self._expect,
            Op.COMPLETE_TX: self._complete_tx,
            **dict.fromkeys(groups.PARITY_WAITS, self._wait),
            Op.WAIT_STATE: self._wait_by_state,
            **dict.fromkeys(groups.PARITY_TRIES, self._try),
            **dict.fromkeys(groups.MEETING_ARRIVALS, self._meet),
            **dict.fromkeys(groups.MEETING_WAITS, self._wait_at_meeting),
            **dict.fromkeys(groups.ACCESSES, self._touch),
            Op.SETMAXNREG: self._registers,
            **dict.fromkeys(groups.ASYNC_ACCESSES, self._issue),
            Op.COMMIT: self._commit,
            Op.COMMIT_MULTICAST: self._issue,
            Op.CP_ASYNC_ARRIVE: self._cp_async_arrive,
            Op.WAIT_GROUP: self._wait_group,
            **dict.fromkeys(groups.UNCERTIFIED, self._doubt_unsupported),
        }

    def _doubt_unsupported(self, did: _StepTaken) -> None:
        self._doubt(Doubt(Why.UNSUPPORTED, did.agent, did.pc))

    def _init(self, did: _StepTaken) -> None:
        if not self._lives.begin(did.op[BARRIER], (did.agent, did.pc), self._clocks[did.agent]):
            self._doubt(Doubt(Why.UNSUPPORTED, did.agent, did.pc))

    def _inval(self, did: _StepTaken) -> None:
        """Nothing of this life of the barrier may come after it; whoever hears of it knows all phases to be over."""
        bar, agent, pc = did.op[BARRIER], did.agent, did.pc
        self._require_published(bar, agent, pc)
        if self._open[bar].parts is not self._nothing:
            self._doubt(Doubt(Why.UNSUPPORTED, agent, pc))
        phases = len(self._done[bar])
        pending = {(each.agent, each.pc) for each in did.before.flights if each.barrier == bar}  # it may signal later
        for other in (*self._lives.end(bar, (agent, pc), self._clocks[agent], phases), *sorted(pending)):
            self._doubt(Doubt(Why.EARLY_INVAL, agent, pc, self._past(agent, pc), *other, where=bar))
        self._clocks[agent] = self._clocks[agent].with_phases(bar, phases)
        self._saw[bar] = []
        self._tries = {key: asked for key, asked in self._tries.items() if asked.barrier != bar}

    def _arrive_drop(self, did: _StepTaken) -> None:
        """An arrive; whichever comes first, those of one phase lower the count of the next one by the same sum."""
        if did.op[BARRIER] in self._raised:
            self._doubt(Doubt(Why.UNSUPPORTED, did.agent, did.pc))
        self._arrive(did)

    def _arrive(self, did: _StepTaken) -> None:
        self._require_published(did.op[BARRIER], did.agent, did.pc)
        phase, clock = self._count(did.agent, did.pc, did.op[BARRIER])
        phase.arrivals = clock if phase.arrivals is self._nothing else phase.arrivals.join(clock)
        phase.expected += did.op[EXPECT]
        if did.op[TOKEN] >= 0:
            bar = did.op[BARRIER]
            self._tries[did.agent, did.op[TOKEN]] = _Try(bar, _BY_STATE, clock.known[bar], len(self._done[bar]))
        self._complete(did.op[BARRIER], did.result)

    def _expect(self, did: _StepTaken) -> None:
        self._require_published(did.op[BARRIER], did.agent, did.pc)
        phase, _ = self._count(did.agent, did.pc, did.op[BARRIER])
        phase.raises.append((did.agent, did.pc))
        phase.expected += did.op[TX_BYTES]
        self._complete(did.op[BARRIER], did.result)

    def _complete_tx(self, did: _StepTaken) -> None:
        self._require_published(did.op[BARRIER], did.agent, did.pc)
        phase, _ = self._count(did.agent, did.pc, did.op[BARRIER])
        if not did.op[TX_BYTES]:  # no phase waits for it
            self._doubt(Doubt(Why.UNSUPPORTED, did.agent, did.pc))
        phase.landed += did.op[TX_BYTES]
        self._complete(did.op[BARRIER], did.result)

    def _meet(self, did: _StepTaken) -> None:
        """An arrival at a barrier of threads.

        The cluster barrier does not wait for agents that have ended. The k-th arrival of an agent is in generation k,
        and whoever makes fewer has ended when that completes: each generation has the same parts in every schedule.
        An end releases nothing, so it orders no accesses here.
        """
        self._arrive_at(meeting_channel(self._program, did.op), did.agent, did.pc, did.result)

    def _wait_at_meeting(self, did: _StepTaken) -> None:
        channel = meeting_channel(self._program, did.op)
        if did.op[0] == Op.CLUSTER_WAIT:
            self._complete(channel, did.result)  # those who have ended were all that it still waited for
        self._see(did.agent, channel, self._joined.pop((did.agent, channel), -1))  # -1: it waits without having arrived

    def _registers(self, did: _StepTaken) -> None:
        """Registers given back make no request wait that must not: then they are given back whatever has been granted.

        If no agent gives any back after a request for more, of whomever in its CTA, and the pool holds all that its
        groups ask for together, every request is granted in every schedule, however late. Otherwise it is checked when
        the run is over (:class:`RegisterRequests`).
        """
        pools = self._program.register_pools
        if pools is None:
            return
        cta, wanted = self._program.agents[did.agent].cta, operand(did.op, "registers")
        if wanted > pools.of_thread(did.agent, did.pc):
            self._requests.append((cta, did.agent, did.pc))
        clock = self._clocks[did.agent]
        after = any(
            where == cta and (agent == did.agent or clock.covers(agent, pc))
            for where, agent, pc in self._requests
            if (agent, pc) != (did.agent, did.pc)
        )
        if after or pools.highest(cta) > pools.size(cta):
            self._ungranted.append((did.agent, did.pc))

    def _touch(self, did: _StepTaken) -> None:
        first, end = self._program.cells[did.op[ACCESS]]
        clock = self._clocks[did.agent]
        writes, alike = did.op[0] == Op.WRITE, self._program.alike(did.op)
        self._access(clock, AccessEvent(did.agent, did.pc, writes, OWN, -1, first, end, clock.seen, alike))

    def _cp_async_arrive(self, did: _StepTaken) -> None:
        self._require_published(did.op[BARRIER], did.agent, did.pc)
        if not did.op[NOINC]:
            phase, _ = self._count(did.agent, did.pc, did.op[BARRIER])
            phase.raises.append((did.agent, did.pc))
            phase.raised += did.op[CP_ASYNC_LANES]
            if did.before.barriers[did.op[BARRIER]].expected + phase.raised > MAX_COUNT:
                self._doubt(Doubt(Why.ARRIVALS, did.agent, did.pc, where=did.op[BARRIER]))
        self._issue(did)

    def _commit(self, did: _StepTaken) -> None:
        if did.op[COMMIT_BARRIER] < 0:
            self._groups.close_group(did.agent, did.pc, did.op[ENGINE], self._clocks[did.agent])
        else:
            self._issue(did)

    def _wait_group(self, did: _StepTaken) -> None:
        limit = did.before.commits[did.agent * len(Engine) + did.op[ENGINE]] - did.op[GROUPS]
        self._clocks[did.agent] = self._groups.wait(
            did.agent, did.pc, did.op[ENGINE], limit, self.accesses, self._clocks[did.agent]
        )

    # parts of phases

    def _count(self, agent: int, pc: int, bar: int) -> tuple[_OpenPhase, Clock]:
        """Count an operation in the open phase of a barrier: that phase, and the moment after the operation."""
        clock = self._clocks[agent].after_operation(agent, pc)
        self._part(bar, clock, agent, pc)
        self._commits.operation(bar, agent, pc)
        return self._open[bar], clock

    def _part(
        self, channel: int, clock: Clock, agent: int, pc: int, flight: int = 0, by: Committer | None = None
    ) -> None:
        """Something is counted in the open phase: it must not be possible that it comes in the one before."""
        phase, number = self._open[channel], len(self._done[channel])
        exchanged = self._exchanged.get(channel)
        if exchanged is not None:
            first = first_of_instruction(self._program.code[agent], pc)
            after, clock = clock, self._clocks[agent].after_operation(agent, first - 1)
            early, number = not exchanged.arrive(agent, pc, clock, after), _NO_PHASE
        else:
            early = clock.known[channel] < number
        if early:
            self._doubt(Doubt(Why.EARLY_PART, agent, pc, clock.seen, where=channel))
        if self._program.ctas > 1 and channel < len(self._program.barriers):
            self._other_cta.part(PhasePart(channel, number, agent, pc, flight, by))
        phase.parts = clock if phase.parts is self._nothing else phase.parts.join(clock)

    def _complete(self, channel: int, result: Step) -> None:
        if result.signalled != channel:
            return
        self._check_phase(channel)
        parts = self._open[channel].parts
        for agent, pc in self._saw[channel]:
            if not parts.covers(agent, pc):
                self._doubt(Doubt(Why.LAP, agent, pc, parts.seen, where=channel))
        moment = parts.with_phases(channel, len(self._done[channel]) + 1)
        self._commits.complete(channel, len(self._done[channel]), moment)
        forget_before(channel, self._done[channel], self._joined)
        self._done[channel].append(moment)
        if channel in self._exchanged:
            self._exchanged[channel].complete(self._saw[channel])
        self._saw[channel] = []
        self._open[channel] = _OpenPhase(self._nothing, self._nothing)

    def _check_phase(self, bar: int) -> None:
        phase = self._open[bar]
        for agent, pc in phase.raises:
            if not phase.arrivals.covers(agent, pc):
                self._doubt(Doubt(Why.LATE_RAISE, agent, pc, phase.arrivals.seen, where=bar))
        if phase.landed > phase.expected or phase.expected > MAX_COUNT:
            self._doubt(Doubt(Why.BYTES, -1, -1, where=bar))

    # waits

    def _wait(self, did: _StepTaken) -> None:
        self._require_published(did.op[BARRIER], did.agent, did.pc)
        bar = did.op[BARRIER]
        phase, known = len(self._done[bar]) - 1, self._clocks[did.agent].known[bar]
        if did.op[0] == Op.WAIT_UNLESS and did.op[ANSWER] >= 0:
            asked = self._tries.get((did.agent, did.op[ANSWER]))
            skips = did.before.registers[did.agent][did.op[ANSWER]]
            if asked is None or asked[:2] != (bar, did.op[PARITY]) or (skips and asked.phase != phase):
                self._doubt(Doubt(Why.STALE_TRY, did.agent, did.pc, self._past(did.agent, did.pc), where=bar))
                return
            known = min(known, asked.known)
        exchanged = self._exchanged.get(bar)
        plain = did.op[0] != Op.WAIT_UNLESS or did.op[ANSWER] < 0
        late = exchanged is not None and plain and exchanged.cannot_pass_early(did.agent, self._clocks[did.agent])
        if known < phase and not late:
            self._doubt(Doubt(Why.EARLY_PASS, did.agent, did.pc, self._past(did.agent, did.pc), where=bar))
        if exchanged is not None and not exchanged.arrivals.see():
            self._doubt(Doubt(Why.EARLY_PART, did.agent, did.pc, self._past(did.agent, did.pc), where=bar))
        self._saw[bar].append((did.agent, did.pc))
        self._see(did.agent, bar, phase)

    def _wait_by_state(self, did: _StepTaken) -> None:
        """The state says which phase: it cannot pass early, but the phase after that may complete before it looks."""
        self._require_published(did.op[BARRIER], did.agent, did.pc)
        bar = did.op[BARRIER]
        phase, held = len(self._done[bar]) - 1, self._tries.get((did.agent, did.op[AWAITED_TOKEN]))
        if held is None or held[:2] != (bar, _BY_STATE) or held.phase != phase:
            self._doubt(Doubt(Why.STALE_TRY, did.agent, did.pc, self._past(did.agent, did.pc), where=bar))
            return
        self._saw[bar].append((did.agent, did.pc))
        self._see(did.agent, bar, phase)

    def _try(self, did: _StepTaken) -> None:
        self._require_published(did.op[BARRIER], did.agent, did.pc)
        if did.op[ANSWER] >= 0:
            phase = len(self._done[did.op[BARRIER]]) - 1
            known = self._clocks[did.agent].known[did.op[BARRIER]]
            self._tries[did.agent, did.op[ANSWER]] = _Try(did.op[BARRIER], did.op[PARITY], known, phase)

    def _see(self, agent: int, channel: int, phase: int) -> None:
        """The agent now knows that this phase is complete, and all that occurs before that."""
        if 0 <= phase < len(self._done[channel]):  # else the wait itself breaks a rule
            self._waited_for = channel, phase
            self._clocks[agent] = self._clocks[agent].join(self._done[channel][phase])

    def _arrive_at(self, channel: int, agent: int, pc: int, result: Step) -> None:
        """An arrival at a named barrier or the cluster barrier. That of a sync is the first half of its operation."""
        self._joined[agent, channel] = len(self._done[channel])
        clock = self._clocks[agent]
        sync = self._program.code[agent][pc][0] == Op.BAR_SYNC
        self._part(channel, clock.after_operation(agent, pc - sync), agent, pc)
        self._complete(channel, result)

    def _past(self, agent: int, pc: int) -> tuple[int, ...]:
        """How far each agent must have come before this operation."""
        return self._clocks[agent].after_operation(agent, pc - 1).seen

    def _require_published(self, bar: int, agent: int, pc: int) -> None:
        if not self._lives.use(bar, (agent, pc), self._clocks[agent]):
            self._doubt(Doubt(Why.UNPUBLISHED, agent, pc, self._past(agent, pc), where=bar))

    # transfers

    def _issue(self, did: _StepTaken) -> None:
        """Something is put under way: remember its clock, enter its access, and what a commit follows."""
        before_it = self._clocks[did.agent]
        flights = did.result.state.flights[len(did.before.flights) :]
        for flight in flights:
            self._issued[flight.sequence] = _Issued(before_it, flights[-1].sequence)
            if flight.engine == TMA and not flight.remaining:  # no phase waits for a copy of no bytes
                self._doubt(Doubt(Why.UNSUPPORTED, did.agent, did.pc))
            if flight.barrier >= 0:
                self._require_published(flight.barrier, did.agent, did.pc)
            if flight.end > flight.first:
                access = AccessEvent(
                    did.agent, did.pc, flight.writes, flight.sequence, flight.engine, flight.first, flight.end,
                    before_it.seen,
                )  # fmt: skip
                self._access(before_it, access)
                self._groups.add_access(flight.group, access)

    def _access(self, clock: Clock, access: AccessEvent) -> None:
        if self._program.ctas > 1:
            self._other_cta.access(access)
        ordered, last = self.accesses.ordered, access
        unordered: dict[AccessEvent, None] = {}
        for _, other in self.accesses.enter(access):
            if other is not last and not ordered(clock, other, access):
                unordered[other] = None
            last = other  # of most accesses that were before, one covers all cells
        for other in unordered:
            past = list(map(max, access.past, other.past))
            for one in (access, other):
                past[one.agent] = max(past[one.agent], one.pc)
            self._doubt(Doubt(Why.RACE, access.agent, access.pc, tuple(past), other.agent, other.pc))

    def _doubt(self, doubt: Doubt) -> None:
        if self._kinds[doubt.why] < _MOST_OF_A_KIND and doubt not in self._doubts:
            self._kinds[doubt.why] += 1
            self._doubts[doubt] = None


def certified(
    program: Program, *others: Witness | None, exchanged: frozenset[int] = frozenset()
) -> tuple[CanonicalRun, Certificate]:
    """The canonical run to its end, which ``others`` watch too, and what it says of every schedule."""
    certificate = Certificate(program, exchanged=exchanged)
    run = CanonicalRun(program, [certificate, *others]).to_end()
    certificate.close()
    return run, certificate
