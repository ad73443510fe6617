"""``ProducerConsumerPipeline`` and its handles (upstream ``structured_kernels/pipeline.mojo``).

The barriers are shared; stage and phase are not: every role that makes a pipeline object has counters of its own, as a
Mojo thread has. Names keep upstream's point of view, which surprises at first: ``wait_producer`` is called **by the
consumer** (it waits for what the producer does), ``wait_consumer`` by the producer.

``EpiLoadPipeline`` and ``LoadOrderBarrier`` (upstream ``nn/conv/gpu/nvidia/sm100/epilogue_load_pipeline.mojo``).

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

from typing import Self

from pipesim.lang.author import author_error
from pipesim.lang.shared_mem_barrier import SharedMemBarrier, TryResult
from pipesim.pipelines.common.linear import Linear, RingSide, StageContext
from pipesim.pipelines.common.register_value import MBarType, RegisterValue, mbars_at, pipeline_struct, ring_at


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
        self._producing = RingSide("producer", self.empty, self.full, phase=1)
        self._consuming = RingSide("consumer", self.full, self.empty, phase=0)

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
        twin._producing, twin._consuming = self._producing.fork(), self._consuming.fork()  # noqa: SLF001  # its own class
        return twin

    @property
    def producer_phase(self) -> int:
        """The parity for which the producer waits. It may be set, but not while a handle of the producer is held."""
        return self._producing.phase

    @producer_phase.setter
    def producer_phase(self, phase: int) -> None:
        self._producing.require_no_step("producer_phase is set")
        self._producing.phase = phase

    def _producer(self) -> RingSide:
        """The producer's side, used by the agent that owns it; also by the structs around a ring."""
        self._mine()
        return self._producing

    def _consumer(self) -> RingSide:
        """The consumer's side, used by the agent that owns it; also by the structs around a ring."""
        self._mine()
        return self._consuming

    # waits

    def wait_producer(self) -> None:
        """Called by the consumer: wait until the current consumer stage is full."""
        self._consumer().wait()

    def wait_consumer(self) -> None:
        """Called by the producer: wait until the current producer stage is empty."""
        self._producer().wait()

    def try_wait_producer(self) -> TryResult:
        """Called by the consumer: one try whether the current stage is full. Changes nothing."""
        return self._consumer().try_wait()

    def try_wait_consumer(self) -> TryResult:
        """Called by the producer: one try whether the current stage is empty. Changes nothing."""
        return self._producer().try_wait()

    def wait_producer_if_needed(self, already_ready: TryResult | bool) -> None:  # noqa: FBT001  # upstream's signature
        """:meth:`wait_producer` unless an earlier try already said full."""
        self._consumer().wait_if_needed(already_ready)

    def wait_consumer_if_needed(self, already_ready: TryResult | bool) -> None:  # noqa: FBT001  # upstream's signature
        """:meth:`wait_consumer` unless an earlier try already said empty."""
        self._producer().wait_if_needed(already_ready)

    # barriers, stages, steps

    def producer_mbar(self, stage: int) -> SharedMemBarrier:
        """``full[stage]``. Upstream checks no bounds; here a stage outside the ring is an error."""
        return self._barrier(self.full, stage)

    def consumer_mbar(self, stage: int) -> SharedMemBarrier:
        """``empty[stage]``. Upstream checks no bounds; here a stage outside the ring is an error."""
        return self._barrier(self.empty, stage)

    def producer_stage(self) -> int:
        """Index of the current producer stage."""
        return self._producing.stage

    def consumer_stage(self) -> int:
        """Index of the current consumer stage."""
        return self._consuming.stage

    def producer_step(self) -> None:
        """Advance the producer stage; at the end of the ring back to 0, and its phase toggles. No arrive, no wait.

        HandleError while a handle of this side is held: its release is the step.
        """
        side = self._producer()
        side.require_no_step("producer_step()")
        side.step()

    def consumer_step(self) -> None:
        """Advance the consumer stage; at the end of the ring back to 0, and its phase toggles. No arrive, no wait.

        HandleError while a handle of this side is held: its release is the step.
        """
        side = self._consumer()
        side.require_no_step("consumer_step()")
        side.step()

    def producer_signal_and_step(self) -> None:
        """Wait for an empty stage, arrive on its ``full`` (once for each executing lane), step."""
        _signal_and_step(self._producer(), "producer_signal_and_step()")

    def consumer_signal_and_step(self) -> None:
        """Wait for a full stage, arrive on its ``empty`` (once for each executing lane), step."""
        _signal_and_step(self._consumer(), "consumer_signal_and_step()")

    # handles

    def produce(self) -> ProduceContext:
        """``with pipe.produce() as stage``: wait for an empty stage on entry; on exit **only step**, signal nothing."""
        return ProduceContext(self.acquire_producer, ProducerStage.release)

    def consume(self) -> ConsumeContext:
        """``with pipe.consume() as stage``: wait for a full stage; on exit arrive on its ``empty`` and step."""
        return ConsumeContext(self.acquire_consumer, ConsumerStage.release)

    def consume_explicit(self) -> ExplicitConsumeContext:
        """``with pipe.consume_explicit() as stage``: as :meth:`consume`, but the exit omits the arrive."""
        return ExplicitConsumeContext(self.acquire_consumer, ConsumerStage.release_without_signal)

    def acquire_producer(self) -> ProducerStage:
        """Wait for an empty stage and return its handle. Acquiring does not advance: release it before the next."""
        side = self._producer()
        side.require_free()
        side.wait()
        return ProducerStage(side)

    def acquire_consumer(self) -> ConsumerStage:
        """Wait for a full stage and return its handle. Acquiring does not advance: release it before the next."""
        side = self._consumer()
        side.require_free()
        side.wait()
        return ConsumerStage(side)

    def _barrier(self, side: tuple[SharedMemBarrier, ...], stage: int) -> SharedMemBarrier:
        if not 0 <= stage < self.num_stages:
            raise author_error(f"stage {stage} of a pipeline of {self.num_stages} stages")
        return side[stage]


def _signal_and_step(side: RingSide, verb: str) -> None:
    side.require_no_step(verb)
    side.wait()
    side.signals[side.stage].arrive()
    side.step()


class _HeldStage(Linear):
    """What the handles of both sides give access to."""

    def __init__(self, side: RingSide) -> None:
        super().__init__(f"{side.name} stage {side.stage}")
        self._side = side
        self._index = side.stage
        side.hold(self)

    def index(self) -> int:
        """The stage, as it was when acquired."""
        self.require_live("index()")
        return self._index

    def mbar(self) -> SharedMemBarrier:
        """What this side must signal: ``full[index]`` in the producer, ``empty[index]`` in the consumer."""
        self.require_live("mbar()")
        return self._side.signals[self._index]

    def _give_back(self, verb: str) -> None:
        self.consume(verb)
        self._side.release()


class ProducerStage(_HeldStage):
    """An empty stage, to be filled. It has no arrive: signal ``mbar()`` yourself, or the consumer waits
    indefinitely.
    """

    def release(self) -> None:
        """Step the producer. Signals nothing."""
        self._give_back("release()")


class ConsumerStage(_HeldStage):
    """A full stage, to be read and given back."""

    def arrive(self) -> None:
        """Arrive once on ``empty[index]`` in each executing lane. Does not step."""
        self.mbar().arrive()

    def release(self) -> None:
        """Arrive on ``empty`` of the stage that was acquired, then step the consumer."""
        self.require_live("release()")
        self._side.signals[self._index].arrive()
        self._give_back("release()")

    def release_without_signal(self) -> None:
        """Step the consumer without the arrive: something else signals ``empty``."""
        self._give_back("release_without_signal()")


class ProduceContext(StageContext[ProducerStage]):
    """The context of :meth:`ProducerConsumerPipeline.produce`."""


class ConsumeContext(StageContext[ConsumerStage]):
    """The context of :meth:`ProducerConsumerPipeline.consume`."""


class ExplicitConsumeContext(ConsumeContext):
    """The context of :meth:`ProducerConsumerPipeline.consume_explicit`: its exit steps and does not arrive."""


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
