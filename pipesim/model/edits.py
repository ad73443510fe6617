"""The edits of a flat program: operations of an agent changed, deleted, repeated, moved, inserted.

Everything else is kept right: an operation takes its line along; a jump leads to the operation that it led to, or to
the next one that is left after it. Registers hold what was written to them last. The single mistakes
of ``conform`` and the single corrections of ``prove`` are made of these; each undoes another one:

* an arrive is left out (:func:`delete_operations`), made twice (:func:`repeat_operation`) or added
  (:func:`insert_operations`),
* a wait is left out (:func:`delete_operations`) or added (:func:`insert_operations`),
* an arrive comes earlier or later (:func:`move_operation`, :func:`reorder_operations`),
* a wait is for the other parity (:func:`with_other_parity`), other bytes are expected (:func:`with_expected_bytes`).
"""

from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import fields
from functools import lru_cache
from typing import NamedTuple

from pipesim.model.ops import Op, Operation, operand, with_operand
from pipesim.model.program import Program
from pipesim.model.rules.validation import validate_agents


class Listing(NamedTuple):
    """The operations of one agent, each with its line. Places are positions in it, from 0."""

    code: tuple[Operation, ...]
    lines: tuple[int, ...]


class Insertion(NamedTuple):
    """A new operation before the one at ``place`` (which may be the end), with the number of its line."""

    place: int
    operation: Operation
    line: int


def listing(program: Program, agent: int) -> Listing:
    """What the agent does."""
    return Listing(program.code[agent], program.lines[agent])


def with_listings(program: Program, listings: Mapping[int, Listing]) -> Program:
    """The program in which these agents do something else. Raises ProgramError if that makes no program."""
    code, lines = list(program.code), list(program.lines)
    for agent, each in listings.items():
        code[agent], lines[agent] = each
    edited: Program = object.__new__(Program)  # not replace(), which would validate also what stays as it is
    for field in fields(program):
        object.__setattr__(edited, field.name, getattr(program, field.name))
    object.__setattr__(edited, "code", tuple(code))
    object.__setattr__(edited, "lines", tuple(lines))
    if program.unsure:
        object.__setattr__(edited, "unsure", tuple(_unsure(program, listings)))
    validate_agents(edited, listings)
    return edited


def _unsure(program: Program, listings: Mapping[int, Listing]) -> Iterator[tuple[int, int, int]]:
    """Which operations may not happen now: of each agent and line the first of one kind is what it was, and so on."""
    before = {(agent, pc): why for agent, pc, why in program.unsure}
    yield from (each for each in program.unsure if each[0] not in listings)
    for agent in sorted(listings.keys() & {each[0] for each in program.unsure}):
        reasons: dict[tuple[Operation, int], list[int]] = {}
        for pc, each in enumerate(zip(*listing(program, agent), strict=True)):
            reasons.setdefault(each, []).append(before.get((agent, pc), 0))
        for pc, each in enumerate(zip(*listings[agent], strict=True)):
            left = reasons.get(each, [0])
            if why := left.pop(0) if len(left) > 1 else left[0]:
                yield agent, pc, why


# places


def replace_operations(before: Listing, operations: Mapping[int, Operation]) -> Listing:
    """Other operations at these places."""
    code = list(before.code)
    for place, operation in operations.items():
        code[place] = operation
    return Listing(tuple(code), before.lines)


def delete_operations(before: Listing, places: Collection[int]) -> Listing:
    """Without the operations at these places."""
    if not places:
        return before
    first, end = min(places), max(places) + 1
    return _splice(before, first, end, [place for place in range(first, end) if place not in places])


def repeat_operation(before: Listing, place: int) -> Listing:
    """The operation at ``place`` twice."""
    return _splice(before, place + 1, place + 1, [place])


def move_operation(before: Listing, place: int, to: int) -> Listing:
    """The operation at ``place`` before the one at ``to``."""
    if to <= place:
        return _splice(before, to, place + 1, [place, *range(to, place)])
    return _splice(before, place, to, [*range(place + 1, to), place])


def reorder_operations(before: Listing, order: Sequence[int]) -> Listing:
    """The operations at these places, in this order."""
    return _splice(before, 0, len(before.code), order)


def insert_operations(before: Listing, new: Iterable[Insertion]) -> Listing:
    """With new operations; several before one place stand in the order given."""
    code: list[Operation] = []
    lines: list[int] = []
    origins: list[int] = []
    done = 0
    for place, operation, line in sorted(new, key=lambda each: each.place):
        code += (*before.code[done:place], operation)
        lines += (*before.lines[done:place], line)
        origins += (*range(done, place), -1)
        done = place
    code += before.code[done:]
    lines += before.lines[done:]
    origins += range(done, len(before.code))
    return Listing(_with_jumps_right(before.code, code, origins), tuple(lines))


def _splice(before: Listing, first: int, end: int, instead: Sequence[int]) -> Listing:
    """The operations ``first..end`` replaced by those at the places ``instead``."""
    code, lines = before
    spliced = (*code[:first], *(code[place] for place in instead), *code[end:])
    if _jumps(code):
        spliced = _with_jumps_right(code, spliced, [*range(first), *instead, *range(end, len(code))])
    return Listing(spliced, (*lines[:first], *(lines[place] for place in instead), *lines[end:]))


@lru_cache(maxsize=64)
def _jumps(code: tuple[Operation, ...]) -> bool:
    return any(op[0] == Op.JUMP_IF for op in code)


def _with_jumps_right(
    before: tuple[Operation, ...], after: Sequence[Operation], origins: Sequence[int]
) -> tuple[Operation, ...]:
    """``after`` with the jumps leading where they led; ``origins``: where each operation was before, -1 if new."""
    if not _jumps(before):
        return tuple(after)
    now: dict[int, int] = {}
    for place, origin in enumerate(origins):
        now.setdefault(origin, place)
    left = sorted(origin for origin in now if origin >= 0)

    def right(place: int, operation: Operation) -> Operation:
        origin = origins[place]
        if operation[0] != Op.JUMP_IF or origin < 0:
            return operation
        target = bisect_left(left, origin + 1 + operand(operation, "skip"))
        places = (now[each] for each in left[target:])
        to = next((there for there in places if there > place), len(after))
        return with_operand(operation, "skip", to - place - 1)

    return tuple(right(place, operation) for place, operation in enumerate(after))


# operations


def with_other_parity(operation: Operation) -> Operation:
    """A wait or try for the other parity."""
    return with_operand(operation, "parity", 1 - operand(operation, "parity"))


def with_expected_bytes(operation: Operation, nbytes: int) -> Operation:
    """An arrive or expect_tx that expects this many bytes."""
    return with_operand(operation, "bytes" if operation[0] == Op.EXPECT_TX else "expect", nbytes)


def releases(operation: Operation) -> bool:
    """True for an arrive that expects no bytes."""
    return operation[0] == Op.ARRIVE and not operand(operation, "expect")
