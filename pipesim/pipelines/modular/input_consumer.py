"""The MMA warp's side of an input pipeline: ``InputConsumer`` and its stages (upstream ``tile_pipeline.mojo``)."""

from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from pipesim.lang.linear import Linear
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.try_result import TryResult
from pipesim.pipelines.common.pipeline_struct import pipeline_struct
from pipesim.pipelines.modular.payload import TilePayload

Payload = TypeVar("Payload", bound=TilePayload)


class _EmptiedRing(Protocol[Payload]):
    """What the consumer's side needs of its pipeline, which is ``InputTilePipeline``."""

    payload: Payload

    def consumer_stage(self) -> int: ...
    def consumer_mbar(self, stage: int) -> SharedMemBarrier: ...
    def try_acquire_consumer(self) -> TryResult: ...
    def _acquire_consumer(self, already_ready: TryResult | bool) -> None: ...  # noqa: FBT001  # as upstream's methods
    def _hold_consumer(self, handle: Linear) -> None: ...
    def _release_consumer(self) -> None: ...


class _ConsumerAccess(Linear, Generic[Payload]):
    """What both kinds of acquired consumer stage give access to."""

    PipelineType: ClassVar[type[Any]]  #: ``InputTilePipeline``, which is defined with it and sets it

    def __init__(self, pipeline: _EmptiedRing[Payload]) -> None:
        self._stage = pipeline.consumer_stage()
        super().__init__(f"input consumer stage {self._stage}")
        self.pipeline_ptr = pipeline
        pipeline._hold_consumer(self)  # noqa: SLF001  # handle and pipeline are one unit

    def payload(self) -> Payload:
        """The tile arrays."""
        self.require_live("payload()")
        return self.pipeline_ptr.payload

    def stage(self) -> int:
        """The stage, as it was when acquired."""
        self.require_live("stage()")
        return self._stage

    def mbar(self) -> SharedMemBarrier:
        """``empty`` of this stage: what the MMAs that read it must commit to, or the producer waits indefinitely."""
        self.require_live("mbar()")
        return self.pipeline_ptr.consumer_mbar(self._stage)

    def _give_back(self, verb: str) -> None:
        self.consume(verb)
        self.pipeline_ptr._release_consumer()  # noqa: SLF001  # handle and pipeline are one unit


class InputConsumerStage(_ConsumerAccess[Payload]):
    """A full stage as a linear handle: ``release()`` it exactly once."""

    def release(self) -> None:
        """Step the consumer. The public page says that it signals, too: it does not; the MMA's commit does."""
        self._give_back("release()")


class ConsumerTiles(_ConsumerAccess[Payload]):
    """A full stage as a context. Entering waits for nothing: ``acquire()`` has waited; leaving only steps.

    Upstream does not notice when it is never entered: the next acquire then returns the same stage. Here that is an
    error.
    """

    def __enter__(self) -> ConsumerTiles[Payload]:
        self.require_live("with")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._give_back("the end of with")


@pipeline_struct
class InputConsumer(Generic[Payload]):
    """The MMA warp's view. It holds no state: entering returns itself, leaving does nothing. It has no drain."""

    PipelineType: ClassVar[type[Any]]  #: ``InputTilePipeline``, which is defined with it and sets it

    def __init__(self, pipeline_ptr: _EmptiedRing[Payload]) -> None:
        self.pipeline_ptr = pipeline_ptr

    def __enter__(self) -> InputConsumer[Payload]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        pass

    def acquire(self) -> ConsumerTiles[Payload]:
        """Wait for a full stage; ``with`` what is returned."""
        return self.acquire_if_needed(already_ready=False)

    def acquire_stage(self) -> InputConsumerStage[Payload]:
        """Wait for a full stage and return its linear handle."""
        self.pipeline_ptr._acquire_consumer(already_ready=False)  # noqa: SLF001  # view and pipeline are one unit
        return InputConsumerStage(self.pipeline_ptr)

    def try_acquire(self) -> TryResult:
        """One try whether the current stage is full. It must come after the step of the stage before."""
        return self.pipeline_ptr.try_acquire_consumer()

    def acquire_if_needed(self, already_ready: TryResult | bool) -> ConsumerTiles[Payload]:  # noqa: FBT001  # upstream's signature
        """:meth:`acquire` that skips its wait if ``already_ready``, which must be a try of this stage in this lap."""
        self.pipeline_ptr._acquire_consumer(already_ready)  # noqa: SLF001  # view and pipeline are one unit
        return ConsumerTiles(self.pipeline_ptr)
