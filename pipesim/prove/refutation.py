"""One way in which a program fails, with a schedule that shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from pipesim.model.finding import Deadlock, Fault, FaultKind
from pipesim.model.moves import Move
from pipesim.prove.doubt import Why

Schedule = tuple[Move, ...]


class End(Enum):
    """How a schedule ends badly."""

    DEADLOCK = "agents wait indefinitely"
    FAULT = "a rule is broken"


@dataclass(frozen=True)
class Refutation:
    """The end, the moves that lead there, and the fault or the deadlock; ``why``: the doubt that led to it, if any."""

    end: End
    schedule: Schedule
    fault: Fault | None = None
    deadlock: Deadlock | None = None
    why: Why | None = field(default=None, compare=False)

    @property
    def kind(self) -> FaultKind | End:
        """What is wrong, in one value."""
        return self.fault.kind if self.fault is not None else self.end
