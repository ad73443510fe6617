"""Edits of a flat program: what each changes, that lines and jumps stay right, and that one undoes another."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipesim.errors import PipesimError
from pipesim.model.edits import (
    Insertion,
    Listing,
    changed,
    deleted,
    expecting,
    inserted,
    listing,
    moved,
    rearranged,
    releases,
    repeated,
    toggled,
    with_listings,
)
from pipesim.model.ops import Op, Operation, operand, with_operand

WORK = tuple((int(Op.WORK), cycles) for cycles in range(8))
PLAIN = Listing(WORK, tuple(range(100, 108)))


def jump(skip: int) -> Operation:
    return (int(Op.JUMP_IF), 0, 1, skip)


def targets(code: Listing) -> dict[int, Operation | None]:
    """Where each jump leads: the operation there, None at the end."""
    found: dict[int, Operation | None] = {}
    for place, op in enumerate(code.code):
        if op[0] == Op.JUMP_IF:
            to = place + 1 + op[3]
            found[place] = code.code[to] if to < len(code.code) else None
    return found


def with_jump(at: int, skip: int) -> Listing:
    code: list[Operation] = list(WORK)
    code[at] = jump(skip)
    return Listing(tuple(code), PLAIN.lines)


def test_an_operation_takes_its_line_along() -> None:
    assert deleted(PLAIN, {1, 3}).lines == (100, 102, 104, 105, 106, 107)
    assert repeated(PLAIN, 2).lines == (100, 101, 102, 102, 103, 104, 105, 106, 107)
    assert moved(PLAIN, 5, 2).lines == (100, 101, 105, 102, 103, 104, 106, 107)
    assert moved(PLAIN, 2, 5).lines == (100, 101, 103, 104, 102, 105, 106, 107)
    assert rearranged(PLAIN, [7, 0]).lines == (107, 100)
    new = [Insertion(8, jump(0), 9), Insertion(0, WORK[1], 5), Insertion(0, WORK[2], 6)]
    assert inserted(PLAIN, new).lines == (5, 6, *PLAIN.lines, 9)
    for after in (deleted(PLAIN, {1, 3}), repeated(PLAIN, 2), moved(PLAIN, 5, 2), moved(PLAIN, 2, 5)):
        assert all(op == WORK[line - 100] for op, line in zip(*after, strict=True))


@given(st.integers(0, 7), st.integers(0, 7))
def test_one_undoes_another(place: int, to: int) -> None:
    without = deleted(PLAIN, {place})
    assert inserted(without, [Insertion(place, WORK[place], 100 + place)]) == PLAIN
    assert deleted(repeated(PLAIN, place), {place}) == PLAIN
    there = moved(PLAIN, place, to)
    now = to if to <= place else to - 1
    assert there.code[now] == WORK[place]
    assert moved(there, now, place if to <= place and place == now else place + (place > now)) == PLAIN
    assert changed(changed(PLAIN, {place: jump(0)}), {place: WORK[place]}) == PLAIN


@pytest.mark.parametrize(
    ("edited", "place", "to"),
    [
        (deleted(with_jump(1, 3), {3}), 1, WORK[5]),  # inside what is skipped
        (deleted(with_jump(1, 3), {7}), 1, WORK[5]),  # after it
        (deleted(with_jump(1, 3), {5}), 1, WORK[6]),  # the target itself: the next one
        (deleted(with_jump(1, 3), {5, 6, 7}), 1, None),
        (deleted(with_jump(1, 3), {0}), 0, WORK[5]),
        (repeated(with_jump(1, 3), 2), 1, WORK[5]),
        (repeated(with_jump(1, 3), 5), 1, WORK[5]),
        (inserted(with_jump(1, 3), [Insertion(4, (int(Op.WORK), 99), 0)]), 1, WORK[5]),
        (inserted(with_jump(1, 3), [Insertion(0, (int(Op.WORK), 99), 0)]), 2, WORK[5]),
        (moved(with_jump(1, 3), 6, 2), 1, WORK[5]),
        (moved(with_jump(1, 3), 5, 1), 2, WORK[6]),  # the target now stands before the jump: what followed it
        (rearranged(with_jump(1, 6), range(8)), 1, None),
    ],
)
def test_a_jump_leads_where_it_led(edited: Listing, place: int, to: Operation | None) -> None:
    assert targets(edited) == {place: to}


def test_a_new_jump_is_left_as_it_is() -> None:
    after = inserted(with_jump(1, 3), [Insertion(0, jump(2), 0)])
    assert targets(after) == {0: WORK[2], 2: WORK[5]}


def test_operations(operation: Any) -> None:
    wait, arrive = operation("WAIT barrier=2 parity=1"), operation("ARRIVE barrier=1 count=3")
    assert (operand(wait, "parity"), operand(toggled(wait), "parity")) == (1, 0)
    assert toggled(toggled(wait)) == wait
    assert toggled(operation("TRY_WAIT parity=0 register=4")) == operation("TRY_WAIT parity=1 register=4")
    assert expecting(arrive, 64) == operation("ARRIVE barrier=1 count=3 expect=64")
    assert expecting(operation("EXPECT_TX bytes=16"), 32) == operation("EXPECT_TX bytes=32")
    assert (releases(arrive), releases(expecting(arrive, 64)), releases(wait)) == (True, False, False)
    assert with_operand(arrive, "barrier", 5) == operation("ARRIVE barrier=5 count=3")


def test_a_program_with_another_agent(build: Any) -> None:
    program = build("INIT count=1; ARRIVE", "WAIT")
    assert with_listings(program, {}) == program
    without = with_listings(program, {0: deleted(listing(program, 0), {1})})
    assert (without.code[0], without.code[1]) == (program.code[0][:1], program.code[1])
    assert without == replace(program, code=without.code, lines=((0,), (0,)))
    with pytest.raises(PipesimError):
        with_listings(program, {1: Listing(((int(Op.WAIT), 7, 0, 0),), (0,))})
