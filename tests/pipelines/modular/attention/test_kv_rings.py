"""K and V on the machine: slices, the ring that both share, and a pair of CTAs; right, and with one mistake each."""

from __future__ import annotations

from typing import Any

import pytest

from pipesim.explain.phases import run_canonically
from pipesim.lang.intrinsics import elect, elect_mma_arrive, mma_arrive_multicast
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.ops import Engine
from pipesim.model.program import Program
from pipesim.pipelines import (
    BF16,
    FA4Config,
    KVPipelineGeneric,
    KVTile,
    PipelineState,
    StagedPipeline,
    TMAConsumerPipeline,
    TMAProducerPipeline,
)
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile

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


def test_k_in_slices_and_v_whole(outcomes: Any) -> None:
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
def test_one_mistake_with_one_end(wrong: str, ends: set[str], outcomes: Any) -> None:
    assert outcomes(attention(wrong), schedules=20) == ends


@pytest.mark.parametrize("wrong", ["waits for slice 0", "waits for the last", "acquires slice 0", "no step"])
def test_a_slice_says_nothing_of_the_other(wrong: str, outcomes: Any) -> None:
    """The consumer reads what has not landed; the producer fills what is still read, or was not even waited for."""
    ends = outcomes(attention(wrong), schedules=200)
    assert ends & {"RACE", "WRONG_ITEM"}
    assert ends <= {"finished", "RACE", "WRONG_ITEM", "UNINITIALISED_READ", "OVER_ARRIVAL", "stuck"}


# one ring of K and V


def fused(*, release_v: bool = True, tiles: int = 4) -> Program:
    """K0 V0 K1 V1 … in one ring of three; V of the iteration before is held while K is, and freed by its number."""
    p = Protocol("fused")
    slots = p.smem("KV", 3, SLICE)
    storage = p.mbarriers("kv", StagedPipeline.num_mbars(3))
    p.init(lambda: StagedPipeline(storage, 3).init())

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = StagedPipeline(storage, 3)
        pipe.state = PipelineState(3, 0, 1, 0)
        with w.elect_one():
            for i in range(2 * tiles):
                pipe.producer_acquire()
                pipe.producer_mbar().expect_bytes(SLICE)
                w.tma_load(slots[pipe.state.index()], pipe.producer_mbar(), i)
                pipe.state.step()

    @p.role("mma")
    def mma(w: Warp) -> None:
        pipe, held = StagedPipeline(storage, 3), -1

        def take(item: int) -> int:
            pipe.consumer_wait()
            slot = pipe.state.index()
            w.mma(Engine.TCGEN05, reads=[(slots[slot], item)])
            pipe.state.step()
            return slot

        with w.elect_one():
            for i in range(tiles):
                k = take(2 * i)
                if i:
                    w.mma(Engine.TCGEN05, reads=[(slots[held], 2 * i - 1)])
                    if release_v:
                        w.commit(Engine.TCGEN05, pipe.consumer_mbar(0, held))
                w.commit(Engine.TCGEN05, pipe.consumer_mbar(0, k))
                held = take(2 * i + 1)
            w.commit(Engine.TCGEN05, pipe.consumer_mbar(0, held))

    return p.flatten()


def test_v_is_freed_late_and_by_its_number(outcomes: Any) -> None:
    assert outcomes(fused(), schedules=60) == {"finished"}
    assert [b.done for b in run_canonically(fused()).state.barriers] == [3, 3, 2, 3, 3, 2]
    assert outcomes(fused(release_v=False), schedules=20) == {"stuck"}


def mla(*, lanes: int = 32) -> Program:
    """Filled by a warp of ``cp.async`` lanes, freed by two MMAs: counts other than 1."""
    p = Protocol("mla")
    storage = p.mbarriers("kv", StagedPipeline.num_mbars(2))
    p.init(lambda: KVPipelineGeneric(storage, 2, 1, num_producer=32, num_consumer=2).init())

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = KVPipelineGeneric(storage, 2, 1, 32, 2)
        pipe.state = PipelineState(2, 0, 1, 0)
        for _ in range(5):
            pipe.producer_acquire()
            with w.lanes(lanes):
                pipe.producer_mbar().arrive()
            pipe.state.step()

    @p.role("mma", warps=2)
    def mma(w: Warp) -> None:
        pipe = KVPipelineGeneric(storage, 2, 1, 32, 2)
        for _ in range(5):
            pipe.consumer_wait()
            elect_mma_arrive(pipe.consumer_mbar(), elect())
            pipe.state.step()

    return p.flatten()


def test_mla_s_pipeline_counts_all_its_arrivals(outcomes: Any) -> None:
    assert outcomes(mla(), schedules=40) == {"finished"}
    assert outcomes(mla(lanes=31), schedules=20) == {"stuck"}


# a pair of CTAs


def pair(*, expects: int = 2, multicast: bool = True, tiles: int = 5) -> Program:
    """K of a pair: each CTA loads half of the rows, counted on the leader's barrier; the leader's MMA reads both."""
    config = FA4Config(BF16, depth=128, BN=64, num_kv_stages=2, num_qk_stages=2, pair_cta=True)
    p = Protocol("pair", cluster=2)
    smem = p.smem("K", 2, KVTile(BF16, config).full_bytes)
    storage = p.mbarriers("mbars", 8, count=1)

    @p.role("load")
    def load(w: Warp) -> None:
        k = TMAProducerPipeline(storage, smem, dtype=BF16, config=config)
        with w.elect_one():
            for i in range(tiles):
                for q in range(2):
                    k.acquire_k(qk_stage=q)
                    tile = k.get_k(qk_stage=q)
                    if w.cta == 0:
                        tile.mbar.expect_bytes(expects * k.tile_bytes)
                    w.tma_load(tile.smem, tile.mbar.mapa(0), i)
                k.commit_step()
            for _ in range(2):  # both CTAs stay until the last commit has come
                for q in range(2):
                    k.acquire_k(qk_stage=q)
                k.commit_step()
        w.cluster_sync()

    @p.role("mma")
    def mma(w: Warp) -> None:
        k = TMAConsumerPipeline(storage, smem, dtype=BF16, config=config).pipeline
        for i in range(tiles if w.cta == 0 else 0):
            for q in range(2):
                k.consumer_wait(q)
                with w.elect_one():
                    w.mma(Engine.TCGEN05, reads=[(smem[k.state.index()].part(q * SLICE, SLICE), i)])
                    if multicast:
                        mma_arrive_multicast(k.consumer_mbar(q), 0b11)
                    else:
                        w.commit(Engine.TCGEN05, k.consumer_mbar(q))
            k.state.step()
        w.cluster_sync()

    return p.flatten()


def test_the_leader_expects_the_bytes_of_both_ctas_and_commits_to_both(outcomes: Any) -> None:
    assert simulate(pair(), load_profile("h100")).outcome == Ending.FINISHED
    assert "finished" not in outcomes(pair(expects=1), schedules=30)
    assert outcomes(pair(multicast=False), schedules=20) == {"stuck"}
