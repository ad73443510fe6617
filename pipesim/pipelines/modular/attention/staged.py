"""``StagedPipeline`` and MLA's ``KVPipelineGeneric``: the barriers of K and V tiles.

Upstream: ``nn/attention/gpu/nvidia/sm100/attention_utils.mojo``, and ``mla_decode_utils.mojo`` beside it.
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
            raise ProtocolError(
                f"a staged pipeline of {num_kv_stages} slots in {num_qk_stages} slices",
                place=author_line(),
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
