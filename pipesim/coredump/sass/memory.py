"""Instructions that read constants and memory, and what is known of local memory."""

from pipesim.coredump.sass.lanes import WORD, LaneState, Value, lift
from pipesim.coredump.sass.operands import SassParts, Step
from pipesim.coredump.sass.word import PT, RZ, Word

CALL_FAR = 0x143
LDCU, LDG, LDL, ST, STL = 0x1AC, 0x181, 0x183, 0x185, 0x187


def is_ordinary(word: Word) -> bool:
    """Whether a load of global memory is weak or of constants, by bits 77 to 80; else it is volatile, or relaxed."""
    return word.high >> 13 & 0xF in (0, 4)


def load(parts: SassParts) -> Step:
    """LDC, ULDC, LDCU, and LDG of memory that is read only (by bits 77 to 80).

    The size is in bits 73 to 75: U8, S8, U16, S16, 32, 64, 128. Of LDC and LDCU a register is added to the offset.
    """
    word, around, base = parts.word, parts.around, parts.word.opcode & 0x1FF
    size = (1, 1, 2, 2, 4, 8, 16, 4)[parts.field(9)]
    bank, offset = word.low >> 54 & 0x1F, word.low >> (37 if base == LDCU else 38) & 0xFFFF
    ordinary = is_ordinary(word) and word.ra < RZ - 1

    def read(more: int, lanes: LaneState) -> Value:
        if base != LDG:
            index = lanes.registers[word.ra] if not parts.uniform else lanes.uniform[word.ra] if base == LDCU else 0
            return lift(lambda i: around.constant(bank, offset + i + more, min(size, 4)), index)
        pair = (lanes.registers[word.ra], lanes.registers[word.ra + 1]) if ordinary else (None,)
        return lift(lambda low, high: around.memory((high << 32 | low) + word.offset + more, min(size, 4)), *pair)

    def step(lanes: LaneState, condition: Value) -> None:
        values = [read(4 * n, lanes) for n in range(max(size // 4, 1))]  # before one of its own registers is written
        for n, value in enumerate(values):
            parts.put(lanes, value, condition, n)

    return step


def local(parts: SassParts) -> Step:
    """LDL and STL, where all lanes have one address: words are known that were stored as such."""
    word, stores = parts.word, parts.word.opcode & 0x1FF == STL
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


def stored(_parts: SassParts) -> Step:
    """ST by a generic address, which may be one of local memory: nothing of that is known any more."""
    return lambda lanes, _: lanes.local.clear()


def called(_parts: SassParts) -> Step:
    """CALL.ABS of a function of the driver, as printf: it keeps R1, R2, R16 to R19 and R22 to R31, no others."""

    def step(lanes: LaneState, condition: Value) -> None:
        for n in (0, *range(3, 16), 20, 21, *range(32, RZ)):
            lanes.put(lanes.registers, n, None, condition)
        for n in range(RZ):
            lanes.uniform[n] = None
        for n in range(PT):
            lanes.put(lanes.predicates, n, None, condition)
            lanes.uniform_predicates[n] = None

    return step
