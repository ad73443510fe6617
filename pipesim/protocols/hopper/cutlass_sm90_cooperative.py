"""CUTLASS's cooperative GEMM of Hopper: two consumer warp groups share every output tile.

Upstream: ``include/cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_cooperative.hpp``. Against ping-pong: no order
between the groups, all 256 threads give a stage back and synchronise in the epilogue, and the stores of a tile continue
while the next is multiplied: they are waited for once, at the end.
"""

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.pipelines import PipelineState
from pipesim.protocols.cutlass_epilogue import EpilogueWarp
from pipesim.protocols.hopper.cutlass_sm90 import MMA_REGISTERS, RANGES, CutlassSm90
from pipesim.protocols.limits import ranges
from pipesim.protocols.warp_group import GROUP


@ranges(**RANGES)
def cutlass_sm90_cooperative(
    tiles: int = 2,
    k_tiles: int = 8,
    stages: int = 4,
    residual: int = 0,
    cluster: int = 1,
    block_n: int = 128,
    block_k: int = 64,
    epilogue: int = 150,
) -> Protocol:
    """CUTLASS's cooperative GEMM of Hopper: two consumer warp groups multiply and store every tile together.

    ``tiles`` output tiles of 128 rows for this CTA, each of ``k_tiles`` steps of ``block_k``; ``residual`` 1: C is
    loaded too. ``cluster`` 2: two CTAs multicast B to each other. ``epilogue``: cycles per subtile of 32 columns.
    """
    p = Protocol("cutlass_sm90_cooperative", cluster=cluster)
    kernel = CutlassSm90.for_protocol(
        p, tiles=tiles, k_tiles=k_tiles, stages=stages, residual=residual,
        block_n=block_n, block_k=block_k, epilogue=epilogue, consumers=2 * GROUP,
    )  # fmt: skip
    p.init(kernel.init)
    kernel.add_producer(p)

    @p.role("consumer", warps=2 * GROUP)
    def consumer(w: Warp) -> None:
        w.setmaxnreg(MMA_REGISTERS)
        pipe, state = kernel.mainloop(w), PipelineState(stages)
        out = EpilogueWarp(kernel.epilogue, w, w.index)
        for tile in w.loop(tiles, "tiles"):
            kernel.mma(w, pipe, state, w.index, tile)
            kernel.mma_tail(w, pipe, state)
            state.advance(k_tiles)
            kernel.store(out, tile)
        if tiles:
            out.tail()

    return p
