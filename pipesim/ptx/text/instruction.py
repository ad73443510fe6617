"""One instruction of a PTX program, and what its operands can be (PTX ISA, "Instruction Operands").

Everything is immutable and compares by value; operands of two kinds are never equal. Names are unique in a function: a
register or label that a block of braces declares again is given another name by the reader (``p$3`` for ``p``).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, TypeAlias


@dataclass(frozen=True, slots=True)
class Register:
    """A register that the function declares, also a predicate; its type is in ``Function.registers``."""

    name: str


@dataclass(frozen=True, slots=True)
class Special:
    """A predefined, read-only register, its component included: ``%tid.x``, ``%cluster_ctarank``, ``%laneid``."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """An integer as written: negative if it has a sign, else between 0 and 2^64 - 1. A predicate's -1 is true."""

    value: int


@dataclass(frozen=True, slots=True)
class Float:
    """A floating-point constant: its bits, and their number, 32 or 64."""

    bits: int
    width: int


@dataclass(frozen=True, slots=True)
class Symbol:
    """The name of a variable, a parameter or a function: without brackets, its address."""

    name: str


@dataclass(frozen=True, slots=True)
class CodeLabel:
    """The target of a branch, or the name of a list of targets or of a prototype."""

    name: str


@dataclass(frozen=True, slots=True)
class Address:
    """``[base + offset]``; the offset is in bytes and has a sign. Also ``name+4`` without brackets, in ``mov``."""

    base: Register | Symbol | Immediate
    offset: int


@dataclass(frozen=True, slots=True)
class TensorAddress:
    """``[map, {c0, c1}]``: a tensor map's address and the coordinates of a box in elements."""

    map: Address
    coordinates: Vector


@dataclass(frozen=True, slots=True)
class Vector:
    """``{a, b, ...}``; a part can be a :class:`Sink`."""

    parts: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Arguments:
    """``(a, b, ...)`` in a call: results before the function's name, arguments after it."""

    parts: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class RegisterPair:
    """``d|p``: two destinations, as of ``setp``, ``shfl.sync`` and ``elect.sync``."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class NegatedPredicate:
    """``!p``: a predicate's complement."""

    register: Register


@dataclass(frozen=True, slots=True)
class Sink:
    """``_``: a destination that is dropped."""


Operand: TypeAlias = (
    Register
    | Special
    | Immediate
    | Float
    | Symbol
    | CodeLabel
    | Address
    | TensorAddress
    | Vector
    | Arguments
    | RegisterPair
    | NegatedPredicate
    | Sink
)


def parts_of(operand: Operand) -> tuple[Operand, ...]:
    """The operands that make up this one: none of a register, a constant or a name."""
    match operand:
        case Address(base, _):
            return (base,)
        case TensorAddress(map_, coordinates):
            return (map_, coordinates)
        case Vector(parts) | Arguments(parts):
            return parts
        case RegisterPair(first, second):
            return (first, second)
        case NegatedPredicate(register):
            return (register,)
        case _:
            return ()


class Guard(NamedTuple):
    """``@p`` or ``@!p``: the instruction runs in the lanes where the predicate is true (or false)."""

    register: str
    negated: bool


class Frame(NamedTuple):
    """A place in a source file, and the function that it is in ("" where the PTX does not say).

    ``column``: of the line, 0 where the PTX does not say; it distinguishes two calls on one line.
    """

    file: str
    line: int
    function: str
    column: int = 0


class SourceLine(NamedTuple):
    """The author's line of an instruction, from ``.loc``: of the places into which it was inlined the one that reports
    name (:mod:`pipesim.ptx.text.locations`).

    ``frames`` are all places, the outermost first; the last is the innermost function's own line. ``sure``: the PTX
    says into which of several places it was inlined.
    """

    file: str
    line: int
    function: str
    frames: tuple[Frame, ...]
    sure: bool = True


class Instruction(NamedTuple):
    """``@guard opcode.modifiers operands;`` at a line of the PTX file, and its index in the function's body.

    ``begin`` is the index in the file's text of its first character, the guard's if it has one.

    ``modifiers`` are in the written order and without their dots: ``("try_wait", "parity", "shared::cta", "b64")``.
    """

    opcode: str
    modifiers: tuple[str, ...]
    operands: tuple[Operand, ...]
    guard: Guard | None
    line: int
    source: SourceLine | None
    position: int
    begin: int = 0

    @property
    def spaces(self) -> set[str]:
        """Its modifiers without what follows ``::``: the state spaces are among them, ``shared`` of ``shared::cta``."""
        return {name.partition("::")[0] for name in self.modifiers}

    def has(self, *names: str) -> bool:
        """Whether it has each of these modifiers, in whatever order: a modifier is a member of a set."""
        return all(map(self.modifiers.__contains__, names))

    def has_any(self, *names: str) -> bool:
        """Whether it has one of these modifiers."""
        return any(map(self.modifiers.__contains__, names))

    @property
    def mnemonic(self) -> str:
        """``opcode.modifiers`` as written."""
        return ".".join((self.opcode, *self.modifiers))
