"""The period of every protocol against the bound that no schedule beats, and what sets it."""

import pytest

from pipesim.conform.steady import read
from pipesim.model.steady import waits_per_trip
from pipesim.protocols.catalog import BUILT_IN
from pipesim.targets import find
from pipesim.timed.bounds.critical import least_period
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from tests.support.lanes import slow_but

#: Trips enough for a steady part; what sets the period; and how far above the bound it may lie, in percent: what a
#: schedule adds is polls, which notice an arrive late, and turns that roles take at what they share.
PERIODS = {
    "attention_sm100": ({"kv_blocks": 32}, "the critical cycle correction's arrive → S0_cons → mma's commit", 9),
    # The softmaxes of the two groups share issue slots, with each other and with the tensor cores.
    "attention_sm90": ({"kv_blocks": 32}, "the critical cycle consumer's MMA → its own transfers", 40),
    "attention_sm90_fused": ({"kv_blocks": 32}, "the matrix engine", 43),
    "cluster_multicast": ({"tiles": 32}, "the iteration of consumer", 1),
    "conv_epilogue": ({"tiles": 16}, "the iteration of load", 1),
    # Its loads wait for the stores of the tile before on the copy engine.
    "cutlass_sm100": ({"tiles": 24}, "the iteration of load", 28),
    # As of gemm_sm90: the tensor cores idle while both groups store.
    "cutlass_sm90_cooperative": ({"tiles": 24}, "the matrix engine", 34),
    # A trip of its consumers is two tiles. With little to multiply the two epilogues, one after the other, set it.
    "cutlass_sm90_pingpong": ({"tiles": 24, "k_tiles": 2}, "the critical cycle consumer0's arrive → math_wg_order", 13),
    "epilogue_residual": ({"tiles": 24}, "the iteration of mma", 5),
    "gemm_sm100": ({"tiles": 24}, "the iteration of load", 1),
    "gemm_sm100_block_scaled": ({"tiles": 24}, "the iteration of load", 1),
    "gemm_sm100_blockwise": ({"tiles": 24}, "the critical cycle epilogue's arrive → named barrier 2", 1),
    "gemm_sm100_grouped": ({"tiles": 24}, "the iteration of load", 1),
    # The period is read at the scheduler, which fills its ring first: in 24 tiles that shows.
    "gemm_sm100_grouped_1d1d": ({"tiles": 64}, "the iteration of load", 1),
    # The stores of one group wait for those of the other, and for loads.
    "gemm_sm90": ({"tiles": 16}, "the critical cycle consumer's MMA", 6),
    "persistent_scheduler": ({"tiles": 16}, "the iteration of consumer", 1),
    "producer_consumer": ({"tiles": 64}, "the iteration of consumer", 1),
}

FAST = ("attention_sm90", "cluster_multicast", "cutlass_sm100", "persistent_scheduler", "producer_consumer")


def test_every_protocol_is_here() -> None:
    assert sorted(PERIODS) == sorted(BUILT_IN)


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize("name", slow_but(FAST, PERIODS))
def test_the_period_is_that_of_what_sets_it(name: str) -> None:
    params, by, percent = PERIODS[name]
    program, profile = find(name).build(params), load_profile("h100")
    bound = least_period(program, profile)
    reading = read(simulate(program, profile).trace, waits_per_trip(program))
    assert bound is not None
    assert reading is not None
    assert bound.by.startswith(by)
    period = reading.period_millicycles
    assert period is not None
    least = bound.period_millicycles * 998 // 1000  # trips differ, and not all of them are in the reading
    assert least <= period <= bound.period_millicycles * (100 + percent) // 100
