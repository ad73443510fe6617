"""Blackwell's GEMM with a scale factor for each block of A and of B (MXFP8, NVFP4), which the tensor cores apply.

Upstream: ``linalg/matmul/gpu/sm100_structured/block_scaled/block_scaled_matmul_kernel.mojo``, with
``MmaOpSM100_BlockScaled_SS`` of ``linalg/arch/sm100/mma.mojo``. The scales of A and B (SFA, SFB) travel with the tiles,
on the same barriers, without multicast; the MMA warp copies them into tensor memory (``tcgen05.cp``) right before the
products that read them there.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

from pipesim.errors import ParameterError
from pipesim.lang.protocol import Protocol
from pipesim.lang.tiles import Slot, TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.pipelines.modular.input_tile import BlockScaledTilePayload, ConsumerTiles, InputTilePipeline, TilePayload
from pipesim.pipelines.modular.kernel_context import KernelContext
from pipesim.pipelines.modular.output_tile import TMEM_COLUMN_BYTES, TMEM_COLUMNS, OutputTilePipeline
from pipesim.protocols.blackwell.gemm_sm100 import GemmSm100
from pipesim.protocols.blackwell.sm100 import (
    FP32,
    ROWS,
    SLICE_COLUMNS,
    Sm100,
    mma_cycles,
    require_accumulators,
    require_cluster,
    require_tiles,
)
from pipesim.protocols.limits import ranges
from pipesim.protocols.warp_group import share

_STEP_BYTES = 128  #: of a row of A or B in a step of K
_ATOM_ROWS = 128  #: that one tile of scale factors covers
_ATOM_BYTES = 4 * _ATOM_ROWS  #: of it: 4 scales a row
_ATOM_COLUMNS = 4  #: of tensor memory that it takes


@ranges(clc_stages=(0, 8))
def gemm_sm100_block_scaled(
    stages: int = 4,
    tiles: int = 3,
    k_iters: int = 8,
    nvfp4: int = 0,
    cta_group: int = 1,
    accumulators: int = 2,
    clc_stages: int = 2,
    block_n: int = 128,
    epilogue: int = 150,
    cluster_m: int = 0,
    cluster_n: int = 1,
) -> Protocol:
    """Blackwell's block-scaled GEMM: tiles travel with their scales, which the MMA warp copies into tensor memory.

    ``tiles`` output tiles of 128 rows by ``block_n`` columns for every CTA of this cluster of ``cluster_m`` (0: as
    ``cta_group``) by ``cluster_n`` CTAs; ``cta_group`` of them multiply together, along M. Each tile takes ``k_iters``
    steps of 128 bytes of K. ``stages`` tiles of A, of B and of their scales: MXFP8 with a scale for 32 elements, or
    with ``nvfp4`` 1 NVFP4 with a scale for 16, copied part by part. ``accumulators``: tiles in tensor memory, with the
    scales of all stages 512 columns at most. ``clc_stages``: answers of the scheduler under way, 0: a single wave of
    one tile. ``epilogue``: SM cycles of an epilogue warp per slice of 32 columns.
    """
    require_tiles(tiles, clc_stages)
    cluster = require_cluster(cluster_m, cluster_n, cta_group, block_n)
    require_block_scaled(stages, nvfp4, accumulators, block_n)

    p = Protocol("gemm_sm100_block_scaled", cluster=cluster[0] * cluster[1])
    BlockScaled.for_protocol(
        p,
        BlockScaledTiles.for_protocol(p, stages, nvfp4, accumulators, block_n, cta_group),
        lambda: Sm100.for_protocol(p, cta_group=cta_group, tiles=tiles, clc_stages=clc_stages, cluster=cluster),
        k_iters=k_iters,
        block_n=block_n,
        epilogue=epilogue,
    ).roles(p)
    return p


def require_block_scaled(stages: int, nvfp4: int, accumulators: int, block_n: int) -> None:
    """Raise ParameterError unless accumulators and the scales of all stages fit into tensor memory."""
    require_accumulators(accumulators, block_n)
    scales = _ATOM_COLUMNS * _parts(nvfp4) * (1 + _atoms(block_n))
    if accumulators * block_n + stages * scales > TMEM_COLUMNS:
        raise ParameterError(
            f"accumulators = {accumulators} with block_n = {block_n} and the scales of stages = {stages} need "
            f"{accumulators * block_n + stages * scales} columns",
            cause=f"an SM's tensor memory has {TMEM_COLUMNS} columns",
            correction="use fewer accumulators or stages, or a smaller block_n",
        )


def _parts(nvfp4: int) -> int:
    """Tiles of scale factors that cover the K of a step."""
    return 4 if nvfp4 else 1


def _atoms(block_n: int) -> int:
    """Tiles of scale factors that cover the columns of an output tile: SFB is whole in each CTA of a pair."""
    return -(-block_n // _ATOM_ROWS)


@dataclass(frozen=True)
class BlockScaledTiles:
    """The tiles of the kernel: operands and scales in shared memory; accumulators and scales in tensor memory."""

    a: TileArray
    b: TileArray
    sfa: TileArray
    sfb: TileArray
    accumulator: TileArray
    sfa_tmem: TileArray
    sfb_tmem: TileArray
    parts: int  #: of a step's scales, each copied right before the products that read it

    @classmethod
    def for_protocol(
        cls, p: Protocol, stages: int, nvfp4: int, accumulators: int, block_n: int, cta_group: int
    ) -> "BlockScaledTiles":
        """The tiles, in ``p``."""
        parts, atoms = _parts(nvfp4), _atoms(block_n)
        columns = _ATOM_COLUMNS * TMEM_COLUMN_BYTES * parts
        return cls(
            a=p.smem("a", stages, ROWS * _STEP_BYTES),
            b=p.smem("b", stages, block_n // cta_group * _STEP_BYTES),
            sfa=p.smem("sfa", stages, _ATOM_BYTES * parts),
            sfb=p.smem("sfb", stages, _ATOM_BYTES * parts * atoms),
            accumulator=p.tmem("accumulator", accumulators, ROWS * block_n * FP32),
            sfa_tmem=p.tmem("sfa_tmem", stages, columns),
            sfb_tmem=p.tmem("sfb_tmem", stages, columns * atoms),
            parts=parts,
        )

    def step_cycles(self, block_n: int) -> int:
        """Cycles of the tensor cores for a step: FP8 is twice as fast as bf16, FP4 four times with twice the K."""
        return mma_cycles(ROWS, block_n, _STEP_BYTES) // 2


@dataclass(frozen=True, kw_only=True)
class BlockScaled(GemmSm100):
    """The kernel with the scales of A and B in its input."""

    tiles: BlockScaledTiles

    @classmethod
    def for_protocol(
        cls,
        p: Protocol,
        tiles: BlockScaledTiles,
        sm100: Callable[[], Sm100],
        *,
        k_iters: int,
        block_n: int,
        epilogue: int,
        lookahead: bool = False,
    ) -> Self:
        """The kernel on these tiles, with its barriers in ``p``; those that ``sm100`` makes come after the others."""
        stages = tiles.a.slots
        return cls(
            tiles=tiles,
            a=tiles.a,
            b=tiles.b,
            accumulator=tiles.accumulator,
            input_mbars=InputTilePipeline.BarrierArray(p, "input", stages),
            output_mbars=OutputTilePipeline.BarrierArray(p, "output", tiles.accumulator.slots),
            sm100=sm100(),
            rings=stages,
            groups=k_iters,
            lookahead=lookahead,
            step_cycles=tiles.step_cycles(block_n),
            slices=block_n // SLICE_COLUMNS,
            epilogue_cycles=epilogue,
        )

    def payload(self) -> TilePayload:
        """The tile arrays of the input, with the scales."""
        return BlockScaledTilePayload(self.a, self.b, self.tiles.sfa, self.tiles.sfb)

    def slice(self, ctx: KernelContext, name: str) -> tuple[int, int, int]:
        """As of the default kernel; scales are not multicast."""
        if name in ("sfa_tiles", "sfb_tiles"):  # each CTA loads all that its tile needs, for itself
            return 0, 1, 1 << ctx.block_rank_in_cluster
        return super().slice(ctx, name)

    def item(self, ctx: KernelContext, name: str, step: int) -> int:
        """The number of a tile of this array in this step."""
        if name == "sfb_tiles":  # of all columns, in both CTAs of a pair
            return step * ctx.cluster_n + ctx.rank_n
        return super().item(ctx, name, step)

    def stage_stride_cols(self) -> int:
        """The columns of an accumulator: the scales come after the last."""
        return self.accumulator.nbytes // TMEM_COLUMN_BYTES

    # roles: those of the default kernel, but that the CTAs of a pair end together

    def epilogue(self, w: Warp) -> None:
        """An epilogue warp."""
        super().epilogue(w)
        self.leave(w)

    def scheduler(self, w: Warp) -> None:
        """The scheduler warp."""
        super().scheduler(w)
        self.leave(w)

    def load(self, w: Warp) -> None:
        """The load warp."""
        super().load(w)
        self.leave(w)

    def mma(self, w: Warp) -> None:
        """The MMA warp."""
        super().mma(w)
        self.leave(w)

    def leave(self, w: Warp) -> None:
        """The CTAs of a pair end together, although the barriers ask for no more than the default kernel's."""
        if self.pair == 2:
            w.cluster_sync()

    def follow(self, output: OutputTilePipeline) -> None:
        """Without a scheduler the peer's MMA warp waits for the tile's products before it gives up tensor memory."""
        if not self.sm100.clc.num_stages:
            output.pipeline.wait_producer()

    def _multiply(self, w: Warp, tiles: ConsumerTiles[TilePayload], accumulator: Slot, tile: int, group: int) -> None:
        ctx, slot = self.sm100.context(), tiles.stage()
        results = [(accumulator.mapa(cta), tile) for cta in ctx.group_ranks]
        for part in range(self.tiles.parts):
            scales = self._copy_scales(w, ctx, slot, group, part)
            operands = [*self.operands(ctx, slot, group), *scales]
            w.mma(Engine.TCGEN05, reads=operands, writes=results, cycles=self.step_cycles // self.tiles.parts)
        self.commit(ctx, tiles.mbar())

    def _copy_scales(self, w: Warp, ctx: KernelContext, slot: int, step: int, part: int) -> list[tuple[Slot, int]]:
        """``tcgen05.cp`` of a part of a step's scales, in every CTA of the group; what the products then read."""
        copied = []
        for name, source, there in (
            ("sfa_tiles", self.tiles.sfa, self.tiles.sfa_tmem),
            ("sfb_tiles", self.tiles.sfb, self.tiles.sfb_tmem),
        ):
            reads, writes = [], []
            for rank in ctx.group_ranks:
                item = self.item(replace(ctx, block_rank_in_cluster=rank), name, step)
                reads.append((share(source[slot], part, self.tiles.parts).mapa(rank), item))
                writes.append((share(there[slot], part, self.tiles.parts).mapa(rank), item))
            w.mma(Engine.TCGEN05, reads=reads, writes=writes)
            copied += writes
        return copied
