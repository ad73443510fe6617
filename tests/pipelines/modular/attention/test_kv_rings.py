"""K in slices and V whole on the machine: right, and with one mistake each."""

import pytest

from pipesim.lang.intrinsics import elect
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.ops import Engine
from pipesim.model.program import Program
from pipesim.pipelines import (
    BF16,
    FA4Config,
    PipelineState,
    TMAConsumerPipeline,
    TMAProducerPipeline,
)
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from tests.support.random_schedules import outcomes

SMALL = FA4Config(BF16, depth=128, BN=32, num_kv_stages=2, num_qk_stages=2)
SLICE = 32 * 64 * 2  # bytes of a slice of K: 32 keys, half of the depth


def attention(wrong: str = "", tiles: int = 5) -> Program:
    """Load → MMA in split mode: K in two slices, V whole, each in a ring of two slots. ``wrong``: one mistake."""
    p = Protocol("attention")
    k_smem, v_smem = p.smem("K", 2, 2 * SLICE), p.smem("V", 2, 2 * SLICE)
    k_mbars, v_mbars = p.mbarriers("k", 8, count=1), p.mbarriers("v", 4, count=1)

    @p.role("load")
    def load(w: Warp) -> None:
        k = TMAProducerPipeline(k_mbars, k_smem, dtype=BF16, config=SMALL)
        v = TMAProducerPipeline(v_mbars, v_smem, dtype=BF16, config=SMALL, is_k=False)
        if wrong == "phase 0":
            k.pipeline.state = PipelineState(2)
        for i in range(tiles):
            for q in range(2):
                k.acquire_k(qk_stage=0 if wrong == "acquires slice 0" else q)
                tile = k.get_k({"no expect": 0, "two lanes": 0b11}.get(wrong, elect()), qk_stage=q)
                with w.elect_one():
                    if wrong == "arrives too":
                        tile.mbar.arrive()
                    if wrong != "loads nothing":
                        w.tma_load(tile.smem, tile.mbar, i)
            k.commit_step()
            v.acquire_v()
            tile = v.get_v(elect())
            with w.elect_one():
                w.tma_load(tile.smem, tile.mbar, 100 + i)
            v.commit_step()

    @p.role("mma")
    def mma(w: Warp) -> None:
        k = TMAConsumerPipeline(k_mbars, k_smem, dtype=BF16, config=SMALL).pipeline
        v = TMAConsumerPipeline(v_mbars, v_smem, dtype=BF16, config=SMALL, is_k=False).pipeline
        with w.elect_one():
            for i in range(tiles):
                slices = (1, 0) if wrong == "backwards" else (0, 1)
                for q in slices:
                    k.consumer_wait({"waits for slice 0": 0, "waits for the last": None}.get(wrong, q))
                    w.mma(Engine.TCGEN05, reads=[(k_smem[k.state.index()].part(q * SLICE, SLICE), i)])
                    if q or wrong != "frees slice 1 only":
                        w.commit(Engine.TCGEN05, k.consumer_mbar(q))
                if wrong != "no step":
                    k.state.step()
                v.consumer_wait()
                w.mma(Engine.TCGEN05, reads=[(v_smem[v.state.index()], 100 + i)])
                w.commit(Engine.TCGEN05, v.consumer_mbar())
                v.state.step()

    return p.flatten()


@pytest.mark.slow
def test_k_in_slices_and_v_whole() -> None:
    assert outcomes(attention(), schedules=60) == {"finished"}
    assert outcomes(attention("backwards"), schedules=60) == {"finished"}, "the slices are free of each other"
    result = simulate(attention(), load_profile("h100"))
    assert (result.outcome, result.faults) == (Ending.FINISHED, ())
    assert [attention().barrier_name(b) for b in (0, 3, 4, 8, 10)] == [
        "K.full[0]", "K.full[3]", "K.empty[0]", "V.full[0]", "V.empty[0]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "ends"),
    [
        ("phase 0", {"stuck"}),  # a producer begins a phase ahead
        ("no expect", {"stuck"}),  # the bytes land and nobody arrives
        ("arrives too", {"OVER_ARRIVAL"}),  # get_k(e) has arrived already, whatever its name says
        ("two lanes", {"OVER_ARRIVAL"}),  # every lane of e expects, and arrives
        ("loads nothing", {"stuck"}),  # commit_step commits nothing
        ("frees slice 1 only", {"stuck"}),
    ],
)
def test_one_mistake_with_one_end(wrong: str, ends: set[str]) -> None:
    assert outcomes(attention(wrong), schedules=20) == ends
