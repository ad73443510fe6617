"""A program as a chip would run it: every agent moves as soon as it can, in plain times, except where it is held.

No simulation of times that are reported: an operation takes a few units, a transfer many, and a delay more than all of
it. Whether a finding shows with some delays is asked here before a chip is.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random

from pipesim.model.finding import Fault
from pipesim.model.machine import finished
from pipesim.model.moves import landing_flights, opens
from pipesim.model.program import Program
from pipesim.prove.counterexample.play import Play

At = tuple[int, int]  #: an agent and the position of its operation
_STEP, _LANDS = (1, 3), (24, 48)  #: of an operation, and of a transfer: drawn between these
_AFTER_TURN = 10 * _LANDS[1]  #: that an agent sleeps once its turn has come
_PIECE = 64  #: bytes that land together
MOST_MOVES = 200_000


@dataclass(frozen=True)
class HeldRun:
    """How a run ended. ``slept``: how long each agent that was held slept."""

    play: Play
    slept: Mapping[At, int]


def run_with_delays(
    program: Program,
    gates: Mapping[At, int],
    sleeps: Mapping[At, int],
    seed: int,
    passes: Callable[[Fault], bool] = lambda _: True,
    turns: Mapping[At, At] | None = None,
    *,
    pieces: bool = False,
) -> HeldRun:
    """Run to the end. ``gates``: until when an agent is held before an operation; ``sleeps``: for how long; ``turns``:
    until which other operation is done.

    ``pieces``: transfers land in pieces of any size. ``passes``: the faults after which it continues; at another one
    it ends, as at one that traps.
    """
    random, play = Random(seed), Play(program, passes=passes)  # noqa: S311
    slept: dict[At, int] = {}
    lands: dict[tuple[object, ...], int] = {}
    ready = [(random.randint(*_STEP), agent) for agent in range(len(program.agents)) if program.code[agent]]
    heapq.heapify(ready)
    blocked: list[int] = []
    now = 0
    while not play.faults and len(play.moves) < MOST_MOVES:
        for flight in play.state.flights:
            lands.setdefault(flight[:-2], now + random.randint(*_LANDS))
        able = [(lands[flight[:-2]], n) for n, (_, flight) in enumerate(landing_flights(program, play.state))]
        due, which = min(able, default=(-1, -1))
        moved = False
        if able and (not ready or due <= ready[0][0]):
            now = max(now, due)
            flight = landing_flights(program, play.state)[which][1]
            most = random.randrange(16, flight.remaining, 16) if pieces and flight.remaining > _PIECE else None
            moved = play.land_one(flight, most)
        elif ready:
            now, agent = heapq.heappop(ready)
            at = agent, play.state.pcs[agent]
            if (at in gates or at in sleeps) and at not in slept:
                until = gates[at] if at in gates else now + sleeps[at]
                slept[at] = max(until - now, 0)
                heapq.heappush(ready, (max(until, now), agent))
                continue
            other, pc = (turns or {}).get(at, (agent, -1))
            if play.state.pcs[other] <= pc:
                blocked.append(agent)
                continue
            if other != agent and at not in slept:
                slept[at] = _AFTER_TURN
                heapq.heappush(ready, (now + _AFTER_TURN, agent))
                continue
            begins = opens(program, play.state, agent)
            moved = play.begin(agent) if begins else play.advance(agent)
            if not moved:
                if not finished(program, play.state, agent):
                    blocked.append(agent)
            elif not finished(program, play.state, agent):
                heapq.heappush(ready, (now + random.randint(*_STEP), agent))
        else:
            break
        if moved:
            for agent in blocked:
                heapq.heappush(ready, (now + 1, agent))
            blocked.clear()
    return HeldRun(play, slept)
