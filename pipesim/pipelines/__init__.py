"""Modular's pipeline structs, method by method, over the barriers of :mod:`pipesim.model`."""

from pipesim.pipelines.fa4 import BF16, FP8, DType, FA4Config
from pipesim.pipelines.fa4_mbars import FA4MBarLayout, FA4MiscMBars
from pipesim.pipelines.kv_tile import KVTile, TileLayout, TMADestination
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

__all__ = [
    "BF16",
    "FP8",
    "ConsumeContext",
    "ConsumerStage",
    "DType",
    "ExplicitConsumeContext",
    "FA4Config",
    "FA4MBarLayout",
    "FA4MiscMBars",
    "KVPipelineGeneric",
    "KVTile",
    "MBarPipeline",
    "PipelineState",
    "ProduceContext",
    "ProducerConsumerPipeline",
    "ProducerStage",
    "RolePipeline",
    "StagedPipeline",
    "TMAConsumerPipeline",
    "TMADestination",
    "TMAProducerPipeline",
    "TileLayout",
]
