"""Modular's pipeline structs, method by method, over the barriers of :mod:`pipesim.model`."""

from pipesim.pipelines.accum_barrier import AccumBarrier
from pipesim.pipelines.input_consumer import ConsumerTiles, InputConsumer, InputConsumerStage
from pipesim.pipelines.input_producer import InputProducer, InputProducerStage, ProducerTiles
from pipesim.pipelines.input_tile import InputTilePipeline
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
from pipesim.pipelines.tmem import TmemAllocation, TmemStage

__all__ = [
    "AccumBarrier",
    "BlockScaledTilePayload",
    "BlockwiseFP8TilePayload",
    "ConsumeContext",
    "ConsumerStage",
    "ConsumerTiles",
    "EpilogueKContext",
    "EpilogueKStage",
    "EpilogueStage",
    "ExplicitConsumeContext",
    "InputConsumer",
    "InputConsumerStage",
    "InputProducer",
    "InputProducerStage",
    "InputTilePipeline",
    "MmaKStage",
    "MmaStage",
    "OutputConsumer",
    "OutputKPipeline",
    "OutputProducer",
    "OutputStage",
    "OutputTilePipeline",
    "PerKConsumerStage",
    "ProduceContext",
    "ProducerConsumerPipeline",
    "ProducerStage",
    "ProducerTiles",
    "StandardTilePayload",
    "TmemAllocation",
    "TmemStage",
]
