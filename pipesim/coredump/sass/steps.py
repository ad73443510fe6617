"""Which step an instruction is, by its opcode; those by which the lanes of a warp learn of each other.

One that is not known makes its destination unknown.

Instructions that make addresses, parities and conditions: arithmetic and comparisons of integers.
"""

import struct
from collections.abc import Callable

from pipesim.coredump.sass.lanes import LANES, WORD, LaneState, Value, lift, of_lane, together
from pipesim.coredump.sass.memory import CALL_FAR, LDCU, LDG, LDL, ST, STL, called, load, local, stored
from pipesim.coredump.sass.operands import EXTREMES, CodeInputs, Get, Make, SassParts, Step, predicate
from pipesim.coredump.sass.word import PT, RZ, Word

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


def special(parts: SassParts) -> Step:
    """S2R, S2UR, CS2R: the last one may be of two words."""
    number, both = parts.word.high >> 8 & 0xFF, parts.word.opcode == 0x805 and parts.word.high >> 16 & 1

    def step(lanes: LaneState, condition: Value) -> None:
        value = 0 if number == RZ else parts.around.special(number)
        parts.put(lanes, of_lane(value, lanes.first()) if parts.uniform else value, condition)
        if both:
            parts.put(lanes, 0 if number == RZ else None, condition, 1)

    return step


def to_uniform(parts: SassParts) -> Step:
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


def vote(parts: SassParts) -> Step:
    """VOTE: which lanes say so, and whether all, or any of them, do (bits 72 and 73)."""
    asked, anyone = predicate(parts.word.high >> 23 & 0xF), parts.word.high >> 8 & 3 == 1

    def step(lanes: LaneState, condition: Value) -> None:
        (asking, _), (yes, unknown) = lanes.lanes_where(condition), lanes.lanes_where(asked(lanes))
        ballot = None if unknown else yes & asking
        parts.put(lanes, ballot, True if parts.uniform else condition)
        said = None if ballot is None else bool(ballot) if anyone else ballot == asking
        parts.say(lanes, parts.field(17), said, condition)

    return step


def elect(parts: SassParts) -> Step:
    """ELECT: true in the first of the lanes."""

    def step(lanes: LaneState, condition: Value) -> None:
        yes, _ = lanes.lanes_where(condition)
        first, says = (yes & -yes).bit_length() - 1, parts.field(17)
        if says != PT:
            lanes.put(lanes.predicates, says, together([n == first for n in range(LANES)]), condition)
        parts.put(lanes, yes, True)

    return step


def shuffle(parts: SassParts) -> Step:
    """SHFL: what all lanes have stays; .IDX gives that of one lane, and the result of the others is not known."""
    word, indexed = parts.word, not parts.word.low >> 58 & 3

    def step(lanes: LaneState, condition: Value) -> None:
        value = lanes.registers[word.ra]
        if type(value) is tuple:
            lane = {0x589: lanes.registers[word.rb], 0xF89: word.low >> 53 & 31}.get(word.opcode) if indexed else None
            value = lift(lambda n, value=value: of_lane(value, n & 31), lane)
        parts.put(lanes, value, condition)

    return step


def to_predicates(parts: SassParts) -> Step:
    """R2P: the predicates in the mask from the low bits of a register."""
    a, mask, _ = parts.plain

    def step(lanes: LaneState, condition: Value) -> None:
        chosen = mask(lanes)
        for n in range(PT):
            if type(chosen) is not int or chosen >> n & 1:
                lanes.put(lanes.predicates, n, lift(lambda v, n=n: bool(v >> n & 1), a(lanes)), condition)

    return step


def _unknown(parts: SassParts) -> Step:
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


#: By the low 9 bits: the instructions of the lanes, and of the uniform registers.
_STEPS: dict[int, Make] = {
    0x002: of_second(lambda b: b), 0x007: select, 0x00C: compare, 0x010: add, 0x011: function(lea), 0x012: logic,
    0x013: of_second(lambda b: abs(as_signed(b)) & WORD), 0x016: function(lambda _: permute), 0x019: function(shift),
    0x01C: predicates, 0x024: multiply, 0x025: multiply_wide, 0x027: multiply_wide,
    0x036: function(lambda _: lambda a, b: a + b & WORD, "ab"),
    0x00F: function(lambda word: lambda a, b, c: extreme(word, a, extreme(word, b, c))),
    0x046: function(lambda word: lambda a, b, c: extreme(word, a + b & WORD, c)),
    0x048: function(lambda word: lambda a, b: extreme(word, a, b), "ab"),
    0x031: function(lambda _: lambda c: c, "c"), 0x035: function(lambda _: lambda c: c, "c"),
    0x106: of_second(float_bits), 0x045: of_second(float_bits), 0x108: of_second(reciprocal),
    0x105: of_second(truncated), 0x100: of_second(lambda b: b.bit_length() - 1 & WORD),
    0x109: of_second(lambda b: b.bit_count()), 0x119: special, 0x005: special, 0x182: load, 0x0CA: to_uniform,
    0x006: vote, 0x02F: elect, 0x189: shuffle, 0x004: to_predicates, LDG: load,
    LDL: local, STL: local, CALL_FAR: called, ST: stored,
}  # fmt: skip
_UNIFORM_STEPS: dict[int, Make] = {
    0x082: _STEPS[0x002], 0x087: select, 0x08C: compare, 0x090: add, 0x091: _STEPS[0x011], 0x092: logic,
    0x096: _STEPS[0x016], 0x099: _STEPS[0x019], 0x09C: predicates, 0x0A4: multiply, 0x0A5: multiply_wide,
    0x0A7: multiply_wide, 0x0B9: load, LDCU: load, 0x1C3: special, 0x086: vote,
}  # fmt: skip
_TO_UNIFORM = frozenset({0x0CA, 0x02F})  #: of the lanes, with a uniform register as their result
_WRITES_PREDICATES = frozenset({0x00B, 0x02A, 0x034})  # FSETP, DSETP, HSETP2
_KEEPS_REGISTERS = frozenset({0x00C, 0x01C, 0x004, ST, STL})
_WRITES_NOTHING = frozenset({
    0x186, 0x188, 0x18E, 0x1A6, 0x141, 0x142, 0x145, 0x146, 0x147, 0x148, 0x149, 0x14A, 0x14D, 0x15D, 0x118,
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
    if base in (*EXTREMES, 0x036) and word.high >> 9 & 9:
        make = _unknown  # two halves, or not below 0
    return make(SassParts(word, around, uniform=uniform))
