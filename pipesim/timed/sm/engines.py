"""What the agents of an SM share: its copy engine, its tensor cores, its issue slots and its shared memory.

A warp belongs to quarter ``warp % 4``. A work has a time alone, and a demand: the cycles of the quarter that its
instructions take. The quarter's tensor core also takes a share of it while it works (it reads and writes registers),
and is itself not slowed (measured on an H200). While the works on a quarter demand more than it has, all of them are
slowed in the same proportion (processor sharing). The order is not static: who is slowed depends on who runs at the
same time.

Waits that pass and the issue of multiplications are scalar: a few instructions that need the one before. Works slow
them, but they do not slow the works, nor does the tensor core slow them.

Times are whole cycles, the rest of a work whole thousandths of one. A work's end is looked for at the earliest time
that it can have, and again if it was slowed until then: others make it slower, never faster.

Accesses to shared memory share it in the same way: a warp asks for some bytes, uses them, and asks for the next, so
that those of several warps pass in turns.

The tensor cores of an SM's quarters: who issues products when, and when these end.

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

import simpy
from simpy.resources.base import BaseResource, Get, Put

from pipesim.model.machine import Flight
from pipesim.model.program import Program
from pipesim.model.tables import Agent
from pipesim.timed.costs import Cost, ProgramValues
from pipesim.timed.profile import Profile
from pipesim.timed.waits import CycleEnvironment, TimedEvent
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


_PARTS = 1000  #: of a cycle
_ACCESS = 512  #: bytes of one instruction of a warp: 16 of each lane
_FIRST = (
    96  #: cycles of the memory (12 KB) of which an access does not compute with one part while it waits for another
)

_Quarter = tuple[int, int]  #: of which CTA, and which of its quarters


@dataclass
class _Job:
    """A work under way. ``rest``: thousandths of a cycle, were it alone; ``share``: of a quarter, in thousandths.

    ``scalar``: the tensor core does not slow it, and it does not slow works.
    """

    rest: int
    share: int
    scalar: bool


class IssueSlots:
    """The issue slots of the quarters of all SMs of a cluster, and the works that run on them, by agent."""

    def __init__(self, agents: Sequence[Agent], tensor_share: int) -> None:
        self._tensor_share = tensor_share  # thousandths of a quarter
        self._quarter: list[_Quarter] = [self._place(each) for each in agents]
        self._jobs: dict[_Quarter, dict[int, _Job]] = {where: {} for where in self._quarter}
        self._seen = dict.fromkeys(self._jobs, 0)  # until when the rests on a quarter are known
        self._under_way: set[int] = set()
        self._multiplying: dict[_Quarter, list[tuple[int, int]]] = {where: [] for where in self._jobs}

    @staticmethod
    def _place(agent: Agent) -> _Quarter:
        """Where its instructions are issued."""
        return agent.cta, agent.warp % QUARTERS

    def __contains__(self, agent: int) -> bool:
        return agent in self._under_way

    def begin(self, agent: int, now: int, cost: Cost) -> int:
        """A work begins; the earliest time of its end."""
        jobs = self._until(self._quarter[agent], now)
        share = -(-_PARTS * min(cost.demand, cost.busy) // max(1, cost.busy))
        jobs[agent] = _Job(_PARTS * cost.busy, share, cost.scalar)
        self._under_way.add(agent)
        return now + cost.busy

    def try_end(self, agent: int, now: int) -> int:
        """Now if the agent's work has ended, which is then forgotten; else the earliest time at which it can end."""
        jobs = self._until(self._quarter[agent], now)
        rest = jobs[agent].rest
        if 2 * rest > _PARTS:  # less is what rounding has left
            return now + -(-rest // _PARTS)
        del jobs[agent]
        self._under_way.remove(agent)
        return now

    def multiplies(self, agent: int, start: int, end: int) -> None:
        """The tensor core of the agent's quarter works from then until then, after all that it was given before."""
        spans = self._multiplying[self._quarter[agent]]
        if spans and spans[-1][1] == start:
            spans[-1] = (spans[-1][0], end)
        else:
            spans.append((start, end))

    def _until(self, where: _Quarter, now: int) -> dict[int, _Job]:
        """The works on a quarter, with what is left of them now."""
        jobs, since = self._jobs[where], self._seen[where]
        self._seen[where] = now
        multiplied = self._tensor_cycles(where, since, now)
        if jobs and now > since:
            wanted = sum(job.share for job in jobs.values() if job.rest > 0 and not job.scalar)
            beside, alone = max(_PARTS, wanted + self._tensor_share), max(_PARTS, wanted)
            done = _PARTS * _PARTS * multiplied // beside + _PARTS * _PARTS * (now - since - multiplied) // alone
            for job in jobs.values():
                job.rest -= _PARTS * _PARTS * (now - since) // max(_PARTS, wanted + job.share) if job.scalar else done
        return jobs

    def _tensor_cycles(self, where: _Quarter, since: int, now: int) -> int:
        """Cycles between the two times in which a quarter's tensor core works; what is over by then is forgotten."""
        spans = self._multiplying[where]
        cycles = sum(max(0, min(end, now) - max(start, since)) for start, end in spans)
        if spans and spans[0][1] <= now:
            self._multiplying[where] = [span for span in spans if span[1] > now]
        return cycles


class SharedMemory(IssueSlots):
    """The shared memory of each SM of a cluster, and the accesses under way, by agent.

    An access is served for ``in_memory`` cycles if it is alone, of which it takes ``demand``; the rest of its time
    comes after that, in which it can need issue slots of its quarter. If ``parts``, one that begins while others are
    under way ends an instruction of each of them later: warps that begin together do not stay together, and as soon as
    they no longer meet none waits.
    """

    def __init__(self, agents: Sequence[Agent], slots: IssueSlots, bytes_per_kcycle: int, *, parts: bool) -> None:
        super().__init__(agents, 0)
        self._slots = slots
        self._turn = -(-1000 * _ACCESS // bytes_per_kcycle) if parts else 0
        self._rest: dict[int, Cost] = {}  # of an access: what comes after it has been served
        self._alone: dict[int, tuple[int, int]] = {}  # when an access is served if it is alone, and what it takes
        self._ends: dict[int, int] = {}  # of one that has been served: when it ends, if it needs no slots

    @staticmethod
    def _place(agent: Agent) -> _Quarter:
        return agent.cta, 0

    def begin(self, agent: int, now: int, cost: Cost) -> int:
        """An access begins; the earliest time at which it can have been served."""
        others = len(self._jobs[self._quarter[agent]])
        self._alone[agent] = now + cost.in_memory, cost.demand
        self._rest[agent] = Cost(cost.busy - cost.in_memory + self._turn * others, demand=cost.slots)
        return super().begin(agent, now, replace(cost, busy=cost.in_memory))

    def try_end(self, agent: int, now: int) -> int:
        """Now if the agent's access has ended, which is then forgotten; else when to look again."""
        if agent in self._ends:
            self._under_way.remove(agent)
            return self._ends.pop(agent)
        if agent not in self._rest:
            at = self._slots.try_end(agent, now)
            if at == now:
                self._under_way.remove(agent)
            return at
        at = super().try_end(agent, now)
        if at != now:
            return at
        rest = self._remaining_work(self._rest.pop(agent), now, *self._alone.pop(agent))
        if rest.busy:
            self._under_way.add(agent)
            if rest.demand:
                return self._slots.begin(agent, now, rest)
            self._ends[agent] = at = now + rest.busy
        return at

    @staticmethod
    def _remaining_work(rest: Cost, now: int, alone: int, taken: int) -> Cost:
        """What is left of what comes after an access: while it waited for the memory it computed with what it had
        loaded, except for the first part.
        """
        done = min(max(0, now - alone), rest.busy) * max(0, taken - _FIRST) // max(1, taken)
        return replace(rest, busy=rest.busy - done, demand=min(rest.demand, rest.busy - done))


class LandingTimeout(simpy.Timeout):
    """The end of a transfer that uses no engine, or whose engine has done its part: all bytes have arrived."""

    def __init__(self, env: CycleEnvironment, delay: int, flight: Flight) -> None:
        super().__init__(env, delay)
        self.flight = flight


class Copy(TimedEvent, Get["CopyEngine"]):
    """A bulk copy, load or store, as a request to the copy engine. It happens when all bytes have arrived."""

    def __init__(self, engine: "CopyEngine", cost: Cost, flight: Flight) -> None:
        self.cost = cost
        self.flight = flight
        Get.__init__(self, engine)


class CopyEngine(BaseResource[Put["CopyEngine"], Copy]):
    """One copy after another, in the order of the requests: when each lands is known as soon as it is requested.

    ``free``: the cycle at which it has started all that was requested. ``cold``: how much later the first copy lands.
    """

    def __init__(self, env: CycleEnvironment, cold: int) -> None:
        super().__init__(env, capacity=1)
        self.free = 0
        self.cold = cold

    def request(self, cost: Cost, flight: Flight) -> Copy:
        """The engine takes a copy after those that it has."""
        return Copy(self, cost, flight)

    def _do_get(self, event: Copy) -> None:
        """Grant a request, as SimPy's resources do."""
        now, cost = int(event.env.now), event.cost
        start = max(now, self.free)
        self.free = start + cost.engine
        event.succeed_in(start + cost.flight + self.cold - now)
        self.cold = 0


class Engines:
    """``copy``: the copy engine of each CTA's SM. Of the others when they are free again, in cycles.

    ``matrix_free``: of each CTA one for all its multiplications whose work is not known, and one of each quarter.
    ``multiplied``: when the first of these ends what an agent gave it last. ``issuing``: who issues a
    multiplication, or returns from a wait that passes and that others can slow, and has not gone on. ``begun``: whose
    products began with the last multiplication.
    """

    def __init__(self, env: CycleEnvironment, program: Program, profile: Profile) -> None:
        self._agents = program.agents
        self.copy = [CopyEngine(env, profile["copy.cold"]) for _ in range(program.ctas)]
        self.matrix_free = [0] * (program.ctas * (1 + QUARTERS))
        self.multiplied = [0] * len(program.agents)
        groups = begin_together(program.agents, program.warp_groups)
        self.cores = TensorCores(program.agents, profile["mma.queue"], groups)
        self.slots = IssueSlots(program.agents, ProgramValues(program, profile)["mma.slots_permille"])
        parts = not any(work.amount("cluster_fences") for work in program.work)
        self.memory = SharedMemory(program.agents, self.slots, profile["shared.bytes_per_kcycle"], parts=parts)
        self.issuing: set[int] = set()
        self.begun: tuple[int, ...] = ()

    def multiplies(self, agent: int, now: int, cost: Cost) -> int:
        """A matrix engine has more to do, after what it has. The earliest time at which the agent continues: later if
        it is ``issuing`` and others come.
        """
        where = self._agents[agent]
        quartered = cost.products > 0
        engine = where.cta * (1 + QUARTERS) + (1 + where.warp % QUARTERS if quartered else 0)
        start = max(now, self.matrix_free[engine])
        self.matrix_free[engine] = end = start + cost.engine
        if not quartered:
            self.multiplied[agent] = end
            self.begun = ()
            return now
        self.slots.multiplies(agent, start, end)
        self.begun = self.cores.give(agent, now, cost.engine, cost.products, cost.interval)
        at = self.cores.issues(agent, now)
        if cost.demand or at > now + cost.busy:
            self.issuing.add(agent)
        return at

    def issue_end(self, agent: int, now: int) -> int:
        """Now if an agent that is ``issuing`` continues, else when to look again."""
        at = self.slots.try_end(agent, now) if agent in self.slots else now
        return at if at > now else self.cores.issues(agent, now)

    def resource_for(self, cost: Cost) -> IssueSlots:
        """What a work of this cost shares with others."""
        return self.memory if cost.in_memory else self.slots
