"""Arithmetic of integers, of bits, and of the few floating-point numbers that decide."""

from __future__ import annotations

from pipesim.ptx.emulate.expressions.operands import (
    Assignment,
    NameTable,
    NotAnExpression,
    Writer,
    assigned,
    mask_of,
    operand_text,
    operands_of,
    signed,
    type_of,
)
from pipesim.ptx.text.instruction import Immediate, Instruction

_ROUNDS_OTHERWISE = ("rz", "rm", "rp", "ftz", "sat")


def binary(template: str) -> Writer:
    """Two operands and a template: ``{a}``, ``{b}`` are the operands, ``{m}`` the mask of the type."""

    def write(instruction: Instruction, names: NameTable) -> list[Assignment]:
        if instruction.has_any("sat", "cc", "f16", "s16x2", "u16x2"):
            raise NotAnExpression
        _, width = type_of(instruction)
        d, a, b = operands_of(instruction, 3)
        text = template.format(a=operand_text(a, names, width), b=operand_text(b, names, width), m=mask_of(width))
        return assigned(d, names, text)

    return write


def _called(unsigned: str, with_sign: str = "") -> Writer:
    """A function of two operands and the width, another one for signed types."""

    def write(instruction: Instruction, names: NameTable) -> list[Assignment]:
        kind, width = type_of(instruction)
        if instruction.has_any("s16x2", "u16x2"):
            raise NotAnExpression
        d, a, b = operands_of(instruction, 3)
        name = with_sign if kind == "s" and with_sign else unsigned
        second = 32 if instruction.opcode in ("shl", "shr") else width
        return assigned(d, names, f"{name}({operand_text(a, names, width)},{operand_text(b, names, second)},{width})")

    return write


def _extreme(unsigned: str, with_sign: str) -> Writer:
    def write(instruction: Instruction, names: NameTable) -> list[Assignment]:
        kind, width = type_of(instruction)
        if instruction.has_any("s16x2", "u16x2"):
            raise NotAnExpression
        d, a, b = operands_of(instruction, 3)
        texts = operand_text(a, names, width), operand_text(b, names, width)
        call = f"{with_sign}({texts[0]},{texts[1]},{width})" if kind == "s" else f"{unsigned}({texts[0]},{texts[1]})"
        if instruction.has("relu"):  # a negative result becomes 0
            call = f"most_signed({call},0,{width})"
        return assigned(d, names, call)

    return write


def _shift_left(instruction: Instruction, names: NameTable) -> list[Assignment]:
    _, width = type_of(instruction)
    d, a, b = operands_of(instruction, 3)
    if isinstance(b, Immediate):
        amount = b.value & mask_of(32)
        text = operand_text(a, names, width)
        return assigned(d, names, f"({text}<<{amount})&{mask_of(width)}" if amount < width else "0")
    return _called("shl")(instruction, names)


def _shift_right(instruction: Instruction, names: NameTable) -> list[Assignment]:
    kind, width = type_of(instruction)
    d, a, b = operands_of(instruction, 3)
    if isinstance(b, Immediate) and kind != "s":
        amount = b.value & mask_of(32)
        return assigned(d, names, f"{operand_text(a, names, width)}>>{amount}" if amount < width else "0")
    return _called("shr", "sar")(instruction, names)


def _multiply(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``mul`` and ``mad``."""
    kind, width = type_of(instruction)
    if instruction.has_any("cc", "sat") or instruction.opcode in ("mul24", "mad24"):
        raise NotAnExpression
    d, a, b, *rest = instruction.operands
    x, y = operand_text(a, names, width), operand_text(b, names, width)
    result = width
    if instruction.has("lo"):
        text = f"{x}*{y}"
    elif instruction.has("wide"):
        result = 2 * width
        text = f"{signed(x, width)}*{signed(y, width)}" if kind == "s" else f"{x}*{y}"
    elif instruction.has("hi"):
        text = f"({signed(x, width)}*{signed(y, width)}>>{width})" if kind == "s" else f"({x}*{y}>>{width})"
    else:
        raise NotAnExpression
    if rest:
        text = f"{text}+{operand_text(rest[0], names, result)}"
    return assigned(d, names, f"({text})&{mask_of(result)}")


def _unary(template: str) -> Writer:
    def write(instruction: Instruction, names: NameTable) -> list[Assignment]:
        kind, width = type_of(instruction)
        d, a = operands_of(instruction, 2)
        sign = 1 if kind == "s" else 0
        shift = 1 if instruction.has("shiftamt") else 0
        text = operand_text(a, names, width)
        return assigned(d, names, template.format(a=text, m=mask_of(width), w=width, sign=sign, shift=shift))

    return write


def float_arithmetic(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``add.f32``, ``sub.f32`` and ``mul.f32`` that round to the nearest."""
    if instruction.has_any(*_ROUNDS_OTHERWISE):
        raise NotAnExpression
    d, a, b = operands_of(instruction, 3)
    return assigned(
        d, names, f"of_floats('{instruction.opcode}',{operand_text(a, names, 32)},{operand_text(b, names, 32)})"
    )


def _field(instruction: Instruction, names: NameTable) -> list[Assignment]:
    kind, width = type_of(instruction)
    d, *sources = instruction.operands
    widths = (width, 32, 32) if instruction.opcode == "bfe" else (width, width, 32, 32)
    texts = [operand_text(a, names, w) for a, w in zip(sources, widths, strict=True)]
    tail = f"{width},{1 if kind == 's' else 0}" if instruction.opcode == "bfe" else str(width)
    return assigned(d, names, f"{instruction.opcode}({','.join(texts)},{tail})")


def _funnel(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, a, b, c = operands_of(instruction, 4)
    name = "funnel_left" if instruction.has("l") else "funnel_right"
    texts = ",".join(operand_text(x, names, 32) for x in (a, b, c))
    return assigned(d, names, f"{name}({texts},{1 if instruction.has('wrap') else 0})")


def _permute(instruction: Instruction, names: NameTable) -> list[Assignment]:
    if instruction.modifiers != ("b32",):
        raise NotAnExpression
    d, a, b, c = operands_of(instruction, 4)
    return assigned(d, names, f"prmt({','.join(operand_text(x, names, 32) for x in (a, b, c))})")


def _table(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, a, b, c, table = operands_of(instruction, 5)
    if instruction.modifiers != ("b32",) or not isinstance(table, Immediate):
        raise NotAnExpression
    texts = ",".join(operand_text(x, names, 32) for x in (a, b, c))
    return assigned(d, names, f"lop3({texts},{table.value & 255})")


WRITERS: dict[str, Writer] = {
    "add": binary("({a}+{b})&{m}"),
    "sub": binary("({a}-{b})&{m}"),
    "and": binary("{a}&{b}"),
    "xor": binary("{a}^{b}"),
    "mul": _multiply,
    "mad": _multiply,
    "div": _called("div", "sdiv"),
    "rem": _called("rem", "srem"),
    "min": _extreme("least", "least_signed"),
    "max": _extreme("most", "most_signed"),
    "shl": _shift_left,
    "shr": _shift_right,
    "not": _unary("{a}^{m}"),
    "cnot": _unary("select({a}==0,1,0)"),
    "neg": _unary("(0-{a})&{m}"),
    "abs": _unary("magnitude({a},{w})"),
    "popc": _unary("popc({a})"),
    "clz": _unary("clz({a},{w})"),
    "bfind": _unary("bfind({a},{w},{sign},{shift})"),
    "brev": _unary("brev({a},{w})"),
    "bfe": _field,
    "bfi": _field,
    "shf": _funnel,
    "prmt": _permute,
    "lop3": _table,
}
