"""What one thread does to one mbarrier, as text: ``init 1; arrive.expect_tx 64; complete_tx 64``.

An operand that is left out is 1. The kernel got the operations as numbers, the model gets them as calls.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

from pipesim.errors import ParameterError


class Code(IntEnum):
    """The operations, with the numbers that the kernel knew."""

    INIT = 0
    EXPECT_TX = 1
    ARRIVE = 2
    ARRIVE_EXPECT_TX = 3
    COMPLETE_TX = 4
    ARRIVE_DROP = 5
    ARRIVE_NO_COMPLETE = 6
    INVAL = 7


NAMES = {
    "init": Code.INIT,
    "expect_tx": Code.EXPECT_TX,
    "arrive": Code.ARRIVE,
    "arrive.expect_tx": Code.ARRIVE_EXPECT_TX,
    "complete_tx": Code.COMPLETE_TX,
    "arrive_drop": Code.ARRIVE_DROP,
    "arrive.noComplete": Code.ARRIVE_NO_COMPLETE,
    "inval": Code.INVAL,
}

OPEN, ZERO, ONE = "-", "0", "1"


@dataclass(frozen=True)
class Sequence:
    """Operations on one barrier, and whether a launch may end in a trap, so that it needs a process of its own.

    ``seen`` is what was typed in by hand before any result was stored: after each operation the parity that
    has completed (0 or 1), "!" where the launch failed, "" if unknown.
    """

    text: str
    may_trap: bool = False
    seen: str = ""


#: Every sequence that is run: those that end well, then those that may not.
SEQUENCES: tuple[Sequence, ...] = (
    Sequence("init 1", seen="1"),
    Sequence("init 1; expect_tx 1024; arrive; complete_tx 1000; complete_tx 24", seen="11110"),
    Sequence("init 1; complete_tx 100; arrive.expect_tx 100", seen="110"),
    Sequence("init 1; complete_tx 100; arrive; expect_tx 100", seen="1110"),
    Sequence("init 1; complete_tx 64; arrive", seen="111"),
    Sequence("init 1; arrive.expect_tx 64; complete_tx 80; expect_tx 16", seen="1110"),
    Sequence("init 1; arrive.expect_tx 64; complete_tx 80", seen="111"),
    Sequence("init 1; arrive.expect_tx 64; expect_tx 64; complete_tx 64; complete_tx 64", seen="11110"),
    Sequence("init 3; arrive_drop; arrive; arrive; arrive; arrive", seen="111001"),
    Sequence("init 2; arrive; arrive.noComplete", seen="110"),
    Sequence("init 3; arrive; expect_tx 64; init 2; arrive; arrive", seen="111110"),
    Sequence("init 1048575", seen="1"),
    Sequence("init 1048575; arrive 1048575", seen="10"),
    Sequence("init 32; arrive 32", seen="10"),
    Sequence("init 1; arrive; arrive; arrive", seen="1010"),
    Sequence("init 1; arrive_drop", seen="10"),
    Sequence("init 1; expect_tx 1048575", seen="11"),
    Sequence("init 1; arrive.expect_tx 64; complete_tx 64; arrive", seen="1101"),
    Sequence("init 2; arrive; inval; init 1; arrive", seen="11-10"),
    Sequence("init 1; complete_tx 1048575", seen="11"),
    Sequence("init 1; arrive 2", may_trap=True, seen="1!"),
    Sequence("init 2; arrive; arrive 2", may_trap=True, seen="11!"),
    Sequence("init 1; expect_tx 1048575; expect_tx 1", may_trap=True),
    Sequence("init 1; arrive_drop; arrive", may_trap=True, seen="10!"),
    Sequence("init 1; arrive.expect_tx 64; arrive", may_trap=True, seen="11!"),
    Sequence("init 1; arrive.expect_tx 64; arrive.expect_tx 64", may_trap=True),
    Sequence("init 2; arrive; arrive.expect_tx 64; arrive", may_trap=True, seen="111!"),
    Sequence("init 2; arrive; arrive.expect_tx 64; arrive_drop", may_trap=True),
    Sequence("init 1; arrive.expect_tx 64; complete_tx 80; arrive", may_trap=True),
    Sequence("init 1; complete_tx 1048575; complete_tx 1", may_trap=True),
    Sequence("init 1; expect_tx 1048575; arrive.expect_tx 1", may_trap=True),
    Sequence("init 3; arrive_drop 4", may_trap=True),
    Sequence("init 1; arrive.noComplete 2", may_trap=True),
    Sequence("init 0", may_trap=True),
    Sequence("init 1048576", may_trap=True),
    Sequence("init 1; arrive 0", may_trap=True),
    Sequence("init 1; inval; arrive", may_trap=True),
    Sequence("arrive", may_trap=True),
)


def parse(text: str) -> tuple[tuple[Code, int], ...]:
    """The operations and operands of a text. Raises ParameterError for a name or a number that is none."""
    found = []
    for part in text.split(";"):
        name, _, operand = part.strip().partition(" ")
        if name not in NAMES or not (operand.isdecimal() or not operand):
            raise ParameterError(f"{part.strip()!r} is not an operation", correction=f"use one of {', '.join(NAMES)}")
        found.append((NAMES[name], int(operand) if operand else 1))
    return tuple(found)


def completed(answers: int) -> str:
    """The parity that has completed, from the two bits that the kernel wrote: "0", "1", "-" (none asked) or "both"."""
    return {0: OPEN, 1: ZERO, 2: ONE}.get(answers & 3, "both")
