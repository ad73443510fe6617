"""One simulated run: SimPy decides who moves next, by simulated time; what a move does is the machine's business.

Every agent is a chain of bare events, one for each operation that others can notice; nothing polls. A blocked agent has
no event at all until the channel it waits on signals. Times are whole cycles, ties fall in the order of scheduling.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import simpy
from simpy.events import NORMAL, Event

from pipesim.explain.blocked import explain
from pipesim.model.ending import Ending
from pipesim.model.finding import Fault
from pipesim.model.groups import BLOCKING_WAITS, MEETINGS, TRIES
from pipesim.model.live.rules import rules_of
from pipesim.model.live.running import MOVED, Running, Watched, blocked_on
from pipesim.model.machine import Flight
from pipesim.model.moves import can_land, finds
from pipesim.model.observer import Observer
from pipesim.model.ops import IN_ORDER, Op
from pipesim.model.positions import ANSWER, BARRIER
from pipesim.model.program import Program
from pipesim.model.state import cluster_channel, pool_channel
from pipesim.process.limits import Limit, LimitReachedError
from pipesim.process.watch import current
from pipesim.timed.costs import NO_LIMIT, Cost, record_cycles
from pipesim.timed.plan import Planned, plan
from pipesim.timed.profile import Profile
from pipesim.timed.resources import IssueSlots
from pipesim.timed.simulation import Simulation
from pipesim.timed.work import QUARTERS
from pipesim.trace.recorder import StampBuffer
from pipesim.trace.schema import Device, SiteKey, Trace, TraceMeta


class HappensAt(Event):
    """Something that happens at a known cycle. An agent has one move ahead of it at most: its event is used again."""

    def __init__(self, env: simpy.Environment, happens: Callable[[HappensAt], None]) -> None:
        super().__init__(env)
        self._ok = True
        self._value = None
        self.at = self.number = 0
        self.happens: list[Callable[[Any], None]] = [happens]


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
        self._unwatched = not observers
        self._budget = max_steps
        self._traced = traced
        self._record = record_cycles(program, profile, traced=traced)
        self._table, meanings, self._plans = plan(program, profile, traced=traced, also=also)
        self._buffer = StampBuffer(meanings)
        self._env = simpy.Environment()
        self._push = self._env.schedule
        self._now = 0
        channels = pool_channel(program, program.ctas)
        self._waiters: list[list[int]] = [[] for _ in range(channels)]
        self._visible = [0] * channels
        self._landed = [False] * channels  #: whether a landing made the last completion on a channel
        self._entered = [-1] * len(program.agents)  #: when an agent's present wait began, -1 if it is not blocked
        self._engine_free = [0] * program.ctas
        self._matrix_free = [0] * (program.ctas * (1 + QUARTERS))  #: of each CTA: one for all, and of each quarter
        self._multiplied = [0] * len(program.agents)  #: when the matrix engine ends what an agent gave it last
        self._slots = IssueSlots(program.agents, profile["mma.slots_permille"])
        self._issuing: dict[int, int] = {}  #: who issues a multiplication: when its tensor core takes the last of it
        self._tries: dict[int, tuple[int, int]] = {}  #: who is suspended in a try: since when, and until when at most
        self._memory_free = [0] * program.ctas  #: when the shared memory of each SM has moved what was asked of it
        self._cold = [True] * program.ctas
        self._held: list[Flight] = []
        self._in_air: dict[int, HappensAt] = {}  #: the landing of each flight, by its sequence number
        self._late: dict[tuple[int, int], None] = {}
        self._alive = [sum(1 for a in program.agents if a.cta == cta) for cta in range(program.ctas)]  #: not ended yet
        self._left = [0] * program.ctas  #: when the last agent to end so far ended
        self._launched = 0  #: transfers put under way so far
        self._ends = [-1] * len(program.agents)
        self._faults: list[Fault] = []
        self.landings: list[tuple[int, int, int, int]] | None = None
        self._steps = self._skipped = 0
        self._queued = 0
        self._stopped = False
        self._stopped_at = 0
        self._turns = [HappensAt(self._env, self._mover(agent)) for agent in range(len(program.agents))]
        for turn in self._turns:
            self._schedule(turn, profile["cta.start"])

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
        stuck = None if self._stopped else explain(self._program, state)
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
            max((self._stopped_at if self._stopped else self._now, *self._ends)),
            tuple(self._ends),
            self._trace(ending),
            stuck,
            tuple(self._faults),
            self._steps,
            self._queued,
            state,
            tuple(self._late),
            cut,
            tuple(self.landings or ()),
            self._skipped,
        )

    def _drain(self) -> None:
        """Until the queue is empty."""
        self._env.run()

    # moving

    def _schedule(self, due: HappensAt, at: int) -> None:
        due.at = at
        due.number = self._queued
        due.callbacks = due.happens
        self._push(due, NORMAL, at - self._now)
        self._queued += 1

    def _mover(self, agent: int) -> Callable[[HappensAt], None]:  # noqa: C901  # hot: a call less is a tenth of it
        """What lets ``agent`` go on from now until its next operation that others can notice, or it blocks or ends.

        A closure: it is called for every event, and finds what it needs in its own variables.
        """
        live, rules, code, plans = self._live, self._rules, self._program.code[agent], self._plans[agent]
        pcs, stamp, unwatched, length = live.pcs, self._buffer.stamp, self._unwatched, len(self._plans[agent])
        entered, record, issuing = self._entered, self._record, self._issuing

        def move(due: HappensAt) -> None:  # noqa: C901  # the same
            self._now = now = time = due.at
            if issuing and agent in issuing:
                time = self._issued(agent, due)
                if time < 0:
                    return
            while not self._stopped:
                pc = pcs[agent]
                if pc == length:
                    self._end(agent, time)
                    return
                private, waits, accesses, cost, first, second, busy, lasts, suspends, idle = planned = plans[pc]
                if idle and unwatched:
                    pcs[agent] = pc + 1
                    self._steps += 1
                    if self._steps >= self._budget:
                        self._stop()
                    time += busy
                    continue
                if time != now and not private:  # as _schedule does
                    due.at = time
                    due.number = self._queued
                    due.callbacks = due.happens
                    self._push(due, NORMAL, time - now)
                    self._queued += 1
                    return
                if lasts and self._lasts(agent, due, planned):
                    return
                if suspends and self._suspended(agent, pc):
                    return
                op = code[pc]
                outcome = rules[op[0]](live, agent, op)
                self._steps += 1
                if (live.faults or self._steps >= self._budget) and self._went_wrong():  # inside the operation
                    if first >= 0 and entered[agent] < 0:
                        stamp(first, time)
                    return
                if outcome < MOVED:
                    self._block(agent, blocked_on(outcome), first)
                    return
                if accesses:
                    continue  # its time has passed already
                if waits:
                    time = self._returned(agent, pc, planned, time, outcome)
                    continue
                if first >= 0:
                    stamp(first, time)
                    if second >= 0:  # work: its end is recorded too
                        stamp(second, time + busy - record)
                free = self._launch(agent, cost) if cost.flight >= 0 else 0
                if agent in issuing:
                    self._schedule(due, self._slots.begin(agent, now, cost))
                    return
                if outcome >= 0:
                    self._signal(outcome, time + cost.visible, landed=False)
                time = max(time + busy, free)

        return move

    def _end(self, agent: int, time: int) -> None:
        """The agent has carried out its last operation."""
        self._ends[agent] = time
        cta = self._program.agents[agent].cta
        self._alive[cta] -= 1
        self._left[cta] = max(self._left[cta], time)
        if self._program.leaves_cluster_barrier:  # it may go on without this agent: who waits there looks again
            self._signal(cluster_channel(self._program), time, landed=False)

    def _lasts(self, agent: int, due: HappensAt, planned: Planned) -> bool:
        """An operation that others notice while it lasts: an access, or a work that shares a quarter of its SM.

        False when its time has passed.
        """
        cost, (begin, ends) = planned.cost, planned.lasts
        if agent in self._slots:
            at = self._slots.ended(agent, self._now)
            if at > self._now:
                self._schedule(due, at)
                return True
            if ends >= 0:
                self._buffer.stamp(ends, self._now - self._record)
            return False
        if planned.opens:
            if self._live.opened[agent] is not None:
                return False
            self._live.begin(agent)  # what overlaps it until it ends is a race
            if self._live.faults:
                self._fail()
        if begin >= 0:
            self._buffer.stamp(begin, self._now)
        if cost.in_memory:
            end = self._moved(agent, cost)
        else:
            end = self._slots.begin(agent, self._now, cost) if cost.demand else self._now + cost.busy
        self._schedule(due, end)
        return True

    def _moved(self, agent: int, cost: Cost) -> int:
        """When an access ends that is served after what other warps have asked of their SM's memory before."""
        cta = self._program.agents[agent].cta
        self._memory_free[cta] = done = max(self._now, self._memory_free[cta]) + cost.demand
        return max(self._now + cost.in_memory, done) + cost.busy - cost.in_memory

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
        self._stopped = True
        self._stopped_at = self._now

    def _block(self, agent: int, channel: int, first: int) -> None:
        if self._entered[agent] < 0:
            self._entered[agent] = self._now
            if first >= 0:
                self._buffer.stamp(first, self._now)
        self._waiters[channel].append(agent)

    def _woken(self, agent: int, second: int, time: int) -> int:
        """A wait that was blocked returns. The time at which its agent goes on."""
        self._entered[agent] = -1
        if second < 0:
            return time
        self._buffer.stamp(second, time)
        return time + self._record

    def _returned(self, agent: int, pc: int, planned: Planned, time: int, outcome: int) -> int:
        """A wait passed: woken up a moment ago, or at once (but not before what completed it can be seen).

        The time at which its agent goes on.
        """
        cost, first, second = planned.cost, planned.first, planned.second
        op = self._code[agent][pc]
        if op[0] in TRIES:
            return self._tried(agent, pc, planned, time)
        if outcome == MOVED and self._entered[agent] >= 0:
            return self._woken(agent, second, time)
        if outcome >= 0:
            back = time + cost.visible
            self._signal(outcome, back, landed=False)
            if op[0] in MEETINGS:  # the last at a named barrier: it goes on with the others
                return self._passed(time, back, first, second)
        if self._entered[agent] >= 0:
            return self._woken(agent, second, time)
        if op[0] == Op.CLUSTER_WAIT:
            return max(time, self._visible[cluster_channel(self._program)])
        if op[0] not in BLOCKING_WAITS:
            return self._passed(time, time + cost.busy, first, second)
        if op[0] == Op.WAIT_UNLESS and op[ANSWER] >= 0 and self._live.registers[agent][op[ANSWER]]:
            return time  # skipped: a try had already answered
        return self._passed(time, self._return_time(time, op[BARRIER], planned), first, second)

    def _passed(self, entered: int, back: int, first: int, second: int) -> int:
        """A wait that did not block began and returned: its stamps, and when its agent goes on."""
        if first >= 0:
            self._buffer.stamp(first, entered)
        if second >= 0:
            self._buffer.stamp(second, back)
        return back + (self._record if first >= 0 or second >= 0 else 0)

    def _tried(self, agent: int, pc: int, planned: Planned, time: int) -> int:
        """A try was made: its answer is recorded. It is false while others cannot see yet what completed the phase."""
        success = finds(self._program, self._live, agent, pc)
        if success and self._visible[self._program.code[agent][pc][BARRIER]] > time:
            success = False
            self._live.refuse(agent, pc)
        since = self._tries.pop(agent)[0] if agent in self._tries else time
        self._entered[agent] = -1
        self._buffer.stamp(planned.second if success else planned.first, since)
        return time if since < time else time + planned.cost.busy

    def _suspended(self, agent: int, pc: int) -> bool:
        """Whether a try has still to wait: for what completes its phase, or until it gives up."""
        if agent in self._tries or finds(self._program, self._live, agent, pc):
            return False
        now, channel = self._now, self._code[agent][pc][BARRIER]
        self._tries[agent] = (now, now + self._profile["try.limit"])
        self._entered[agent] = now
        self._waiters[channel].append(agent)
        self._watch(agent)
        return True

    def _watch(self, agent: int) -> None:
        """A suspended try gives up at its limit."""
        since, until = self._tries[agent]
        self._schedule(HappensAt(self._env, partial(self._gives_up, agent, since)), until)

    def _gives_up(self, agent: int, since: int, due: HappensAt) -> None:
        pc = self._live.pcs[agent]
        if self._stopped or self._tries.get(agent, (-1, 0))[0] != since or pc >= len(self._code[agent]):
            return
        waiters = self._waiters[self._code[agent][pc][BARRIER]]
        if agent in waiters:  # else it has been woken already
            self._now = due.at
            waiters.remove(agent)
            self._schedule(self._turns[agent], due.at)

    # what others notice

    def _return_time(self, entered: int, channel: int, planned: Planned) -> int:
        """When a wait returns that began at ``entered`` and whose channel signalled.

        A landing wakes a suspended try; an arrive is noticed by the next try only (measured: docs/hopper.md).
        """
        cost = planned.cost
        seen = self._visible[channel]
        tried = entered + (self._record if planned.first >= 0 else 0)
        if seen <= tried:
            return tried + cost.busy
        if self._landed[channel]:
            return max(tried + cost.busy, seen + cost.visible)
        again = tried + self._profile["wait.retry"]
        poll = self._profile["wait.poll"]
        return again + max(0, -(-(seen - again) // poll)) * poll + cost.busy

    def _signal(self, channel: int, seen: int, *, landed: bool) -> None:
        """Something completed on a channel and can be seen at ``seen``; its waiters return when they notice."""
        self._visible[channel] = seen
        self._landed[channel] = landed
        waiters = self._waiters[channel]
        if not waiters:
            return
        self._waiters[channel] = []
        on_mbarrier = channel < len(self._program.barriers)
        for agent in waiters:
            planned = self._plans[agent][self._live.pcs[agent]]
            back = self._return_time(self._entered[agent], channel, planned) if on_mbarrier else seen
            self._schedule(self._turns[agent], back)

    def _launch(self, agent: int, cost: Cost) -> int:
        """What the last step of ``agent`` put under way: a bulk copy queues for its CTA's engine, an MMA ends with the
        work that its agent gave the matrix engine, others just take their time. Returns when the agent may go on.
        """
        live = self._live
        count, self._launched = live.issued - self._launched, live.issued
        issued = live.flights[-count:] if count else []  # several if it is a multicast
        now = self._now
        delay = cost.flight
        cta = self._program.agents[agent].cta
        if not issued:  # the matrix engine works
            return self._multiply(agent, cost)
        if issued[0].engine in IN_ORDER:
            delay += max(0, self._multiplied[agent] - now)
        elif cost.engine:
            start = max(now, self._engine_free[cta])
            self._engine_free[cta] = start + cost.engine
            delay += start - now
            if self._cold[cta]:
                self._cold[cta] = False
                delay += self._profile["copy.cold"]
        for flight in issued:
            if flight.after:
                self._held.append(flight)
            else:
                self._takes_off(flight, now + delay)
        if self._held:
            self._release_held()
        return now

    def _multiply(self, agent: int, cost: Cost) -> int:
        """A matrix engine has more to do, after what it has. When it takes so much, and the agent goes on."""
        where = self._program.agents[agent]
        quartered = cost.ahead < NO_LIMIT
        engine = where.cta * (1 + QUARTERS) + (1 + where.warp % QUARTERS if quartered else 0)
        start = max(self._now, self._matrix_free[engine])
        self._matrix_free[engine] = self._multiplied[agent] = end = start + cost.engine
        if quartered:
            self._slots.multiplies(agent, start, end)
        if cost.demand:
            self._issuing[agent] = end - cost.ahead
        return end - cost.ahead

    def _issued(self, agent: int, due: HappensAt) -> int:
        """When an agent goes on that has issued a multiplication; -1 if others have slowed it, and it has not yet."""
        at = self._slots.ended(agent, self._now)
        if at > self._now:
            self._schedule(due, at)
            return -1
        return max(at, self._issuing.pop(agent))

    def _takes_off(self, flight: Flight, at: int) -> None:
        due = self._in_air[flight.sequence] = HappensAt(self._env, partial(self._land, flight))
        self._schedule(due, at)

    def _land(self, flight: Flight, due: HappensAt) -> None:
        self._now = due.at
        del self._in_air[flight.sequence]
        if self._stopped:
            return
        signalled = self._live.land(flight)
        if self.landings is not None:
            self.landings.append((flight.agent, flight.pc, flight.barrier, self._now))
        cta = self._program.agents[flight.agent].cta
        if flight.first < flight.end and not self._alive[cta] and self._now > self._left[cta]:
            self._late[flight.agent, flight.pc] = None
        if self._live.faults:
            self._fail()
        if signalled >= 0:
            self._signal(signalled, self._now, landed=True)
        if self._held:
            self._release_held()

    def _release_held(self) -> None:
        """Arrivals that waited for earlier transfers of their agent, which have landed now."""
        ready = [f for f in self._held if can_land(self._live, f)]
        self._held = [f for f in self._held if f not in ready]
        for flight in ready:
            self._takes_off(flight, self._now)

    def _trace(self, ending: Ending) -> Trace:
        meta = TraceMeta(
            source="simulation",
            protocol=self._program.name,
            params=dict(self._program.params),
            grid=self._program.grid * self._program.ctas,  # CTAs in the launch
            device=Device(name=self._profile.device, sms=self._profile.sms, sm_khz=self._profile.sm_khz),
            agents=self._table.agents,
            barriers=self._table.barriers,
            sites=self._table.sites,
            status=ending,
            extra={"profile": self._profile.name, "recording": self._traced},
        )
        return Trace(meta, self._buffer.events(self._profile.sm_khz))
