"""Which step an instruction is, by its opcode; those by which the lanes of a warp learn of each other.

One that is not known makes its destination unknown.
"""

from pipesim.coredump.sass.integer import (
    add,
    as_signed,
    compare,
    extreme,
    float_bits,
    function,
    lea,
    logic,
    multiply,
    multiply_wide,
    of_second,
    permute,
    predicates,
    reciprocal,
    select,
    shift,
    truncated,
)
from pipesim.coredump.sass.lanes import LANES, WORD, LaneState, Value, lift, of_lane, together
from pipesim.coredump.sass.memory import CALL_FAR, LDCU, LDG, LDL, ST, STL, called, load, local, stored
from pipesim.coredump.sass.operands import EXTREMES, CodeInputs, Make, SassParts, Step, predicate
from pipesim.coredump.sass.word import PT, RZ, Word


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
