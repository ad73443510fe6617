"""Accesses of one run and their order: a pair that conflicts must not be possible the other way round, or at once."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from pipesim.model.ops import IN_ORDER
from pipesim.prove.clock import Clock

OWN = 0  #: "flight" of an access that an agent makes itself


class Access(NamedTuple):
    """One access: its operation, whether it writes, and the flight that makes it."""

    agent: int
    pc: int
    writes: bool
    flight: int
    engine: int


class Accesses:
    """For each cell of memory its last write, and the reads since.

    An agent's own access is over with its operation. A flight's end is known to whoever knows a phase that it, or a
    commit after it, took part in, or comes after a wait of its agent for it: :meth:`told` collects those.
    """

    def __init__(self) -> None:
        self._write: dict[int, Access] = {}
        self._reads: dict[int, list[Access]] = {}
        self._phases: dict[int, list[tuple[int, int]]] = {}  # by flight: (channel, phases) that tell of its end
        self._waits: dict[int, tuple[int, int]] = {}  # by flight: the first wait of its agent that does

    def told(self, flight: int, channel: int, phases: int) -> None:
        """Whoever knows so many phases of this channel knows that the flight is over."""
        self._phases.setdefault(flight, []).append((channel, phases))

    def waited(self, flight: int, agent: int, pc: int) -> None:
        """What comes after this operation comes after the flight's end."""
        self._waits.setdefault(flight, (agent, pc))

    def open(self, clock: Clock, access: Access, first: int, end: int) -> Iterator[Access]:
        """Enter an access of the cells ``first..end`` that begins after ``clock``; what it is not ordered with."""
        found: dict[Access, None] = {}
        for cell in range(first, end):
            before = self._write.get(cell)
            rivals = [*([before] if before else []), *(self._reads.get(cell, ()) if access.writes else ())]
            found.update((other, None) for other in rivals if not self._ordered(clock, other, access))
            if access.writes:
                self._write[cell] = access
                self._reads[cell] = []
            else:
                self._reads.setdefault(cell, []).append(access)
        yield from found

    def _ordered(self, clock: Clock, other: Access, access: Access) -> bool:
        if other.flight == OWN:
            return clock.covers(other.agent, other.pc)
        if (other.agent, other.engine) == (access.agent, access.engine) and access.engine in IN_ORDER:
            return True  # one engine's work for one agent, in the order of issue
        wait = self._waits.get(other.flight)
        if wait is not None and clock.covers(*wait):
            return True
        return any(clock.known[channel] >= phases for channel, phases in self._phases.get(other.flight, ()))
