"""A run that looks for what repeats, once in each iteration of the agent with most of them, and leaps over it.

A leap changes the state of the program only. The events that are due stay as they are, since what follows is the same
but for its time: the cycles that were left out are added to every time that a run records.
"""

from __future__ import annotations

from collections.abc import Sequence

import simpy

from pipesim.timed.environment import Due, due_at
from pipesim.timed.plan import skeleton
from pipesim.timed.skip.finder import Finder, Leap
from pipesim.timed.skip.snapshot import PendingEvent, RunClocks, RunSnapshot, advance, snapshot
from pipesim.timed.timed_run import TimedRun


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
