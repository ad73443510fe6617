"""The operands of an instruction as texts of Python expressions, and what is common to all that write expressions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from pipesim.ptx.text.instruction import (
    Address,
    Float,
    Immediate,
    Instruction,
    NegatedPredicate,
    Operand,
    Register,
    RegisterPair,
    Sink,
    Special,
    Symbol,
    Vector,
)

Assignment = tuple[int, str]  #: register, expression


class NameTable(Protocol):
    """Where the values of a function are: every method gives the text for one of them."""

    def register(self, name: str) -> int:
        """The number of a register."""

    def width(self, name: str) -> int:
        """The bits of a register."""

    def constant(self, operand: Special | Symbol | Address) -> str:
        """The text for what does not change while a warp runs."""


class NotAnExpression(Exception):  # noqa: N818  # not an error: another part carries the instruction out
    """The instruction computes nothing that these expressions know."""


INTEGERS = {f"{kind}{width}": (kind, width) for kind in "usb" for width in (8, 16, 32, 64)}
FLOATS = frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64", "tf32", "e4m3x2", "e5m2x2", "ue8m0x2"})
BITS = {"pred": 1, "b128": 128, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}
BITS |= {name: width for name, (_, width) in INTEGERS.items()}


def type_of(instruction: Instruction) -> tuple[str, int]:
    """Kind (u, s, b, or p of predicates) and width of the last type among the modifiers."""
    for modifier in reversed(instruction.modifiers):
        if modifier in INTEGERS:
            return INTEGERS[modifier]
        if modifier == "pred":
            return "p", 1
    raise NotAnExpression


def operand_text(operand: Operand, names: NameTable, width: int) -> str:
    """An operand that is read, as a value of this width."""
    match operand:
        case Register(name):
            return f"R[{names.register(name)}]"
        case Immediate(value):
            return str((1 if value else 0) if width == 1 else value & ((1 << width) - 1))
        case NegatedPredicate(Register(name)):
            return f"(R[{names.register(name)}]^1)"
        case Special() | Symbol() | Address():
            return names.constant(operand)
        case Float(bits, _):
            return str(bits & ((1 << width) - 1))
        case Vector(parts) if parts:
            part = width // len(parts)
            return "|".join(f"({operand_text(p, names, part)}<<{part * i})" for i, p in enumerate(parts))
        case _:
            raise NotAnExpression


def signed(text: str, width: int) -> str:
    """The text of a value of this width as a signed number."""
    half = 1 << (width - 1)
    if text.isdigit():
        value = int(text)
        return str(value - 2 * half) if value >= half else text
    return f"(({text}^{half})-{half})"


def assignment_to(operand: Operand, names: NameTable, text: str) -> list[Assignment]:
    """The assignment of an expression to the register that an operand names; none to a sink."""
    match operand:
        case Register(name):
            return [(names.register(name), text)]
        case Sink():
            return []
        case RegisterPair(first, second):
            if isinstance(second, Sink):
                return assignment_to(first, names, text)
            raise NotAnExpression
        case _:
            raise NotAnExpression


def mask_of(width: int) -> int:
    """``width`` bits that are 1."""
    return (1 << width) - 1


def operands_of(instruction: Instruction, count: int) -> tuple[Operand, ...]:
    """The operands, if there are this many; else NotAnExpression."""
    if len(instruction.operands) != count:
        raise NotAnExpression
    return instruction.operands


Writer = Callable[[Instruction, NameTable], list[Assignment]]
