"""``InputTilePipeline``: operand tiles from the load warp to the MMA warp, with views and handles for each side.

Upstream: ``linalg/matmul/gpu/sm100_structured/structured_kernels/tile_pipeline.mojo``. One barrier pair guards a
group of ``k_group_size`` tiles. Giving a stage back only **steps**, on both sides: ``full`` completes by the bytes of
the TMA and the producer's ``expect_bytes``, ``empty`` by the MMA's commit on the consumer's ``mbar()``.
"""

from __future__ import annotations

from typing import Generic, TypeVar

from pipesim.errors import ProtocolError
from pipesim.lang.author_line import author_line
from pipesim.lang.linear import Linear
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage, SharedMemBarrier
from pipesim.lang.try_result import TryResult
from pipesim.pipelines.common.pipeline_struct import pipeline_struct
from pipesim.pipelines.common.register_value import MBarType
from pipesim.pipelines.modular.barrier_array import init_barriers, require_barriers
from pipesim.pipelines.modular.input_consumer import ConsumerTiles, InputConsumer, InputConsumerStage
from pipesim.pipelines.modular.input_producer import InputProducer, InputProducerStage, ProducerTiles
from pipesim.pipelines.modular.payload import TilePayload
from pipesim.pipelines.modular.producer_consumer import ProducerConsumerPipeline

Payload = TypeVar("Payload", bound=TilePayload)


@pipeline_struct
class InputTilePipeline(Generic[Payload]):
    """A ring of ``num_group_stages`` stages, each a group of ``k_group_size`` slots of every array of ``payload``.

    Like the pipeline inside it, it belongs to the agent that made it: stage and phase are that agent's own.
    ``barriers`` are a :meth:`BarrierArray`, or a pointer into a larger array (``b[2]``), which must hold the ring.
    """

    Pipeline = ProducerConsumerPipeline  #: what synchronises the stages

    def __init__(self, barriers: MBarType, payload: Payload, num_group_stages: int, k_group_size: int) -> None:
        require_barriers(barriers, num_group_stages)
        if k_group_size < 1 or num_group_stages * k_group_size > payload.num_pipeline_stages:
            raise ProtocolError(
                f"{num_group_stages} group stages of {k_group_size} tiles need {num_group_stages * k_group_size} "
                f"slots; each array of the payload has {payload.num_pipeline_stages}",
                place=author_line(),
                correction="num_group_stages is num_pipeline_stages / k_group_size",
            )
        self.pipeline = ProducerConsumerPipeline(barriers, num_group_stages)
        self.payload = payload
        self.num_group_stages = num_group_stages
        self.k_group_size = k_group_size

    @staticmethod
    def BarrierArray(protocol: Protocol, name: str, num_group_stages: int) -> BarrierStorage:  # noqa: N802  # upstream's name
        """The ``2 * num_group_stages`` mbarriers of such a pipeline, in the memory of ``protocol``."""
        return protocol.mbarriers(name, 2 * num_group_stages)

    @staticmethod
    def init_barriers(
        storage: MBarType, producer_arv_count: int, consumer_arv_count: int, *, num_group_stages: int | None = None
    ) -> None:
        """Initialise every ``full`` for the producers' arrivals and every ``empty`` for the consumers'. One thread.

        ``num_group_stages`` is needed where ``storage`` is a pointer; an array is the barriers of one pipeline.
        """
        init_barriers(storage, producer_arv_count, consumer_arv_count, num_group_stages)

    def copy(self) -> InputTilePipeline[Payload]:
        """A copy with counters of its own over the same barriers and tiles, as copying the Mojo value makes."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.pipeline = self.pipeline.copy()
        return twin

    # tries

    def try_acquire_producer(self) -> TryResult:
        """Called by the producer: one try whether the current stage is empty. Changes nothing.

        The public page continues with ``wait_producer_if_needed``, which waits for the other side's barrier with
        counters that never advance here. What belongs to this try is :meth:`wait_consumer_if_needed`.
        """
        return self.pipeline.try_wait_consumer()

    def try_acquire_consumer(self) -> TryResult:
        """Called by the consumer: one try whether the current stage is full. Changes nothing.

        The public page continues with ``wait_consumer_if_needed``: the mirrored mistake. What belongs to this try is
        :meth:`wait_producer_if_needed`.
        """
        return self.pipeline.try_wait_producer()

    def wait_producer_if_needed(self, already_ready: TryResult | bool) -> None:  # noqa: FBT001  # upstream's signature
        """Called by the **consumer**: wait for ``full`` unless its :meth:`try_acquire_consumer` already said so."""
        self.pipeline.wait_producer_if_needed(already_ready)

    def wait_consumer_if_needed(self, already_ready: TryResult | bool) -> None:  # noqa: FBT001  # upstream's signature
        """Called by the **producer**: wait for ``empty`` unless its :meth:`try_acquire_producer` already said so."""
        self.pipeline.wait_consumer_if_needed(already_ready)

    # stages and barriers

    def producer_stage(self) -> int:
        """Index of the current producer stage."""
        return self.pipeline.producer_stage()

    def consumer_stage(self) -> int:
        """Index of the current consumer stage."""
        return self.pipeline.consumer_stage()

    def producer_mbar(self, stage: int) -> SharedMemBarrier:
        """``full[stage]``."""
        return self.pipeline.producer_mbar(stage)

    def consumer_mbar(self, stage: int) -> SharedMemBarrier:
        """``empty[stage]``."""
        return self.pipeline.consumer_mbar(stage)

    # views and handles

    def producer(self) -> InputProducer[Payload]:
        """The load warp's view of this pipeline; the counters stay here."""
        return InputProducer(self)

    def consumer(self) -> InputConsumer[Payload]:
        """The MMA warp's view of this pipeline; the counters stay here."""
        return InputConsumer(self)

    def acquire_producer(self) -> InputProducerStage[Payload]:
        """Wait for an empty stage and return its handle. Acquiring does not advance: release it before the next."""
        return self.producer().acquire_stage()

    def acquire_consumer(self) -> InputConsumerStage[Payload]:
        """Wait for a full stage and return its handle, whose release, whatever the public page says, only advances."""
        return self.consumer().acquire_stage()

    def drain_producer(self) -> None:
        """Wait until everything that was produced is consumed, as ``InputProducer.drain`` does.

        Afterwards the producer side is dead: its next wait, or a second drain, blocks indefinitely.
        """
        self.pipeline._producing.require_no_step("a drain")  # noqa: SLF001  # pipeline and ring are one unit
        for _ in range(self.num_group_stages):
            self.pipeline.wait_consumer()
            self.pipeline.producer_step()

    def _acquire_producer(self, already_ready: TryResult | bool) -> None:  # noqa: FBT001  # as upstream's methods
        self.pipeline._require_free_producer()  # noqa: SLF001  # pipeline and ring are one unit
        self.pipeline.wait_consumer_if_needed(already_ready)

    def _acquire_consumer(self, already_ready: TryResult | bool) -> None:  # noqa: FBT001  # as upstream's methods
        self.pipeline._require_free_consumer()  # noqa: SLF001  # pipeline and ring are one unit
        self.pipeline.wait_producer_if_needed(already_ready)

    def _hold_producer(self, handle: Linear) -> None:
        self.pipeline._hold_producer(handle)  # noqa: SLF001  # pipeline and ring are one unit

    def _hold_consumer(self, handle: Linear) -> None:
        self.pipeline._hold_consumer(handle)  # noqa: SLF001  # pipeline and ring are one unit

    def _release_producer(self) -> None:
        self.pipeline._release_producer()  # noqa: SLF001  # pipeline and ring are one unit

    def _release_consumer(self) -> None:
        self.pipeline._release_consumer()  # noqa: SLF001  # pipeline and ring are one unit


for _pointing in InputProducer, InputProducerStage, ProducerTiles, InputConsumer, InputConsumerStage, ConsumerTiles:
    _pointing.PipelineType = InputTilePipeline  # upstream's name for the type that their ``pipeline_ptr`` points to
