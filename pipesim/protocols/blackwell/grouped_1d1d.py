"""Blackwell's grouped block-scaled GEMM over contiguous tokens (1D-1D): a scheduler warp hands tiles to its own CTA.

Upstream: ``grouped_block_scaled_1d1d/grouped_1d1d_matmul_kernel.mojo``, for output tiles of at least 64 columns. Every
CTA has a scheduler, which writes each next tile into a ring of two slots; one lane of each other warp gives a slot
back. The first tile every warp computes itself. There is no throttle and no drain.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.pipelines.modular.clc import WorkInfo
from pipesim.pipelines.modular.output_tile import OutputTilePipeline
from pipesim.pipelines.modular.producer_consumer import ProducerConsumerPipeline
from pipesim.protocols.blackwell.block_scaled import BlockScaled, BlockScaledTiles, require_block_scaled
from pipesim.protocols.blackwell.sm100 import EPILOGUE_THREADS, EPILOGUE_WARPS, Sm100
from pipesim.protocols.limits import ranges, require

_SLOTS = 2  #: of the scheduler's ring
_SLOT_BYTES = 32
_CONSUMER_WARPS = EPILOGUE_WARPS + 2  #: the load and the MMA warp


@ranges()
def gemm_sm100_grouped_1d1d(
    stages: int = 4,
    tiles: int = 3,
    k_iters: int = 4,
    nvfp4: int = 0,
    cta_group: int = 1,
    accumulators: int = 2,
    block_n: int = 128,
    epilogue: int = 150,
) -> Protocol:
    """Blackwell's grouped 1D-1D GEMM: a scheduler warp in every CTA hands its tiles out through a ring of two slots.

    ``tiles`` output tiles of 128 rows (a CTA) by ``block_n`` columns for this CTA, or this pair with ``cta_group`` 2,
    each of ``k_iters`` steps of 128 bytes of K. ``stages`` tiles of A, of B and of their scales, MXFP8 or with
    ``nvfp4`` 1 NVFP4. ``accumulators``: tiles in tensor memory, with the scales of all stages 512 columns at most.
    ``epilogue``: SM cycles of an epilogue warp per slice of 32 columns.
    """
    require_block_scaled(stages, nvfp4, accumulators, block_n)
    require("block_n", block_n, 64, 256)

    p = Protocol("gemm_sm100_grouped_1d1d", cluster=cta_group)
    _Grouped1d1d.for_protocol(
        p,
        BlockScaledTiles.for_protocol(p, stages, nvfp4, accumulators, block_n, cta_group),
        lambda: _RingSm100(
            **vars(Sm100.for_protocol(p, cta_group=cta_group, tiles=tiles, clc_stages=0, cluster=(cta_group, 1))),
            sched_slots=p.smem("sched_slots", _SLOTS, _SLOT_BYTES),
            sched_mbars=p.mbarriers("sched", 2 * _SLOTS),
        ),
        k_iters=k_iters,
        block_n=block_n,
        epilogue=epilogue,
        lookahead=True,
    ).roles(p)
    return p


@dataclass(frozen=True, kw_only=True)
class _RingSm100(Sm100):
    """Tiles that this CTA's scheduler hands out. ``sched_slots``: what the next tile is."""

    sched_slots: TileArray
    sched_mbars: BarrierStorage

    def init(self) -> None:
        self._ring().init_mbars(1, _CONSUMER_WARPS)
        self.tmem_dealloc[0].init(EPILOGUE_THREADS * self.cta_group)

    def _ring(self) -> ProducerConsumerPipeline:
        return ProducerConsumerPipeline(self.sched_mbars, _SLOTS)

    def work(self, w: Warp) -> Iterator[WorkInfo]:
        ring = self._ring()
        for tile in w.loop(self.tiles, "tiles"):
            yield WorkInfo(tile, is_valid_tile=True)
            with ring.consume_explicit() as slot, w.lanes(1):
                w.read(self.sched_slots[slot.index()], tile + 1)
                slot.arrive()

    def work_of_load(self, w: Warp) -> Iterator[WorkInfo]:
        return self.work(w)

    def scheduler(self, w: Warp) -> None:
        ring = self._ring()
        for tile in w.loop(max(1, self.tiles), "tiles"):  # one is written also for a CTA that has no tile at all
            if tile >= _SLOTS:
                ring.wait_consumer()
            with w.lanes(1):
                w.write(self.sched_slots[ring.producer_stage()], tile + 1)
                ring.producer_mbar(ring.producer_stage()).arrive()
            ring.producer_step()


@dataclass(frozen=True, kw_only=True)
class _Grouped1d1d(BlockScaled):
    """The kernel with its warps in the order of ``WarpRole1D1D``."""

    def roles(self, p: Protocol) -> None:
        p.init(self.init)
        p.role("epilogue", warps=EPILOGUE_WARPS)(self.epilogue)
        p.role("load")(self.load)
        p.role("mma")(self.mma)
        p.role("scheduler")(self.scheduler)

    def follow(self, output: OutputTilePipeline) -> None:
        """The peer's MMA warp waits for nothing but its next tile."""
