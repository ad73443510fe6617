"""``RolePipeline`` (upstream ``nn/attention/gpu/nvidia/sm100/attention_utils.mojo``).

The hand-overs of flash attention between MMA, softmax and correction: each side of one has an object of its own.
"""

from __future__ import annotations

from pipesim.errors import ProtocolError
from pipesim.lang.author import author_line
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.pipelines.common.register_value import (
    MBarType,
    PipelineState,
    RegisterValue,
    mbars_at,
    name_mbars,
    pipeline_struct,
    require_within,
)


@pipeline_struct
class RolePipeline(RegisterValue):
    """One side of a ring: a producer starts at phase 1 and acquires and commits, a consumer at 0, waits and releases.

    A stage may have several producer or consumer barriers (sub-stages). Upstream writes ``ProducerPipeline`` and
    ``ConsumerPipeline`` for the two values of ``is_producer``. Nothing stops a role from calling the other side's
    methods, here as upstream.
    """

    def __init__(
        self,
        producer_mbar_base: MBarType,
        consumer_mbar_base: MBarType,
        number_of_stages: int,
        *,
        is_producer: bool = True,
        producer_sub_stages: int = 1,
        consumer_sub_stages: int = 1,
        cta_group: int = 1,
        name: str = "",
    ) -> None:
        super().__init__()
        if min(number_of_stages, producer_sub_stages, consumer_sub_stages) < 1 or cta_group not in (1, 2):
            raise ProtocolError(
                f"a role pipeline of {number_of_stages} stages, {producer_sub_stages} and {consumer_sub_stages} "
                f"sub-stages, CTA group {cta_group}",
                place=author_line(),
                correction="use at least 1 of each; a CTA group is 1 or 2",
            )
        what = f"one side of a pipeline of {number_of_stages} stages"
        producers = mbars_at(producer_mbar_base, number_of_stages * producer_sub_stages, what)
        consumers = mbars_at(consumer_mbar_base, number_of_stages * consumer_sub_stages, what)
        first = min(producers[0], consumers[0], key=lambda mbar: mbar.index)
        name_mbars(producers, f"{name}.full" if name else "full", first)
        name_mbars(consumers, f"{name}.empty" if name else "empty", first)
        self._producers, self._consumers = producers, consumers
        self.producer_mbar_base, self.consumer_mbar_base = producers[0], consumers[0]
        self.num_stages = number_of_stages
        self.is_producer = is_producer
        self.producer_sub_stages = producer_sub_stages
        self.consumer_sub_stages = consumer_sub_stages
        self.cta_group = cta_group  #: of the MMAs that commit_mma waits for; the arrival is one either way
        self.state = PipelineState(number_of_stages, 0, int(is_producer), 0)

    def producer_mbar(self, sub_stage_idx: int = 0) -> SharedMemBarrier:
        """What the producer of the current stage signals."""
        self._mine()
        sub = require_within("producer sub-stage", sub_stage_idx, self.producer_sub_stages)
        return self._producers[self.state.index() * self.producer_sub_stages + sub]

    def consumer_mbar(self, sub_stage_idx: int = 0) -> SharedMemBarrier:
        """What the consumer of the current stage signals."""
        self._mine()
        sub = require_within("consumer sub-stage", sub_stage_idx, self.consumer_sub_stages)
        return self._consumers[self.state.index() * self.consumer_sub_stages + sub]

    # the producer's side

    def acquire(self, sub_stage_idx: int = 0) -> None:
        """Wait until the consumer has given back one sub-stage, the first unless named."""
        self.consumer_mbar(sub_stage_idx).wait(self.state.phase())

    def commit(self) -> None:
        """Arrive on the producer barrier, once for each executing lane, and step."""
        self.producer_mbar().arrive()
        self.state.step()

    # the consumer's side

    def wait(self) -> None:
        """Wait until the producer has filled the current stage."""
        self.producer_mbar().wait(self.state.phase())

    def release(self, sub_stage_idx: int = 0) -> None:
        """Arrive on one consumer barrier, once for each executing lane, and step."""
        self.release_no_step(sub_stage_idx)
        self.state.step()

    def release_no_step(self, sub_stage_idx: int = 0) -> None:
        """Arrive on one consumer barrier, once for each executing lane: all sub-stages but the last go this way."""
        self.consumer_mbar(sub_stage_idx).arrive()

    # both

    def step(self) -> None:
        """Advance to the next stage. No arrive, no wait."""
        self._mine()
        self.state.step()
