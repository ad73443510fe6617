"""What the Blackwell kernels share: warps by role, the tile scheduler, tensor memory's life, the K loop, the store.

Upstream: ``sm100_structured/structured_kernels/`` (``kernel_common.mojo``, ``warp_context.mojo``, ``tmem.mojo``,
``tile_scheduler.mojo``). Warps 0 to 3 are the epilogue, 4 the scheduler, 5 the load warp, 6 the MMA warp.
"""

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Self, TypeVar

from pipesim.errors import ParameterError
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage, TryResult
from pipesim.lang.tiles import Slot, TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence
from pipesim.pipelines.modular.clc import ClcPipelineStorage, TileScheduler, WorkInfo, compute_clc_barrier_counts
from pipesim.pipelines.modular.input_tile import InputView
from pipesim.pipelines.modular.kernel_context import MAX_CLUSTER, KernelContext, require_cluster_shape
from pipesim.pipelines.modular.output_tile import TMEM_COLUMNS
from pipesim.protocols.limits import require
from pipesim.protocols.warp_group import share

EPILOGUE_WARPS = 4
EPILOGUE_THREADS = 128
ROWS = 128  #: of the output, on each SM
SLICE_COLUMNS = 32  #: of the output that the epilogue converts and stores at a time
BF16 = 2  #: bytes
FP32 = 4  #: bytes
_TMEM_READY, _EPILOGUE = 1, 2  #: named barriers
_FLOPS_PER_CYCLE = 8192  #: dense bf16 of one SM (B200: 2,250 TFLOP/s on 148 SMs at 1,850 MHz)


def mma_cycles(m: int, n: int, k: int) -> int:
    """Cycles of one SM's tensor cores for its part of a product: m rows of this SM by n by k, bf16."""
    return 2 * m * n * k // _FLOPS_PER_CYCLE


_Tiles = TypeVar("_Tiles", bound=AbstractContextManager[object])


@dataclass(frozen=True)
class Sm100:
    """Scheduler, tensor memory and the output's way out of one kernel. ``tiles``: what this cluster gets.

    ``cluster``: its CTAs along M and along N.
    """

    cta_group: int
    tiles: int
    clc: ClcPipelineStorage
    tmem_addr: TileArray
    tmem_dealloc: BarrierStorage
    c: TileArray
    epilogue_load: bool = False
    cluster: tuple[int, int] = (1, 1)

    @classmethod
    def for_protocol(
        cls, p: Protocol, *, cta_group: int, tiles: int, clc_stages: int, epilogue_load: bool = False,
        cluster: tuple[int, int] = (1, 1),
    ) -> Self:  # fmt: skip
        """The memory of all that, in ``p``."""
        return cls(
            cta_group=cta_group,
            tiles=tiles,
            clc=ClcPipelineStorage(p, clc_stages),
            tmem_addr=p.smem("tmem_addr", 1, 16),
            tmem_dealloc=p.mbarriers("tmem_dealloc", 1),
            c=p.smem("c", 2, ROWS * SLICE_COLUMNS * BF16),
            epilogue_load=epilogue_load,
            cluster=cluster,
        )

    def init(self) -> None:
        """Initialise the barriers of the scheduler and of tensor memory."""
        load_threads = 32 if self.epilogue_load else 0
        size = self.context().cluster_size
        self.clc.init_barriers(compute_clc_barrier_counts(cluster_size=size, epilogue_load_threads=load_threads))
        self.tmem_dealloc[0].init(EPILOGUE_THREADS * self.cta_group)

    def context(self) -> KernelContext:
        """The calling CTA in its cluster."""
        return KernelContext.here(self.cta_group, *self.cluster)

    # the scheduler

    def work(self, w: Warp) -> Iterator[WorkInfo]:
        """The tiles of a role, in order, as the scheduler hands them out."""
        return iter(TileScheduler(w, self.clc, self.tiles).work_iterator())

    def work_of_load(self, w: Warp) -> Iterator[WorkInfo]:
        """The load warp's tiles: the first CTA's signals the throttle for each, before its loads."""
        scheduler = TileScheduler(w, self.clc, self.tiles)
        for work in scheduler.work_iterator():
            scheduler.throttle_signal(self.context().is_first_cta_in_cluster)
            yield work

    def work_of_mma(self, w: Warp) -> Iterator[WorkInfo]:
        """The MMA warp's tiles."""
        return self.work(w)

    def scheduler(self, w: Warp) -> None:
        """The scheduler warp, of the first CTA only: a request for every tile, and one that finds none."""
        if not self.context().is_first_cta_in_cluster or not self.clc.num_stages:
            return
        requests = TileScheduler(w, self.clc, self.tiles).scheduler_iterator()
        for _ in requests:
            requests.signal_and_advance()
        requests.drain()

    # tensor memory

    def allocate(self, w: Warp) -> None:
        """The MMA warp allocates tensor memory and publishes its address to the epilogue."""
        w.write(self.tmem_addr[0], 0)
        w.bar_arrive(_TMEM_READY, 32 + EPILOGUE_THREADS)

    def deallocate(self) -> None:
        """The MMA warp gives it back when the epilogues of all its CTAs have read their last tile."""
        self.tmem_dealloc[0].wait(0)

    def find_tmem(self, w: Warp) -> None:
        """An epilogue warp waits for the address."""
        w.bar_sync(_TMEM_READY, 32 + EPILOGUE_THREADS)
        w.read(self.tmem_addr[0], 0)

    def leave_tmem(self) -> None:
        """Every epilogue thread says, to each CTA of the group, that it reads no tensor memory any more."""
        for cta in self.context().group_ranks:
            self.tmem_dealloc[0].arrive_cluster(cta)

    # the output

    def store(self, w: Warp, item: int, cycles: int) -> None:
        """Convert (``cycles``), write this warp's rows of one slice of the output, and let one lane store the slice.

        ``item`` numbers the slices of all tiles: two of them are on their way at a time.
        """
        out = self.c[item % 2]
        w.work(cycles)
        if w.index == 0:
            with w.elect_one():
                w.wait_group(Engine.BULK, 1)  # the store before the last has read its rows
        w.bar_sync(_EPILOGUE, EPILOGUE_THREADS)
        w.write(rows(out, w.index), item)
        w.fence(Fence.PROXY_ASYNC)
        w.bar_sync(_EPILOGUE, EPILOGUE_THREADS)
        if w.index == 0:
            with w.elect_one():
                w.async_read(Engine.BULK, out, item)
                w.commit(Engine.BULK)

    def finish_stores(self, w: Warp) -> None:
        """The lane that stores waits for its stores before the CTA's memory goes."""
        if w.index == 0:
            with w.elect_one():
                w.wait_group(Engine.BULK)


def require_tiles(tiles: int, clc_stages: int) -> None:
    """Raise ParameterError unless the scheduler can hand out this many tiles; without stages there is the first
    only.
    """
    if tiles > 1 and not clc_stages:
        raise ParameterError(
            f"tiles = {tiles} with clc_stages = 0",
            cause="without CLC stages there is the initial tile, and no other",
            correction="use tiles = 0 or 1, or clc_stages = 1 or more",
        )


def require_cluster(cluster_m: int, cluster_n: int, cta_group: int, block_n: int) -> tuple[int, int]:
    """The CTAs along M and N (``cluster_m`` 0: one group); ParameterError for a shape that no kernel has."""
    require("cluster_m", cluster_m, 0, MAX_CLUSTER)
    require("cluster_n", cluster_n, 1, MAX_CLUSTER)
    cluster_m = cluster_m or cta_group
    require_cluster_shape(cluster_m, cluster_n, cta_group)
    for name, along, count, slices in (
        ("cluster_n", "A", ROWS, cluster_n),
        ("cluster_m", "B", block_n // cta_group, cluster_m // cta_group),
    ):
        if count % slices:
            raise ParameterError(
                f"{name} makes {slices} slices of {count} rows of {along}",
                cause="the CTAs that share a tile load equal slices of it",
                correction="use a power of two" if along == "A" else "use a block_n that they divide",
            )
    return cluster_m, cluster_n


def require_accumulators(accumulators: int, block_n: int) -> None:
    """Raise ParameterError unless this many accumulators of this many columns fit into tensor memory."""
    require("accumulators", accumulators, 1, 4)
    require("block_n", block_n, SLICE_COLUMNS, 256, multiple_of=SLICE_COLUMNS)
    if accumulators * block_n > TMEM_COLUMNS:
        raise ParameterError(
            f"accumulators = {accumulators} with block_n = {block_n} need {accumulators * block_n} columns",
            cause=f"an SM's tensor memory has {TMEM_COLUMNS} columns",
            correction=f"use at most {TMEM_COLUMNS // block_n} accumulators, or a smaller block_n",
        )


def lanes(accumulator: Slot, warp: int, part: int, parts: int) -> Slot:
    """One of ``parts`` slices of columns of an epilogue warp's 32 lanes of an accumulator."""
    return share(rows(accumulator, warp), part, parts)


def rows(tile: Slot, warp: int) -> Slot:
    """An epilogue warp's quarter of a tile: its 32 lanes of tensor memory, or its rows of the output."""
    return share(tile, warp, EPILOGUE_WARPS)


def acquired_stages(
    w: Warp, view: InputView[Any, _Tiles, Any], groups: int, *, lookahead: bool
) -> Iterator[tuple[int, _Tiles]]:
    """The K loop of the load or the MMA warp: (group, its free or full stage), each with a ``with`` around it.

    With ``lookahead`` the next stage is tried right after a step, and waited for only if it was not ready.
    """
    ready: TryResult | bool = view.try_acquire() if lookahead and groups else False
    for k in w.loop(groups, "k_iters"):
        tiles = view.acquire_if_needed(ready) if lookahead else view.acquire()
        with tiles:
            yield k, tiles
        ready = view.try_acquire() if lookahead and k + 1 < groups else False
