"""Modular's pipeline structs, method by method, and CUTLASS's, over the barriers of :mod:`pipesim.model`."""

from pipesim.pipelines.clc import (
    ClcBarrierCounts,
    ClcPipelineStorage,
    SchedulerWorkIterator,
    TileScheduler,
    WorkIterator,
    compute_clc_barrier_counts,
)
from pipesim.pipelines.cutlass_async import (
    AsyncParams,
    OrderedSequenceBarrier,
    PipelineAsync,
    PipelineTransactionAsync,
)
from pipesim.pipelines.cutlass_tma import PipelineTmaAsync, PipelineTmaStore, TmaParams
from pipesim.pipelines.cutlass_umma import (
    McastDirection,
    PipelineTmaUmmaAsync,
    PipelineUmmaAsync,
    PipelineUmmaConsumerAsync,
)
from pipesim.pipelines.epi_load import EpiLoadPipeline
from pipesim.pipelines.grouped_clc import (
    GroupedCLCSchedulerIterator,
    GroupedCLCWorkIterator,
    grouped_clc_barrier_counts,
)
from pipesim.pipelines.load_order import LoadOrderBarrier
from pipesim.pipelines.pipeline_state import PipelineState, make_producer_start_state
from pipesim.pipelines.producer_consumer import (
    ConsumeContext,
    ConsumerStage,
    ExplicitConsumeContext,
    ProduceContext,
    ProducerConsumerPipeline,
    ProducerStage,
)
from pipesim.pipelines.tile_walk import WorkInfo

__all__ = [
    "AsyncParams",
    "ClcBarrierCounts",
    "ClcPipelineStorage",
    "ConsumeContext",
    "ConsumerStage",
    "EpiLoadPipeline",
    "ExplicitConsumeContext",
    "GroupedCLCSchedulerIterator",
    "GroupedCLCWorkIterator",
    "LoadOrderBarrier",
    "McastDirection",
    "OrderedSequenceBarrier",
    "PipelineAsync",
    "PipelineState",
    "PipelineTmaAsync",
    "PipelineTmaStore",
    "PipelineTmaUmmaAsync",
    "PipelineTransactionAsync",
    "PipelineUmmaAsync",
    "PipelineUmmaConsumerAsync",
    "ProduceContext",
    "ProducerConsumerPipeline",
    "ProducerStage",
    "SchedulerWorkIterator",
    "TileScheduler",
    "TmaParams",
    "WorkInfo",
    "WorkIterator",
    "compute_clc_barrier_counts",
    "grouped_clc_barrier_counts",
    "make_producer_start_state",
]
