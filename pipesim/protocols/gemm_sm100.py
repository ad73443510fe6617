"""Blackwell's warp-specialised GEMM: load, MMA, scheduler and epilogue, on one SM or a pair of them.

Upstream: ``linalg/matmul/gpu/sm100_structured/`` (default kernel). Input tiles go from the load to the MMA warp, whose
commits free them; accumulators in tensor memory go to the epilogue; tile numbers come from the scheduler, throttled by
the load warp, which at last drains the input.
"""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage, SharedMemBarrier
from pipesim.lang.tcgen05 import mma_arrive, mma_arrive_multicast
from pipesim.lang.warp import Slot, TileArray, Warp
from pipesim.model.ops import Engine
from pipesim.pipelines.modular.accum_barrier import AccumBarrier
from pipesim.pipelines.modular.input_consumer import ConsumerTiles
from pipesim.pipelines.modular.input_producer import ProducerTiles
from pipesim.pipelines.modular.input_tile import InputTilePipeline
from pipesim.pipelines.modular.output_tile import OutputTilePipeline
from pipesim.pipelines.modular.payload import StandardTilePayload, TilePayload
from pipesim.pipelines.modular.tmem import TMEM_COLUMNS, TmemAllocation
from pipesim.protocols.limits import require, require_k_group
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
)


def gemm_sm100(
    stages: int = 6,
    tiles: int = 3,
    k_iters: int = 16,
    k_group_size: int = 1,
    cta_group: int = 1,
    accumulators: int = 2,
    clc_stages: int = 2,
    block_n: int = 128,
    block_k: int = 64,
    lookahead: int = 0,
    epilogue: int = 150,
) -> Protocol:
    """Blackwell's GEMM: load, MMA, scheduler and epilogue warps; accumulators double buffered in tensor memory.

    ``tiles`` output tiles of 128 rows (a CTA) by ``block_n`` columns for this cluster of ``cta_group`` CTAs, each of
    ``k_iters`` steps of ``block_k`` elements of bf16. ``stages`` tiles of A and of B; ``k_group_size`` (1, 2 or 4) of
    them share a pair of barriers, and ``stages`` is rounded down to a multiple of it. ``accumulators``: tiles in tensor
    memory, all of them 512 columns at most. ``clc_stages``: answers of the scheduler under way, 0: a single wave of one
    tile, without scheduling. ``lookahead`` 1: the next stage is tried while this one is worked on. ``epilogue``: SM
    cycles of an epilogue warp per slice of 32 columns.
    """
    require("stages", stages, 1, 32)
    require_tiles(tiles, clc_stages)
    require("k_iters", k_iters, 0, 1 << 16)
    require_k_group(k_group_size, stages)
    require("cta_group", cta_group, 1, 2)
    require_accumulators(accumulators, block_n)
    require("block_k", block_k, 16, 128, multiple_of=16)
    require("lookahead", lookahead, 0, 1)
    require("epilogue", epilogue, 0, 1 << 24)
    rings = stages // k_group_size

    p = Protocol("gemm_sm100", cluster=cta_group)
    gemm = GemmSm100(
        a=p.smem("a", rings * k_group_size, ROWS * block_k * BF16),
        b=p.smem("b", rings * k_group_size, block_n // cta_group * block_k * BF16),
        accumulator=p.tmem("accumulator", accumulators, ROWS * block_n * FP32),
        input_mbars=InputTilePipeline.BarrierArray(p, "input", rings),
        output_mbars=OutputTilePipeline.BarrierArray(p, "output", accumulators),
        sm100=Sm100.of(p, cta_group=cta_group, tiles=tiles, clc_stages=clc_stages),
        slices=block_n // SLICE_COLUMNS,
        rings=rings,
        k_group_size=k_group_size,
        groups=-(-k_iters // k_group_size),  # steps beyond K are loaded too: zeros, which count as bytes
        lookahead=bool(lookahead),
        step_cycles=mma_cycles(ROWS, block_n, block_k),
        epilogue_cycles=epilogue,
    )
    p.init(gemm.init)
    p.role("epilogue", warps=EPILOGUE_WARPS)(gemm.epilogue)
    p.role("scheduler")(gemm.sm100.scheduler)
    p.role("load")(gemm.load)
    p.role("mma")(gemm.mma)
    return p


@dataclass(frozen=True, kw_only=True)
class GemmSm100:
    """The kernel's memory and sizes, and its roles. ``rings``: stages of the input; ``groups``: K groups of a tile."""

    a: TileArray
    b: TileArray
    accumulator: TileArray
    input_mbars: BarrierStorage
    output_mbars: BarrierStorage
    sm100: Sm100
    rings: int
    k_group_size: int
    groups: int
    lookahead: bool
    step_cycles: int
    slices: int  #: of columns that the epilogue stores one by one
    epilogue_cycles: int

    def init(self) -> None:
        """Initialise every barrier."""
        # The input is freed by one commit, which the leader's MMA warp sends to both CTAs of a pair.
        InputTilePipeline.init_barriers(self.input_mbars, 1, 1)
        OutputTilePipeline.init_barriers(self.output_mbars, 1, EPILOGUE_THREADS * self.pair)
        self.sm100.init()

    @property
    def pair(self) -> int:
        """CTAs that multiply together."""
        return self.sm100.cta_group

    def payload(self) -> TilePayload:
        """The tile arrays of the input."""
        return StandardTilePayload(self.a, self.b)

    def input(self) -> InputTilePipeline[TilePayload]:
        """The calling agent's input pipeline."""
        return InputTilePipeline(self.input_mbars, self.payload(), self.rings, self.k_group_size)

    def output(self) -> OutputTilePipeline:
        """The calling agent's pipeline of accumulators."""
        stages = self.accumulator.slots
        tmem, stride = TmemAllocation(self.accumulator), TMEM_COLUMNS // stages
        return OutputTilePipeline(self.output_mbars, tmem, (1 << self.pair) - 1, stages, stride, self.pair)

    def load(self, w: Warp) -> None:
        """The load warp: every tile's K groups, then the drain."""
        with self.input().producer() as producer:
            for work in self.sm100.work_of_load(w):
                for k, tiles in acquired(w, producer, self.groups, lookahead=self.lookahead):
                    with w.elect_one():
                        self.copy(w, tiles, work.index * self.groups + k)
            producer.drain()  # a pair's leader still commits to what was loaded last

    def copy(self, w: Warp, tiles: ProducerTiles[TilePayload], group: int) -> None:
        """Each CTA loads its part into its own memory; the leader expects, and counts, the bytes of the pair."""
        full = tiles.barrier()
        if w.cta == 0:
            full.expect_bytes(tiles.payload().stage_bytes(self.k_group_size, self.pair))
        full = full.mapa(0)
        for slot, item in self._slots(tiles.stage(), group):
            for tile in tiles.payload().arrays.values():
                w.tma_load(tile[slot], full, item)

    def _slots(self, stage: int, group: int) -> list[tuple[int, int]]:
        """The tile slots of a stage, and the items that they hold."""
        size = self.k_group_size
        return [(stage * size + j, group * size + j) for j in range(size)]

    def mma(self, w: Warp) -> None:
        """The MMA warp: multiplies in the leader, keeps step with the scheduler in its peer."""
        self.sm100.allocate(w)
        consumer, output = self.input().consumer(), self.output()
        for work in self.sm100.work(w):
            if w.cta:
                continue  # the peer's MMA warp only keeps step with the scheduler
            with output.producer() as accumulator:
                for k, tiles in acquired(w, consumer, self.groups, lookahead=self.lookahead):
                    with w.elect_one():
                        self._multiply(w, tiles, accumulator.tmem.tile(), work.index, work.index * self.groups + k)
        self.sm100.deallocate()

    def _multiply(self, w: Warp, tiles: ConsumerTiles[TilePayload], accumulator: Slot, tile: int, group: int) -> None:
        ctas = range(self.pair)
        for slot, item in self._slots(tiles.stage(), group):
            operands = [(part[slot].mapa(cta), item) for cta in ctas for part in (self.a, self.b)]
            results = [(accumulator.mapa(cta), tile) for cta in ctas]
            w.mma(Engine.TCGEN05, reads=operands, writes=results, cycles=self.step_cycles)
        self._commit(tiles.mbar())

    def _commit(self, mbar: SharedMemBarrier) -> None:
        if self.pair == 1:
            mma_arrive(mbar)
        else:
            mma_arrive_multicast(mbar, (1 << self.pair) - 1)

    def epilogue(self, w: Warp) -> None:
        """An epilogue warp: reads the accumulator slice by slice, and stores."""
        self.sm100.find_tmem(w)
        output = self.output()
        for work in self.sm100.work(w):
            with output.consumer() as stage:
                for n in range(self.slices):
                    if self.groups:
                        w.read(lanes(stage.tmem.tile(), w.index, n, self.slices), work.index)
                    if n == self.slices - 1:  # right after the last load: the MMAs of the next tile but one may begin
                        AccumBarrier.arrive(stage.pipeline, stage.index, self.pair)
                    self.sm100.store(w, work.index * self.slices + n, self.epilogue_cycles)
        self.sm100.finish_stores(w)
        self.sm100.leave_tmem()
