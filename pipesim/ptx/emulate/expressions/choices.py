"""Comparisons, and what follows from them: predicates, and values that are chosen."""

from __future__ import annotations

from pipesim.ptx.emulate.expressions.arithmetic import binary
from pipesim.ptx.emulate.expressions.operands import (
    BITS,
    FLOATS,
    Assignment,
    NameTable,
    NotAnExpression,
    Writer,
    assigned,
    operand_text,
    operands_of,
    signed,
    type_of,
)
from pipesim.ptx.text.instruction import Immediate, Instruction, Operand, RegisterPair

_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">"}
_COMPARE |= {"hs": ">="}
_LOGIC = {"and": "&", "or": "|", "xor": "^"}
_SIGNLESS = frozenset({"eq", "ne"})
_FLOAT_WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
_FLOAT_COMPARE = frozenset({*_COMPARE, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}) - {
    "lo",
    "ls",
    "hi",
    "hs",
}


def _or(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """Of predicates it is known where one of them holds, whatever the other is."""
    if type_of(instruction)[0] != "p":
        return binary("{a}|{b}")(instruction, names)
    d, a, b = operands_of(instruction, 3)
    return assigned(d, names, _either(operand_text(a, names, 1), operand_text(b, names, 1)))


def _either(a: str, b: str) -> str:
    return f"select({a},1,{b})"


def _set_predicate(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``setp`` with one or two results, and a boolean operation with a third operand."""
    logic = next((_LOGIC[m] for m in instruction.modifiers if m in _LOGIC), None)
    d, a, b, *rest = instruction.operands
    test = _test(instruction, a, b, names)
    first, second = test, f"({test}^1)"
    if rest:
        if logic is None:
            raise NotAnExpression
        third = operand_text(rest[0], names, 1)
        first, second = [
            _either(text, third) if logic == "|" else f"({text}{logic}{third})" for text in (first, second)
        ]
    if isinstance(d, RegisterPair):
        found = [*assigned(d.first, names, first), *assigned(d.second, names, second)]
        if len(found) == 2 and f"R[{found[0][0]}]" in second:
            raise NotAnExpression
        return found
    return assigned(d, names, first)


def _test(instruction: Instruction, a: Operand, b: Operand, names: NameTable) -> str:
    """The comparison of a ``setp``."""
    floating = next((m for m in instruction.modifiers if m in FLOATS), None)
    if floating is not None:
        compare = next((m for m in instruction.modifiers if m in _FLOAT_COMPARE), None)
        if compare is None or floating not in ("f32", "f64") or instruction.has("ftz"):
            raise NotAnExpression
        width = _FLOAT_WIDTHS[floating]
        return f"compare_floats('{compare}',{operand_text(a, names, width)},{operand_text(b, names, width)},{width})"
    return _integer_test(instruction, a, b, names)


def _integer_test(instruction: Instruction, a: Operand, b: Operand, names: NameTable) -> str:
    """The comparison of integers that a modifier names."""
    kind, width = type_of(instruction)
    compare = next((m for m in instruction.modifiers if m in _COMPARE), None)
    if compare is None:
        raise NotAnExpression
    x, y = operand_text(a, names, width), operand_text(b, names, width)
    if kind == "s" and compare not in _SIGNLESS:
        x, y = signed(x, width), signed(y, width)
    return f"({x}{_COMPARE[compare]}{y})"


def _set_integer(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``set``: all ones or 0."""
    if instruction.has_any(*_LOGIC):
        raise NotAnExpression
    d, a, b = operands_of(instruction, 3)
    return assigned(d, names, f"select({_integer_test(instruction, a, b, names)},4294967295,0)")


def _select(instruction: Instruction, names: NameTable) -> list[Assignment]:
    widths = [BITS[m] for m in instruction.modifiers if m in BITS]
    if not widths:
        raise NotAnExpression
    width = widths[-1]
    d, a, b, p = operands_of(instruction, 4)
    x, y, z = operand_text(a, names, width), operand_text(b, names, width), operand_text(p, names, 1)
    if isinstance(p, Immediate):
        return assigned(d, names, x if p.value else y)
    return assigned(d, names, f"(({x} if p else {y}) if (p:={z}).__class__ in PLAIN else select(p,{x},{y}))")


WRITERS: dict[str, Writer] = {
    "or": _or,
    "setp": _set_predicate,
    "set": _set_integer,
    "selp": _select,
}
