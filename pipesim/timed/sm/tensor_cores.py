"""The tensor cores of an SM's quarters: who issues products when, and when these end.

Measured on an H200 (two warp groups, the second a number of cycles later): a core takes
instructions in the order of their issue, and has eight of them in advance at most. A warp issues one in a quarter of
the time that it takes. While there is room, warps issue beside each other; when there is none, what becomes free is
taken by the warp that began to issue first, until it has issued all products of its group.

The products of a warp group begin together, when its last warp comes (also measured there: no core of the group takes
any before, and another group's are not delayed). That matters where another group uses the same cores: it decides the
order. Here such a warp continues immediately; its next wait for products lasts until all warps of the group have
theirs.

When a product ends is therefore not known when an agent begins to issue: another warp's can still come before it. That
makes its end later, never earlier: it is looked for at the earliest time that it can have, and again if others came
until then. Times are whole cycles. An agent gives more when all that it gave has been issued.
"""

from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from pipesim.model.tables import Agent
from pipesim.timed.work import QUARTERS


class _IssuedBatch(NamedTuple):
    """All products of a batch: what its agent has given with it, when the last is issued, and when that ends."""

    given: int
    at: int
    end: int


@dataclass(slots=True)
class _WaitingBatch:
    """Products that an agent has still to issue: when it can issue the next, when it issued the first (-1: not yet).

    ``left`` of them take ``cycles``, and bring its work to ``given``; it issues one each ``interval`` at most.
    """

    ready: int
    agent: int
    begun: int
    left: int
    cycles: int
    given: int
    interval: int

    def order(self) -> tuple[bool, int, int]:
        """Among batches that can issue the least is first."""
        return self.begun < 0, self.begun if self.begun >= 0 else self.ready, self.agent


class _Core:
    """``ends``: of the last instructions that it has taken; ``waiting``: batches with products to be issued."""

    def __init__(self, ahead: int, ends: Sequence[int] = (), waiting: Sequence[_WaitingBatch] = ()) -> None:
        self.ahead = ahead
        self.ends = deque(ends, maxlen=ahead)
        self.waiting = [replace(each) for each in waiting]

    def run(self, until: int | None = None) -> list[tuple[int, _IssuedBatch]]:
        """Issue what can be issued before ``until`` (None: all, if no other comes): agents and batches that are."""
        done = []
        ends, waiting = self.ends, self.waiting
        while waiting:
            room = ends[0] if len(ends) == self.ahead else 0
            one = waiting[0] if len(waiting) == 1 else self._first(room)
            at = max(room, one.ready)
            if until is not None and at >= until:
                break
            cycles = one.cycles // one.left
            end = max(at, ends[-1] if ends else at) + cycles
            ends.append(end)
            if one.left == 1:
                waiting.remove(one)
                done.append((one.agent, _IssuedBatch(one.given, at, end)))
                continue
            one.ready, one.left, one.cycles = at + one.interval, one.left - 1, one.cycles - cycles
            if one.begun < 0:
                one.begun = at
        return done

    def _first(self, room: int) -> _WaitingBatch:
        """Which batch issues next: of each agent only its first can."""
        firsts = {each.agent: each for each in reversed(self.waiting)}
        at = max(room, min(each.ready for each in firsts.values()))
        return min((each for each in firsts.values() if each.ready <= at), key=_WaitingBatch.order)


class _HeldBatch(NamedTuple):
    """A batch that begins when all warps of its group have given theirs."""

    cycles: int
    products: int
    interval: int
    given: int


def begin_together(agents: Sequence[Agent], groups: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    """For each agent those whose products begin with its own: its warp group, where others use the group's cores."""
    users = Counter((each.cta, each.warp % QUARTERS) for each, group in zip(agents, groups, strict=True) if group)
    return [
        tuple(group) if any(users[agents[each].cta, agents[each].warp % QUARTERS] > 1 for each in group) else (number,)
        for number, group in enumerate(groups)
    ]


class TensorCores:
    """The cores of all SMs of a cluster. ``given``: cycles of work of each agent so far.

    ``groups``: for each agent those whose products begin with its own, itself among them; without: its own alone.
    """

    def __init__(self, agents: Sequence[Agent], ahead: int, groups: Sequence[tuple[int, ...]] = ()) -> None:
        self._groups = groups or [(agent,) for agent in range(len(agents))]
        self._held: list[deque[_HeldBatch]] = [deque() for _ in agents]
        self._begun = [0] * len(agents)  # of what was given
        cores: dict[tuple[int, int], _Core] = {}
        self._core = [cores.setdefault((each.cta, each.warp % QUARTERS), _Core(ahead)) for each in agents]
        self._issued: list[deque[_IssuedBatch]] = [deque() for _ in agents]
        self._done = [0] * len(agents)
        self.given = [0] * len(agents)

    def give(self, agent: int, now: int, cycles: int, products: int, interval: int) -> tuple[int, ...]:
        """An agent issues this number of instructions, one each ``interval``, which together take its core ``cycles``.

        Whose products begin now: those of its group if it is the last.
        """
        self.given[agent] += cycles
        self._held[agent].append(_HeldBatch(cycles, products, interval, self.given[agent]))
        group = self._groups[agent]
        if not all(self._held[each] for each in group):
            return ()
        for each in group:
            self._begin(each, now, self._held[each].popleft())
        return group

    def give_up(self, now: int) -> list[int]:
        """Nothing else happens any more: products begin without the warps that do not come. Whose do."""
        alone = [agent for agent, held in enumerate(self._held) if held]
        for agent in alone:
            while self._held[agent]:
                self._begin(agent, now, self._held[agent].popleft())
        return alone

    def _begin(self, agent: int, now: int, batch: _HeldBatch) -> None:
        """An agent's core takes the batch after those that it has."""
        cycles, products, interval, given = batch
        core = self._core[agent]
        core.run(now)
        self._begun[agent] = given
        core.waiting.append(_WaitingBatch(now, agent, -1, products, cycles, given, interval))
        for each in {batch.agent for batch in core.waiting}:
            issued = self._issued[each]
            while issued and issued[-1].at >= now:
                issued.pop()
        for each, last in _Core(core.ahead, core.ends, core.waiting).run():
            self._issued[each].append(last)

    def issues(self, agent: int, now: int) -> int:
        """The earliest time at which all can be issued that the agent gave and that has begun; now if it is."""
        issued = self._issued[agent]
        return max(now, issued[-1].at) if issued else now

    def ends(self, agent: int, given: int, now: int) -> int:
        """The earliest time at which the core can have done so much for the agent; now if it has, -1 if it waits for
        other warps of its group.
        """
        issued = self._issued[agent]
        while issued and issued[0].end <= now:
            self._done[agent] = issued.popleft().given
        if self._done[agent] >= given:
            return now
        if self._begun[agent] < given:
            return -1
        return next(each.end for each in issued if each.given >= given)
