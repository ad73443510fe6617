"""Loops that only compute, and whether they end: those that count by a step to a bound do.

A loop on which no synchronisation depends is not followed, and what comes after it is taken to run. PTX gives no
other reason to do so than that the loop is left.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from pipesim.ptx.flow.graph import Graph, Loop
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.instruction import Immediate, Instruction, Operand, Register, Special

_ORDERED = frozenset({"lt", "le", "gt", "ge", "lo", "ls", "hi", "hs"})
_SIZES = ("%ntid", "%nctaid", "%cluster_nctaid", "%nclusterid")  #: none of them is 0
_MOST_WRITERS = 64  #: that are looked at for one register


def exits_of(graph: Graph, loop: Loop) -> list[int]:
    """The branches that leave a loop."""
    blocks = (graph.blocks[b] for b in sorted(loop.blocks))
    return [block.end - 1 for block in blocks if not loop.blocks.issuperset(block.successors)]


def uncounted_loops(function: Function, graph: Graph, uses: Uses, followed: Collection[int]) -> tuple[int, ...]:
    """The first position of each loop of which no branch that leaves it is ``followed``, and that does not count."""
    found = []
    for loop in graph.loops:
        exits = exits_of(graph, loop)
        if exits and not any(at in followed for at in exits):
            counting = _CountingLoop(function, graph, uses, loop)
            if not any(map(counting.is_counted, exits)):
                found.append(graph.blocks[loop.header].first)
    return tuple(found)


class _Step(NamedTuple):
    """By how much a register changes in a lap; 0 is a ``size`` that is not known, and not 0."""

    size: int


class _CountingLoop:
    """One loop, and the writers of the function's registers."""

    def __init__(self, function: Function, graph: Graph, uses: Uses, loop: Loop) -> None:
        self._function, self._graph, self._loop = function, graph, loop
        self._inside: dict[str, list[Instruction]] = {}
        self._outside: dict[str, list[Instruction]] = {}
        for each in function.body:
            writers = self._inside if graph.block_of[each.position] in loop.blocks else self._outside
            for name in uses.writes[each.position]:
                writers.setdefault(name, []).append(each)

    def is_counted(self, exit_: int) -> bool:
        """Whether a branch is reached in each lap and compares, as integers, what counts with what stays as it is."""
        guard = self._function.body[exit_].guard
        compares = self._writer(guard.register) if guard is not None else None
        if compares is None or compares.opcode != "setp" or len(compares.operands) != 3:
            return False
        if compares.modifiers[-1][:1] not in "su" or not self._in_each_lap(exit_):
            return False
        ordered = compares.modifiers[0] in _ORDERED
        one, other = compares.operands[1:]
        return any(
            self._stays(bound) and self._reaches(counter, bound, ordered=ordered)
            for counter, bound in ((one, other), (other, one))
        )

    def _in_each_lap(self, position: int) -> bool:
        block = self._graph.block_of[position]
        return all(self._graph.dominates(block, back) for back in self._loop.backs)

    def _writer(self, name: str) -> Instruction | None:
        """The one instruction of the loop that writes a register, in each lap."""
        found = self._inside.get(name, [])
        each = found[0] if len(found) == 1 else None
        return each if each is not None and each.guard is None and self._in_each_lap(each.position) else None

    def _stays(self, operand: Operand) -> bool:
        unwritten = isinstance(operand, Register) and operand.name not in self._inside
        return isinstance(operand, Immediate) or unwritten or self._is_a_size(operand, set())

    def _reaches(self, counter: Operand, bound: Operand, *, ordered: bool) -> bool:
        """Whether a register reaches a bound by its steps, or passes it, where the comparison is ``ordered``."""
        distance, at = [bound], counter
        while isinstance(at, Register) and (step := self._step(at.name)) is None:
            each = self._writer(at.name)  # what is compared is made of what counts, or of a clock
            if each is None or each.opcode not in ("mov", "add", "sub"):
                return False
            if any(isinstance(one, Special) and "clock" in one.name for one in each.operands):
                return True
            moving = [one for one in each.operands[1:] if not self._stays(one)]
            if len(moving) != 1 or len(distance) > _MOST_WRITERS:
                return False
            distance += [one for one in each.operands[1:] if one is not moving[0]]
            at = moving[0]
        if not isinstance(at, Register) or step is None:
            return False
        if ordered or step.size in (1, -1):
            return True
        return step.size != 0 and all(self._is_multiple(one, step.size, set()) for one in (at, *distance))

    def _step(self, name: str) -> _Step | None:
        """By how much a register changes from lap to lap; None if it is not known to be another one."""
        at, total, by_a_size = name, 0, False
        for _ in range(_MOST_WRITERS):
            each = self._writer(at)
            if each is None or each.opcode not in ("mov", "add", "sub"):
                return None
            sources = each.operands[1:]
            moving = [one for one in sources if isinstance(one, Register) and not self._stays(one)]
            added = [one for one in sources if one not in moving]
            if len(moving) != 1 or (each.opcode == "sub" and sources[0] != moving[0]):
                return None
            for one in added:
                if isinstance(one, Immediate):
                    total += one.value if each.opcode == "add" else -one.value
                elif self._is_a_size(one, set()):
                    by_a_size = True
                else:
                    return None
            at = moving[0].name
            if at == name:
                size = (total + (1 << 31)) % (1 << 32) - (1 << 31)
                return _Step(0 if by_a_size else size) if size or by_a_size else None
        return None

    def _is_multiple(self, operand: Operand, of: int, seen: set[str]) -> bool:
        """Whether a number, or a register where the loop begins, is a multiple of a number."""
        if isinstance(operand, Immediate):
            return operand.value % of == 0
        if not isinstance(operand, Register):
            return False
        seen.add(operand.name)
        writers = self._outside.get(operand.name, [])
        if len(writers) + len(seen) > _MOST_WRITERS:
            return False
        return bool(writers) and all(self._writes_multiple(each, of, seen) for each in writers)

    def _writes_multiple(self, each: Instruction, of: int, seen: set[str]) -> bool:
        sources = [one for one in each.operands[1:] if not isinstance(one, Register) or one.name not in seen]
        match each.opcode:
            case "sub" if any(self._is_rest(each.operands[n], each.operands[3 - n], of) for n in (1, 2)):
                return True
            case "mov" | "add" | "sub" | "neg" | "cvt":
                return all(self._is_multiple(one, of, seen) for one in sources)
            case "and" | "mul":
                return any(self._is_multiple(one, of, seen) for one in sources)
            case "shl":
                by = sources[-1] if sources else None
                return isinstance(by, Immediate) and (1 << min(by.value, 63)) % of == 0
            case _:
                return False

    def _is_rest(self, rest: Operand, whole: Operand, of: int) -> bool:
        """Whether a register holds another one modulo a multiple of a number, a power of two."""
        writers = self._outside.get(rest.name, []) if isinstance(rest, Register) else []
        masks = [one.value + 1 for each in writers for one in each.operands[1:] if isinstance(one, Immediate)]
        made = all(each.opcode == "and" and whole in each.operands[1:] for each in writers)
        return made and bool(masks) and all(mask > 0 and mask & (mask - 1) == 0 and mask % of == 0 for mask in masks)

    def _is_a_size(self, operand: Operand, seen: set[str]) -> bool:
        """Whether it is a size of the launch, which is not 0, or a product of such."""
        match operand:
            case Immediate():
                return operand.value > 0
            case Special():
                return operand.name.startswith(_SIZES)
            case Register() if operand.name not in seen and len(seen) < _MOST_WRITERS:
                seen.add(operand.name)
                writers = [*self._outside.get(operand.name, []), *self._inside.get(operand.name, [])]
                return bool(writers) and all(
                    each.opcode in ("mov", "mul", "shl", "cvt")
                    and all(self._is_a_size(one, seen) for one in each.operands[1:])
                    for each in writers
                )
            case _:
                return False
