"""What has happened on the barriers of a program so far, as values of its formula and as knowledge."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipesim.timed.recurrence.derivation.knowledge import KnowledgeClock
from pipesim.timed.recurrence.derivation.ordered_memory import OrderedTouch


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
    """A phase that is complete, and what a wait for it learns; ``complete`` and ``value``: when it is, and is seen."""

    complete: int
    value: int
    landed: bool
    knew: KnowledgeClock


@dataclass
class BarrierHistory:
    """An mbarrier: the open phase and those complete. ``waiters``: by phase who asked for it, where, and until when."""

    init: tuple[int, int] = (-1, 0)  #: (agent, least value of its component)
    parts: list[PhaseContribution] = field(default_factory=list)
    phases: list[SeenPhase] = field(default_factory=list)
    waiters: dict[int, list[tuple[int, int, int]]] = field(default_factory=dict)
    failed: list[int] = field(default_factory=list)  #: when tries found the open phase not complete
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
