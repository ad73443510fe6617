"""Modular's pipeline structs, method by method, over the barriers of :mod:`pipesim.model`."""

from pipesim.pipelines.producer_consumer import (
    ConsumeContext,
    ConsumerStage,
    ExplicitConsumeContext,
    ProduceContext,
    ProducerConsumerPipeline,
    ProducerStage,
)

__all__ = [
    "ConsumeContext",
    "ConsumerStage",
    "ExplicitConsumeContext",
    "ProduceContext",
    "ProducerConsumerPipeline",
    "ProducerStage",
]
