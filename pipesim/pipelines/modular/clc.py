"""Cluster launch control: the scheduler warp asks the hardware for tiles and hands the answers to every role.

Upstream: ``linalg/matmul/gpu/sm100_structured/structured_kernels/tile_scheduler.mojo``; ``ClcPipelineStorage`` is in
``structured_kernels/pipeline_storage.mojo``, the counts are in ``structured_kernels/kernel_common.mojo``.

How many tiles a cluster gets is up to the data, so it is a parameter here: tiles 0, 1, … of this cluster, in the order
in which it gets them. There is always one request more than further tiles; its answer says that nothing is left.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, Self

from pipesim.lang.author import author_error
from pipesim.lang.intrinsics import predicated
from pipesim.lang.protocol import Protocol
from pipesim.lang.recorder import recorder
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Fence
from pipesim.pipelines.common.register_value import (
    MBarType,
    PipelineState,
    RegisterValue,
    init_barriers,
    make_producer_start_state,
    mbars_at,
    pipeline_struct,
)
from pipesim.pipelines.modular.producer_consumer import ProducerConsumerPipeline

RESPONSE_BYTES = 16  #: of one answer of ``clusterlaunchcontrol.try_cancel``


class ClcBarrierCounts(NamedTuple):
    """Init counts of the CLC barriers, in upstream's order."""

    clc_producer_arv_count: int
    clc_consumer_arv_count: int
    clc_throttle_producer_arv_count: int
    clc_throttle_consumer_arv_count: int


def compute_clc_barrier_counts(
    scheduler_threads: int = 32,
    tma_load_threads: int = 32,
    mma_threads: int = 32,
    epilogue_threads: int = 128,
    cluster_size: int = 1,
    *,
    epilogue_load_threads: int = 0,
) -> ClcBarrierCounts:
    """Every lane of every role arrives on CTA 0's ``empty``; only CTA 0 has a scheduler. conv2d has a fourth role."""
    workers = tma_load_threads + mma_threads + epilogue_threads + epilogue_load_threads
    return ClcBarrierCounts(1, scheduler_threads + cluster_size * workers, tma_load_threads, scheduler_threads)


class ClcPipelineStorage:
    """The shared memory of the CLC pipeline: ``full[S]``, ``empty[S]``, the throttle pair, a 16-byte answer a stage.

    Made with the protocol, not in a role. 0 stages is the kernel of a single wave: it has none of this. ``full``,
    ``empty`` and ``throttle``: barriers that are there already, each an array or a pointer into one (``b[2]``), of
    S, S and 2 S barriers; what is not given is asked of ``protocol``.
    """

    def __init__(
        self,
        protocol: Protocol,
        num_stages: int,
        name: str = "clc",
        *,
        full: MBarType | None = None,
        empty: MBarType | None = None,
        throttle: MBarType | None = None,
    ) -> None:
        if num_stages < 0:
            raise author_error(f"{name}: {num_stages} CLC stages", correction="give 0 or more")
        self.num_stages = num_stages
        self.full: tuple[SharedMemBarrier, ...] = ()
        self.empty: tuple[SharedMemBarrier, ...] = ()
        self.throttle: MBarType | None = None
        self.response: TileArray | None = None
        if num_stages:
            full, empty = self._sides(protocol, name, full, empty)
            self.full = mbars_at(full, num_stages, f"full of {name}, of {num_stages} stages,")
            self.empty = mbars_at(empty, num_stages, f"empty of {name}, of {num_stages} stages,")
            for group, side in ("full", self.full), ("empty", self.empty):
                ring = min(self.full[0].index, side[0].index)
                side[0].storage.label(side[0].index, num_stages, group, ring=ring)
            self.throttle = throttle or protocol.mbarriers(f"{name}_throttle", 2 * num_stages)
            mbars_at(self.throttle, 2 * num_stages, f"the throttle of {name}, of {num_stages} stages,")
            self.response = protocol.smem(f"{name}_response", num_stages, RESPONSE_BYTES)

    def _sides(
        self, protocol: Protocol, name: str, full: MBarType | None, empty: MBarType | None
    ) -> tuple[MBarType, MBarType]:
        """Where ``full`` and ``empty`` lie: as given, or in an array of their own."""
        if full is None and empty is None:
            barriers = protocol.mbarriers(name, 2 * self.num_stages)
            return barriers[0], barriers[self.num_stages]
        return (
            full or protocol.mbarriers(f"{name}_full", self.num_stages),
            empty or protocol.mbarriers(f"{name}_empty", self.num_stages),
        )

    def init_barriers(self, counts: ClcBarrierCounts) -> None:
        """Initialise all of them. One thread of each CTA calls it."""
        for full, empty in zip(self.full, self.empty, strict=True):
            full.init(counts.clc_producer_arv_count)
            empty.init(counts.clc_consumer_arv_count)
        if self.throttle is not None:
            TileScheduler.init_throttle_barriers(
                self.throttle,
                counts.clc_throttle_producer_arv_count,
                counts.clc_throttle_consumer_arv_count,
                num_stages=self.num_stages,
            )


@dataclass(frozen=True)
class WorkInfo:
    """A tile: its number among those that this cluster gets (upstream: its coordinates), and whether it is one."""

    index: int
    is_valid_tile: bool

    def is_valid(self) -> bool:
        """False for what follows the last tile."""
        return self.is_valid_tile


class TileWalk(RegisterValue, ABC):
    """The base of the work iterators: the current tile, a consumer state, and a loop over ``tiles`` that leaves marks.

    ``for`` iterates over a copy, as upstream's does: what ``__next__`` advances, it advances there.
    """

    def __init__(self, w: Warp, num_stages: int, tiles: int, parameter: str) -> None:
        super().__init__()
        self.w = w
        self.tiles = tiles
        self.parameter = parameter
        self.work_info = WorkInfo(0, is_valid_tile=tiles > 0)
        self.consumer_state = PipelineState(num_stages)
        self._trips: Iterator[int] | None = None

    def __iter__(self) -> Self:
        return self.copy()

    @abstractmethod
    def __next__(self) -> WorkInfo:
        """The next tile; StopIteration after the last."""

    def copy(self) -> Self:
        """A copy with counters of its own. One that has begun cannot be copied: its loop marks are one loop's."""
        if self._trips is not None:
            raise author_error(
                "a work iterator was copied after its first tile",
                cause="`for` copies the iterator that it is given",
                correction="give `for` a fresh one",
            )
        return super().copy()

    def mark(self) -> None:
        """The loop mark that belongs before the next tile, or after the last one."""
        if self._trips is None:
            self._trips = self.w.loop(self.tiles, self.parameter)
        next(self._trips, None)


@pipeline_struct
class TileScheduler(RegisterValue):
    """One agent's view of the CLC pipeline: made in each role, as ``TileScheduler(w, storage, tiles)``.

    ``tiles`` is how many tiles the cluster gets, the initial one included (0: it lies outside the problem, and every
    role ends immediately); ``parameter`` names it in the loop marks. Without stages there is the initial tile only.
    """

    def __init__(self, w: Warp, storage: ClcPipelineStorage, tiles: int, parameter: str = "tiles") -> None:
        if tiles < 0 or (tiles > 1 and not storage.num_stages):
            raise author_error(
                f"{recorder().who}: {tiles} tiles from a scheduler of {storage.num_stages} stages",
                cause="without CLC stages there is the initial tile, and no other" if tiles > 1 else "",
                correction="give the ClcPipelineStorage a stage, or one tile" if tiles > 1 else "give 0 tiles or more",
            )
        super().__init__()
        self.w = w
        self.full_mbar = storage.full
        self.empty_mbar = storage.empty
        self.clc_response = storage.response
        self.tiles = tiles
        self.parameter = parameter
        self.num_stages = storage.num_stages
        self.cluster_size = recorder().tables.ctas
        self.throttle_pipeline = (
            None if storage.throttle is None else ProducerConsumerPipeline(storage.throttle, self.num_stages)
        )

    @staticmethod
    def init_throttle_barriers(
        storage: MBarType, producer_arv_count: int, consumer_arv_count: int, *, num_stages: int | None = None
    ) -> None:
        """Initialise the throttle pair: its producer is the load warp of CTA 0, its consumer the scheduler.

        ``num_stages`` is needed where ``storage`` is a pointer; an array is the barriers of one pipeline.
        """
        init_barriers(storage, producer_arv_count, consumer_arv_count, num_stages)

    def initial_work_info(self) -> WorkInfo:
        """The tile that the launch gave to this cluster."""
        return WorkInfo(0, is_valid_tile=self.tiles > 0)

    def work_iterator(self) -> "WorkIterator":
        """What a role warp iterates over."""
        return WorkIterator(self, self.initial_work_info())

    def scheduler_iterator(self) -> "SchedulerWorkIterator":
        """What the scheduler warp, which is in the first CTA of the cluster only, iterates over."""
        return SchedulerWorkIterator(self, self.initial_work_info())

    def fetch_next_work(self, work_info: WorkInfo, consumer_state: PipelineState) -> WorkInfo:
        """Wait for an answer, read it, ``fence.proxy.async``; then **every lane** arrives on CTA 0's ``empty``.

        Does not step. Without stages nothing follows the initial tile, and nothing is waited for.
        """
        following = WorkInfo(work_info.index + 1, work_info.index + 1 < self.tiles)
        if self.clc_response is not None:
            stage = consumer_state.index()
            self.full_mbar[stage].wait(consumer_state.phase())
            self.w.read(self.clc_response[stage], following.index)
            self.w.fence(Fence.PROXY_ASYNC)
            self.empty_mbar[stage].arrive_cluster(0)
        return following

    def advance_to_next_work(self, clc_state: PipelineState) -> PipelineState:
        """One request: wait for the stage, expect 16 bytes in every CTA (lane = CTA), one lane asks; step.

        The answer lands in every CTA of the cluster, as a multicast copy does. Its item is the number of the tile it
        names, or ``tiles`` if nothing is left.
        """
        if self.clc_response is not None:
            stage = clc_state.index()
            full = self.full_mbar[stage]
            self.empty_mbar[stage].wait(clc_state.phase())
            for cta in range(self.cluster_size):
                with predicated(1 << cta) as executes:
                    full.arrive_and_expect_bytes(RESPONSE_BYTES, cta, executes)
            all_ctas = (1 << self.cluster_size) - 1 if self.cluster_size > 1 else 0
            with self.w.elect_one():
                named = min(clc_state.count() + 1, self.tiles)
                self.w.tma_load(self.clc_response[stage], full, named, cta_mask=all_ctas)
        return clc_state.next()

    def throttle_signal(self, is_first_cta_in_cluster: bool) -> None:  # noqa: FBT001  # upstream's signature
        """Called by the load warp once a tile, before its loads: CTA 0's lets the scheduler ask for one tile more."""
        if is_first_cta_in_cluster and self.throttle_pipeline is not None:
            self.throttle_pipeline.producer_signal_and_step()


class WorkIterator(TileWalk):
    """``for current in scheduler.work_iterator()``: the initial tile first, then what the scheduler hands out.

    The fetch of the next tile is **deferred** to the next ``__next__``, so that the load warp signals the throttle
    between two fetches. Fetching first deadlocks: the load warp waits for an answer, the scheduler for its signal.
    """

    def __init__(self, scheduler: TileScheduler, work_info: WorkInfo) -> None:
        super().__init__(scheduler.w, scheduler.num_stages, scheduler.tiles, scheduler.parameter)
        self.scheduler = scheduler.copy()
        self.work_info = work_info
        self.needs_fetch = False

    def __next__(self) -> WorkInfo:
        if self.needs_fetch:
            self.work_info = self.scheduler.fetch_next_work(self.work_info, self.consumer_state)
            self.consumer_state.step()
        self.mark()
        if not self.work_info.is_valid():
            raise StopIteration
        self.needs_fetch = True
        return self.work_info


class SchedulerWorkIterator(WorkIterator):
    """The scheduler's: it consumes answers as every role does, and makes the requests.

    ``for _ in sched_iter`` advances the consumer state in the copy; :meth:`signal_and_advance` and :meth:`drain` act on
    the object itself, which holds the producer state and the throttle.
    """

    def __init__(self, scheduler: TileScheduler, work_info: WorkInfo) -> None:
        super().__init__(scheduler, work_info)
        self.producer_state = make_producer_start_state(scheduler.num_stages)
        self.throttle_pipeline = self.scheduler.throttle_pipeline

    def signal_and_advance(self) -> None:
        """Take one signal of the load warp (all 32 lanes), then make one request."""
        if self.throttle_pipeline is not None:
            self.throttle_pipeline.consumer_signal_and_step()
        self.producer_state = self.scheduler.advance_to_next_work(self.producer_state)

    def drain(self) -> None:
        """Wait until every role has taken every answer, so that CTA 0 does not exit while others arrive on it.

        Afterwards the state is dead: another request, or another drain, waits indefinitely.
        """
        for _ in range(self.scheduler.num_stages):
            self.scheduler.empty_mbar[self.producer_state.index()].wait(self.producer_state.phase())
            self.producer_state.step()
