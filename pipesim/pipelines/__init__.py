"""Modular's pipeline structs, method by method, over the barriers of :mod:`pipesim.model`."""

from pipesim.pipelines.accum_barrier import AccumBarrier
from pipesim.pipelines.fa4 import BF16, FP8, DType, FA4Config
from pipesim.pipelines.fa4_mbars import FA4MBarLayout, FA4MiscMBars
from pipesim.pipelines.input_consumer import ConsumerTiles, InputConsumer, InputConsumerStage
from pipesim.pipelines.input_producer import InputProducer, InputProducerStage, ProducerTiles
from pipesim.pipelines.input_tile import InputTilePipeline
from pipesim.pipelines.kv_tile import KVTile, TileLayout, TMADestination
from pipesim.pipelines.output_stage import EpilogueStage, MmaStage, OutputConsumer, OutputProducer, OutputStage
from pipesim.pipelines.output_tile import OutputTilePipeline
from pipesim.pipelines.payload import BlockScaledTilePayload, BlockwiseFP8TilePayload, StandardTilePayload
from pipesim.pipelines.per_k import EpilogueKContext, EpilogueKStage, MmaKStage, OutputKPipeline, PerKConsumerStage
from pipesim.pipelines.producer_consumer import (
    ConsumeContext,
    ConsumerStage,
    ExplicitConsumeContext,
    ProduceContext,
    ProducerConsumerPipeline,
    ProducerStage,
)
from pipesim.pipelines.role_pipeline import MBarPipeline, RolePipeline
from pipesim.pipelines.staged import KVPipelineGeneric, PipelineState, StagedPipeline
from pipesim.pipelines.tma_consumer import TMAConsumerPipeline
from pipesim.pipelines.tma_producer import TMAProducerPipeline
from pipesim.pipelines.tmem import TmemAllocation, TmemStage

__all__ = [
    "BF16",
    "FP8",
    "AccumBarrier",
    "BlockScaledTilePayload",
    "BlockwiseFP8TilePayload",
    "ConsumeContext",
    "ConsumerStage",
    "ConsumerTiles",
    "DType",
    "EpilogueKContext",
    "EpilogueKStage",
    "EpilogueStage",
    "ExplicitConsumeContext",
    "FA4Config",
    "FA4MBarLayout",
    "FA4MiscMBars",
    "InputConsumer",
    "InputConsumerStage",
    "InputProducer",
    "InputProducerStage",
    "InputTilePipeline",
    "KVPipelineGeneric",
    "KVTile",
    "MBarPipeline",
    "MmaKStage",
    "MmaStage",
    "OutputConsumer",
    "OutputKPipeline",
    "OutputProducer",
    "OutputStage",
    "OutputTilePipeline",
    "PerKConsumerStage",
    "PipelineState",
    "ProduceContext",
    "ProducerConsumerPipeline",
    "ProducerStage",
    "ProducerTiles",
    "RolePipeline",
    "StagedPipeline",
    "StandardTilePayload",
    "TMAConsumerPipeline",
    "TMADestination",
    "TMAProducerPipeline",
    "TileLayout",
    "TmemAllocation",
    "TmemStage",
]
