"""A run that looks for what repeats, once in each iteration of the agent with most of them, and leaves it out."""

from __future__ import annotations

from collections.abc import Sequence

from simpy.core import EmptySchedule

from pipesim.timed.agenda import LAST
from pipesim.timed.outline import outline
from pipesim.timed.skip.finder import Finder, Leap
from pipesim.timed.skip.moment import Due, RunClocks, RunMoment, advance, moment
from pipesim.timed.timed_run import TimedRun


class LeapingRun(TimedRun):
    """The same events in less time."""

    def _drain(self) -> None:
        finder = Finder(self._program)
        self._places = outline(self._program).places
        pcs = self._live.pcs
        for mark in finder.marks:
            if pcs[finder.leader] > mark:  # left out, or passed in one move
                continue
            self._at_once[finder.leader] = mark + 1  # it comes back here then
            try:
                while pcs[finder.leader] <= mark:
                    self._agenda.step()
            except EmptySchedule:
                return
            leap = finder.look(self._glance(), self._moment)
            if leap is not None:
                self._leap(leap)
        if finder.marks:
            self._at_once[finder.leader] = len(self._code[finder.leader])
        super()._drain()

    def _glance(self) -> tuple[int, ...]:
        """When each agent moves next, in cycles from now, and what it does then."""
        when = [turn.at - self._now if turn.callbacks is not None else -1 for turn in self._turns]
        what = [places[pc] if pc < len(places) else -1 for places, pc in zip(self._places, self._live.pcs, strict=True)]
        return (*when, *what)

    def _moment(self) -> RunMoment:
        waits, engines = self._waits, self._engines
        clocks = RunClocks(
            now=self._now,
            entered=tuple(waits.entered),
            visible=tuple(waits.visible),
            landed=tuple(waits.landed),
            free=engines.free(),
            waiters=tuple(map(tuple, waits.waiters)),
            held=tuple(flight.sequence for flight in self._held),
            rest=(
                *engines.cold,
                *self._alive,
                *self._left,
                *self._ends,
                len(self._faults),
                len(self._late),
                *engines.slots.moment(self._now),
                *engines.memory.moment(self._now),
                *((agent, since - self._now, at - self._now) for agent, (since, at) in sorted(waits.tries.items())),
                *engines.cores.moment(self._now),
                *sorted(engines.issuing),
                *sorted(waits.passing),
                *((number - self._live.issued, *self._product(number)) for number in sorted(self._products)),
            ),
            steps=self._steps,
            queued=self._agenda.happened,
            stamps=len(self._buffer),
            landings=len(self.landings or ()),
        )
        return moment(self._live, self._code, clocks, self._queue())

    def _product(self, sequence: int) -> tuple[int, int]:
        """What a core has still to do until a flight lands, and how long after that."""
        target, latency = self._products[sequence]
        agent = next(flight.agent for flight in self._live.flights if flight.sequence == sequence)
        return self._engines.cores.given[agent] - target, latency

    def _queue(self) -> list[Due]:
        turns = [(turn, agent, 0) for agent, turn in enumerate(self._turns) if turn.callbacks is not None]
        flights = [(due, -1, sequence) for sequence, due in self._in_air.items()]
        return sorted(Due(due.at, due.number, agent, sequence) for due, agent, sequence in turns + flights)

    def _leap(self, leap: Leap) -> None:
        """Go on from where the run is after the repetitions."""
        before, now = leap.before.clocks, leap.now.clocks
        cycles, *grown = leap.now.since(leap.before)
        times = min(leap.times, (self._budget - self._steps - 1) // max(1, now.steps - before.steps))
        if times < 1:
            return
        queue = self._queue()
        later = times * cycles
        self._buffer.repeat(now.stamps - before.stamps, times, cycles)
        if self.landings is not None:
            self.landings += _landed_again(self.landings[before.landings :], times, cycles, grown)
        numbers = advance(self._live, self._code, grown, times)
        self._steps += times * (now.steps - before.steps)
        self._skipped += times * (now.steps - before.steps)
        self._launched = self._live.issued
        flights = {flight.sequence: flight for flight in self._live.flights}
        self._products = {numbers[sequence]: product for sequence, product in self._products.items()}
        self._held = [flights[numbers[flight.sequence]] for flight in self._held]
        waits = self._waits
        still = [a == b for a, b in zip(before.entered, now.entered, strict=True)]
        waits.entered[:] = [at if kept else at + later for at, kept in zip(waits.entered, still, strict=True)]
        waits.visible[:] = [at + later if at > now.now else at for at in waits.visible]
        waits.tries = {agent: (since + later, until + later) for agent, (since, until) in waits.tries.items()}
        self._engines.later(now.now, later)
        self._now += later
        happened = self._agenda.happened + times * (now.queued - before.queued)
        self._agenda.restart(self._now)
        self._in_air.clear()
        for due in queue:
            at = due.at + later
            if due.number >= LAST:
                self._agenda.put_last(self._turns[due.agent], at, due.agent)
            elif due.agent >= 0:
                self._agenda.put(self._turns[due.agent], at)
            else:
                self._takes_off(flights[numbers[due.flight]], at)
        waiting, self._waiting = self._waiting, {}
        for held in (due.flight for dues in waiting.values() for due in dues):
            self._takes_off(flights[numbers[held.sequence]], -1)
        for agent in waits.tries:
            waits.watch(agent)
        self._agenda.happened = happened


def _landed_again(
    landings: Sequence[tuple[int, int, int, int]], times: int, cycles: int, grown: Sequence[int]
) -> list[tuple[int, int, int, int]]:
    """The landings of a repetition, again and again; ``grown``: by how many operations each agent goes on, and more."""
    return [
        (agent, pc + n * grown[agent], barrier, at + n * cycles)
        for n in range(1, times + 1)
        for agent, pc, barrier, at in landings
    ]
