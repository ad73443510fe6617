"""The five structs of Modular's kernels are whole: every upstream member is there, and documented."""

import inspect

import pytest

from pipesim import pipelines
from pipesim.lang.shared_mem_barrier import SharedMemBarrier

#: Upstream's public members of each struct.
MEMBERS = {
    "ProducerConsumerPipeline": "full empty wait_producer wait_consumer try_wait_producer try_wait_consumer "
    "wait_producer_if_needed wait_consumer_if_needed producer_mbar consumer_mbar producer_stage consumer_stage "
    "consumer_step producer_step smem_bytes init_mbars producer_signal_and_step consumer_signal_and_step produce "
    "consume consume_explicit acquire_producer acquire_consumer",
    "InputTilePipeline": "pipeline payload BarrierArray Pipeline init_barriers try_acquire_producer "
    "try_acquire_consumer wait_producer_if_needed wait_consumer_if_needed producer_stage consumer_stage producer_mbar "
    "consumer_mbar producer consumer acquire_producer acquire_consumer drain_producer",
    "InputProducer": "pipeline_ptr __enter__ __exit__ drain acquire acquire_stage try_acquire acquire_if_needed",
    "TMAProducerPipeline": "pipeline smem bytes elements elements_full KPairType PairType SMemType "
    "num_qk_stages_effective tile_bytes tile_layout get_smem get_tile acquire commit_step get_k_smem get_k acquire_k "
    "get_v_smem get_v acquire_v",
    "EpiLoadPipeline": "pipeline init_barriers produce acquire_producer wait_consumer producer_mbar producer_step "
    "consume consume_explicit acquire_consumer wait_producer consumer_stage consumer_step",
}
#: Their handles.
HANDLES = {
    "ProducerStage": "index mbar release",
    "ConsumerStage": "index mbar arrive release release_without_signal",
    "ProduceContext": "__enter__ __exit__",
    "ConsumeContext": "__enter__ __exit__",
    "ExplicitConsumeContext": "__enter__ __exit__",
    "ProducerTiles": "payload stage expect_bytes barrier __enter__ __exit__",
    "InputProducerStage": "payload stage expect_bytes barrier release",
    "InputConsumer": "__enter__ __exit__ acquire acquire_stage try_acquire acquire_if_needed",
    "ConsumerTiles": "payload stage mbar __enter__ __exit__",
    "InputConsumerStage": "payload stage mbar release",
}
FIELDS = frozenset(["full", "empty", "pipeline", "payload", "pipeline_ptr", "smem"])  #: set by the constructor
PRIMITIVE = (
    "init inval arrive arrive_cluster arrive_drop arrive_no_complete expect_tx expect_bytes expect_bytes_relaxed "
    "arrive_and_expect_bytes complete_transaction test_wait try_wait wait wait_acquire wait_relaxed wait_state "
    "test_state pending_count cp_async_arrive mapa"
)
ARGUMENTS = {
    "ProducerConsumerPipeline.init_mbars": ["producer_arrive_count", "consumer_arrive_count"],
    "ProducerConsumerPipeline.wait_producer_if_needed": ["already_ready"],
    "ProducerConsumerPipeline.producer_mbar": ["stage"],
    "InputTilePipeline.init_barriers": ["storage", "producer_arv_count", "consumer_arv_count", "num_group_stages"],
    "InputProducer.acquire_if_needed": ["already_ready"],
    "EpiLoadPipeline.init_barriers": ["producer_arv_count", "consumer_arv_count"],
    "EpiLoadPipeline.producer_mbar": [],
    "TMAProducerPipeline.get_smem": ["qk_stage"],
}


@pytest.mark.parametrize("struct", [*MEMBERS, *HANDLES])
def test_every_member_is_there_and_documented(struct: str) -> None:
    kind = getattr(pipelines, struct)
    wanted = [name for name in {**MEMBERS, **HANDLES}[struct].split() if name not in FIELDS]
    assert inspect.getdoc(kind)
    assert [name for name in wanted if not hasattr(kind, name)] == []
    public = [name for name in wanted if not name.startswith("_") and callable(getattr(kind, name))]
    assert [name for name in public if not inspect.getdoc(getattr(kind, name))] == []


@pytest.mark.parametrize("name", PRIMITIVE.split())
def test_every_operation_of_an_mbarrier_is_there(name: str) -> None:
    assert inspect.getdoc(getattr(SharedMemBarrier, name))


@pytest.mark.parametrize("method", ARGUMENTS)
def test_arguments_come_in_upstreams_order(method: str) -> None:
    struct, _, name = method.partition(".")
    parameters = inspect.signature(getattr(getattr(pipelines, struct), name)).parameters
    assert [p for p in parameters if p != "self"] == ARGUMENTS[method]
