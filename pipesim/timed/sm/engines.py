"""What the agents of an SM use one after another: its copy engine, its tensor cores, and its shared memory."""

from __future__ import annotations

import simpy
from simpy.resources.base import BaseResource, Get, Put

from pipesim.model.machine import Flight
from pipesim.model.program import Program
from pipesim.timed.costs import Cost, ProgramValues
from pipesim.timed.environment import CycleEnvironment, TimedEvent
from pipesim.timed.profile import Profile
from pipesim.timed.sm.resources import IssueSlots, SharedMemory
from pipesim.timed.sm.tensor_cores import TensorCores, begin_together
from pipesim.timed.work import QUARTERS


class LandingTimeout(simpy.Timeout):
    """The end of a transfer that uses no engine, or whose engine has done its part: all bytes have arrived."""

    def __init__(self, env: CycleEnvironment, delay: int, flight: Flight) -> None:
        super().__init__(env, delay)
        self.flight = flight


class Copy(TimedEvent, Get["CopyEngine"]):
    """A bulk copy, load or store, as a request to the copy engine. It happens when all bytes have arrived."""

    def __init__(self, engine: CopyEngine, cost: Cost, flight: Flight) -> None:
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

    def free(self) -> tuple[int, ...]:
        """When each is free."""
        return (*(engine.free for engine in self.copy), *self.matrix_free, *self.multiplied)
