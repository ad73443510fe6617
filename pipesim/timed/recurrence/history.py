"""What has happened on the barriers of a program so far, as values of its formula and as knowledge."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipesim.timed.recurrence.knowledge import KnowledgeClock
from pipesim.timed.recurrence.ordered_memory import OrderedTouch


@dataclass
class PhaseContribution:
    """A contribution to a phase: when (a value), by what operation, and what its agent knew."""

    value: int
    price: int  #: of an arrival, -1 of a landing
    agent: int
    pc: int
    knew: KnowledgeClock


@dataclass
class SeenPhase:
    """A phase that is complete: when it is seen (a value), whether a landing completed it, what a wait learns."""

    value: int
    landed: bool
    knew: KnowledgeClock
    waiters: list[tuple[int, int]] = field(default_factory=list)  #: (agent, pc)


@dataclass
class BarrierHistory:
    """An mbarrier: the open phase and those complete. ``first``: who waited before any phase was complete."""

    init: tuple[int, int] = (-1, 0)  #: (agent, least value of its component)
    parts: list[PhaseContribution] = field(default_factory=list)
    phases: list[SeenPhase] = field(default_factory=list)
    first: list[tuple[int, int]] = field(default_factory=list)
    expecting: set[int] = field(default_factory=set)  #: agents that have raised tx and are yet to arrive


@dataclass
class MeetingHistory:
    """A named barrier or the cluster barrier: the generation that is gathering, and those that have met."""

    gathered: list[tuple[int, KnowledgeClock]] = field(default_factory=list)
    met: list[tuple[int, KnowledgeClock]] = field(default_factory=list)


@dataclass
class UnderWay:
    """A transfer or arrival that has been issued."""

    value: int  #: of its landing
    pc: int
    knew: KnowledgeClock
    touch: OrderedTouch | None
