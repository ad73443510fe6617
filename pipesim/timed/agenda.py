"""What happens next: SimPy's queue, in whole cycles. Things that happen at one cycle keep the order of scheduling, but
those that use an engine come last, in the order of their agents.
"""

from __future__ import annotations

from collections.abc import Callable
from heapq import heappop, heappush
from typing import Any

import simpy
from simpy.events import NORMAL, Event

from pipesim.model.machine import Flight

LAST = 1 << 60  #: from this number on an event comes after all others of its cycle


class HappensAt(Event):
    """Something that happens at a known cycle. The event of an agent is used again: it has one move ahead at most."""

    def __init__(self, agenda: Agenda, happens: Callable[[Any], None]) -> None:
        super().__init__(agenda)
        self._ok = True
        self._value = None
        self.at = self.number = 0
        self.happens: list[Callable[[Any], None]] = [happens]


class LandsAt(HappensAt):
    """The end of a flight."""

    flight: Flight


class Agenda(simpy.Environment):
    """The queue. ``happened``: how many things have happened or are in it. ``stopped``: whatever is due does nothing.

    Who looks (``peek``) and sees that nothing else is due before, need not queue: it goes on at once, and counts
    itself.
    """

    def __init__(self) -> None:
        super().__init__()
        self.happened = 0
        self.stopped = False

    def put(self, due: HappensAt, at: int) -> None:
        """Put something into the queue that is not in it. SimPy's ``schedule``, with the time instead of a delay."""
        due.at = at
        due.number = number = self.happened
        due.callbacks = due.happens
        heappush(self._queue, (at, NORMAL, number, due))
        self.happened = number + 1

    def put_last(self, due: HappensAt, at: int, agent: int) -> None:
        """Put the move of an agent behind everything else of its cycle; of such moves the lower agent's is first."""
        due.at = at
        due.number = number = LAST + agent
        due.callbacks = due.happens
        heappush(self._queue, (at, NORMAL, number, due))

    def drain(self) -> None:
        """Until nothing is due: SimPy's ``run``, for events of one callback that do not fail."""
        queue = self._queue
        while queue:
            self._now, _, _, due = heappop(queue)
            (happens,), due.callbacks = due.callbacks, None  # type: ignore[assignment]  # as SimPy's step does
            happens(due)

    def restart(self, now: int) -> None:
        """Go on from another time, with nothing in the queue."""
        self._queue.clear()
        self._now = now
