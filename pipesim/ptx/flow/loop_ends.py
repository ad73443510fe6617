"""Loops that only compute, and whether they end: those that count by a step to a bound do.

A loop on which no synchronisation depends is not followed, and what comes after it is taken to run. PTX gives no
other reason to do so than that the loop is left.
"""

from collections.abc import Callable, Collection
from typing import NamedTuple

from pipesim.ptx.flow.addresses import ParameterPlaces
from pipesim.ptx.flow.graph import Graph, Loop
from pipesim.ptx.flow.opcodes import synchronises
from pipesim.ptx.flow.uses import Uses
from pipesim.ptx.text.declarations import Function
from pipesim.ptx.text.instruction import Immediate, Instruction, Operand, Register, Special, Vector, parts_of

_SIZES = ("%ntid", "%nctaid", "%cluster_nctaid", "%nclusterid")  #: none of them is 0
_MOST_WRITERS = 64  #: that are looked at for one register
_MIRRORED = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le", "lo": "hi", "ls": "hs", "hi": "lo", "hs": "ls"}
_OPPOSITE = {"lt": "ge", "le": "gt", "gt": "le", "ge": "lt", "lo": "hs", "ls": "hi", "hi": "ls", "hs": "lo"}
#: The values of a word of the parameters, the least and the greatest of several, by its offset and bytes; () for any.
Words = Callable[[int, int], tuple[int, ...]]


def uncounted_loops(
    function: Function, graph: Graph, uses: Uses, followed: Collection[int], words: Words
) -> tuple[int, ...]:
    """The first position of each loop of which no branch that leaves it is ``followed``, and that does not count.

    Any set of blocks in which a lane may go around is one, with as many entries as it has, also as a part of another
    one: without the blocks from which a followed branch leaves that, those of its synchronisation, or its entries.
    """
    found, places = set[int](), ParameterPlaces(function, uses)

    def counts(blocks: frozenset[int], exits: list[int]) -> bool:
        """Whether a loop has one entry and counts to a bound."""
        header, *others = graph.entries(blocks)
        loop = Loop(header, blocks, tuple(sorted(blocks.intersection(graph.blocks[header].predecessors))))
        return not others and any(map(_CountingLoop(function, graph, uses, loop, places, words).is_counted, exits))

    waiting = [graph.reachable]
    while waiting:
        for blocks in graph.components(waiting.pop()):
            exits, entries = graph.exits(blocks), graph.entries(blocks)
            if exits:
                cut = [graph.block_of[at] for at in exits if at in followed]
                if not cut and not counts(blocks, exits):
                    found.add(graph.blocks[min(entries)].first)
            else:
                kept = (each for each in function.body if each.position in followed)
                cut = [graph.block_of[each.position] for each in kept if synchronises(each)]
            waiting.append(blocks.difference(cut if blocks.intersection(cut) else entries))
    return tuple(sorted(found))


class _Step(NamedTuple):
    """By how much a register changes in a lap; +1 or -1 for the direction, where a ``size`` is part of it."""

    by: int
    exact: bool


class _Comparison(NamedTuple):
    """What leaves a loop: "" for ``relation`` if it is whether two numbers are equal."""

    relation: str
    is_signed: bool
    width: int


class _CountingLoop:
    """One loop, and the writers of the function's registers."""

    def __init__(
        self, function: Function, graph: Graph, uses: Uses, loop: Loop, places: ParameterPlaces, words: Words
    ) -> None:
        self._function, self._graph, self._loop, self._places, self._words = function, graph, loop, places, words
        self._inner = graph.components(loop.blocks - {loop.header})
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
        if guard is None or compares is None or compares.opcode != "setp" or len(compares.operands) != 3:
            return False
        into, one, other = compares.operands
        kind = compares.modifiers[-1]
        if kind[0] not in "su" or not isinstance(into, Register) or not self._in_each_lap(exit_):
            return False
        relation = compares.modifiers[0] if compares.modifiers[0] in _MIRRORED else ""
        leaves = self._graph.blocks[self._graph.block_of[exit_]].successors[0] not in self._loop.blocks
        if relation and leaves is guard.negated:  # it is left where the comparison fails
            relation = _OPPOSITE[relation]
        comparison = _Comparison(relation, kind[0] == "s", int(kind[1:]))
        mirrored = comparison._replace(relation=_MIRRORED.get(relation, ""))
        return any(
            self._stays(bound) and self._reaches(counter, bound, how)
            for counter, bound, how in ((one, other, comparison), (other, one, mirrored))
        )

    def _in_each_lap(self, position: int) -> bool:
        block = self._graph.block_of[position]
        return all(self._graph.dominates(block, back) for back in self._loop.backs)

    def _writer(self, name: str) -> Instruction | None:
        """The one instruction of the loop that writes a register, once in each lap."""
        found = self._inside.get(name, [])
        if len(found) != 1 or found[0].guard is not None or not self._in_each_lap(found[0].position):
            return None
        block = self._graph.block_of[found[0].position]
        return None if any(block in inner for inner in self._inner) else found[0]

    def _adds(self, name: str, width: int) -> Instruction | None:
        """The writer of a register, if it copies or adds integers of this width."""
        each = self._writer(name)
        if each is None or each.opcode not in ("mov", "add", "sub") or each.has("sat"):
            return None
        kind = each.modifiers[-1]
        whole = kind[1:] == str(width) and kind[0] in ("bsu" if each.opcode == "mov" else "su")
        return each if whole and not any(isinstance(one, Vector) for one in each.operands) else None

    def _stays(self, operand: Operand) -> bool:
        unwritten = isinstance(operand, Register) and operand.name not in self._inside
        return isinstance(operand, Immediate) or unwritten or self._is_a_size(operand, set())

    def _reaches(self, counter: Operand, bound: Operand, how: _Comparison) -> bool:
        """Whether a register comes by its steps to where the comparison leaves the loop."""
        distance, at, sign = [bound], counter, 1
        while isinstance(at, Register) and (step := self._step(at.name, how.width)) is None:
            each = self._adds(at.name, how.width)  # what is compared is made of what counts, or of a clock
            if each is None:
                return False
            if any(isinstance(one, Special) and "clock" in one.name for one in each.operands):
                return how.relation != ""
            moving = [one for one in each.operands[1:] if not self._stays(one)]
            if len(moving) != 1 or len(distance) > _MOST_WRITERS:
                return False
            distance += [one for one in each.operands[1:] if one is not moving[0]]
            sign = -sign if each.opcode == "sub" and each.operands[1] is not moving[0] else sign
            at = moving[0]
        if not isinstance(at, Register) or step is None:
            return False
        step_to = _Step(sign * step.by, step.exact)
        if all(_passes(step_to, value, how) for value in self._values(bound) or (None,)):
            return True
        if how.relation not in ("", "le", "ge", "ls", "hs") or not step.exact:
            return False
        return abs(step.by) == 1 or all(self._is_multiple(one, step.by, set()) for one in (at, *distance))

    def _values(self, bound: Operand) -> tuple[int, ...]:
        """What a bound is, the least and the greatest of several values; () where the launch does not say it."""
        match bound:
            case Immediate(value):
                return (value,)
            case Register(name):
                load, *others = self._outside.get(name, (None,))
                offset = self._places.parameter(load.operands[-1]) if load and load.opcode == "ld" else None
                if load is None or others or offset is None:
                    return ()
                kind, bits, into = load.modifiers[-1][0], int(load.modifiers[-1][1:]), load.operands[0]
                found = self._words(offset + (parts_of(into) or (into,)).index(bound) * bits // 8, bits // 8)
                # the sign of a narrow integer fills the register
                return tuple(each - (each >> bits - 1 << bits) for each in found) if kind == "s" else found
            case _:
                return ()

    def _step(self, name: str, width: int) -> _Step | None:
        """By how much a register changes from lap to lap; None if it is not known to be another one."""
        at, total, sizes = name, 0, set[int]()
        for _ in range(_MOST_WRITERS):
            each = self._adds(at, width)
            if each is None:
                return None
            sources, sign = each.operands[1:], 1 if each.opcode == "add" else -1
            moving = [one for one in sources if isinstance(one, Register) and not self._stays(one)]
            added = [one for one in sources if one not in moving]
            if len(moving) != 1 or (each.opcode == "sub" and sources[0] != moving[0]):
                return None
            for one in added:
                if isinstance(one, Immediate):
                    total += sign * one.value
                elif self._is_a_size(one, set()):
                    sizes.add(sign)
                else:
                    return None
            at = moving[0].name
            if at == name:
                by = (total + (1 << width - 1)) % (1 << width) - (1 << width - 1)
                signs = sizes | ({1 if by > 0 else -1} if by else set())
                if len(signs) != 1:
                    return None
                return _Step(signs.pop(), exact=False) if sizes else _Step(by, exact=True)
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
            case "and" | "mul" if not each.has("hi"):
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
        once = isinstance(whole, Register) and len(self._outside.get(whole.name, ())) <= 1
        made = once and all(each.opcode == "and" and whole in each.operands[1:] for each in writers)
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
                    and not each.has("hi")
                    and all(self._is_a_size(one, seen) for one in each.operands[1:])
                    for each in writers
                )
            case _:
                return False


def _passes(step: _Step, bound: int | None, how: _Comparison) -> bool:
    """Whether steps do not jump over all the numbers that leave the loop, those beyond a ``bound``.

    Of a bound that is not known: as it is not within a step of the greatest or the least number, but for 0.
    """
    if not how.relation:
        return False
    least, up = -(1 << how.width - 1) if how.is_signed else 0, how.relation in ("gt", "ge", "hi", "hs")
    if bound is None:
        return (step.by > 0) is up and (up or how.is_signed)
    value = (bound - least) % (1 << how.width) + least
    beyond = least + (1 << how.width) - 1 - value if up else value - least
    beyond += how.relation in ("ge", "le", "hs", "ls")
    return beyond >= (abs(step.by) if step.exact else 1 << how.width - 2)
