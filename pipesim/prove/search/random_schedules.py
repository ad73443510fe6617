"""Schedules made at random, where neither a doubt nor a search within its limit shows a fault: the same ones each time.

Agents and transfers have priorities, drawn once for each schedule; who can move and has the highest moves. At a few
moves, drawn as well, whoever moves gets the lowest priority. This finds what a few decisions bring about far more often
than a choice at every move, which keeps all agents together (S. Burckhardt et al., *A Randomized Scheduler with
Probabilistic Guarantees of Finding Bugs*, ASPLOS 2010).
"""

from random import Random

from pipesim.model.ending import Ending
from pipesim.model.groups import TRIES
from pipesim.model.machine import finished
from pipesim.model.moves import Kind, Move, attempt, landing_flights, landing_sizes
from pipesim.model.program import Program
from pipesim.prove.counterexample.confirm import refutation
from pipesim.prove.counterexample.play import Play
from pipesim.prove.memory_order.may_fail import memory_order
from pipesim.prove.refutation import Refutation

_MOST_CHANGES = 3  #: how often in a schedule one gets the lowest priority
_Key = tuple[int, int]  #: an agent and the operation of its transfer, -1 for the agent itself


def random_refutation(program: Program, most_moves: int, *, one_memory: bool) -> Refutation | None:
    """What the first schedule that fails shows; None if none does within ``most_moves`` of all together.

    ``one_memory``: what is wrong in memory order alone is not looked for.
    """
    seed = 0
    while most_moves > 0:
        schedule = _RandomSchedule(program, Random(seed), one_memory=one_memory)  # noqa: S311  # no secret
        found = schedule.refutation(most_moves)
        if found is not None:
            return found
        most_moves -= max(1, len(schedule.play.moves))
        seed += 1
    return None


class _RandomSchedule:
    """The mutable side of one schedule."""

    def __init__(self, program: Program, random: Random, *, one_memory: bool) -> None:
        self._program = program
        self._random = random
        self._order = None if one_memory else memory_order(program)
        self.play = Play(program, (), [] if self._order is None else [self._order])
        self._priorities: dict[_Key, float] = {}
        moves = sum(map(len, program.code))
        self._changes = {random.randrange(moves + 1) for _ in range(random.randint(0, _MOST_CHANGES))}
        self._slow = random.random() < 0.5  #: accesses take time
        self._blocked: set[int] = set()

    def refutation(self, most_moves: int) -> Refutation | None:
        """Move until nothing moves, something is wrong, or this many moves are made."""
        play, order = self.play, self._order
        while not play.faults and len(play.moves) < most_moves:
            if order is not None and order.faults:
                return Refutation(Ending.FAULT, tuple(play.moves), order.faults[0])
            if not self._move():
                break
        return refutation(play)

    def _move(self) -> bool:
        """Who has the highest priority moves; False if none can."""
        program, play = self._program, self.play
        running = (a for a in range(len(program.agents)) if not finished(program, play.state, a))
        able: list[_Key] = [(agent, -1) for agent in running if agent not in self._blocked]
        flights = {(flight.agent, flight.pc): (place, flight) for place, flight in landing_flights(program, play.state)}
        if not able and not flights:
            return False
        chosen = max((*able, *flights), key=self._priority)
        if len(play.moves) in self._changes:
            self._priorities[chosen] = -len(play.moves)
        if chosen not in flights:
            self._step(chosen[0])
            return True
        place, flight = flights[chosen]
        play.make(Move(Kind.LAND, place, self._random.choice(landing_sizes(play.state, flight))))
        self._blocked.clear()
        return True

    def _priority(self, key: _Key) -> float:
        if key not in self._priorities:
            self._priorities[key] = self._random.random()
        return self._priorities[key]

    def _step(self, agent: int) -> None:
        """One operation of an agent; or only the begin of its access, or a try that fails."""
        play = self.play
        fails = Move(Kind.FAIL, agent)
        op = self._program.code[agent][play.state.pcs[agent]]
        if op[0] in TRIES and self._random.random() < 0.25 and attempt(self._program, play.state, fails) is not None:
            play.make(fails)
        elif not (play.begin(agent) if self._slow else play.advance(agent)):
            self._blocked.add(agent)
            return
        self._blocked.clear()
