"""The ring law: each of its terms in turn, no simulated ring beats it, and it is silent about what is no ring."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.conform.steady import read
from pipesim.model.ending import Ending
from pipesim.timed.bounds.earliest import ring_law
from pipesim.timed.engine import simulate
from tests.support.timed_ring import flat_ring as ring
from tests.support.timed_ring import toy

# A trip of the toy ring: the producer waits 5, expects 4, copies 6, loops 2; a consumer waits 5, reads 2, arrives 7,
# loops 2; the engine takes 4. Round the ring: 4 to the copy's issue, 54 for it, 3 + 5 for the two waits, 2 to read, 2
# until the arrive is seen.


@pytest.mark.parametrize(
    ("by", "period", "shape", "prices"),
    [
        ("the producer's issue", 17, {"stages": 8}, {}),
        ("the consumers", 47, {"stages": 8, "work": 30}, {}),
        ("the copy engine", 40, {"stages": 8}, {"copy_bytes_per_kcycle": 1_600}),
        ("the latency around the ring over 1 stage", 70, {"stages": 1}, {}),
        ("the latency around the ring over 2 stages", 35, {"stages": 2}, {}),
    ],
)
def test_each_term_can_bind(by: str, period: int, shape: dict[str, int], prices: dict[str, int]) -> None:
    program, profile = ring(tiles=64, **shape), toy(**prices)
    bound = ring_law(program, profile)
    assert bound is not None
    assert (bound.by, bound.period_millicycles) == (by, 1000 * period)
    assert max(value for _, value in bound.terms) == bound.period_millicycles
    assert len(bound.terms) == 4
    reading = read(simulate(program, profile).trace)
    assert reading is not None
    assert reading.period_millicycles == bound.period_millicycles  # and here it is reached


SMALL = st.integers(0, 40)
PRICES = st.fixed_dictionaries({
    "wait_issue": SMALL, "wait_wake_up": SMALL, "wait_retry": SMALL, "wait_poll": st.integers(1, 60),
    "arrive_issue": SMALL, "arrive_latency": SMALL, "expect_issue": SMALL, "copy_issue": SMALL,
    "copy_latency": st.integers(0, 300), "copy_cold": st.integers(0, 100),
    "copy_bytes_per_kcycle": st.integers(500, 20_000), "copy_device_bytes_per_kcycle": st.integers(500, 80_000),
    "read_issue": SMALL, "work_issue": SMALL, "loop_issue": SMALL, "record_issue": st.integers(0, 9),
})  # fmt: skip
RINGS = st.fixed_dictionaries({
    "stages": st.integers(1, 5), "tiles": st.integers(1, 24), "warps": st.integers(1, 3), "work": st.integers(0, 200),
    "tries": st.booleans(),
})  # fmt: skip


@pytest.mark.slow
@settings(max_examples=50, deadline=None, derandomize=True)
@given(shape=RINGS, prices=PRICES, traced=st.booleans(), grid=st.integers(1, 5))
def test_no_ring_is_faster_than_its_law(
    shape: dict[str, Any], prices: dict[str, int], traced: bool, grid: int,
) -> None:  # fmt: skip
    """Exact, from the first tile on: each term takes a ring of T tiles and S stages at least T - S periods."""
    program = replace(ring(**shape), grid=grid)
    profile = toy(**prices, copy_latency_loaded=prices["copy_latency"] + 10)
    bound = ring_law(program, profile, traced=traced)
    result = simulate(program, profile, traced=traced)
    assert result.outcome is Ending.FINISHED
    assert bound is not None
    assert 1000 * result.cycles >= bound.period_millicycles * (shape["tiles"] - shape["stages"])
