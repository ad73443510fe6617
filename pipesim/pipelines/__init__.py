"""Modular's pipeline structs, method by method, over the barriers of :mod:`pipesim.model`."""

from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.pipelines.common.pipeline_state import PipelineState, make_producer_start_state
from pipesim.pipelines.cutlass.threads import (
    AsyncParams,
    OrderedSequenceBarrier,
    PipelineTransactionAsync,
)
from pipesim.pipelines.cutlass.tma import PipelineTmaAsync, PipelineTmaStore, TmaParams
from pipesim.pipelines.cutlass.umma import (
    PipelineTmaUmmaAsync,
    PipelineUmmaAsync,
)
from pipesim.pipelines.modular.attention.fa4 import BF16, FP8, DType, FA4Config
from pipesim.pipelines.modular.attention.fa4_mbars import FA4MBarLayout, FA4MiscMBars
from pipesim.pipelines.modular.attention.role_pipeline import RolePipeline
from pipesim.pipelines.modular.attention.staged import KVPipelineGeneric, StagedPipeline
from pipesim.pipelines.modular.attention.tma_pipelines import (
    KVTile,
    TileLayout,
    TMAConsumerPipeline,
    TMADestination,
    TMAProducerPipeline,
)
from pipesim.pipelines.modular.clc import (
    ClcBarrierCounts,
    ClcPipelineStorage,
    SchedulerWorkIterator,
    TileScheduler,
    WorkInfo,
    WorkIterator,
    compute_clc_barrier_counts,
)
from pipesim.pipelines.modular.epi_load import EpiLoadPipeline, LoadOrderBarrier
from pipesim.pipelines.modular.grouped_clc import (
    GroupedCLCSchedulerIterator,
    GroupedCLCWorkIterator,
    GroupedWorkIterator,
    grouped_clc_barrier_counts,
)
from pipesim.pipelines.modular.input_tile import (
    ConsumerTiles,
    InputConsumer,
    InputConsumerStage,
    InputProducer,
    InputProducerStage,
    InputTilePipeline,
    ProducerTiles,
)
from pipesim.pipelines.modular.kernel_context import (
    KernelContext,
    compute_accum_barrier_counts,
    compute_input_consumer_count,
    require_cluster_shape,
)
from pipesim.pipelines.modular.output_tile import (
    AccumBarrier,
    EpilogueKContext,
    EpilogueKStage,
    MmaKStage,
    OutputConsumer,
    OutputKPipeline,
    OutputProducer,
    OutputStage,
    OutputTilePipeline,
    TmemAllocation,
    TmemStage,
)
from pipesim.pipelines.modular.payload import (
    BlockScaledTilePayload,
    BlockwiseFP8TilePayload,
    StandardTilePayload,
    TilePayload,
)
from pipesim.pipelines.modular.producer_consumer import (
    ConsumeContext,
    ConsumerStage,
    ExplicitConsumeContext,
    ProduceContext,
    ProducerConsumerPipeline,
    ProducerStage,
)

__all__ = [
    "BF16",
    "FP8",
    "AccumBarrier",
    "AsyncParams",
    "BlockScaledTilePayload",
    "BlockwiseFP8TilePayload",
    "ClcBarrierCounts",
    "ClcPipelineStorage",
    "ConsumeContext",
    "ConsumerStage",
    "ConsumerTiles",
    "DType",
    "EpiLoadPipeline",
    "EpilogueKContext",
    "EpilogueKStage",
    "ExplicitConsumeContext",
    "FA4Config",
    "FA4MBarLayout",
    "FA4MiscMBars",
    "GroupedCLCSchedulerIterator",
    "GroupedCLCWorkIterator",
    "GroupedWorkIterator",
    "InputConsumer",
    "InputConsumerStage",
    "InputProducer",
    "InputProducerStage",
    "InputTilePipeline",
    "KVPipelineGeneric",
    "KVTile",
    "KernelContext",
    "LoadOrderBarrier",
    "MmaKStage",
    "OrderedSequenceBarrier",
    "OutputConsumer",
    "OutputKPipeline",
    "OutputProducer",
    "OutputStage",
    "OutputTilePipeline",
    "PipelineState",
    "PipelineTmaAsync",
    "PipelineTmaStore",
    "PipelineTmaUmmaAsync",
    "PipelineTransactionAsync",
    "PipelineUmmaAsync",
    "ProduceContext",
    "ProducerConsumerPipeline",
    "ProducerStage",
    "ProducerTiles",
    "RolePipeline",
    "SchedulerWorkIterator",
    "SharedMemBarrier",
    "StagedPipeline",
    "StandardTilePayload",
    "TMAConsumerPipeline",
    "TMADestination",
    "TMAProducerPipeline",
    "TileLayout",
    "TilePayload",
    "TileScheduler",
    "TmaParams",
    "TmemAllocation",
    "TmemStage",
    "WorkInfo",
    "WorkIterator",
    "compute_accum_barrier_counts",
    "compute_clc_barrier_counts",
    "compute_input_consumer_count",
    "grouped_clc_barrier_counts",
    "make_producer_start_state",
    "require_cluster_shape",
]
