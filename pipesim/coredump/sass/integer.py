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

from pipesim.coredump.sass.lanes import LANES, WORD, LaneState, Value, lift, of_lane, together, zero_of
from pipesim.coredump.sass.word import PT, RZ, Word

Step = Callable[[LaneState, Value], None]  #: of lanes, for those of them for which a condition holds
Get = Callable[[LaneState], Value]
_SIGN = 1 << 31
_LDCU = 0x1AC
_LONG = (1 << 64) - 1


class CodeInputs(NamedTuple):
    """What code reads beside registers: constants by bank, offset and bytes, special registers, memory.

    ``memory`` is for ordinary loads, of what other threads are not expected to write. ``wide``: of sm_100 and later.
    """

    constant: Callable[[int, int, int], int | None]
    special: Callable[[int], Value]
    memory: Callable[[int, int], int | None]
    wide: bool


def _signed(value: int) -> int:
    return value - (1 << 32) if value & _SIGN else value


class _Operands:
    """The operands of one instruction, as functions of the lanes' registers."""

    def __init__(self, word: Word, around: CodeInputs, *, uniform: bool) -> None:
        self.word, self._around, self._uniform = word, around, uniform
        form = word.opcode >> 9
        at_second, at_third = self._slot(form), self._register(word.rc, uniform=uniform)
        second, third = (at_third, at_second) if form in (2, 3, 7) else (at_second, at_third)
        self.plain = (self._register(word.ra, uniform=uniform), second, third)
        negated_second, negated_third = bool(word.low >> 63) and form not in (2, 4), bool(word.high >> 11 & 1)
        if form in (2, 3, 7):
            negated_second, negated_third = negated_third, negated_second
        self.negated = (bool(word.high >> 8 & 1), negated_second, negated_third)

    def _register(self, number: int, *, uniform: bool) -> Get:
        if uniform:
            if zero_of(number, wide=self._around.wide):
                return lambda _: 0
            return lambda lanes: lanes.uniform[number]
        return lambda lanes: lanes.registers[number]

    def _slot(self, form: int) -> Get:
        word = self.word
        if form in (2, 4):
            immediate = word.immediate
            return lambda _: immediate
        if form in (3, 5):
            value = self._around.constant(word.low >> 54 & 0x1F, word.low >> 38 & 0xFFFF, 4)
            return lambda _: value
        return self._register(word.rb, uniform=self._uniform or form in (6, 7))

    def signed(self) -> tuple[Get, Get, Get]:
        """The operands, with the signs that the instruction gives them."""
        a, b, c = (_minus(get) if minus else get for get, minus in zip(self.plain, self.negated, strict=True))
        return a, b, c


def _minus(get: Get) -> Get:
    return lambda lanes: lift(lambda value: -value & WORD, get(lanes))


def predicate(field: int, *, uniform: bool = False) -> Get:
    """A predicate in three bits, inverted by the fourth."""
    number, inverted = field & 7, bool(field & 8)
    if number == PT:
        return lambda _: not inverted
    if uniform:
        return lambda lanes: lift(lambda v: v != inverted, lanes.uniform_predicates[number])
    return lambda lanes: lift(lambda v: v != inverted, lanes.predicates[number])


class _Target:
    """Where results go: registers and predicates, or the uniform ones."""

    def __init__(self, word: Word, around: CodeInputs, *, uniform: bool) -> None:
        self._uniform = uniform
        self.number = word.rd
        self.nowhere = zero_of(word.rd, wide=around.wide) if uniform else word.rd == RZ

    def put(self, lanes: LaneState, value: Value, condition: Value, beyond: int = 0) -> None:
        """Write the result, or the word after it."""
        if not self.nowhere and self.number + beyond < RZ:
            lanes.put(lanes.uniform if self._uniform else lanes.registers, self.number + beyond, value, condition)

    def say(self, lanes: LaneState, number: int, value: Value, condition: Value) -> None:
        """Write a predicate."""
        if number != PT:
            lanes.put(lanes.uniform_predicates if self._uniform else lanes.predicates, number, value, condition)


def _function(
    operation: Callable[[Word], Callable[..., int]], used: str = "abc"
) -> Callable[[Word, CodeInputs, bool], Step]:  # fmt: skip
    """An instruction whose result is a function of the operands that it uses; ``operation`` reads its modifiers."""

    def make(word: Word, around: CodeInputs, uniform: bool) -> Step:  # noqa: FBT001  # a table's entries have one shape
        operands = _Operands(word, around, uniform=uniform).signed()
        gets = [get for name, get in zip("abc", operands, strict=True) if name in used]
        target, compute = _Target(word, around, uniform=uniform), operation(word)
        return lambda lanes, condition: target.put(lanes, lift(compute, *(get(lanes) for get in gets)), condition)

    return make


def _shift(word: Word) -> Callable[[int, int, int], int]:
    """SHF: the type in bits 73 and 74 (S64, U64, S32, U32), right in bit 76, the high word in bit 80."""
    right, high, kind = word.high >> 12 & 1, word.high >> 16 & 1, word.high >> 9 & 3
    signed = kind in (0, 2)

    def shift(low: int, by: int, upper: int) -> int:
        by = min(by, 63 if kind < 2 else 32)
        if not right:
            both = (upper << 32 | low) << by
            return both >> 32 & WORD if high else low << by & WORD
        if high:
            return (_signed(upper) if signed else upper) >> by & WORD
        return ((_signed(upper) if signed else upper) << 32 | low) >> by & WORD

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


def _permute(_: Word) -> Callable[[int, int, int], int]:
    """PRMT: each byte of the result is one of the eight of both operands, or 8 times its sign."""

    def permute(a: int, selector: int, c: int) -> int:
        both, made = c << 32 | a, 0
        for n in range(4):
            nibble = selector >> 4 * n & 0xF
            byte = both >> 8 * (nibble & 7) & 0xFF
            made |= (0xFF if byte & 0x80 else 0) << 8 * n if nibble & 8 else byte << 8 * n
        return made

    return permute


def _extreme(word: Word, a: int, b: int) -> int:
    """The less of two where the predicate in bits 87 to 90 is true, else the greater; signed by bit 72."""
    pick = min if word.high >> 23 & 0xF == PT else max
    return pick(a, b, key=_signed) if word.high >> 8 & 1 else pick(a, b)


def _bits(a: int, b: int, c: int, table: int) -> int:
    """A function of three bits by its table, on all bits."""
    made = 0
    for n in range(8):
        if table >> n & 1:
            made |= (a if n & 4 else ~a) & (b if n & 2 else ~b) & (c if n & 1 else ~c)
    return made & WORD


def _logic(word: Word, around: CodeInputs, uniform: bool) -> Step:  # noqa: FBT001
    a, b, c = _Operands(word, around, uniform=uniform).plain
    table, says = word.high >> 8 & 0xFF, word.high >> 17 & 7
    target, before = _Target(word, around, uniform=uniform), predicate(word.high >> 23 & 0xF, uniform=uniform)

    def step(lanes: LaneState, condition: Value) -> None:
        value = lift(lambda x, y, z: _bits(x, y, z, table), a(lanes), b(lanes), c(lanes))
        if says != PT:
            said = lift(lambda v, p: bool(v) or p, value, before(lanes))
            target.say(lanes, says, said, condition)
        target.put(lanes, value, condition)

    return step


def _add(word: Word, around: CodeInputs, uniform: bool) -> Step:  # noqa: FBT001
    """IADD3, with the carries that it takes (.X) and gives."""
    a, b, c = _Operands(word, around, uniform=uniform).signed()
    negated = sum(_Operands(word, around, uniform=uniform).negated)
    target = _Target(word, around, uniform=uniform)
    takes, gives = bool(word.high >> 10 & 1), word.high >> 17 & 7
    carries = predicate(word.high >> 23 & 0xF, uniform=uniform), predicate(word.high >> 13 & 0xF, uniform=uniform)

    def step(lanes: LaneState, condition: Value) -> None:
        extra = lift(lambda x, y: x + y, *(each(lanes) for each in carries)) if takes else 0
        whole = lift(lambda x, y, z, e: x + y + z + e, a(lanes), b(lanes), c(lanes), extra)
        if takes and negated:
            whole = None  # one's complement: rare, and addresses do without
        target.put(lanes, lift(lambda v: v & WORD, whole), condition)
        if gives != PT:
            target.say(lanes, gives, lift(lambda v: v > WORD, whole), condition)

    return step


def _multiply(word: Word, around: CodeInputs, uniform: bool) -> Step:  # noqa: FBT001
    """IMAD: the low word, with the carry that .X takes."""
    a, b, c = _Operands(word, around, uniform=uniform).signed()
    target = _Target(word, around, uniform=uniform)
    carry = predicate(word.high >> 23 & 0xF, uniform=uniform) if word.high >> 10 & 1 else lambda _: 0
    return lambda lanes, condition: target.put(
        lanes, lift(lambda x, y, z, e: x * y + z + e & WORD, a(lanes), b(lanes), c(lanes), carry(lanes)), condition
    )


def _multiply_wide(word: Word, around: CodeInputs, uniform: bool) -> Step:  # noqa: FBT001
    """IMAD.WIDE: two words; IMAD.HI: the upper one of them. The third operand has two words as well."""
    operands = _Operands(word, around, uniform=uniform)
    a, b, c = operands.plain
    signed, target = bool(word.high >> 9 & 1), _Target(word, around, uniform=uniform)
    form, high = word.opcode >> 9, bool(word.opcode & 2)
    number = word.rc if form not in (2, 3, 7) else word.rb
    zero = zero_of(number, wide=around.wide) if uniform or form == 7 else number == RZ
    is_register = form not in (2, 3)

    def upper(lanes: LaneState) -> Value:
        if zero or not is_register:
            return 0
        return (lanes.uniform if uniform or form == 7 else lanes.registers)[number + 1]

    def product(x: int, y: int, low: int, above: int) -> int:
        return (_signed(x) * _signed(y) if signed else x * y) + (above << 32 | low) & _LONG

    def step(lanes: LaneState, condition: Value) -> None:
        made = lift(product, a(lanes), b(lanes), c(lanes), upper(lanes))
        low, above = lift(lambda v: v & WORD, made), lift(lambda v: v >> 32, made)
        if high:
            target.put(lanes, above, condition)
        else:
            target.put(lanes, low, condition)
            target.put(lanes, above, condition, 1)

    return step


_COMPARE: dict[int, Callable[[int, int], bool]] = {
    0: lambda _a, _b: False, 1: lambda a, b: a < b, 2: lambda a, b: a == b, 3: lambda a, b: a <= b,
    4: lambda a, b: a > b, 5: lambda a, b: a != b, 6: lambda a, b: a >= b, 7: lambda _a, _b: True,
}  # fmt: skip
_JOIN: dict[int, Callable[[bool, bool], bool]] = {
    0: lambda a, b: a and b, 1: lambda a, b: a or b, 2: lambda a, b: a != b, 3: lambda a, _: a,
}  # fmt: skip


def _compare(word: Word, around: CodeInputs, uniform: bool) -> Step:  # noqa: FBT001
    """ISETP: .EX compares upper words, and takes what was said of the lower ones where they are equal."""
    a, b, _ = _Operands(word, around, uniform=uniform).plain
    compare, join = _COMPARE[word.high >> 12 & 7], _JOIN[word.high >> 10 & 3]
    signed, extends = bool(word.high >> 9 & 1), bool(word.high >> 8 & 1)
    lower, other = predicate(word.high >> 4 & 0xF, uniform=uniform), predicate(word.high >> 23 & 0xF, uniform=uniform)
    target, first, second = _Target(word, around, uniform=uniform), word.high >> 17 & 7, word.high >> 20 & 7

    def said(x: int, y: int, below: bool) -> bool:  # noqa: FBT001
        if extends and x == y:
            return below
        return compare(_signed(x), _signed(y)) if signed else compare(x, y)

    def step(lanes: LaneState, condition: Value) -> None:
        below = lower(lanes) if extends else False
        holds, joined = lift(said, a(lanes), b(lanes), below), other(lanes)
        target.say(lanes, first, lift(join, holds, joined), condition)
        target.say(lanes, second, lift(lambda h, j: join(not h, j), holds, joined), condition)

    return step


def _select(word: Word, around: CodeInputs, uniform: bool) -> Step:  # noqa: FBT001
    a, b, _ = _Operands(word, around, uniform=uniform).plain
    which, target = predicate(word.high >> 23 & 0xF, uniform=uniform), _Target(word, around, uniform=uniform)
    return lambda lanes, condition: target.put(
        lanes, lift(lambda p, x, y: x if p else y, which(lanes), a(lanes), b(lanes)), condition
    )


def _predicates(word: Word, around: CodeInputs, uniform: bool) -> Step:  # noqa: FBT001
    """PLOP3: a function of three predicates, the last of which may be a uniform one."""
    table = word.high & 7 | (word.high >> 8 & 0x1F) << 3
    a, b = predicate(word.high >> 23 & 0xF, uniform=uniform), predicate(word.high >> 13 & 7, uniform=uniform)
    c = predicate(word.high >> 4 & 0xF, uniform=uniform or bool(word.high >> 3 & 1))
    target, first = _Target(word, around, uniform=uniform), word.high >> 17 & 7
    return lambda lanes, condition: target.say(
        lanes, first, lift(lambda x, y, z: bool(table >> (x << 2 | y << 1 | z) & 1), a(lanes), b(lanes), c(lanes)),
        condition,
    )  # fmt: skip


def _constant(word: Word, around: CodeInputs, uniform: bool) -> Step:  # noqa: FBT001
    """LDC, ULDC, LDCU: the size is in bits 73 to 75, and of LDC a register is added to the offset."""
    size = {0: 1, 1: 1, 2: 2, 3: 2, 4: 4, 5: 8, 6: 16}.get(word.high >> 9 & 7, 4)
    bank, offset = word.low >> 54 & 0x1F, word.low >> (37 if word.opcode & 0x1FF == _LDCU else 38) & 0xFFFF
    target, index = _Target(word, around, uniform=uniform), word.ra
    uses = not uniform and index != RZ

    def step(lanes: LaneState, condition: Value) -> None:
        more = lanes.registers[index] if uses else 0
        for n in range(max(size // 4, 1)):
            value = lift(lambda m, n=n: around.constant(bank, offset + m + 4 * n, min(size, 4)), more)
            target.put(lanes, value, condition, n)

    return step


def _special(word: Word, around: CodeInputs, uniform: bool) -> Step:  # noqa: FBT001
    """S2R, S2UR, CS2R: the last one may be of two words."""
    number, target, pair = word.high >> 8 & 0xFF, _Target(word, around, uniform=uniform), word.opcode == 0x805
    both = pair and bool(word.high >> 16 & 1)

    def step(lanes: LaneState, condition: Value) -> None:
        value = 0 if number == RZ else around.special(number)
        target.put(lanes, of_lane(value, lanes.first()) if uniform else value, condition)
        if both:
            target.put(lanes, 0 if number == RZ else None, condition, 1)

    return step


def _to_uniform(word: Word, around: CodeInputs, _: bool) -> Step:  # noqa: FBT001
    """R2UR: the value of the first lane. The predicate that it gives is true in lanes that have another (.OR: also)."""
    target, says, source = _Target(word, around, uniform=True), word.high >> 17 & 7, word.ra
    joins = bool(word.high >> 20 & 1)

    def step(lanes: LaneState, condition: Value) -> None:
        value, (yes, _) = lanes.registers[source], lanes.lanes_where(condition)
        chosen = of_lane(value, (yes & -yes).bit_length() - 1) if yes else None
        target.put(lanes, chosen, True)
        if says != PT:
            before = lanes.predicates[says] if joins else False
            lanes.put(lanes.predicates, says, lift(lambda v, c, b: v != c or b, value, chosen, before), condition)

    return step


def _vote(word: Word, around: CodeInputs, uniform: bool) -> Step:  # noqa: FBT001
    """VOTE: which lanes say so, and whether all, or any of them, do (bits 72 and 73)."""
    asked, anyone = predicate(word.high >> 23 & 0xF), word.high >> 8 & 3
    target, says = _Target(word, around, uniform=uniform), word.high >> 17 & 7

    def step(lanes: LaneState, condition: Value) -> None:
        (asking, _), (yes, unknown) = lanes.lanes_where(condition), lanes.lanes_where(asked(lanes))
        ballot = None if unknown else yes & asking
        target.put(lanes, ballot, True if uniform else condition)
        target.say(
            lanes, says, None if ballot is None else bool(ballot) if anyone == 1 else ballot == asking, condition
        )

    return step


def _elect(word: Word, around: CodeInputs, _: bool) -> Step:  # noqa: FBT001
    """ELECT: true in the first of the lanes."""
    target, says = _Target(word, around, uniform=True), word.high >> 17 & 7

    def step(lanes: LaneState, condition: Value) -> None:
        yes, _ = lanes.lanes_where(condition)
        first = (yes & -yes).bit_length() - 1
        lanes.put(
            lanes.predicates, says, together([n == first for n in range(LANES)]), condition
        ) if says != PT else None
        target.put(lanes, yes, True)

    return step


def _shuffle(word: Word, around: CodeInputs, _: bool) -> Step:  # noqa: FBT001
    """SHFL: what all lanes have stays; of .IDX the lane may be a number, of the others the result is unknown."""
    target, source, by_number = _Target(word, around, uniform=False), word.ra, word.opcode in (0x589, 0xF89)
    indexed = not word.low >> 58 & 3 and by_number and word.opcode == 0xF89
    lane = word.low >> 53 & 31

    def step(lanes: LaneState, condition: Value) -> None:
        value = lanes.registers[source]
        if type(value) is tuple:
            if word.opcode == 0x589 and not word.low >> 58 & 3:
                value = lift(lambda n: of_lane(value, n & 31), lanes.registers[word.rb])
            else:
                value = value[lane] if indexed else None
        target.put(lanes, value, condition)

    return step


def _to_predicates(word: Word, around: CodeInputs, _: bool) -> Step:  # noqa: FBT001
    """R2P: the predicates in the mask from the low bits of a register."""
    a, mask, _c = _Operands(word, around, uniform=False).plain

    def step(lanes: LaneState, condition: Value) -> None:
        chosen = mask(lanes)
        for n in range(PT):
            if type(chosen) is not int or chosen >> n & 1:
                lanes.put(lanes.predicates, n, lift(lambda v, n=n: bool(v >> n & 1), a(lanes)), condition)

    return step


def _load(word: Word, around: CodeInputs, _: bool) -> Step:  # noqa: FBT001
    """LDG: the size in bits 73 to 75 (U8, S8, U16, S16, 32, 64, 128); weak or constant, by bits 77 to 80."""
    size = {0: 1, 2: 2, 4: 4, 5: 8, 6: 16}.get(word.high >> 9 & 7, 0)
    ordinary, target = word.high >> 13 & 0xF in (0, 4) and size > 0, _Target(word, around, uniform=False)
    low, offset = word.ra, word.offset

    def read(below: int, above: int, more: int) -> int | None:
        return around.memory((above << 32 | below) + offset + more, min(size, 4))

    def step(lanes: LaneState, condition: Value) -> None:
        for n in range(max(size // 4, 1)):
            known = ordinary and low < RZ - 1
            pair = (lanes.registers[low], lanes.registers[low + 1], 4 * n) if known else (None,)
            target.put(lanes, lift(read, *pair), condition, n)

    return step


def _of_second(compute: Callable[[int], int]) -> Callable[[Word, CodeInputs, bool], Step]:
    return _function(lambda _: compute, "b")


def _float(value: float) -> int:
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def _reciprocal(bits: int) -> int:
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    return _float(1 / value) if value and value == value else 0x7F800000  # not a NaN


def _truncated(bits: int) -> int:
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    return max(0, min(int(value), WORD)) if abs(value) < float(1 << 40) else WORD


#: By the low 9 bits: the instruction of the lanes, and of the uniform registers.
_STEPS: dict[int, Callable[[Word, CodeInputs, bool], Step]] = {
    0x002: _of_second(lambda b: b), 0x007: _select, 0x00C: _compare, 0x010: _add,
    0x011: _function(_lea), 0x012: _logic, 0x013: _of_second(lambda b: abs(_signed(b)) & WORD),
    0x016: _function(_permute), 0x019: _function(_shift), 0x01C: _predicates, 0x024: _multiply, 0x025: _multiply_wide,
    0x027: _multiply_wide, 0x036: _function(lambda _: lambda a, b: a + b & WORD, "ab"),
    0x046: _function(lambda word: lambda a, b, c: _extreme(word, a + b & WORD, c)),
    0x048: _function(lambda word: lambda a, b: _extreme(word, a, b), "ab"),
    0x031: _function(lambda _: lambda c: c, "c"), 0x035: _function(lambda _: lambda c: c, "c"),
    0x106: _of_second(lambda b: _float(float(b))), 0x045: _of_second(lambda b: _float(float(b))),
    0x108: _of_second(_reciprocal), 0x105: _of_second(_truncated),
    0x109: _of_second(lambda b: b.bit_count()),
    0x119: _special, 0x005: _special, 0x182: _constant, 0x0CA: _to_uniform, 0x006: _vote, 0x02F: _elect,
    0x189: _shuffle, 0x004: _to_predicates, 0x181: _load,
}  # fmt: skip
_UNIFORM_STEPS: dict[int, Callable[[Word, CodeInputs, bool], Step]] = {
    0x082: _STEPS[0x002], 0x087: _select, 0x08C: _compare, 0x090: _add, 0x091: _STEPS[0x011], 0x092: _logic,
    0x096: _STEPS[0x016], 0x099: _STEPS[0x019], 0x09C: _predicates, 0x0A4: _multiply, 0x0A5: _multiply_wide,
    0x0A7: _multiply_wide, 0x0B9: _constant, 0x1AC: _constant, 0x1C3: _special, 0x086: _vote,
}  # fmt: skip
_WRITES_PREDICATES = frozenset({0x00B, 0x02A, 0x034})  # FSETP, DSETP, HSETP2
_WRITES_NOTHING = frozenset({
    0x185, 0x186, 0x188, 0x18E, 0x1A6, 0x141, 0x142, 0x145, 0x146, 0x147, 0x148, 0x149, 0x14A, 0x14D, 0x15D, 0x118,
    0x11A, 0x11D, 0x191, 0x192, 0x193, 0x1A7, 0x1AB, 0x1AE, 0x1AF, 0x1B0, 0x1B1, 0x1B2, 0x1B4, 0x1B5, 0x1B7, 0x1B9,
    0x1BA, 0x1BB, 0x1BC, 0x1C5, 0x1C6, 0x1C7, 0x1C8, 0x18F, 0x144, 0x1E9, 0x044, 0x1F0, 0x12E, 0x12D,
})  # fmt: skip


def step_of(word: Word, around: CodeInputs) -> Step | None:
    """What an instruction does to registers and predicates, None if nothing of that kind."""
    base = word.opcode & 0x1FF
    if base in (0x031, 0x035) and not (word.opcode >> 9 == 2 and word.ra == RZ and word.rc == RZ):
        return _unknown(word, around)  # two halves of a float, unless it only loads a number
    if base == 0x108 and word.high >> 10 & 0xF != 4:
        return _unknown(word, around)
    if base in _STEPS:
        return _STEPS[base](word, around, False)
    if base in _UNIFORM_STEPS:
        return _UNIFORM_STEPS[base](word, around, True)
    return None if base in _WRITES_NOTHING else _unknown(word, around)


def _unknown(word: Word, around: CodeInputs) -> Step:
    """An instruction whose result is not known: of a load it has as many words as bits 73 to 75 say."""
    base = word.opcode & 0x1FF
    uniform = 0x080 <= base < 0x0C0 or 0x1B0 <= base < 0x1E0
    words = {5: 2, 6: 4}.get(word.high >> 9 & 7, 1) if base in (0x180, 0x181, 0x184) else 1
    target, says = _Target(word, around, uniform=uniform), (word.high >> 17 & 7, word.high >> 20 & 7)

    def step(lanes: LaneState, condition: Value) -> None:
        for n in range(words):
            target.put(lanes, None, condition, n)
        if base in _WRITES_PREDICATES:
            for each in says:
                target.say(lanes, each, None, condition)

    return step
