"""One simulated run: SimPy decides who moves next, by simulated time; what a move does is the machine's business.

Every agent is a chain of bare events, one for each operation that others can notice; nothing polls. A blocked agent has
no event at all until the channel it waits on signals. Times are whole cycles, ties fall in the order of scheduling. An
event before which nothing else is due happens at once, without the queue.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from pipesim.explain.blocked import explain
from pipesim.model.ending import Ending
from pipesim.model.finding import Fault
from pipesim.model.live.rules import rules_of
from pipesim.model.live.running import MOVED, Running, Watched, blocked_on
from pipesim.model.machine import Flight, Observer
from pipesim.model.moves import can_land
from pipesim.model.ops import IN_ORDER
from pipesim.model.program import Program
from pipesim.model.state import cluster_channel
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.process.watch import current
from pipesim.timed.agenda import LAST, Agenda, HappensAt, LandsAt
from pipesim.timed.costs import Cost, record_cycles, sm_khz, work_record
from pipesim.timed.plan import ACCESS, IDLE, ISSUES, PRIVATE, WAITS, Planned, plan
from pipesim.timed.profile import Profile
from pipesim.timed.simulation import Simulation
from pipesim.timed.sm.engines import Engines
from pipesim.timed.waits import Waits
from pipesim.trace.recorder import StampBuffer
from pipesim.trace.schema import ESTIMATED_WORK, Device, SiteKey, Trace, TraceMeta


class TimedRun:
    """The mutable side of one simulation."""

    def __init__(
        self,
        program: Program,
        profile: Profile,
        *,
        traced: bool,
        max_steps: int,
        observers: Sequence[Observer],
        also: frozenset[SiteKey],
    ) -> None:
        self._program = program
        self._code = program.code
        self._profile = profile
        self._live = Watched(program, observers) if observers else Running(program)
        self._rules = rules_of(self._live)
        self._watched = bool(observers)
        self._budget = max_steps
        self._traced = traced
        self._record = record_cycles(program, profile, traced=traced)
        self._work_record = work_record(program, self._record)
        self._table, meanings, self._plans = plan(program, profile, traced=traced, also=also)
        self._buffer = StampBuffer(meanings)
        self._agenda = Agenda()
        self._now = 0
        self._waits = Waits(self._live, profile, self._plans, self._buffer, self._agenda, record=self._record)
        self._engines = Engines(program, profile)
        self._held: list[Flight] = []
        self._in_air: dict[int, LandsAt] = {}  #: the landing of each flight, by its sequence number
        self._products: dict[int, tuple[int, int]] = {}  #: of a flight that a core has to end: its work, its latency
        self._waiting: dict[int, list[LandsAt]] = {}  #: landings of an agent's products that other warps hold up
        self._landed: list[LandsAt] = []  #: to be used again
        self._late: dict[tuple[int, int], None] = {}
        self._alive = [sum(1 for a in program.agents if a.cta == cta) for cta in range(program.ctas)]  #: not ended yet
        self._left = [0] * program.ctas  #: when the last agent to end so far ended
        self._launched = 0  #: transfers put under way so far
        self._ends = [-1] * len(program.agents)
        self._faults: list[Fault] = []
        self.landings: list[tuple[int, int, int, int]] | None = None
        self._steps = self._skipped = 0
        self._stopped_at = 0
        self._at_once = list(map(len, program.code))  #: from which operation on an agent has to queue always
        self._turns = self._waits.turns
        for agent in range(len(program.agents)):
            self._turns.append(HappensAt(self._agenda, self._mover(agent)))
            self._agenda.put(self._turns[agent], profile["cta.start"])

    def result(self, *, until_time_limit: bool) -> Simulation:
        """Run the queue dry and say how it ended."""
        cut = None
        try:
            self._drain()
        except LimitReachedError as reached:
            if reached.limit is not Limit.TIME or not until_time_limit:
                raise
            current().resume()
            cut = reached.limit
            self._stop()
        state = self._live.state()
        stuck = None if self._agenda.stopped else explain(self._program, state)
        if any(f.kind.traps for f in self._faults):
            ending = Ending.FAULT
        elif self._agenda.stopped:
            ending = Ending.UNKNOWN
        else:
            ending = Ending.DEADLOCK if stuck else Ending.FINISHED
        return Simulation(
            self._program,
            self._profile,
            ending,
            max((self._stopped_at if self._agenda.stopped else self._now, *self._ends)),
            tuple(self._ends),
            self._trace(ending),
            stuck,
            tuple(self._faults),
            self._steps,
            self._agenda.happened,
            state,
            tuple(self._late),
            cut,
            tuple(self.landings or ()),
            self._skipped,
        )

    def _drain(self) -> None:
        """Until the queue is empty, and no product waits for a warp that does not come."""
        self._agenda.drain()
        while self._waiting and not self._agenda.stopped:
            for agent in self._engines.cores.give_up(self._now):
                self._begin_products(agent)
            self._agenda.drain()

    # moving

    def _mover(self, agent: int) -> Callable[[HappensAt], None]:  # noqa: C901  # hot: a call less is a tenth of it
        """What lets ``agent`` go on until it blocks, ends, or does what others can notice after something else is due.

        A closure: it is called for every event, and finds what it needs in its own variables.
        """
        live, rules, code, plans = self._live, self._rules, self._code[agent], self._plans[agent]
        pcs, stamp, length, record = live.pcs, self._buffer.flat.extend, len(plans), self._record
        agenda, waits, issuing, at_once = self._agenda, self._waits, self._engines.issuing, self._at_once
        peek, entered, opened = agenda.peek, waits.entered, live.opened
        idle = IDLE if not self._watched else -1
        work_record = self._work_record

        def move(due: HappensAt) -> None:  # noqa: C901  # the same
            self._now = now = time = due.at
            if issuing and agent in issuing:
                time = self._issued(agent, due)
                if time < 0:
                    return
            while not agenda.stopped:
                pc = pcs[agent]
                if pc == length:
                    self._end(agent, time)
                    return
                kind, busy, first, second, planned = plans[pc]
                if kind == idle:
                    pcs[agent] = pc + 1
                    self._steps += 1
                    if self._steps >= self._budget:
                        self._stop()
                    time += busy
                    continue
                if time != now and kind > PRIVATE:
                    if peek() <= time or pc >= at_once[agent]:
                        agenda.put(due, time)
                        return
                    self._now = now = time
                    agenda.happened += 1
                if kind == ISSUES:
                    if peek() <= now and planned.cost.engine and due.number < LAST:  # others may use it in this cycle
                        agenda.put_last(due, now, agent)
                        return
                elif kind > WAITS:
                    if kind == ACCESS:
                        if opened[agent] is None:
                            time = self._opened(agent, planned)
                            continue
                    elif kind < ACCESS:
                        if waits.suspended(agent, pc, now, kind):
                            return
                    else:
                        time = self._slowed(agent, planned)
                        if time > now:
                            continue
                op = code[pc]
                outcome = rules[op[0]](live, agent, op)
                self._steps += 1
                if (live.faults or self._steps >= self._budget) and self._went_wrong():  # inside the operation
                    if first >= 0 and entered[agent] < 0:
                        stamp((first, time))
                    return
                if outcome < MOVED:
                    waits.block(agent, blocked_on(outcome), now, first)
                    return
                if kind >= ACCESS:  # its time has passed already
                    if planned.cost.flight < 0:
                        continue
                elif kind >= WAITS:
                    if kind == WAITS and outcome == MOVED and entered[agent] >= 0:  # woken up a moment ago
                        time = max(time, entered[agent] + busy)
                        entered[agent] = -1
                        if second >= 0:
                            stamp((second, time))
                            time += record
                        continue
                    if planned.cost.demand and (passing := waits.passes(agent, pc, planned, now)) is not None:
                        issuing.add(agent)
                        agenda.put(due, self._engines.slots.begin(agent, now, passing))
                        return
                    time = waits.returned(agent, pc, planned, time, outcome)
                    continue
                if first >= 0:
                    stamp((first, time))
                    if second >= 0:  # work: its end is recorded too
                        stamp((second, time + busy - work_record))
                time += busy
                if kind >= ISSUES:
                    at = self._launch(agent, planned.cost)
                    if agent in issuing:
                        agenda.put(due, self._issues(agent, planned.cost, max(time, at)))
                        return
                if outcome >= 0:
                    waits.signal(outcome, now + planned.cost.visible, landed=False)

        return move

    def _end(self, agent: int, time: int) -> None:
        """The agent has carried out its last operation."""
        self._ends[agent] = time
        cta = self._program.agents[agent].cta
        self._alive[cta] -= 1
        self._left[cta] = max(self._left[cta], time)
        if self._program.leaves_cluster_barrier:  # it may go on without this agent: who waits there looks again
            self._waits.signal(cluster_channel(self._program), time, landed=False)

    def _opened(self, agent: int, planned: Planned) -> int:
        """A read or write begins: what overlaps it until it ends is a race. When it ends."""
        self._live.begin(agent)
        if self._live.faults:
            self._fail()
        if planned.lasts[0] >= 0:
            self._buffer.stamp(planned.lasts[0], self._now)
        return self._now + planned.cost.busy

    def _slowed(self, agent: int, planned: Planned) -> int:
        """A work that shares its SM with others begins, or may have ended: now if it has, else when to look again."""
        begin, ends = planned.lasts
        shared = self._engines.shared(planned.cost)
        if agent in shared:
            at = shared.ended(agent, self._now)
            if at == self._now and ends >= 0:
                self._buffer.stamp(ends, at - self._work_record)
            return at
        if planned.opens:
            self._live.begin(agent)
            if self._live.faults:
                self._fail()
        if begin >= 0:
            self._buffer.stamp(begin, self._now)
        return shared.begin(agent, self._now, planned.cost)

    def _went_wrong(self) -> bool:
        """What only some runs need after a step: faults, the end of the budget. True if the step traps."""
        trapped = self._fail()
        if self._steps >= self._budget:
            self._stop()
        return trapped

    def _fail(self) -> bool:
        """Keep the faults of the last move. True if one traps, and ends the run."""
        faults, self._live.faults = self._live.faults, ()
        self._faults.extend(faults)
        trapped = any(f.kind.traps for f in faults)
        if trapped:
            self._stop()
        return trapped

    def _stop(self) -> None:
        self._agenda.stopped = True
        self._stopped_at = self._now

    # what is under way

    def _launch(self, agent: int, cost: Cost) -> int:
        """What the last step of ``agent`` put under way: a bulk copy queues for its CTA's engine, an MMA ends with the
        work that its agent gave the matrix engine, others just take their time. Returns when the agent may go on.
        """
        live, now, engines = self._live, self._now, self._engines
        count, self._launched = live.issued - self._launched, live.issued
        if not count:  # the matrix engine works
            at = engines.multiplies(agent, now, cost)
            for each in engines.begun if self._waiting else ():
                self._begin_products(each)
            return at
        issued = live.flights[-count:]  # several if it is a multicast
        if issued[0].engine in IN_ORDER:
            lands = max(now, engines.multiplied[agent]) + cost.flight
            given = engines.cores.given[agent]
            done = engines.cores.ends(agent, given, now)
            if done != now:
                lands = done
                self._products.update({flight.sequence: (given, cost.flight) for flight in issued})
        elif cost.engine:
            lands = engines.copies(agent, now, cost)
        else:
            lands = now + cost.flight
        for flight in issued:
            if flight.after:
                self._held.append(flight)
            else:
                self._takes_off(flight, lands)
        if self._held:
            self._release_held()
        return now

    def _issues(self, agent: int, cost: Cost, at: int) -> int:
        """An agent begins to issue a multiplication, ``at`` the earliest until then; when to look whether it has."""
        if cost.demand:
            return self._engines.slots.begin(agent, self._now, cost)
        return at

    def _issued(self, agent: int, due: HappensAt) -> int:
        """When an agent goes on that is ``issuing``, as it has issued a multiplication or its wait has passed; -1 if
        others have slowed it, and it has not yet.
        """
        at = self._engines.issued(agent, self._now)
        if at > self._now:
            self._agenda.put(due, at)
            return -1
        self._engines.issuing.discard(agent)
        return self._waits.passed(agent, at)

    def _takes_off(self, flight: Flight, at: int) -> None:
        """A flight is to land then; -1: a product that waits for other warps of its group."""
        due = self._landed.pop() if self._landed else LandsAt(self._agenda, self._land)
        due.flight = flight
        if at < 0:
            self._waiting.setdefault(flight.agent, []).append(due)
            return
        self._in_air[flight.sequence] = due
        self._agenda.put(due, at)

    def _begin_products(self, agent: int) -> None:
        """All warps of its group have come: what it waits for can end."""
        for due in self._waiting.pop(agent, ()):
            self._in_air[due.flight.sequence] = due
            self._ends_product(due.flight, due)

    def _land(self, due: LandsAt) -> None:
        self._now = due.at
        flight = due.flight
        if flight.sequence in self._products:
            self._ends_product(flight, due)
            return
        del self._in_air[flight.sequence]
        self._landed.append(due)
        if self._agenda.stopped:
            return
        signalled = self._live.land(flight)
        if self.landings is not None:
            self.landings.append((flight.agent, flight.pc, flight.barrier, self._now))
        cta = self._program.agents[flight.agent].cta
        if not self._alive[cta] and flight.first < flight.end and self._now > self._left[cta]:
            self._late[flight.agent, flight.pc] = None
        if self._live.faults:
            self._fail()
        if signalled >= 0:
            self._waits.signal(signalled, self._now, landed=True)
        if self._held:
            self._release_held()

    def _ends_product(self, flight: Flight, due: LandsAt) -> None:
        """A product may have ended: it lands a while later."""
        target, latency = self._products[flight.sequence]
        at = self._engines.cores.ends(flight.agent, target, self._now)
        if at < 0:
            self._waiting.setdefault(flight.agent, []).append(self._in_air.pop(flight.sequence))
            return
        if at == self._now:
            at += latency
            del self._products[flight.sequence]
        self._agenda.put(due, at)

    def _release_held(self) -> None:
        """Arrivals that waited for earlier transfers of their agent, which have landed now."""
        ready = [f for f in self._held if can_land(self._live, f)]
        self._held = [f for f in self._held if f not in ready]
        for flight in ready:
            self._takes_off(flight, self._now)

    def _trace(self, ending: Ending) -> Trace:
        extra = {"profile": self._profile.name, "recording": self._traced}
        if self._program.counts_instructions:
            extra[ESTIMATED_WORK] = True
        clock = sm_khz(self._program, self._profile)
        meta = TraceMeta(
            source="simulation",
            protocol=self._program.name,
            params=dict(self._program.params),
            grid=self._program.grid * self._program.ctas,  # CTAs in the launch
            device=Device(name=self._profile.device, sms=self._profile.sms, sm_khz=clock),
            agents=self._table.agents,
            barriers=self._table.barriers,
            sites=self._table.sites,
            status=ending,
            extra=extra,
        )
        return Trace(meta, self._buffer.events(clock))
