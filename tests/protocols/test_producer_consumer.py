"""The ready-made ring: its parameters, its shape, and how schedules of it end."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.errors import ParameterError
from pipesim.explain.blocked_agents import explain
from pipesim.explain.phases import run_canonically
from pipesim.model.barrier import LIVE, BarrierState
from pipesim.model.ops import Op
from pipesim.protocols.hopper.producer_consumer import producer_consumer
from tests.support.random_schedules import run

WRONG: dict[str, list[object]] = {
    "stages": [0, 33, "4"],
    "tiles": [-1, (1 << 20) + 1],
    "tile_bytes": [0, 24, (1 << 20) + 16],
    "consumer_warps": [0, 9],
    "work": [-1, (1 << 24) + 1],
    "arrive_lanes": [0, 31, 33],
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_parameter_is_refused_by_its_name(name: str) -> None:
    assert list(inspect.signature(producer_consumer).parameters) == list(WRONG)
    for value in WRONG[name]:
        with pytest.raises(ParameterError) as caught:
            producer_consumer(**{name: value})  # type: ignore[arg-type]
        assert caught.value.fact.startswith(name)


def test_the_shape_of_the_program() -> None:
    program = producer_consumer(stages=3, tiles=5, tile_bytes=160, consumer_warps=3, work=9, arrive_lanes=32).flatten()
    assert [program.agent_name(a) for a in range(4)] == ["producer", "consumer/0", "consumer/1", "consumer/2"]
    assert [program.barrier_name(b) for b in range(6)] == [f"{g}[{s}]" for g in ("full", "empty") for s in range(3)]
    assert program.smem_bytes == 3 * 160 + 6 * 8
    assert [op[2] for op in program.code[0] if op[0] == Op.INIT] == [1, 96] * 3
    shares = [next(program.accesses[op[1]] for op in code if op[0] == Op.READ) for code in program.code[1:]]
    assert [(a.offset, a.nbytes) for a in shares] == [(0, 48), (48, 48), (96, 64)], "the last warp reads what is left"
    assert program.loops == ("tiles",)


def test_a_tile_smaller_than_the_warps_is_read_by_the_last_of_them() -> None:
    program = producer_consumer(stages=1, tiles=2, tile_bytes=16, consumer_warps=4).flatten()
    assert [sum(op[0] == Op.READ for op in code) for code in program.code] == [0, 0, 0, 0, 2]
    assert run_canonically(program).finished


@settings(max_examples=40, deadline=None)
@given(
    stages=st.integers(1, 4),
    tiles=st.integers(0, 7),
    warps=st.integers(1, 3),
    lanes=st.sampled_from([1, 32]),
    rng=st.randoms(use_true_random=False),
)
def test_any_schedule_ends_with_every_tile_read(stages: int, tiles: int, warps: int, lanes: int, rng: Any) -> None:
    program = producer_consumer(stages, tiles, 64, warps, 1, lanes).flatten()
    ended = run(program, rng.randrange(1 << 30))
    state = ended.state
    assert ended.outcome == "finished"
    assert state.pcs == tuple(len(code) for code in program.code)
    laps = [(tiles + stages - 1 - s) // stages for s in range(stages)]
    assert state.barriers == tuple(
        BarrierState(count, count, 0, laps[s], LIVE) for count in (1, warps * lanes) for s in range(stages)
    )
    assert (state.flights, explain(program, state)) == ((), None)
