"""What CUTLASS's pipelines have in common (``include/cutlass/pipeline/sm90_pipeline.hpp``).

A CUTLASS pipeline has barriers and no counters: every call takes a :class:`PipelineState`, which the caller steps. Its
constructor initialises the barriers; here that is the separate :meth:`init_barriers`, which CUTLASS has too, because
one init runs before the roles. A thread's flags (``is_leader``) are masks of lanes, and a thread's role
(``ThreadCategory``), which only debug builds check, is left out.

Against Modular's names: ``producer_acquire`` is ``wait_consumer``, ``consumer_wait`` is ``wait_producer``.
"""

from dataclasses import dataclass

from pipesim.lang.author import author_error
from pipesim.lang.intrinsics import predicated
from pipesim.lang.recorder import recorder
from pipesim.lang.shared_mem_barrier import Label, SharedMemBarrier, TryResult
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.pipelines.common.register_value import (
    MBarType,
    PipelineState,
    RegisterValue,
    init_barriers,
    mbars_at,
    pipeline_struct,
    ring_at,
)

Token = TryResult | bool  #: a try_wait's result; False is ``BarrierStatus::WaitAgain``, True ``WaitDone``
ClusterShape = tuple[int, int]  #: CTAs along x and along y


class CutlassPipeline(RegisterValue):
    """``full_barrier_[S]`` then ``empty_barrier_[S]`` at ``storage``, and the calls that all pipelines share.

    ``storage`` is an array of mbarriers or a pointer into one (``b[2]``), here and in ``init_barriers``.
    """

    _own = "which lanes lead and signal belongs"

    def __init__(self, storage: MBarType, num_stages: int) -> None:
        super().__init__()
        self.num_stages = num_stages
        self.full, self.empty = ring_at(storage, num_stages)

    # the producer

    def producer_try_acquire(self, state: PipelineState, skip_wait: bool = False) -> Token:  # noqa: FBT001, FBT002  # CUTLASS's signature
        """One try whether the stage is empty, or no try and yes with ``skip_wait``. Hand the token to the acquire."""
        self._mine()
        return True if skip_wait else self.empty[state.index()].try_wait(state.phase())

    def producer_acquire(self, state: PipelineState, barrier_token: Token = False) -> None:  # noqa: FBT002  # CUTLASS's signature
        """Wait until the stage is empty, unless the token says so already."""
        self._mine()
        self.empty[state.index()].wait_if_needed(barrier_token, state.phase())

    def producer_tail(self, state: PipelineState) -> None:
        """Wait until all stages are empty, so that no CTA exits while others signal it. The state stays as it was."""
        self._mine()
        at = state.copy()
        for _ in range(self.num_stages):
            self.empty[at.index()].wait(at.phase())
            at.step()

    def producer_get_barrier(self, state: PipelineState) -> SharedMemBarrier:
        """``full`` of the stage: what a TMA is given."""
        return self.full[state.index()]

    # the consumer

    def consumer_try_wait(self, state: PipelineState, skip_wait: bool = False) -> Token:  # noqa: FBT001, FBT002  # CUTLASS's signature
        """One try (``try_wait``) whether the stage is full, or no try and yes with ``skip_wait``."""
        self._mine()
        return True if skip_wait else self.full[state.index()].try_wait(state.phase())

    def consumer_wait(self, state: PipelineState, barrier_token: Token = False) -> None:  # noqa: FBT002  # CUTLASS's signature
        """Wait until the stage is full, unless the token says so already."""
        self._mine()
        self.full[state.index()].wait_if_needed(barrier_token, state.phase())


def block_id_in_cluster(cluster_shape: ClusterShape) -> tuple[int, int]:
    """Place of the executing CTA in its cluster; ProtocolError if the protocol's cluster has another size."""
    x, y = cluster_shape
    rec = recorder()
    if x * y != rec.tables.ctas:
        raise author_error(
            f"{rec.who}: a cluster shape of {x} x {y} in a cluster of {rec.tables.ctas} CTAs",
            correction="create the protocol with Protocol(name, cluster=x * y)",
        )
    return rec.cta % x, rec.cta // x


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
        init_barriers(storage, params.producer_arv_count, params.consumer_arv_count, num_stages)

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
            raise author_error(f"group {group_id} in a sequence of {length}", correction=f"use 0 to {length - 1}")
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
        raise author_error(what, correction="use at least 1 of each")
    return mbars_at(storage, depth * length, what)


WARP_GROUP = 128
MAX_CLUSTER = 16  #: CTAs over which the arrivals of a warp group are spread


@dataclass(frozen=True)
class TmaParams:
    """``PipelineTmaAsync::Params``. ``is_leader`` is a mask of lanes, ``elect()`` in the producer; 0: no lane."""

    transaction_bytes: int = 0
    is_leader: int = 0
    num_consumers: int = 0
    num_producers: int = 1


@pipeline_struct
class PipelineTmaAsync(CutlassPipeline):
    """TMA producer, consumers that arrive. ``warp`` is needed by consumers in a cluster: it says which lanes signal."""

    def __init__(
        self,
        storage: MBarType,
        num_stages: int,
        params: TmaParams,
        cluster_shape: ClusterShape = (1, 1),
        *,
        warp: Warp | None = None,
    ) -> None:
        super().__init__(storage, num_stages)
        self.params = params
        self._block = block_id_in_cluster(cluster_shape)
        self._shape = cluster_shape
        self._warp = warp

    @staticmethod
    def init_barriers(
        storage: MBarType, num_stages: int, params: TmaParams, cluster_shape: ClusterShape = (1, 1)
    ) -> None:
        """``full``: ``num_producers``. ``empty``: every consumer thread; in a cluster one thread of each warp group of
        every CTA in the same row or column.
        """
        x, y = cluster_shape
        groups = -(-params.num_consumers // WARP_GROUP)
        consumers = params.num_consumers if x * y == 1 else (x + y - 1) * groups
        init_barriers(storage, params.num_producers, consumers, num_stages)

    def producer_acquire(self, state: PipelineState, barrier_token: Token = False) -> None:  # noqa: FBT002  # CUTLASS's signature
        """Wait until the stage is empty, **then the leader arrives on** ``full`` **and expects transaction_bytes**."""
        super().producer_acquire(state, barrier_token)
        with predicated(self.params.is_leader) as leads:
            if leads:
                self.full[state.index()].expect_bytes(self.params.transaction_bytes)

    def consumer_release(self, state: PipelineState) -> None:
        """Give the stage back: every executing lane arrives; in a cluster each signalling lane, on its own CTA.

        A whole warp calls it. In a cluster one lane of one warp signals a CTA for all four warps of the group, so they
        must have finished with the stage together, as they have after waiting for a wgmma.
        """
        self._mine()
        empty = self.empty[state.index()]
        if self._shape == (1, 1):
            empty.arrive_cluster(0)
            return
        for lane, cta in self._signals():
            with predicated(1 << lane) as executes:
                if executes:
                    empty.arrive_cluster(cta)

    def _signals(self) -> list[tuple[int, int]]:
        """(lane, CTA) of this warp's arrivals: those of its lanes' destinations in the same row or column."""
        x, y = self._shape
        column, row = self._block
        return [(lane, cta) for lane, cta in self._spread() if cta < x * y and (cta % x == column or cta // x == row)]

    def _spread(self) -> list[tuple[int, int]]:
        """How CUTLASS deals the 16 possible destinations to the lanes of a warp group, or of a single warp."""
        if self.params.num_consumers == 32:
            return [(2 * cta, cta) for cta in range(MAX_CLUSTER)]
        if self._warp is None or self.params.num_consumers % WARP_GROUP:
            raise author_error(
                f"{recorder().who}: {self.params.num_consumers} consumers release a stage in a cluster"
                + (", and the warp is unknown" if self._warp is None else ""),
                cause="CUTLASS spreads the arrivals over a warp, or over the warps of whole warp groups",
                correction="use 32 consumers or a multiple of 128, and create the pipeline with warp=w",
            )
        row = self._warp.warp % 4
        return [(8 * column, (row ^ column) * 4 + column) for column in range(4)]


@pipeline_struct
class PipelineTmaStore:
    """Bulk stores of one agent: no barrier, only groups of transfers. At most ``num_stages`` of them are unfinished."""

    def __init__(
        self, w: Warp, num_stages: int, unacquired_stages: int | None = None, *, always_wait: bool = False
    ) -> None:
        unacquired = max(num_stages - 1, 0) if unacquired_stages is None else unacquired_stages
        if num_stages < 0 or unacquired < 0:
            raise author_error(
                f"a store pipeline of {num_stages} stages, {unacquired} of them unacquired",
                correction="give 0 stages or more, and at least 0 unacquired",
            )
        self._w = w
        self.num_stages = num_stages
        self.unacquired_stages = unacquired
        self.always_wait = always_wait

    def producer_acquire(self, state: PipelineState) -> None:
        """Wait until at most ``unacquired_stages`` groups are unfinished; not before this many could be."""
        if not self.num_stages:
            raise author_error(
                "producer_acquire of a store pipeline without stages",
                cause="CUTLASS rejects it at compile time",
                correction="give the pipeline a stage",
            )
        if self.always_wait or state.count() > self.unacquired_stages:
            self._w.wait_group(Engine.BULK, self.unacquired_stages)

    def producer_commit(self, state: PipelineState) -> None:  # noqa: ARG002  # CUTLASS's signature
        """Close the group of the stores issued since the last commit."""
        self._w.commit(Engine.BULK)

    def producer_tail(self, state: PipelineState) -> None:  # noqa: ARG002  # CUTLASS's signature
        """Wait for all of them."""
        self._w.wait_group(Engine.BULK, 0)
