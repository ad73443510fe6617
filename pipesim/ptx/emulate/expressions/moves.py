"""Values that are moved: converted, made into addresses of other spaces and CTAs, and exchanged between lanes."""

from collections.abc import Callable
from typing import Protocol

from pipesim.ptx.launch.image import PARAMETERS
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
            texts = (f"({operand_text(p, names, part)}&{mask_of(part)})" for p in parts)  # of which one may be data
            return "|".join(f"({text}<<{part * i})" for i, text in enumerate(texts))
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


def _move(instruction: Instruction, names: NameTable) -> list[Assignment]:
    width = next((BITS[m] for m in instruction.modifiers if m in BITS), 0)
    if not width:
        raise NotAnExpression
    d, a = operands_of(instruction, 2)
    if isinstance(d, Vector):
        part = width // len(d.parts)
        text = operand_text(a, names, width)
        found = [(p, f"({text}>>{part * i})&{mask_of(part)}") for i, p in enumerate(d.parts)]
        written = [each for p, expression in found for each in assignment_to(p, names, expression)]
        if any(f"R[{register}]" in text for register, _ in written[:-1]):
            raise NotAnExpression  # one of the results is where the value is
        return written
    text = operand_text(a, names, width)
    return assignment_to(d, names, f"({text})&{mask_of(width)}" if isinstance(a, Special | Symbol | Address) else text)


def _convert(instruction: Instruction, names: NameTable) -> list[Assignment]:
    kinds = [INTEGERS[m] for m in instruction.modifiers if m in INTEGERS]
    if len(kinds) != 2 or instruction.has("pack"):
        raise NotAnExpression
    (to_kind, to_width), (kind, from_width) = kinds
    d, a = operands_of(instruction, 2)
    text = operand_text(a, names, from_width)
    held = names.width(d.name) if isinstance(d, Register) and to_kind == "s" else to_width
    if to_width <= from_width or instruction.has("sat"):
        if instruction.has("sat"):
            text = f"({text}&{mask_of(from_width)})"
            text = f"saturated({signed(text, from_width) if kind == 's' else text},{to_width},{int(to_kind == 's')})"
        else:
            text = f"{text}&{mask_of(to_width)}"
        if held > to_width:  # a register that is wider gets copies of the sign
            text = f"{signed(f'({text})', to_width)}&{mask_of(held)}"
    else:
        text = f"({text}&{mask_of(from_width)})"
        if kind == "s":
            text = f"{signed(text, from_width)}&{mask_of(to_width)}"
    return assignment_to(d, names, text)


def _convert_address(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``cvta``: generic addresses of shared memory are a window; those of other spaces are the addresses themselves."""
    _, width = type_of(instruction)
    d, a = operands_of(instruction, 2)
    text = operand_text(a, names, width)
    shared = instruction.has_any("shared", "shared::cta", "shared::cluster")
    if shared:
        text = f"from_generic({text})" if instruction.has("to") else f"to_generic({text})"
    elif instruction.has_any("param", "param::entry"):
        text = f"({text}-{PARAMETERS})" if instruction.has("to") else f"({text}+{PARAMETERS})"
    return assignment_to(d, names, text)


def _map_rank(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``mapa``: the same place in the CTA of a rank. Without a space the address is generic."""
    _, width = type_of(instruction)
    d, a, b = operands_of(instruction, 3)
    x, y = operand_text(a, names, width), operand_text(b, names, 32)
    if instruction.has("shared::cluster"):
        return assignment_to(d, names, f"at_rank({x},{y})")
    return assignment_to(d, names, f"to_generic(at_rank(from_generic({x}),{y}))")


def _rank_of(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, a = operands_of(instruction, 2)
    text = operand_text(a, names, 64)
    if not instruction.has("shared::cluster"):
        text = f"from_generic({text})"
    return assignment_to(d, names, f"rank_of({text})")


MOVES: dict[str, Writer] = {
    "mov": _move,
    "cvt": _convert,
    "cvta": _convert_address,
    "mapa": _map_rank,
    "getctarank": _rank_of,
}


def _among(members: Operand | None, names: NameTable, exchange: str) -> str:
    """An exchange of a warp's lanes among those that the member mask of each names."""
    lanes = operand_text(members, names, 32) if members is not None else "4294967295"
    return f"W.among({lanes},W.{exchange})"


def _vote(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, a, *members = instruction.operands
    mode = next((m for m in instruction.modifiers if m in ("all", "any", "uni", "ballot")), "")
    if not mode:
        raise NotAnExpression
    exchange = f"vote_{mode},{operand_text(a, names, 1)}"
    return assignment_to(d, names, _among(next(iter(members), None), names, exchange))


def _shuffle(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, a, b, c, *members = instruction.operands
    mode = next((m for m in instruction.modifiers if m in ("up", "down", "bfly", "idx")), "")
    if not mode:
        raise NotAnExpression
    texts = [operand_text(x, names, 32) for x in (a, b, c)]
    exchange = f"shuffle,{','.join(texts)},'{mode}'"
    value = _among(next(iter(members), None), names, exchange)
    if isinstance(d, RegisterPair) and not isinstance(d.second, Sink):
        inside = f"W.shuffle_inside('{mode}',{texts[1]},{texts[2]})"
        return [*assignment_to(d.second, names, inside), *assignment_to(d.first, names, value)]
    return assignment_to(d, names, value)


def _elect(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, members = operands_of(instruction, 2)
    leader = _among(members, names, "leader")
    if isinstance(d, RegisterPair):
        elected = assignment_to(d.second, names, _among(members, names, "elect_lane"))
        return [*assignment_to(d.first, names, leader), *elected]
    return assignment_to(d, names, leader)


def _active(instruction: Instruction, names: NameTable) -> list[Assignment]:
    (d,) = operands_of(instruction, 1)
    if instruction.guard is None:
        return assignment_to(d, names, "W.mask")
    holds = f"R[{names.register(instruction.guard.register)}]" + ("^1" if instruction.guard.negated else "")
    return assignment_to(d, names, f"W.vote_ballot({holds},{mask_of(32)})")


def _reduce(instruction: Instruction, names: NameTable) -> list[Assignment]:
    kind, width = type_of(instruction)
    d, a, members = operands_of(instruction, 3)
    mode = next((m for m in instruction.modifiers if m in ("add", "min", "max", "and", "or", "xor")), "")
    if not mode or width != 32:
        raise NotAnExpression
    exchange = f"reduce,{operand_text(a, names, 32)},'{mode}',{1 if kind == 's' else 0}"
    return assignment_to(d, names, _among(members, names, exchange))


def _match(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``match.any`` and ``match.all``, which may say besides whether all lanes agree."""
    _, width = type_of(instruction)
    d, a, members = operands_of(instruction, 3)
    which = "any" if instruction.has("any") else "all"
    call = _among(members, names, f"match_{which},{operand_text(a, names, width)}")
    if isinstance(d, RegisterPair):
        return [*assignment_to(d.first, names, call), *assignment_to(d.second, names, f"(+({call}!=0))")]
    return assignment_to(d, names, call)


LANES: dict[str, Writer] = {
    "vote": _vote,
    "shfl": _shuffle,
    "elect": _elect,
    "match": _match,
    "activemask": _active,
    "redux": _reduce,
}
