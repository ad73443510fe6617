"""Operations without effect, passed over together."""

from __future__ import annotations

import pytest

from pipesim.model.machine import initial_state, pass_over, step
from tests.support.small_programs import build

SYNC = "BAR_SYNC threads=64"


@pytest.mark.parametrize("most", [1, 3, 99])
def test_operations_without_effect_are_passed_over_as_their_steps_would(most: int) -> None:
    program = build("WORK; FENCE; WORK; LOOP_BEGIN; LOOP_END; BAR_SYNC threads=64; WORK", SYNC)
    state = stepped = initial_state(program)
    passed = pass_over(program, state, 0, most)
    while stepped.pcs[0] < min(most, 5):  # the sixth has an effect
        stepped = step(program, stepped, 0).state
    assert passed == stepped
    assert pass_over(program, passed, 1, most) == passed, "the other agent has nothing to pass over"
