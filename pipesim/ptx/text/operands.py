"""The operands of one instruction: text becomes registers, constants, addresses and vectors."""

from __future__ import annotations

import re

from pipesim.ptx.text.instruction import (
    Address,
    Arguments,
    CodeLabel,
    Float,
    Immediate,
    Negated,
    Operand,
    Register,
    RegisterPair,
    Sink,
    Special,
    Symbol,
    TensorAddress,
    Vector,
)
from pipesim.ptx.text.numbers import WARP_SIZE, floating, integer
from pipesim.ptx.text.scope import NameScope

NAME = r"(?:[A-Za-z][\w$]*|[_$%][\w$]+)"  #: PTX ISA, "Identifiers"
_NAME = re.compile(rf"{NAME}(?:\.[xyzwrgba])?")
_OFFSET = re.compile(rf"({NAME}(?:\.[xyzw])?)\s*(?:([+-])\s*(.+)|\[\s*(.+)\s*\])", re.DOTALL)
_INSIDE = re.compile(r"\[[^\[\],]*+,")  #: to the next bracket only: there may be very many that are never closed
_BRACKET = re.compile(r"\{[^\[{(\]})]*+\}|[\[{(\]}),]")  #: or a list in braces as a whole: it may be long
_OPEN, _CLOSE = "[{(", "]})"
_DEEPEST = 4
_LONGEST = 60  #: characters of a text in a message


class OperandError(ValueError):
    """A text that is not an operand; the message says why, the reader adds the line."""


def split(text: str) -> list[str]:
    """The parts of a list between commas, without those inside brackets."""
    if not text:
        return []
    if "{" not in text and "(" not in text and _INSIDE.search(text) is None:
        return [part.strip() for part in text.split(",")]
    parts, depth, start = [], 0, 0
    for found in _BRACKET.finditer(text):
        if len(found[0]) > 1:
            continue
        if found[0] in _OPEN:
            depth += 1
        elif found[0] in _CLOSE:
            depth -= 1
        elif depth == 0:
            parts.append(text[start : found.start()].strip())
            start = found.end()
    return [*parts, text[start:].strip()]


def operand(text: str, scope: NameScope) -> Operand:
    """The operand that a text spells in a block. Raises OperandError."""
    found = scope.parsed.get(text)
    if found is None:
        found = scope.parsed[text] = _operand(text, scope, 0)
    return found


def label(text: str) -> CodeLabel:
    """The label that a branch names, not yet resolved. Raises OperandError."""
    if _NAME.fullmatch(text) is None:
        raise OperandError(f"{_short(text)} is not a label")
    return CodeLabel(text)


def _operand(text: str, scope: NameScope, depth: int) -> Operand:
    if _NAME.fullmatch(text) is not None:
        return _name(text, scope)
    if depth > _DEEPEST:
        raise OperandError("brackets are nested too deeply")
    first, last = text[:1], text[-1:]
    if first == "[" and last == "]":
        return _address(text[1:-1].strip(), scope, depth)
    if first == "{" and last == "}":
        return Vector(tuple(_part(part, scope, depth) for part in split(text[1:-1].strip())))
    if text == "_":
        return Sink()
    if (value := integer(text)) is not None:
        return Immediate(value)
    if (bits := floating(text)) is not None:
        return Float(*bits)
    if first == "(" and last == ")":
        return Arguments(tuple(_part(part, scope, depth) for part in split(text[1:-1].strip())))
    if first == "!":
        return _negated(text[1:].strip(), scope, depth)
    if "|" in text:
        one, _, other = text.partition("|")
        return RegisterPair(_part(one.strip(), scope, depth), _part(other.strip(), scope, depth))
    if _OFFSET.fullmatch(text) is not None:
        return _place(text, scope)
    raise OperandError(f"{_short(text)} is not an operand" if text else "an operand is missing")


def _part(text: str, scope: NameScope, depth: int) -> Operand:
    """One element of a vector or a list; those that are names are remembered."""
    found = scope.parsed.get(text)
    if found is None:
        found = _operand(text, scope, depth + 1)
        if type(found) is Register:
            scope.parsed[text] = found
    return found


def _name(text: str, scope: NameScope) -> Operand:
    """A register, a special register, a variable or a function."""
    known = scope.lookup(text)
    if known is not None:
        return Register(known[0]) if known[1] else Symbol(known[0])
    bare, dot, _ = text.partition(".")
    if text.startswith("%"):
        if (count := scope.family(bare)) is not None:
            raise OperandError(f"{bare} is not declared: {count:,} registers have its name, and numbers from 0 on")
        return Special(text)
    if dot:
        raise OperandError(f"{_short(text)} is not an operand")
    return Immediate(WARP_SIZE) if text == "WARP_SZ" else Symbol(text)


def _negated(text: str, scope: NameScope, depth: int) -> Operand:
    found = _operand(text, scope, depth + 1)
    match found:
        case Register():
            return Negated(found)
        case Immediate(value):
            return Immediate(int(not value))
        case _:
            raise OperandError(f"{_short(text)} after ! is not a predicate")


def _address(text: str, scope: NameScope, depth: int) -> Operand:
    if not text:
        raise OperandError("an address is missing")
    place, *rest = split(text)
    if not rest:
        return _place(place, scope)
    coordinates = [_part(part, scope, depth) for part in rest]
    only = coordinates[0] if len(coordinates) == 1 else None
    return TensorAddress(_place(place, scope), only if isinstance(only, Vector) else Vector(tuple(coordinates)))


def _place(text: str, scope: NameScope) -> Address:
    """``base``, ``base + offset`` or ``base[offset]``."""
    found = _OFFSET.fullmatch(text)
    name, offset = text, 0
    if found is not None:
        name, amount = found[1], integer((found[3] or found[4]).strip())
        if amount is None:
            raise OperandError(f"{_short(text)} is not an address")
        offset = -amount if found[2] == "-" else amount
    base = integer(name) if name[:1].isdigit() or name[:1] == "-" else None
    if base is not None:
        return Address(Immediate(base), offset)
    if _NAME.fullmatch(name) is None:
        raise OperandError(f"{_short(text)} is not an address")
    known = _name(name, scope)
    if not isinstance(known, Register | Symbol):
        raise OperandError(f"{name} is neither a register nor a variable")
    return Address(known, offset)


def _short(text: str) -> str:
    """The text in quotes, cut where it is long."""
    one = " ".join(text[:_LONGEST].split())
    return repr(one + "..." if len(text) > _LONGEST else one)
