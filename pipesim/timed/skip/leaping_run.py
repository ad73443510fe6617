"""A run that looks for what repeats, once in each iteration of the agent with most of them, and leaps over it.

A leap changes the state of the program only. The events that are due stay as they are, since what follows is the same
but for its time: the cycles that were left out are added to every time that a run records.

The snapshots are compared with one that is replaced after twice as many iterations each time (Brent, 1980), so that few
are stored and every period is found in time. A repetition counts when it has been seen twice in a row and all counts
have grown by the same numbers: then what follows is decided by the code alone, which is also compared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import simpy
from numpy.typing import NDArray

from pipesim.model.groups import COPY_MASK, TAKES_REGISTERS
from pipesim.model.ops import AT, Op
from pipesim.model.program import Program
from pipesim.timed.plan import skeleton
from pipesim.timed.skip.snapshot import PendingEvent, RunClocks, RunSnapshot, advance, snapshot
from pipesim.timed.timed_run import TimedRun
from pipesim.timed.waits import Due, due_at

FEWEST_TRIPS = 100  #: of the agent that is followed: below, little is gained
LEAST_GAIN = 200  #: operations left out by a leap that is worth it


@dataclass(frozen=True)
class Leap:
    """What can be left out: ``times`` more of what happened between two snapshots, of which the later is now."""

    before: RunSnapshot
    now: RunSnapshot
    times: int


class Finder:
    """Follows one run. ``marks``: the places in the code of ``leader`` at whose reaching it wants to look."""

    def __init__(self, program: Program) -> None:
        self._code = RepeatedCode(program)
        trips = skeleton(program).trips
        self.leader = max(range(len(trips)), key=lambda agent: len(trips[agent]), default=-1)
        self.marks: Sequence[int] = trips[self.leader] if trips and len(trips[self.leader]) >= FEWEST_TRIPS else ()
        self._fruitless = self._next = 0  # snapshots taken that repeat nothing, and when the next may be
        self._anchor: tuple[tuple[int, ...], RunSnapshot] | None = None
        self._second: RunSnapshot | None = None  # repeats the anchor
        self._trip = self._anchored = self._confirmed_at = 0
        self._room = 1  # iterations after which the anchor is replaced

    def look(self, glance: tuple[int, ...], take: Callable[[], RunSnapshot]) -> Leap | None:
        """What can be left out now, if anything. Called once for each mark.

        ``glance``: what is equal wherever snapshots repeat each other and costs less than to ``take`` one.
        """
        self._trip += 1
        if self._anchor is None or (self._second is None and self._trip - self._anchored > self._room):
            self._anchor, self._anchored = (glance, take()), self._trip
            self._room *= 2
        elif self._second is not None:
            if self._trip == self._confirmed_at:
                return self._confirm(self._anchor[1], self._second, take())
        elif glance == self._anchor[0] and self._trip >= self._next:
            now = take()
            if now.repeats(self._anchor[1]) and self._gain(self._anchor[1], now) >= LEAST_GAIN:
                self._second, self._confirmed_at = now, 2 * self._trip - self._anchored
            else:  # the more often in vain, the more seldom
                self._fruitless += 1
                self._next = self._trip + self._fruitless // 16
        return None

    def _confirm(self, first: RunSnapshot, second: RunSnapshot, third: RunSnapshot) -> Leap | None:
        self._second = None
        if not third.repeats(second) or third.since(second) != second.since(first):
            return None
        self._anchor = None  # the next repetition is another one
        self._fruitless = 0
        return Leap(second, third, self._more(first, second) - 1)

    def _gain(self, first: RunSnapshot, second: RunSnapshot) -> int:
        """Operations that a leap would leave out."""
        return (self._more(first, second) - 1) * (second.clocks.steps - first.clocks.steps)

    def _more(self, first: RunSnapshot, second: RunSnapshot) -> int:
        """How many more times what all agents did between two snapshots follows in their code."""
        pairs = list(enumerate(zip(first.pcs, second.pcs, strict=True)))
        if any(self._code.takes_registers(agent, start, end) for agent, (start, end) in pairs):
            return 0
        return min(self._code.more(agent, start, end) for agent, (start, end) in pairs)


UNLIMITED = 1 << 62

_Numbers = NDArray[np.int64]


class RepeatedCode:
    """The code of a program's agents, as far as it has been asked for."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._agents: dict[int, tuple[_Numbers, _Numbers]] = {}

    def more(self, agent: int, start: int, end: int) -> int:
        """How many more times the operations ``start..end`` follow one another from ``end`` on."""
        length = end - start
        if not length:
            return UNLIMITED
        kinds, items = self._columns(agent)
        kinds, items = kinds[start:], items[start:]
        if len(kinds) < 2 * length:
            return 0
        same = _count_leading(kinds[length:] == kinds[:-length])
        steps = items[length:] - items[:-length]
        even = _count_leading(steps[length:] == steps[:-length]) + length
        negative = _count_leading((steps == 0) | ((items[length:] >= 0) & (items[:-length] >= 0)))
        return int(min(same, even, negative)) // length

    def _columns(self, agent: int) -> tuple[_Numbers, _Numbers]:
        """For each operation which it is, but for its item, and the item."""
        found = self._agents.get(agent)
        if found is None:
            code, at = self._program.code[agent], AT["item"]
            kinds = np.array(skeleton(self._program).places[agent], dtype=np.int64)
            items = np.array([op[at[op[0]]] if op[0] in at else 0 for op in code], dtype=np.int64)
            if self._program.ctas > 1:
                masks = np.array([op[COPY_MASK] if op[0] == Op.TMA_LOAD else 0 for op in code], dtype=np.int64)
                kinds = kinds << 16 | masks
            found = self._agents[agent] = kinds, items
        return found

    def takes_registers(self, agent: int, start: int, end: int) -> bool:
        """True if one of these operations does: who may have some depends on where agents are in their code."""
        return any(op[0] in TAKES_REGISTERS for op in self._program.code[agent][start:end])


def _count_leading(true: NDArray[np.bool_]) -> int:
    """How many are true before the first that is not."""
    return int(np.argmin(true)) if not true.all() else len(true)


class LeapingRun(TimedRun):
    """The same events in less time."""

    def _run(self) -> None:
        self._finder = Finder(self._program)
        self._marks = iter(self._finder.marks)
        self._places = skeleton(self._program).places
        self._mark = next(self._marks, -1)
        if self._mark >= 0:
            self._subscribe()
        super()._run()

    def _subscribe(self) -> None:
        """Look at the run again when the leader has made its next move."""
        event = self._agents[self._finder.leader].target
        if event is not None:
            event.callbacks.append(self._look)

    def _look(self, _: simpy.Event) -> None:
        """A callback of the event that lets the leader continue: it is called when the leader has made its move."""
        reached = self._live.pcs[self._finder.leader]
        if reached > self._mark:
            leap = self._finder.look(self._glance(), self._snapshot)
            if leap is not None:
                self._leap(leap)
                reached = self._live.pcs[self._finder.leader]
            self._mark = next((mark for mark in self._marks if mark >= reached), -1)  # others were left out or passed
        if self._mark >= 0:
            self._subscribe()

    def _moves(self) -> list[Due | None]:
        """When each agent moves next; None for one that is blocked or has ended."""
        return [
            due_at(agent.target) if agent.target is not None and agent.target.triggered else None
            for agent in self._agents
        ]

    def _glance(self) -> tuple[int, ...]:
        """When each agent moves next, in cycles from now, and what it does then."""
        now, pcs = self.env.now, self._live.pcs
        when = [move.at - now if move is not None else -1 for move in self._moves()]
        what = [places[pc] if pc < len(places) else -1 for places, pc in zip(self._places, pcs, strict=True)]
        return (*when, *what)

    def _snapshot(self) -> RunSnapshot:
        waits, engines, now = self._waits, self._engines, self.env.now
        clocks = RunClocks(
            now=now,
            entered=tuple(waits.entered),
            visible=tuple(waits.visible),
            landed=tuple(waits.landed),
            free=engines.free(),
            waiters=tuple([tuple([wait.agent for wait in waiting]) for waiting in waits.waiters]),
            held=tuple(flight.sequence for flight in self._held),
            rest=(
                *(engine.cold for engine in engines.copy),
                *self._alive,
                *self._left,
                *self._ends,
                len(self._faults),
                len(self._late),
                *engines.slots.snapshot(now),
                *engines.memory.snapshot(now),
                *((agent, since - now, at - now) for agent, (since, at) in sorted(waits.tries.items())),
                *engines.cores.snapshot(now),
                *sorted(engines.issuing),
                *sorted(waits.passing),
                *((number - self._live.issued, *self._product(number)) for number in sorted(self._products)),
            ),
            steps=self._steps,
            stamps=len(self._buffer),
            landings=len(self.landings or ()),
        )
        return snapshot(self._live, self._code, clocks, self._pending_events())

    def _product(self, sequence: int) -> tuple[int, int]:
        """What a core has still to do until a flight lands, and how long after that."""
        target, latency = self._products[sequence]
        agent = next(flight.agent for flight in self._live.flights if flight.sequence == sequence)
        return self._engines.cores.given[agent] - target, latency

    def _pending_events(self) -> list[PendingEvent]:
        """The moves of agents and the landings that are due, in their order."""
        moves = [PendingEvent(move, agent, 0) for agent, move in enumerate(self._moves()) if move is not None]
        landings = [PendingEvent(due_at(landing), -1, sequence) for sequence, landing in self._in_air.items()]
        return sorted(moves + landings)

    def _leap(self, leap: Leap) -> None:
        """Continue from where the run is after the repetitions."""
        before, now = leap.before.clocks, leap.now.clocks
        cycles, *grown = leap.now.since(leap.before)
        times = min(leap.times, (self._budget - self._steps - 1) // max(1, now.steps - before.steps))
        if times < 1:
            return
        self._buffer.repeat(now.stamps - before.stamps, times, cycles)
        if self.landings is not None:
            self.landings += _landed_again(self.landings[before.landings :], times, cycles, grown)
        numbers = advance(self._live, self._code, grown, times)
        self._steps += times * (now.steps - before.steps)
        self._skipped += times * (now.steps - before.steps)
        self._leapt += times * cycles
        self._launched = self._live.issued
        flights = {flight.sequence: flight for flight in self._live.flights}
        self._products = {numbers[sequence]: product for sequence, product in self._products.items()}
        self._held = [flights[numbers[flight.sequence]] for flight in self._held]
        self._waiting = {
            agent: [flights[numbers[flight.sequence]] for flight in waiting] for agent, waiting in self._waiting.items()
        }
        self._in_air = {numbers[sequence]: landing for sequence, landing in self._in_air.items()}
        for sequence, landing in self._in_air.items():
            landing.flight = flights[sequence]
        for agent, (then, since) in enumerate(zip(before.entered, now.entered, strict=True)):
            if since is not None and since == then:  # blocked all the time, also in what is left out
                self._waits.entered[agent] = since - times * cycles


def _landed_again(
    landings: Sequence[tuple[int, int, int, int]], times: int, cycles: int, grown: Sequence[int]
) -> list[tuple[int, int, int, int]]:
    """The landings of each repetition; ``grown``: by how many operations each agent advances, and more."""
    return [
        (agent, pc + n * grown[agent], barrier, at + n * cycles)
        for n in range(1, times + 1)
        for agent, pc, barrier, at in landings
    ]
