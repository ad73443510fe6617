"""``AccumBarrier``: how the epilogue frees an accumulator stage (upstream ``epilogue_components.mojo``)."""

from __future__ import annotations

from pipesim.lang.tcgen05 import umma_arrive_leader_cta
from pipesim.pipelines.modular.producer_consumer import ProducerConsumerPipeline


class AccumBarrier:
    """The arrive on ``empty`` that the tile writer makes right after the last load of a tile from tensor memory."""

    @staticmethod
    def arrive(pipeline: ProducerConsumerPipeline, stage: int, cta_group: int) -> None:
        """**Each executing lane** arrives on ``empty[stage]``: its own, or for two SMs the leader CTA's."""
        if cta_group == 1:
            pipeline.consumer_mbar(stage).arrive()
        else:
            umma_arrive_leader_cta(pipeline.consumer_mbar(stage))
