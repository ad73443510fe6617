"""Instructions that make addresses, parities and conditions: arithmetic and comparisons of integers."""

import struct
from collections.abc import Callable

from pipesim.coredump.sass.lanes import WORD, LaneState, Value, lift
from pipesim.coredump.sass.operands import CodeInputs, Get, Make, SassParts, Step, predicate
from pipesim.coredump.sass.word import PT, Word

_LONG = (1 << 64) - 1


def as_signed(value: int) -> int:
    """The number that a word is, if its upper bit is a sign."""
    return value - (1 << 32) if value >> 31 else value


def function(operation: Callable[[Word], Callable[..., int]], used: str = "abc") -> Make:
    """An instruction whose result is a function of the operands that it uses; ``operation`` reads its modifiers."""

    def make(parts: SassParts) -> Step:
        gets = [get for name, get in zip("abc", parts.signed(), strict=True) if name in used]
        compute = operation(parts.word)
        return lambda lanes, condition: parts.put(lanes, lift(compute, *(get(lanes) for get in gets)), condition)

    return make


def of_second(compute: Callable[[int], int]) -> Make:
    """An instruction whose result is a function of its second operand."""
    return function(lambda _: compute, "b")


def shift(word: Word) -> Callable[[int, int, int], int]:
    """SHF: the type in bits 73 and 74 (S64, U64, S32, U32), right in bit 76, the high word in bit 80."""
    right, high, kind = word.high >> 12 & 1, word.high >> 16 & 1, word.high >> 9 & 3

    def shift(low: int, by: int, upper: int) -> int:
        by = min(by, 63 if kind < 2 else 32)
        if not right:
            return ((upper << 32 | low) << by >> 32 if high else low << by) & WORD
        above = upper if kind & 1 else as_signed(upper)
        return (above >> by if high else (above << 32 | low) >> by) & WORD

    return shift


def lea(word: Word) -> Callable[[int, int, int], int]:
    """LEA: the shift in bits 75 to 79; in bit 80 that the high word is taken, in bit 73 that the operand is signed."""
    by, high, extend = word.high >> 11 & 31, word.high >> 16 & 1, word.high >> 9 & 1

    def lea(a: int, b: int, c: int) -> int:
        if not high:
            return (a << by) + b & WORD
        upper = (as_signed(a) >> 31 & WORD) if extend else c
        return ((upper << 32 | a) << by >> 32) + b & WORD

    return lea


def permute(a: int, selector: int, c: int) -> int:
    """PRMT: each byte of the result is one of the eight of both operands, or 8 times its sign."""
    both, made = c << 32 | a, 0
    for n in range(4):
        nibble = selector >> 4 * n & 0xF
        byte = both >> 8 * (nibble & 7) & 0xFF
        made |= (byte >> 7) * 0xFF << 8 * n if nibble & 8 else byte << 8 * n
    return made


def extreme(word: Word, a: int, b: int) -> int:
    """The less of two where the predicate in bits 87 to 90 is true, else the greater; signed by bit 72."""
    pick = min if word.high >> 23 & 0xF == PT else max
    return pick(a, b, key=as_signed) if word.high >> 8 & 1 else pick(a, b)


def logic(parts: SassParts) -> Step:
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


def add(parts: SassParts) -> Step:
    """IADD3, with the carries that it takes (.X) and gives. With .X a sign is a complement to one: not followed."""
    (a, b, c), takes, gives = parts.signed(), bool(parts.word.high >> 10 & 1), parts.field(17)
    carries, is_known = (parts.asked(23), parts.asked(13)), not (takes and any(parts.negated))

    def step(lanes: LaneState, condition: Value) -> None:
        extra = lift(lambda x, y: x + y, *(each(lanes) for each in carries)) if takes else 0
        whole = lift(lambda x, y, z, e: x + y + z + e, a(lanes), b(lanes), c(lanes), extra if is_known else None)
        parts.put(lanes, lift(lambda v: v & WORD, whole), condition)
        parts.say(lanes, gives, lift(lambda v: v > WORD, whole), condition)

    return step


def multiply(parts: SassParts) -> Step:
    """IMAD: the low word, with the carry that .X takes."""
    (a, b, c), takes = parts.signed(), bool(parts.word.high >> 10 & 1)
    carry = parts.asked(23) if takes else lambda _: 0
    return lambda lanes, condition: parts.put(
        lanes, lift(lambda x, y, z, e: x * y + z + e & WORD, a(lanes), b(lanes), c(lanes), carry(lanes)), condition
    )


def multiply_wide(parts: SassParts) -> Step:
    """IMAD.WIDE: two words; IMAD.HI: the upper one of them. The third operand has two words as well.

    .X takes a carry; the one that is given is known of numbers without a sign.
    """
    (a, b, c), upper, signed = parts.plain, parts.upper(), bool(parts.word.high >> 9 & 1)
    carry, gives = parts.asked(23) if parts.word.high >> 10 & 1 else lambda _: 0, parts.field(17)

    def sum_of(x: int, y: int, low: int, above: int, extra: int) -> int:
        return (as_signed(x) * as_signed(y) if signed else x * y) + (above << 32 | low) + extra

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


def compare(parts: SassParts) -> Step:
    """ISETP: .EX compares upper words, and takes what was said of the lower ones where they are equal."""
    (a, b, _), high = parts.plain, parts.word.high
    compare, join, signed, extends = _COMPARE[high >> 12 & 7], _JOIN[high >> 10 & 3], high >> 9 & 1, high >> 8 & 1
    lower, other = parts.asked(4), parts.asked(23)

    def said(x: int, y: int, *below: bool) -> bool:
        if below and x == y:
            return below[0]
        return compare(as_signed(x), as_signed(y)) if signed else compare(x, y)

    def step(lanes: LaneState, condition: Value) -> None:
        holds, joined = lift(said, a(lanes), b(lanes), *([lower(lanes)] if extends else [])), other(lanes)
        parts.say(lanes, parts.field(17), lift(join, holds, joined), condition)
        parts.say(lanes, parts.field(20), lift(lambda h, j: join(not h, j), holds, joined), condition)

    return step


def compared(word: Word, around: CodeInputs) -> list[Get]:
    """The two numbers that an ISETP compares; nothing of another instruction."""
    base = word.opcode & 0x1FF
    return SassParts(word, around, uniform=base == 0x08C).plain[:2] if base in (0x00C, 0x08C) else []


def select(parts: SassParts) -> Step:
    """SEL: the first operand where a predicate holds, else the second."""
    (a, b, _), which = parts.plain, parts.asked(23)
    return lambda lanes, condition: parts.put(
        lanes, lift(lambda p, x, y: x if p else y, which(lanes), a(lanes), b(lanes)), condition
    )


def predicates(parts: SassParts) -> Step:
    """PLOP3: a function of three predicates, the last of which may be a uniform one."""
    high = parts.word.high
    table, a, b = high & 7 | (high >> 8 & 0x1F) << 3, parts.asked(23), predicate(parts.field(13), uniform=parts.uniform)
    c = predicate(high >> 4 & 0xF, uniform=parts.uniform or bool(high >> 3 & 1))

    def step(lanes: LaneState, condition: Value) -> None:
        said = lift(lambda x, y, z: bool(table >> (x << 2 | y << 1 | z) & 1), a(lanes), b(lanes), c(lanes))
        parts.say(lanes, parts.field(17), said, condition)

    return step


# a division by a number that is not known at compile time begins with an approximation as a float


def float_bits(value: float) -> int:
    """I2F: a number as the bits of a float."""
    return int(struct.unpack("<I", struct.pack("<f", value))[0])


def reciprocal(bits: int) -> int:
    """MUFU.RCP: of a float by its bits, 0 where it is too small or too large."""
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    return float_bits(1 / value) if 1e-37 < abs(value) < 1e38 else 0


def truncated(bits: int) -> int:
    """F2I: the unsigned number of a float by its bits, without its fraction."""
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    return max(0, min(int(value), WORD)) if abs(value) < 1e12 else WORD
