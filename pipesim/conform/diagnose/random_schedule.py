"""One schedule of the machine, drawn at random: who moves next, when bytes land and in which pieces.

Agents and landings have weights that change now and then, so that some lag others for a while: that finds
what an even choice meets once in a million schedules. The same program and seed give the same schedule.
"""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from pipesim.model.finding import Fault
from pipesim.model.machine import TMA, Flight, State, begin, can_land, finished, initial_state, land, step
from pipesim.model.ops import Op
from pipesim.model.program import Program

_PIECE = 16  #: bytes in which a copy lands at least (measured: docs/hopper.md)
_WEIGHTS = (1, 8, 64)
_CHANGE = 24  #: moves between two draws of the weights, on average
_PRIVATE = frozenset({Op.WORK, Op.LOOP_BEGIN, Op.LOOP_NEXT, Op.LOOP_END, Op.FENCE, Op.SETMAXNREG})
_ACCESSES = frozenset({Op.READ, Op.WRITE})


class Move(NamedTuple):
    """An agent tried its operation at ``pc``: carried out if ``passed``, else it has to wait."""

    agent: int
    pc: int
    passed: bool


@dataclass(frozen=True)
class Walk:
    """One schedule to its end: the moves of the agents in order, every broken rule, and where everything is.

    ``ended`` is True if every agent ran to its end; ``exhausted`` if the budget of moves ran out first.
    """

    moves: tuple[Move, ...]
    faults: tuple[Fault, ...]
    state: State
    ended: bool
    exhausted: bool

    @property
    def trapped(self) -> bool:
        """Whether the hardware would have ended the launch."""
        return any(fault.kind.traps for fault in self.faults)


def wander(program: Program, seed: int, *, max_moves: int = 1_000_000) -> Walk:
    """Run one random schedule until no agent can move, a rule is broken at which the hardware stops, or the budget
    ends.
    """
    return _Wanderer(program, Random(seed), max_moves).walk()  # noqa: S311  # a schedule, no secret


class _Wanderer:
    """The mutable side of one schedule."""

    def __init__(self, program: Program, random: Random, max_moves: int) -> None:
        self._program = program
        self._random = random
        self._left = max_moves
        self._state = initial_state(program)
        agents = range(len(program.agents))
        self._waits = [-1 for _ in agents]  #: the channel each agent waits on
        self._open = [False for _ in agents]  #: whether its own access is open
        self._slow = random.random() < 0.5  #: accesses take time
        self._pieces = random.random() < 0.5
        self._moves: list[Move] = []
        self._faults: list[Fault] = []
        self._draw()

    def walk(self) -> Walk:
        """Move until nothing moves."""
        program = self._program
        agents = range(len(program.agents))
        while self._left > 0 and not any(f.kind.traps for f in self._faults[-1:]):
            able = [a for a in agents if self._waits[a] < 0 and not finished(program, self._state, a)]
            flights = [f for f in self._state.flights if can_land(self._state, f)]
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
        return Walk(tuple(self._moves), tuple(self._faults), self._state, ended, self._left <= 0 and not ended)

    def _draw(self) -> None:
        self._agents = self._random.choices(_WEIGHTS, k=len(self._program.agents))
        self._flight = self._random.choice(_WEIGHTS)

    def _step(self, agent: int) -> None:
        """One operation of an agent, and what follows it that nobody can notice."""
        code = self._program.code[agent]
        while True:
            self._left -= 1
            pc = self._state.pcs[agent]
            if self._slow and code[pc][0] in _ACCESSES and not self._open[agent]:
                began = begin(self._program, self._state, agent)
                self._open[agent] = True
                self._state = began.state
                self._faults += began.faults
                return
            self._open[agent] = False
            result = step(self._program, self._state, agent)
            self._state = result.state
            self._moves.append(Move(agent, pc, result.blocked < 0))
            self._faults += result.faults
            self._waits[agent] = result.blocked
            self._signal(result.signalled)
            following = self._state.pcs[agent]
            if result.blocked >= 0 or following >= len(code) or code[following][0] not in _PRIVATE:
                return

    def _land(self, flight: Flight) -> None:
        self._left -= 1
        result = land(self._program, self._state, flight, self._piece(flight))
        self._state = result.state
        self._faults += result.faults
        self._signal(result.signalled)

    def _piece(self, flight: Flight) -> int:
        """How many bytes land now, -1 for all. Often just those with which tx touches 0."""
        if not self._pieces or flight.engine != TMA or flight.remaining <= _PIECE:
            return -1
        word = self._state.barriers[flight.barrier]
        if word.pending == 0 and 0 < word.tx < flight.remaining and self._random.random() < 0.5:
            return word.tx
        return _PIECE * (1 + int(self._random.random() * (flight.remaining // _PIECE)))

    def _signal(self, channel: int) -> None:
        if channel >= 0:
            self._waits = [-1 if waits == channel else waits for waits in self._waits]
