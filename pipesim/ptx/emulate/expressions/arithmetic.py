"""Arithmetic of integers, of bits, and of the few floating-point numbers that decide; comparisons and choices."""

from pipesim.ptx.emulate.expressions.moves import (
    BITS,
    FLOATS,
    Assignment,
    NameTable,
    NotAnExpression,
    Writer,
    assignment_to,
    mask_of,
    operand_text,
    operands_of,
    signed,
    type_of,
)
from pipesim.ptx.flow.opcodes import COMPARED
from pipesim.ptx.flow.uses import CARRY, WITH_CARRY
from pipesim.ptx.text.instruction import Immediate, Instruction, Operand, RegisterPair

_MOST_INDEX = 24  #: bits of an index that stays in shared memory
_ROUNDS_OTHERWISE = ("rz", "rm", "rp", "ftz", "sat")


def _of_words(template: str, with_sign: str = "", *, short: int = 0) -> Writer:
    """An expression of operands that are words of the type, the last ``short`` of 32 bits; another for signed types.

    ``{0}``, ``{1}`` are the operands, ``{w}`` is the width, ``{m}`` its mask; ``{sign}``, ``{wrap}``, ``{shiftamt}``: 1
    where the type has a sign, and where the modifier is there.
    """
    count = next(n for n in range(5) if f"{{{n}}}" not in template)

    def write(instruction: Instruction, names: NameTable) -> list[Assignment]:
        kind, width = type_of(instruction)
        d, *operands = operands_of(instruction, 1 + count)
        texts = [operand_text(a, names, width if n < count - short else 32) for n, a in enumerate(operands)]
        flags = {each: int(instruction.has(each)) for each in ("wrap", "shiftamt")}
        chosen = with_sign if with_sign and kind == "s" else template
        text = chosen.format(*texts, w=width, m=mask_of(width), sign=int(kind == "s"), **flags)
        return assignment_to(d, names, text)

    return write


def _sum(sign: str) -> Writer:
    """``add`` and ``sub``, also those that saturate, and that write or read the carry (``addc``, ``subc``)."""
    plain = _of_words("({0}" + sign + "{1})&{m}")

    def write(instruction: Instruction, names: NameTable) -> list[Assignment]:
        kind, width = type_of(instruction)
        carries = instruction.has("cc") or instruction.opcode in WITH_CARRY
        if not carries and not instruction.has("sat"):
            return plain(instruction, names)
        d, a, b = operands_of(instruction, 3)
        x, y = operand_text(a, names, width), operand_text(b, names, width)
        if carries:
            return _with_carry(instruction, names, x + sign + y, sign, width)
        if (kind, width) != ("s", 32):
            raise NotAnExpression
        return assignment_to(d, names, f"saturated({signed(x, width)}{sign}{signed(y, width)},{width},1)")

    return write


def _with_carry(instruction: Instruction, names: NameTable, text: str, sign: str, width: int) -> list[Assignment]:
    """The carry holds the whole sum until the result has been taken of it, since that may be one of its operands."""
    d, carry = instruction.operands[0], names.register(CARRY)
    if instruction.opcode in WITH_CARRY:
        text += f"{sign}R[{carry}]"
    if not instruction.has("cc"):
        return assignment_to(d, names, f"({text})&{mask_of(width)}")
    result = assignment_to(d, names, f"R[{carry}]&{mask_of(width)}")
    return [(carry, text), *result, (carry, f"(R[{carry}]>>{width})&1")]


def _extreme(name: str) -> Writer:
    plain = _of_words(name + "({0},{1})", name + "_signed({0},{1},{w})")

    def write(instruction: Instruction, names: NameTable) -> list[Assignment]:
        found = plain(instruction, names)
        if not instruction.has("relu"):
            return found
        return [(register, f"most_signed({text},0,32)") for register, text in found]  # a negative result becomes 0

    return write


def _shift_left(instruction: Instruction, names: NameTable) -> list[Assignment]:
    _, width = type_of(instruction)
    d, a, b = operands_of(instruction, 3)
    if isinstance(b, Immediate):
        amount = b.value & mask_of(32)
        text = operand_text(a, names, width)
        return assignment_to(d, names, f"({text}<<{amount})&{mask_of(width)}" if amount < width else "0")
    return _of_words("shl({0},{1},{w})", short=1)(instruction, names)


def _shift_right(instruction: Instruction, names: NameTable) -> list[Assignment]:
    kind, width = type_of(instruction)
    d, a, b = operands_of(instruction, 3)
    if isinstance(b, Immediate) and kind != "s":
        amount = b.value & mask_of(32)
        text = f"{operand_text(a, names, width)}>>{amount}" if amount < width else "0"
        few = width - _MOST_INDEX <= amount < width  # bits, as of an index
        return assignment_to(d, names, f"at_most({text},{mask_of(width - amount)})" if few else text)
    return _of_words("shr({0},{1},{w})", "sar({0},{1},{w})", short=1)(instruction, names)


def _multiply(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``mul`` and ``mad``, also ``madc``."""
    kind, width = type_of(instruction)
    if instruction.has("sat"):
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
    if instruction.has("cc") or instruction.opcode in WITH_CARRY:
        whole = f"(({text})&{mask_of(width)})+{operand_text(rest[0], names, width)}"
        return _with_carry(instruction, names, whole, "+", width)
    if rest:
        text = f"{text}+{operand_text(rest[0], names, result)}"
    return assignment_to(d, names, f"({text})&{mask_of(result)}")


def _multiply_24(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``mul24`` and ``mad24``: the lower or the upper 32 of 48 bits."""
    kind, _ = type_of(instruction)
    if instruction.has("sat"):
        raise NotAnExpression
    d, a, b, *rest = instruction.operands
    x, y = (_part(operand_text(each, names, 32), 0, 24, kind) for each in (a, b))
    text = f"({x}*{y}>>{16 if instruction.has('hi') else 0})" + (f"+{operand_text(rest[0], names, 32)}" if rest else "")
    return assignment_to(d, names, f"({text})&{mask_of(32)}")


def _part(text: str, at: int, width: int, kind: str) -> str:
    """Some bits of a value, as a number of this kind."""
    found = f"({text}>>{at}&{mask_of(width)})"
    return signed(found, width) if kind == "s" else found


def _dot_product(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``dp4a``: four products of bytes and a sum."""
    kinds = instruction.modifiers
    d, *operands = operands_of(instruction, 4)
    x, y, z = (operand_text(each, names, 32) for each in operands)
    terms = [f"{_part(x, at, 8, kinds[0][0])}*{_part(y, at, 8, kinds[1][0])}" for at in (0, 8, 16, 24)]
    return assignment_to(d, names, f"({'+'.join(terms)}+{z})&{mask_of(32)}")


def _choose_by_sign(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``slct``: by the sign of a word, which is of the last type; the others are of the first.

    Not by that of a float: of -0 it chooses as of 0, and of a NaN the second.
    """
    if instruction.modifiers[-1] != "s32":
        raise NotAnExpression
    d, a, b, c = operands_of(instruction, 4)
    width = BITS[instruction.modifiers[0]]
    x, y, z = (operand_text(each, names, width) for each in (a, b, c))
    return assignment_to(d, names, f"select(({z}>>31)&1,{y},{x})")


def float_arithmetic(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``add.f32``, ``sub.f32`` and ``mul.f32`` that round to the nearest."""
    if instruction.has_any(*_ROUNDS_OTHERWISE):
        raise NotAnExpression
    d, a, b = operands_of(instruction, 3)
    return assignment_to(
        d, names, f"of_floats('{instruction.opcode}',{operand_text(a, names, 32)},{operand_text(b, names, 32)})"
    )


def _funnel(instruction: Instruction, names: NameTable) -> list[Assignment]:
    name = "funnel_left" if instruction.has("l") else "funnel_right"
    return _of_words(name + "({0},{1},{2},{wrap})")(instruction, names)


def _permute(instruction: Instruction, names: NameTable) -> list[Assignment]:
    if instruction.modifiers != ("b32",):
        raise NotAnExpression
    return _of_words("prmt({0},{1},{2})")(instruction, names)


def _table(instruction: Instruction, names: NameTable) -> list[Assignment]:
    d, a, b, c, table = operands_of(instruction, 5)
    if instruction.modifiers != ("b32",) or not isinstance(table, Immediate):
        raise NotAnExpression
    texts = ",".join(operand_text(x, names, 32) for x in (a, b, c))
    return assignment_to(d, names, f"lop3({texts},{table.value & 255})")


ARITHMETIC: dict[str, Writer] = {
    **dict.fromkeys(("add", "addc"), _sum("+")),
    **dict.fromkeys(("sub", "subc"), _sum("-")),
    "and": _of_words("{0}&{1}"),
    "xor": _of_words("{0}^{1}"),
    "mul": _multiply,
    "mad": _multiply,
    "madc": _multiply,
    "mul24": _multiply_24,
    "mad24": _multiply_24,
    "dp4a": _dot_product,
    "sad": _of_words("(difference({0},{1},{w},{sign})+{2})&{m}"),
    "slct": _choose_by_sign,
    "szext": _of_words("szext({0},{1},{wrap},{sign})"),
    "bmsk": _of_words("bmsk({0},{1},{wrap})"),
    "div": _of_words("div({0},{1},{w})", "sdiv({0},{1},{w})"),
    "rem": _of_words("rem({0},{1},{w})", "srem({0},{1},{w})"),
    "min": _extreme("least"),
    "max": _extreme("most"),
    "shl": _shift_left,
    "shr": _shift_right,
    "not": _of_words("{0}^{m}"),
    "cnot": _of_words("select({0}==0,1,0)"),
    "neg": _of_words("(0-{0})&{m}"),
    "abs": _of_words("magnitude({0},{w})"),
    "popc": _of_words("popc({0})"),
    "clz": _of_words("clz({0},{w})"),
    "bfind": _of_words("bfind({0},{w},{sign},{shiftamt})"),
    "brev": _of_words("brev({0},{w})"),
    "bfe": _of_words("bfe({0},{1},{2},{w},{sign})", short=2),
    "bfi": _of_words("bfi({0},{1},{2},{3},{w})", short=2),
    "shf": _funnel,
    "prmt": _permute,
    "lop3": _table,
}


_LOGIC = {"and": "&", "or": "|", "xor": "^"}
_SIGNLESS = frozenset({"eq", "ne"})
_FLOAT_WIDTHS = {"f16": 16, "bf16": 16, "f32": 32, "f64": 64}
_FLOAT_COMPARE = {*COMPARED, "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"} - {"lo", "ls", "hi", "hs"}


def _or(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """Of predicates it is known where one of them holds, whatever the other is."""
    if type_of(instruction)[0] != "p":
        return _of_words("{0}|{1}")(instruction, names)
    d, a, b = operands_of(instruction, 3)
    return assignment_to(d, names, _either(operand_text(a, names, 1), operand_text(b, names, 1)))


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
        found = [*assignment_to(d.first, names, first), *assignment_to(d.second, names, second)]
        if len(found) == 2 and f"R[{found[0][0]}]" in second:
            raise NotAnExpression
        return found
    return assignment_to(d, names, first)


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
    compare = next((m for m in instruction.modifiers if m in COMPARED), None)
    if compare is None:
        raise NotAnExpression
    x, y = operand_text(a, names, width), operand_text(b, names, width)
    if kind == "s" and compare not in _SIGNLESS:
        x, y = signed(x, width), signed(y, width)
    # a number: with True on the left Python takes an integer that varies with the CTA for a plain one
    return f"(+({x}{COMPARED[compare][1]}{y}))"


def _set_integer(instruction: Instruction, names: NameTable) -> list[Assignment]:
    """``set``: all ones or 0."""
    if instruction.has_any(*_LOGIC):
        raise NotAnExpression
    d, a, b = operands_of(instruction, 3)
    return assignment_to(d, names, f"select({_integer_test(instruction, a, b, names)},4294967295,0)")


def _select(instruction: Instruction, names: NameTable) -> list[Assignment]:
    widths = [BITS[m] for m in instruction.modifiers if m in BITS]
    if not widths:
        raise NotAnExpression
    width = widths[-1]
    d, a, b, p = operands_of(instruction, 4)
    x, y, z = operand_text(a, names, width), operand_text(b, names, width), operand_text(p, names, 1)
    if isinstance(p, Immediate):
        return assignment_to(d, names, x if p.value else y)
    return assignment_to(d, names, f"(({x} if p else {y}) if (p:={z}).__class__ in PLAIN else select(p,{x},{y}))")


CHOICES: dict[str, Writer] = {"or": _or, "setp": _set_predicate, "set": _set_integer, "selp": _select}
