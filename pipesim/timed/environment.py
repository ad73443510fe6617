"""SimPy's environment in whole cycles, and the events of a simulation that SimPy does not have.

An agent is a SimPy process. It yields timeouts while it is busy, a :class:`PhaseEvent` where it is blocked, and an
:class:`EngineTurn` before it uses an engine that others may use in the same cycle. Events of one cycle happen in the
order in which they were scheduled, engine turns after all others.
"""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, NamedTuple

import simpy
from simpy.events import NORMAL, Event, EventPriority


class Due(NamedTuple):
    """When a scheduled event happens: its cycle, and of those at one cycle the lowest priority and number are first."""

    at: int
    priority: int
    number: int


class TimedEvent(Event):
    """An event that says itself how it is scheduled when it is triggered."""

    delay = 0  #: cycles from when it is triggered until it happens
    priority = NORMAL

    def succeed_in(self, delay: int) -> None:
        """Trigger it so that it happens after ``delay`` cycles."""
        self.delay = delay
        self.succeed()


class PhaseEvent(TimedEvent):
    """The completion of a phase as one waiting agent notices it: who completes the phase triggers it."""

    def __init__(self, env: CycleEnvironment, agent: int) -> None:
        super().__init__(env)
        self.agent = agent


class EngineTurn(TimedEvent):
    """The turn of an agent to use an engine: of the agents that ask in one cycle the lowest is first."""

    def __init__(self, env: CycleEnvironment, agent: int) -> None:
        super().__init__(env)
        self.priority = EventPriority(NORMAL + 1 + agent)
        self.succeed()


class CycleEnvironment(simpy.Environment):
    """The environment of one simulation. It remembers when scheduled events are due, for snapshots of the run."""

    def __init__(self) -> None:
        super().__init__()
        self._number = count(1).__next__

    if TYPE_CHECKING:

        @property
        def now(self) -> int:
            """The present cycle."""

    def schedule(self, event: Event, priority: EventPriority = NORMAL, delay: float = 0) -> None:
        """Schedule an event, a timed one as it says itself."""
        if isinstance(event, TimedEvent):
            priority, delay = event.priority, event.delay
        event.due = self.now + delay, priority, self._number()  # type: ignore[attr-defined]
        simpy.Environment.schedule(self, event, priority, delay)  # hot: quicker than by super()


def due_at(event: Event) -> Due:
    """When an event happens that has been scheduled."""
    return Due(*event.due)  # type: ignore[attr-defined]
