"""Accumulators handed over after every K iteration, for blockwise FP8 (upstream ``tile_pipeline.mojo``)."""

from __future__ import annotations

from dataclasses import dataclass
from types import TracebackType
from typing import Any, ClassVar

from pipesim.pipelines.modular.accum_barrier import AccumBarrier
from pipesim.pipelines.modular.output_stage import AccumulatorRing, OutputProducer, OutputStage, OutputView
from pipesim.pipelines.modular.producer_consumer import ProducerConsumerPipeline


class MmaKStage(OutputProducer):
    """The MMA warp's K iteration: wait for a free accumulator; leaving commits to ``full`` and steps."""


class PerKConsumerStage(OutputView):
    """An epilogue warp's K iteration: wait for the accumulator; leaving arrives on ``empty`` in each lane and steps."""

    def __init__(self, pipeline_ptr: AccumulatorRing) -> None:
        self.pipeline_ptr = pipeline_ptr
        self._stage: OutputStage | None = None

    def __enter__(self) -> OutputStage:
        self._stage = self.pipeline_ptr.acquire_for_epilogue()
        return self._stage

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._stage is not None:
            output = self.pipeline_ptr
            AccumBarrier.arrive(output.pipeline, self._stage.index, output.cta_group)
            output.release_from_epilogue()


class OutputKPipeline(OutputView):
    """The view of an output pipeline that signals after each K iteration, not once for each tile."""

    def __init__(self, pipeline_ptr: AccumulatorRing) -> None:
        self.pipeline_ptr = pipeline_ptr

    def produce(self) -> MmaKStage:
        """``with output.per_k().produce() as stage``, in the MMA warp."""
        return MmaKStage(self.pipeline_ptr)

    def consume(self) -> PerKConsumerStage:
        """``with output.per_k().consume() as stage``, in an epilogue warp."""
        return PerKConsumerStage(self.pipeline_ptr)


@dataclass(frozen=True)
class EpilogueKStage:
    """What an epilogue warp holds for one K iteration: the accumulator, and the input stage with the scales of A."""

    OutputStageType = OutputStage
    InputPipelineType = ProducerConsumerPipeline

    output_stage: OutputStage
    input_stage_index: int
    input_pipeline: ProducerConsumerPipeline  #: a copy, as upstream's

    def arrive_input(self) -> None:
        """Each executing lane arrives on ``empty`` of the input stage. Upstream: lanes below the cluster's size."""
        self.input_pipeline.consumer_mbar(self.input_stage_index).arrive()


class EpilogueKContext:
    """An epilogue warp's K iteration over both pipelines.

    Entering waits for the accumulator **only**: the MMA that made it has waited for the input stage. Leaving steps the
    input without a signal, arrives on ``empty`` of the output in each lane, and steps the output. What frees the input
    stage is ``arrive_input()`` inside.
    """

    OutputPipelineType: ClassVar[type[Any]]  #: ``OutputTilePipeline``, which is defined with it and sets it
    OutputStageType = OutputStage
    InputPipelineType = ProducerConsumerPipeline
    CombinedStageType = EpilogueKStage  #: what entering returns

    def __init__(self, output_pipeline_ptr: AccumulatorRing, input_pipeline_ptr: ProducerConsumerPipeline) -> None:
        self.output_pipeline_ptr = output_pipeline_ptr
        self.input_pipeline_ptr = input_pipeline_ptr
        self._stage: OutputStage | None = None

    def __enter__(self) -> EpilogueKStage:
        self._stage = self.output_pipeline_ptr.acquire_for_epilogue()
        source = self.input_pipeline_ptr
        return EpilogueKStage(self._stage, source.consumer_stage(), source.copy())

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None and self._stage is not None:
            output = self.output_pipeline_ptr
            self.input_pipeline_ptr.consumer_step()
            AccumBarrier.arrive(output.pipeline, self._stage.index, output.cta_group)
            output.release_from_epilogue()
