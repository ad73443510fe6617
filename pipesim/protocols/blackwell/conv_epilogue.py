"""Convolution with a residual: a fourth load warp brings the epilogue's source tiles, ordered after the main loads.

Upstream: ``nn/conv/gpu/nvidia/sm100/conv2d_fprop_kernel.mojo`` with ``epilogue_load_pipeline.mojo``; warp 7 is the
epilogue-load warp. The load-order barrier has no back-pressure: with an arrival for **every** tile, as upstream makes
it, two may complete before one wait is tested, which then misses both. CUTLASS orders the first tile only.
"""

from pipesim.lang.protocol import Protocol
from pipesim.pipelines.modular.input_tile import InputTilePipeline
from pipesim.pipelines.modular.output_tile import OutputTilePipeline
from pipesim.protocols.blackwell.epilogue_load import EpilogueLoad, LoadOrder
from pipesim.protocols.blackwell.gemm_sm100 import GemmSm100
from pipesim.protocols.blackwell.sm100 import (
    BF16,
    FP32,
    ROWS,
    SLICE_COLUMNS,
    Sm100,
    mma_cycles,
    require_accumulators,
    require_tiles,
)
from pipesim.protocols.limits import ranges


@ranges(clc_stages=(0, 8))
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
    fence: int = 0,
) -> Protocol:
    """Convolution with a residual: an epilogue-load warp, ordered by a barrier that can be missed, feeds the epilogue.

    ``tiles`` output tiles of 128 rows by ``block_n`` columns for this CTA, each of ``k_iters`` steps of ``block_k``
    elements of bf16. ``stages`` tiles of A and of B; ``epi_stages`` slices of the source, of 32 columns each.
    ``accumulators``: tiles in tensor memory, all of them 512 columns at most. ``clc_stages``: answers of the scheduler
    under way, 0: a single wave of one tile. ``residual`` 0: nothing is loaded for the epilogue, the order is waited for
    nevertheless. ``first_tile_only`` 1: CUTLASS's order, which cannot be missed, not upstream's. ``epilogue``: SM
    cycles of an epilogue warp per slice. ``fence`` 1: it fences its reads of the source before it frees their stage, as
    sm_100 needs; 0: it does not, as upstream.
    """
    require_tiles(tiles, clc_stages)
    require_accumulators(accumulators, block_n)

    slices = block_n // SLICE_COLUMNS
    order = LoadOrder.FIRST_TILE if first_tile_only else LoadOrder.EVERY_TILE

    p = Protocol("conv_epilogue")
    a, b = p.smem("a", stages, ROWS * block_k * BF16), p.smem("b", stages, block_n * block_k * BF16)
    source = p.smem("source", epi_stages, ROWS * SLICE_COLUMNS * BF16)
    conv = GemmSm100(
        a=a,
        b=b,
        accumulator=p.tmem("accumulator", accumulators, ROWS * block_n * FP32),
        input_mbars=InputTilePipeline.BarrierArray(p, "input", stages),
        output_mbars=OutputTilePipeline.BarrierArray(p, "output", accumulators),
        source=EpilogueLoad.for_protocol(
            p,
            source,
            order,
            prologue=min(stages, k_iters),
            slices=slices,
            residual=bool(residual),
            fences_reads=bool(fence),
        ),
        sm100=Sm100.for_protocol(p, cta_group=1, tiles=tiles, clc_stages=clc_stages, epilogue_load=True),
        rings=stages,
        groups=k_iters,
        step_cycles=mma_cycles(ROWS, block_n, block_k),
        slices=slices,
        epilogue_cycles=epilogue,
    )
    conv.roles(p)
    return p
