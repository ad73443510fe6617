"""The timed engine: SimPy decides who moves next, by simulated time; what a move does is the machine's business.

Every agent is a chain of bare events, one for each operation that others can notice; nothing polls. A blocked agent has
no event at all until the channel it waits on signals. Times are whole cycles, ties fall in the order of scheduling.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

import simpy
from simpy.events import Event, Timeout

from pipesim.model.finding import Deadlock, Fault
from pipesim.model.machine import Flight, State, Step, can_land, finished, initial_state, land, step
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.timed.costs import Cost, costs
from pipesim.timed.profile import Profile
from pipesim.trace.recorder import EventBuffer
from pipesim.trace.schema import Device, Trace, TraceMeta
from pipesim.trace.sites import SiteTable, site_table
from pipesim.unfold.blocked import explain
from pipesim.unfold.occurrence import PhaseLog

DEFAULT_BUDGET = 20_000_000

#: Operations that nobody else can notice: they cost time but need no event of their own. A read looks at its tile at the
#: moment its agent's last event ended.
_PRIVATE = frozenset({Op.WORK, Op.READ, Op.LOOP_BEGIN, Op.LOOP_NEXT, Op.LOOP_END, Op.JUMP_IF, Op.FENCE, Op.SETMAXNREG})
_WAITS = frozenset({Op.WAIT, Op.WAIT_UNLESS, Op.WAIT_STATE, Op.WAIT_GROUP, Op.BAR_SYNC, Op.CLUSTER_WAIT})


class Outcome(Enum):
    """How a simulation ended."""

    FINISHED = "finished"
    DEADLOCK = "deadlock"
    FAULT = "fault"  #: the chip would have ended the launch
    UNKNOWN = "unknown"  #: the step budget ran out


@dataclass(frozen=True)
class Simulation:
    """One simulated run: its outcome, its events, and everything that went wrong.

    ``cycles`` is the time at which the last agent ended (or the last thing happened), ``ends`` that of each agent, -1
    for one that did not end. ``queue_events`` counts what passed through SimPy's queue.
    """

    program: Program
    profile: Profile
    outcome: Outcome
    cycles: int
    ends: tuple[int, ...]
    trace: Trace
    deadlock: Deadlock | None
    faults: tuple[Fault, ...]
    steps: int
    queue_events: int
    state: State


def simulate(
    program: Program,
    profile: Profile,
    *,
    recording: bool = False,
    max_steps: int = DEFAULT_BUDGET,
    log: PhaseLog | None = None,
) -> Simulation:
    """Run one CTA (or cluster) of ``program`` under ``profile``.

    ``recording`` adds what each record costs on the chip, to be compared with a traced kernel. ``log`` collects which
    operation completed which phase. Same arguments, same result, to the last event.
    """
    return _Run(program, profile, recording=recording, max_steps=max_steps, log=log).result()


class _Run:
    """The mutable side of one simulation."""

    def __init__(
        self, program: Program, profile: Profile, *, recording: bool, max_steps: int, log: PhaseLog | None
    ) -> None:
        self._program = program
        self._profile = profile
        self._log = log
        self._budget = max_steps
        self._record = profile["record.issue"] if recording else 0
        self._costs = costs(program, profile, recording=recording)
        self._env = simpy.Environment()
        self._state = initial_state(program)
        self._table: SiteTable = site_table(program)
        self._buffer = EventBuffer()
        self._passes = [[0] * len(self._table.sites) for _ in program.agents]
        self._local = _local_numbers(program)
        channels = len(program.barriers) + len(program.named_barriers) + 1 + len(program.agents)
        self._waiters: list[list[int]] = [[] for _ in range(channels)]
        self._visible = [0] * channels
        self._landed = [False] * channels  #: whether a landing made the last completion on a channel
        self._entered = [-1] * len(program.agents)  #: when an agent's present wait began, -1 if it is not blocked
        self._engine_free = [0] * program.ctas
        self._cold = [True] * program.ctas
        self._held: list[Flight] = []
        self._ends = [-1] * len(program.agents)
        self._faults: list[Fault] = []
        self._steps = 0
        self._queued = 0
        self._stopped = False
        self._moves: list[Callable[[Event], None]] = [self._mover(a) for a in range(len(program.agents))]
        for agent in range(len(program.agents)):
            self._after(0, self._moves[agent])

    def result(self) -> Simulation:
        """Run the queue dry and say how it ended."""
        self._env.run()
        stuck = None if self._stopped else explain(self._program, self._state)
        if any(f.kind.traps for f in self._faults):
            outcome = Outcome.FAULT
        elif self._stopped:
            outcome = Outcome.UNKNOWN
        else:
            outcome = Outcome.DEADLOCK if stuck else Outcome.FINISHED
        return Simulation(
            self._program,
            self._profile,
            outcome,
            max(self._env.now, *self._ends),
            tuple(self._ends),
            self._trace(outcome),
            stuck,
            tuple(self._faults),
            self._steps,
            self._queued,
            self._state,
        )

    # moving

    def _after(self, delay: int, callback: Callable[[Event], None]) -> None:
        event = Timeout(self._env, delay)
        event.callbacks.append(callback)
        self._queued += 1

    def _mover(self, agent: int) -> Callable[[Event], None]:
        return lambda _: self._move(agent)

    def _move(self, agent: int) -> None:
        """Let ``agent`` go on from now until its next operation that others can notice is due, or it blocks or ends."""
        program = self._program
        code, prices = program.code[agent], self._costs[agent]
        delay = 0
        while not self._stopped:
            state = self._state
            pc = state.pcs[agent]
            if pc == len(code):
                self._ends[agent] = int(self._env.now) + delay
                return
            op = code[pc]
            if delay and op[0] not in _PRIVATE:
                self._after(delay, self._moves[agent])
                return
            result = step(program, state, agent)
            if not self._count(state, agent, result):
                return
            self._state = result.state
            if result.blocked >= 0:
                self._block(agent, pc, result.blocked)
                return
            delay += self._moved(agent, pc, op[0], prices[pc], delay, result)

    def _count(self, before: State, agent: int, result: Step) -> bool:
        """Bookkeeping of one step; False if the run ends here."""
        self._steps += 1
        if self._log is not None:
            self._log.stepped(before, agent, result)
        if result.faults:
            self._fail(result)
        if self._steps >= self._budget:
            self._stopped = True
        return not self._stopped

    def _fail(self, result: Step) -> None:
        self._faults.extend(result.faults)
        self._stopped = self._stopped or any(f.kind.traps for f in result.faults)

    def _block(self, agent: int, pc: int, channel: int) -> None:
        if self._entered[agent] < 0:
            self._entered[agent] = int(self._env.now)
            self._stamp(agent, pc, 0, int(self._env.now))
        self._waiters[channel].append(agent)

    def _moved(self, agent: int, pc: int, code: int, price: Cost, delay: int, result: Step) -> int:
        """Stamp what happened, signal whom it concerns; how long the agent is busy with it."""
        now = int(self._env.now) + delay
        if code in _WAITS:
            return self._returned(agent, pc, price, now, result)
        records = self._table.records[agent][pc]
        if records:
            self._stamp(agent, pc, 0, now)
            if len(records) == 2:  # work: the second stamp ends it
                self._stamp(agent, pc, 1, now + price.busy - self._record)
        if price.flight:
            self._launch(price)
        if result.signalled >= 0:
            self._signal(result.signalled, now + price.visible, landed=False)
        return price.busy

    def _returned(self, agent: int, pc: int, price: Cost, now: int, result: Step) -> int:
        """A wait passed: woken up a moment ago, or at once (but not before what completed it can be seen)."""
        if result.signalled >= 0:
            self._signal(result.signalled, now + price.visible, landed=False)
        if self._entered[agent] >= 0:
            self._entered[agent] = -1
            self._stamp(agent, pc, 1, now)
            return self._record
        if not self._table.records[agent][pc]:
            return price.busy
        op = self._program.code[agent][pc]
        if op[0] == Op.WAIT_UNLESS and self._state.registers[agent][op[3]]:
            return 0  # skipped: a try had already answered
        back = self._return_time(now, op[1], price)
        self._stamp(agent, pc, 0, now)
        self._stamp(agent, pc, 1, back)
        return back - now + self._record

    # what others notice

    def _return_time(self, entered: int, channel: int, price: Cost) -> int:
        """When a wait returns that began at ``entered`` and whose channel signalled.

        A landing wakes a suspended try; an arrive is noticed by the next try only (measured: see the documentation).
        """
        seen = self._visible[channel]
        tried = entered + self._record
        if seen <= tried:
            return tried + price.busy
        if self._landed[channel]:
            return max(tried + price.busy, seen + price.visible)
        again = tried + self._profile["wait.retry"]
        polls = max(0, -(-(seen - again) // self._profile["wait.poll"]))
        return again + polls * self._profile["wait.poll"] + price.busy

    def _signal(self, channel: int, seen: int, *, landed: bool) -> None:
        """Something completed on a channel and can be seen at ``seen``; its waiters return when they notice."""
        self._visible[channel] = seen
        self._landed[channel] = landed
        waiters, self._waiters[channel] = self._waiters[channel], []
        for agent in waiters:
            price = self._costs[agent][self._state.pcs[agent]]
            on_mbarrier = channel < len(self._program.barriers)
            back = self._return_time(self._entered[agent], channel, price) if on_mbarrier else seen
            self._after(back - int(self._env.now), self._moves[agent])

    def _launch(self, price: Cost) -> None:
        """Transfers that the last step put under way: a bulk copy queues for its CTA's engine, others just take time."""
        flight = self._state.flights[-1]
        if flight.after:
            self._held.append(flight)
            self._release_held()
            return
        now = int(self._env.now)
        cta = self._program.agents[flight.agent].cta
        start = max(now, self._engine_free[cta])
        if price.engine:
            self._engine_free[cta] = start + price.engine
        cold = 0
        if price.engine and self._cold[cta]:
            self._cold[cta] = False
            cold = self._profile["copy.cold"]
        self._after(start - now + cold + price.flight, lambda _: self._land(flight))

    def _land(self, flight: Flight) -> None:
        if self._stopped:
            return
        result = land(self._program, self._state, flight)
        if self._log is not None:
            self._log.landed(flight, flight.remaining, result)
        self._state = result.state
        self._fail(result)
        if result.signalled >= 0:
            self._signal(result.signalled, int(self._env.now), landed=True)
        self._release_held()

    def _release_held(self) -> None:
        """Arrivals that waited for earlier transfers of their agent, which have landed now."""
        ready = [f for f in self._held if can_land(self._state, f)]
        self._held = [f for f in self._held if f not in ready]
        for flight in ready:
            self._after(0, lambda _, f=flight: self._land(f))  # type: ignore[misc]  # f is bound now, on purpose

    # what is recorded

    def _stamp(self, agent: int, pc: int, which: int, cycle: int) -> None:
        records = self._table.records[agent][pc]
        if not records:
            return
        record = records[which]
        passes = self._passes[agent]
        cta, number = self._local[agent]
        self._buffer.append(
            cta, number, record.site, record.stage, record.parity, passes[record.site], max(record.value, 0), cycle
        )
        passes[record.site] += 1

    def _trace(self, outcome: Outcome) -> Trace:
        meta = TraceMeta(
            source="simulation",
            protocol=self._program.name,
            params=dict(self._program.params),
            grid=self._program.grid,
            device=Device(name=self._profile.device, sms=self._profile.sms, sm_khz=self._profile.sm_khz),
            agents=self._table.agents,
            barriers=self._table.barriers,
            sites=self._table.sites,
            status=outcome.value,
            extra={"profile": self._profile.name, "recording": bool(self._record)},
        )
        return Trace(meta, self._buffer.events(self._profile.sm_khz))


def _local_numbers(program: Program) -> tuple[tuple[int, int], ...]:
    """(CTA, number within the CTA) of each agent, as traces name them."""
    seen = [0] * program.ctas
    numbers = []
    for agent in program.agents:
        numbers.append((agent.cta, seen[agent.cta]))
        seen[agent.cta] += 1
    return tuple(numbers)
