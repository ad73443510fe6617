"""Accesses of one run to each cell of memory, and how the end of a transfer comes to be known."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import NamedTuple

from pipesim.model.ops import IN_ORDER, Engine
from pipesim.prove.clock import Clock

OWN = 0  #: "flight" of an access that an agent makes itself


class Touch(NamedTuple):
    """One access: its operation, whether it writes, and the flight that makes it, numbered from 1 on."""

    agent: int
    pc: int
    writes: bool
    flight: int
    engine: int

    @property
    def generic(self) -> bool:
        """True if it is made through the generic proxy: by a thread, or by ``cp.async`` (PTX ISA, async proxy)."""
        return self.flight == OWN or self.engine == Engine.CP_ASYNC


class Touched:
    """For each cell its last write, and the last read since of each agent and engine."""

    def __init__(self) -> None:
        self.write: dict[int, Touch] = {}
        self.reads: dict[int, dict[tuple[int, int, bool], Touch]] = {}
        self._landed: dict[int, tuple[int, int]] = {}  # by flight: the channel and phases that counted its last byte
        self._commits: dict[tuple[int, int], dict[int, tuple[list[int], list[int]]]] = {}
        self._waits: dict[int, list[tuple[int, int]]] = {}  # by flight: the waits that it had ended before

    def landed(self, flight: int, channel: int, phases: int) -> None:
        """Whoever knows so many phases of this channel knows that the flight is over."""
        self._landed[flight] = (channel, phases)

    def committed(self, agent: int, engine: int, flight: int, channel: int, phases: int) -> None:
        """The same of everything that the agent had issued on the engine before ``flight``, a commit."""
        flights, known = self._commits.setdefault((agent, engine), {}).setdefault(channel, ([], []))
        flights.append(flight)
        known.append(phases)

    def waited(self, flight: int, agent: int, pc: int) -> None:
        """What comes after this operation comes after the flight's end."""
        self._waits.setdefault(flight, []).append((agent, pc))

    def enter(self, touch: Touch, first: int, end: int) -> Iterator[tuple[int, Touch]]:
        """Enter an access to the cells ``first..end``: (cell, access) of those before that it conflicts with."""
        for cell in range(first, end):
            before = self.write.get(cell)
            if touch.writes:
                yield from ((cell, read) for read in self.reads.pop(cell, {}).values())
                self.write[cell] = touch
            if before is not None:
                yield cell, before
            if not touch.writes:
                self.reads.setdefault(cell, {})[touch.agent, touch.engine, touch.flight == OWN] = touch

    def ordered(self, clock: Clock, other: Touch, touch: Touch) -> bool:
        """True if ``other`` is over before ``touch``, before which this clock stands; or one engine keeps them so."""
        if (other.agent, other.engine) == (touch.agent, touch.engine) and touch.engine in IN_ORDER:
            return True
        return self.over(clock, other)

    def over(self, clock: Clock, other: Touch) -> bool:
        """True if ``other`` is over before the moment of this clock."""
        if other.flight == OWN:
            return clock.covers(other.agent, other.pc)
        if any(clock.covers(agent, pc) for agent, pc in self._waits.get(other.flight, ())):
            return True
        return any(clock.known[channel] >= phases for channel, phases in self._ends(other))

    def ends(self, other: Touch) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """How the end of a flight is known: (agent, pc) of waits, and (channel, phases)."""
        return (self._waits.get(other.flight, []), self._ends(other)) if other.flight != OWN else ([], [])

    def _ends(self, other: Touch) -> list[tuple[int, int]]:
        landed = self._landed.get(other.flight)
        if landed is not None:
            return [landed]
        found = []
        for channel, (flights, phases) in self._commits.get((other.agent, other.engine), {}).items():
            later = bisect_right(flights, other.flight)
            if later < len(flights):
                found.append((channel, phases[later]))
        return sorted(found)
