"""Where addresses of global memory come from: which parameter leads there, and of what they are multiples.

Copies whose addresses are aligned in no execution are wrong (PTX ISA, "cp.async", "cp.async.bulk"). What a register
holds is known as a remainder: of all values that any instruction writes there, modulo a power of two. That is enough
for addresses that no launch decides: an index times the bytes of an element, and a constant.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial, reduce
from math import gcd

from pipesim.ptx.flow.graph import reached
from pipesim.ptx.flow.opcodes import may_touch_global
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.instruction import Address, Immediate, Instruction, Operand, Register, Symbol, Vector

_SAME = frozenset({"mov", "cvt", "cvta"})  #: they keep an address as it is
_DEEPEST = 64
_MOST = 16  #: bytes: what copies are aligned to at most
#: A power of two up to _MOST, and a number below it: every value is that much above a multiple.
Remainder = tuple[int, int]
_ANY: Remainder = (1, 0)

#: What is known of a word of the parameters, by offset and bytes: a power of two, and the value modulo it.
Words = Callable[[int, int], tuple[int, int]]


def _number(value: int, modulus: int = _MOST) -> Remainder:
    modulus = min(modulus, _MOST)
    return modulus, value % modulus


class MisalignedCopies:
    """What is wrong with the copies of a function, worked out once for all words that have the same remainders."""

    def __init__(self, function: Function, uses: Uses) -> None:
        self._function, self._uses = function, uses
        #: By the answers so far: which word is asked for next, or what is wrong.
        self._known: dict[tuple[Remainder, ...], tuple[int, int] | dict[int, str]] = {}

    def with_words(self, words: Words) -> dict[int, str]:
        """By position, of each copy that is aligned in no execution."""

        def remainder(offset: int, size: int) -> Remainder:
            modulus, value = words(offset, size)
            return _number(value, modulus)

        answers: tuple[Remainder, ...] = ()
        while (found := self._known.get(answers)) is not None:
            if isinstance(found, dict):
                return found
            answers = (*answers, remainder(*found))
        answers = ()

        def noted(offset: int, size: int) -> Remainder:
            nonlocal answers
            self._known[answers] = offset, size
            answers = (*answers, remainder(offset, size))
            return answers[-1]

        made = _misaligned_copies(self._function, self._uses, noted)
        self._known[answers] = made
        return made


def _misaligned_copies(function: Function, uses: Uses, words: Callable[[int, int], Remainder]) -> dict[int, str]:
    """By position, what is wrong with the address in global memory of each copy that is aligned in no execution."""
    copies = [(each, *found) for each in function.body if each.opcode == "cp" and (found := _in_global(each))]
    if not copies:
        return {}
    known = _Remainders(function, uses, words)
    wrong = {}
    for each, operand, multiple, what in copies:
        modulus, rest = known.of(operand)
        modulus = min(modulus, multiple)
        if rest % modulus:
            by = f"{rest % modulus} byte{'s' if rest % modulus > 1 else ''} above a multiple of {modulus}"
            wrong[each.position] = f"{what} at an address of global memory that is {by}, not a multiple of {multiple}"
    return wrong


def _in_global(each: Instruction) -> tuple[Operand, int, str] | None:
    """The address in global memory of a copy, of what it is a multiple, and what the copy is called."""
    if "global" not in each.modifiers or "tensor" in each.modifiers:
        return None
    operands = each.operands
    if "bulk" in each.modifiers:
        first = next(m for m in each.modifiers if m == "global" or m.startswith("shared"))
        return operands[int(first != "global")], _MOST, "a bulk copy"
    some = [operand for operand in operands[2:] if isinstance(operand, Immediate)]
    if len(some) != len(operands) - 2 - ("L2::cache_hint" in each.modifiers) or not all(one.value for one in some):
        return None  # perhaps none of its bytes are read
    return operands[1], some[0].value, "a copy"


class _Remainders:
    """The remainders of registers: the least that all their writers agree on."""

    def __init__(self, function: Function, uses: Uses, words: Callable[[int, int], Remainder]) -> None:
        self._words, self._places = words, ParameterPlaces(function, uses)
        self._body, self._uses = function.body, uses
        self._found: dict[str, Remainder | None] = {}  #: None: no writer has been seen to write anything

    def of(self, operand: Operand) -> Remainder:
        """The remainder of an operand, of every value that it has."""
        names = list(self._reachable(operand))
        self._found.update(dict.fromkeys(names))
        changed = True
        while changed:
            changed = False
            for name in names:
                by = map(self._body.__getitem__, self._uses.writers[name])
                made = [value for each in by if (value := self._made(each)) is not None]
                value = reduce(_either, made) if made else None
                changed |= value != self._found.get(name)
                self._found[name] = value
        return self._operand(operand) or _ANY

    def _reachable(self, operand: Operand) -> Iterator[str]:
        base = operand.base if isinstance(operand, Address) else operand
        writers, reads = self._uses.writers, self._uses.reads
        names = [base.name] if isinstance(base, Register) else []
        found = reached(names, lambda name: [read for p in writers.get(name, ()) for read in reads[p]])
        return filter(writers.__contains__, found)

    def _operand(self, operand: Operand) -> Remainder | None:
        match operand:
            case Immediate(value) if isinstance(value, int):
                return _number(value)
            case Register(name):
                return self._found.get(name, _ANY)
            case Address(base, offset):
                found = self._operand(base)
                return None if found is None else _sum(found, _number(offset))
            case _:
                return _ANY

    def _made(self, each: Instruction) -> Remainder | None:
        """What an instruction writes; None while one of its operands has no value."""
        modifiers, operands = each.modifiers, each.operands
        if not isinstance(operands[0], Register) or not _INTEGERS.issuperset(modifiers):
            return _ANY
        if each.opcode == "ld":
            offset, bits = self._places.parameter(operands[1]), modifiers[-1][1:]
            if offset is None or not bits.isdecimal():
                return _ANY
            return self._words(offset, int(bits) // 8)
        values = [self._operand(operand) for operand in operands[1:]]
        rule = RULES.get(each.opcode)
        if rule is None:
            return _ANY
        if each.opcode == "shl":
            by = operands[2]
            values[1] = _number(1 << min(by.value % (1 << 32), 64)) if isinstance(by, Immediate) else _ANY
        known = [value for value in values if value is not None]
        return rule(*known) if len(known) == len(values) else None


def _sum(a: Remainder, b: Remainder) -> Remainder:
    modulus = min(a[0], b[0])
    return modulus, (a[1] + b[1]) % modulus


def _product(a: Remainder, b: Remainder) -> Remainder:
    modulus = gcd(a[0] * b[0], a[0] * b[1], b[0] * a[1], _MOST)
    return modulus, a[1] * b[1] % modulus


def _either(a: Remainder, b: Remainder) -> Remainder:
    modulus = gcd(a[0], b[0], a[1] - b[1])
    return modulus, a[1] % modulus


def _bits(a: Remainder, b: Remainder, opcode: str) -> Remainder:
    """A bit of the result is not known if it is not in an operand, unless the other one decides it."""
    (x, open_x), (y, open_y) = ((rest, _MOST - modulus) for modulus, rest in (a, b))
    open_ = open_x | open_y
    if opcode == "and":
        open_ &= (x | open_x) & (y | open_y)
    elif opcode == "or":
        open_ &= ~(x | y)
    modulus = open_ & -open_ or _MOST
    return modulus, {"and": x & y, "or": x | y, "xor": x ^ y}[opcode] % modulus


_INTEGERS = frozenset({f"{kind}{bits}" for kind in "bsu" for bits in (8, 16, 32, 64)} | {
    "lo", "wide", "to", "global", "param",
})  # fmt: skip
#: Of integer instructions, from the remainders of the operands.
RULES: Mapping[str, Callable[..., Remainder]] = {
    **dict.fromkeys(("mov", "cvt", "cvta"), lambda a: a),
    **{opcode: partial(_bits, opcode=opcode) for opcode in ("and", "or", "xor")},
    **dict.fromkeys(("min", "max"), _either),
    "selp": lambda a, b, _: _either(a, b),
    "add": _sum,
    "sub": lambda a, b: _sum(a, (b[0], -b[1])),
    "mul": _product,
    "shl": _product,
    "mad": lambda a, b, c: _sum(_product(a, b), c),
}


class ParameterPlaces:
    """Which registers hold an address of the parameters, or a pointer that a parameter gives."""

    def __init__(self, function: Function, uses: Uses) -> None:
        self._params = {each.name: each for each in function.params}
        self._body, self._writers = function.body, uses.writers
        self._given: dict[Operand, list[Operand]] = {}  #: to calls, by the place of the argument
        for instruction in function.body:
            if instruction.opcode == "st" and instruction.has("param"):
                self._given.setdefault(instruction.operands[0], []).append(instruction.operands[1])

    def parameter(self, operand: Operand) -> int | None:
        """The offset in the parameters of an address, None if it is not one of theirs."""
        found = self._follow(operand, 0)
        return found[1] if found is not None and found[0] == "address" else None

    def pointer(self, operand: Operand) -> int:
        """The offset of the parameter that holds the pointer from which an address is made, -1 if not known."""
        found = self._follow(operand, 0)
        return found[1] if found is not None and found[0] == "pointer" else -1

    def _follow(self, operand: Operand, depth: int) -> tuple[str, int] | None:
        match operand:
            case Symbol(name) if name in self._params:
                return "address", self._params[name].offset
            case Address(base, offset):
                found = self._follow(base, depth)
                return (found[0], found[1] + offset) if found is not None and found[0] == "address" else found
            case Register(name) if depth < _DEEPEST:
                by = [self._body[p] for p in self._writers.get(name, ())]
                return self._result_kind(by[0], name, depth + 1) if len(by) == 1 and by[0].guard is None else None
            case _:
                return None

    def _result_kind(self, writer: Instruction, name: str, depth: int) -> tuple[str, int] | None:
        """What an instruction's result of this name is."""
        operands = writer.operands
        if writer.opcode in _SAME and len(operands) == 2:
            return self._follow(operands[1], depth)
        if writer.opcode == "ld" and writer.has("local"):
            return "local", writer.position
        if writer.opcode == "ld" and operands[-1] in self._given:
            found, *others = [self._follow(each, depth) for each in self._given[operands[-1]]]
            return found if all(each == found for each in others) else None
        if writer.opcode == "ld" and len(operands) == 2:
            found, parts = self._follow(operands[1], depth), _parts(operands[0])
            after = parts.index(Register(name)) * int(writer.modifiers[-1][1:]) // 8 if parts[1:] else 0
            return ("pointer", found[1] + after) if found is not None and found[0] == "address" else None
        if writer.opcode in {"add", "or"} and len(operands) == 3:
            found, by = self._follow(operands[1], depth), operands[2]
            if found is not None and found[0] == "address":
                return ("address", found[1] + by.value) if isinstance(by, Immediate) else None
            return found or self._follow(operands[2], depth)
        if writer.opcode in {"mad", "sub"}:
            return self._follow(operands[-1 if writer.opcode == "mad" else 1], depth)
        return None

    def pointers(self, body: Sequence[Instruction]) -> set[int]:
        """The offsets of parameters that lead to global memory; -1 where one is not known.

        An array of pointers that is indexed is first copied to local memory; where every word of 8 bytes that is loaded
        from there leads to global memory, all that are stored there do.
        """
        addresses = [at for each in body if may_touch_global(each) for at in each.operands if isinstance(at, Address)]
        maps = [each for each in body if each.opcode == "tensormap"]  # that a kernel changes, and what they lead to
        written = [each.operands[1] for each in maps if each.has("global_address")]
        followed = [self._follow(at, 0) for at in (*addresses, *written)]
        local = [each for each in body if each.has("local") and each.modifiers[-1] in ("b64", "u64")]
        loaded = {("local", each.position) for each in local if each.opcode == "ld"}
        if loaded and loaded.issubset(followed):
            followed += [
                self._follow(part, 0) for each in local if each.opcode == "st" for part in _parts(each.operands[1])
            ]
        return {found[1] if found is not None and found[0] == "pointer" else -1 for found in followed}


def _parts(operand: Operand) -> tuple[Operand, ...]:
    return operand.parts if isinstance(operand, Vector) else (operand,)


def only_loaded(function: Function, uses: Uses) -> frozenset[int]:
    """The loads of what pointers of the launch lead to where nothing is stored, if these lead to different memory."""
    places, loads, written = ParameterPlaces(function, uses), dict[int, int](), set[int]()
    for each in filter(may_touch_global, function.body):
        if each.opcode == "ld":
            loads[each.position] = places.pointer(each.operands[1])
        elif each.opcode != "cp" or each.modifiers.index("global") < min(
            (n for n, each in enumerate(each.modifiers) if each.startswith("shared")), default=99
        ):
            written.add(places.pointer(each.operands[each.opcode == "atom"]))
    return frozenset(at for at, pointer in loads.items() if pointer not in written and -1 not in written | {pointer})
