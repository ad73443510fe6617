"""Acquired accumulator stages: ``OutputStage`` and what wraps it (upstream ``tile_pipeline.mojo``)."""

from __future__ import annotations

from types import TracebackType
from typing import Any, ClassVar, Protocol

from pipesim.lang.linear import Linear
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.pipelines.modular.producer_consumer import ProducerConsumerPipeline
from pipesim.pipelines.modular.tmem import TmemStage


class OutputStage(Linear):
    """One acquired accumulator stage: its index, its tensor memory, and a **copy** of the pipeline, as upstream's.

    Upstream's is a plain value; here one that is never given back is an error. The tile writer hands :attr:`pipeline`
    and :attr:`index` to ``AccumBarrier.arrive``.
    """

    Pipeline = ProducerConsumerPipeline  #: of the field ``pipeline``
    Tmem = TmemStage  #: of the field ``tmem``

    def __init__(self, what: str, index: int, tmem: TmemStage, pipeline: ProducerConsumerPipeline) -> None:
        super().__init__(f"{what} stage {index}")
        self._index = index
        self._tmem = tmem
        self._pipeline = pipeline

    @property
    def index(self) -> int:
        """The stage, as it was when acquired."""
        self.require_live("index")
        return self._index

    @property
    def tmem(self) -> TmemStage:
        """The accumulator."""
        self.require_live("tmem")
        return self._tmem

    @property
    def pipeline(self) -> ProducerConsumerPipeline:
        """A copy of the pipeline: its steps move nothing but the copy's counters."""
        self.require_live("pipeline")
        return self._pipeline


class AccumulatorRing(Protocol):
    """What an acquired accumulator needs of its pipeline, which is ``OutputTilePipeline``."""

    pipeline: ProducerConsumerPipeline
    cta_group: int

    def acquire_for_mma(self) -> OutputStage:
        """Wait for a free accumulator."""
        ...

    def release_from_mma(self, stage: OutputStage) -> None:
        """Commit to ``full`` of the stage and step."""
        ...

    def acquire_for_epilogue(self) -> OutputStage:
        """Wait for a finished accumulator."""
        ...

    def release_from_epilogue(self) -> None:
        """Step; signals nothing."""
        ...


class OutputView:
    """The associated types of everything that points to an ``OutputTilePipeline``."""

    TilePipelineType: ClassVar[type[Any]]  #: ``OutputTilePipeline``, which is defined with it and sets it
    Stage = OutputStage  #: what an acquire returns


class _AccumulatorStage(OutputView):
    """What both kinds of handle give access to."""

    def __init__(self, pipeline_ptr: AccumulatorRing, stage: OutputStage) -> None:
        self.pipeline_ptr = pipeline_ptr
        self._stage = stage

    def tmem(self) -> TmemStage:
        """The accumulator."""
        return self._stage.tmem

    def tmem_offset(self) -> int:
        """The accumulator's first column."""
        return self._stage.tmem.offset()

    def index(self) -> int:
        """The stage, as it was when acquired."""
        return self._stage.index


class MmaStage(_AccumulatorStage):
    """A free accumulator stage as a linear handle, for the MMA warp."""

    def mbar(self) -> SharedMemBarrier:
        """``full`` of this stage, to which :meth:`release` commits; a commit of one's own is an arrival too many."""
        return self.pipeline_ptr.pipeline.producer_mbar(self._stage.index)

    def release(self) -> None:
        """Commit to ``full`` in one elected lane, step in all. See ``OutputTilePipeline.release_from_mma``."""
        self.pipeline_ptr.release_from_mma(self._stage)


class EpilogueStage(_AccumulatorStage):
    """A finished accumulator stage as a linear handle, for an epilogue warp."""

    def release(self) -> None:
        """Step. The public page says that it frees the stage for the MMA: it does not, ``AccumBarrier.arrive`` does."""
        self._stage.require_live("release()")
        self.pipeline_ptr.release_from_epilogue()


class OutputProducer(OutputView):
    """``with output.producer() as stage``: wait for a free accumulator; leaving commits to ``full`` and steps."""

    def __init__(self, pipeline_ptr: AccumulatorRing) -> None:
        self.pipeline_ptr = pipeline_ptr
        self._stage: OutputStage | None = None

    def __enter__(self) -> OutputStage:
        self._stage = self.pipeline_ptr.acquire_for_mma()
        return self._stage

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._stage is not None:
            self.pipeline_ptr.release_from_mma(self._stage)


class OutputConsumer(OutputView):
    """``with output.consumer() as stage``: wait for a finished accumulator; leaving only steps."""

    def __init__(self, pipeline_ptr: AccumulatorRing) -> None:
        self.pipeline_ptr = pipeline_ptr

    def __enter__(self) -> OutputStage:
        return self.pipeline_ptr.acquire_for_epilogue()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.pipeline_ptr.release_from_epilogue()
