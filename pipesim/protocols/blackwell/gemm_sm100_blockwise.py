"""Blackwell's GEMM with a scale for each block: the epilogue takes part in every K iteration.

Upstream: the blockwise FP8 kernel of ``linalg/matmul/gpu/sm100_structured/``. The scales of A travel with the tiles,
and the epilogue reads them: so a stage of the input is freed by the MMAs' commit **and** by the four epilogue warps,
and an accumulator is passed on after each K iteration, not after each tile.
"""

from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import TryResult
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence
from pipesim.pipelines.modular.input_tile import BlockwiseFP8TilePayload, InputTilePipeline, TilePayload
from pipesim.pipelines.modular.kernel_context import KernelContext, compute_input_consumer_count
from pipesim.pipelines.modular.output_tile import OutputKPipeline, OutputTilePipeline
from pipesim.protocols.blackwell.gemm_sm100 import GemmSm100
from pipesim.protocols.blackwell.sm100 import (
    EPILOGUE_THREADS,
    FP32,
    ROWS,
    SLICE_COLUMNS,
    Sm100,
    mma_cycles,
    require_accumulators,
    require_cluster,
    require_tiles,
    rows,
)
from pipesim.protocols.limits import ranges

_FP8 = 1  #: bytes


@ranges(clc_stages=(0, 8), block_k=(32, 256, 32))
def gemm_sm100_blockwise(
    stages: int = 4,
    tiles: int = 2,
    k_iters: int = 8,
    accumulators: int = 2,
    clc_stages: int = 2,
    block_n: int = 128,
    block_k: int = 128,
    lookahead: int = 0,
    scale: int = 200,
    epilogue: int = 150,
    cta_group: int = 1,
    cluster_m: int = 0,
    cluster_n: int = 1,
    fence: int = 0,
) -> Protocol:
    """Blackwell's blockwise-scaled GEMM: MMA and epilogue both consume the input; an accumulator for every K step.

    ``tiles`` output tiles of 128 rows by ``block_n`` columns for every CTA of this cluster of ``cluster_m`` (0: as
    ``cta_group``) by ``cluster_n`` CTAs; ``cta_group`` of them multiply together, along M. Each tile takes ``k_iters``
    steps of ``block_k`` elements of FP8. ``stages`` tiles of A, of B and of A's scales. ``accumulators``: tiles in
    tensor memory, all of them 512 columns at most. ``clc_stages``: answers of the scheduler under way, 0: a single wave
    of one tile. ``lookahead`` 1: the next stage is tried while this one is worked on. ``scale``: SM cycles of an
    epilogue warp per K step; ``epilogue``: per slice of 32 columns of the output. ``fence`` 1: the epilogue fences its
    reads of the scales before it frees their stage, as sm_100 needs; 0: it does not, as upstream, and is refuted.
    """
    require_tiles(tiles, clc_stages)
    require_accumulators(accumulators, block_n)
    cluster = require_cluster(cluster_m, cluster_n, cta_group, block_n)

    p = Protocol("gemm_sm100_blockwise", cluster=cluster[0] * cluster[1])
    gemm = _Blockwise(
        a=p.smem("a", stages, ROWS * block_k * _FP8),
        b=p.smem("b", stages, block_n // cta_group * block_k * _FP8),
        a_scales=p.smem("a_scales", stages, ROWS * FP32),
        accumulator=p.tmem("accumulator", accumulators, ROWS * block_n * FP32),
        input_mbars=InputTilePipeline.BarrierArray(p, "input", stages),
        output_mbars=OutputTilePipeline.BarrierArray(p, "output", accumulators),
        sm100=Sm100.for_protocol(p, cta_group=cta_group, tiles=tiles, clc_stages=clc_stages, cluster=cluster),
        slices=block_n // SLICE_COLUMNS,
        rings=stages,
        groups=k_iters,
        lookahead=bool(lookahead),
        step_cycles=mma_cycles(ROWS, block_n, block_k) // 2,  # FP8 is twice as fast as bf16
        epilogue_cycles=epilogue,
        scale_cycles=scale,
        fences_reads=bool(fence),
    )
    gemm.roles(p)
    return p


@dataclass(frozen=True, kw_only=True)
class _Blockwise(GemmSm100):
    """The kernel with the scales of A in its input."""

    a_scales: TileArray
    scale_cycles: int
    fences_reads: bool

    def input_consumers(self) -> int:
        size = self.sm100.context().cluster_size
        return compute_input_consumer_count(*self.sm100.cluster, self.pair, size, EPILOGUE_THREADS)

    def payload(self) -> TilePayload:
        return BlockwiseFP8TilePayload(self.a, self.b, self.a_scales)

    def slice(self, ctx: KernelContext, name: str) -> tuple[int, int, int]:
        if name == "a_scales_tiles":  # each CTA loads those of its own rows for itself
            return 0, 1, 1 << ctx.block_rank_in_cluster
        return super().slice(ctx, name)

    def mma(self, w: Warp) -> None:
        self.sm100.allocate(w)
        ctx, tiles, output = self.sm100.context(), self.input(), self.output().per_k()
        with tiles.consumer():
            for work in self.sm100.work(w):
                if ctx.elect_one_cta:
                    self._multiply_all(w, ctx, tiles, output, work.index)
        self.sm100.deallocate()

    def _multiply_all(
        self, w: Warp, ctx: KernelContext, tiles: InputTilePipeline[TilePayload], output: OutputKPipeline, tile: int
    ) -> None:
        """The K iterations of a tile, each with an accumulator of its own."""
        ready: TryResult | bool = tiles.try_acquire_consumer() if self.lookahead and self.groups else False
        for k in w.loop(self.groups, "k_iters"):
            tiles.wait_producer_if_needed(ready)
            stage, item = tiles.consumer_stage(), tile * self.groups + k
            with output.produce() as accumulator, w.elect_one():
                operands = self.operands(ctx, stage, item)
                results = [(accumulator.tmem.tile().mapa(cta), item) for cta in ctx.group_ranks]
                w.mma(Engine.TCGEN05, reads=operands, writes=results, cycles=self.step_cycles)
                self.commit(ctx, tiles.consumer_mbar(stage))
            tiles.pipeline.consumer_step()
            ready = tiles.try_acquire_consumer() if self.lookahead and k + 1 < self.groups else False

    def epilogue(self, w: Warp) -> None:
        self.sm100.find_tmem(w)
        ctx, scales, output = self.sm100.context(), self.input().pipeline, self.output()
        for work in self.sm100.work(w):
            for k in w.loop(self.groups, "k_iters"):
                item = work.index * self.groups + k
                with output.per_k_epilogue(scales) as stage:
                    w.read(self.a_scales[stage.input_stage_index], self.item(ctx, "a_scales_tiles", item))
                    if self.fences_reads:
                        w.fence(Fence.PROXY_ASYNC)
                    with w.lanes(ctx.cluster_size):  # as upstream: all on this CTA's barrier, whose load warp waits
                        stage.arrive_input()
                    w.read(rows(stage.output_stage.tmem.tile(), w.index), item)
                w.work(self.scale_cycles)
            for n in range(self.slices):
                self.sm100.store(w, work.index * self.slices + n, self.epilogue_cycles)
        self.sm100.finish_stores(w)
        self.sm100.leave_tmem()
