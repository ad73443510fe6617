"""The operands of an instruction as functions of the registers of lanes, and where its results go.

Each instruction gives a step: what it does to the registers of lanes that run together. The operands of most are in the
same places: the first in bits 24 to 31, the second in 32 to 63 and the third in 64 to 71, or these two the other way
around; bits 9 to 11 say which of them is a register, a number of 32 bits, a constant or a uniform register.
"""

from collections.abc import Callable
from typing import NamedTuple

from pipesim.coredump.sass.lanes import WORD, LaneState, Value, lift
from pipesim.coredump.sass.word import PT, RZ, URZ, Word

Step = Callable[[LaneState, Value], None]  #: of lanes, for those of them for which a condition holds
Get = Callable[[LaneState], Value]
EXTREMES = (0x00F, 0x046, 0x048)  #: VIMNMX3, VIADDMNMX, VIMNMX
_SWAPPED = (2, 3, 7)  #: forms with the third operand in the place of the second


class CodeInputs(NamedTuple):
    """What code reads beside registers: constants by bank, offset and bytes, special registers, memory.

    ``memory`` is for ordinary loads, of what other threads are not expected to write. ``wide``: of sm_100 and later.
    """

    constant: Callable[[int, int, int], int | None]
    special: Callable[[int], Value]
    memory: Callable[[int, int], int | None]
    wide: bool


def predicate(field: int, *, uniform: bool = False) -> Get:
    """A predicate in three bits, inverted by the fourth."""
    number, inverted = field & 7, bool(field & 8)
    if number == PT:
        return lambda _: not inverted
    if uniform:
        return lambda lanes: lift(lambda v: v != inverted, lanes.uniform_predicates[number])
    return lambda lanes: lift(lambda v: v != inverted, lanes.predicates[number])


class SassParts:
    """One instruction: its operands as functions of the lanes' registers, and where its results go."""

    def __init__(self, word: Word, around: CodeInputs, *, uniform: bool) -> None:
        self.word, self.around, self.uniform = word, around, uniform
        self.form = word.opcode >> 9
        at_second, at_third = self._second(), self._register(word.rc, uniform=uniform)
        signs = [bool(word.low >> 63) and self.form not in (2, 4), bool(word.high >> 11 & 1)]
        gets = [at_second, at_third]
        if self.form in _SWAPPED:
            gets, signs = gets[::-1], signs[::-1]
        self.plain = [self._register(word.ra, uniform=uniform), *gets]
        minus = word.high >> 8 & 1 and word.opcode & 0x1FF not in EXTREMES  # of those it says that numbers are signed
        self.negated = [bool(minus), *signs]

    def _register(self, number: int, *, uniform: bool) -> Get:
        if not uniform:
            return lambda lanes: lanes.registers[number]
        return (lambda _: 0) if self._is_zero(number) else lambda lanes: lanes.uniform[number]

    def _is_zero(self, number: int) -> bool:
        return number == (RZ if self.around.wide else URZ)

    def _second(self) -> Get:
        if self.form in (2, 4):
            immediate = self.word.immediate
            return lambda _: immediate
        if self.form in (3, 5):
            value = self.around.constant(self.word.low >> 54 & 0x1F, self.word.low >> 38 & 0xFFFF, 4)
            return lambda _: value
        return self._register(self.word.rb, uniform=self.uniform or self.form in (6, 7))

    def signed(self) -> list[Get]:
        """The operands, with the signs that the instruction gives them."""
        return [_minus(get) if minus else get for get, minus in zip(self.plain, self.negated, strict=True)]

    def upper(self) -> Get:
        """The register after that of the third operand; 0 if it is none."""
        number = self.word.rb if self.form == 7 else self.word.rc
        uniform = self.uniform or self.form == 7
        if self.form in (2, 3) or (self._is_zero(number) if uniform else number == RZ):
            return lambda _: 0
        return self._register(number + 1, uniform=uniform)

    def field(self, at: int) -> int:
        """A number of three bits of the upper word."""
        return self.word.high >> at & 7

    def asked(self, at: int) -> Get:
        """A predicate, with the bit that inverts it, in the upper word."""
        return predicate(self.word.high >> at & 0xF, uniform=self.uniform)

    def put(self, lanes: LaneState, value: Value, condition: Value, beyond: int = 0) -> None:
        """Write the result, or the word after it."""
        number = self.word.rd + beyond
        if number < RZ and not (self.uniform and self._is_zero(self.word.rd)):
            lanes.put(lanes.uniform if self.uniform else lanes.registers, number, value, condition)

    def say(self, lanes: LaneState, number: int, value: Value, condition: Value) -> None:
        """Write a predicate."""
        if number != PT:
            lanes.put(lanes.uniform_predicates if self.uniform else lanes.predicates, number, value, condition)


def _minus(get: Get) -> Get:
    return lambda lanes: lift(lambda value: -value & WORD, get(lanes))


Make = Callable[[SassParts], Step]
