"""One way in which a program fails, with a schedule that shows it."""

from __future__ import annotations

from dataclasses import dataclass, field

from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock, Fault, FaultKind
from pipesim.model.moves import Move
from pipesim.prove.doubt import Why

Schedule = tuple[Move, ...]


@dataclass(frozen=True)
class Refutation:
    """The moves that lead to a DEADLOCK or a FAULT, and which it is; ``why``: the doubt that led to it, if any."""

    end: Ending
    schedule: Schedule
    fault: Fault | None = None
    deadlock: Deadlock | None = None
    why: Why | None = field(default=None, compare=False)

    @property
    def kind(self) -> FaultKind | Ending:
        """What is wrong, in one value."""
        return self.fault.kind if self.fault is not None else self.end
