"""CUTLASS's pipelines of threads: ``PipelineTransactionAsync`` and ``OrderedSequenceBarrier``.

Both are in ``include/cutlass/pipeline/sm90_pipeline.hpp``.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.errors import ProtocolError
from pipesim.lang.author import author_line
from pipesim.lang.recorder import recorder
from pipesim.lang.shared_mem_barrier import Label, SharedMemBarrier
from pipesim.pipelines.common.pipeline_state import PipelineState
from pipesim.pipelines.common.register_value import MBarType, RegisterValue, mbars_at, pipeline_struct
from pipesim.pipelines.cutlass.base import CutlassPipeline, init_stages


@dataclass(frozen=True)
class AsyncParams:
    """``PipelineAsync::Params``: threads that arrive on each side. ``dst_blockid`` is -1 for the executing CTA."""

    producer_arv_count: int = 1
    consumer_arv_count: int = 1
    dst_blockid: int = -1
    transaction_bytes: int = 0  #: of ``PipelineTransactionAsync`` only

    def destination(self) -> int:
        """The CTA whose ``empty`` the consumers arrive on."""
        return self.dst_blockid if self.dst_blockid >= 0 else recorder().cta


@pipeline_struct
class PipelineTransactionAsync(CutlassPipeline):
    """Producers that announce bytes and arrive, in two calls. Unlike the TMA pipeline's, the acquire announces none."""

    def __init__(self, storage: MBarType, num_stages: int, params: AsyncParams) -> None:
        super().__init__(storage, num_stages)
        self.params = params

    @staticmethod
    def init_barriers(storage: MBarType, num_stages: int, params: AsyncParams) -> None:
        """``full``: ``producer_arv_count``; ``empty``: ``consumer_arv_count``."""
        init_stages(storage, num_stages, params.producer_arv_count, params.consumer_arv_count)

    def producer_expect_transaction(self, state: PipelineState) -> None:
        """Expect ``transaction_bytes`` more on ``full``, once for each executing lane: one lane must call it."""
        self._mine()
        self.full[state.index()].expect_tx(self.params.transaction_bytes)

    def producer_commit(self, state: PipelineState) -> None:
        """Arrive on ``full`` of the CTA ``dst_blockid``."""
        self._mine()
        self.full[state.index()].arrive_cluster(self.params.destination())

    def consumer_release(self, state: PipelineState) -> None:
        """Arrive on ``empty`` of the CTA ``dst_blockid``."""
        self._mine()
        self.empty[state.index()].arrive_cluster(self.params.destination())


@pipeline_struct
class OrderedSequenceBarrier(RegisterValue):
    """Lets ``length`` groups run each of ``depth`` stages one after the other: group g unlocks group g + 1.

    Barrier (d, g), at ``storage[d * length + g]``, counts ``group_size`` and unlocks stage d for group g. Group 0
    starts at phase 1, so it runs first; the others at phase 0. After the last group comes group 0 with its next lap.
    """

    def __init__(self, storage: MBarType, depth: int, length: int, group_id: int) -> None:
        barriers = _sequence(storage, depth, length)
        if not 0 <= group_id < length:
            raise ProtocolError(
                f"group {group_id} in a sequence of {length}", place=author_line(), correction=f"use 0 to {length - 1}"
            )
        super().__init__()
        self.depth = depth
        self.length = length
        self.group_id = group_id
        self.barriers = barriers
        first = barriers[0].index
        name = barriers[0].storage.name + (f"[{first}]" if first else "")
        for at, mbar in enumerate(barriers):
            mbar.storage.labels[mbar.index] = Label(f"{name}.group{at % length}", at // length, first)
        self.stage = PipelineState(depth, 0, int(group_id == 0), 0)

    @staticmethod
    def init_barriers(storage: MBarType, depth: int, length: int, group_size: int) -> None:
        """Every barrier counts the arriving threads of one group. (CUTLASS has this in its constructor only.)"""
        for mbar in _sequence(storage, depth, length):
            mbar.init(group_size)

    def wait(self) -> None:
        """Wait until this group may run the current stage. Does not step."""
        self._mine()
        self._barrier(self.group_id).wait(self.stage.phase())

    def arrive(self) -> None:
        """Unlock the current stage for the next group, each executing lane once; then step."""
        self._mine()
        self._barrier((self.group_id + 1) % self.length).arrive()
        self.stage.step()

    def _barrier(self, group: int) -> SharedMemBarrier:
        return self.barriers[self.stage.index() * self.length + group]


def _sequence(storage: MBarType, depth: int, length: int) -> tuple[SharedMemBarrier, ...]:
    what = f"a sequence of {length} groups and {depth} stages"
    if depth < 1 or length < 1:
        raise ProtocolError(what, place=author_line(), correction="use at least 1 of each")
    return mbars_at(storage, depth * length, what)
