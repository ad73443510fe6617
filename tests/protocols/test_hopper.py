"""Hopper's kernels: no barrier in a main loop, no turn that is passed in vain, responses that all roles take."""

from __future__ import annotations

from pipesim.explain.anatomy.read import anatomy
from pipesim.model.ops import Op
from pipesim.protocols.hopper.attention_sm90 import attention_sm90
from pipesim.protocols.hopper.gemm_sm90 import gemm_sm90
from pipesim.protocols.hopper.persistent_scheduler import persistent_scheduler
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile


def test_a_gemm_has_no_barrier_in_its_main_loop() -> None:
    """Upstream has none: the wait for a wgmma is that of its warp group."""

    def syncs(k_iters: int) -> int:
        return sum(op[0] == Op.BAR_SYNC for code in gemm_sm90(k_iters=k_iters).flatten().code for op in code)

    assert syncs(1) == syncs(9) > 0


def test_nobody_passes_a_turn_that_nobody_takes() -> None:
    for blocks in (0, 1, 2):
        run = simulate(attention_sm90(kv_blocks=blocks).flatten(), load_profile("h100"))
        assert run.state.named == tuple((0, 0, generation) for _, _, generation in run.state.named), "no half barrier"


def test_the_scheduler_takes_its_own_responses() -> None:
    """Upstream's count: the scheduler warp itself, the load warp and every consumer give a response back."""
    (empty,) = (g for g in anatomy(persistent_scheduler(consumer_warps=2).flatten(), 0).groups if g.name == "clc.empty")
    assert empty.count == 32 + 32 * (1 + 2)
    assert {s.role: s.agents * s.arrivals.high for s in empty.signals} == {"scheduler": 32, "load": 32, "consumer": 64}
