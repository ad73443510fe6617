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
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import simpy
from simpy.resources.base import BaseResource, Get, Put

from pipesim.model.machine import Flight
from pipesim.model.program import Program
from pipesim.model.tables import Agent
from pipesim.timed.costs import Cost, ProgramValues
from pipesim.timed.profile import Profile
from pipesim.timed.sm.tensor_cores import TensorCores, begin_together
from pipesim.timed.waits import CycleEnvironment, TimedEvent
from pipesim.timed.work import QUARTERS

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
