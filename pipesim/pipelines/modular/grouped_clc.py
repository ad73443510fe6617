"""The software CLC of the grouped block-scaled kernel on 2 SMs: the same barriers, answers computed by each role.

Upstream: ``linalg/matmul/gpu/sm100_structured/grouped_block_scaled/grouped_tile_scheduler.mojo``. The scheduler writes
each next tile into CTA 0's answer slot and arrives on ``full`` of both CTAs; no agent reads the slot, because the other
CTA cannot: every warp computes the same next tile. Only the MMA warps use the barriers, to take each tile together.

There is no throttle, and the fetch is **not** deferred: ``__next__`` fetches the next tile before it returns this one.

A hazard that the source implies (not confirmed on a chip): :meth:`GroupedCLCSchedulerIterator.drain` waits for parity 0
of every used stage, which is right if none was used twice. A stage that was used twice passes while only its first use
is over, so that the drain waits for nothing, and never again once its second is. With 2 stages and 5 tiles it always
hangs.
"""

from pipesim.lang.author import author_error
from pipesim.lang.recorder import recorder
from pipesim.lang.warp import Warp
from pipesim.model.ops import Fence
from pipesim.pipelines.common.register_value import make_producer_start_state
from pipesim.pipelines.modular.clc import ClcBarrierCounts, ClcPipelineStorage, TileWalk, WorkInfo


def grouped_clc_barrier_counts(mma_threads: int = 32, cta_group: int = 2) -> ClcBarrierCounts:
    """Only the MMA warps of both CTAs arrive on CTA 0's ``empty``. The throttle is initialised and not used."""
    return ClcBarrierCounts(1, mma_threads * cta_group, 32, 32)


class GroupedWorkIterator(TileWalk):
    """What every warp of the kernel on one SM iterates over: it computes its next tile itself, and waits for nothing.

    ``tiles`` is how many this CTA gets.
    """

    def __init__(self, w: Warp, tiles: int, num_stages: int = 0) -> None:
        super().__init__(w, num_stages, tiles, "tiles")

    def __next__(self) -> WorkInfo:
        self.mark()
        if not self.work_info.is_valid():
            raise StopIteration
        current = self.work_info
        self._fetch()
        self._advance()
        return current

    def _fetch(self) -> None:
        """What the iteration waits for before it continues."""

    def _advance(self) -> None:
        self.work_info = WorkInfo(self.work_info.index + 1, self.work_info.index + 1 < self.tiles)


class _GroupedIterator(GroupedWorkIterator):
    """The linear iteration over the tiles that both iterators of the kernel on 2 SMs make."""

    def __init__(self, w: Warp, storage: ClcPipelineStorage, tiles: int) -> None:
        if tiles < 0 or storage.response is None:
            raise author_error(
                f"{recorder().who}: {tiles} tiles from a software CLC of {storage.num_stages} stages",
                correction="give 0 tiles or more, and at least 1 stage",
            )
        super().__init__(w, tiles, storage.num_stages)
        self.full_mbar = storage.full
        self.empty_mbar = storage.empty
        self.clc_response = storage.response
        self.num_stages = storage.num_stages


class GroupedCLCWorkIterator(_GroupedIterator):
    """What a role warp iterates over. Only with ``use_clc_fetch``, in the MMA warps, does it touch a barrier."""

    def __init__(
        self,
        w: Warp,
        storage: ClcPipelineStorage,
        tiles: int,
        use_clc_fetch: bool = False,  # noqa: FBT001, FBT002  # upstream's signature
    ) -> None:
        super().__init__(w, storage, tiles)
        self.use_clc_fetch = use_clc_fetch

    def _fetch(self) -> None:
        if self.use_clc_fetch:
            stage = self.consumer_state.index()
            self.full_mbar[stage].wait(self.consumer_state.phase())
            self.w.fence(Fence.PROXY_ASYNC)
            self.empty_mbar[stage].arrive_cluster(0)
            self.consumer_state.step()


class GroupedCLCSchedulerIterator(_GroupedIterator):
    """The scheduler warp's, in CTA 0: it iterates over the tiles without waiting, and announces each next one."""

    def __init__(self, w: Warp, storage: ClcPipelineStorage, tiles: int, cta_group: int = 2) -> None:
        super().__init__(w, storage, tiles)
        self.cta_group = cta_group
        self.producer_state = make_producer_start_state(storage.num_stages)
        self.signal_count = 0

    def signal_and_advance(self) -> None:
        """Announce the next tile, also when there is none: wait for the stage (not on its first use), write, arrive."""
        stage = self.producer_state.index()
        if self.signal_count >= self.num_stages:
            self.empty_mbar[stage].wait(self.producer_state.phase())
        with self.w.elect_one():
            self.w.write(self.clc_response[stage], self.signal_count + 1)
            for cta in range(self.cta_group):
                self.full_mbar[stage].arrive_cluster(cta)
        self.signal_count += 1
        self.producer_state.step()
        self._advance()

    def drain(self) -> None:
        """Wait for parity 0 of every stage that was used: right if none was used twice (see above)."""
        for stage in range(min(self.signal_count, self.num_stages)):
            self.empty_mbar[stage].wait(0)
