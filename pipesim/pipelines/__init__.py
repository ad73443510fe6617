"""Modular's pipeline structs, method by method, over the barriers of :mod:`pipesim.model`."""

from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.pipelines.common.pipeline_state import PipelineState, make_producer_start_state
from pipesim.pipelines.common.tile_walk import WorkInfo
from pipesim.pipelines.cutlass.threads import (
    AsyncParams,
    OrderedSequenceBarrier,
    PipelineAsync,
    PipelineTransactionAsync,
)
from pipesim.pipelines.cutlass.tma import PipelineTmaAsync, PipelineTmaStore, TmaParams
from pipesim.pipelines.cutlass.umma import (
    McastDirection,
    PipelineTmaUmmaAsync,
    PipelineUmmaAsync,
    PipelineUmmaConsumerAsync,
)
from pipesim.pipelines.modular.accum_barrier import AccumBarrier
from pipesim.pipelines.modular.attention.depth512 import Depth512SM100Config
from pipesim.pipelines.modular.attention.depth512_mbars import Depth512MBarLayout, Depth512MBars
from pipesim.pipelines.modular.attention.fa4 import BF16, FP8, FP32, DType, FA4Config
from pipesim.pipelines.modular.attention.fa4_mbars import FA4MBarLayout, FA4MiscMBars
from pipesim.pipelines.modular.attention.kv_tile import KVTile, TileLayout, TMADestination
from pipesim.pipelines.modular.attention.role_pipeline import MBarPipeline, RolePipeline
from pipesim.pipelines.modular.attention.staged import KVPipelineGeneric, StagedPipeline
from pipesim.pipelines.modular.attention.swizzle import TensorMapSwizzle
from pipesim.pipelines.modular.attention.tma_consumer import TMAConsumerPipeline
from pipesim.pipelines.modular.attention.tma_producer import TMAProducerPipeline
from pipesim.pipelines.modular.clc import (
    ClcBarrierCounts,
    ClcPipelineStorage,
    SchedulerWorkIterator,
    TileScheduler,
    WorkIterator,
    compute_clc_barrier_counts,
)
from pipesim.pipelines.modular.epi_load import EpiLoadPipeline
from pipesim.pipelines.modular.grouped_clc import (
    GroupedCLCSchedulerIterator,
    GroupedCLCWorkIterator,
    GroupedWorkIterator,
    grouped_clc_barrier_counts,
)
from pipesim.pipelines.modular.input_consumer import ConsumerTiles, InputConsumer, InputConsumerStage
from pipesim.pipelines.modular.input_producer import InputProducer, InputProducerStage, ProducerTiles
from pipesim.pipelines.modular.input_tile import InputTilePipeline
from pipesim.pipelines.modular.kernel_context import (
    KernelContext,
    compute_accum_barrier_counts,
    compute_input_consumer_count,
    require_cluster_shape,
)
from pipesim.pipelines.modular.load_order import LoadOrderBarrier
from pipesim.pipelines.modular.output_stage import EpilogueStage, MmaStage, OutputConsumer, OutputProducer, OutputStage
from pipesim.pipelines.modular.output_tile import OutputTilePipeline
from pipesim.pipelines.modular.payload import (
    BlockScaledTilePayload,
    BlockwiseFP8TilePayload,
    StandardTilePayload,
    TilePayload,
)
from pipesim.pipelines.modular.per_k import (
    EpilogueKContext,
    EpilogueKStage,
    MmaKStage,
    OutputKPipeline,
    PerKConsumerStage,
)
from pipesim.pipelines.modular.producer_consumer import (
    ConsumeContext,
    ConsumerStage,
    ExplicitConsumeContext,
    ProduceContext,
    ProducerConsumerPipeline,
    ProducerStage,
)
from pipesim.pipelines.modular.tmem import TmemAllocation, TmemStage

__all__ = [
    "BF16",
    "FP8",
    "FP32",
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
    "Depth512MBarLayout",
    "Depth512MBars",
    "Depth512SM100Config",
    "EpiLoadPipeline",
    "EpilogueKContext",
    "EpilogueKStage",
    "EpilogueStage",
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
    "MBarPipeline",
    "McastDirection",
    "MmaKStage",
    "MmaStage",
    "OrderedSequenceBarrier",
    "OutputConsumer",
    "OutputKPipeline",
    "OutputProducer",
    "OutputStage",
    "OutputTilePipeline",
    "PerKConsumerStage",
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
    "ProducerTiles",
    "RolePipeline",
    "SchedulerWorkIterator",
    "SharedMemBarrier",
    "StagedPipeline",
    "StandardTilePayload",
    "TMAConsumerPipeline",
    "TMADestination",
    "TMAProducerPipeline",
    "TensorMapSwizzle",
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
