"""What a slice needs of the launch: words of the parameters, tensor maps, words of global memory, counters."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple

from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.instruction import Address, Immediate, Instruction, Operand, Register, Symbol, TensorAddress
from pipesim.ptx.text.module import Function, Param

_SAME = frozenset({"mov", "cvt", "cvta"})  #: they keep an address as it is
_DEEPEST = 64


class Need(Enum):
    """How something is needed."""

    PARAMETER = "parameter"  #: a word of the parameters
    TENSOR_MAP = "tensor map"  #: a tensor map among the parameters
    MEMORY = "memory"  #: a word of global memory that decides
    ATOMIC = "atomic"  #: the result of an atomic on global memory that decides


class Wanted(NamedTuple):
    """One thing that the slice needs. ``offset`` is in the parameters (-1 where not known), ``nbytes`` from there on.

    Of MEMORY and ATOMIC, ``offset`` is that of the pointer that leads there, if the text shows it. ``lines`` of the
    PTX file need it.
    """

    need: Need
    offset: int
    nbytes: int
    type: str
    lines: tuple[int, ...]


def wanted_by(function: Function, uses: Uses, kept: frozenset[int], valued: frozenset[int]) -> tuple[Wanted, ...]:
    """What the instructions of a slice need, parameters first, by offset."""
    places = ParameterPlaces(function, uses)
    found: dict[tuple[Need, int, int, str], list[int]] = {}
    for position in sorted(kept):
        instruction = function.body[position]
        for need, offset, nbytes, kind in _needs(instruction, places, valued=position in valued):
            found.setdefault((need, offset, nbytes, kind), []).append(instruction.line)
    order = list(Need)
    rows = sorted(found.items(), key=lambda each: (order.index(each[0][0]), *each[0][1:]))
    return tuple(Wanted(*key, tuple(dict.fromkeys(lines))) for key, lines in rows)


def _needs(instruction: Instruction, places: ParameterPlaces, *, valued: bool) -> Iterator[tuple[Need, int, int, str]]:
    opcode, modifiers = instruction.opcode, instruction.modifiers
    if opcode == "cp" and "tensor" in modifiers:
        for operand in instruction.operands:
            if isinstance(operand, TensorAddress) and (offset := places.parameter(operand.map)) is not None:
                yield Need.TENSOR_MAP, offset, 128, "tensor_map"
        return
    if opcode not in {"ld", "atom", "ldu"} or not valued or len(instruction.operands) < 2:
        return
    spaces = {each.partition("::")[0] for each in modifiers}
    kind, nbytes = _type(instruction)
    offset = places.parameter(instruction.operands[1])
    if opcode == "ld" and offset is not None:
        for n in range(_lanes(modifiers)):
            yield Need.PARAMETER, offset + n * nbytes, nbytes, kind
    elif "global" in spaces or "const" in spaces:
        need = Need.ATOMIC if opcode == "atom" else Need.MEMORY
        yield need, places.pointer(instruction.operands[1]), nbytes, kind


def _type(instruction: Instruction) -> tuple[str, int]:
    for word in reversed(instruction.modifiers):
        if word[:1] in "bsuf" and word[1:].isdecimal():
            return word, int(word[1:]) // 8
    return "b32", 4


def _lanes(modifiers: tuple[str, ...]) -> int:
    return next((int(each[1:]) for each in modifiers if each in {"v2", "v4", "v8"}), 1)


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
                return self._made(writer, depth + 1) if writer is not None and writer.guard is None else None
            case _:
                return None

    def _made(self, writer: Instruction, depth: int) -> tuple[str, int] | None:
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


def parameter_at(function: Function, offset: int) -> Param | None:
    """The parameter that contains the byte at an offset."""
    return next((each for each in function.params if each.offset <= offset < each.offset + each.size), None)
