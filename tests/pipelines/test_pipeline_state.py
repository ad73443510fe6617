"""``PipelineState``: where one side of a ring stands, by single steps and by many at once."""

from collections.abc import Callable
from typing import Any

import pytest

from pipesim.errors import ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.pipelines import PipelineState, make_producer_start_state


def in_a_role(body: Callable[[], Any]) -> None:
    p = Protocol("state")
    p.role("r")(lambda _: body() and None)
    p.flatten()


def place(state: PipelineState) -> tuple[int, int, int]:
    return state.index(), state.phase(), state.count()


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_a_step_wraps_and_then_toggles(stages: int) -> None:
    def body() -> None:
        state = make_producer_start_state(stages)
        for n in range(4 * stages):
            assert place(state) == (n % stages, 1 ^ n // stages & 1, n)
            state.step()

    in_a_role(body)


@pytest.mark.parametrize("stages", [1, 2, 3, 5])
def test_advancing_by_n_is_n_steps(stages: int) -> None:
    def body() -> None:
        for start in range(2 * stages):
            for n in range(4 * stages + 1):
                one, many = PipelineState(stages).advance(start), PipelineState(stages).advance(start)
                for _ in range(n):
                    one.step()
                made = PipelineState.make_pipeline_state(many, n)
                many.advance(n)
                assert place(one) == place(many) == place(made)

    in_a_role(body)


@pytest.mark.parametrize("wrong", [(-1, 0, 0), (2, 2, 0), (2, -1, 0), (2, 0, 2), (0, 1, 0)])
def test_a_place_outside_the_ring_is_an_error(wrong: tuple[int, int, int]) -> None:
    with pytest.raises(ProtocolError, match=r"a state at stage .* of a ring of"):
        in_a_role(lambda: PipelineState(*wrong))


def test_a_state_does_not_go_back() -> None:
    with pytest.raises(ProtocolError, match="moves back by 2 steps"):
        in_a_role(lambda: PipelineState(3).advance(-2))
