"""``OutputTilePipeline``: accumulators in tensor memory, from the MMA warp to the epilogue warps.

Upstream: ``linalg/matmul/gpu/sm100_structured/structured_kernels/tile_pipeline.mojo``. ``full`` completes by a commit
of the MMAs; ``empty`` by ``AccumBarrier.arrive`` of every epilogue thread, never by giving a stage back.
"""

from __future__ import annotations

from pipesim.errors import HandleError, ProtocolError
from pipesim.lang.author_line import author_line
from pipesim.lang.predicate import elect, predicated
from pipesim.lang.protocol import Protocol
from pipesim.lang.recorder import recorder
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tcgen05 import mma_arrive, mma_arrive_multicast
from pipesim.pipelines.common.pipeline_struct import pipeline_struct
from pipesim.pipelines.common.register_value import MBarType
from pipesim.pipelines.modular.barrier_array import init_barriers, require_barriers
from pipesim.pipelines.modular.output_stage import (
    EpilogueStage,
    MmaStage,
    OutputConsumer,
    OutputProducer,
    OutputStage,
    OutputView,
)
from pipesim.pipelines.modular.per_k import EpilogueKContext, OutputKPipeline
from pipesim.pipelines.modular.producer_consumer import ProducerConsumerPipeline
from pipesim.pipelines.modular.tmem import TMEM_COLUMN_BYTES, TMEM_COLUMNS, TmemAllocation, TmemStage


@pipeline_struct
class OutputTilePipeline:
    """A ring of ``num_stages`` accumulators, ``stage_stride_cols`` columns apart.

    ``cta_group`` is 1, or 2 where the two CTAs of a pair multiply together: then the leader's MMA warp commits to
    ``full`` of every CTA of ``mma_complete_mask`` (itself and its peer), and every epilogue thread of both arrives on
    ``empty`` of the leader. ``barriers`` are a :meth:`BarrierArray`, or a pointer into a larger array (``b[2]``).
    """

    Pipeline = ProducerConsumerPipeline  #: what synchronises the stages
    Tmem = TmemAllocation  #: of the field ``tmem``
    Stage = OutputStage  #: what an acquire returns

    def __init__(
        self,
        barriers: MBarType,
        tmem: TmemAllocation,
        mma_complete_mask: int,
        num_stages: int,
        stage_stride_cols: int,
        cta_group: int,
    ) -> None:
        require_barriers(barriers, num_stages)
        self.pipeline = ProducerConsumerPipeline(barriers, num_stages)
        self.tmem = tmem
        self.mma_complete_mask = mma_complete_mask
        self.num_stages = num_stages
        self.stage_stride_cols = stage_stride_cols
        self.cta_group = cta_group
        self._require_sense()

    def _require_sense(self) -> None:
        """Raise ProtocolError for stages that tensor memory cannot hold, or a pair of CTAs that does not exist."""
        tiles, stride = self.tmem.tiles, self.stage_stride_cols
        if len(tiles) < self.num_stages or tiles.nbytes > stride * TMEM_COLUMN_BYTES:
            raise ProtocolError(
                f"{tiles.name} has {len(tiles)} tiles of {tiles.nbytes:,} bytes for {self.num_stages} stages of "
                f"{stride} columns",
                place=author_line(),
                cause=f"every stage is one tile, and a column of tensor memory has {TMEM_COLUMN_BYTES} bytes",
            )
        if self.tmem.addr < 0 or self.tmem.addr + self.num_stages * stride > TMEM_COLUMNS:
            raise ProtocolError(
                f"{self.num_stages} stages of {stride} columns from column {self.tmem.addr} on",
                place=author_line(),
                cause=f"tensor memory has {TMEM_COLUMNS} columns",
                correction=f"use at most {TMEM_COLUMNS} / num_stages columns a stage",
            )
        if self.cta_group not in (1, 2) or recorder().tables.ctas % self.cta_group:
            raise ProtocolError(
                f"a group of {self.cta_group} CTAs in a cluster of {recorder().tables.ctas}",
                place=author_line(),
                correction="use cta_group 1, or 2 in a cluster of 2, 4, 6 … CTAs",
            )

    @staticmethod
    def BarrierArray(protocol: Protocol, name: str, num_stages: int) -> BarrierStorage:  # noqa: N802  # upstream's name
        """The ``2 * num_stages`` mbarriers of such a pipeline, in the memory of ``protocol``."""
        return protocol.mbarriers(name, 2 * num_stages)

    @staticmethod
    def init_barriers(
        storage: MBarType, producer_arv_count: int, consumer_arv_count: int, *, num_stages: int | None = None
    ) -> None:
        """Initialise every ``full`` and every ``empty``. One thread. Upstream: 1, and 128 threads a CTA.

        ``num_stages`` is needed where ``storage`` is a pointer; an array is the barriers of one pipeline.
        """
        init_barriers(storage, producer_arv_count, consumer_arv_count, num_stages)

    def copy(self) -> OutputTilePipeline:
        """A copy with counters of its own over the same barriers, as copying the Mojo value makes."""
        twin = object.__new__(type(self))
        twin.__dict__.update(self.__dict__)
        twin.pipeline = self.pipeline.copy()
        return twin

    def get_pipeline(self) -> ProducerConsumerPipeline:
        """The pipeline inside."""
        return self.pipeline

    # the four calls that everything else wraps

    def acquire_for_mma(self) -> OutputStage:
        """Called by the MMA warp: wait until the current stage is empty."""
        self.pipeline._require_free_producer()  # noqa: SLF001  # pipeline and ring are one unit
        index = self.pipeline.producer_stage()
        self.pipeline.wait_consumer()
        return self.pipeline._hold_producer(self._stage("MMA", index))  # noqa: SLF001  # pipeline and ring are one unit

    def release_from_mma(self, stage: OutputStage) -> None:
        """One elected lane commits to ``full`` of ``stage`` (in each CTA of the mask, for two SMs); all lanes step."""
        stage.require_live("release_from_mma()")
        if stage is not self.pipeline._producing.handle:  # noqa: SLF001  # pipeline and ring are one unit
            raise HandleError(
                f"{recorder().who} releases {stage.description[0]} as the MMA warp, which does not hold it",
                place=author_line(),
                cause=f"acquired at {stage.description[2]}",
                correction="release what acquire_for_mma of the same pipeline object returned",
            )
        mbar = self.pipeline.producer_mbar(stage.index)
        with predicated(elect()):
            if self.cta_group == 1:
                mma_arrive(mbar)
            else:
                mma_arrive_multicast(mbar, self.mma_complete_mask)
        stage.consume("release_from_mma()")
        self.pipeline._release_producer()  # noqa: SLF001  # pipeline and ring are one unit

    def acquire_for_epilogue(self) -> OutputStage:
        """Called by an epilogue warp: wait until the MMAs of the current stage have finished."""
        self.pipeline._require_free_consumer()  # noqa: SLF001  # pipeline and ring are one unit
        index = self.pipeline.consumer_stage()
        self.pipeline.wait_producer()
        return self.pipeline._hold_consumer(self._stage("epilogue", index))  # noqa: SLF001  # pipeline and ring are one unit

    def release_from_epilogue(self) -> None:
        """Step. Signals nothing, although the public page says so: ``AccumBarrier.arrive`` frees the stage."""
        consuming = self.pipeline._consuming  # noqa: SLF001  # pipeline and ring are one unit
        if isinstance(consuming.handle, OutputStage):
            consuming.handle.consume("release_from_epilogue()")
        else:
            consuming.require_no_step("release_from_epilogue()")
        self.pipeline._release_consumer()  # noqa: SLF001  # pipeline and ring are one unit

    def _stage(self, what: str, index: int) -> OutputStage:
        tmem, ring = TmemStage(self.tmem, index, self.stage_stride_cols), self.pipeline._fork()  # noqa: SLF001  # as above
        return OutputStage(what, index, tmem, ring)

    # contexts, handles, and the views of one K iteration

    def producer(self) -> OutputProducer:
        """``with output.producer() as stage``: once for each output tile, in the MMA warp."""
        return OutputProducer(self)

    def consumer(self) -> OutputConsumer:
        """``with output.consumer() as stage``: once for each output tile, in an epilogue warp."""
        return OutputConsumer(self)

    def acquire_mma_linear(self) -> MmaStage:
        """:meth:`acquire_for_mma` as a linear handle."""
        return MmaStage(self, self.acquire_for_mma())

    def acquire_epilogue_linear(self) -> EpilogueStage:
        """:meth:`acquire_for_epilogue` as a linear handle."""
        return EpilogueStage(self, self.acquire_for_epilogue())

    def per_k(self) -> OutputKPipeline:
        """The view that hands an accumulator over after each K iteration, not after each tile (blockwise FP8)."""
        return OutputKPipeline(self)

    def per_k_epilogue(self, input_pipeline: ProducerConsumerPipeline) -> EpilogueKContext:
        """The epilogue's view of one K iteration of this pipeline and of the one that brings the scales of A."""
        return EpilogueKContext(self, input_pipeline)


OutputView.TilePipelineType = OutputTilePipeline  # upstream's name for the type that a ``pipeline_ptr`` points to
EpilogueKContext.OutputPipelineType = OutputTilePipeline
