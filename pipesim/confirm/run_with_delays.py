"""A program as a chip would run it: every agent moves as soon as it can, in plain times, except where it is held.

No simulation of times that are reported: an operation takes a few units, a transfer many, and a delay more than all of
it. Whether a finding shows with some delays is asked here before a chip is.
"""

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from random import Random

from pipesim.model.finding import Fault
from pipesim.model.machine import finished
from pipesim.model.moves import landing_flights, opens
from pipesim.model.program import Program
from pipesim.model.state import Flight
from pipesim.prove.counterexample.play import Play

At = tuple[int, int]  #: an agent and the position of its operation
_STEP, _LANDS = (1, 3), (24, 48)  #: of an operation, and of a transfer: drawn between these
_AFTER_TURN = 10 * _LANDS[1]  #: that an agent sleeps once its turn has come
_PIECE = 64  #: bytes that land together
MOST_MOVES = 200_000


@dataclass(eq=False)
class DelayedRun:
    """A run to its end: ``play`` has its moves, and ``slept`` how long each agent that was held slept.

    ``gates``: until when an agent is held before an operation; ``sleeps``: for how long; ``turns``: until which other
    operation is done. ``pieces``: transfers land in pieces of any size. ``passes``: the faults after which it
    continues; at another one it ends, as at one that traps.
    """

    program: Program
    gates: Mapping[At, int]
    sleeps: Mapping[At, int]
    seed: int
    passes: Callable[[Fault], bool] = lambda _: True
    turns: Mapping[At, At] = field(default_factory=dict)
    pieces: bool = False

    def __post_init__(self) -> None:
        self._random = random = Random(self.seed)  # noqa: S311  # a schedule, no secret
        self.play = Play(self.program, passes=self.passes)
        self.slept: dict[At, int] = {}
        self._now = 0
        self._lands: dict[tuple[object, ...], int] = {}
        self._ready = [(random.randint(*_STEP), agent) for agent, code in enumerate(self.program.code) if code]
        heapq.heapify(self._ready)
        self._blocked: list[int] = []
        self._run()

    def _run(self) -> None:
        """Until there is a fault, nothing is due, or it has taken too long."""
        play, ready = self.play, self._ready
        while not play.faults and len(play.moves) < MOST_MOVES:
            for flight in play.state.flights:
                self._lands.setdefault(flight[:-2], self._now + self._random.randint(*_LANDS))
            able = landing_flights(self.program, play.state)
            due, which = min(((self._lands[flight[:-2]], n) for n, (_, flight) in enumerate(able)), default=(-1, -1))
            if which >= 0 and (not ready or due <= ready[0][0]):
                moved = self._land(due, able[which][1])
            elif ready:
                moved = self._step(*heapq.heappop(ready))
            else:
                return
            if moved:
                for agent in self._blocked:
                    self._is_ready(agent, self._now + 1)
                self._blocked.clear()

    def _land(self, due: int, flight: Flight) -> bool:
        """All of a transfer lands, or a piece."""
        self._now = max(self._now, due)
        in_pieces = self.pieces and flight.remaining > _PIECE
        return self.play.land_one(flight, self._random.randrange(16, flight.remaining, 16) if in_pieces else None)

    def _step(self, now: int, agent: int) -> bool:
        """An agent executes its operation, if it neither sleeps nor has to wait for others. Whether it did."""
        self._now = now
        state = self.play.state
        at = agent, state.pcs[agent]
        if (at in self.gates or at in self.sleeps) and at not in self.slept:
            until = self.gates[at] if at in self.gates else now + self.sleeps[at]
            self.slept[at] = max(until - now, 0)
            self._is_ready(agent, max(until, now))
            return False
        other, pc = self.turns.get(at, (agent, -1))
        if state.pcs[other] <= pc:
            self._blocked.append(agent)
            return False
        if other != agent and at not in self.slept:
            self.slept[at] = _AFTER_TURN
            self._is_ready(agent, now + _AFTER_TURN)
            return False
        moved = self.play.begin(agent) if opens(self.program, state, agent) else self.play.advance(agent)
        if not finished(self.program, self.play.state, agent):
            if moved:
                self._is_ready(agent, now + self._random.randint(*_STEP))
            else:
                self._blocked.append(agent)
        return moved

    def _is_ready(self, agent: int, at: int) -> None:
        heapq.heappush(self._ready, (at, agent))
