"""``StagedPipeline`` and MLA's ``KVPipelineGeneric``: the barriers of K and V tiles.

Upstream: ``nn/attention/gpu/nvidia/sm100/attention_utils.mojo``, and ``mla_decode_utils.mojo`` beside it.

``RolePipeline`` (upstream ``nn/attention/gpu/nvidia/sm100/attention_utils.mojo``).

The hand-overs of flash attention between MMA, softmax and correction: each side of one has an object of its own.
"""

from pipesim.lang.author import author_error
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
            raise author_error(
                f"a role pipeline of {number_of_stages} stages, {producer_sub_stages} and {consumer_sub_stages} "
                f"sub-stages, CTA group {cta_group}",
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


@pipeline_struct
class StagedPipeline(RegisterValue):
    """A ring of ``num_kv_stages`` tile slots, each filled in ``num_qk_stages`` slices with a pair of barriers a slice.

    K can arrive in slices of the depth, so that the MMA begins with the first; V is one slice. At ``mbar`` lie all
    producer barriers (slice q of slot i at ``num_qk_stages * i + q``), then all consumer barriers in the same order.
    Upstream's comment says pairs of {producer, consumer}; its code does not.

    One object serves one side, and the constructor leaves it at phase 0, the consumer's: a producer sets
    ``pipe.state = PipelineState(num_kv_stages, 0, 1, 0)`` itself (``TMAProducerPipeline`` does). A slice that is not
    named is the **last** one in the methods that wait and release, and slice 0 in those that name a barrier.
    """

    def __init__(self, mbar: MBarType, num_kv_stages: int, num_qk_stages: int = 1, *, name: str = "") -> None:
        super().__init__()
        if num_kv_stages < 1 or num_qk_stages < 1:
            raise author_error(
                f"a staged pipeline of {num_kv_stages} slots in {num_qk_stages} slices",
                correction="both must be at least 1",
            )
        self.num_kv_stages = num_kv_stages
        self.num_qk_stages = num_qk_stages
        self.num_stages = num_kv_stages * num_qk_stages
        self.num_producer = 1  #: arrivals that fill a slice
        self.num_consumer = 1  #: arrivals that free it
        what = f"a staged pipeline of {num_kv_stages} slots in {num_qk_stages} slices"
        mbars = mbars_at(mbar, self.num_mbars(num_kv_stages, num_qk_stages), what)
        self.mbar = mbars[0]
        self._producers, self._consumers = mbars[: self.num_stages], mbars[self.num_stages :]
        name_mbars(self._producers, f"{name}.full" if name else "full")
        name_mbars(self._consumers, f"{name}.empty" if name else "empty", self.mbar)
        self.state = PipelineState(num_kv_stages)

    @staticmethod
    def num_mbars(num_kv_stages: int, num_qk_stages: int = 1) -> int:
        """How many mbarriers it needs: two for each slice of each slot."""
        return 2 * num_qk_stages * num_kv_stages

    def init(self) -> None:
        """Initialise every barrier with the count of its side: 1, unless a subclass counts otherwise. One thread.

        Upstream's ``StagedPipeline`` leaves this to ``FA4MiscMBars``; its ``KVPipelineGeneric`` has it.
        """
        for mbar in self._producers:
            mbar.init(self.num_producer)
        for mbar in self._consumers:
            mbar.init(self.num_consumer)

    # barriers

    def producer_mbar(self, qk_stage: int = 0) -> SharedMemBarrier:
        """What says that a slice of the current slot is filled. Slice **0** unless named."""
        self._mine()
        return self._producers[self._stage_index(qk_stage, self.state.index())]

    def consumer_mbar(self, qk_stage: int = 0, idx: int | None = None) -> SharedMemBarrier:
        """What says that a slice of slot ``idx`` (the current one unless given) is free. Slice **0** unless named."""
        self._mine()
        return self._consumers[self._stage_index(qk_stage, self.state.index() if idx is None else idx)]

    # waits

    def producer_acquire(self, qk_stage: int | None = None) -> None:
        """Called by the producer: wait until a slice, the last unless named, of the current slot is free. No step."""
        self.consumer_mbar(self._or_last(qk_stage)).wait(self.state.phase())

    def consumer_wait(self, qk_stage: int | None = None) -> None:
        """Called by the consumer: wait until a slice, the last unless named, of the slot is filled. No step."""
        self.producer_mbar(self._or_last(qk_stage)).wait(self.state.phase())

    def _or_last(self, qk_stage: int | None) -> int:
        return self.num_qk_stages - 1 if qk_stage is None else qk_stage

    def _stage_index(self, qk_stage: int, idx: int) -> int:
        slot = require_within("slot", idx, self.num_kv_stages)
        return self.num_qk_stages * slot + require_within("slice", qk_stage, self.num_qk_stages)


@pipeline_struct
class KVPipelineGeneric(StagedPipeline):
    """MLA decode's :class:`StagedPipeline`: ``num_producer`` arrivals fill a slice, ``num_consumer`` free it."""

    def __init__(
        self,
        mbar: MBarType,
        num_kv_stages: int,
        num_qk_stages: int,
        num_producer: int,
        num_consumer: int,
        *,
        name: str = "",
    ) -> None:
        super().__init__(mbar, num_kv_stages, num_qk_stages, name=name)
        self.num_producer = num_producer
        self.num_consumer = num_consumer
