"""What a launch must give for a slice: words of the parameters, tensor maps, and words of memory that decide."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from pipesim.ptx.flow.opcodes import may_touch_global
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.instruction import Address, Immediate, Instruction, Operand, Register, Symbol, TensorAddress

_SAME = frozenset({"mov", "cvt", "cvta"})  #: they keep an address as it is
_DEEPEST = 64


class Need(Enum):
    """How something is needed."""

    PARAMETER = "parameter"  #: a word of the parameters
    TENSOR_MAP = "tensor map"  #: a tensor map among the parameters
    MEMORY = "memory"  #: a word of global memory that decides
    ATOMIC = "atomic"  #: the result of an atomic on global memory that decides


class LaunchNeed(NamedTuple):
    """One thing that the slice needs. ``offset`` is in the parameters (-1 where not known), ``nbytes`` from there on.

    Of MEMORY and ATOMIC, ``offset`` is that of the pointer that leads there, if the text shows it. ``lines`` of the
    PTX file need it.
    """

    need: Need
    offset: int
    nbytes: int
    type: str
    lines: tuple[int, ...]


def wanted_by(function: Function, uses: Uses, kept: frozenset[int], valued: frozenset[int]) -> tuple[LaunchNeed, ...]:
    """What the instructions of a slice need, parameters first, by offset."""
    places = ParameterPlaces(function, uses)
    found: dict[tuple[Need, int, int, str], list[int]] = {}
    for position in sorted(kept):
        instruction = function.body[position]
        for need, offset, nbytes, kind in _needs(instruction, places, valued=position in valued):
            found.setdefault((need, offset, nbytes, kind), []).append(instruction.line)
    order = list(Need)
    rows = sorted(found.items(), key=lambda each: (order.index(each[0][0]), *each[0][1:]))
    return tuple(LaunchNeed(*key, tuple(dict.fromkeys(lines))) for key, lines in rows)


def _needs(instruction: Instruction, places: ParameterPlaces, *, valued: bool) -> Iterator[tuple[Need, int, int, str]]:
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode == "cp" and "tensor" in modifiers:
        for operand in instruction.operands:
            if isinstance(operand, TensorAddress) and (offset := places.parameter(operand.map)) is not None:
                yield Need.TENSOR_MAP, offset, 128, "tensor_map"
        return
    if opcode not in {"ld", "atom", "ldu"} or not valued or len(instruction.operands) < 2:
        return
    spaces = instruction.spaces
    kind, nbytes = _type(instruction)
    offset = places.parameter(instruction.operands[1])
    if opcode == "ld" and offset is not None:
        for n in range(next((int(each[1:]) for each in modifiers if each in {"v2", "v4", "v8"}), 1)):
            yield Need.PARAMETER, offset + n * nbytes, nbytes, kind
    elif "global" in spaces or "const" in spaces:
        need = Need.ATOMIC if opcode == "atom" else Need.MEMORY
        yield need, places.pointer(instruction.operands[1]), nbytes, kind


def _type(instruction: Instruction) -> tuple[str, int]:
    for word in reversed(instruction.modifiers):
        if word[:1] in "bsuf" and word[1:].isdecimal():
            return word, int(word[1:]) // 8
    return "b32", 4


class ParameterPlaces:
    """Which registers hold an address of the parameters, or a pointer that a parameter gives."""

    def __init__(self, function: Function, uses: Uses) -> None:
        self._params = {each.name: each for each in function.params}
        self._writer: dict[str, Instruction | None] = {}
        for instruction in function.body:
            for name in uses.writes[instruction.position]:
                self._writer[name] = None if name in self._writer else instruction

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
                writer = self._writer.get(name)
                return self._result_kind(writer, depth + 1) if writer is not None and writer.guard is None else None
            case _:
                return None

    def _result_kind(self, writer: Instruction, depth: int) -> tuple[str, int] | None:
        """What an instruction's result is."""
        operands = writer.operands
        if writer.opcode in _SAME and len(operands) == 2:
            return self._follow(operands[1], depth)
        if writer.opcode == "ld" and len(operands) == 2:
            found = self._follow(operands[1], depth)
            return ("pointer", found[1]) if found is not None and found[0] == "address" else None
        if writer.opcode in {"add", "or"} and len(operands) == 3:
            found, by = self._follow(operands[1], depth), operands[2]
            if found is not None and found[0] == "address":
                return ("address", found[1] + by.value) if isinstance(by, Immediate) else None
            return found or self._follow(operands[2], depth)
        if writer.opcode in {"mad", "sub"}:
            return self._follow(operands[-1 if writer.opcode == "mad" else 1], depth)
        return None


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
