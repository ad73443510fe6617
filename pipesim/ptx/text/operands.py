"""The operands of one instruction: text becomes registers, numbers, addresses and vectors."""

import ast
import operator
import re
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from pipesim.ptx.text.instruction import (
    Address,
    Arguments,
    CodeLabel,
    Float,
    Immediate,
    NegatedPredicate,
    Operand,
    Register,
    RegisterPair,
    Sink,
    Special,
    Symbol,
    TensorAddress,
    Vector,
)

_NUMBERED = re.compile(r"(.*?)([0-9]+)((?:\.[xyzw])?)")


@dataclass
class Names:
    """The names of one function: each resolved register's type, and how often each label and name was declared."""

    registers: dict[str, str] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)
    vectors: dict[str, Vector] = field(default_factory=dict)  #: the components of ``.reg .v4``
    blocks: int = 0

    def unique(self, name: str, block: int) -> str:
        """``name``, or ``name$3`` if another block of this function declared it before."""
        found, more = name, 0
        while found in self.taken:
            found = f"{name}${block}" if not more else f"{name}${block}${more}"
            more += 1
        self.taken.add(found)
        return found


@dataclass
class NameScope:
    """One block of braces. ``parsed`` remembers operands by their text, as far as they depend on this block."""

    parent: "NameScope | None"
    names: Names
    number: int = 0
    depth: int = 0
    declared: dict[str, tuple[str, bool]] = field(default_factory=dict)  #: the function-wide name; is it a register?
    #: Of ``%r<9>`` count, type, suffix, and the components of each ("xy").
    families: dict[str, tuple[int, str, str, str]] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)
    parsed: dict[str, Operand] = field(default_factory=dict)

    def block(self) -> "NameScope":
        """A block inside this one. Until it declares something, it shares the operands seen so far."""
        self.names.blocks += 1
        return NameScope(self, self.names, self.names.blocks, self.depth + 1, parsed=self.parsed)

    def declare(self, name: str, *, register: bool, kind: str = "") -> str:
        """Declare a register or a variable; what it is called in the whole function."""
        self._own()
        if self.parent is not None and (outer := self.parent.lookup(name)) is not None:
            self.names.taken.add(outer[0])
        found = self.names.unique(name, self.number)
        self.declared[name] = (found, register)
        if register:
            self.names.registers[found] = kind
        return found

    def declare_family(self, prefix: str, count: int, kind: str, parts: str = "") -> None:
        """``.reg .b32 %r<9>``: %r0 to %r8. Each gets its entry where it is first used."""
        self._own()
        hidden = self._outer_family(prefix)
        self.families[prefix] = (count, kind, f"${self.number}" if hidden else "", parts)

    def label(self, name: str) -> str | None:
        """Declare a label; None if this block has it already."""
        if name in self.labels:
            return None
        self.labels[name] = self.names.unique(f":{name}", self.number)[1:]
        return self.labels[name]

    def target(self, name: str) -> str | None:
        """The function-wide name of a label that is visible here, None if there is none."""
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.labels:
                return scope.labels[name]
            scope = scope.parent
        return None

    def lookup(self, name: str) -> tuple[str, bool] | None:
        """The function-wide name, and whether it is a register; None if nothing here declares it."""
        numbered = _NUMBERED.fullmatch(name)
        scope: NameScope | None = self
        while scope is not None:
            if name in scope.declared:
                return scope.declared[name]
            if numbered is not None and scope.families:
                found = scope.member(name, numbered)
                if found is not None:
                    return found
            scope = scope.parent
        return None

    def family(self, name: str) -> int | None:
        """How many registers the family of this name has, if there is one here: a number above was not declared."""
        numbered = _NUMBERED.fullmatch(name)
        scope: NameScope | None = self
        while scope is not None and numbered is not None:
            if numbered[1] in scope.families:
                return scope.families[numbered[1]][0]
            scope = scope.parent
        return None

    def member(self, name: str, numbered: re.Match[str]) -> tuple[str, bool] | None:
        """The register of this number in a family of this block, or its component; None if the block has none."""
        digits, part = numbered[2], numbered[3][1:]
        count, kind, suffix, parts = self.families.get(numbered[1], (0, "", "", ""))
        if len(digits) > 10 or int(digits) >= count or (len(digits) > 1 and digits[0] == "0") or part not in parts:
            return None
        self.names.registers[name + suffix] = kind
        self.declared[name] = (name + suffix, True)
        if parts and not part:
            each = (self.lookup(f"{name}.{one}") for one in parts)
            self.names.vectors[name + suffix] = Vector(tuple(Register(found[0]) for found in each if found is not None))
        return self.declared[name]

    def _outer_family(self, prefix: str) -> bool:
        scope = self.parent
        while scope is not None:
            if prefix in scope.families:
                return True
            scope = scope.parent
        return False

    def _own(self) -> None:
        """From here on, a name may mean something else than outside."""
        if self.parent is not None and self.parsed is self.parent.parsed:
            self.parsed = {}


_INTEGER = re.compile(r"([+-]?)\s*(0[xX][0-9a-fA-F]+|0[bB][01]+|0[0-7]*|[1-9][0-9]*)[uU]?")
_BITS = re.compile(r"0([fF])([0-9a-fA-F]{8})|0([dD])([0-9a-fA-F]{16})")
_DECIMAL = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*(?:[eE][+-]?[0-9]+)?|[eE][+-]?[0-9]+)")
_EXPRESSION = re.compile(r"[0-9a-fA-FxXuU\s()+*/%<>&|^~-]{1,200}")
_UNSIGNED = re.compile(r"(?<=[0-9a-fA-F])[uU]\b")
_OCTAL = re.compile(r"\b0+(?=[0-7])")
_LONGEST_NUMBER = 400  #: digits of a number in a text that is PTX
_WORD = 1 << 64

WARP_SIZE = 32


def integer(text: str) -> int | None:
    """The value of an integer constant or constant expression; None if it is none."""
    if (found := _INTEGER.fullmatch(text)) is not None and len(text) < _LONGEST_NUMBER:
        digits = found[2]
        octal = len(digits) > 1 and digits.isdigit() and digits[0] == "0"
        value = int(digits, 8 if octal else 0)
        return -value if found[1] == "-" else value
    if text == "WARP_SZ":
        return WARP_SIZE
    if _EXPRESSION.fullmatch(text) is None or not any(each.isdigit() for each in text):
        return None
    return _expression(text)


def parse_float(text: str) -> tuple[int, int] | None:
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


_UNARY: dict[type[ast.unaryop], Callable[[int], int]]
_UNARY = {ast.USub: operator.neg, ast.UAdd: operator.pos, ast.Invert: operator.invert}
_BINARY: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_, ast.BitXor: operator.xor,
}  # fmt: skip


def _value(node: ast.expr) -> int:
    """The 64-bit value of an expression's tree. Raises ValueError for what is not an integer expression."""
    match node:
        case ast.Constant(value=int(value)) if value < _WORD:
            return value
        case ast.UnaryOp(op=op, operand=operand) if type(op) in _UNARY:
            return _UNARY[type(op)](_value(operand))
        case ast.BinOp(left=left, op=op, right=right):
            return binary(op, _value(left), _value(right))
        case _:
            raise ValueError("not an integer expression")


def binary(op: ast.operator, left: int, right: int) -> int:
    """An operation of whole numbers as PTX and C++ have it: a quotient is cut off towards 0.

    Raises ValueError for another one, ZeroDivisionError.
    """
    match op:
        case ast.Div() | ast.FloorDiv():
            return abs(left) // abs(right) * (1 if (left < 0) == (right < 0) else -1)
        case ast.Mod():
            return abs(left) % abs(right) * (-1 if left < 0 else 1)
        case ast.LShift() | ast.RShift() if 0 <= right < 64:
            return (left << right) % _WORD if isinstance(op, ast.LShift) else left >> right
        case _ if type(op) in _BINARY:
            return _BINARY[type(op)](left, right)
        case _:
            raise ValueError("not an integer expression")


NAME = r"(?:[A-Za-z][\w$]*|[_$%][\w$]+)"  #: PTX ISA, "Identifiers"
_NAME = re.compile(rf"{NAME}(?:\.[xyzwrgba])?")
_OFFSET = re.compile(rf"({NAME}(?:\.[xyzw])?)\s*(?:([+-])\s*(.+)|\[\s*(.+)\s*\])", re.DOTALL)
_INSIDE = re.compile(r"\[[^\[\],]*+,")  #: to the next bracket only: there may be very many that are never closed
_BRACKET = re.compile(r"\{[^\[{(\]})]*+\}|[\[{(\]}),]")  #: or a list in braces as a whole: it may be long
_OPEN, _CLOSE = "[{(", "]})"
_DEEPEST = 4
_MOST_PARTS = 1024  #: of a vector, which has up to 128, or of a call's arguments
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


def _parts(text: str, scope: NameScope, depth: int) -> tuple[Operand, ...]:
    """The operands inside a pair of brackets."""
    parts = split(text[1:-1].strip())
    if len(parts) > _MOST_PARTS:
        raise OperandError(f"{len(parts):,} operands are in one pair of brackets; at most {_MOST_PARTS:,} are possible")
    return tuple(_part(part, scope, depth) for part in parts)


def _operand(text: str, scope: NameScope, depth: int) -> Operand:
    if _NAME.fullmatch(text) is not None:
        return _name(text, scope)
    if depth > _DEEPEST:
        raise OperandError("brackets are nested too deeply")
    first, last = text[:1], text[-1:]
    if first == "[" and last == "]":
        return _address(text[1:-1].strip(), scope, depth)
    if first == "{" and last == "}":
        return Vector(_parts(text, scope, depth))
    if text == "_":
        return Sink()
    if (value := integer(text)) is not None:
        return Immediate(value)
    if (bits := parse_float(text)) is not None:
        return Float(*bits)
    if first == "(" and last == ")":
        return Arguments(_parts(text, scope, depth))
    if first == "!":
        return _parse_negated(text[1:].strip(), scope, depth)
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
        return (scope.names.vectors.get(known[0]) or Register(known[0])) if known[1] else Symbol(known[0])
    bare, dot, _ = text.partition(".")
    if text.startswith("%"):
        if (count := scope.family(bare)) is not None:
            raise OperandError(f"{bare} is not declared: {count:,} registers have its name, and numbers from 0 on")
        return Special(text)
    if dot:
        raise OperandError(f"{_short(text)} is not an operand")
    return Immediate(WARP_SIZE) if text == "WARP_SZ" else Symbol(text)


def _parse_negated(text: str, scope: NameScope, depth: int) -> Operand:
    found = _operand(text, scope, depth + 1)
    match found:
        case Register():
            return NegatedPredicate(found)
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
