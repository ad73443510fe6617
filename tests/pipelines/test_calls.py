"""Every call of every pipeline struct: what it waits for, what it signals, and what only steps, as upstream has it."""

from collections.abc import Callable
from typing import Any

import pytest

from pipesim import Protocol, Warp
from pipesim.errors import ProtocolError
from pipesim.lang.tiles import TileArray
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.pipelines import (
    AccumBarrier,
    AsyncParams,
    EpiLoadPipeline,
    FA4Config,
    InputTilePipeline,
    KVPipelineGeneric,
    KVTile,
    LoadOrderBarrier,
    OrderedSequenceBarrier,
    OutputTilePipeline,
    PipelineTmaAsync,
    PipelineTmaUmmaAsync,
    PipelineTransactionAsync,
    PipelineUmmaAsync,
    ProducerConsumerPipeline,
    RolePipeline,
    StagedPipeline,
    TileLayout,
    TileScheduler,
    TmaParams,
    TMAProducerPipeline,
    TmemAllocation,
)
from pipesim.pipelines.modular.attention.fa4 import BF16, FP8
from tests.pipelines.structs import STRUCTS, arrive, commit, in_a_role, role_code, wait


def counters(pipe: Any) -> tuple[int, ...]:
    inner = getattr(pipe, "pipeline", pipe)
    if hasattr(inner, "producer_stage"):
        return inner.producer_stage(), inner.consumer_stage()
    if hasattr(inner, "state"):
        return (inner.state.index(),)
    return (getattr(inner, "phase", 0),)


@pytest.mark.parametrize("name", STRUCTS)
def test_each_call_waits_signals_and_steps_as_upstream_does(name: str) -> None:
    for call, (body, expected, after) in STRUCTS[name].calls.items():

        def checked(pipe: Any) -> None:
            body(pipe)  # noqa: B023
            assert counters(pipe) == after, call  # noqa: B023

        assert role_code(in_a_role(checked, name)) == expected, call


INITS: dict[str, tuple[tuple[int, ...], Callable[[Any], Any]]] = {
    "ProducerConsumerPipeline": ((1, 1, 7, 7), lambda b: ProducerConsumerPipeline(b, 2).init_mbars(1, 7)),
    "InputTilePipeline": ((1, 1, 7, 7), lambda b: InputTilePipeline.init_barriers(b, 1, 7, num_group_stages=2)),
    "OutputTilePipeline": ((1, 1, 7, 7), lambda b: OutputTilePipeline.init_barriers(b, 1, 7, num_stages=2)),
    "EpiLoadPipeline": ((1, 1, 128, 128), lambda b: EpiLoadPipeline(b, 2).init_barriers()),
    "TileScheduler": ((1, 1, 7, 7), lambda b: TileScheduler.init_throttle_barriers(b, 1, 7, num_stages=2)),
    "LoadOrderBarrier": ((1,), lambda b: LoadOrderBarrier(b).init()),
    "StagedPipeline": ((1, 1, 1, 1), lambda b: StagedPipeline(b, 2).init()),
    "KVPipelineGeneric": ((3, 3, 7, 7), lambda b: KVPipelineGeneric(b, 2, 1, 3, 7).init()),
    "PipelineTransactionAsync": (
        (2, 2, 7, 7), lambda b: PipelineTransactionAsync.init_barriers(b, 2, AsyncParams(2, 7)),
    ),
    "PipelineTmaAsync": ((1, 1, 7, 7), lambda b: PipelineTmaAsync.init_barriers(b, 2, TmaParams(num_consumers=7))),
    "PipelineTmaUmmaAsync": ((1, 1, 1, 1), lambda b: PipelineTmaUmmaAsync.init_barriers(b, 2, TmaParams())),
    "PipelineUmmaAsync": ((1, 1, 7, 7), lambda b: PipelineUmmaAsync.init_barriers(b, 2, AsyncParams(1, 7))),
    "OrderedSequenceBarrier": ((7, 7, 7, 7), lambda b: OrderedSequenceBarrier.init_barriers(b, 2, 2, 7)),
}  # fmt: skip


def counts(size: int, init: Callable[[Any], Any], at: Callable[[Any], Any], cluster: int = 1) -> dict[int, int]:
    """The count of each barrier that an init initialises."""
    p = Protocol("init", cluster=cluster)
    b = p.mbarriers("b", size)
    p.init(lambda: init(at(b)))
    p.role("r")(lambda _: None)
    return {op[1]: op[2] for op in p.flatten().code[0] if op[0] == Op.INIT}


@pytest.mark.parametrize("name", INITS)
def test_an_init_gives_each_side_its_count_also_at_a_pointer(name: str) -> None:
    expected, init = INITS[name]
    size = len(expected)
    assert counts(size + 5, init, lambda b: b[2]) == {2 + i: count for i, count in enumerate(expected)}
    said = f"needs {size} mbarriers; b has {size - 1} from 2 on" if size > 1 else "barrier 2 of b, which has 2"
    with pytest.raises(ProtocolError, match=said):
        counts(size + 1, init, lambda b: b[2])


@pytest.mark.parametrize("init", [InputTilePipeline.init_barriers, OutputTilePipeline.init_barriers])
def test_an_array_is_the_barriers_of_one_pipeline_and_a_pointer_does_not_say_how_many(init: Callable[..., Any]) -> None:
    assert counts(6, lambda b: init(b, 1, 7), lambda b: b) == {0: 1, 1: 1, 2: 1, 3: 7, 4: 7, 5: 7}
    with pytest.raises(ProtocolError, match="2 stages need 4 mbarriers; b has 5"):
        counts(5, lambda b: init(b, 1, 1), lambda b: b)
    with pytest.raises(ProtocolError, match=r"init_barriers was given b\[2\] and no number of stages") as caught:
        counts(6, lambda b: init(b, 1, 1), lambda b: b[2])
    assert "num_stages" in caught.value.correction


@pytest.mark.parametrize("stages", [1, 2, 5])
def test_stages_wrap_and_only_then_the_phase_of_that_side_toggles(stages: int) -> None:
    p = Protocol("wrap")
    b = p.mbarriers("b", 2 * stages, count=1)

    @p.role("r")
    def r(_w: Warp) -> None:
        pipe = ProducerConsumerPipeline(b, stages)
        for n in range(3 * stages):
            assert (pipe.producer_stage(), pipe.producer_phase) == (n % stages, 1 ^ n // stages & 1)
            with pipe.produce():
                pass
        for _ in range(3 * stages):
            pipe.wait_producer()
            pipe.consumer_step()
        assert pipe.producer_stage() == pipe.consumer_stage() == 0

    laps = range(3 * stages)
    assert role_code(p.flatten()) == [
        *(wait(stages + n % stages, 1 ^ n // stages & 1) for n in laps),
        *(wait(n % stages, n // stages & 1) for n in laps),
    ]  # fmt: skip


def test_the_handles_of_a_stage_name_it_and_its_barrier() -> None:
    def ring(pipe: ProducerConsumerPipeline) -> None:
        made, read = pipe.acquire_producer(), pipe.acquire_consumer()
        pipe.full[0], pipe.empty[0]
        assert (made.index(), made.mbar() is pipe.full[0], read.index(), read.mbar() is pipe.empty[0]) == (
            0, True, 0, True,
        )  # fmt: skip
        made.release()
        read.release()

    def tiles(pipe: InputTilePipeline[Any]) -> None:
        views = pipe.producer(), pipe.consumer()
        made, read = (view.acquire_stage() for view in views)
        for stage in made, read:
            assert (stage.payload() is pipe.payload, stage.stage(), stage.pipeline_ptr is pipe) == (True, 0, True)
            stage.release()
        with views[0].acquire() as empty, views[1].acquire() as full:
            assert (empty.payload() is pipe.payload, empty.stage(), full.stage()) == (True, 1, 1), "the pipeline counts"

    def accumulators(pipe: OutputTilePipeline) -> None:
        with pipe.producer() as made, pipe.consumer() as read:
            for stage in made, read:
                assert (stage.index, stage.tmem.tile().name) == (0, "acc[0]")
            read.pipeline.consumer_step()
            assert (read.pipeline.consumer_stage(), pipe.pipeline.consumer_stage()) == (1, 0), "a copy"

    in_a_role(ring, "ProducerConsumerPipeline")
    in_a_role(tiles, "InputTilePipeline")
    in_a_role(accumulators, "OutputTilePipeline")


def test_accumulators_are_tiles_of_tensor_memory() -> None:
    with pytest.raises(ProtocolError, match="tile is not in tensor memory"):
        TmemAllocation(Protocol("p").smem("tile", 2, 64))


# pairs of CTAs


def in_a_pair(body: Callable[[Warp, OutputTilePipeline, ProducerConsumerPipeline], Any]) -> Program:
    """Two CTAs with accumulators at barriers 0 to 3 and an input of three stages at 4 to 9."""
    p = Protocol("pair", cluster=2)
    acc = TmemAllocation(p.tmem("acc", 2, 1024))
    output, source = p.mbarriers("output", 4, count=1), p.mbarriers("input", 6, count=1)

    @p.role("r")
    def r(w: Warp) -> None:
        body(w, OutputTilePipeline(output, acc, 0b11, 2, 256, 2), ProducerConsumerPipeline(source, 3))

    return p.flatten()


def test_two_sms_commit_to_both_ctas_and_arrive_at_the_leader() -> None:
    def body(w: Warp, output: OutputTilePipeline, _: ProducerConsumerPipeline) -> None:
        if w.cta == 0:
            with output.producer():
                pass
        AccumBarrier.arrive(output.pipeline, 1, output.cta_group)

    program = in_a_pair(body)
    assert [role_code(program, cta) for cta in (0, 1)] == [[wait(2, 1), commit(0, 0b11), arrive(3)], [arrive(3)]]


def test_the_epilogue_of_one_k_iteration_waits_for_the_output_only_and_steps_both() -> None:
    def body(w: Warp, output: OutputTilePipeline, source: ProducerConsumerPipeline) -> None:
        for k in range(2):
            with output.per_k_epilogue(source) as stage:
                assert (stage.output_stage.index, stage.input_stage_index) == (k, k)
                stage.input_pipeline.consumer_step()  # a copy
                assert source.consumer_stage() == k
                if k == 0:
                    with w.lanes(2):
                        stage.arrive_input()
        assert (source.consumer_stage(), output.pipeline.consumer_stage()) == (2, 0)

    # the output's empty of the leader, the input's empty of this CTA (10 barriers further)
    assert role_code(in_a_pair(body), 1) == [wait(10), arrive(17, 2), arrive(2), wait(11), arrive(3)]


# what upstream does not check


@pytest.mark.parametrize(
    ("name", "call", "said"),
    [
        ("ProducerConsumerPipeline", lambda p: p.producer_mbar(2), "stage 2 of a pipeline of 2 stages"),
        ("ProducerConsumerPipeline", lambda p: p.consumer_mbar(-1), "stage -1 of a pipeline of 2 stages"),
        ("ProducerConsumerPipeline", lambda p: ProducerConsumerPipeline(p.full[0], 0), "a pipeline of 0 stages"),
        ("RolePipeline", lambda p: p.producer_mbar(1), "producer sub-stage 1 of 1"),
        ("RolePipeline", lambda p: p.acquire(2), "consumer sub-stage 2 of 2"),
        ("RolePipeline", lambda p: RolePipeline(p.producer_mbar(), p.consumer_mbar(), 0), "pipeline of 0 stages"),
        ("RolePipeline", lambda p: RolePipeline(p.producer_mbar(), p.consumer_mbar(), 1, cta_group=3), "CTA group 3"),
        ("StagedPipeline", lambda p: p.consumer_wait(-1), "slice -1 of 2"),
        ("StagedPipeline", lambda p: p.consumer_mbar(0, 2), "slot 2 of 2"),
        ("StagedPipeline", lambda p: StagedPipeline(p.mbar, 0), "0 slots in 1 slices"),
        ("TMAProducerPipeline", lambda k: k.get_smem(qk_stage=1), "slice 1 of 1"),
        ("FA4MiscMBars", lambda m: m.consumer_s(2), "softmax warp group 2 of 2"),
        ("OutputTilePipeline", lambda p: OutputTilePipeline(p.pipeline.full[0], p.tmem, 0, 2, 512, 1), "2 stages of 5"),
        ("OutputTilePipeline", lambda p: OutputTilePipeline(p.pipeline.full[0], p.tmem, 0, 2, 1, 1), "2 stages of 1 "),
        ("OutputTilePipeline", lambda p: OutputTilePipeline(p.pipeline.full[0], p.tmem, 0, 2, 2, 2), "group of 2 CTAs"),
        ("InputTilePipeline", lambda p: InputTilePipeline(p.pipeline.full[0], p.payload, 2, 3), "need 6 slots"),
        ("InputTilePipeline", lambda p: p.payload.get_tile(0, 2, 2), "tile 2 of a group of 2 in tile_a"),
        ("InputTilePipeline", lambda p: p.payload.get_tile(2, 0, 2), r"there is no tile_a\[4\]"),
    ],
)  # fmt: skip
def test_what_upstream_does_not_check_is_an_error_here(name: str, call: Callable[[Any], Any], said: str) -> None:
    with pytest.raises(ProtocolError, match=said) as caught:
        in_a_role(call, name)
    assert "test_calls.py" in caught.value.place


# the tiles of K and V


def test_k_is_cut_by_its_depth_and_v_is_whole_and_each_cta_of_a_pair_has_half() -> None:
    config = FA4Config(BF16, depth=80, BN=32, num_kv_stages=2, num_qk_stages=2)  # 80 is padded to 128
    k, v = KVTile(BF16, config), KVTile(BF16, config, is_k=False)
    assert (k.tile_layout, v.tile_layout) == (TileLayout(32, 64, k_major=True), TileLayout(128, 32, k_major=False))
    assert (k.elements, k.elements_full, k.tile_bytes, k.full_bytes) == (2048, 4096, 4096, 8192)
    assert (v.elements, v.elements_full, v.tile_bytes, v.full_bytes) == (4096, 4096, 8192, 8192)
    pair = FA4Config(FP8, depth=128, BN=64, num_kv_stages=2, pair_cta=True)
    k, v = KVTile(FP8, pair), KVTile(FP8, pair, is_k=False)
    assert (k.tile_layout, v.tile_layout) == (TileLayout(32, 128, k_major=True), TileLayout(64, 64, k_major=False))
    assert (k.full_bytes, v.full_bytes) == (4096, 4096)


def test_a_producer_of_k_names_its_slices_slot_by_slot() -> None:
    config = FA4Config(BF16, depth=128, BN=32, num_kv_stages=2, num_qk_stages=2)
    p = Protocol("k")
    smem, b = p.smem("K", 2, 8192), p.mbarriers("b", 8, count=1)

    @p.role("r")
    def r(_: Warp) -> None:
        k = TMAProducerPipeline(b, smem, dtype=BF16, config=config)
        assert (k.tile_layout, k.elements, k.elements_full) == (TileLayout(32, 64, k_major=True), 2048, 4096)
        assert (k.bytes, k.tile_bytes, k.num_qk_stages_effective) == (4096, 4096, 2)
        for slot in range(2):
            for q in range(2):
                tile = k.get_k(qk_stage=q)
                assert (tile.mbar.index, tile.smem.name, tile.smem.offset, tile.smem.nbytes) == (
                    2 * slot + q, f"K[{slot}]", slot * 8192 + q * 4096, 4096,
                )  # fmt: skip
                assert tile.smem == k.get_smem(qk_stage=q) == k.get_k_smem(qk_stage=q)
            assert k.get_tile().smem == k.get_v_smem() == k.get_smem(), "slice 0 unless named"
            k.commit_step()
        staged = StagedPipeline(b, 2, 2)
        staged.state.step()
        over = TMAProducerPipeline(staged, smem, dtype=BF16, config=config)
        assert (over.pipeline.state.index(), over.pipeline.state.phase()) == (1, 1), "of the state the phase is set"
        over.commit_step()
        assert (staged.state.index(), staged.state.phase()) == (1, 0), "the pipeline that was given is copied"
        with pytest.raises(ProtocolError, match="of 2 slots in 1 slices; K of this configuration has 2 in 2"):
            TMAProducerPipeline(StagedPipeline(b, 2), smem, dtype=BF16, config=config)
        with pytest.raises(ProtocolError, match="K needs 2 of 8192"):
            TMAProducerPipeline(b, TileArray("K", smem.space, 0, 4096, 2), dtype=BF16, config=config)

    assert role_code(p.flatten()) == [], "naming memory and stepping signal nothing"
