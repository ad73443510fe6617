"""Blackwell's grouped block-scaled GEMM: many products of different sizes in one launch, each tile known in advance.

Upstream: ``grouped_block_scaled_matmul_kernel.mojo`` (``run`` on one SM, ``run_2sm`` on a pair) and
``grouped_tile_scheduler.mojo`` in ``linalg/matmul/gpu/sm100_structured/grouped_block_scaled/``. No hardware hands out
tiles: every warp computes the next one. On a pair the MMA warps take each tile together, through a software CLC whose
drain is right only if every stage of it was used an odd number of times. The load warp rewrites the tensor maps of A
and B where a group begins.

Not described: the tensor map of C, which the four epilogue warps rewrite with the same contents.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Fence
from pipesim.pipelines.modular.clc import WorkInfo
from pipesim.pipelines.modular.grouped_clc import (
    GroupedCLCSchedulerIterator,
    GroupedCLCWorkIterator,
    GroupedWorkIterator,
    grouped_clc_barrier_counts,
)
from pipesim.protocols.blackwell.block_scaled import BlockScaled, BlockScaledTiles, require_block_scaled
from pipesim.protocols.blackwell.sm100 import EPILOGUE_THREADS, Sm100
from pipesim.protocols.limits import ranges

_CLC_STAGES = 2  #: of the software CLC
_TENSORMAP_AB_INIT = 3  #: named barrier of the MMA and the load warp
_AB_INIT_THREADS = 64  #: of it
_TENSORMAP_BYTES = 4 * 128  #: of A, B and their scales


@ranges(tiles=(1, 1 << 16), group_tiles=(1, 1 << 16))  # upstream launches a CTA, or a pair, for each tile
def gemm_sm100_grouped(
    stages: int = 4,
    tiles: int = 2,
    k_iters: int = 4,
    group_tiles: int = 1,
    nvfp4: int = 0,
    cta_group: int = 1,
    accumulators: int = 2,
    all_stages: int = 0,
    block_n: int = 128,
    epilogue: int = 150,
) -> Protocol:
    """Blackwell's grouped block-scaled GEMM: every warp computes its tiles; on a pair the MMA warps take them together.

    ``tiles`` output tiles of 128 rows (a CTA) by ``block_n`` columns for this CTA, or this pair with ``cta_group`` 2,
    each of ``k_iters`` steps of 128 bytes of K; every ``group_tiles`` of them a new group begins. ``stages`` tiles of
    A, of B and of their scales, MXFP8 or with ``nvfp4`` 1 NVFP4. ``accumulators``: tiles in tensor memory, with the
    scales of all stages 512 columns at most. ``all_stages`` 1: the scheduler of a pair drains as the hardware's does;
    0: as upstream. ``epilogue``: SM cycles of an epilogue warp per slice of 32 columns.
    """
    require_block_scaled(stages, nvfp4, accumulators, block_n)

    p = Protocol("gemm_sm100_grouped", cluster=cta_group)
    made = BlockScaledTiles.for_protocol(p, stages, nvfp4, accumulators, block_n, cta_group)
    tensormap_ab = p.smem("tensormap_ab", 1, _TENSORMAP_BYTES)
    clc_stages = _CLC_STAGES if cta_group == 2 else 0
    common = BlockScaled.for_protocol(
        p,
        made,
        lambda: _GroupedSm100.for_protocol(
            p, cta_group=cta_group, tiles=tiles, clc_stages=clc_stages, cluster=(cta_group, 1)
        ),
        k_iters=k_iters,
        block_n=block_n,
        epilogue=epilogue,
        lookahead=True,
    )
    gemm = _GroupedKernel(
        **vars(common), tensormap_ab=tensormap_ab, group_tiles=group_tiles, all_stages=bool(all_stages)
    )
    gemm.roles(p)
    return p


@dataclass(frozen=True)
class _GroupedSm100(Sm100):
    """Tiles that every warp computes."""

    def init(self) -> None:
        self.clc.init_barriers(grouped_clc_barrier_counts(cta_group=self.cta_group))
        self.tmem_dealloc[0].init(EPILOGUE_THREADS * self.cta_group)

    def work(self, w: Warp) -> Iterator[WorkInfo]:
        if self.cta_group == 1:
            return iter(GroupedWorkIterator(w, self.tiles))
        return iter(GroupedCLCWorkIterator(w, self.clc, self.tiles))

    def work_of_load(self, w: Warp) -> Iterator[WorkInfo]:
        return self.work(w)

    def work_of_mma(self, w: Warp) -> Iterator[WorkInfo]:
        if self.cta_group == 1:
            return self.work(w)
        return iter(GroupedCLCWorkIterator(w, self.clc, self.tiles, use_clc_fetch=True))


@dataclass(frozen=True, kw_only=True)
class _GroupedKernel(BlockScaled):
    """The kernel with tensor maps that change with the group: every ``group_tiles`` tiles."""

    tensormap_ab: TileArray
    group_tiles: int
    all_stages: bool  #: the scheduler's drain waits for the last use of each stage, not as upstream

    def scheduler(self, w: Warp) -> None:
        if self.pair == 1 or not self.sm100.context().is_first_cta_in_cluster:
            return
        announced = GroupedCLCSchedulerIterator(w, self.sm100.clc, self.sm100.tiles, self.pair)
        for _ in announced:
            announced.signal_and_advance()
        if not self.all_stages:
            announced.drain()
            return
        for _ in range(announced.num_stages):
            announced.empty_mbar[announced.producer_state.index()].wait(announced.producer_state.phase())
            announced.producer_state.step()

    def leave(self, w: Warp) -> None:
        """Nothing holds the CTAs of a pair together at the end."""

    def mma(self, w: Warp) -> None:
        with w.elect_one():
            w.write(self.tensormap_ab[0], 0)  # from the templates
        w.bar_sync(_TENSORMAP_AB_INIT, _AB_INIT_THREADS)
        super().mma(w)

    def begin_tile(self, w: Warp, tile: int) -> None:
        if tile == 0:  # in the loop: a CTA without a tile leaves the MMA warp alone at that barrier
            w.bar_sync(_TENSORMAP_AB_INIT, _AB_INIT_THREADS)
        if tile % self.group_tiles == 0:
            w.fence(Fence.PROXY_TENSORMAP)
            with w.elect_one():
                w.write(self.tensormap_ab[0], tile // self.group_tiles + 1)
            w.read(self.tensormap_ab[0], tile // self.group_tiles + 1)  # copied to global memory, for the loads
            w.fence(Fence.PROXY_TENSORMAP)
