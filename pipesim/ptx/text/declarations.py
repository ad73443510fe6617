"""Declarations: registers, variables with their initial values and offsets, and parameters (PTX ISA, "Variables")."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, NamedTuple, TypeVar

from pipesim.ptx.source_files import SourceFiles
from pipesim.ptx.text.instruction import Instruction, Operand, Symbol, parts_of
from pipesim.ptx.text.operands import NAME, integer, parse_float, split

_Made = TypeVar("_Made")


class Param(NamedTuple):
    """A parameter: its PTX type ("b64", "b8" of a struct), bytes, alignment, and byte offset in the list.

    ``pointer`` is the space that ``.ptr`` names ("global", "generic"), "" where it is not declared as a pointer.
    ``in_register``: a device function of the old form takes it in the register of its name.
    """

    name: str
    type: str
    size: int
    align: int
    offset: int
    pointer: str = ""
    in_register: bool = False


class Variable(NamedTuple):
    """A declared variable of a state space ("shared", "global", "const", "local", "param").

    ``size`` is in bytes, 0 for an external array without a size, as dynamic shared memory. ``offset`` is within its
    space for "shared" and "local" (0 is the first byte of the CTA's own variables; arrays without a size begin after
    all others), elsewhere 0. ``init`` are its first bytes where it has initial values, and the rest are 0. A word that
    holds an address (a symbol) is 0 in ``init`` and named in ``addresses`` by its byte offset.
    """

    name: str
    space: str
    type: str
    size: int
    align: int
    offset: int
    line: int
    external: bool
    init: bytes
    addresses: tuple[tuple[int, str], ...]


@dataclass(frozen=True)
class Function:
    """A function's or a kernel's declarations and instructions.

    ``registers`` gives the type ("b32", "pred") of each register that occurs. ``shared`` are the variables that it and
    the functions which it calls refer to, its own and the module's. ``local`` are the variables of the body in the
    spaces "local" and "param" (arguments of calls). ``labels`` gives the index in ``body`` of the first instruction
    after the label (the length of the body for a label at the end); ``targets`` the labels of each ``.branchtargets``.
    ``directives`` are the performance directives by name without the dot, with their values: ``{"maxntid": (384,),
    "reqnctapercluster": (2, 1, 1), "explicitcluster": ()}``. ``results`` are the parameters that a device function
    returns. ``pragmas`` are (line, text). A declaration without a body has ``declared_only``.
    """

    name: str
    is_entry: bool
    params: tuple[Param, ...]
    results: tuple[Param, ...]
    registers: Mapping[str, str]
    shared: tuple[Variable, ...]
    local: tuple[Variable, ...]
    labels: Mapping[str, int]
    targets: Mapping[str, tuple[str, ...]]
    body: tuple[Instruction, ...]
    directives: Mapping[str, tuple[int, ...]]
    line: int
    pragmas: tuple[tuple[int, str], ...] = ()
    declared_only: bool = False

    def shared_bytes(self, dynamic: int) -> int:
        """Bytes of shared memory of a CTA with this much dynamic, which begins at the alignment of its symbols."""
        return max((each.offset + each.size for each in self.shared), default=0) + dynamic


def once_for_each(of: Callable[[Function], _Made]) -> Callable[[Function], _Made]:
    """The same, computed once for each function and kept with it: what is found must not be changed."""

    def found(function: Function) -> _Made:
        kept: dict[str, Any] = vars(function)
        if of.__name__ not in kept:
            kept[of.__name__] = of(function)
        made: _Made = kept[of.__name__]
        return made

    return wraps(of)(found)


@dataclass(frozen=True)
class Module:
    """A PTX file: ``version`` is (8, 7), ``target`` is ("sm_100a",), ``files`` are by their ``.file`` number.

    ``unread`` are the directives that the reader does not know, as (line, name): none of them is an instruction.
    ``sources``: where the text of ``files`` can be read, None where none was looked for.
    """

    name: str
    version: tuple[int, int]
    target: tuple[str, ...]
    address_size: int
    functions: tuple[Function, ...]
    globals: tuple[Variable, ...]
    files: Mapping[int, str]
    unread: tuple[tuple[int, str], ...] = ()
    sources: SourceFiles | None = field(default=None, repr=False, compare=False)

    @property
    def entries(self) -> tuple[Function, ...]:
        """The kernels, in the order of the file."""
        return tuple(each for each in self.functions if each.is_entry)

    def function(self, name: str) -> Function | None:
        """The function with this name, one with a body before a declaration; None if there is none."""
        named = [each for each in self.functions if each.name == name]
        return next((each for each in named if not each.declared_only), named[0] if named else None)


SPACES = ("shared", "global", "const", "local", "param", "reg", "tex", "sreg")
TYPE = r"\.(?:pred|[bsuf](?:8|16|32|64|128)|bf16x2|f16x2|bf16|tf32|e4m3|e5m2|e4m3x2|e5m2x2|texref|samplerref|surfref)\b"
MOST_BYTES = 1 << 40  #: of one variable; initial values are limited by the text
_DECIMALS = re.compile(r"(?:\s*+-?(?:0|[1-9][0-9]{0,38}+)\s*+,)*+\s*+-?(?:0|[1-9][0-9]{0,38}+)\s*+")
_ADDRESS = re.compile(rf"(?:(?:generic|0x[fF]{{2}}\w*)\s*\(\s*({NAME})\s*\)|({NAME}))\s*(?:\+\s*\d+)?")
_ITEM = re.compile(rf"({NAME}|_)\s*(<\s*\d{{1,10}}\s*>)?\s*((?:\[[^\[\]]*\]\s*)*)(?:=(.*))?", re.DOTALL)
_POINTER = re.compile(r"\.ptr\b\s*(?:\.(global|shared|const|local|param)\b)?")
_ATTRIBUTE = re.compile(r"\.attribute\s*\([^()]*(?:\([^()]*\))?[^()]*\)")
_WORD = re.compile(r"\.([\w:]+)")


class DeclarationError(ValueError):
    """A text that declares nothing; the message says why, the reader adds the line."""


class Declaration(NamedTuple):
    """One item of a declaration, as written: its bytes and initial values.

    ``many`` is the number of registers of a family (``%r<9>``), None for a single name.
    """

    name: str
    many: int | None
    space: str
    type: str
    size: int
    align: int
    init: bytes
    addresses: tuple[tuple[int, str], ...]
    words: frozenset[str]
    pointer: str


def type_bytes(name: str) -> int:
    """Bytes of a value of a type: ``b32`` has 4, ``pred`` 1, a reference 8."""
    if name == "pred":
        return 1
    if name.endswith("ref"):
        return 8
    if name.startswith(("e4m3", "e5m2")):
        return 2 if name.endswith("x2") else 1
    if name.endswith("x2"):
        return 4
    return 2 if name == "bf16" else 4 if name == "tf32" else int(name[1:]) // 8


def parse_declarations(text: str) -> list[Declaration]:
    """The items of ``.shared .align 8 .b64 a[4], b`` without its semicolon. Raises DeclarationError."""
    text = _ATTRIBUTE.sub(" ", text)
    pointer = _POINTER.search(text)
    head, rest = _head(_POINTER.sub(" ", text))
    words = frozenset(_WORD.findall(re.sub(r"\.align\s+\d+", "", head)))
    spaces = [each for each in SPACES if each in words]
    kinds = [word for word in words if re.fullmatch(TYPE, f".{word}")]
    aligned = re.findall(r"\.align\s+(\d{1,6})", head)
    if len(spaces) != 1 or len(kinds) != 1:
        raise DeclarationError("a declaration must have one state space and one type")
    lanes = next((int(word[1:]) for word in words if word in {"v2", "v4", "v8"}), 1)
    unit = type_bytes(kinds[0]) * lanes
    # The last alignment is the variable's: before it may be that of the memory which a pointer refers to.
    align = int(aligned[-1]) if aligned and pointer is None else unit
    space = f"{pointer[1] or 'generic'}" if pointer is not None else ""
    if not rest:
        raise DeclarationError("a declaration names nothing")
    return [_item(each, spaces[0], kinds[0], unit, align, words, space) for each in split(rest)]


def _head(text: str) -> tuple[str, str]:
    """The directives of a declaration, and the items."""
    found = re.match(r"(?:\s*\.(?:align\s+\d+|[\w:]+))*", text)
    assert found is not None
    return found[0], text[found.end() :].strip()


def _item(text: str, space: str, kind: str, unit: int, align: int, words: frozenset[str], pointer: str) -> Declaration:
    found = _ITEM.fullmatch(text)
    if found is None or align < 1 or align & (align - 1):
        raise DeclarationError(f"{' '.join(text[:60].split())!r} does not declare a name")
    count = int(found[2].strip("<> \t\n")) if found[2] else None
    size = unit
    sizes = [part.strip() for part in re.findall(r"\[([^\[\]]*)\]", found[3])]
    init, addresses = _initial(found[4].strip(), kind) if found[4] else (b"", ())
    for number, part in enumerate(sizes):
        length = integer(part) if part else (len(init) // unit if number == 0 and init else 0)
        if length is None or not 0 <= length * size <= MOST_BYTES:
            raise DeclarationError(f"{part[:40]!r} is not a size of an array")
        size *= length
    if len(init) > size:
        raise DeclarationError(f"{found[1]} has {size} bytes, and its initial values have {len(init)}")
    return Declaration(found[1], count, space, kind, size, align, init, addresses, words, pointer)


def _initial(text: str, kind: str) -> tuple[bytes, tuple[tuple[int, str], ...]]:
    """The bytes of initial values, nested braces flattened, and the names of those that are addresses."""
    width = type_bytes(kind)
    found, addresses = bytearray(), []
    text = re.sub(r"[{}]", " ", text)
    if _DECIMALS.fullmatch(text) is not None:
        values = list(map(int, text.split(",")))
        modulus = 1 << 8 * width
        if min(values) < 0 or max(values) >= modulus:
            values = [value % modulus for value in values]
        return bytes(values) if width == 1 else b"".join(v.to_bytes(width, "little") for v in values), ()
    for part in text.split(","):
        value = integer(part.strip())
        if value is None and (bits := parse_float(part.strip())) is not None:
            value = bits[0]
        if value is None:
            name = _ADDRESS.fullmatch(part.strip())
            if name is None:
                raise DeclarationError(f"{part.strip()[:40]!r} is not an initial value")
            addresses.append((len(found), name[1] or name[2]))
            value = 0
        found += (value % (1 << 8 * width)).to_bytes(width, "little")
    return bytes(found), tuple(addresses)


def laid_out(items: list[Declaration]) -> list[Param]:
    """Parameters in order, each at the next offset of its alignment (PTX ISA, "Kernel Function Parameters")."""
    found, offset = [], 0
    for each in items:
        offset = -(-offset // each.align) * each.align
        found.append(Param(each.name, each.type, each.size, each.align, offset, each.pointer))
        offset += each.size
    return found


def variable(item: Declaration, name: str, offset: int, line: int) -> Variable:
    """The variable of a declared item at an offset of its space."""
    external = "extern" in item.words
    size = item.size
    return Variable(name, item.space, item.type, size, item.align, offset, line, external, item.init, item.addresses)


def with_shared(functions: Sequence[Function], variables: Sequence[Variable]) -> tuple[Function, ...]:
    """The functions, each with the shared variables that it and the functions which it calls refer to, and places."""
    common = {each.name: each for each in variables if each.space == "shared"}
    named = {each.name: each for each in functions if not each.declared_only}
    uses = {name: _symbols(each) for name, each in named.items()}
    found = []
    for function in functions:
        reached = _reachable_functions(function.name, uses) if function.name in uses else []
        shared: dict[tuple[str, str], Variable] = {}
        for name in reached:
            shared |= {("", symbol): common[symbol] for symbol in uses[name] if symbol in common}
            shared |= {(name, each.name): each for each in named[name].shared}
        ordered = sorted(shared.values(), key=lambda each: each.line)
        found.append(replace(function, shared=place_variables(ordered), local=_locals(function.local)))
    return tuple(found)


def place_variables(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    """The variables at their offsets; arrays without a size begin together after all others."""
    found, offset = {}, 0
    sized = [each for each in variables if not (each.external and each.size == 0)]
    for each in sized:
        offset = -(-offset // each.align) * each.align
        found[id(each)] = offset
        offset += each.size
    dynamic = [each for each in variables if each.external and each.size == 0]
    align = max((each.align for each in dynamic), default=1)
    end = -(-offset // align) * align
    return tuple(each._replace(offset=found.get(id(each), end)) for each in variables)


def _locals(variables: Sequence[Variable]) -> tuple[Variable, ...]:
    local = place_variables([each for each in variables if each.space == "local"])
    return (*local, *(each for each in variables if each.space == "param"))


def _reachable_functions(name: str, uses: dict[str, dict[str, None]]) -> list[str]:
    """The functions that this one may call, itself first."""
    found, waiting = {name: None}, [name]
    while waiting:
        for symbol in uses[waiting.pop()]:
            if symbol in uses and symbol not in found:
                found[symbol] = None
                waiting.append(symbol)
    return list(found)


def _symbols(function: Function) -> dict[str, None]:
    """The names of variables and functions in its instructions, in order."""
    found: dict[str, None] = {}
    seen: set[int] = set()
    for instruction in function.body:
        for operand in instruction.operands:
            if id(operand) not in seen:
                seen.add(id(operand))
                found.update(dict.fromkeys(_names(operand)))
    return found


def _names(operand: Operand) -> Iterator[str]:
    if isinstance(operand, Symbol):
        yield operand.name
    for part in parts_of(operand):
        yield from _names(part)
