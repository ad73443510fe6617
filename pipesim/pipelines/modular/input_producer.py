"""The load warp's side of an input pipeline: ``InputProducer`` and its stages (upstream ``tile_pipeline.mojo``)."""

from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pipesim.lang.linear import Linear
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.try_result import TryResult
from pipesim.pipelines.common.pipeline_struct import pipeline_struct
from pipesim.pipelines.modular.payload import TilePayload
from pipesim.pipelines.modular.producer_consumer import ProducerConsumerPipeline

Payload = TypeVar("Payload", bound=TilePayload)


class _FilledRing(Protocol[Payload]):
    """What the producer's side needs of its pipeline, which is ``InputTilePipeline``."""

    payload: Payload
    pipeline: ProducerConsumerPipeline

    def producer_stage(self) -> int: ...
    def producer_mbar(self, stage: int) -> SharedMemBarrier: ...
    def try_acquire_producer(self) -> TryResult: ...
    def drain_producer(self) -> None: ...
    def _acquire_producer(self, already_ready: TryResult | bool) -> None: ...  # noqa: FBT001  # as upstream's methods
    def _hold_producer(self, handle: Linear) -> None: ...
    def _release_producer(self) -> None: ...


class _ProducerAccess(Linear, Generic[Payload]):
    """What both kinds of acquired producer stage give access to."""

    PipelineType: ClassVar[type[Any]]  #: ``InputTilePipeline``, which is defined with it and sets it

    def __init__(self, pipeline: _FilledRing[Payload]) -> None:
        self._stage = pipeline.producer_stage()
        super().__init__(f"input producer stage {self._stage}")
        self.pipeline_ptr = pipeline
        pipeline._hold_producer(self)  # noqa: SLF001  # handle and pipeline are one unit

    def payload(self) -> Payload:
        """The tile arrays."""
        self.require_live("payload()")
        return self.pipeline_ptr.payload

    def stage(self) -> int:
        """The stage, as it was when acquired."""
        self.require_live("stage()")
        return self._stage

    def expect_bytes(self, num_bytes: int) -> None:
        """``expect_bytes`` of ``full``: expect them **and arrive once**, which upstream does not say, in each lane."""
        self.barrier().expect_bytes(num_bytes)

    def barrier(self) -> SharedMemBarrier:
        """``full`` of this stage, for the TMA."""
        self.require_live("barrier()")
        return self.pipeline_ptr.producer_mbar(self._stage)

    def _give_back(self, verb: str) -> None:
        self.consume(verb)
        self.pipeline_ptr._release_producer()  # noqa: SLF001  # handle and pipeline are one unit


class InputProducerStage(_ProducerAccess[Payload]):
    """An empty stage as a linear handle: ``release()`` it exactly once."""

    def release(self) -> None:
        """Step the producer. Signals nothing."""
        self._give_back("release()")


class ProducerTiles(_ProducerAccess[Payload]):
    """An empty stage as a context. Entering waits for nothing: ``acquire()`` has waited; leaving only steps.

    Upstream does not notice when it is never entered: the next acquire then returns the same stage. Here that is an
    error.
    """

    def __enter__(self) -> ProducerTiles[Payload]:
        self.require_live("with")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._give_back("the end of with")


@pipeline_struct
class InputProducer(Generic[Payload]):
    """The load warp's view. It holds no state: entering returns itself, leaving does nothing, not even a drain."""

    PipelineType: ClassVar[type[Any]]  #: ``InputTilePipeline``, which is defined with it and sets it

    def __init__(self, pipeline_ptr: _FilledRing[Payload]) -> None:
        self.pipeline_ptr = pipeline_ptr

    def __enter__(self) -> InputProducer[Payload]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def drain(self) -> None:
        """Wait until everything that was produced is consumed, so that this CTA does not exit under its peers.

        The wait for a stage that was never filled passes immediately. Afterwards the view is dead: the stage is where
        it was and the phase is flipped, so the next wait, or a second drain, blocks indefinitely.
        """
        self.pipeline_ptr.drain_producer()

    def acquire(self) -> ProducerTiles[Payload]:
        """Wait for an empty stage; ``with`` what is returned."""
        return self.acquire_if_needed(already_ready=False)

    def acquire_stage(self) -> InputProducerStage[Payload]:
        """Wait for an empty stage and return its linear handle."""
        self.pipeline_ptr._acquire_producer(already_ready=False)  # noqa: SLF001  # view and pipeline are one unit
        return InputProducerStage(self.pipeline_ptr)

    def try_acquire(self) -> TryResult:
        """One try whether the current stage is empty. It must come after the step of the stage before."""
        return self.pipeline_ptr.try_acquire_producer()

    def acquire_if_needed(self, already_ready: TryResult | bool) -> ProducerTiles[Payload]:  # noqa: FBT001  # upstream's signature
        """:meth:`acquire` that skips its wait if ``already_ready``, which must be a try of this stage in this lap."""
        self.pipeline_ptr._acquire_producer(already_ready)  # noqa: SLF001  # view and pipeline are one unit
        return ProducerTiles(self.pipeline_ptr)
