"""One simulated run: SimPy decides who moves next, by simulated time; what a move does is the machine's business.

Every agent is a SimPy process. It yields an event before each operation that others can notice; nothing polls. An agent
that is blocked yields a wait, which is triggered by who completes its phase. A transfer is an event that happens when
it lands. Times are whole cycles, ties fall in the order of scheduling.
"""

from collections.abc import Generator, Sequence

import simpy

from pipesim.explain.blocked_agents import explain
from pipesim.model.ending import Ending
from pipesim.model.finding import Fault
from pipesim.model.live.live_run import MOVED, LiveRun, ObservedRun, blocked_on
from pipesim.model.live.rules import rules_of
from pipesim.model.machine import Flight, Observer, finished
from pipesim.model.moves import can_land
from pipesim.model.ops import IN_ORDER
from pipesim.model.program import Program
from pipesim.model.state import cluster_channel
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.process.watch import current
from pipesim.timed.costs import Cost, record_cycles, sm_khz, work_record
from pipesim.timed.plan import ACCESS, IDLE, ISSUES, PRIVATE, WAITS, PlannedOperation, plan
from pipesim.timed.profile import Profile
from pipesim.timed.simulation import Simulation
from pipesim.timed.sm.engines import Copy, Engines, LandingTimeout
from pipesim.timed.waits import CycleEnvironment, EngineTurn, Waits
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
        self._live = ObservedRun(program, observers) if observers else LiveRun(program)
        self._rules = rules_of(self._live)
        self._watched = bool(observers)
        self._budget = max_steps
        self._traced = traced
        self._record = record_cycles(program, profile, traced=traced)
        self._work_record = work_record(program, self._record)
        self._table, meanings, self._plans = plan(program, profile, traced=traced, also=also)
        self._buffer = StampBuffer(meanings)
        self.env = CycleEnvironment()
        self._waits = Waits(self._live, profile, self._plans, self._buffer, self.env, record=self._record)
        self._engines = Engines(self.env, program, profile)
        self._held: list[Flight] = []
        self._products: dict[int, tuple[int, int]] = {}  #: of a flight that a core has to end: its work, its latency
        self._waiting: dict[int, list[Flight]] = {}  #: an agent's products that other warps hold up
        self._late: dict[tuple[int, int], None] = {}
        self._alive = [sum(1 for a in program.agents if a.cta == cta) for cta in range(program.ctas)]  #: not ended yet
        self._left = [0] * program.ctas  #: when the last agent to end so far ended
        self._launched = 0  #: transfers put under way so far
        self._ends = [-1] * len(program.agents)
        self._faults: list[Fault] = []
        self.landings: list[tuple[int, int, int, int]] | None = None
        self._steps = 0
        self._latest = self._stopped_at = 0  #: when something happened last
        self._stopped = False  #: whatever is due does nothing
        for agent in range(len(program.agents)):
            self.env.process(self._agent(agent))

    def result(self, *, until_time_limit: bool) -> Simulation:
        """Run until nothing is due, and say how it ended."""
        cut = None
        try:
            self._run()
        except LimitReachedError as reached:
            if reached.limit is not Limit.TIME or not until_time_limit:
                raise
            current().resume()
            cut = reached.limit
            self._stop()
        state = self._live.state()
        ended = all(finished(self._program, state, agent) for agent in range(len(self._program.agents)))
        stuck = None if self._stopped or ended else explain(self._program, state)
        if any(f.kind.traps for f in self._faults):
            ending = Ending.FAULT
        elif self._stopped:
            ending = Ending.UNKNOWN
        else:
            ending = Ending.DEADLOCK if stuck else Ending.FINISHED
        return Simulation(
            self._program,
            self._profile,
            ending,
            max((self._stopped_at if self._stopped else self._latest, *self._ends)),
            tuple(self._ends),
            self._trace(ending),
            stuck,
            tuple(self._faults),
            self._steps,
            state,
            tuple(self._late),
            cut,
            tuple(self.landings or ()),
        )

    def _run(self) -> None:
        """Until nothing is due, and no product waits for a warp that does not come."""
        self.env.run()
        while self._waiting and not self._stopped:
            for agent in self._engines.cores.give_up(self.env.now):
                self._begin_products(agent)
            self.env.run()

    # moving

    def _agent(self, agent: int) -> Generator[simpy.Event, None, None]:  # noqa: C901  # hot: a call less is a tenth of it
        """The process of an agent. It yields before what others can notice, until that is due, and where it is blocked.

        ``now`` is the cycle of the environment, ``time`` the one that the agent has reached by what no other
        agent notices.
        """
        env, live, rules, code, plans = self.env, self._live, self._rules, self._code[agent], self._plans[agent]
        pcs, stamp, length, record = live.pcs, self._buffer.flat.extend, len(plans), self._record
        waits, engines, entered, opened = self._waits, self._engines, self._waits.entered, live.opened
        idle, issuing, work_record = IDLE if not self._watched else -1, engines.issuing, self._work_record
        event: simpy.Event = env.timeout(self._profile["cta.start"])
        while True:
            yield event
            self._latest = now = time = env.now
            if agent in issuing:
                if (at := engines.issue_end(agent, now)) > now:  # others have slowed it
                    event = env.timeout(at - now)
                    continue
                issuing.discard(agent)
                time = waits.finish_passing(agent, now)
            while True:
                if self._stopped:
                    return
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
                    event = env.timeout(time - now)
                    break
                if kind == ISSUES:  # others may use the engine in this cycle
                    if planned.cost.engine and env.peek() <= now and not isinstance(event, EngineTurn):
                        event = EngineTurn(env, agent)
                        break
                elif kind > WAITS:
                    if kind == ACCESS:
                        if opened[agent] is None:
                            time = self._open_access(agent, planned)
                            continue
                    elif kind < ACCESS:
                        if (answer := waits.suspend(agent, pc, kind)) is not None:
                            event = answer
                            break
                    elif (time := self._share_resource(agent, planned)) > now:
                        continue
                op = code[pc]
                outcome = rules[op[0]](live, agent, op)
                self._steps += 1
                if (live.faults or self._steps >= self._budget) and self._went_wrong():  # inside the operation
                    if first >= 0 and entered[agent] is None:
                        stamp((first, time))
                    return
                if outcome < MOVED:
                    event = waits.block(agent, blocked_on(outcome), first)
                    break
                if kind >= ACCESS:  # its time has passed already
                    if planned.cost.flight < 0:
                        continue
                elif kind >= WAITS:
                    if kind == WAITS and outcome == MOVED and (since := entered[agent]) is not None:
                        time = max(time, since + busy)  # woken up a moment ago
                        entered[agent] = None
                        if second >= 0:
                            stamp((second, time))
                            time += record
                        continue
                    if planned.cost.demand and (passing := waits.passes(agent, pc, planned)) is not None:
                        issuing.add(agent)
                        event = env.timeout(engines.slots.begin(agent, now, passing) - now)
                        break
                    time = waits.return_from(agent, pc, planned, time, outcome)
                    continue
                if first >= 0:
                    stamp((first, time))
                    if second >= 0:  # work: its end is recorded too
                        stamp((second, time + busy - work_record))
                time += busy
                if kind >= ISSUES:
                    at = self._launch(agent, planned.cost)
                    if agent in issuing:
                        event = env.timeout(max(time, at) - now)
                        break
                if outcome >= 0:
                    waits.signal(outcome, now + planned.cost.visible, landed=False)

    def _end(self, agent: int, time: int) -> None:
        """The agent has carried out its last operation."""
        self._ends[agent] = time
        cta = self._program.agents[agent].cta
        self._alive[cta] -= 1
        self._left[cta] = max(self._left[cta], time)
        if self._program.leaves_cluster_barrier:  # it may complete without this agent: who waits there looks again
            self._waits.signal(cluster_channel(self._program), time, landed=False)

    def _open_access(self, agent: int, planned: PlannedOperation) -> int:
        """A read or write begins: what overlaps it until it ends is a race. When it ends."""
        self._live.begin(agent)
        if self._live.faults:
            self._fail()
        if planned.lasts[0] >= 0:
            self._buffer.stamp(planned.lasts[0], self.env.now)
        return self.env.now + planned.cost.busy

    def _share_resource(self, agent: int, planned: PlannedOperation) -> int:
        """A work that shares its SM with others begins, or may have ended: now if it has, else when to look again."""
        now, (begin, ends) = self.env.now, planned.lasts
        shared = self._engines.resource_for(planned.cost)
        if agent in shared:
            at = shared.try_end(agent, now)
            if at == now and ends >= 0:
                self._buffer.stamp(ends, at - self._work_record)
            return at
        if planned.opens:
            self._live.begin(agent)
            if self._live.faults:
                self._fail()
        if begin >= 0:
            self._buffer.stamp(begin, now)
        return shared.begin(agent, now, planned.cost)

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
        self._stopped, self._stopped_at = True, self._latest

    # what is under way

    def _launch(self, agent: int, cost: Cost) -> int:
        """What the last step of ``agent`` put under way: a bulk copy queues for its CTA's engine, an MMA ends with the
        work that its agent gave the matrix engine, others just take their time. Returns when the agent may continue.
        """
        live, now, engines = self._live, self.env.now, self._engines
        count, self._launched = live.issued - self._launched, live.issued
        if not count:  # the matrix engine works
            at = engines.multiplies(agent, now, cost)
            if agent in engines.issuing and cost.demand:
                at = engines.slots.begin(agent, now, cost)
            for each in engines.begun if self._waiting else ():
                self._begin_products(each)
            return at
        issued = live.flights[-count:]  # several if it is a multicast
        lands = now + cost.flight
        if issued[0].engine in IN_ORDER:
            lands = max(now, engines.multiplied[agent]) + cost.flight
            given = engines.cores.given[agent]
            done = engines.cores.ends(agent, given, now)
            if done != now:
                lands = done
                self._products.update({flight.sequence: (given, cost.flight) for flight in issued})
        elif cost.engine:
            copy = engines.copy[self._program.agents[agent].cta].request(cost, issued[0])
            self._lands(copy)
            lands, issued = now + copy.delay, issued[1:]
        for flight in issued:
            if flight.after:
                self._held.append(flight)
            else:
                self._takes_off(flight, lands)
        if self._held:
            self._release_held()
        return now

    def _takes_off(self, flight: Flight, at: int) -> None:
        """A flight is to land then; -1: a product that waits for other warps of its group."""
        if at < 0:
            self._waiting.setdefault(flight.agent, []).append(flight)
            return
        self._lands(LandingTimeout(self.env, at - self.env.now, flight))

    def _lands(self, landing: LandingTimeout | Copy) -> None:
        """Subscribe to the landing of a transfer."""
        landing.callbacks.append(self._land)

    def _begin_products(self, agent: int) -> None:
        """All warps of its group have come: what it waits for can end."""
        for flight in self._waiting.pop(agent, ()):
            self._ends_product(flight)

    def _land(self, landing: simpy.Event) -> None:
        """The callback of a landing."""
        assert isinstance(landing, (LandingTimeout, Copy))
        now, flight = self.env.now, landing.flight
        self._latest = now
        if flight.sequence in self._products:
            self._ends_product(flight)
            return
        if self._stopped:
            return
        signalled = self._live.land(flight)
        if self.landings is not None:
            self.landings.append((flight.agent, flight.pc, flight.barrier, now))
        cta = self._program.agents[flight.agent].cta
        if not self._alive[cta] and flight.first < flight.end and now > self._left[cta]:
            self._late[flight.agent, flight.pc] = None
        if self._live.faults:
            self._fail()
        if signalled >= 0:
            self._waits.signal(signalled, now, landed=True)
        if self._held:
            self._release_held()

    def _ends_product(self, flight: Flight) -> None:
        """A product may have ended: it lands a while later."""
        target, latency = self._products[flight.sequence]
        now = self.env.now
        at = self._engines.cores.ends(flight.agent, target, now)
        if at == now:
            at += latency
            del self._products[flight.sequence]
        self._takes_off(flight, at)

    def _release_held(self) -> None:
        """Arrivals that waited for earlier transfers of their agent, which have landed now."""
        ready = [f for f in self._held if can_land(self._program, self._live, f)]
        self._held = [f for f in self._held if f not in ready]
        for flight in ready:
            self._takes_off(flight, self.env.now)

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
