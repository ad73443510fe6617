"""Every upstream name is there: structs, their members, and what takes arguments in upstream's order."""

from __future__ import annotations

import inspect

import pytest

from pipesim import Protocol, Warp, pipelines
from pipesim.lang.shared_mem_barrier import SharedMemBarrier

HANDLE = "release"
RING = (
    "wait_producer wait_consumer try_wait_producer try_wait_consumer wait_producer_if_needed wait_consumer_if_needed "
    "producer_mbar consumer_mbar producer_stage consumer_stage consumer_step producer_step smem_bytes init_mbars "
    "producer_signal_and_step consumer_signal_and_step produce consume consume_explicit acquire_producer "
    "acquire_consumer"
)
MEMBERS = {
    "ProducerConsumerPipeline": RING,
    "ProducerStage": f"index mbar {HANDLE}",
    "ConsumerStage": f"index mbar arrive {HANDLE} release_without_signal",
    "ProduceContext": "__enter__ __exit__",
    "ConsumeContext": "__enter__ __exit__",
    "ExplicitConsumeContext": "__enter__ __exit__",
    "InputTilePipeline": "BarrierArray Pipeline init_barriers try_acquire_producer try_acquire_consumer "
    "wait_producer_if_needed wait_consumer_if_needed producer_stage consumer_stage producer_mbar consumer_mbar "
    "producer consumer acquire_producer acquire_consumer drain_producer",
    "InputProducer": "PipelineType __enter__ __exit__ drain acquire acquire_stage try_acquire acquire_if_needed",
    "ProducerTiles": "PipelineType payload stage expect_bytes barrier __enter__ __exit__",
    "InputProducerStage": f"PipelineType payload stage expect_bytes barrier {HANDLE}",
    "InputConsumer": "PipelineType __enter__ __exit__ acquire acquire_stage try_acquire acquire_if_needed",
    "ConsumerTiles": "PipelineType payload stage mbar __enter__ __exit__",
    "InputConsumerStage": f"PipelineType payload stage mbar {HANDLE}",
    "StagedPipeline": "num_mbars producer_mbar consumer_mbar producer_acquire consumer_wait consumer_release "
    "consumer_release_at",
    "TMAProducerPipeline": "bytes elements elements_full KPairType PairType SMemType num_qk_stages_effective "
    "tile_bytes tile_layout get_smem get_tile acquire commit_step get_k_smem get_k acquire_k get_v_smem get_v "
    "acquire_v",
    "TMAConsumerPipeline": "get wait release",
    "RolePipeline": "acquire commit commit_mma wait release release_no_step",
    "MBarPipeline": "init",
    "EpiLoadPipeline": "init_barriers produce acquire_producer wait_consumer producer_mbar producer_step consume "
    "consume_explicit acquire_consumer wait_producer consumer_stage consumer_step",
    "OutputTilePipeline": "Pipeline BarrierArray Tmem Stage init_barriers get_pipeline acquire_for_mma "
    "release_from_mma acquire_for_epilogue release_from_epilogue producer consumer acquire_mma_linear "
    "acquire_epilogue_linear per_k per_k_epilogue",
    "OutputStage": "Pipeline Tmem index tmem pipeline",
    "OutputProducer": "TilePipelineType Stage __enter__ __exit__",
    "OutputConsumer": "TilePipelineType Stage __enter__ __exit__",
    "MmaStage": f"TilePipelineType Stage tmem tmem_offset index mbar {HANDLE}",
    "EpilogueStage": f"TilePipelineType Stage tmem tmem_offset index {HANDLE}",
    "OutputKPipeline": "TilePipelineType produce consume",
    "MmaKStage": "TilePipelineType Stage __enter__ __exit__",
    "PerKConsumerStage": "TilePipelineType Stage __enter__ __exit__",
    "EpilogueKStage": "OutputStageType InputPipelineType arrive_input",
    "EpilogueKContext": "OutputPipelineType OutputStageType InputPipelineType CombinedStageType __enter__ __exit__",
    "AccumBarrier": "arrive",
    "LoadOrderBarrier": "arrive wait step arrive_and_step wait_and_step",
    "TileScheduler": "work_iterator scheduler_iterator throttle_signal fetch_next_work",
    "WorkIterator": "__iter__ __next__",
    "SchedulerWorkIterator": "signal_and_advance drain",
    "TilePayload": "arrays num_pipeline_stages",
    "StandardTilePayload": "get_tile get_a_tile get_b_tile",
    "BlockScaledTilePayload": "get_tile get_a_tile get_b_tile get_sfa_tile get_sfb_tile",
    "BlockwiseFP8TilePayload": "get_tile get_a_tile get_b_tile get_a_scales_tile",
    "SharedMemBarrier": "init arrive wait",
    "FA4Config": "MMA_K MMA_M BM BK0 BK1 padded_qk_depth padded_ov_depth fuse_gqa num_kv_heads num_threads tmem_used "
    "smem_used TMEM_S0 TMEM_S1 TMEM_O0 TMEM_O1 TMEM_C0 TMEM_C1 BM_eff PairBM_eff cta_group v_cols_per_cta "
    "k_rows_per_cta q_nope_bytes q_rope_bytes rope_depth num_rope_buffers num_k_scale_bufs supported",
    "FA4MiscMBars": "init num_mbars",
    "Depth512SM100Config": "cta_group num_threads num_pv_stages split_o MMA_K MMA_M BM BK0 BK1 num_qk_stages "
    "v_cols_per_cta fuse_gqa TMEM_O TMEM_O_hi TMEM_S_even TMEM_S_odd tmem_used smem_used p_buf_bytes BM_eff rope_depth "
    "supported",
    "Depth512MBars": "init num_mbars producer_s_even producer_s_odd consumer_s_even consumer_s_odd producer_c "
    "consumer_c producer_o_lo producer_o_hi consumer_o_lo consumer_o_hi po_lo_mbar po_hi_mbar get_kv_mbars",
    "PipelineTmaAsync": "producer_try_acquire producer_acquire producer_commit producer_tail producer_get_barrier "
    "consumer_try_wait consumer_wait consumer_release",
    "PipelineAsync": "producer_try_acquire producer_acquire producer_commit producer_tail consumer_try_wait "
    "consumer_wait consumer_release",
    "OrderedSequenceBarrier": "wait arrive",
}
PRIMITIVE = (
    "init inval arrive arrive_cluster arrive_drop arrive_no_complete expect_tx expect_bytes expect_bytes_relaxed "
    "arrive_and_expect_bytes complete_transaction test_wait try_wait wait wait_acquire wait_relaxed wait_state "
    "test_state pending_count cp_async_arrive mapa"
)
ARGUMENTS = {
    "ProducerConsumerPipeline.init_mbars": ["producer_arrive_count", "consumer_arrive_count"],
    "ProducerConsumerPipeline.wait_producer_if_needed": ["already_ready"],
    "ProducerConsumerPipeline.producer_mbar": ["stage"],
    "InputTilePipeline.init_barriers": ["storage", "producer_arv_count", "consumer_arv_count"],
    "OutputTilePipeline.init_barriers": ["storage", "producer_arv_count", "consumer_arv_count"],
    "TileScheduler.init_throttle_barriers": ["storage", "producer_arv_count", "consumer_arv_count"],
    "InputTilePipeline.consumer_mbar": ["stage"],
    "InputProducer.acquire_if_needed": ["already_ready"],
    "InputConsumer.acquire_if_needed": ["already_ready"],
    "EpiLoadPipeline.init_barriers": ["producer_arv_count", "consumer_arv_count"],
    "EpiLoadPipeline.producer_mbar": [],
    "TMAProducerPipeline.get_smem": ["qk_stage"],
    "TMAProducerPipeline.acquire": ["qk_stage"],
}
OURS = ("num_group_stages", "num_stages")  #: by name only: what upstream has in the type


@pytest.mark.parametrize("struct", MEMBERS)
def test_every_member_is_public_and_documented(struct: str) -> None:
    kind = getattr(pipelines, struct)
    assert struct in pipelines.__all__
    assert inspect.getdoc(kind)
    missing = [name for name in MEMBERS[struct].split() if not hasattr(kind, name)]
    assert missing == []
    public = [name for name in MEMBERS[struct].split() if not name.startswith("_") and callable(getattr(kind, name))]
    assert [name for name in public if not inspect.getdoc(getattr(kind, name))] == []


INPUT = ("InputProducer", "ProducerTiles", "InputProducerStage", "InputConsumer", "ConsumerTiles", "InputConsumerStage")
OUTPUT = ("OutputProducer", "OutputConsumer", "MmaStage", "EpilogueStage", "MmaKStage", "PerKConsumerStage")
TYPES = {
    **{f"{struct}.PipelineType": "InputTilePipeline" for struct in INPUT},
    **{f"{struct}.TilePipelineType": "OutputTilePipeline" for struct in (*OUTPUT, "OutputKPipeline")},
    **{f"{struct}.Stage": "OutputStage" for struct in (*OUTPUT, "OutputTilePipeline")},
    "InputTilePipeline.Pipeline": "ProducerConsumerPipeline",
    "OutputTilePipeline.Pipeline": "ProducerConsumerPipeline",
    "OutputTilePipeline.Tmem": "TmemAllocation",
    "OutputStage.Pipeline": "ProducerConsumerPipeline",
    "OutputStage.Tmem": "TmemStage",
    "EpilogueKStage.OutputStageType": "OutputStage",
    "EpilogueKStage.InputPipelineType": "ProducerConsumerPipeline",
    "EpilogueKContext.OutputPipelineType": "OutputTilePipeline",
    "EpilogueKContext.OutputStageType": "OutputStage",
    "EpilogueKContext.InputPipelineType": "ProducerConsumerPipeline",
    "EpilogueKContext.CombinedStageType": "EpilogueKStage",
    "TMAProducerPipeline.PairType": "TMADestination",
    "TMAProducerPipeline.KPairType": "TMADestination",
}


@pytest.mark.parametrize("name", TYPES)
def test_an_associated_type_is_the_struct_that_upstream_names(name: str) -> None:
    struct, _, kind = name.partition(".")
    assert getattr(getattr(pipelines, struct), kind) is getattr(pipelines, TYPES[name])


def test_handles_point_to_their_pipeline() -> None:
    p = Protocol("pointers")
    tiles = [p.smem(name, 2, 64) for name in "ab"]
    b = p.mbarriers("pipe", 4, count=1)

    @p.role("r")
    def r(_: Warp) -> None:
        pipe = pipelines.InputTilePipeline(b, pipelines.StandardTilePayload(*tiles), 2, 1)
        views = pipe.producer(), pipe.consumer()
        stages = views[0].acquire_stage(), views[1].acquire_stage()
        assert [each.pipeline_ptr is pipe for each in (*views, *stages)] == [True] * 4
        assert all(type(each.pipeline_ptr) is each.PipelineType for each in (*views, *stages))
        for stage in stages:
            stage.release()

    p.flatten()


@pytest.mark.parametrize("name", ["SharedMemBarrier", "TilePayload"])
def test_what_a_payload_and_a_barrier_are_is_exported_from_where_the_page_says(name: str) -> None:
    assert name in pipelines.__all__
    assert getattr(pipelines, name).__name__ == name


@pytest.mark.parametrize("name", PRIMITIVE.split())
def test_every_operation_of_an_mbarrier_is_there(name: str) -> None:
    assert inspect.getdoc(getattr(SharedMemBarrier, name))


@pytest.mark.parametrize("method", ARGUMENTS)
def test_arguments_come_in_upstreams_order(method: str) -> None:
    struct, _, name = method.partition(".")
    parameters = inspect.signature(getattr(getattr(pipelines, struct), name)).parameters
    taken = [p for p in parameters if p not in ("self", *OURS)]
    assert taken == ARGUMENTS[method]


def test_nothing_is_exported_twice() -> None:
    assert len(pipelines.__all__) == len(set(pipelines.__all__))
