"""``OutputTilePipeline``: accumulators in tensor memory, from the MMA warp to the epilogue warps.

Upstream: ``linalg/matmul/gpu/sm100_structured/structured_kernels/`` (``tile_pipeline.mojo``, ``tmem.mojo`` and, for
``AccumBarrier``, ``epilogue_components.mojo``). ``full`` completes by a commit of the MMAs; ``empty`` by
``AccumBarrier.arrive`` of every epilogue thread, never by giving a stage back.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.errors import HandleError
from pipesim.lang.author import author_error, author_line
from pipesim.lang.intrinsics import elect, mma_arrive, mma_arrive_multicast, predicated, umma_arrive_leader_cta
from pipesim.lang.protocol import Protocol
from pipesim.lang.recorder import recorder
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import Slot, TileArray
from pipesim.model.ops import Space
from pipesim.pipelines.common.linear import Linear, RingSide, StageContext
from pipesim.pipelines.common.register_value import MBarType, init_barriers, pipeline_struct, require_barriers
from pipesim.pipelines.modular.producer_consumer import ProducerConsumerPipeline

TMEM_COLUMNS = 512  #: of an SM
TMEM_COLUMN_BYTES = 128 * 4  #: of one column: 128 lanes of 4 bytes


@dataclass(frozen=True)
class TmemAllocation:
    """Accumulator tiles in tensor memory, the first of them at column ``addr``. ``tiles`` is of ``Protocol.tmem``."""

    tiles: TileArray
    addr: int = 0

    def __post_init__(self) -> None:
        if self.tiles.space is not Space.TENSOR:
            raise author_error(
                f"{self.tiles.name} is not in tensor memory",
                correction="make it with Protocol.tmem(name, slots, nbytes)",
            )


@dataclass(frozen=True)
class TmemStage:
    """One stage of an allocation."""

    tmem: TmemAllocation
    index: int

    def tile(self) -> Slot:
        """The tile of the accumulator, as MMAs write it and the epilogue reads it."""
        return self.tmem.tiles[self.index]


class AccumBarrier:
    """The arrive on ``empty`` that the tile writer makes right after the last load of a tile from tensor memory."""

    @staticmethod
    def arrive(pipeline: ProducerConsumerPipeline, stage: int, cta_group: int) -> None:
        """**Each executing lane** arrives on ``empty[stage]``: its own, or for two SMs the leader CTA's."""
        if cta_group == 1:
            pipeline.consumer_mbar(stage).arrive()
        else:
            umma_arrive_leader_cta(pipeline.consumer_mbar(stage))


class OutputStage(Linear):
    """One acquired accumulator stage: its index, its tensor memory, and a **copy** of the pipeline, as upstream's.

    Upstream's is a plain value; here one that is never given back is an error. The tile writer hands :attr:`pipeline`
    and :attr:`index` to ``AccumBarrier.arrive``.
    """

    def __init__(self, what: str, side: RingSide, tmem: TmemStage, pipeline: ProducerConsumerPipeline) -> None:
        super().__init__(f"{what} stage {side.stage}")
        self._index = side.stage
        self._tmem = tmem
        self._pipeline = pipeline
        side.hold(self)

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


@pipeline_struct
class OutputTilePipeline:
    """A ring of ``num_stages`` accumulators, ``stage_stride_cols`` columns apart.

    ``cta_group`` is 1, or 2 where the two CTAs of a pair multiply together: then the leader's MMA warp commits to
    ``full`` of every CTA of ``mma_complete_mask`` (itself and its peer), and every epilogue thread of both arrives on
    ``empty`` of the leader. ``barriers`` are a :meth:`BarrierArray`, or a pointer into a larger array (``b[2]``).
    """

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
            raise author_error(
                f"{tiles.name} has {len(tiles)} tiles of {tiles.nbytes:,} bytes for {self.num_stages} stages of "
                f"{stride} columns",
                cause=f"every stage is one tile, and a column of tensor memory has {TMEM_COLUMN_BYTES} bytes",
            )
        if self.tmem.addr < 0 or self.tmem.addr + self.num_stages * stride > TMEM_COLUMNS:
            raise author_error(
                f"{self.num_stages} stages of {stride} columns from column {self.tmem.addr} on",
                cause=f"tensor memory has {TMEM_COLUMNS} columns",
                correction=f"use at most {TMEM_COLUMNS} / num_stages columns a stage",
            )
        if self.cta_group not in (1, 2) or recorder().tables.ctas % self.cta_group:
            raise author_error(
                f"a group of {self.cta_group} CTAs in a cluster of {recorder().tables.ctas}",
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

    # the four calls that everything else wraps

    def acquire_for_mma(self) -> OutputStage:
        """Called by the MMA warp: wait until the current stage is empty."""
        return self._acquire_stage("MMA", self.pipeline._producer())  # noqa: SLF001  # pipeline and ring are one unit

    def release_from_mma(self, stage: OutputStage) -> None:
        """One elected lane commits to ``full`` of ``stage`` (in each CTA of the mask, for two SMs); all lanes step."""
        stage.require_live("release_from_mma()")
        side = self.pipeline._producer()  # noqa: SLF001  # pipeline and ring are one unit
        if stage is not side.handle:
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
        side.release()

    def acquire_for_epilogue(self) -> OutputStage:
        """Called by an epilogue warp: wait until the MMAs of the current stage have finished."""
        return self._acquire_stage("epilogue", self.pipeline._consumer())  # noqa: SLF001  # pipeline and ring are one unit

    def release_from_epilogue(self) -> None:
        """Step. Signals nothing, although the public page says so: ``AccumBarrier.arrive`` frees the stage."""
        side = self.pipeline._consumer()  # noqa: SLF001  # pipeline and ring are one unit
        if isinstance(side.handle, OutputStage):
            side.handle.consume("release_from_epilogue()")
        else:
            side.require_no_step("release_from_epilogue()")
        side.release()

    def _acquire_stage(self, what: str, side: RingSide) -> OutputStage:
        side.require_free()
        side.wait()
        return OutputStage(what, side, TmemStage(self.tmem, side.stage), self.pipeline._fork())  # noqa: SLF001  # as above

    # contexts, and the views of one K iteration

    def producer(self) -> OutputProducer:
        """``with output.producer() as stage``: once for each output tile, in the MMA warp."""
        return OutputProducer(self.acquire_for_mma, self.release_from_mma)

    def consumer(self) -> OutputConsumer:
        """``with output.consumer() as stage``: once for each output tile, in an epilogue warp."""
        return OutputConsumer(self.acquire_for_epilogue, lambda _: self.release_from_epilogue())

    def per_k(self) -> OutputKPipeline:
        """The view that passes an accumulator on after each K iteration, not after each tile (blockwise FP8)."""
        return OutputKPipeline(self)

    def per_k_epilogue(self, input_pipeline: ProducerConsumerPipeline) -> EpilogueKContext:
        """The epilogue's view of one K iteration of this pipeline and of the one that brings the scales of A."""
        return EpilogueKContext(self, input_pipeline)


class OutputProducer(StageContext[OutputStage]):
    """``with output.producer() as stage``: wait for a free accumulator; leaving commits to ``full`` and steps."""


class OutputConsumer(StageContext[OutputStage]):
    """``with output.consumer() as stage``: wait for a finished accumulator; leaving only steps."""


class MmaKStage(OutputProducer):
    """The MMA warp's K iteration: wait for a free accumulator; leaving commits to ``full`` and steps."""


class OutputKPipeline:
    """The view of an output pipeline that signals after each K iteration, not once for each tile."""

    def __init__(self, pipeline_ptr: OutputTilePipeline) -> None:
        self.pipeline_ptr = pipeline_ptr

    def produce(self) -> MmaKStage:
        """``with output.per_k().produce() as stage``, in the MMA warp."""
        return MmaKStage(self.pipeline_ptr.acquire_for_mma, self.pipeline_ptr.release_from_mma)


@dataclass(frozen=True)
class EpilogueKStage:
    """What an epilogue warp holds for one K iteration: the accumulator, and the input stage with the scales of A."""

    output_stage: OutputStage
    input_stage_index: int
    input_pipeline: ProducerConsumerPipeline  #: a copy, as upstream's

    def arrive_input(self) -> None:
        """Each executing lane arrives on ``empty`` of the input stage. Upstream: lanes below the cluster's size."""
        self.input_pipeline.consumer_mbar(self.input_stage_index).arrive()


class EpilogueKContext(StageContext[EpilogueKStage]):
    """An epilogue warp's K iteration over both pipelines.

    Entering waits for the accumulator **only**: the MMA that made it has waited for the input stage. Leaving steps the
    input without a signal, arrives on ``empty`` of the output in each lane, and steps the output. What frees the input
    stage is ``arrive_input()`` inside.
    """

    def __init__(self, output_pipeline_ptr: OutputTilePipeline, input_pipeline_ptr: ProducerConsumerPipeline) -> None:
        super().__init__(self._acquire_both, self._give_both_back)
        self.output_pipeline_ptr = output_pipeline_ptr
        self.input_pipeline_ptr = input_pipeline_ptr

    def _acquire_both(self) -> EpilogueKStage:
        source = self.input_pipeline_ptr
        return EpilogueKStage(self.output_pipeline_ptr.acquire_for_epilogue(), source.consumer_stage(), source.copy())

    def _give_both_back(self, stage: EpilogueKStage) -> None:
        output = self.output_pipeline_ptr
        self.input_pipeline_ptr.consumer_step()
        AccumBarrier.arrive(output.pipeline, stage.output_stage.index, output.cta_group)
        output.release_from_epilogue()
