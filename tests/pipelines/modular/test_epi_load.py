"""The epilogue's source tiles, and the order of their loads: two arrivals that one wait misses both."""

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.moves import run_canonically
from pipesim.model.program import Program
from pipesim.pipelines import (
    EpiLoadPipeline,
)
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile


def residual(*, step_first: bool = False) -> Program:
    """conv2d's shape: the load warp by hand, the tile writer on the inner pipeline."""
    p = Protocol("residual")
    source = p.smem("source", 2, 1024)
    storage = p.mbarriers("epi", 4)
    p.init(lambda: EpiLoadPipeline(storage, 2).init_barriers())

    @p.role("epilogue_load")
    def epilogue_load(w: Warp) -> None:
        epi = EpiLoadPipeline(storage, 2)
        for part in range(5):
            slot = source[epi.pipeline.producer_stage()]
            epi.wait_consumer()
            if step_first:
                epi.producer_step()
            with w.elect_one():
                epi.producer_mbar().expect_bytes(1024)
                w.tma_load(slot, epi.producer_mbar(), part)
            if not step_first:
                epi.producer_step()

    @p.role("epilogue", warps=4)
    def epilogue_role(w: Warp) -> None:
        pipe = EpiLoadPipeline(storage, 2).pipeline
        for part in range(5):
            pipe.wait_producer()
            w.read(source[pipe.consumer_stage()], part)
            pipe.consumer_mbar(pipe.consumer_stage()).arrive()
            pipe.consumer_step()

    return p.flatten()


def test_the_barrier_asked_for_after_the_step_is_the_next_stages() -> None:
    """Right: ask, then step. Wrong: the copy of stage 0 is counted on full[1], and nobody ever fills full[0] first."""
    assert run_canonically(residual()).finished
    wrong = simulate(residual(step_first=True), load_profile("h100"))
    assert wrong.outcome is Ending.DEADLOCK
    assert wrong.deadlock is not None
    assert {b.barrier for b in wrong.deadlock.blocked if b.agent.startswith("epilogue/")} == {"full[0]"}


# the order of the loads
