"""Groups of transfers that agents close and wait for: which are under way, and what was known when each was closed."""

from __future__ import annotations

from pipesim.model.ops import Engine, Op
from pipesim.model.program import Program
from pipesim.model.state import Flight
from pipesim.prove.accesses import Accesses
from pipesim.prove.clock import Clock
from pipesim.prove.snapshot import Marks


def awaited(program: Program) -> frozenset[tuple[int, int]]:
    """The (agent, engine) whose groups somebody waits for: the agent, or for a wgmma any of its warp group."""
    waits = {(a, op[1]) for a, code in enumerate(program.code) for op in code if op[0] == Op.WAIT_GROUP}
    groups = {(member, engine) for a, engine in waits if engine == Engine.WGMMA for member in program.warp_groups[a]}
    return frozenset(waits | groups)


class Groups:
    """The groups of one run that somebody waits for, by the agent that issued them and the engine."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._flown: dict[tuple[int, int], list[Flight]] = {key: [] for key in sorted(awaited(program))}
        self._closed: dict[tuple[int, int], list[Clock]] = {key: [] for key in self._flown}
        self._waited: dict[tuple[int, int], int] = dict.fromkeys(self._flown, 0)

    def fork(self, program: Program) -> Groups:
        """The same for another program, whose groups the same agents wait for."""
        twin = Groups(program)
        twin._flown = {key: flights.copy() for key, flights in self._flown.items()}
        twin._closed = {key: clocks.copy() for key, clocks in self._closed.items()}
        twin._waited = self._waited.copy()
        return twin

    def issued(self, flight: Flight) -> None:
        """A flight belongs to the group that its agent closes next."""
        flown = self._flown.get((flight.agent, flight.engine))
        if flown is not None:
            flown.append(flight)

    def closed(self, agent: int, engine: int, clock: Clock) -> None:
        """The agent closes a group; what comes after a wait for it comes after this moment."""
        closed = self._closed.get((agent, engine))
        if closed is not None:
            closed.append(clock)

    def wait(self, agent: int, pc: int, engine: int, limit: int, accesses: Accesses, clock: Clock) -> Clock:
        """The agent waits until its groups below ``limit`` are over, for a wgmma those of its whole warp group.

        Tells ``accesses`` what is over, and returns what the agent of this clock knows then.
        """
        members = self._members(agent, engine)
        for member in members:
            for flight in self._flown[member, engine]:
                if flight.group < limit:
                    accesses.waited(flight.sequence, agent, pc)
            closed = self._closed[member, engine]
            if 0 < limit <= len(closed):
                clock = clock.join(closed[limit - 1])
        self._waited[agent, engine] = max(limit, self._waited[agent, engine])
        over = min(self._waited[member, engine] for member in members)
        for member in members:
            mine = self._flown[member, engine]
            if mine and mine[0].group < over:  # every warp has waited for these: no later wait asks for them
                mine[:] = [flight for flight in mine if flight.group >= over]
        return clock

    def mark(self, marks: Marks) -> None:
        """Enter the groups that somebody may yet wait for, counted back from the last one closed."""
        for agent, engine in self._flown:
            closed, flown = self._closed[agent, engine], self._flown[agent, engine]
            waited = [self._waited[member, engine] for member in self._members(agent, engine)]
            marks.shape += (agent, engine, len(flown), *(len(closed) - least for least in waited))
            for clock in closed[max(min(waited) - 1, 0) :]:
                marks.clock(clock)
            for flight in flown:
                marks.shape.append(len(closed) - flight.group)
                marks.operations.append((flight.agent, flight.pc))

    def _members(self, agent: int, engine: int) -> tuple[int, ...]:
        return self._program.warp_groups[agent] if engine == Engine.WGMMA else (agent,)
