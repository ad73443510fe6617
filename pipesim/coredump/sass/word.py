"""The 128 bits of an instruction: the fields that most instructions have at the same places."""

import struct
from collections.abc import Sequence
from typing import NamedTuple

SIZE = 16  #: bytes of an instruction
RZ = 255  #: the register that is always 0; a uniform one too, since sm_100
URZ = 63
PT = 7  #: the predicate that is always true


class Word(NamedTuple):
    """An instruction as two words of 64 bits."""

    low: int
    high: int

    @property
    def opcode(self) -> int:
        """What it does, with the form of its operands in bits 9 to 11."""
        return self.low & 0xFFF

    @property
    def guard(self) -> tuple[int, bool]:
        """The predicate that it is executed under, and whether that is inverted."""
        return self.low >> 12 & 7, bool(self.low >> 15 & 1)

    @property
    def rd(self) -> int:
        """The register that it writes."""
        return self.low >> 16 & 0xFF

    @property
    def ra(self) -> int:
        """Its first register."""
        return self.low >> 24 & 0xFF

    @property
    def rb(self) -> int:
        """The register in the place of its second operand."""
        return self.low >> 32 & 0xFF

    @property
    def rc(self) -> int:
        """The register in the place of its third operand."""
        return self.high & 0xFF

    @property
    def immediate(self) -> int:
        """32 bits in the place of its second operand."""
        return self.low >> 32

    @property
    def offset(self) -> int:
        """The signed offset of 24 bits of an address."""
        value = self.low >> 40
        return value - (1 << 24) if value >> 23 else value


def words_of(code: bytes) -> Sequence[Word]:
    """The instructions of a piece of code, the first at offset 0."""
    return [Word(low, high) for low, high in struct.iter_unpack("<QQ", code[: len(code) // SIZE * SIZE])]


def branch_target(word: Word, at: int) -> int:
    """Where a branch at this offset leads: a signed number of words of 4 bytes, from the next instruction.

    Its 8 low bits are in the place of the register that is written, the others from bit 34 on.
    """
    field = (word.low >> 34 | (word.high & 0x3FFF) << 30) << 8 | word.rd
    return at + SIZE + 4 * (field - (1 << 52) if field >> 51 else field)
