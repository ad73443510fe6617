"""Who waits for what: on each channel the waits for its phase, and when what was last completed there can be seen.

Time is SimPy's environment in whole cycles, an agent is a SimPy process. It yields timeouts while it is busy, a
:class:`PhaseEvent` where it is blocked, which happens when its channel signals, and an :class:`EngineTurn` before it
uses an engine that others may use in the same cycle. Events of one cycle happen in the order in which they were
scheduled, engine turns after all others.

A landing wakes a wait, and a try that is suspended on an mbarrier that bulk copies complete; an arrive is noticed by
the next try only (measured: docs/hopper.md). On an mbarrier that only a commit or cp.async completes a landing also
wakes a wait, but a single try looks once more, as on one of arrives: how long it would be suspended there was not
measured.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import simpy
from simpy.events import NORMAL, Event, EventPriority

from pipesim.model.groups import ANSWER, BARRIER, BLOCKING_WAITS, MEETINGS, TRIES
from pipesim.model.live.live_run import LiveRun
from pipesim.model.moves import finds
from pipesim.model.ops import Op, Operation
from pipesim.model.state import cluster_channel, pool_channel
from pipesim.timed.costs import Cost
from pipesim.timed.plan import SUSPENDS, PlannedOperation, PlannedStep
from pipesim.timed.profile import Profile
from pipesim.trace.recorder import StampBuffer


class TimedEvent(Event):
    """An event that says itself how it is scheduled when it is triggered."""

    delay = 0  #: cycles from when it is triggered until it happens
    priority = NORMAL

    def succeed_in(self, delay: int) -> None:
        """Trigger it so that it happens after ``delay`` cycles."""
        self.delay = delay
        self.succeed()


class PhaseEvent(TimedEvent):
    """The completion of a phase as one waiting agent notices it: who completes the phase triggers it."""

    def __init__(self, env: "CycleEnvironment", agent: int) -> None:
        super().__init__(env)
        self.agent = agent


class EngineTurn(TimedEvent):
    """The turn of an agent to use an engine: of the agents that ask in one cycle the lowest is first."""

    def __init__(self, env: "CycleEnvironment", agent: int) -> None:
        super().__init__(env)
        self.priority = EventPriority(NORMAL + 1 + agent)
        self.succeed()


class CycleEnvironment(simpy.Environment):
    """The environment of one simulation, in whole cycles."""

    if TYPE_CHECKING:

        @property
        def now(self) -> int:
            """The present cycle."""

    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        """Schedule an event, a timed one as it says itself."""
        if isinstance(event, TimedEvent):
            priority, delay = event.priority, event.delay
        simpy.Environment.schedule(self, event, priority, delay)  # hot: quicker than by super()


class Waits:
    """The channels of a run: its mbarriers first, then all else that agents wait for.

    ``entered``: when the present wait of each agent began, None if it is not blocked. ``landed``: whether a landing
    made the last completion on a channel. ``tries``: who is suspended in a try, since when, and until when at most.
    ``passing``: who is about to return from a wait that passes, which others can slow: its timestamp, and what that
    takes.
    """

    def __init__(
        self,
        live: LiveRun,
        profile: Profile,
        plans: Sequence[Sequence[PlannedStep]],
        buffer: StampBuffer,
        env: CycleEnvironment,
        *,
        record: int,
    ) -> None:
        self._live, self._plans, self._buffer, self._env, self._record = live, plans, buffer, env, record
        self._program = program = live.program
        self._retry, self._poll, self._limit = profile["wait.retry"], profile["wait.poll"], profile["try.limit"]
        barriers = range(len(program.barriers))
        self._words = frozenset(filter(program.is_word, barriers) if program.words_cta >= 0 else ())
        self._load = profile["word.load"] if self._words else 0
        channels = pool_channel(program, program.ctas)
        self.waiters: list[list[PhaseEvent]] = [[] for _ in range(channels)]
        self.visible = [0] * channels
        self.landed = [False] * channels
        self.entered: list[int | None] = [None] * len(program.agents)
        self.tries: dict[int, tuple[int, int]] = {}
        self.passing: dict[int, tuple[int, int]] = {}

    def block(self, agent: int, channel: int, first: int) -> PhaseEvent:
        """The agent is blocked until the wait happens; ``first``: the timestamp of that."""
        if self.entered[agent] is None:
            self.entered[agent] = now = self._env.now
            if first >= 0:
                self._buffer.stamp(first, now)
        wait = PhaseEvent(self._env, agent)
        self.waiters[channel].append(wait)
        return wait

    def signal(self, channel: int, seen: int, *, landed: bool) -> None:
        """Something completed on a channel and can be seen at ``seen``: its waits return when their agents notice."""
        self.visible[channel] = seen
        self.landed[channel] = landed
        waits = self.waiters[channel]
        if not waits:
            return
        self.waiters[channel] = []
        now, on_mbarrier = self._env.now, channel < len(self._program.barriers)
        for wait in waits:
            agent = wait.agent
            pc, entered = self._live.pcs[agent], self.entered[agent]
            assert entered is not None
            wait.succeed_in((self._passed_at(agent, pc, entered, channel) if on_mbarrier else seen) - now)

    def return_from(self, agent: int, pc: int, planned: PlannedOperation, time: int, outcome: int) -> int:
        """A wait passed immediately, but not before what completed it can be seen; or a try has its answer.

        The time at which its agent continues.
        """
        cost, first, second = planned.cost, planned.first, planned.second
        op = self._program.code[agent][pc]
        if op[0] in TRIES:
            return self._answer_try(agent, pc, planned, time)
        if outcome >= 0:
            back = time + cost.visible
            self.signal(outcome, back, landed=False)
            if op[0] in MEETINGS and self.entered[agent] is None:  # the last at a barrier: it continues with the others
                return self._pass_at_once(time, back, first, second)
            if op[0] in MEETINGS:  # it had waited for agents that have ended
                return self._wake(agent, second, back)
        if self.entered[agent] is not None:
            return self._wake(agent, second, time)
        if op[0] == Op.CLUSTER_WAIT:
            return max(time, self.visible[cluster_channel(self._program)])
        if op[0] not in BLOCKING_WAITS:
            return self._pass_at_once(time, time + cost.busy, first, second)
        if self._is_skipped(agent, op):
            return time
        return self._pass_at_once(time, self._passed_at(agent, pc, time, op[BARRIER]), first, second)

    def _is_skipped(self, agent: int, op: Operation) -> bool:
        """Whether a wait is not made: a try had already answered."""
        return op[0] == Op.WAIT_UNLESS and op[ANSWER] >= 0 and bool(self._live.registers[agent][op[ANSWER]])

    def passes(self, agent: int, pc: int, planned: PlannedOperation) -> Cost | None:
        """What it takes until a wait returns that passes immediately and that others can slow; None for another one."""
        op, record, now = self._program.code[agent][pc], self._record if planned.first >= 0 else 0, self._env.now
        if self.visible[op[BARRIER]] > now + record or self._is_skipped(agent, op):
            return None
        if planned.first >= 0:
            self._buffer.stamp(planned.first, now)
        self.passing[agent] = planned.second, record
        return replace(planned.cost, busy=planned.cost.busy + record)

    def finish_passing(self, agent: int, at: int) -> int:
        """An agent returns from such a wait, if it was in one. The time at which it continues."""
        second, record = self.passing.pop(agent, (-1, 0))
        if second >= 0:
            self._buffer.stamp(second, at)
        return at + record

    def suspend(self, agent: int, pc: int, kind: int) -> Event | None:
        """What a try of this kind still waits for: what completes its phase, or its limit; None if it can answer.

        An arrive does not wake it: it looks once more, and answers.
        """
        barrier, fed, now = self._program.code[agent][pc][BARRIER], kind == SUSPENDS, self._env.now
        if agent in self.tries or (
            finds(self._program, self._live, agent, pc) and (fed or self.visible[barrier] <= now)
        ):
            return None
        self.entered[agent] = now
        delay = self._limit if fed else self._poll
        self.tries[agent] = (now, now + delay)
        limit = self._env.timeout(delay)
        if not fed:
            return limit
        wait = PhaseEvent(self._env, agent)
        self.waiters[barrier].append(wait)

        def gives_up(_: Event) -> None:
            if not wait.triggered:
                self.waiters[barrier].remove(wait)
                wait.succeed()

        limit.callbacks.append(gives_up)
        return wait

    def _wake(self, agent: int, second: int, time: int) -> int:
        """A wait that was blocked returns. The time at which its agent continues."""
        self.entered[agent] = None
        if second < 0:
            return time
        self._buffer.stamp(second, time)
        return time + self._record

    def _pass_at_once(self, entered: int, back: int, first: int, second: int) -> int:
        """A wait that did not block began and returned: its timestamps, and when its agent continues."""
        if first >= 0:
            self._buffer.stamp(first, entered)
        if second >= 0:
            self._buffer.stamp(second, back)
        return back + (self._record if first >= 0 or second >= 0 else 0)

    def _passed_at(self, agent: int, pc: int, entered: int, channel: int) -> int:
        """When a wait on an mbarrier, or a word, returns that began at ``entered`` and whose phase is complete."""
        planned = self._plans[agent][pc][-1]
        cost = planned.cost
        seen = self.visible[channel]
        tried = entered + (self._record if planned.first >= 0 else 0)
        if channel in self._words:
            tried -= self._load * self._loops_on(agent, pc)
            return tried + (1 + max(0, -(-(seen - tried) // self._load))) * self._load
        if seen <= tried:
            return tried + cost.busy
        if self.landed[channel]:
            return max(tried + cost.busy, seen + cost.visible)
        again = tried + self._retry
        return again + max(0, -(-(seen - again) // self._poll)) * self._poll + cost.busy

    def _loops_on(self, agent: int, pc: int) -> bool:
        """Whether the wait before was of the same loop on a word, whose last load then is the first of this one."""
        code, lines = self._program.code[agent], self._program.lines[agent]
        follows = pc > 0 and lines[pc - 1] == lines[pc] and code[pc - 1][0] in BLOCKING_WAITS
        return follows and code[pc - 1][BARRIER] in self._words

    def _answer_try(self, agent: int, pc: int, planned: PlannedOperation, time: int) -> int:
        """A try was made: its answer is recorded. It is false while others cannot see yet what completed the phase."""
        success = finds(self._program, self._live, agent, pc)
        barrier = self._program.code[agent][pc][BARRIER]
        if success and self.visible[barrier] > time:
            success = False
            self._live.refuse(agent, pc)
        since = self.tries.pop(agent)[0] if agent in self.tries else time
        self.entered[agent] = None
        self._buffer.stamp(planned.second if success else planned.first, since)
        if since < time and planned.kind == SUSPENDS:  # until now, but no less than one that was not suspended
            return max(time, since + planned.busy)
        return time + planned.busy
