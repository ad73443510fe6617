"""How often a loop runs that the emulation passes over, since nothing that other warps see depends on it.

Known is what compilers write for a loop with a fixed number of trips: a counter that begins with a constant, grows by
one inside and is compared with another. Of any other loop one trip is counted.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import NamedTuple

from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.instruction import CodeLabel, Immediate, Instruction, Operand, Register
from pipesim.ptx.text.module import Function

MOST_TRIPS = 4096  #: that are counted
_COMPARED: dict[str, Callable[[int, int], bool]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip


class PassedLoop(NamedTuple):
    """A loop that was gone through once: where its first instruction is, and how many trips it has."""

    begin: int
    trips: int


class LoopTrips:
    """The loops of one body that end with a branch which decides nothing."""

    def __init__(self, function: Function, uses: Uses) -> None:
        self._function = function
        self._writers: dict[str, list[int]] = {}
        for each in function.body:
            for name in uses.writes[each.position]:
                self._writers.setdefault(name, []).append(each.position)

    def ending_at(self, branch: Instruction) -> PassedLoop | None:
        """The loop whose last instruction this is; None if it is no branch back."""
        if branch.opcode != "bra" or branch.guard is None or not isinstance(branch.operands[0], CodeLabel):
            return None
        begin = self._function.labels[branch.operands[0].name]
        return PassedLoop(begin, self._trips(begin, branch)) if begin <= branch.position else None

    def _trips(self, begin: int, branch: Instruction) -> int:
        assert branch.guard is not None
        test = self._only(branch.guard.register, begin, branch.position)
        if test is None or test.opcode != "setp" or len(test.operands) != 3:
            return 1
        compared = next((_COMPARED[name] for name in test.modifiers if name in _COMPARED), None)
        counters = [each for each in test.operands[1:] if self._step(each, begin, branch.position)]
        if compared is None or len(counters) != 1:
            return 1
        first, second = (self._begins_with(each, begin, branch.position) for each in test.operands[1:])
        if first is None or second is None:
            return 1
        step, added = self._step(counters[0], begin, branch.position) or (0, 0)
        counts_first = counters[0] is test.operands[1]
        for trip in range(1, MOST_TRIPS):
            ahead = step * (trip if added < test.position else trip - 1)
            holds = compared(first + ahead, second) if counts_first else compared(first, second + ahead)
            if holds is branch.guard.negated:
                return trip
        return MOST_TRIPS

    def _only(self, name: str, begin: int, end: int) -> Instruction | None:
        """The one instruction of the loop that writes a register."""
        inside = [position for position in self._writers.get(name, ()) if begin <= position <= end]
        return self._function.body[inside[0]] if len(inside) == 1 else None

    def _step(self, operand: Operand, begin: int, end: int) -> tuple[int, int] | None:
        """By how much the loop changes a counter, and where; None for what is no counter."""
        if not isinstance(operand, Register):
            return None
        each = self._only(operand.name, begin, end)
        if each is None or each.opcode not in ("add", "sub") or each.guard is not None or each.operands[1] != operand:
            return None
        by = each.operands[2]
        if not isinstance(by, Immediate):
            return None
        return (_signed(by.value) if each.opcode == "add" else -_signed(by.value)), each.position

    def _begins_with(self, operand: Operand, begin: int, end: int) -> int | None:
        """The constant that an operand has when the loop begins."""
        if isinstance(operand, Immediate):
            return _signed(operand.value)
        if not isinstance(operand, Register):
            return None
        before = [position for position in self._writers.get(operand.name, ()) if not begin <= position <= end]
        if len(before) != 1:
            return None
        each = self._function.body[before[0]]
        constant = each.operands[1] if each.opcode == "mov" and each.guard is None else None
        return _signed(constant.value) if isinstance(constant, Immediate) else None


def _signed(value: int) -> int:
    """A constant as a number of 32 or 64 bits with a sign: compilers write -1 as 4294967295 as well."""
    for width in (32, 64):
        if 1 << (width - 1) <= value < 1 << width:
            return value - (1 << width)
    return value
