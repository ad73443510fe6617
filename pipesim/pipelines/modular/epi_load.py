"""``EpiLoadPipeline`` and ``LoadOrderBarrier`` (upstream ``nn/conv/gpu/nvidia/sm100/epilogue_load_pipeline.mojo``).

The epilogue-load warp copies tiles of the source tensor, the epilogue warps add them. Every method forwards to one
:class:`ProducerConsumerPipeline`, the field ``pipeline``, which conv2d hands to its tile writer.

Where upstream's page says otherwise: ``producer_mbar()`` takes no stage, while ``ProducerConsumerPipeline``'s does; and
"typically 2 stages" is out of date, since conv2d uses ``MMA_N / OutputN`` of them, 4 for example.

The load order: the main-load warp arrives when the first loads of a tile are under way, then the epilogue-load warp
starts its own. A hazard that the source implies: **nothing holds the arriver back**. If it arrives twice before the
waiter has tested once, the parity is back where it was, the wait misses both arrivals, and without a third one it
hangs. conv2d arrives once for every output tile, and its load warp may be two tiles ahead. CUTLASS
(``include/cutlass/gemm/kernel/sm100_gemm_tma_warpspecialized.hpp``) arrives and waits for the first tile only: one
arrival and one wait cannot miss each other.
"""

from __future__ import annotations

from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.pipelines.common.register_value import MBarType, RegisterValue, mbars_at, pipeline_struct
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


@pipeline_struct
class LoadOrderBarrier(RegisterValue):
    """One mbarrier at ``storage``, an array or a pointer into one, and the phase of one side.

    Each role makes an object of its own.
    """

    def __init__(self, storage: MBarType, initial_phase: int = 0, *, group: str = "load_order") -> None:
        super().__init__()
        (self.barrier,) = mbars_at(storage, 1, "a LoadOrderBarrier")
        self.phase = initial_phase
        self.barrier.storage.label(self.barrier.index, 1, group)

    def init(self, arrive_count: int = 1) -> None:
        """Initialise the barrier; one thread calls it. The count of 1 is the main-load warp's elected lane."""
        self.barrier.init(arrive_count)

    def arrive(self) -> None:
        """Called by the main-load warp: arrive, once for each executing lane."""
        self._mine()
        self.barrier.arrive()

    def wait(self) -> None:
        """Called by the epilogue-load warp: wait for the phase of this side's parity."""
        self._mine()
        self.barrier.wait(self.phase)

    def step(self) -> None:
        """Toggle the phase of this side."""
        self._mine()
        self.phase ^= 1

    def arrive_and_step(self) -> None:
        """:meth:`arrive`, then :meth:`step`."""
        self.arrive()
        self.step()

    def wait_and_step(self) -> None:
        """:meth:`wait`, then :meth:`step`."""
        self.wait()
        self.step()
