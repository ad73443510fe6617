"""One schedule of the machine, drawn at random: who moves next, when bytes land and in which pieces.

Agents and landings have weights that change now and then, so that some lag others for a while: that finds
what an even choice meets once in a million schedules. The same program and seed give the same schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from pipesim.model.finding import Fault
from pipesim.model.groups import NO_EFFECT, ON_ENGINE
from pipesim.model.machine import Flight, State, begin, finished, initial_state, land, step
from pipesim.model.moves import PIECE, completing_size, landing, landing_sizes, opens
from pipesim.model.program import Program
from pipesim.model.state import cluster_channel

_WEIGHTS = (1, 8, 64)
_CHANGE = 24  #: moves between two draws of the weights, on average


class Tried(NamedTuple):
    """An agent tried its operation at ``pc``: carried out if ``passed``, else it has to wait."""

    agent: int
    pc: int
    passed: bool


@dataclass(frozen=True)
class RandomSchedule:
    """One schedule to its end: the moves of the agents in order, every broken rule, and where everything is.

    ``ended`` is True if every agent ran to its end; ``exhausted`` if the budget of moves ran out first.
    """

    moves: tuple[Tried, ...]
    faults: tuple[Fault, ...]
    state: State
    ended: bool
    exhausted: bool

    @property
    def trapped(self) -> bool:
        """Whether the hardware would have ended the launch."""
        return any(fault.kind.traps for fault in self.faults)


def random_schedule(program: Program, seed: int, *, max_moves: int = 1_000_000) -> RandomSchedule:
    """Run one random schedule until no agent can move, a rule is broken at which the hardware stops, or the budget
    ends.
    """
    return _Drawing(program, Random(seed), max_moves).walk()  # noqa: S311  # a schedule, no secret


class _Drawing:
    """The mutable side of one schedule."""

    def __init__(self, program: Program, random: Random, max_moves: int) -> None:
        self._program = program
        self._random = random
        self._left = max_moves
        self._state = initial_state(program)
        agents = range(len(program.agents))
        self._waits = [-1 for _ in agents]  #: the channel each agent waits on
        self._slow = random.random() < 0.5  #: accesses take time
        self._pieces = random.random() < 0.5
        self._moves: list[Tried] = []
        self._faults: list[Fault] = []
        self._draw()

    def walk(self) -> RandomSchedule:
        """Move until nothing moves."""
        program = self._program
        agents = range(len(program.agents))
        while self._left > 0 and not any(f.kind.traps for f in self._faults[-1:]):
            able = [a for a in agents if self._waits[a] < 0 and not finished(program, self._state, a)]
            flights = [flight for _, flight in landing(self._state)]
            if not able and not flights:
                break
            if self._random.random() * _CHANGE < 1:
                self._draw()
            weights = [*(self._agents[a] for a in able), *(self._flight for _ in flights)]
            (chosen,) = self._random.choices(range(len(weights)), weights)
            if chosen < len(able):
                self._step(able[chosen])
            else:
                self._land(flights[chosen - len(able)])
        ended = all(finished(program, self._state, a) for a in agents)
        return RandomSchedule(
            tuple(self._moves), tuple(self._faults), self._state, ended, self._left <= 0 and not ended
        )

    def _draw(self) -> None:
        self._agents = self._random.choices(_WEIGHTS, k=len(self._program.agents))
        self._flight = self._random.choice(_WEIGHTS)

    def _step(self, agent: int) -> None:
        """One operation of an agent, and what follows it that nobody can notice."""
        code = self._program.code[agent]
        while True:
            self._left -= 1
            pc = self._state.pcs[agent]
            if self._slow and opens(self._program, self._state, agent):
                began = begin(self._program, self._state, agent)
                self._state = began.state
                self._faults += began.faults
                return
            result = step(self._program, self._state, agent)
            self._state = result.state
            self._moves.append(Tried(agent, pc, result.blocked < 0))
            self._faults += result.faults
            self._waits[agent] = result.blocked
            self._signal(result.signalled)
            if self._program.leaves_cluster_barrier and finished(self._program, self._state, agent):
                self._signal(cluster_channel(self._program))
            following = self._state.pcs[agent]
            if result.blocked >= 0 or following >= len(code) or code[following][0] not in NO_EFFECT - ON_ENGINE:
                return

    def _land(self, flight: Flight) -> None:
        self._left -= 1
        result = land(self._program, self._state, flight, self._size(flight))
        self._state = result.state
        self._faults += result.faults
        self._signal(result.signalled)

    def _size(self, flight: Flight) -> int:
        """How many bytes land now. Often just those that complete a phase."""
        if not self._pieces:
            return flight.remaining
        completing = completing_size(self._state, flight)
        if completing and self._random.random() < 0.5:
            return completing
        sizes = landing_sizes(self._state, flight, PIECE)
        return sizes[int(self._random.random() * len(sizes))] if len(sizes) > 1 else sizes[0]

    def _signal(self, channel: int) -> None:
        if channel >= 0:
            self._waits = [-1 if waits == channel else waits for waits in self._waits]
