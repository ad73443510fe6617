"""Modular's pipeline structs, method by method, over the barriers of :mod:`pipesim.model`."""

from pipesim.lang.shared_mem_barrier import SharedMemBarrier as SharedMemBarrier
from pipesim.pipelines.common.register_value import (
    PipelineState as PipelineState,
    make_producer_start_state as make_producer_start_state,
)
from pipesim.pipelines.cutlass.base import (
    AsyncParams as AsyncParams,
    OrderedSequenceBarrier as OrderedSequenceBarrier,
    PipelineTransactionAsync as PipelineTransactionAsync,
    PipelineTmaAsync as PipelineTmaAsync,
    PipelineTmaStore as PipelineTmaStore,
    TmaParams as TmaParams,
)
from pipesim.pipelines.cutlass.umma import (
    PipelineTmaUmmaAsync as PipelineTmaUmmaAsync,
    PipelineUmmaAsync as PipelineUmmaAsync,
)
from pipesim.pipelines.modular.attention.fa4 import BF16 as BF16, FP8 as FP8, DType as DType, FA4Config as FA4Config
from pipesim.pipelines.modular.attention.fa4_mbars import FA4MBarLayout as FA4MBarLayout, FA4MiscMBars as FA4MiscMBars
from pipesim.pipelines.modular.attention.staged import (
    RolePipeline as RolePipeline,
    KVPipelineGeneric as KVPipelineGeneric,
    StagedPipeline as StagedPipeline,
)
from pipesim.pipelines.modular.attention.tma_pipelines import (
    KVTile as KVTile,
    TileLayout as TileLayout,
    TMAConsumerPipeline as TMAConsumerPipeline,
    TMADestination as TMADestination,
    TMAProducerPipeline as TMAProducerPipeline,
)
from pipesim.pipelines.modular.clc import (
    ClcBarrierCounts as ClcBarrierCounts,
    ClcPipelineStorage as ClcPipelineStorage,
    SchedulerWorkIterator as SchedulerWorkIterator,
    TileScheduler as TileScheduler,
    WorkInfo as WorkInfo,
    WorkIterator as WorkIterator,
    compute_clc_barrier_counts as compute_clc_barrier_counts,
)
from pipesim.pipelines.modular.producer_consumer import (
    EpiLoadPipeline as EpiLoadPipeline,
    LoadOrderBarrier as LoadOrderBarrier,
    ConsumeContext as ConsumeContext,
    ConsumerStage as ConsumerStage,
    ExplicitConsumeContext as ExplicitConsumeContext,
    ProduceContext as ProduceContext,
    ProducerConsumerPipeline as ProducerConsumerPipeline,
    ProducerStage as ProducerStage,
)
from pipesim.pipelines.modular.grouped_clc import (
    GroupedCLCSchedulerIterator as GroupedCLCSchedulerIterator,
    GroupedCLCWorkIterator as GroupedCLCWorkIterator,
    GroupedWorkIterator as GroupedWorkIterator,
    grouped_clc_barrier_counts as grouped_clc_barrier_counts,
)
from pipesim.pipelines.modular.input_tile import (
    ConsumerTiles as ConsumerTiles,
    InputConsumer as InputConsumer,
    InputConsumerStage as InputConsumerStage,
    InputProducer as InputProducer,
    InputProducerStage as InputProducerStage,
    InputTilePipeline as InputTilePipeline,
    ProducerTiles as ProducerTiles,
    BlockScaledTilePayload as BlockScaledTilePayload,
    BlockwiseFP8TilePayload as BlockwiseFP8TilePayload,
    StandardTilePayload as StandardTilePayload,
    TilePayload as TilePayload,
)
from pipesim.pipelines.modular.kernel_context import (
    KernelContext as KernelContext,
    compute_accum_barrier_counts as compute_accum_barrier_counts,
    compute_input_consumer_count as compute_input_consumer_count,
    require_cluster_shape as require_cluster_shape,
)
from pipesim.pipelines.modular.output_tile import (
    AccumBarrier as AccumBarrier,
    EpilogueKContext as EpilogueKContext,
    EpilogueKStage as EpilogueKStage,
    MmaKStage as MmaKStage,
    OutputConsumer as OutputConsumer,
    OutputKPipeline as OutputKPipeline,
    OutputProducer as OutputProducer,
    OutputStage as OutputStage,
    OutputTilePipeline as OutputTilePipeline,
    TmemAllocation as TmemAllocation,
    TmemStage as TmemStage,
)
