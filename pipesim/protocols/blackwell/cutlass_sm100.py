"""CUTLASS's warp-specialised GEMM of Blackwell: MMA, scheduler, main load, epilogue load and epilogue.

Upstream: ``include/cutlass/gemm/kernel/sm100_gemm_tma_warpspecialized.hpp``, with the main loop of
``include/cutlass/gemm/collective/sm100_mma_warpspecialized.hpp``. The scheduler and its throttle are Modular's
(:mod:`pipesim.pipelines.modular.clc`) to the count. What differs: the main-load warp asks for its next tile after its
loads, every other role **before** its work; the epilogue warps are held back until the other warps are ready; the
accumulators are drained by their producer, so tensor memory needs a barrier between the CTAs of a pair only.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pipesim.lang.intrinsics import elect
from pipesim.lang.protocol import Protocol
from pipesim.lang.recorder import recorder
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.pipelines import (
    AsyncParams,
    ClcPipelineStorage,
    PipelineState,
    PipelineTmaUmmaAsync,
    PipelineUmmaAsync,
    TileScheduler,
    TmaParams,
    WorkInfo,
    compute_clc_barrier_counts,
    make_producer_start_state,
)
from pipesim.pipelines.cutlass.base import ClusterShape
from pipesim.protocols.blackwell.sm100 import (
    BF16,
    EPILOGUE_THREADS,
    EPILOGUE_WARPS,
    FP32,
    ROWS,
    lanes,
    mma_cycles,
    require_accumulators,
)
from pipesim.protocols.cutlass_epilogue import WARP, CutlassEpilogue, EpilogueWarp
from pipesim.protocols.limits import ranges

_TMEM_ALLOC = 6  #: ``ReservedNamedBarriers::TmemAllocBarrier``


@ranges(tiles=(1, 1 << 16))  # every role runs its first tile before it asks
def cutlass_sm100(
    tiles: int = 3,
    k_tiles: int = 8,
    stages: int = 4,
    residual: int = 0,
    cta_group: int = 1,
    accumulators: int = 2,
    clc_stages: int = 2,
    block_n: int = 128,
    block_k: int = 64,
    epilogue: int = 150,
) -> Protocol:
    """CUTLASS's GEMM of Blackwell: MMA, scheduler, load, epilogue load and epilogue warps, on one SM or a pair.

    ``tiles`` output tiles of 128 rows (a CTA) by ``block_n`` columns for this cluster of ``cta_group`` CTAs, each of
    ``k_tiles`` steps of ``block_k`` elements of bf16, through ``stages`` tiles of A and of B. ``residual`` 1: C is
    loaded too. ``accumulators``: tiles in tensor memory, all of them 512 columns at most. ``clc_stages``: answers of
    the scheduler under way. ``epilogue``: SM cycles of an epilogue warp per subtile of 32 columns.
    """
    require_accumulators(accumulators, block_n)

    p = Protocol("cutlass_sm100", cluster=cta_group)
    kernel = CutlassSm100(
        a=p.smem("a", stages, ROWS * block_k * BF16),
        b=p.smem("b", stages, block_n // cta_group * block_k * BF16),
        accumulator=p.tmem("accumulator", accumulators, ROWS * block_n * FP32),
        tmem_addr=p.smem("tmem_addr", 1, 16),
        mainloop_mbars=p.mbarriers("mainloop", 2 * stages),
        accumulator_mbars=p.mbarriers("accum", 2 * accumulators),
        clc=ClcPipelineStorage(p, clc_stages),
        epilogue=CutlassEpilogue.for_protocol(
            p, residual=residual, rows=ROWS, columns=block_n, warps=EPILOGUE_WARPS, cycles=epilogue
        ),
        epilogue_throttle=p.mbarriers("epilogue_throttle", 1),
        tmem_dealloc=p.mbarriers("tmem_dealloc", 1) if cta_group == 2 else None,
        pair=cta_group,
        tiles=tiles,
        k_tiles=k_tiles,
        step_cycles=mma_cycles(ROWS, block_n, block_k),
    )
    p.init(kernel.init)
    p.role("mma")(kernel.mma)
    p.role("scheduler")(kernel.scheduler)
    p.role("load")(kernel.load)
    p.role("epilogue_load" if residual else "idle")(kernel.epilogue_load)
    p.role("epilogue", warps=EPILOGUE_WARPS)(kernel.store)
    return p


@dataclass(frozen=True, kw_only=True)
class CutlassSm100:
    """The kernel's memory and sizes, and its roles. ``pair``: CTAs that multiply together; the first of them leads."""

    a: TileArray
    b: TileArray
    accumulator: TileArray
    tmem_addr: TileArray
    mainloop_mbars: BarrierStorage
    accumulator_mbars: BarrierStorage
    clc: ClcPipelineStorage
    epilogue: CutlassEpilogue
    epilogue_throttle: BarrierStorage
    tmem_dealloc: BarrierStorage | None
    pair: int
    tiles: int
    k_tiles: int
    step_cycles: int

    @property
    def shape(self) -> ClusterShape:
        """The cluster, and the atom in it: one pair, or one CTA."""
        return self.pair, 1

    def init(self) -> None:
        """Initialise every barrier."""
        PipelineTmaUmmaAsync.init_barriers(self.mainloop_mbars, self.a.slots, TmaParams(), self.shape, self.shape)
        PipelineUmmaAsync.init_barriers(self.accumulator_mbars, self.accumulator.slots, self._accumulator_params())
        load_threads = WARP if self.epilogue.residual is not None else 0
        self.clc.init_barriers(compute_clc_barrier_counts(cluster_size=self.pair, epilogue_load_threads=load_threads))
        self.epilogue.init()
        scheduler_threads = WARP if recorder().cta == 0 else 0
        self.epilogue_throttle[0].init(WARP + scheduler_threads + WARP + load_threads)
        if self.tmem_dealloc is not None:
            self.tmem_dealloc[0].init(WARP)

    def _accumulator_params(self) -> AsyncParams:
        return AsyncParams(1, self.pair * EPILOGUE_THREADS)

    def _mainloop(self, leader: int = 0) -> PipelineTmaUmmaAsync:
        """The pipeline of A and B; ``leader`` is the lane that expects the bytes of all CTAs of the pair."""
        params = TmaParams(self.pair * (self.a.nbytes + self.b.nbytes), leader)
        return PipelineTmaUmmaAsync(self.mainloop_mbars, self.a.slots, params, self.shape, self.shape)

    def _accumulators(self) -> PipelineUmmaAsync:
        stages, params = self.accumulator.slots, self._accumulator_params()
        return PipelineUmmaAsync(self.accumulator_mbars, stages, params, self.shape, self.shape)

    # the scheduler

    def scheduler(self, w: Warp) -> None:
        """The scheduler warp, of the first CTA only: a request for every tile, and one that finds none."""
        if w.cta:
            return
        self.epilogue_throttle[0].arrive()
        requests = TileScheduler(w, self.clc, self.tiles).scheduler_iterator()
        for _ in requests:
            requests.signal_and_advance()
        requests.drain()

    def _work(self, w: Warp) -> Iterator[WorkInfo]:
        """The tiles of every role but the main load: the next is fetched before the work on this one."""
        scheduler, state = TileScheduler(w, self.clc, self.tiles), PipelineState(self.clc.num_stages)
        work = scheduler.initial_work_info()
        for _ in w.loop(self.tiles, "tiles"):
            following = scheduler.fetch_next_work(work, state)
            state.step()
            yield work
            work = following

    # the loads

    def load(self, w: Warp) -> None:
        """The main-load warp: every tile's K tiles. Once the first tile fills the stages, C may be loaded."""
        order = self.epilogue.order(main=True)
        self.epilogue_throttle[0].arrive()
        pipe, state = self._mainloop(elect() if w.cta == 0 else 0), make_producer_start_state(self.a.slots)
        scheduler = TileScheduler(w, self.clc, self.tiles)
        for work in scheduler.work_iterator():
            scheduler.throttle_signal(w.cta == 0)
            prologue = min(self.a.slots, self.k_tiles)
            self._copy(w, pipe, state, work, range(prologue))
            if work.index == 0 and self.epilogue.residual is not None:
                order.arrive()
            self._copy(w, pipe, state, work, range(prologue, self.k_tiles))
        pipe.producer_tail(state)

    def _copy(self, w: Warp, pipe: PipelineTmaUmmaAsync, state: PipelineState, work: WorkInfo, ks: range) -> None:
        """Some K tiles of this CTA's parts, counted in the leader. The state advances; the last try is not used."""
        token = pipe.producer_try_acquire(state)
        for k in ks:
            pipe.producer_acquire(state, token)
            slot, full = state.index(), pipe.producer_get_barrier(state).mapa(0)
            state.step()
            token = pipe.producer_try_acquire(state)
            with w.elect_one():
                for tile in (self.a, self.b):
                    w.tma_load(tile[slot], full, work.index * self.k_tiles + k)

    def epilogue_load(self, w: Warp) -> None:
        """The epilogue-load warp: C of every tile, the first after the main load's first stages; idle without C."""
        residual = self.epilogue.residual
        if residual is None:
            return
        self.epilogue_throttle[0].arrive()
        order = self.epilogue.order(main=False)
        pipe, state = self.epilogue.load_pipe(residual), make_producer_start_state(residual.c.slots)
        for work in self._work(w):
            if work.index == 0:
                order.wait()
            self.epilogue.load(w, residual, pipe, state, work.index)
        pipe.producer_tail(state)

    # the products

    def mma(self, w: Warp) -> None:
        """The MMA warp: multiplies in the leader, keeps step with the scheduler in its peer."""
        w.write(self.tmem_addr[0], 0)
        w.bar_arrive(_TMEM_ALLOC, WARP + EPILOGUE_THREADS)
        self.epilogue_throttle[0].arrive()
        mainloop, read = self._mainloop(), PipelineState(self.a.slots)
        accumulators, state = self._accumulators(), make_producer_start_state(self.accumulator.slots)
        for work in self._work(w):
            if w.cta == 0:
                accumulators.producer_acquire(state)
                self._multiply(w, mainloop, read, state.index(), work.index)
                accumulators.producer_commit(state)
            state.step()
        if w.cta == 0:
            accumulators.producer_tail(state)
        self._deallocate(w)

    def _multiply(self, w: Warp, pipe: PipelineTmaUmmaAsync, state: PipelineState, slot: int, tile: int) -> None:
        """All products of a tile; the next stage is tried before this one's are issued. The state advances."""
        token = pipe.consumer_try_wait(state, skip_wait=self.k_tiles == 0)
        ctas = range(self.pair)
        for k in w.loop(self.k_tiles, "k_tiles"):
            pipe.consumer_wait(state, token)
            here = state.copy()
            state.step()
            token = pipe.consumer_try_wait(state, skip_wait=k + 1 == self.k_tiles)
            with w.elect_one():
                stage, item = here.index(), tile * self.k_tiles + k
                w.mma(
                    Engine.TCGEN05,
                    reads=[(part[stage].mapa(cta), item) for cta in ctas for part in (self.a, self.b)],
                    writes=[(self.accumulator[slot].mapa(cta), tile) for cta in ctas],
                    cycles=self.step_cycles,
                )
            pipe.consumer_release(here)

    def _deallocate(self, w: Warp) -> None:
        """A pair gives its tensor memory back together: the peer says that it has come, the leader that both may."""
        if self.tmem_dealloc is None:
            return
        if w.cta:
            self.tmem_dealloc[0].arrive_cluster(0)
        self.tmem_dealloc[0].wait(0)
        if w.cta == 0:
            self.tmem_dealloc[0].arrive_cluster(1)

    # the epilogue

    def store(self, w: Warp) -> None:
        """An epilogue warp: reads the accumulator subtile by subtile, adds C, and stores."""
        self.epilogue_throttle[0].wait(0)
        w.bar_sync(_TMEM_ALLOC, WARP + EPILOGUE_THREADS)
        w.read(self.tmem_addr[0], 0)
        accumulators, state = self._accumulators(), PipelineState(self.accumulator.slots)
        out = EpilogueWarp(self.epilogue, w, w.index)
        for work in self._work(w):
            self._store_tile(w, out, accumulators, state, work.index)
            state.step()
        out.tail()

    def _store_tile(
        self, w: Warp, out: EpilogueWarp, accumulators: PipelineUmmaAsync, state: PipelineState, tile: int
    ) -> None:
        """One tile. Its accumulator is given back right after the last load from it; the state stays."""
        residual, accumulator = out.try_residual(), accumulators.consumer_try_wait(state)
        last = self.epilogue.subtiles - 1
        for n in range(self.epilogue.subtiles):
            item = tile * self.epilogue.subtiles + n
            out.residual(item, residual)
            if n == 0:
                accumulators.consumer_wait(state, accumulator)
            if self.k_tiles:
                w.read(lanes(self.accumulator[state.index()], w.index, n, self.epilogue.subtiles), tile)
            if n == last:
                accumulators.consumer_release(state)
            out.convert()
            out.store(item)
            out.acquire()
            residual = out.try_residual(n == last)
