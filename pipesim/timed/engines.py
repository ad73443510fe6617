"""What the agents of an SM use one after another: its copy engine, its tensor cores, and its shared memory."""

from __future__ import annotations

from pipesim.model.program import Program
from pipesim.timed.costs import NO_LIMIT, Cost
from pipesim.timed.profile import Profile
from pipesim.timed.resources import IssueSlots, SharedMemory
from pipesim.timed.work import QUARTERS


class Engines:
    """When each of them is free again, in cycles.

    ``matrix_free``: of each CTA one for all its multiplications whose work is not known, and one of each quarter.
    ``multiplied``: when a matrix engine ends what an agent gave it last. ``issuing``: who issues a multiplication, and
    when its tensor core takes the last of it.
    """

    def __init__(self, program: Program, profile: Profile) -> None:
        self._agents = program.agents
        self._first_copy_late = profile["copy.cold"]
        self.copy_free = [0] * program.ctas
        self.cold = [True] * program.ctas
        self.matrix_free = [0] * (program.ctas * (1 + QUARTERS))
        self.multiplied = [0] * len(program.agents)
        self.memory = SharedMemory(program.agents)
        self.slots = IssueSlots(program.agents, profile["mma.slots_permille"])
        self.issuing: dict[int, int] = {}

    def copies(self, agent: int, now: int, cost: Cost) -> int:
        """The copy engine of the agent's CTA takes a copy after those that it has. When the copy lands."""
        cta = self._agents[agent].cta
        start = max(now, self.copy_free[cta])
        self.copy_free[cta] = start + cost.engine
        if self.cold[cta]:
            self.cold[cta] = False
            return start + cost.flight + self._first_copy_late
        return start + cost.flight

    def multiplies(self, agent: int, now: int, cost: Cost) -> int:
        """A matrix engine has more to do, after what it has. When it takes so much, and the agent goes on."""
        where = self._agents[agent]
        quartered = cost.ahead < NO_LIMIT
        engine = where.cta * (1 + QUARTERS) + (1 + where.warp % QUARTERS if quartered else 0)
        start = max(now, self.matrix_free[engine])
        self.matrix_free[engine] = self.multiplied[agent] = end = start + cost.engine
        if quartered:
            self.slots.multiplies(agent, start, end)
        if cost.demand:
            self.issuing[agent] = end - cost.ahead
        return end - cost.ahead

    def shared(self, cost: Cost) -> IssueSlots:
        """What a work of this cost shares with others."""
        return self.memory if cost.in_memory else self.slots

    def free(self) -> tuple[int, ...]:
        """When each is free."""
        return (*self.copy_free, *self.matrix_free, *self.multiplied)

    def later(self, now: int, cycles: int) -> None:
        """Everything that is to happen after ``now`` happens so many cycles later."""
        for clock in (self.copy_free, self.matrix_free, self.multiplied):
            clock[:] = [at + cycles if at > now else at for at in clock]
        self.slots.later(cycles)
        self.memory.later(cycles)
        self.issuing.update({agent: at + cycles for agent, at in self.issuing.items()})
