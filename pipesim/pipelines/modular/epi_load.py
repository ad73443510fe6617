"""``EpiLoadPipeline`` (upstream ``nn/conv/gpu/nvidia/sm100/epilogue_load_pipeline.mojo``).

The epilogue-load warp copies tiles of the source tensor, the epilogue warps add them. Every method forwards to one
:class:`ProducerConsumerPipeline`, the field ``pipeline``, which conv2d hands to its tile writer.

Where upstream's page says otherwise: ``producer_mbar()`` takes no stage, while ``ProducerConsumerPipeline``'s does; and
"typically 2 stages" is out of date, since conv2d uses ``MMA_N / OutputN`` of them, 4 for example.
"""

from __future__ import annotations

from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.pipelines.common.pipeline_struct import pipeline_struct
from pipesim.pipelines.common.register_value import MBarType
from pipesim.pipelines.modular.producer_consumer import (
    ConsumeContext,
    ConsumerStage,
    ExplicitConsumeContext,
    ProduceContext,
    ProducerConsumerPipeline,
    ProducerStage,
)


@pipeline_struct
class EpiLoadPipeline:
    """A ring of source tiles, epilogue-load warp to epilogue warps. There is no drain, and conv2d makes none.

    ``storage`` is an array of mbarriers or a pointer into one (``b[2]``).
    """

    def __init__(self, storage: MBarType, num_stages: int) -> None:
        self.pipeline = ProducerConsumerPipeline(storage, num_stages)

    def init_barriers(self, producer_arv_count: int = 1, consumer_arv_count: int = 128) -> None:
        """Initialise: one arrival fills a stage (the TMA's), 128 threads free it. One thread calls it."""
        self.pipeline.init_mbars(producer_arv_count, consumer_arv_count)

    # the epilogue-load warp

    def produce(self) -> ProduceContext:
        """``with epi.produce() as stage``: wait for an empty stage on entry; on exit only step, signal nothing."""
        return self.pipeline.produce()

    def acquire_producer(self) -> ProducerStage:
        """Wait for an empty stage and return its handle."""
        return self.pipeline.acquire_producer()

    def wait_consumer(self) -> None:
        """Wait until the current producer stage is empty."""
        self.pipeline.wait_consumer()

    def producer_mbar(self) -> SharedMemBarrier:
        """``full`` of the **current** producer stage: ask for it before :meth:`producer_step`."""
        return self.pipeline.producer_mbar(self.pipeline.producer_stage())

    def producer_step(self) -> None:
        """Advance the producer stage. No arrive, no wait."""
        self.pipeline.producer_step()

    # the epilogue warps

    def consume(self) -> ConsumeContext:
        """``with epi.consume() as stage``: wait for a full stage; on exit arrive once a lane and step.

        With the count of 128 every one of the 128 epilogue threads must run it.
        """
        return self.pipeline.consume()

    def consume_explicit(self) -> ExplicitConsumeContext:
        """As :meth:`consume`, but the exit omits the arrive: for arrives that only some lanes make."""
        return self.pipeline.consume_explicit()

    def acquire_consumer(self) -> ConsumerStage:
        """Wait for a full stage and return its handle."""
        return self.pipeline.acquire_consumer()

    def wait_producer(self) -> None:
        """Wait until the current consumer stage is full."""
        self.pipeline.wait_producer()

    def consumer_stage(self) -> int:
        """Index of the current consumer stage."""
        return self.pipeline.consumer_stage()

    def consumer_step(self) -> None:
        """Advance the consumer stage. No arrive, no wait."""
        self.pipeline.consumer_step()
