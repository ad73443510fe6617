"""Constants in PTX: integers, floating-point bits, and constant expressions (PTX ISA, "Constants")."""

from __future__ import annotations

import ast
import re
import struct

_INTEGER = re.compile(r"([+-]?)\s*(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)[uU]?")
_BITS = re.compile(r"0([fF])([0-9a-fA-F]{8})|0([dD])([0-9a-fA-F]{16})")
_DECIMAL = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)")
_EXPRESSION = re.compile(r"[0-9a-fA-FxXuU\s()+*/%<>&|^~-]{1,200}")
_UNSIGNED = re.compile(r"(?<=[0-9a-fA-F])[uU]\b")
_OCTAL = re.compile(r"\b0+(?=[0-7])")
_LONGEST = 400  #: digits of a number in a text that is PTX
_WORD = 1 << 64

WARP_SIZE = 32


def integer(text: str) -> int | None:
    """The value of an integer constant or constant expression; None if it is none."""
    if (found := _INTEGER.fullmatch(text)) is not None and len(text) < _LONGEST:
        digits = found[2]
        octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
        value = int(digits, 8 if octal else 0)
        return -value if found[1] == "-" else value
    if text == "WARP_SZ":
        return WARP_SIZE
    if _EXPRESSION.fullmatch(text) is None or not any(each.isdigit() for each in text):
        return None
    return _expression(text)


def floating(text: str) -> tuple[int, int] | None:
    """Bits and width of a floating-point constant: ``0f3F800000``, ``0d...``, ``1.5`` (64 bits wide); None if none."""
    if (found := _BITS.fullmatch(text)) is not None:
        return (int(found[2], 16), 32) if found[1] else (int(found[4], 16), 64)
    if _DECIMAL.fullmatch(text) is not None:
        return int.from_bytes(struct.pack("<d", float(text)), "little"), 64
    return None


def _expression(text: str) -> int | None:
    plain = _OCTAL.sub("0o", _UNSIGNED.sub("", text.strip()))
    try:
        return _value(ast.parse(plain, mode="eval").body)
    except (SyntaxError, ValueError, ZeroDivisionError, RecursionError, MemoryError):
        return None


def _value(node: ast.expr) -> int:
    """The 64-bit value of an expression's tree. Raises ValueError for what is not an integer expression."""
    match node:
        case ast.Constant(value=int(value)) if value < _WORD:
            return value
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.UnaryOp(op=ast.UAdd(), operand=operand):
            return _value(operand)
        case ast.UnaryOp(op=ast.Invert(), operand=operand):
            return ~_value(operand)
        case ast.BinOp(left=left, op=op, right=right):
            return _binary(op, _value(left), _value(right))
        case _:
            raise ValueError("not an integer expression")


def _binary(op: ast.operator, left: int, right: int) -> int:
    match op:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.Div() | ast.FloorDiv():
            return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        case ast.Mod():
            return abs(left) % abs(right) * (-1 if left < 0 else 1)
        case ast.LShift() | ast.RShift() if 0 <= right < 64:
            return (left << right) % _WORD if isinstance(op, ast.LShift) else left >> right
        case ast.BitAnd():
            return left & right
        case ast.BitOr():
            return left | right
        case ast.BitXor():
            return left ^ right
        case _:
            raise ValueError("not an integer expression")
