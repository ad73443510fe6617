"""Convolution with a residual: a fourth load warp brings the epilogue's source tiles, ordered after the main loads.

Upstream: ``nn/conv/gpu/nvidia/sm100/conv2d_fprop_kernel.mojo`` with ``epilogue_load_pipeline.mojo``; warp 7 is the
epilogue-load warp. The load-order barrier has no back-pressure: with an arrival for **every** tile, as upstream makes
it, two may complete before one wait is tested, which then misses both. CUTLASS orders the first tile only.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.warp import TileArray, Warp
from pipesim.pipelines.modular.accum_barrier import AccumBarrier
from pipesim.pipelines.modular.epi_load import EpiLoadPipeline
from pipesim.pipelines.modular.input_tile import InputTilePipeline
from pipesim.pipelines.modular.load_order import LoadOrderBarrier
from pipesim.pipelines.modular.output_tile import OutputTilePipeline
from pipesim.protocols.gemm_sm100 import GemmSm100
from pipesim.protocols.limits import require
from pipesim.protocols.sm100 import (
    BF16,
    EPILOGUE_THREADS,
    EPILOGUE_WARPS,
    FP32,
    ROWS,
    SLICE_COLUMNS,
    Sm100,
    acquired,
    lanes,
    mma_cycles,
    require_accumulators,
    require_tiles,
    rows,
)


def conv_epilogue(
    stages: int = 4,
    tiles: int = 3,
    k_iters: int = 18,
    epi_stages: int = 4,
    accumulators: int = 2,
    clc_stages: int = 2,
    block_n: int = 128,
    block_k: int = 64,
    residual: int = 1,
    first_tile_only: int = 0,
    epilogue: int = 150,
) -> Protocol:
    """Convolution with a residual: an epilogue-load warp, ordered by a barrier that can be missed, feeds the epilogue.

    ``tiles`` output tiles of 128 rows by ``block_n`` columns for this CTA, each of ``k_iters`` steps of ``block_k``
    elements of bf16. ``stages`` tiles of A and of B; ``epi_stages`` slices of the source, of 32 columns each.
    ``accumulators``: tiles in tensor memory, all of them 512 columns at most. ``clc_stages``: answers of the scheduler
    under way, 0: a single wave of one tile. ``residual`` 0: nothing is loaded for the epilogue, the order is waited for
    all the same. ``first_tile_only`` 1: CUTLASS's order, which cannot be missed, not upstream's. ``epilogue``: SM
    cycles of an epilogue warp per slice.
    """
    require("stages", stages, 1, 32)
    require_tiles(tiles, clc_stages)
    require("k_iters", k_iters, 0, 1 << 16)
    require("epi_stages", epi_stages, 1, 8)
    require_accumulators(accumulators, block_n)
    require("block_k", block_k, 16, 128, multiple_of=16)
    require("residual", residual, 0, 1)
    require("first_tile_only", first_tile_only, 0, 1)
    require("epilogue", epilogue, 0, 1 << 24)

    p = Protocol("conv_epilogue")
    conv = _Conv(
        a=p.smem("a", stages, ROWS * block_k * BF16),
        b=p.smem("b", stages, block_n * block_k * BF16),
        source=p.smem("source", epi_stages, ROWS * SLICE_COLUMNS * BF16),
        accumulator=p.tmem("accumulator", accumulators, ROWS * block_n * FP32),
        input_mbars=InputTilePipeline.BarrierArray(p, "input", stages),
        output_mbars=OutputTilePipeline.BarrierArray(p, "output", accumulators),
        epi_mbars=p.mbarriers("epi_load", 2 * epi_stages),
        order_mbar=p.mbarriers("load_order", 1),
        sm100=Sm100.of(p, cta_group=1, tiles=tiles, clc_stages=clc_stages, epilogue_load=True),
        rings=stages,
        k_group_size=1,
        groups=k_iters,
        lookahead=False,
        step_cycles=mma_cycles(ROWS, block_n, block_k),
        slices=block_n // SLICE_COLUMNS,
        epilogue_cycles=epilogue,
        residual=bool(residual),
        every_tile=not first_tile_only,
    )
    p.init(conv.init)
    p.role("epilogue", warps=EPILOGUE_WARPS)(conv.epilogue)
    p.role("scheduler")(conv.sm100.scheduler)
    p.role("load")(conv.load)
    p.role("mma")(conv.mma)
    p.role("epilogue_load")(conv.epilogue_load)
    return p


@dataclass(frozen=True, kw_only=True)
class _Conv(GemmSm100):
    """The kernel with a source for its epilogue. ``every_tile``: the loads are ordered in every tile, as upstream."""

    source: TileArray
    epi_mbars: BarrierStorage
    order_mbar: BarrierStorage
    residual: bool
    every_tile: bool

    def init(self) -> None:
        InputTilePipeline.init_barriers(self.input_mbars, 1, 1)
        OutputTilePipeline.init_barriers(self.output_mbars, 1, EPILOGUE_THREADS)
        self._source_pipeline().init_barriers()
        LoadOrderBarrier(self.order_mbar).init()
        self.sm100.init()

    def _source_pipeline(self) -> EpiLoadPipeline:
        return EpiLoadPipeline(self.epi_mbars, self.source.slots)

    def load(self, w: Warp) -> None:
        order = LoadOrderBarrier(self.order_mbar)
        prologue = min(self.rings, self.groups)
        with self.input().producer() as producer:
            for work in self.sm100.work_of_load(w):
                ordered = self.every_tile or work.index == 0
                if ordered and not prologue:
                    self._let_epilogue_load(w, order)
                for k, tiles in acquired(w, producer, self.groups, lookahead=self.lookahead):
                    with w.elect_one():
                        self.copy(w, tiles, work.index * self.groups + k)
                    if ordered and k + 1 == prologue:
                        self._let_epilogue_load(w, order)
            producer.drain()

    def _let_epilogue_load(self, w: Warp, order: LoadOrderBarrier) -> None:
        with w.elect_one():
            order.arrive_and_step()

    def epilogue_load(self, w: Warp) -> None:
        """Warp 7: after the main loads of a tile have begun, the slices of its source, as stages come free."""
        order, pipe = LoadOrderBarrier(self.order_mbar), self._source_pipeline()
        for work in self.sm100.work(w):
            if self.every_tile or work.index == 0:
                order.wait_and_step()
            for n in range(self.slices if self.residual else 0):
                pipe.wait_consumer()
                with w.elect_one():
                    full, slot = pipe.producer_mbar(), self.source[pipe.pipeline.producer_stage()]
                    full.expect_bytes(slot.nbytes)
                    w.tma_load(slot, full, work.index * self.slices + n)
                pipe.producer_step()

    def epilogue(self, w: Warp) -> None:
        self.sm100.find_tmem(w)
        output, source = self.output(), self._source_pipeline()
        for work in self.sm100.work(w):
            with output.consumer() as stage:
                for n in range(self.slices):
                    if self.groups:
                        w.read(lanes(stage.tmem.tile(), w.index, n, self.slices), work.index)
                    if n == self.slices - 1:
                        AccumBarrier.arrive(stage.pipeline, stage.index, self.pair)
                    if self.residual:
                        with source.consume() as held:  # every thread arrives as it leaves
                            w.read(rows(self.source[held.index()], w.index), work.index * self.slices + n)
                    self.sm100.store(w, work.index * self.slices + n, self.epilogue_cycles)
        self.sm100.finish_stores(w)
        self.sm100.leave_tmem()
