"""The earliest time of every operation: no schedule under the profile's costs carries one out sooner.

:class:`Earliest` watches any run whose phases are those of every schedule (``run_canonically`` makes one) and gives
each event the largest of the times that it must follow: its agent's program order, the phase that its wait means, the
transfers before it on an engine that its own agent feeds. Nothing is added for polls, for a cold start, or for what
agents do to each other on a resource that they share, since those depend on the schedule.
"""

from enum import IntEnum
from typing import NamedTuple

from pipesim.explain.lap_counters import Laps
from pipesim.model.barrier import token_phase
from pipesim.model.groups import (
    ANSWER,
    AWAITED_TOKEN,
    BARRIER,
    BLOCKING_WAITS,
    CLUSTER,
    ENGINE,
    GROUPS,
    MEETINGS,
    NAMED_BARRIER,
    PARITY,
    PARITY_TRIES,
    SIGNALS,
)
from pipesim.model.machine import TMA, Flight, State, Step
from pipesim.model.ops import IN_ORDER, Engine, Op, Operation
from pipesim.model.program import Program
from pipesim.timed.costs import Cost, Prices, ProgramValues, record_cycles
from pipesim.timed.profile import Profile
from pipesim.trace.sites import kinds


def returns(cost: Cost, *, landed: bool) -> int:
    """The least time from when a phase is seen to complete until a wait, or a try that finds it, returns."""
    return min(cost.busy, cost.visible) if landed else cost.busy


class EventPart(IntEnum):
    """Which moment of an operation an event is."""

    ISSUE = 0
    ENGINE = 1  #: the copy engine begins with it, or the matrix engine ends with it
    LANDED = 2


class Event(NamedTuple):
    """A moment of an operation, and the event that it follows immediately (-1: none): what made it no earlier."""

    agent: int
    pc: int
    part: EventPart
    time: int
    after: int


class _Signal(NamedTuple):
    """Something that others wait for: when they can see it, since which event, and whether a landing is part of it."""

    seen: int
    event: int
    landed: bool


class _Open(NamedTuple):
    """A phase that is not complete: the last of its contributions, and the least time until one of them is seen."""

    time: int = 0
    event: int = -1
    visible: int = -1
    landed: bool = False


class Earliest:
    """Watches one run, after its own lap counters; ``events`` are in an order in which each follows what it needs."""

    def __init__(self, program: Program, profile: Profile, *, traced: bool = False) -> None:
        agents = len(program.agents)
        self._program = program
        self._values = ProgramValues(program, profile)
        self._price = Prices(program, profile, traced=traced)
        self._record = record_cycles(program, profile, traced=traced)
        self.laps = Laps(program)
        self.events: list[Event] = []
        self.issues: list[dict[int, int]] = [{} for _ in range(agents)]  #: of each agent: pc → event of its issue
        self._next = [(0, -1)] * agents  # when an agent continues, and since which event
        self._open = [_Open()] * len(program.barriers)
        self._phases: list[list[_Signal]] = [[] for _ in program.barriers]
        self._joined = [_Open()] * (len(program.named_barriers) + 1)  # the last is the cluster barrier
        self._ended: list[list[_Signal]] = [[] for _ in self._joined]
        self._copied: list[tuple[int, int]] = [(0, -1)] * agents  # when an agent's next copy may start
        #: When an agent's multiplications end: on the core of its quarter, and (False) on the engine of the CTA.
        self._multiplied: dict[tuple[int, bool], tuple[int, int]] = {}
        self._landing: dict[int, int] = {}  # sequence number of a flight → event of its landing
        self._last: dict[tuple[int, int], int] = {}  # (agent, engine) → event of the last landing so far
        self._groups: dict[tuple[int, int], list[int]] = {}  # the same, or the close itself, for each group
        self._tries: dict[tuple[int, int], Cost] = {}  # (agent, register) → of the last try whose answer is there

    @property
    def end(self) -> int:
        """No run is over before this time: what an engine does without an agent that waits for it is not part of it."""
        ends = (e.time for e in self.events if e.part != EventPart.ENGINE)
        return max((*(time for time, _ in self._next), *ends), default=0)

    # the run

    def on_step(self, before: State, agent: int, result: Step) -> None:
        """An agent moved, or was blocked."""
        self.laps.on_step(before, agent, result)
        if result.state is before:
            return
        pc = before.pcs[agent]
        op = self._program.code[agent][pc]
        code = op[0]
        if before.holds[agent]:  # it has joined the named barrier before
            ended = self._ended[op[NAMED_BARRIER]][before.holds[agent] - 1]
            self._next[agent] = (ended.seen, ended.event)
            return
        cost = self._price(op, self._program.lines[agent][pc])
        here, since = self._next[agent]
        issue = self.issues[agent][pc] = self._event(agent, pc, EventPart.ISSUE, here, since)
        self._next[agent] = (here + cost.busy, issue)
        if code in BLOCKING_WAITS:
            self._after_wait(before, agent, op, cost, issue)
        elif code in PARITY_TRIES:
            self._tries[agent, op[ANSWER]] = cost
        elif code in SIGNALS:
            self._contribute(op[BARRIER], _Open(here, issue, cost.visible), result)
        elif code == Op.INIT:
            self._open[op[BARRIER]] = _Open()
            self._phases[op[BARRIER]] = []
        elif code in MEETINGS:
            self._after_meeting(before, agent, op, issue, result)
        elif code == Op.WAIT_GROUP:
            self._awaited_groups(agent, op, issue)
        elif cost.flight >= 0:
            self._after_launch(before, agent, op, cost, issue, result)
        elif code == Op.COMMIT:
            last = self._last.get((agent, op[ENGINE]), -1)
            late = last >= 0 and self.events[last].time > here
            self._groups.setdefault((agent, op[ENGINE]), []).append(last if late else issue)

    def on_landing(self, flight: Flight, nbytes: int, result: Step) -> None:
        """A transfer delivered bytes, or its arrival."""
        self.laps.on_landing(flight, nbytes, result)
        if flight.barrier >= 0:
            event = self._landing[flight.sequence]
            self._contribute(flight.barrier, _Open(self.events[event].time, event, 0, landed=True), result)

    # what makes an event wait

    def _event(self, agent: int, pc: int, part: EventPart, time: int, after: int) -> int:
        self.events.append(Event(agent, pc, part, time, after))
        return len(self.events) - 1

    def _not_before(self, agent: int, time: int, issue: int, other: int) -> None:
        """The agent continues at ``time``, or when the event ``other`` happens (-1: none), whichever is later."""
        late = other >= 0 and self.events[other].time > time
        self._next[agent] = (self.events[other].time, other) if late else (time, issue)

    def _awaited_groups(self, agent: int, op: Operation, issue: int) -> None:
        """A wait for groups: of this agent, or of each agent of its warp group if the engine works for all of them."""
        groups = len(self._groups.get((agent, op[ENGINE]), ())) - op[GROUPS]
        members = self._program.warp_groups[agent] if op[ENGINE] == Engine.WGMMA else (agent,)
        if groups > 0:
            last = max(
                (self._groups[member, op[ENGINE]][groups - 1] for member in members), key=lambda e: self.events[e].time
            )
            self._not_before(agent, self.events[issue].time, issue, last)

    def _contribute(self, barrier: int, part: _Open, result: Step) -> None:
        open_ = _later(self._open[barrier], part)
        self._open[barrier] = open_
        if result.signalled == barrier:
            self._phases[barrier].append(_Signal(open_.time + open_.visible, open_.event, open_.landed))
            self._open[barrier] = _Open()

    def _after_wait(self, before: State, agent: int, op: Operation, cost: Cost, issue: int) -> None:
        """A wait returned. An arrive is noticed by a try; a landing wakes the agent, or its first try finds it there.

        A wait that may be skipped costs nothing of its own: then its try saw the phase, and returned after that.
        """
        maybe = op[0] == Op.WAIT_UNLESS and op[ANSWER] >= 0
        stamps = self._record if kinds(op) and not maybe else 0
        time = self.events[issue].time + (0 if maybe else stamps + cost.busy)
        phase = self._phase_of(before, agent, op)
        signal = self._phases[op[BARRIER]][phase] if 0 <= phase < len(self._phases[op[BARRIER]]) else None
        if signal is not None:
            back = min(returns(each, landed=signal.landed) for each in self._noticing_costs(agent, op, cost))
            if signal.seen + back > time:
                self._next[agent] = (signal.seen + back + stamps, signal.event)
                return
        self._next[agent] = (time + stamps, issue)

    def _noticing_costs(self, agent: int, op: Operation, cost: Cost) -> list[Cost]:
        """What can notice the phase of a wait: itself, or the try whose answer it goes by."""
        tried = self._tries.get((agent, op[ANSWER])) if op[0] == Op.WAIT_UNLESS else None
        return [cost] if tried is None else [cost, tried]

    def _phase_of(self, before: State, agent: int, op: Operation) -> int:
        """The phase that a wait means, -1 for none that anything must be waited for."""
        if op[0] == Op.WAIT_STATE:
            return token_phase(before.registers[agent][op[AWAITED_TOKEN]])
        meant = self.laps.phase_meant(agent, op[BARRIER])
        return meant if (meant & 1) == op[PARITY] else -1

    def _after_meeting(self, before: State, agent: int, op: Operation, issue: int, result: Step) -> None:
        """Named barriers and the cluster barrier: all continue when the last has arrived."""
        cluster = op[0] in CLUSTER
        where = len(self._joined) - 1 if cluster else op[NAMED_BARRIER]
        here = self.events[issue].time
        if op[0] == Op.CLUSTER_WAIT:
            if result.signalled >= 0:  # it completed without agents that have ended
                self._ended[where].append(_Signal(here, issue, landed=False))
            ended = self._ended[where][max(0, before.cluster_held[agent]) :][:1]  # none without an arrive
            late = [each for each in ended if each.seen > here]
            self._next[agent] = (late[0].seen, late[0].event) if late else (here, issue)
            return
        self._joined[where] = _later(self._joined[where], _Open(here, issue, self._values["sync.latency"]))
        if result.signalled == len(self._program.barriers) + where:
            last = self._joined[where]
            self._ended[where].append(_Signal(last.time + last.visible, last.event, landed=False))
            self._joined[where] = _Open()
            if op[0] == Op.BAR_SYNC:
                self._next[agent] = (last.time + last.visible, last.event)

    def _after_launch(self, before: State, agent: int, op: Operation, cost: Cost, issue: int, result: Step) -> None:
        """Put something under way: copies start in the order of issue, and so do the MMAs of one agent."""
        pc, here = before.pcs[agent], self.events[issue].time
        if op[0] == Op.ENGINE_WORK:
            engine = agent, cost.products > 0
            start, since = max((here, issue), self._multiplied.get(engine, (0, -1)))
            event = self._event(agent, pc, EventPart.ENGINE, start + cost.engine, since)
            self._multiplied[engine] = (start + cost.engine, event)
            return
        flights = [f for f in result.state.flights if f.sequence > before.issued]
        for flight in flights:
            key = (agent, flight.engine)
            start, since = here, issue
            if flight.after:
                last = self._last.get(key, -1)
                start, since = (self.events[last].time, last) if last >= 0 else (start, since)
                start, since = (start, since) if start > here else (here, issue)
            elif flight.engine in IN_ORDER:
                start, since = max((here, issue), self._last_product(agent))
            elif (flight.engine == Engine.BULK and cost.engine) or (flight.engine == TMA and flight is flights[0]):
                if cost.engine:
                    start, since = max((here, issue), self._copied[agent])
                since = self._event(agent, pc, EventPart.ENGINE, start, since)
                self._copied[agent] = (start + cost.engine, since)
            elif flight.engine == TMA:  # the same copy, delivered to another CTA
                self._landing[flight.sequence] = self._landing[flights[0].sequence]
                continue
            event = self._event(agent, pc, EventPart.LANDED, start + cost.flight, since)
            self._landing[flight.sequence] = event
            last = self._last.get(key, -1)
            if last < 0 or self.events[last].time <= self.events[event].time:
                self._last[key] = event

    def _last_product(self, agent: int) -> tuple[int, int]:
        """When the multiplications of an agent end; a core that it uses says when, whatever else it uses."""
        return self._multiplied.get((agent, True)) or self._multiplied.get((agent, False), (0, -1))


def _later(one: _Open, other: _Open) -> _Open:
    """Two contributions to one phase: it is complete with the later, and seen no sooner than the sooner seen allows."""
    time, event = max((one.time, one.event), (other.time, other.event)) if one.event >= 0 else other[:2]
    visible = other.visible if one.visible < 0 else min(one.visible, other.visible)
    return _Open(time, event, visible, one.landed or other.landed)
