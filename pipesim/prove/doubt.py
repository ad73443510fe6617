"""Why one run may not stand for every schedule, as data."""

from __future__ import annotations

from enum import Enum
from typing import NamedTuple


class Why(Enum):
    """The reason. The value is a phrase for a report."""

    UNSUPPORTED = "an operation that only the search follows"
    UNPUBLISHED = "an operation on a barrier that may come before its init"
    EARLY_PART = "an arrival, or bytes, that may be counted in an earlier phase"
    EARLY_PASS = "a wait that may pass a lap early"  # noqa: S105  # no password
    LAP = "a phase that may be over before a wait has seen the one before it"
    LATE_RAISE = "an expectation that may come after the phase is complete without it"
    BYTES = "more bytes in a phase than it expects"
    ARRIVALS = "more arrivals in a phase than a barrier can count"
    STALE_TRY = "the answer of a try, used for another barrier, parity or phase"
    EXIT = "an operation on a barrier or the memory of another CTA, which may have ended"
    RACE = "two accesses, one of them a write, of which nothing says which comes first"


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
