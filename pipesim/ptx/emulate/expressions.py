"""What an instruction computes, as the text of a Python expression of numbered registers: nothing of the file is in it.

An expression sees ``R``, the registers of a warp; ``K``, its constants (special registers, addresses, parameters); and
``W``, the warp itself, for what depends on the lanes that execute. PTX ISA, "Instruction Set".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from pipesim.ptx.launch.image import PARAMETERS
from pipesim.ptx.text.instruction import (
    Address,
    Float,
    Immediate,
    Instruction,
    Negated,
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
    """Where the values of a function are: every method gives the text that stands for one."""

    def register(self, name: str) -> int:
        """The number of a register."""

    def width(self, name: str) -> int:
        """The bits of a register."""

    def constant(self, operand: Special | Symbol | Address) -> str:
        """The text that stands for what does not change while a warp runs."""


class NotAnExpression(Exception):  # noqa: N818  # not an error: another part carries the instruction out
    """The instruction computes nothing that these expressions know."""


_INTEGERS = {f"{kind}{width}": (kind, width) for kind in "usb" for width in (8, 16, 32, 64)}
_FLOATS = frozenset({"f16", "f16x2", "bf16", "bf16x2", "f32", "f32x2", "f64", "tf32", "e4m3x2", "e5m2x2", "ue8m0x2"})
_BITS = {"pred": 1, "b128": 128, "f16": 16, "bf16": 16, "f32": 32, "f64": 64}
_BITS |= {name: width for name, (_, width) in _INTEGERS.items()}
_COMPARE = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">=", "lo": "<", "ls": "<=", "hi": ">"}
_COMPARE |= {"hs": ">="}
_LOGIC = {"and": "&", "or": "|", "xor": "^"}
_SIGNLESS = frozenset({"eq", "ne"})
_OF_BITS = frozenset({"mov", "selp", "setp"})  #: also move, choose and compare floating-point numbers
_OF_FLOATS = frozenset({"add", "sub", "mul"})  #: of scalars that decide, such as a factor that may be 0
_ROUNDS_OTHERWISE = ("rz", "rm", "rp", "ftz", "sat")
_FLOAT_WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
_FLOAT_COMPARE = frozenset({*_COMPARE, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}) - {
    "lo",
    "ls",
    "hi",
    "hs",
}


def type_of(instruction: Instruction) -> tuple[str, int]:
    """Kind (u, s, b, or p of predicates) and width of the last type among the modifiers."""
    for modifier in reversed(instruction.modifiers):
        if modifier in _INTEGERS:
            return _INTEGERS[modifier]
        if modifier == "pred":
            return "p", 1
    raise NotAnExpression


def assignments(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """The registers that it writes with their expressions. NotAnExpression if it does more than compute integers."""
    writer = _WRITERS.get(instruction.opcode)
    if instruction.opcode in _OF_FLOATS and instruction.has("f32"):
        return _float_arithmetic(instruction, names)
    if writer is None or (instruction.opcode not in _OF_BITS and not _FLOATS.isdisjoint(instruction.modifiers)):
        raise NotAnExpression
    return writer(instruction, names)


# operands


def operand_text(operand: Operand, names: NameTable, width: int) -> str:
    """An operand that is read, as a value of this width."""
    match operand:
        case Register(name):
            return f"R[{names.register(name)}]"
        case Immediate(value):
            return str((1 if value else 0) if width == 1 else value & ((1 << width) - 1))
        case Negated(Register(name)):
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


def _signed(text: str, width: int) -> str:
    half = 1 << (width - 1)
    if text.isdigit():
        value = int(text)
        return str(value - 2 * half) if value >= half else text
    return f"(({text}^{half})-{half})"


def _to(operand: Operand, names: NameTable, text: str) -> list[Assignment]:
    match operand:
        case Register(name):
            return [(names.register(name), text)]
        case Sink():
            return []
        case RegisterPair(first, second):
            if isinstance(second, Sink):
                return _to(first, names, text)
            raise NotAnExpression
        case _:
            raise NotAnExpression


def _mask(width: int) -> int:
    return (1 << width) - 1


def _operands(instruction: Instruction, count: int) -> tuple[Operand, ...]:
    if len(instruction.operands) != count:
        raise NotAnExpression
    return instruction.operands


Writer = Callable[[Instruction, NameTable], list[Assignment]]


def _binary(template: str) -> Writer:
    """``{a}``, ``{b}``: operands; ``{m}``: the mask of the type."""

    def write(instruction: Instruction, names: NameTable) -> list[Assignment]:
        if instruction.has_any("sat", "cc", "f16", "s16x2", "u16x2"):
            raise NotAnExpression
        _, width = type_of(instruction)
        d, a, b = _operands(instruction, 3)
        text = template.format(a=operand_text(a, names, width), b=operand_text(b, names, width), m=_mask(width))
        return _to(d, names, text)

    return write


def _or(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """Of predicates it is known where one of them holds, whatever the other is."""
    if type_of(instruction)[0] != "p":
        return _binary("{a}|{b}")(instruction, names)
    d, a, b = _operands(instruction, 3)
    return _to(d, names, _either(operand_text(a, names, 1), operand_text(b, names, 1)))


def _either(a: str, b: str) -> str:
    return f"select({a},1,{b})"


def _called(unsigned: str, with_sign: str = "") -> Writer:
    """A function of two operands and the width, another one for signed types."""

    def write(instruction: Instruction, names: NameTable) -> list[Assignment]:
        kind, width = type_of(instruction)
        if instruction.has_any("s16x2", "u16x2"):
            raise NotAnExpression
        d, a, b = _operands(instruction, 3)
        name = with_sign if kind == "s" and with_sign else unsigned
        second = 32 if instruction.opcode in ("shl", "shr") else width
        return _to(d, names, f"{name}({operand_text(a, names, width)},{operand_text(b, names, second)},{width})")

    return write


def _extreme(unsigned: str, with_sign: str) -> Writer:
    def write(instruction: Instruction, names: NameTable) -> list[Assignment]:
        kind, width = type_of(instruction)
        if instruction.has_any("s16x2", "u16x2"):
            raise NotAnExpression
        d, a, b = _operands(instruction, 3)
        texts = operand_text(a, names, width), operand_text(b, names, width)
        call = f"{with_sign}({texts[0]},{texts[1]},{width})" if kind == "s" else f"{unsigned}({texts[0]},{texts[1]})"
        if instruction.has("relu"):  # a negative result becomes 0
            call = f"most_signed({call},0,{width})"
        return _to(d, names, call)

    return write


def _shift_left(instruction: Instruction, names: NameTable) -> list[Assignment]:
    _, width = type_of(instruction)
    d, a, b = _operands(instruction, 3)
    if isinstance(b, Immediate):
        amount = b.value & _mask(32)
        text = operand_text(a, names, width)
        return _to(d, names, f"({text}<<{amount})&{_mask(width)}" if amount < width else "0")
    return _called("shl")(instruction, names)


def _shift_right(instruction: Instruction, names: NameTable) -> list[Assignment]:
    kind, width = type_of(instruction)
    d, a, b = _operands(instruction, 3)
    if isinstance(b, Immediate) and kind != "s":
        amount = b.value & _mask(32)
        return _to(d, names, f"{operand_text(a, names, width)}>>{amount}" if amount < width else "0")
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
        text = f"{_signed(x, width)}*{_signed(y, width)}" if kind == "s" else f"{x}*{y}"
    elif instruction.has("hi"):
        text = f"({_signed(x, width)}*{_signed(y, width)}>>{width})" if kind == "s" else f"({x}*{y}>>{width})"
    else:
        raise NotAnExpression
    if rest:
        text = f"{text}+{operand_text(rest[0], names, result)}"
    return _to(d, names, f"({text})&{_mask(result)}")


def _unary(template: str) -> Writer:
    def write(instruction: Instruction, names: NameTable) -> list[Assignment]:
        kind, width = type_of(instruction)
        d, a = _operands(instruction, 2)
        sign = 1 if kind == "s" else 0
        shift = 1 if instruction.has("shiftamt") else 0
        text = operand_text(a, names, width)
        return _to(d, names, template.format(a=text, m=_mask(width), w=width, sign=sign, shift=shift))

    return write


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
        found = [*_to(d.first, names, first), *_to(d.second, names, second)]
        if len(found) == 2 and f"R[{found[0][0]}]" in second:
            raise NotAnExpression
        return found
    return _to(d, names, first)


def _float_arithmetic(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``add.f32``, ``sub.f32`` and ``mul.f32`` that round to the nearest."""
    if instruction.has_any(*_ROUNDS_OTHERWISE):
        raise NotAnExpression
    d, a, b = _operands(instruction, 3)
    return _to(d, names, f"of_floats('{instruction.opcode}',{operand_text(a, names, 32)},{operand_text(b, names, 32)})")


def _test(instruction: Instruction, a: Operand, b: Operand, names: NameTable) -> str:
    """The comparison of a ``setp``."""
    floating = next((m for m in instruction.modifiers if m in _FLOATS), None)
    if floating is not None:
        compare = next((m for m in instruction.modifiers if m in _FLOAT_COMPARE), None)
        if compare is None or floating not in ("f32", "f64") or instruction.has("ftz"):
            raise NotAnExpression
        width = _FLOAT_WIDTHS[floating]
        return f"compare_floats('{compare}',{operand_text(a, names, width)},{operand_text(b, names, width)},{width})"
    kind, width = type_of(instruction)
    compare = next((m for m in instruction.modifiers if m in _COMPARE), None)
    if compare is None:
        raise NotAnExpression
    x, y = operand_text(a, names, width), operand_text(b, names, width)
    if kind == "s" and compare not in _SIGNLESS:
        x, y = _signed(x, width), _signed(y, width)
    return f"({x}{_COMPARE[compare]}{y})"


def _set_integer(instruction: Instruction, names: NameTable) -> list[Assignment]:
    compare = next((m for m in instruction.modifiers if m in _COMPARE), None)
    kind, width = type_of(instruction)
    if compare is None or instruction.has_any(*_LOGIC):
        raise NotAnExpression
    d, a, b = _operands(instruction, 3)
    x, y = operand_text(a, names, width), operand_text(b, names, width)
    if kind == "s" and compare not in _SIGNLESS:
        x, y = _signed(x, width), _signed(y, width)
    return _to(d, names, f"select({x}{_COMPARE[compare]}{y},4294967295,0)")


def _select(instruction: Instruction, names: NameTable) -> list[Assignment]:
    widths = [_BITS[m] for m in instruction.modifiers if m in _BITS]
    if not widths:
        raise NotAnExpression
    width = widths[-1]
    d, a, b, p = _operands(instruction, 4)
    x, y, z = operand_text(a, names, width), operand_text(b, names, width), operand_text(p, names, 1)
    if isinstance(p, Immediate):
        return _to(d, names, x if p.value else y)
    return _to(d, names, f"(({x} if p else {y}) if (p:={z}).__class__ in PLAIN else select(p,{x},{y}))")


def _move(instruction: Instruction, names: NameTable) -> list[Assignment]:
    width = next((_BITS[m] for m in instruction.modifiers if m in _BITS), 0)
    if not width:
        raise NotAnExpression
    d, a = _operands(instruction, 2)
    if isinstance(d, Vector):
        part = width // len(d.parts)
        text = operand_text(a, names, width)
        found = [(p, f"({text}>>{part * i})&{_mask(part)}") for i, p in enumerate(d.parts)]
        written = [each for p, expression in found for each in _to(p, names, expression)]
        if any(f"R[{register}]" in text for register, _ in written[:-1]):
            raise NotAnExpression  # one of the results is where the value is
        return written
    text = operand_text(a, names, width)
    return _to(d, names, f"({text})&{_mask(width)}" if isinstance(a, Special | Symbol | Address) else text)


def _convert(instruction: Instruction, names: NameTable) -> list[Assignment]:
    kinds = [_INTEGERS[m] for m in instruction.modifiers if m in _INTEGERS]
    if len(kinds) != 2 or instruction.has_any("sat", "pack"):
        raise NotAnExpression
    (to_kind, to_width), (kind, from_width) = kinds
    d, a = _operands(instruction, 2)
    text = operand_text(a, names, from_width)
    held = names.width(d.name) if isinstance(d, Register) and to_kind == "s" else to_width
    if to_width <= from_width:
        text = f"{text}&{_mask(to_width)}"
        if held > to_width:  # a register that is wider gets copies of the sign
            text = f"{_signed(f'({text})', to_width)}&{_mask(held)}"
    else:
        text = f"({text}&{_mask(from_width)})"
        if kind == "s":
            text = f"{_signed(text, from_width)}&{_mask(to_width)}"
    return _to(d, names, text)


def _field(instruction: Instruction, names: NameTable) -> list[Assignment]:
    kind, width = type_of(instruction)
    d, *sources = instruction.operands
    widths = (width, 32, 32) if instruction.opcode == "bfe" else (width, width, 32, 32)
    texts = [operand_text(a, names, w) for a, w in zip(sources, widths, strict=True)]
    tail = f"{width},{1 if kind == 's' else 0}" if instruction.opcode == "bfe" else str(width)
    return _to(d, names, f"{instruction.opcode}({','.join(texts)},{tail})")


def _funnel(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, a, b, c = _operands(instruction, 4)
    name = "funnel_left" if instruction.has("l") else "funnel_right"
    texts = ",".join(operand_text(x, names, 32) for x in (a, b, c))
    return _to(d, names, f"{name}({texts},{1 if instruction.has('wrap') else 0})")


def _permute(instruction: Instruction, names: NameTable) -> list[Assignment]:
    if instruction.modifiers != ("b32",):
        raise NotAnExpression
    d, a, b, c = _operands(instruction, 4)
    return _to(d, names, f"prmt({','.join(operand_text(x, names, 32) for x in (a, b, c))})")


def _table(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, a, b, c, table = _operands(instruction, 5)
    if instruction.modifiers != ("b32",) or not isinstance(table, Immediate):
        raise NotAnExpression
    texts = ",".join(operand_text(x, names, 32) for x in (a, b, c))
    return _to(d, names, f"lop3({texts},{table.value & 255})")


def _convert_address(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``cvta``: generic addresses of shared memory are a window; those of other spaces are the addresses themselves."""
    _, width = type_of(instruction)
    d, a = _operands(instruction, 2)
    text = operand_text(a, names, width)
    shared = instruction.has_any("shared", "shared::cta", "shared::cluster")
    if shared:
        text = f"from_generic({text})" if instruction.has("to") else f"to_generic({text})"
    elif instruction.has_any("param", "param::entry"):
        text = f"({text}-{PARAMETERS})" if instruction.has("to") else f"({text}+{PARAMETERS})"
    return _to(d, names, text)


def _map_rank(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``mapa``: the same place in the CTA of a rank. Without a space the address is generic."""
    _, width = type_of(instruction)
    d, a, b = _operands(instruction, 3)
    x, y = operand_text(a, names, width), operand_text(b, names, 32)
    if instruction.has("shared::cluster"):
        return _to(d, names, f"at_rank({x},{y})")
    return _to(d, names, f"to_generic(at_rank(from_generic({x}),{y}))")


def _rank_of(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, a = _operands(instruction, 2)
    text = operand_text(a, names, 64)
    if not instruction.has("shared::cluster"):
        text = f"from_generic({text})"
    return _to(d, names, f"rank_of({text})")


# what depends on the lanes that execute


def _vote(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, a, *members = instruction.operands
    mode = next((m for m in instruction.modifiers if m in ("all", "any", "uni", "ballot")), "")
    if not mode:
        raise NotAnExpression
    lanes = operand_text(members[0], names, 32) if members else "4294967295"
    return _to(d, names, f"W.vote_{mode}({operand_text(a, names, 1)},{lanes})")


def _shuffle(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, a, b, c, *members = instruction.operands
    mode = next((m for m in instruction.modifiers if m in ("up", "down", "bfly", "idx")), "")
    if not mode:
        raise NotAnExpression
    texts = [operand_text(x, names, 32) for x in (a, b, c)]
    lanes = operand_text(members[0], names, 32) if members else "4294967295"
    value = f"W.shuffle_{mode}({','.join(texts)},{lanes})"
    if isinstance(d, RegisterPair) and not isinstance(d.second, Sink):
        inside = f"W.shuffle_inside('{mode}',{texts[1]},{texts[2]})"
        return [*_to(d.second, names, inside), *_to(d.first, names, value)]
    return _to(d, names, value)


def _elect(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, members = _operands(instruction, 2)
    lanes = operand_text(members, names, 32)
    if isinstance(d, RegisterPair):
        return [*_to(d.first, names, f"W.leader({lanes})"), *_to(d.second, names, f"W.elected({lanes})")]
    return _to(d, names, f"W.leader({lanes})")


def _active(instruction: Instruction, names: NameTable) -> list[Assignment]:
    (d,) = _operands(instruction, 1)
    if instruction.guard is None:
        return _to(d, names, "W.mask")
    holds = f"R[{names.register(instruction.guard.register)}]" + ("^1" if instruction.guard.negated else "")
    return _to(d, names, f"W.vote_ballot({holds},{_mask(32)})")


def _reduce(instruction: Instruction, names: NameTable) -> list[Assignment]:
    kind, width = type_of(instruction)
    d, a, members = _operands(instruction, 3)
    mode = next((m for m in instruction.modifiers if m in ("add", "min", "max", "and", "or", "xor")), "")
    if not mode or width != 32:
        raise NotAnExpression
    lanes = operand_text(members, names, 32)
    return _to(d, names, f"W.reduce('{mode}',{operand_text(a, names, 32)},{lanes},{1 if kind == 's' else 0})")


def _match(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``match.any`` and ``match.all``, which may say besides whether all lanes agree."""
    _, width = type_of(instruction)
    d, a, members = _operands(instruction, 3)
    which = "any" if instruction.has("any") else "all"
    call = f"W.match_{which}({operand_text(a, names, width)},{operand_text(members, names, 32)})"
    if isinstance(d, RegisterPair):
        return [*_to(d.first, names, call), *_to(d.second, names, f"({call}!=0)")]
    return _to(d, names, call)


_WRITERS: Mapping[str, Writer] = {
    "add": _binary("({a}+{b})&{m}"),
    "sub": _binary("({a}-{b})&{m}"),
    "and": _binary("{a}&{b}"),
    "or": _or,
    "xor": _binary("{a}^{b}"),
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
    "setp": _set_predicate,
    "set": _set_integer,
    "selp": _select,
    "mov": _move,
    "cvt": _convert,
    "bfe": _field,
    "bfi": _field,
    "shf": _funnel,
    "prmt": _permute,
    "lop3": _table,
    "cvta": _convert_address,
    "mapa": _map_rank,
    "getctarank": _rank_of,
    "vote": _vote,
    "shfl": _shuffle,
    "elect": _elect,
    "match": _match,
    "activemask": _active,
    "redux": _reduce,
}
