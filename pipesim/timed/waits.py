"""Who waits for what: on each channel the agents that are blocked, and when what was last completed there can be seen.

A blocked agent has no event until its channel signals. A landing wakes a wait, and a try that is suspended on an
mbarrier that bulk copies complete; an arrive is noticed by the next try only (measured: docs/hopper.md). On an mbarrier
that only a commit or cp.async completes a landing wakes a wait, too, but a single try looks once more, as on one of
arrives: how long it would be suspended there was not measured.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from pipesim.model.groups import BLOCKING_WAITS, MEETINGS, TRIES
from pipesim.model.live.running import Running
from pipesim.model.moves import finds
from pipesim.model.ops import Op, Operation
from pipesim.model.positions import ANSWER, BARRIER
from pipesim.model.state import cluster_channel, pool_channel
from pipesim.timed.agenda import Agenda, HappensAt
from pipesim.timed.costs import Cost
from pipesim.timed.plan import SUSPENDS, Planned, PlannedStep
from pipesim.timed.profile import Profile
from pipesim.trace.recorder import StampBuffer


class Waits:
    """The channels of a run: its mbarriers first, then all else that agents wait for.

    ``entered``: when the present wait of each agent began, -1 if it is not blocked. ``landed``: whether a landing made
    the last completion on a channel. ``tries``: who is suspended in a try, since when, and until when at most.
    ``passing``: who is about to return from a wait that passes, which others can slow: its timestamp, and what that
    takes. ``turns``: the event of each agent's next move.
    """

    def __init__(
        self,
        live: Running,
        profile: Profile,
        plans: Sequence[Sequence[PlannedStep]],
        buffer: StampBuffer,
        agenda: Agenda,
        *,
        record: int,
    ) -> None:
        self._live, self._plans, self._buffer, self._agenda, self._record = live, plans, buffer, agenda, record
        self._program = program = live.program
        self._retry, self._poll, self._limit = profile["wait.retry"], profile["wait.poll"], profile["try.limit"]
        channels = pool_channel(program, program.ctas)
        self.waiters: list[list[int]] = [[] for _ in range(channels)]
        self.visible = [0] * channels
        self.landed = [False] * channels
        self.entered = [-1] * len(program.agents)
        self.tries: dict[int, tuple[int, int]] = {}
        self.passing: dict[int, tuple[int, int]] = {}
        self.turns: list[HappensAt] = []

    def block(self, agent: int, channel: int, now: int, first: int) -> None:
        """The agent is blocked; ``first``: the timestamp of that."""
        if self.entered[agent] < 0:
            self.entered[agent] = now
            if first >= 0:
                self._buffer.stamp(first, now)
        self.waiters[channel].append(agent)

    def signal(self, channel: int, seen: int, *, landed: bool) -> None:
        """Something completed on a channel and can be seen at ``seen``; its waiters return when they notice."""
        self.visible[channel] = seen
        self.landed[channel] = landed
        woken = self.waiters[channel]
        if not woken:
            return
        self.waiters[channel] = []
        on_mbarrier = channel < len(self._program.barriers)
        for agent in woken:
            planned = self._plans[agent][self._live.pcs[agent]][-1]
            back = self._passed_at(self.entered[agent], channel, planned) if on_mbarrier else seen
            self._agenda.put(self.turns[agent], back)

    def returned(self, agent: int, pc: int, planned: Planned, time: int, outcome: int) -> int:
        """A wait passed at once, but not before what completed it can be seen; or a try has its answer.

        The time at which its agent goes on.
        """
        cost, first, second = planned.cost, planned.first, planned.second
        op = self._program.code[agent][pc]
        if op[0] in TRIES:
            return self._tried(agent, pc, planned, time)
        if outcome >= 0:
            back = time + cost.visible
            self.signal(outcome, back, landed=False)
            if op[0] in MEETINGS and self.entered[agent] < 0:  # the last at a barrier: it goes on with the others
                return self._passed(time, back, first, second)
            if op[0] in MEETINGS:  # it had waited for agents that have ended
                return self._woken(agent, second, back)
        if self.entered[agent] >= 0:
            return self._woken(agent, second, time)
        if op[0] == Op.CLUSTER_WAIT:
            return max(time, self.visible[cluster_channel(self._program)])
        if op[0] not in BLOCKING_WAITS:
            return self._passed(time, time + cost.busy, first, second)
        if self._skipped(agent, op):
            return time
        return self._passed(time, self._passed_at(time, op[BARRIER], planned), first, second)

    def _skipped(self, agent: int, op: Operation) -> bool:
        """Whether a wait is not made: a try had already answered."""
        return op[0] == Op.WAIT_UNLESS and op[ANSWER] >= 0 and bool(self._live.registers[agent][op[ANSWER]])

    def passes(self, agent: int, pc: int, planned: Planned, now: int) -> Cost | None:
        """What it takes until a wait returns that passes at once and that others can slow; None of another one."""
        op, record = self._program.code[agent][pc], self._record if planned.first >= 0 else 0
        if self.visible[op[BARRIER]] > now + record or self._skipped(agent, op):
            return None
        if planned.first >= 0:
            self._buffer.stamp(planned.first, now)
        self.passing[agent] = planned.second, record
        return replace(planned.cost, busy=planned.cost.busy + record)

    def passed(self, agent: int, at: int) -> int:
        """An agent returns from such a wait, if it was in one. The time at which it goes on."""
        second, record = self.passing.pop(agent, (-1, 0))
        if second >= 0:
            self._buffer.stamp(second, at)
        return at + record

    def suspended(self, agent: int, pc: int, now: int, kind: int) -> bool:
        """Whether a try of this kind has still to wait: for what completes its phase, or until it gives up.

        An arrive does not wake it: it looks once more, and answers.
        """
        barrier, fed = self._program.code[agent][pc][BARRIER], kind == SUSPENDS
        if agent in self.tries or (
            finds(self._program, self._live, agent, pc) and (fed or self.visible[barrier] <= now)
        ):
            return False
        self.entered[agent] = now
        if not fed:
            self.tries[agent] = (now, now + self._poll)
            self._agenda.put(self.turns[agent], now + self._poll)
            return True
        self.tries[agent] = (now, now + self._limit)
        self.waiters[barrier].append(agent)
        self.watch(agent)
        return True

    def watch(self, agent: int) -> None:
        """A try that a landing can wake gives up at its limit."""
        since, until = self.tries[agent]
        if self._plans[agent][self._live.pcs[agent]][0] == SUSPENDS:
            self._agenda.put(HappensAt(self._agenda, partial(self._gives_up, agent, since)), until)

    def _gives_up(self, agent: int, since: int, due: HappensAt) -> None:
        pc, code = self._live.pcs[agent], self._program.code[agent]
        if self._agenda.stopped or self.tries.get(agent, (-1, 0))[0] != since or pc >= len(code):
            return
        waiters = self.waiters[code[pc][BARRIER]]
        if agent in waiters:  # else it has been woken already
            waiters.remove(agent)
            self._agenda.put(self.turns[agent], due.at)

    def _woken(self, agent: int, second: int, time: int) -> int:
        """A wait that was blocked returns. The time at which its agent goes on."""
        self.entered[agent] = -1
        if second < 0:
            return time
        self._buffer.stamp(second, time)
        return time + self._record

    def _passed(self, entered: int, back: int, first: int, second: int) -> int:
        """A wait that did not block began and returned: its stamps, and when its agent goes on."""
        if first >= 0:
            self._buffer.stamp(first, entered)
        if second >= 0:
            self._buffer.stamp(second, back)
        return back + (self._record if first >= 0 or second >= 0 else 0)

    def _passed_at(self, entered: int, channel: int, planned: Planned) -> int:
        """When a wait on an mbarrier returns that began at ``entered`` and whose phase is complete."""
        cost = planned.cost
        seen = self.visible[channel]
        tried = entered + (self._record if planned.first >= 0 else 0)
        if seen <= tried:
            return tried + cost.busy
        if self.landed[channel]:
            return max(tried + cost.busy, seen + cost.visible)
        again = tried + self._retry
        return again + max(0, -(-(seen - again) // self._poll)) * self._poll + cost.busy

    def _tried(self, agent: int, pc: int, planned: Planned, time: int) -> int:
        """A try was made: its answer is recorded. It is false while others cannot see yet what completed the phase."""
        success = finds(self._program, self._live, agent, pc)
        barrier = self._program.code[agent][pc][BARRIER]
        if success and self.visible[barrier] > time:
            success = False
            self._live.refuse(agent, pc)
        since = self.tries.pop(agent)[0] if agent in self.tries else time
        self.entered[agent] = -1
        self._buffer.stamp(planned.second if success else planned.first, since)
        if since < time and planned.kind == SUSPENDS:  # until now, but no less than one that was not suspended
            return max(time, since + planned.busy)
        return time + planned.busy
