"""Edits of a flat program: what each changes, that lines and jumps stay right, and that one undoes another."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipesim.model.edits import (
    Insertion,
    Listing,
    delete_operations,
    insert_operations,
    listing,
    move_operation,
    releases,
    reorder_operations,
    repeat_operation,
    replace_operations,
    with_expected_bytes,
    with_listings,
    with_other_parity,
)
from pipesim.model.ops import Op, Operation, operand, with_operand
from tests.support.small_programs import build, operation

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


@given(st.integers(0, 7), st.integers(0, 7))
def test_one_undoes_another(place: int, to: int) -> None:
    without = delete_operations(PLAIN, {place})
    assert insert_operations(without, [Insertion(place, WORK[place], 100 + place)]) == PLAIN
    assert delete_operations(repeat_operation(PLAIN, place), {place}) == PLAIN
    there = move_operation(PLAIN, place, to)
    now = to if to <= place else to - 1
    assert there.code[now] == WORK[place]
    assert move_operation(there, now, place if to <= place and place == now else place + (place > now)) == PLAIN
    assert replace_operations(replace_operations(PLAIN, {place: jump(0)}), {place: WORK[place]}) == PLAIN


@pytest.mark.parametrize(
    ("edited", "place", "to"),
    [
        (delete_operations(with_jump(1, 3), {3}), 1, WORK[5]),  # inside what is skipped
        (delete_operations(with_jump(1, 3), {7}), 1, WORK[5]),  # after it
        (delete_operations(with_jump(1, 3), {5}), 1, WORK[6]),  # the target itself: the next one
        (delete_operations(with_jump(1, 3), {5, 6, 7}), 1, None),
        (delete_operations(with_jump(1, 3), {0}), 0, WORK[5]),
        (repeat_operation(with_jump(1, 3), 2), 1, WORK[5]),
        (repeat_operation(with_jump(1, 3), 5), 1, WORK[5]),
        (insert_operations(with_jump(1, 3), [Insertion(4, (int(Op.WORK), 99), 0)]), 1, WORK[5]),
        (insert_operations(with_jump(1, 3), [Insertion(0, (int(Op.WORK), 99), 0)]), 2, WORK[5]),
        (move_operation(with_jump(1, 3), 6, 2), 1, WORK[5]),
        (move_operation(with_jump(1, 3), 5, 1), 2, WORK[6]),  # the target now stands before the jump: what followed it
        (reorder_operations(with_jump(1, 6), range(8)), 1, None),
    ],
)
def test_a_jump_leads_where_it_led(edited: Listing, place: int, to: Operation | None) -> None:
    assert targets(edited) == {place: to}


def test_a_new_jump_is_left_as_it_is() -> None:
    after = insert_operations(with_jump(1, 3), [Insertion(0, jump(2), 0)])
    assert targets(after) == {0: WORK[2], 2: WORK[5]}


def test_what_may_not_happen_moves_with_its_operation() -> None:
    program = build("WORK cycles=3; WRITE item=1; WORK; WRITE item=1; READ", "READ", unsure=((0, 3, 2), (1, 0, 1)))
    before, work = listing(program, 0), operation("WORK cycles=9")

    def unsure(after: Listing) -> tuple[tuple[int, int, int], ...]:
        return tuple(sorted(with_listings(program, {0: after}).unsure))

    assert unsure(insert_operations(before, [Insertion(0, work, 0)])) == ((0, 4, 2), (1, 0, 1))
    assert unsure(delete_operations(before, {0, 2})) == ((0, 1, 2), (1, 0, 1))
    assert unsure(delete_operations(before, {1, 3})) == ((1, 0, 1),)


def test_operations() -> None:
    wait, arrive = operation("WAIT barrier=2 parity=1"), operation("ARRIVE barrier=1 count=3")
    assert (operand(wait, "parity"), operand(with_other_parity(wait), "parity")) == (1, 0)
    assert with_other_parity(with_other_parity(wait)) == wait
    assert with_other_parity(operation("TRY_WAIT parity=0 register=4")) == operation("TRY_WAIT parity=1 register=4")
    assert with_expected_bytes(arrive, 64) == operation("ARRIVE barrier=1 count=3 expect=64")
    assert with_expected_bytes(operation("EXPECT_TX bytes=16"), 32) == operation("EXPECT_TX bytes=32")
    assert (releases(arrive), releases(with_expected_bytes(arrive, 64)), releases(wait)) == (True, False, False)
    assert with_operand(arrive, "barrier", 5) == operation("ARRIVE barrier=5 count=3")
