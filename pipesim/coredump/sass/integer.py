"""The instructions that make addresses, parities and conditions: integers, predicates, constants and special registers.

Each gives a step: what it does to the registers of lanes that run together. An instruction that is not known makes its
destination unknown. The operands of most are in the same places: the first in bits 24 to 31, the second in 32 to 63 and
the third in 64 to 71, or these two the other way around; bits 9 to 11 say which of them is a register, a number of 32
bits, a constant or a uniform register.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import NamedTuple

from pipesim.coredump.sass.lanes import LANES, WORD, LaneState, Value, lift, of_lane, together
from pipesim.coredump.sass.word import PT, RZ, URZ, Word

Step = Callable[[LaneState, Value], None]  #: of lanes, for those of them for which a condition holds
Get = Callable[[LaneState], Value]
_LONG = (1 << 64) - 1
CALL_FAR = 0x143
_LDCU, _LDG, _LDL, _STL = 0x1AC, 0x181, 0x183, 0x187
_EXTREMES = (0x00F, 0x046, 0x048)  #: VIMNMX3, VIADDMNMX, VIMNMX
_SWAPPED = (2, 3, 7)  #: forms with the third operand in the place of the second


class CodeInputs(NamedTuple):
    """What code reads beside registers: constants by bank, offset and bytes, special registers, memory.

    ``memory`` is for ordinary loads, of what other threads are not expected to write. ``wide``: of sm_100 and later.
    """

    constant: Callable[[int, int, int], int | None]
    special: Callable[[int], Value]
    memory: Callable[[int, int], int | None]
    wide: bool


def _signed(value: int) -> int:
    return value - (1 << 32) if value >> 31 else value


def predicate(field: int, *, uniform: bool = False) -> Get:
    """A predicate in three bits, inverted by the fourth."""
    number, inverted = field & 7, bool(field & 8)
    if number == PT:
        return lambda _: not inverted
    if uniform:
        return lambda lanes: lift(lambda v: v != inverted, lanes.uniform_predicates[number])
    return lambda lanes: lift(lambda v: v != inverted, lanes.predicates[number])


class _SassParts:
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
        minus = word.high >> 8 & 1 and word.opcode & 0x1FF not in _EXTREMES  # of those it says that numbers are signed
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


Make = Callable[[_SassParts], Step]


def _function(operation: Callable[[Word], Callable[..., int]], used: str = "abc") -> Make:
    """An instruction whose result is a function of the operands that it uses; ``operation`` reads its modifiers."""

    def make(parts: _SassParts) -> Step:
        gets = [get for name, get in zip("abc", parts.signed(), strict=True) if name in used]
        compute = operation(parts.word)
        return lambda lanes, condition: parts.put(lanes, lift(compute, *(get(lanes) for get in gets)), condition)

    return make


def _of_second(compute: Callable[[int], int]) -> Make:
    return _function(lambda _: compute, "b")


def _shift(word: Word) -> Callable[[int, int, int], int]:
    """SHF: the type in bits 73 and 74 (S64, U64, S32, U32), right in bit 76, the high word in bit 80."""
    right, high, kind = word.high >> 12 & 1, word.high >> 16 & 1, word.high >> 9 & 3

    def shift(low: int, by: int, upper: int) -> int:
        by = min(by, 63 if kind < 2 else 32)
        if not right:
            return ((upper << 32 | low) << by >> 32 if high else low << by) & WORD
        above = upper if kind & 1 else _signed(upper)
        return (above >> by if high else (above << 32 | low) >> by) & WORD

    return shift


def _lea(word: Word) -> Callable[[int, int, int], int]:
    """LEA: the shift in bits 75 to 79; in bit 80 that the high word is taken, in bit 73 that the operand is signed."""
    by, high, extend = word.high >> 11 & 31, word.high >> 16 & 1, word.high >> 9 & 1

    def lea(a: int, b: int, c: int) -> int:
        if not high:
            return (a << by) + b & WORD
        upper = (_signed(a) >> 31 & WORD) if extend else c
        return ((upper << 32 | a) << by >> 32) + b & WORD

    return lea


def _permute(a: int, selector: int, c: int) -> int:
    """PRMT: each byte of the result is one of the eight of both operands, or 8 times its sign."""
    both, made = c << 32 | a, 0
    for n in range(4):
        nibble = selector >> 4 * n & 0xF
        byte = both >> 8 * (nibble & 7) & 0xFF
        made |= (byte >> 7) * 0xFF << 8 * n if nibble & 8 else byte << 8 * n
    return made


def _extreme(word: Word, a: int, b: int) -> int:
    """The less of two where the predicate in bits 87 to 90 is true, else the greater; signed by bit 72."""
    pick = min if word.high >> 23 & 0xF == PT else max
    return pick(a, b, key=_signed) if word.high >> 8 & 1 else pick(a, b)


def _logic(parts: _SassParts) -> Step:
    """LOP3: a function of three bits by its table; the predicate says whether any bit is set."""
    (a, b, c), table, says, before = parts.plain, parts.word.high >> 8 & 0xFF, parts.field(17), parts.asked(23)

    def bits(x: int, y: int, z: int) -> int:
        made = 0
        for n in range(8):
            if table >> n & 1:
                made |= (x if n & 4 else ~x) & (y if n & 2 else ~y) & (z if n & 1 else ~z)
        return made & WORD

    def step(lanes: LaneState, condition: Value) -> None:
        value = lift(bits, a(lanes), b(lanes), c(lanes))
        if says != PT:
            parts.say(lanes, says, lift(lambda v, p: bool(v) or p, value, before(lanes)), condition)
        parts.put(lanes, value, condition)

    return step


def _add(parts: _SassParts) -> Step:
    """IADD3, with the carries that it takes (.X) and gives. With .X a sign is a complement to one: not followed."""
    (a, b, c), takes, gives = parts.signed(), bool(parts.word.high >> 10 & 1), parts.field(17)
    carries, is_known = (parts.asked(23), parts.asked(13)), not (takes and any(parts.negated))

    def step(lanes: LaneState, condition: Value) -> None:
        extra = lift(lambda x, y: x + y, *(each(lanes) for each in carries)) if takes else 0
        whole = lift(lambda x, y, z, e: x + y + z + e, a(lanes), b(lanes), c(lanes), extra if is_known else None)
        parts.put(lanes, lift(lambda v: v & WORD, whole), condition)
        parts.say(lanes, gives, lift(lambda v: v > WORD, whole), condition)

    return step


def _multiply(parts: _SassParts) -> Step:
    """IMAD: the low word, with the carry that .X takes."""
    (a, b, c), takes = parts.signed(), bool(parts.word.high >> 10 & 1)
    carry = parts.asked(23) if takes else lambda _: 0
    return lambda lanes, condition: parts.put(
        lanes, lift(lambda x, y, z, e: x * y + z + e & WORD, a(lanes), b(lanes), c(lanes), carry(lanes)), condition
    )


def _multiply_wide(parts: _SassParts) -> Step:
    """IMAD.WIDE: two words; IMAD.HI: the upper one of them. The third operand has two words as well.

    .X takes a carry; the one that is given is known of numbers without a sign.
    """
    (a, b, c), upper, signed = parts.plain, parts.upper(), bool(parts.word.high >> 9 & 1)
    carry, gives = parts.asked(23) if parts.word.high >> 10 & 1 else lambda _: 0, parts.field(17)

    def sum_of(x: int, y: int, low: int, above: int, extra: int) -> int:
        return (_signed(x) * _signed(y) if signed else x * y) + (above << 32 | low) + extra

    def step(lanes: LaneState, condition: Value) -> None:
        made = lift(sum_of, a(lanes), b(lanes), c(lanes), upper(lanes), carry(lanes))
        above = lift(lambda v: v >> 32 & WORD, made)
        parts.say(lanes, gives, None if signed else lift(lambda v: v > _LONG, made), condition)
        if parts.word.opcode & 2:
            parts.put(lanes, above, condition)
        else:
            parts.put(lanes, lift(lambda v: v & WORD, made), condition)
            parts.put(lanes, above, condition, 1)

    return step


_COMPARE: list[Callable[[int, int], bool]] = [
    lambda _a, _b: False, lambda a, b: a < b, lambda a, b: a == b, lambda a, b: a <= b,
    lambda a, b: a > b, lambda a, b: a != b, lambda a, b: a >= b, lambda _a, _b: True,
]  # fmt: skip
_JOIN: list[Callable[[bool, bool], bool]] = [
    lambda a, b: a and b, lambda a, b: a or b, lambda a, b: a != b, lambda a, _: a,
]  # fmt: skip


def _compare(parts: _SassParts) -> Step:
    """ISETP: .EX compares upper words, and takes what was said of the lower ones where they are equal."""
    (a, b, _), high = parts.plain, parts.word.high
    compare, join, signed, extends = _COMPARE[high >> 12 & 7], _JOIN[high >> 10 & 3], high >> 9 & 1, high >> 8 & 1
    lower, other = parts.asked(4), parts.asked(23)

    def said(x: int, y: int, *below: bool) -> bool:
        if below and x == y:
            return below[0]
        return compare(_signed(x), _signed(y)) if signed else compare(x, y)

    def step(lanes: LaneState, condition: Value) -> None:
        holds, joined = lift(said, a(lanes), b(lanes), *([lower(lanes)] if extends else [])), other(lanes)
        parts.say(lanes, parts.field(17), lift(join, holds, joined), condition)
        parts.say(lanes, parts.field(20), lift(lambda h, j: join(not h, j), holds, joined), condition)

    return step


def compared(word: Word, around: CodeInputs) -> list[Get]:
    """The two numbers that an ISETP compares; nothing of another instruction."""
    base = word.opcode & 0x1FF
    return _SassParts(word, around, uniform=base == 0x08C).plain[:2] if base in (0x00C, 0x08C) else []


def _select(parts: _SassParts) -> Step:
    (a, b, _), which = parts.plain, parts.asked(23)
    return lambda lanes, condition: parts.put(
        lanes, lift(lambda p, x, y: x if p else y, which(lanes), a(lanes), b(lanes)), condition
    )


def _predicates(parts: _SassParts) -> Step:
    """PLOP3: a function of three predicates, the last of which may be a uniform one."""
    high = parts.word.high
    table, a, b = high & 7 | (high >> 8 & 0x1F) << 3, parts.asked(23), predicate(parts.field(13), uniform=parts.uniform)
    c = predicate(high >> 4 & 0xF, uniform=parts.uniform or bool(high >> 3 & 1))

    def step(lanes: LaneState, condition: Value) -> None:
        said = lift(lambda x, y, z: bool(table >> (x << 2 | y << 1 | z) & 1), a(lanes), b(lanes), c(lanes))
        parts.say(lanes, parts.field(17), said, condition)

    return step


def is_ordinary(word: Word) -> bool:
    """Whether a load of global memory is weak or of constants, by bits 77 to 80; else it is volatile, or relaxed."""
    return word.high >> 13 & 0xF in (0, 4)


def _load(parts: _SassParts) -> Step:
    """LDC, ULDC, LDCU, and LDG of memory that is read only (by bits 77 to 80).

    The size is in bits 73 to 75: U8, S8, U16, S16, 32, 64, 128. Of LDC and LDCU a register is added to the offset.
    """
    word, around, base = parts.word, parts.around, parts.word.opcode & 0x1FF
    size = (1, 1, 2, 2, 4, 8, 16, 4)[parts.field(9)]
    bank, offset = word.low >> 54 & 0x1F, word.low >> (37 if base == _LDCU else 38) & 0xFFFF
    ordinary = is_ordinary(word) and word.ra < RZ - 1

    def read(more: int, lanes: LaneState) -> Value:
        if base != _LDG:
            index = lanes.registers[word.ra] if not parts.uniform else lanes.uniform[word.ra] if base == _LDCU else 0
            return lift(lambda i: around.constant(bank, offset + i + more, min(size, 4)), index)
        pair = (lanes.registers[word.ra], lanes.registers[word.ra + 1]) if ordinary else (None,)
        return lift(lambda low, high: around.memory((high << 32 | low) + word.offset + more, min(size, 4)), *pair)

    def step(lanes: LaneState, condition: Value) -> None:
        values = [read(4 * n, lanes) for n in range(max(size // 4, 1))]  # before one of its own registers is written
        for n, value in enumerate(values):
            parts.put(lanes, value, condition, n)

    return step


def _local(parts: _SassParts) -> Step:
    """LDL and STL, where all lanes have one address: words are known that were stored as such."""
    word, stores = parts.word, parts.word.opcode & 0x1FF == _STL
    size = (1, 1, 2, 2, 4, 8, 16, 4)[parts.field(9)]

    def step(lanes: LaneState, condition: Value) -> None:
        at = lift(lambda base: base + word.offset & WORD, lanes.registers[word.ra])
        if stores and type(at) is not int:
            lanes.local.clear()
        for n in range(max(size // 4, 1)):
            place = (at + 4 * n) & ~3 if type(at) is int else None
            if stores and place is not None:
                value = lanes.registers[min(word.rb + n, RZ)] if size >= 4 else None
                lanes.store(place, value, condition)
            elif not stores:
                parts.put(lanes, lanes.local.get(place) if place is not None and size >= 4 else None, condition, n)

    return step


def _called(_parts: _SassParts) -> Step:
    """CALL.ABS of a function of the driver, as printf, which keeps R1, R2 and R16 to R31: others are not known."""

    def step(lanes: LaneState, condition: Value) -> None:
        for n in (0, *range(3, 16), 20, 21, *range(32, RZ)):
            lanes.put(lanes.registers, n, None, condition)
        for n in range(RZ):
            lanes.uniform[n] = None
        for n in range(PT):
            lanes.put(lanes.predicates, n, None, condition)
            lanes.uniform_predicates[n] = None

    return step


def _special(parts: _SassParts) -> Step:
    """S2R, S2UR, CS2R: the last one may be of two words."""
    number, both = parts.word.high >> 8 & 0xFF, parts.word.opcode == 0x805 and parts.word.high >> 16 & 1

    def step(lanes: LaneState, condition: Value) -> None:
        value = 0 if number == RZ else parts.around.special(number)
        parts.put(lanes, of_lane(value, lanes.first()) if parts.uniform else value, condition)
        if both:
            parts.put(lanes, 0 if number == RZ else None, condition, 1)

    return step


def _to_uniform(parts: _SassParts) -> Step:
    """R2UR: the value of the first lane. The predicate that it gives is true in lanes that have another (.OR: also)."""
    says, source, joins = parts.field(17), parts.word.ra, parts.word.high >> 20 & 1

    def step(lanes: LaneState, condition: Value) -> None:
        value, (yes, _) = lanes.registers[source], lanes.lanes_where(condition)
        chosen = of_lane(value, (yes & -yes).bit_length() - 1) if yes else None
        parts.put(lanes, chosen, True)
        if says != PT:
            before = lanes.predicates[says] if joins else False
            lanes.put(lanes.predicates, says, lift(lambda v, c, b: v != c or b, value, chosen, before), condition)

    return step


def _vote(parts: _SassParts) -> Step:
    """VOTE: which lanes say so, and whether all, or any of them, do (bits 72 and 73)."""
    asked, anyone = predicate(parts.word.high >> 23 & 0xF), parts.word.high >> 8 & 3 == 1

    def step(lanes: LaneState, condition: Value) -> None:
        (asking, _), (yes, unknown) = lanes.lanes_where(condition), lanes.lanes_where(asked(lanes))
        ballot = None if unknown else yes & asking
        parts.put(lanes, ballot, True if parts.uniform else condition)
        said = None if ballot is None else bool(ballot) if anyone else ballot == asking
        parts.say(lanes, parts.field(17), said, condition)

    return step


def _elect(parts: _SassParts) -> Step:
    """ELECT: true in the first of the lanes."""

    def step(lanes: LaneState, condition: Value) -> None:
        yes, _ = lanes.lanes_where(condition)
        first, says = (yes & -yes).bit_length() - 1, parts.field(17)
        if says != PT:
            lanes.put(lanes.predicates, says, together([n == first for n in range(LANES)]), condition)
        parts.put(lanes, yes, True)

    return step


def _shuffle(parts: _SassParts) -> Step:
    """SHFL: what all lanes have stays; .IDX gives that of one lane, and the result of the others is not known."""
    word, indexed = parts.word, not parts.word.low >> 58 & 3

    def step(lanes: LaneState, condition: Value) -> None:
        value = lanes.registers[word.ra]
        if type(value) is tuple:
            lane = {0x589: lanes.registers[word.rb], 0xF89: word.low >> 53 & 31}.get(word.opcode) if indexed else None
            value = lift(lambda n, value=value: of_lane(value, n & 31), lane)
        parts.put(lanes, value, condition)

    return step


def _to_predicates(parts: _SassParts) -> Step:
    """R2P: the predicates in the mask from the low bits of a register."""
    a, mask, _ = parts.plain

    def step(lanes: LaneState, condition: Value) -> None:
        chosen = mask(lanes)
        for n in range(PT):
            if type(chosen) is not int or chosen >> n & 1:
                lanes.put(lanes.predicates, n, lift(lambda v, n=n: bool(v >> n & 1), a(lanes)), condition)

    return step


def _unknown(parts: _SassParts) -> Step:
    """An instruction whose result is not known: of a load it has as many words as bits 73 to 75 say."""
    base = parts.word.opcode & 0x1FF
    words = {5: 2, 6: 4}.get(parts.field(9), 1) if base in (0x180, 0x184) else 1
    says = (parts.field(17), parts.field(20)) if base in _WRITES_PREDICATES else ()

    def step(lanes: LaneState, condition: Value) -> None:
        for n in range(words):
            parts.put(lanes, None, condition, n)
        for each in says:
            parts.say(lanes, each, None, condition)

    return step


# a division by a number that is not known at compile time begins with an approximation as a float


def _float(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def _reciprocal(bits: int) -> int:
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    return _float(1 / value) if 1e-37 < abs(value) < 1e38 else 0


def _truncated(bits: int) -> int:
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    return max(0, min(int(value), WORD)) if abs(value) < 1e12 else WORD


#: By the low 9 bits: the instructions of the lanes, and of the uniform registers.
_STEPS: dict[int, Make] = {
    0x002: _of_second(lambda b: b), 0x007: _select, 0x00C: _compare, 0x010: _add, 0x011: _function(_lea), 0x012: _logic,
    0x013: _of_second(lambda b: abs(_signed(b)) & WORD), 0x016: _function(lambda _: _permute), 0x019: _function(_shift),
    0x01C: _predicates, 0x024: _multiply, 0x025: _multiply_wide, 0x027: _multiply_wide,
    0x036: _function(lambda _: lambda a, b: a + b & WORD, "ab"),
    0x00F: _function(lambda word: lambda a, b, c: _extreme(word, a, _extreme(word, b, c))),
    0x046: _function(lambda word: lambda a, b, c: _extreme(word, a + b & WORD, c)),
    0x048: _function(lambda word: lambda a, b: _extreme(word, a, b), "ab"),
    0x031: _function(lambda _: lambda c: c, "c"), 0x035: _function(lambda _: lambda c: c, "c"),
    0x106: _of_second(_float), 0x045: _of_second(_float), 0x108: _of_second(_reciprocal), 0x105: _of_second(_truncated),
    0x100: _of_second(lambda b: b.bit_length() - 1 & WORD),
    0x109: _of_second(lambda b: b.bit_count()), 0x119: _special, 0x005: _special, 0x182: _load, 0x0CA: _to_uniform,
    0x006: _vote, 0x02F: _elect, 0x189: _shuffle, 0x004: _to_predicates, _LDG: _load,
    _LDL: _local, _STL: _local, CALL_FAR: _called,
}  # fmt: skip
_UNIFORM_STEPS: dict[int, Make] = {
    0x082: _STEPS[0x002], 0x087: _select, 0x08C: _compare, 0x090: _add, 0x091: _STEPS[0x011], 0x092: _logic,
    0x096: _STEPS[0x016], 0x099: _STEPS[0x019], 0x09C: _predicates, 0x0A4: _multiply, 0x0A5: _multiply_wide,
    0x0A7: _multiply_wide, 0x0B9: _load, _LDCU: _load, 0x1C3: _special, 0x086: _vote,
}  # fmt: skip
_TO_UNIFORM = frozenset({0x0CA, 0x02F})  #: of the lanes, with a uniform register as their result
_WRITES_PREDICATES = frozenset({0x00B, 0x02A, 0x034})  # FSETP, DSETP, HSETP2
_KEEPS_REGISTERS = frozenset({0x00C, 0x01C, 0x004, _STL})
_WRITES_NOTHING = frozenset({
    0x185, 0x186, 0x188, 0x18E, 0x1A6, 0x141, 0x142, 0x145, 0x146, 0x147, 0x148, 0x149, 0x14A, 0x14D, 0x15D, 0x118,
    0x11A, 0x11D, 0x191, 0x192, 0x193, 0x1A7, 0x1AB, 0x1AE, 0x1AF, 0x1B0, 0x1B1, 0x1B2, 0x1B4, 0x1B5, 0x1B7, 0x1B9,
    0x1BA, 0x1BB, 0x1BC, 0x1C5, 0x1C6, 0x1C7, 0x1C8, 0x18F, 0x144, 0x1E9, 0x044, 0x1F0, 0x12E, 0x12D,
})  # fmt: skip


def writes(word: Word, register: int) -> bool:
    """Whether an instruction may write this register, or the one before it and this as its upper half."""
    base = word.opcode & 0x1FF
    if base in _WRITES_NOTHING or base in _WRITES_PREDICATES or base in _KEEPS_REGISTERS or 0x080 <= base < 0x0C0:
        return False
    return register != RZ and word.rd in (register, register - 1)


def step_of(word: Word, around: CodeInputs) -> Step | None:
    """What an instruction does to registers and predicates, None if nothing of that kind."""
    base = word.opcode & 0x1FF
    if base in _WRITES_NOTHING:
        return None
    uniform = base in _UNIFORM_STEPS or base in _TO_UNIFORM or 0x080 <= base < 0x0C0 or 0x1B0 <= base < 0x1E0
    make = (_UNIFORM_STEPS if base in _UNIFORM_STEPS else _STEPS).get(base, _unknown)
    if base in (0x031, 0x035) and not (word.opcode >> 9 == 2 and word.ra == RZ and word.rc == RZ):
        make = _unknown  # two halves of a float, unless it only loads a number
    if (base == 0x108 and word.high >> 10 & 0xF != 4) or (base == 0x100 and word.high >> 8 & 7):
        make = _unknown  # another function than the reciprocal; FLO of a signed number, or as a shift
    if base in (*_EXTREMES, 0x036) and word.high >> 9 & 9:
        make = _unknown  # two halves, or not below 0
    return make(_SassParts(word, around, uniform=uniform))
