"""Modular's pipeline structs, method by method, over the barriers of :mod:`pipesim.model`."""

from pipesim.pipelines.accum_barrier import AccumBarrier
from pipesim.pipelines.clc import (
    ClcBarrierCounts,
    ClcPipelineStorage,
    SchedulerWorkIterator,
    TileScheduler,
    WorkIterator,
    compute_clc_barrier_counts,
)
from pipesim.pipelines.cutlass_async import AsyncParams, OrderedSequenceBarrier, PipelineAsync, PipelineTransactionAsync
from pipesim.pipelines.cutlass_tma import PipelineTmaAsync, PipelineTmaStore, TmaParams
from pipesim.pipelines.cutlass_umma import (
    McastDirection,
    PipelineTmaUmmaAsync,
    PipelineUmmaAsync,
    PipelineUmmaConsumerAsync,
)
from pipesim.pipelines.epi_load import EpiLoadPipeline
from pipesim.pipelines.fa4 import BF16, FP8, DType, FA4Config
from pipesim.pipelines.fa4_mbars import FA4MBarLayout, FA4MiscMBars
from pipesim.pipelines.grouped_clc import (
    GroupedCLCSchedulerIterator,
    GroupedCLCWorkIterator,
    grouped_clc_barrier_counts,
)
from pipesim.pipelines.input_consumer import ConsumerTiles, InputConsumer, InputConsumerStage
from pipesim.pipelines.input_producer import InputProducer, InputProducerStage, ProducerTiles
from pipesim.pipelines.input_tile import InputTilePipeline
from pipesim.pipelines.kv_tile import KVTile, TileLayout, TMADestination
from pipesim.pipelines.load_order import LoadOrderBarrier
from pipesim.pipelines.output_stage import EpilogueStage, MmaStage, OutputConsumer, OutputProducer, OutputStage
from pipesim.pipelines.output_tile import OutputTilePipeline
from pipesim.pipelines.payload import BlockScaledTilePayload, BlockwiseFP8TilePayload, StandardTilePayload
from pipesim.pipelines.per_k import EpilogueKContext, EpilogueKStage, MmaKStage, OutputKPipeline, PerKConsumerStage
from pipesim.pipelines.pipeline_state import PipelineState, make_producer_start_state
from pipesim.pipelines.producer_consumer import (
    ConsumeContext,
    ConsumerStage,
    ExplicitConsumeContext,
    ProduceContext,
    ProducerConsumerPipeline,
    ProducerStage,
)
from pipesim.pipelines.role_pipeline import MBarPipeline, RolePipeline
from pipesim.pipelines.staged import KVPipelineGeneric, StagedPipeline
from pipesim.pipelines.tile_walk import WorkInfo
from pipesim.pipelines.tma_consumer import TMAConsumerPipeline
from pipesim.pipelines.tma_producer import TMAProducerPipeline
from pipesim.pipelines.tmem import TmemAllocation, TmemStage

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
    "EpilogueStage",
    "ExplicitConsumeContext",
    "FA4Config",
    "FA4MBarLayout",
    "FA4MiscMBars",
    "GroupedCLCSchedulerIterator",
    "GroupedCLCWorkIterator",
    "InputConsumer",
    "InputConsumerStage",
    "InputProducer",
    "InputProducerStage",
    "InputTilePipeline",
    "KVPipelineGeneric",
    "KVTile",
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
    "StagedPipeline",
    "StandardTilePayload",
    "TMAConsumerPipeline",
    "TMADestination",
    "TMAProducerPipeline",
    "TileLayout",
    "TileScheduler",
    "TmaParams",
    "TmemAllocation",
    "TmemStage",
    "WorkInfo",
    "WorkIterator",
    "compute_clc_barrier_counts",
    "grouped_clc_barrier_counts",
    "make_producer_start_state",
]
