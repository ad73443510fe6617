"""``TMAProducerPipeline`` and ``TMAConsumerPipeline``: every name of the API table, and K and V on the machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim import pipelines
from pipesim.errors import ProtocolError
from pipesim.lang.predicate import elect
from pipesim.lang.protocol import Protocol
from pipesim.lang.tcgen05 import mma_arrive_multicast
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.ops import Engine, Op, Operation
from pipesim.model.program import Program
from pipesim.pipelines import (
    BF16,
    FP8,
    FA4Config,
    KVTile,
    PipelineState,
    StagedPipeline,
    TileLayout,
    TMAConsumerPipeline,
    TMADestination,
    TMAProducerPipeline,
)
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile

SMALL = FA4Config(BF16, depth=128, BN=32, num_kv_stages=2, num_qk_stages=2)
SLICE = 32 * 64 * 2  # bytes of a slice of K: 32 keys, half of the depth
KN = 4  # barriers of K: producers 0..3, consumers 4..7; of V: producers 8, 9, consumers 10, 11
V = 8


def producer(mbar: Any, smem: TileArray, *, is_k: bool = True, config: FA4Config = SMALL) -> TMAProducerPipeline:
    return TMAProducerPipeline(mbar, smem, dtype=BF16, config=config, is_k=is_k)


def consumer(mbar: Any, smem: TileArray, *, is_k: bool = True, config: FA4Config = SMALL) -> TMAConsumerPipeline:
    return TMAConsumerPipeline(mbar, smem, dtype=BF16, config=config, is_k=is_k)


def recorded(make: Callable[..., Any], body: Callable[[Any, Any], Any]) -> list[Operation]:
    """What ``body(k, v)`` records with both pipelines of one side, without the prologue."""
    p = Protocol("kv")
    k_smem, v_smem = p.smem("K", 2, 2 * SLICE), p.smem("V", 2, 2 * SLICE)
    storage = p.mbarriers("kv", 12, count=1)

    @p.role("r")
    def r(w: Warp) -> None:
        body(make(storage, k_smem), make(storage[V], v_smem, is_k=False))

    return list(p.flatten().code[0][12 + 2 :])


def wait(barrier: int, parity: int) -> Operation:
    return (Op.WAIT, barrier, parity, 0)


def expect(barrier: int, nbytes: int, lanes: int = 1) -> Operation:
    return (Op.ARRIVE, barrier, lanes, nbytes * lanes, -1, 0)


def commit(barrier: int) -> Operation:
    return (Op.COMMIT, Engine.TCGEN05, barrier)


def where(destination: TMADestination) -> tuple[int, str, int, int]:
    return destination.mbar.index, destination.smem.name, destination.smem.offset, destination.smem.nbytes


def test_the_api_surface_is_complete() -> None:
    members = {
        "TMAProducerPipeline": (
            "bytes elements elements_full num_qk_stages_effective tile_bytes tile_layout get_smem get_tile acquire "
            "commit_step get_k_smem get_k acquire_k get_v_smem get_v acquire_v KPairType PairType SMemType"
        ),
        "TMAConsumerPipeline": (
            "full_kv_bytes staged_k_bytes num_qk_stages_effective get wait release get_k wait_k release_k get_v wait_v "
            "release_v"
        ),
    }
    assert set(pipelines.__all__) >= set(members)
    for name, wanted in members.items():
        for member in wanted.split():
            assert getattr(getattr(pipelines, name), member).__doc__, f"{name}.{member} says what it does"
    assert TMAProducerPipeline.KPairType is TMAProducerPipeline.PairType is TMADestination
    assert TMAProducerPipeline.SMemType is TileArray


def test_constants_of_k_and_of_v() -> None:
    def body(k: TMAProducerPipeline, v: TMAProducerPipeline) -> None:
        assert k.tile_layout == TileLayout(mn=32, k=64, k_major=True)
        assert v.tile_layout == TileLayout(mn=128, k=32, k_major=False)
        assert (k.elements, k.elements_full, k.tile_bytes, k.bytes) == (2048, 4096, SLICE, SLICE)
        assert (v.elements, v.elements_full, v.tile_bytes, v.bytes) == (4096, 4096, 2 * SLICE, 2 * SLICE)
        assert (k.num_qk_stages_effective, v.num_qk_stages_effective) == (2, 1)
        assert (k.pipeline.num_stages, v.pipeline.num_stages) == (4, 2)
        assert (k.smem.name, v.smem.name, k.dtype, k.config, k.is_k, v.is_k) == ("K", "V", BF16, SMALL, True, False)

    assert recorded(producer, body) == []

    def other(k: TMAConsumerPipeline, v: TMAConsumerPipeline) -> None:
        assert (k.full_kv_bytes, k.staged_k_bytes, v.full_kv_bytes) == (2 * SLICE, SLICE, 2 * SLICE)
        assert (k.num_qk_stages_effective, v.num_qk_stages_effective) == (2, 1)

    assert recorded(consumer, other) == []


def test_in_a_pair_each_cta_has_half_of_k_s_rows_and_of_v_s_columns() -> None:
    pair = FA4Config.for_b200(128, pair_cta=True)
    k, v = KVTile(BF16, pair), KVTile(BF16, pair, is_k=False)
    assert (k.tile_layout, v.tile_layout) == (TileLayout(64, 64, k_major=True), TileLayout(64, 128, k_major=False))
    assert (k.tile_bytes, k.full_bytes, v.tile_bytes, v.full_bytes) == (8192, 16384, 16384, 16384)
    assert KVTile(FP8, FA4Config.for_b200(128, FP8)).full_bytes == 128 * 128


def test_both_constructors_set_phase_1_and_the_second_copies_the_pipeline() -> None:
    def body(k: TMAProducerPipeline, _: TMAProducerPipeline) -> None:
        assert (k.pipeline.state.index(), k.pipeline.state.phase()) == (0, 1)
        staged = StagedPipeline(k.pipeline.mbar, 2, 2)
        staged.state.step()
        over = producer(staged, k.smem)
        assert (over.pipeline.state.index(), over.pipeline.state.phase()) == (1, 1), "only the phase is set"
        over.commit_step()
        assert (staged.state.index(), staged.state.phase()) == (1, 0)
        assert over.pipeline.mbar.index == staged.mbar.index == 0

    assert recorded(producer, body) == []


def test_a_consumer_starts_at_phase_0() -> None:
    def body(k: TMAConsumerPipeline, _: TMAConsumerPipeline) -> None:
        assert (k.pipeline.state.index(), k.pipeline.state.phase()) == (0, 0)
        primed = StagedPipeline(k.pipeline.mbar, 2, 2)
        primed.state = PipelineState(2, 1, 1, 0)
        assert consumer(primed, k.smem).pipeline.state.phase() == 1, "a pipeline that is given keeps its state"

    recorded(consumer, body)


def test_a_slice_lies_behind_the_one_before_it_and_a_slot_behind_all_of_them() -> None:
    def body(k: TMAProducerPipeline, v: TMAProducerPipeline) -> None:
        for slot in range(2):
            for q in range(2):
                at = (f"K[{slot}]", slot * 2 * SLICE + q * SLICE, SLICE)
                assert where(k.get_tile(qk_stage=q)) == where(k.get_k(qk_stage=q)) == (2 * slot + q, *at)
                for smem in (k.get_smem(qk_stage=q), k.get_k_smem(qk_stage=q)):
                    assert (smem.name, smem.offset, smem.nbytes) == at
            assert k.get_smem() == k.get_smem(qk_stage=0), "slice 0 unless named"
            assert k.get_tile().mbar is k.pipeline.producer_mbar(0)
            whole = (f"V[{slot}]", 4 * SLICE + slot * 2 * SLICE, 2 * SLICE)
            assert where(v.get_tile()) == (V + slot, *whole)
            assert (v.get_v_smem().name, v.get_v_smem().offset, v.get_v_smem().nbytes) == whole
            k.commit_step()
            v.commit_step()
        assert (k.pipeline.state.index(), k.pipeline.state.phase()) == (0, 0)

    assert recorded(producer, body) == [], "naming memory and stepping signal nothing"


Pipe = TMAProducerPipeline
PRODUCER_CALLS: dict[str, tuple[Callable[[Pipe, Pipe], Any], list[Operation]]] = {
    "acquire()": (lambda k, _: k.acquire(), [wait(KN, 1)]),
    "acquire(qk_stage=1)": (lambda k, _: k.acquire(qk_stage=1), [wait(KN + 1, 1)]),
    "acquire_k": (lambda k, _: k.acquire_k(qk_stage=1), [wait(KN + 1, 1)]),
    "acquire of v": (lambda _, v: v.acquire(), [wait(V + 2, 1)]),
    "acquire_v": (lambda _, v: v.acquire_v(), [wait(V + 2, 1)]),
    "get_tile(e)": (lambda k, _: k.get_tile(elect()), [expect(0, SLICE)]),
    "get_tile(e, qk_stage=1)": (lambda k, _: k.get_tile(elect(), qk_stage=1), [expect(1, SLICE)]),
    "get_tile(0)": (lambda k, _: k.get_tile(0), []),
    "get_tile(two lanes)": (lambda k, _: k.get_tile(0b11), [expect(0, SLICE, lanes=2)]),
    "get_k(e)": (lambda k, _: k.get_k(elect(), qk_stage=1), [expect(1, SLICE)]),
    "get_v(e)": (lambda _, v: v.get_v(elect()), [expect(V, 2 * SLICE)]),
    "get_v(0)": (lambda _, v: v.get_v(0), []),
    "commit_step": (lambda k, _: k.commit_step(), []),
}


@pytest.mark.parametrize("call", PRODUCER_CALLS)
def test_each_call_of_the_producer_records_what_upstream_does(call: str) -> None:
    body, expected = PRODUCER_CALLS[call]
    assert recorded(producer, body) == expected


def test_both_overloads_name_the_same_destination() -> None:
    def body(k: TMAProducerPipeline, v: TMAProducerPipeline) -> None:
        assert where(k.get_tile(elect(), qk_stage=1)) == where(k.get_tile(qk_stage=1))
        assert where(v.get_v(elect())) == where(v.get_tile())

    recorded(producer, body)


End = TMAConsumerPipeline
CONSUMER_CALLS: dict[str, tuple[Callable[[End, End], Any], list[Operation], int]] = {
    "wait()": (lambda k, _: k.wait(), [wait(0, 0)], 0),
    "wait(qk_stage=1)": (lambda k, _: k.wait(qk_stage=1), [wait(1, 0)], 0),
    "wait_k()": (lambda k, _: k.wait_k(), [wait(1, 0)], 0),
    "wait_k(qk_stage=0)": (lambda k, _: k.wait_k(qk_stage=0), [wait(0, 0)], 0),
    "wait_v": (lambda _, v: v.wait_v(), [wait(V, 0)], 0),
    "release(e)": (lambda k, _: k.release(elect()), [commit(KN)], 0),
    "release(e, qk_stage=1)": (lambda k, _: k.release(elect(), qk_stage=1), [commit(KN + 1)], 1),
    "release_k(e)": (lambda k, _: k.release_k(elect()), [commit(KN + 1)], 1),
    "release_k(e, qk_stage=0)": (lambda k, _: k.release_k(elect(), qk_stage=0), [commit(KN)], 0),
    "release_v(e)": (lambda _, v: v.release_v(elect()), [commit(V + 2)], 0),
    "release_k(0)": (lambda k, _: k.release_k(0), [], 1),
}


@pytest.mark.parametrize("call", CONSUMER_CALLS)
def test_each_call_of_the_consumer_records_what_upstream_does(call: str) -> None:
    body, expected, steps = CONSUMER_CALLS[call]

    def then(k: TMAConsumerPipeline, v: TMAConsumerPipeline) -> None:
        body(k, v)
        assert (k.pipeline.state.index(), v.pipeline.state.index()) == (steps, int(call == "release_v(e)"))

    assert recorded(consumer, then) == expected


def test_get_is_the_whole_slot() -> None:
    def body(k: TMAConsumerPipeline, v: TMAConsumerPipeline) -> None:
        assert k.get() == k.get_k()
        assert v.get() == v.get_v()
        k.release_k(elect())
        assert (k.get().name, k.get().offset, k.get().nbytes) == ("K[1]", k.full_kv_bytes, k.full_kv_bytes)

    recorded(consumer, body)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda k, v: k.get_smem(qk_stage=2), "slice 2 of 2"),
        (lambda k, v: v.get_smem(qk_stage=1), "slice 1 of 1"),
        (lambda k, v: v.acquire(qk_stage=1), "slice 1 of 1"),
        (lambda k, v: producer(v.pipeline, k.smem), "of 2 slots in 1 slices; K of this configuration has 2 in 2"),
        (lambda k, v: producer(k.pipeline.mbar, TileArray("K", k.smem.space, 0, SLICE, 2)), "K needs 2 of 8192"),
        (lambda k, v: consumer(v.pipeline.mbar, TileArray("V", k.smem.space, 0, 8192, 1), is_k=False), "V needs 2 of"),
    ],
)
def test_what_does_not_fit_is_an_error(call: Callable[[Any, Any], Any], said: str) -> None:
    with pytest.raises(ProtocolError, match=said):
        recorded(producer, call)


def test_a_role_uses_its_own_pipeline() -> None:
    p = Protocol("shared")
    smem = p.smem("K", 2, 2 * SLICE)
    storage = p.mbarriers("kv", 8, count=1)
    kept: list[TMAProducerPipeline] = []
    p.role("a")(lambda _: kept.append(producer(storage, smem)))
    p.role("b")(lambda _: kept[-1].get_smem())  # type: ignore[arg-type]
    with pytest.raises(ProtocolError, match="b uses the TMAProducerPipeline that a made"):
        p.flatten()


# K and V on the machine


def attention(wrong: str = "", tiles: int = 5) -> Program:
    """Load → MMA in split mode: K in two slices, V whole, each in a ring of two slots. ``wrong``: one mistake."""
    p = Protocol("attention")
    k_smem, v_smem = p.smem("K", 2, 2 * SLICE), p.smem("V", 2, 2 * SLICE)
    k_mbars, v_mbars = p.mbarriers("k", 8, count=1), p.mbarriers("v", 4, count=1)

    @p.role("load")
    def load(w: Warp) -> None:
        k, v = producer(k_mbars, k_smem), producer(v_mbars, v_smem, is_k=False)
        e = elect()
        for i in range(tiles):
            for q in range(2):
                k.acquire_k(qk_stage=0 if wrong == "acquires slice 0" else q)
                mask = {"no expect": 0, "two lanes": 0b11}.get(wrong, e)
                tile = k.get_k(mask, qk_stage=q)
                with w.elect_one():
                    if wrong == "arrives too":
                        tile.mbar.arrive()
                    if wrong != "loads nothing":
                        w.tma_load(tile.smem, tile.mbar, i)
            k.commit_step()
            v.acquire_v()
            tile = v.get_v(e)
            with w.elect_one():
                w.tma_load(tile.smem, tile.mbar, 100 + i)
            v.commit_step()

    @p.role("mma")
    def mma(w: Warp) -> None:
        k, v = consumer(k_mbars, k_smem), consumer(v_mbars, v_smem, is_k=False)
        e = elect()
        for i in range(tiles):
            for q in range(2):
                k.wait(qk_stage=0 if wrong == "waits for slice 0" else q)
                with w.elect_one():
                    w.mma(Engine.TCGEN05, reads=[(k.get().part(q * SLICE, SLICE), i)])
                if wrong == "releases slice 0":
                    continue
                k.release(e, qk_stage=q)
            if wrong == "releases slice 0":
                k.release(e)
            v.wait_v()
            with w.elect_one():
                w.mma(Engine.TCGEN05, reads=[(v.get(), 100 + i)])
            v.release_v(e)

    return p.flatten()


def test_k_in_slices_and_v_whole(outcomes: Any) -> None:
    assert outcomes(attention(), schedules=60) == {"finished"}
    result = simulate(attention(), load_profile("h100"))
    assert (result.outcome, result.faults) == (Ending.FINISHED, ())
    assert [attention().barrier_name(b) for b in (0, 3, 4, 8, 10)] == [
        "K.full[0]", "K.full[3]", "K.empty[0]", "V.full[0]", "V.empty[0]",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("wrong", "ends"),
    [
        ("no expect", {"stuck"}),  # the bytes land and nobody arrives
        ("arrives too", {"OVER_ARRIVAL"}),  # get_k(e) has arrived already, whatever its name says
        ("two lanes", {"OVER_ARRIVAL"}),  # every lane of e expects, and arrives
        ("loads nothing", {"stuck"}),  # commit_step commits nothing
    ],
)
def test_what_the_producer_s_names_hide(wrong: str, ends: set[str], outcomes: Any) -> None:
    assert outcomes(attention(wrong), schedules=20) == ends


def test_slice_0_says_nothing_of_slice_1(outcomes: Any) -> None:
    """The consumer reads what has not landed; the producer fills what is still read, or was not even waited for."""
    ends = outcomes(attention("waits for slice 0"), schedules=200)
    assert {"RACE"} <= ends - {"finished"} <= {"RACE", "WRONG_ITEM", "UNINITIALISED_READ"}
    ends = outcomes(attention("acquires slice 0"), schedules=200)
    assert {"RACE"} <= ends <= {"finished", "RACE", "WRONG_ITEM", "OVER_ARRIVAL", "stuck"}


def test_a_bare_release_of_k_never_steps(outcomes: Any) -> None:
    """It frees slice 0 and stays: the next wait is for the same slot and phase, and passes at once."""
    ends = outcomes(attention("releases slice 0"), schedules=60)
    assert "finished" not in ends
    assert ends <= {"WRONG_ITEM", "RACE", "OVER_ARRIVAL", "stuck"}, ends


# a pair of CTAs


def pair(*, expects: int = 2, multicast: bool = True, tiles: int = 5) -> Program:
    """K of a pair: each CTA loads half of the rows, counted on the leader's barrier; the leader's MMA reads both."""
    config = FA4Config(BF16, depth=128, BN=64, num_kv_stages=2, num_qk_stages=2, pair_cta=True)
    p = Protocol("pair", cluster=2)
    smem = p.smem("K", 2, KVTile(BF16, config).full_bytes)
    storage = p.mbarriers("mbars", 8, count=1)

    @p.role("load")
    def load(w: Warp) -> None:
        k = producer(storage, smem, config=config)
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
        k = consumer(storage, smem, config=config)
        for i in range(tiles if w.cta == 0 else 0):
            for q in range(2):
                k.wait(qk_stage=q)
                with w.elect_one():
                    w.mma(Engine.TCGEN05, reads=[(k.get().part(q * SLICE, SLICE), i)])
                    if multicast:
                        mma_arrive_multicast(k.pipeline.consumer_mbar(q), 0b11)
                    else:
                        k.release(elect(), qk_stage=q)
            if multicast:
                k.pipeline.state.step()
        w.cluster_sync()

    return p.flatten()


def test_the_leader_expects_the_bytes_of_both_ctas(outcomes: Any) -> None:
    assert simulate(pair(), load_profile("h100")).outcome == Ending.FINISHED
    assert "finished" not in outcomes(pair(expects=1), schedules=30)


def test_a_release_reaches_the_own_cta_only(outcomes: Any) -> None:
    assert outcomes(pair(multicast=False), schedules=20) == {"stuck"}
