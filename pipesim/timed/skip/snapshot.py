"""A snapshot of a simulation: all that decides what comes next, relative to the cycle and the place that is reached.

Two snapshots with the same future have equal ``fixed`` parts, and ``counts`` that differ by a number of each that
depends on nothing but which two they are: operations carried out, phases completed, items in memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from operator import sub
from typing import NamedTuple

from simpy.events import NORMAL

from pipesim.model.groups import NAMED_BARRIER
from pipesim.model.live.live_run import LiveRun
from pipesim.model.ops import Engine, Operation
from pipesim.model.state import Flight, new
from pipesim.timed.waits import Due

_ENGINES = len(Engine)


class PendingEvent(NamedTuple):
    """What is due: a move of an agent (``flight`` 0), or the landing of the flight of this sequence number."""

    due: Due
    agent: int
    flight: int


@dataclass(frozen=True)
class RunClocks:
    """The times that a simulation remembers, in cycles, and what it has counted so far.

    ``entered``: when each agent began the wait in which it is blocked, else None. ``visible``: when what was last
    completed on each channel could be seen; ``landed``: whether by a landing. ``free``: when each engine is.
    ``waiters``: the agents blocked on each channel. ``rest``: what must not change at all.
    """

    now: int
    entered: tuple[int | None, ...]
    visible: tuple[int, ...]
    landed: tuple[bool, ...]
    free: tuple[int, ...]
    waiters: tuple[tuple[int, ...], ...]
    held: tuple[int, ...]
    rest: tuple[object, ...]
    steps: int
    stamps: int
    landings: int


@dataclass(frozen=True)
class RunSnapshot:
    """What :func:`snapshot` makes of a simulation between two of its events."""

    clocks: RunClocks
    fixed: tuple[object, ...]
    counts: tuple[int, ...]
    pcs: tuple[int, ...]

    def repeats(self, earlier: RunSnapshot) -> bool:
        """True if what follows now is what followed then, as long as the code of every agent continues as it did."""
        if self.fixed != earlier.fixed:
            return False
        now, then = self.clocks, earlier.clocks
        return all(
            a == b and (a is None or self._never_signalled(agent, earlier))
            if a is None or b is None or a == b
            else a - now.now == b - then.now
            for agent, (a, b) in enumerate(zip(now.entered, then.entered, strict=True))
        )

    def since(self, earlier: RunSnapshot) -> tuple[int, ...]:
        """By how much every count has grown, and the clock."""
        return (self.clocks.now - earlier.clocks.now, *map(sub, self.counts, earlier.counts))

    def _never_signalled(self, agent: int, earlier: RunSnapshot) -> bool:
        """True if an agent that has been blocked all the time was never asked to look again."""
        channel = next(c for c, waiting in enumerate(self.clocks.waiters) if agent in waiting)
        return self.clocks.visible[channel] == earlier.clocks.visible[channel]


def snapshot(
    live: LiveRun, code: Sequence[Sequence[Operation]], clocks: RunClocks, pending: Sequence[PendingEvent]
) -> RunSnapshot:
    """The snapshot of a run. ``pending``: in the order in which they are due."""
    now, pcs, flights = clocks.now, live.pcs, live.flights
    fixed = (
        tuple(
            [
                (due.at - now, due.priority > NORMAL, agent, flight and flight - live.issued)
                for due, agent, flight in pending
            ]
        ),
        tuple(
            [(max(seen - now, 0), seen > now and by) for seen, by in zip(clocks.visible, clocks.landed, strict=True)]
        ),
        tuple([max(free - now, 0) for free in clocks.free]),
        clocks.waiters,
        tuple([sequence - live.issued for sequence in clocks.held]),
        clocks.rest,
        tuple(map(tuple, live.registers)),
        tuple([held and held - _generation(live, code, agent) for agent, held in enumerate(live.holds)]),
        tuple([(b.expected, b.pending, b.tx, b.done & 1, b.life) for b in live.barriers]),
        tuple([each[:2] for each in live.named]),
        (live.cluster, tuple(live.cluster_held)),
        tuple([_relative(live, flight) for flight in flights]),
        tuple([min(item, 0) for item in live.cells]),
    )
    counts = (
        *pcs, live.issued, *live.commits,
        *[b.done for b in live.barriers], *[each[2] for each in live.named],
        *[flight.item for flight in flights], *live.cells,
    )  # fmt: skip
    return RunSnapshot(clocks, fixed, counts, tuple(pcs))


def _generation(live: LiveRun, code: Sequence[Sequence[Operation]], agent: int) -> int:
    return live.named[code[agent][live.pcs[agent]][NAMED_BARRIER]][2]


def _relative(live: LiveRun, flight: Flight) -> tuple[object, ...]:
    """A flight, its numbers relative to those that its agent and the run have reached."""
    agent, pc, bar, remaining, arrivals, engine, group, first, end, writes, item, after, sequence = flight
    return (
        agent, pc - live.pcs[agent], bar, remaining, arrivals, engine,
        group - live.commits[agent * _ENGINES + engine] if engine >= 0 <= group else group,
        first, end, writes, min(item, 0), after and after - live.issued, sequence and sequence - live.issued,
    )  # fmt: skip


def advance(live: LiveRun, code: Sequence[Sequence[Operation]], grown: Sequence[int], times: int) -> dict[int, int]:
    """Bring a run to where it is after ``times`` more of a repetition in which its counts grow so (``since``, less the
    clock). Old sequence number of each flight → the new one.
    """
    by = iter([times * each for each in grown])
    agents, bars = len(live.pcs), len(live.barriers)
    before = list(live.pcs), live.issued, list(live.commits)
    generations = [_generation(live, code, agent) if held else 0 for agent, held in enumerate(live.holds)]
    meetings = [code[agent][live.pcs[agent]] if held else () for agent, held in enumerate(live.holds)]
    for agent in range(agents):
        live.pcs[agent] += next(by)
    live.issued += next(by)
    for slot in range(len(live.commits)):
        live.commits[slot] += next(by)
    for bar in range(bars):
        live.barriers[bar] = live.barriers[bar]._replace(done=live.barriers[bar].done + next(by))
    for bar, (arrived, expected, generation) in enumerate(live.named):
        live.named[bar] = (arrived, expected, generation + next(by))
    for agent, op in enumerate(meetings):
        if op:
            live.holds[agent] += live.named[op[NAMED_BARRIER]][2] - generations[agent]
    renumbered = {}
    for place, flight in enumerate(live.flights):
        live.flights[place] = moved = _advance_flight(live, flight, before, next(by))
        renumbered[flight.sequence] = moved.sequence
        if live.opened[flight.agent] is flight:
            live.opened[flight.agent] = moved
    for cell in range(len(live.cells)):
        live.cells[cell] += next(by)
    return renumbered


def _advance_flight(live: LiveRun, flight: Flight, before: tuple[list[int], int, list[int]], items: int) -> Flight:
    """A flight after the repetitions; ``before``: the places, the flights issued, and the commits at their begin."""
    agent, pc, bar, remaining, arrivals, engine, group, first, end, writes, item, after, sequence = flight
    pcs, issued, commits = before
    if engine >= 0 <= group:
        slot = agent * _ENGINES + engine
        group += live.commits[slot] - commits[slot]
    more = live.issued - issued
    pc += live.pcs[agent] - pcs[agent]
    return new(
        Flight,
        (
            agent, pc, bar, remaining, arrivals, engine, group, first, end, writes, item + items,
            after and after + more, sequence and sequence + more,
        ),
    )  # fmt: skip
