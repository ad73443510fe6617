"""``ProducerConsumerPipeline`` and its handles (upstream ``structured_kernels/pipeline.mojo``).

The barriers are shared; stage and phase are not: every role that makes a pipeline object has counters of its own, as a
Mojo thread has. Names keep upstream's point of view, which surprises at first: ``wait_producer`` is called **by the
consumer** (it waits for what the producer does), ``wait_consumer`` by the producer.
"""

from __future__ import annotations

from types import TracebackType
from typing import Self, TypeVar

from pipesim.errors import ProtocolError
from pipesim.lang.author_line import author_line
from pipesim.lang.linear import Linear
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.try_result import TryResult
from pipesim.pipelines.common.pipeline_struct import pipeline_struct
from pipesim.pipelines.common.register_value import MBarType, RegisterValue, ring_at
from pipesim.pipelines.modular.held import Held

Handle = TypeVar("Handle", bound=Linear)


@pipeline_struct
class ProducerConsumerPipeline(RegisterValue):
    """A ring of ``num_stages`` stages: barriers ``full[0..S)``, then ``empty[0..S)`` at ``storage``.

    ``storage`` is an array of mbarriers or a pointer into one (``b[2]``); ProtocolError if the ring runs past its end.
    The producer starts at phase 1, so its first lap does not wait; the consumer starts at phase 0. The constructor
    initialises no barrier: see :meth:`init_mbars`. ``producer_phase`` may be set to 0 for the convention in which
    consumers arrive on every ``empty`` first (upstream's sm90 kernels).
    """

    def __init__(self, storage: MBarType, num_stages: int) -> None:
        super().__init__()
        self.num_stages = num_stages
        self.full, self.empty = ring_at(storage, num_stages)
        self._producer_stage = 0
        self._consumer_stage = 0
        self._producer_phase = 1
        self._consumer_phase = 0
        self._producing = Held("producer")  #: what handle the producer holds, of this object or of a struct around it
        self._consuming = Held("consumer")  #: the same of the consumer

    @staticmethod
    def smem_bytes(num_stages: int) -> int:
        """Bytes of shared memory for the barriers: two of 8 bytes for each stage."""
        return 2 * num_stages * 8

    def init_mbars(self, producer_arrive_count: int, consumer_arrive_count: int) -> None:
        """Initialise every ``full`` for the producer's arrivals and every ``empty`` for the consumers'. One thread."""
        for stage in range(self.num_stages):
            self.full[stage].init(producer_arrive_count)
            self.empty[stage].init(consumer_arrive_count)

    def copy(self) -> Self:
        """A copy with counters of its own over the same barriers, as copying the Mojo value makes."""
        self._producing.require_copyable()
        self._consuming.require_copyable()
        return self._fork()

    def _fork(self) -> Self:
        """:meth:`copy` in the middle of an acquire: the copy holds nothing, whatever this object holds."""
        twin = super().copy()
        twin._producing, twin._consuming = Held("producer"), Held("consumer")  # noqa: SLF001  # its own class
        return twin

    @property
    def producer_phase(self) -> int:
        """The parity for which the producer waits. It may be set, but not while a handle of the producer is held."""
        return self._producer_phase

    @producer_phase.setter
    def producer_phase(self, phase: int) -> None:
        self._producing.require_no_step("producer_phase is set")
        self._producer_phase = phase

    @property
    def consumer_phase(self) -> int:
        """The parity for which the consumer waits. It may be set, but not while a handle of the consumer is held."""
        return self._consumer_phase

    @consumer_phase.setter
    def consumer_phase(self, phase: int) -> None:
        self._consuming.require_no_step("consumer_phase is set")
        self._consumer_phase = phase

    # waits

    def wait_producer(self) -> None:
        """Called by the consumer: wait until the current consumer stage is full."""
        self._mine()
        self.full[self._consumer_stage].wait(self._consumer_phase)

    def wait_consumer(self) -> None:
        """Called by the producer: wait until the current producer stage is empty."""
        self._mine()
        self.empty[self._producer_stage].wait(self._producer_phase)

    def try_wait_producer(self) -> TryResult:
        """Called by the consumer: one try whether the current stage is full. Changes nothing."""
        self._mine()
        return self.full[self._consumer_stage].try_wait(self._consumer_phase)

    def try_wait_consumer(self) -> TryResult:
        """Called by the producer: one try whether the current stage is empty. Changes nothing."""
        self._mine()
        return self.empty[self._producer_stage].try_wait(self._producer_phase)

    def wait_producer_if_needed(self, already_ready: TryResult | bool) -> None:  # noqa: FBT001  # upstream's signature
        """:meth:`wait_producer` unless an earlier try already said full."""
        self._mine()
        self.full[self._consumer_stage].wait_if_needed(already_ready, self._consumer_phase)

    def wait_consumer_if_needed(self, already_ready: TryResult | bool) -> None:  # noqa: FBT001  # upstream's signature
        """:meth:`wait_consumer` unless an earlier try already said empty."""
        self._mine()
        self.empty[self._producer_stage].wait_if_needed(already_ready, self._producer_phase)

    # barriers, stages, steps

    def producer_mbar(self, stage: int) -> SharedMemBarrier:
        """``full[stage]``. Upstream checks no bounds; here a stage outside the ring is an error."""
        return self._barrier(self.full, stage)

    def consumer_mbar(self, stage: int) -> SharedMemBarrier:
        """``empty[stage]``. Upstream checks no bounds; here a stage outside the ring is an error."""
        return self._barrier(self.empty, stage)

    def producer_stage(self) -> int:
        """Index of the current producer stage."""
        return self._producer_stage

    def consumer_stage(self) -> int:
        """Index of the current consumer stage."""
        return self._consumer_stage

    def producer_step(self) -> None:
        """Advance the producer stage; at the end of the ring back to 0, and its phase toggles. No arrive, no wait.

        HandleError while a handle of this side is held: its release is the step.
        """
        self._mine()
        if self._producing.handle is not None:
            self._producing.require_no_step("producer_step()")
        self._producer_stage += 1
        if self._producer_stage == self.num_stages:
            self._producer_stage = 0
            self._producer_phase ^= 1

    def consumer_step(self) -> None:
        """Advance the consumer stage; at the end of the ring back to 0, and its phase toggles. No arrive, no wait.

        HandleError while a handle of this side is held: its release is the step.
        """
        self._mine()
        if self._consuming.handle is not None:
            self._consuming.require_no_step("consumer_step()")
        self._consumer_stage += 1
        if self._consumer_stage == self.num_stages:
            self._consumer_stage = 0
            self._consumer_phase ^= 1

    def producer_signal_and_step(self) -> None:
        """Wait for an empty stage, arrive on its ``full`` (once for each executing lane), step."""
        self._producing.require_no_step("producer_signal_and_step()")
        self.wait_consumer()
        self.full[self._producer_stage].arrive()
        self.producer_step()

    def consumer_signal_and_step(self) -> None:
        """Wait for a full stage, arrive on its ``empty`` (once for each executing lane), step."""
        self._consuming.require_no_step("consumer_signal_and_step()")
        self.wait_producer()
        self.empty[self._consumer_stage].arrive()
        self.consumer_step()

    # handles

    def produce(self) -> ProduceContext:
        """``with pipe.produce() as stage``: wait for an empty stage on entry; on exit **only step**, signal nothing."""
        return ProduceContext(self)

    def consume(self) -> ConsumeContext:
        """``with pipe.consume() as stage``: wait for a full stage; on exit arrive on its ``empty`` and step."""
        return ConsumeContext(self)

    def consume_explicit(self) -> ExplicitConsumeContext:
        """``with pipe.consume_explicit() as stage``: as :meth:`consume`, but the exit omits the arrive."""
        return ExplicitConsumeContext(self)

    def acquire_producer(self) -> ProducerStage:
        """Wait for an empty stage and return its handle. Acquiring does not advance: release it before the next."""
        self._require_free_producer()
        self.wait_consumer()
        return self._hold_producer(ProducerStage(self, self._producer_stage))

    def acquire_consumer(self) -> ConsumerStage:
        """Wait for a full stage and return its handle. Acquiring does not advance: release it before the next."""
        self._require_free_consumer()
        self.wait_producer()
        return self._hold_consumer(ConsumerStage(self, self._consumer_stage))

    # what its handles, and the structs around a ring, tell it

    def _require_free_producer(self) -> None:
        self._producing.require_free(self.full[self._producer_stage])

    def _require_free_consumer(self) -> None:
        self._consuming.require_free(self.empty[self._consumer_stage])

    def _hold_producer(self, handle: Handle) -> Handle:
        self._producing.hold(handle, self.full[self._producer_stage])
        return handle

    def _hold_consumer(self, handle: Handle) -> Handle:
        self._consuming.hold(handle, self.empty[self._consumer_stage])
        return handle

    def _release_producer(self) -> None:
        """The producer's handle was given back: step."""
        self._producing.give_back()
        self.producer_step()

    def _release_consumer(self) -> None:
        """The consumer's handle was given back: step."""
        self._consuming.give_back()
        self.consumer_step()

    def _barrier(self, side: tuple[SharedMemBarrier, ...], stage: int) -> SharedMemBarrier:
        if not 0 <= stage < self.num_stages:
            raise ProtocolError(f"stage {stage} of a pipeline of {self.num_stages} stages", place=author_line())
        return side[stage]


class ProducerStage(Linear):
    """An empty stage, to be filled. It has no arrive: signal ``mbar()`` yourself, or the consumer waits
    indefinitely.
    """

    def __init__(self, pipeline: ProducerConsumerPipeline, index: int) -> None:
        super().__init__(f"producer stage {index}")
        self._pipeline = pipeline
        self._index = index

    def index(self) -> int:
        """The stage, as it was when acquired."""
        self.require_live("index()")
        return self._index

    def mbar(self) -> SharedMemBarrier:
        """``full[index]``: what the producer must signal."""
        self.require_live("mbar()")
        return self._pipeline.full[self._index]

    def release(self) -> None:
        """Step the producer. Signals nothing."""
        self.consume("release()")
        self._pipeline._release_producer()  # noqa: SLF001  # handle and pipeline are one unit


class ConsumerStage(Linear):
    """A full stage, to be read and given back."""

    def __init__(self, pipeline: ProducerConsumerPipeline, index: int) -> None:
        super().__init__(f"consumer stage {index}")
        self._pipeline = pipeline
        self._index = index

    def index(self) -> int:
        """The stage, as it was when acquired."""
        self.require_live("index()")
        return self._index

    def mbar(self) -> SharedMemBarrier:
        """``empty[index]``: what the consumer signals when it has read the stage."""
        self.require_live("mbar()")
        return self._pipeline.empty[self._index]

    def arrive(self) -> None:
        """Arrive once on ``empty[index]`` in each executing lane. Does not step."""
        self.mbar().arrive()

    def release(self) -> None:
        """Arrive on ``empty`` of the stage that was acquired, then step the consumer."""
        self.require_live("release()")
        self._pipeline.empty[self._index].arrive()
        self.release_without_signal()

    def release_without_signal(self) -> None:
        """Step the consumer without the arrive: something else signals ``empty``."""
        self.consume("release_without_signal()")
        self._pipeline._release_consumer()  # noqa: SLF001  # handle and pipeline are one unit


class ProduceContext:
    """The context of :meth:`ProducerConsumerPipeline.produce`."""

    def __init__(self, pipeline: ProducerConsumerPipeline) -> None:
        self._pipeline = pipeline
        self._stage: ProducerStage | None = None

    def __enter__(self) -> ProducerStage:
        self._stage = self._pipeline.acquire_producer()
        return self._stage

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._stage is not None:
            self._stage.release()


class ConsumeContext:
    """The context of :meth:`ProducerConsumerPipeline.consume`."""

    def __init__(self, pipeline: ProducerConsumerPipeline) -> None:
        self._pipeline = pipeline
        self._stage: ConsumerStage | None = None

    def __enter__(self) -> ConsumerStage:
        self._stage = self._pipeline.acquire_consumer()
        return self._stage

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._stage is not None:
            self._give_back(self._stage)

    def _give_back(self, stage: ConsumerStage) -> None:
        stage.release()


class ExplicitConsumeContext(ConsumeContext):
    """The context of :meth:`ProducerConsumerPipeline.consume_explicit`: its exit steps and does not arrive."""

    def _give_back(self, stage: ConsumerStage) -> None:
        stage.release_without_signal()
