"""What a proof or a counterexample leaves open, and a schedule that breaks a rule."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock, Fault, FaultKind
from pipesim.model.moves import Move


class Why(Enum):
    """The reason. The value is a phrase for a report."""

    UNSUPPORTED = "an operation that only the search supports"
    UNPUBLISHED = "a barrier operation that may precede the init"
    EARLY_INVAL = "the inval can come before an operation on its barrier, or before a transfer has landed"
    EARLY_PART = "the arrival or its bytes can be counted in an earlier phase"
    EARLY_PASS = "the wait can pass one lap early"  # noqa: S105  # no password
    LAP = "the next phase can complete before this wait looks, so the wait misses one (parity ABA)"
    LATE_RAISE = "the expect_tx can come after the phase has completed without it"
    BYTES = "more bytes can land in a phase than it expects"
    ARRIVALS = "a phase can receive more arrivals than a barrier can count"
    STALE_TRY = "the result of a try_wait is used for another barrier, parity or phase"
    EXIT = "an operation on a barrier or the memory of another CTA, which may have exited"
    REGISTERS = "registers that are given back after a request for more, or more than the CTA was launched with"
    RACE = "two unordered accesses, at least one of them a write"


class Doubt(NamedTuple):
    """One reason: the operation it is about, the other one if there are two, and the channel.

    ``past``: how many operations of each agent must have been carried out for what is doubted to happen, and no more.
    """

    why: Why
    agent: int
    pc: int
    past: tuple[int, ...] = ()
    other_agent: int = -1
    other_pc: int = -1
    where: int = -1


Schedule = tuple[Move, ...]


@dataclass(frozen=True)
class Refutation:
    """The moves that lead to a DEADLOCK or a FAULT, and which it is; ``why``: the doubt that led to it, if any.

    ``usual``: the one run in which every operation is made as soon as it can be ends so as well.
    """

    end: Ending
    schedule: Schedule
    fault: Fault | None = None
    deadlock: Deadlock | None = None
    why: Why | None = field(default=None, compare=False)
    usual: bool = field(default=False, compare=False)

    @property
    def kind(self) -> FaultKind | Ending:
        """What is wrong, in one value."""
        return self.fault.kind if self.fault is not None else self.end
