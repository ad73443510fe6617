"""Blackwell's warp-specialised GEMM: load, MMA, scheduler and epilogue, on a cluster of SMs or of pairs of them.

Upstream: ``linalg/matmul/gpu/sm100_structured/`` (default kernel). Input tiles go from the load to the MMA warp, whose
commits free them; accumulators in tensor memory go to the epilogue; tile numbers come from the scheduler, throttled by
the load warp, which at last drains the input. In a cluster the CTAs of a row load a slice each of their tile of A,
those of a column of B, multicast to all that share it; a stage is free when every MMA warp that reads what this CTA
loaded has committed.
"""

from dataclasses import dataclass, replace

from pipesim.lang.intrinsics import mma_arrive, mma_arrive_multicast
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage, SharedMemBarrier
from pipesim.lang.tiles import Slot, TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.pipelines.modular.input_tile import (
    ConsumerTiles,
    InputTilePipeline,
    ProducerTiles,
    StandardTilePayload,
    TilePayload,
)
from pipesim.pipelines.modular.kernel_context import (
    KernelContext,
    compute_accum_barrier_counts,
    compute_input_consumer_count,
)
from pipesim.pipelines.modular.output_tile import TMEM_COLUMNS, AccumBarrier, OutputTilePipeline, TmemAllocation
from pipesim.protocols.blackwell.epilogue_load import EpilogueLoad, LoadOrder
from pipesim.protocols.blackwell.sm100 import (
    BF16,
    EPILOGUE_THREADS,
    EPILOGUE_WARPS,
    FP32,
    ROWS,
    SLICE_COLUMNS,
    Sm100,
    acquired_stages,
    lanes,
    mma_cycles,
    require_accumulators,
    require_cluster,
    require_tiles,
)
from pipesim.protocols.limits import ranges, require, require_k_group
from pipesim.protocols.warp_group import share


@ranges(clc_stages=(0, 8))
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
    cluster_m: int = 0,
    cluster_n: int = 1,
    epilogue_load: int = 0,
    load_order: int = 0,
    epi_stages: int = 2,
    fence: int = 0,
) -> Protocol:
    """Blackwell's GEMM: load, MMA, scheduler and epilogue warps; accumulators double buffered in tensor memory.

    ``tiles`` output tiles of 128 rows by ``block_n`` columns for every CTA of this cluster of ``cluster_m`` (0: as
    ``cta_group``) by ``cluster_n`` CTAs; ``cta_group`` of them multiply together, along M. Each tile takes ``k_iters``
    steps of ``block_k`` elements of bf16. ``stages`` tiles of A and of B; ``k_group_size`` (1, 2 or 4) of them share a
    pair of barriers, and ``stages`` is rounded down to a multiple of it. ``accumulators``: tiles in tensor memory, all
    of them 512 columns at most. ``clc_stages``: answers of the scheduler under way, 0: a single wave of one tile,
    without scheduling. ``lookahead`` 1: the next stage is tried while this one is worked on. ``epilogue``: SM cycles of
    an epilogue warp per slice of 32 columns. ``epilogue_load`` 1: warp 7 loads a source tile through ``epi_stages``
    slices, which the epilogue adds; ``load_order`` 0: as upstream whenever a slice is free, 1: after the first loads of
    A and B of every tile (upstream's convolution), 2: of the first tile (CUTLASS). ``fence`` 1: the epilogue fences its
    reads of the source before it frees a slice, as sm_100 needs; 0: it does not, as upstream, and is refuted.
    """
    require_tiles(tiles, clc_stages)
    require_accumulators(accumulators, block_n)
    require_k_group(k_group_size, stages)
    cluster = require_cluster(cluster_m, cluster_n, cta_group, block_n)
    rings = stages // k_group_size
    groups = -(-k_iters // k_group_size)  # steps beyond K are loaded too: zeros, which count as bytes
    slices, loads = block_n // SLICE_COLUMNS, bool(epilogue_load)
    p = Protocol("gemm_sm100", cluster=cluster[0] * cluster[1])
    gemm = GemmSm100(
        a=p.smem("a", rings * k_group_size, ROWS * block_k * BF16),
        b=p.smem("b", rings * k_group_size, block_n // cta_group * block_k * BF16),
        accumulator=p.tmem("accumulator", accumulators, ROWS * block_n * FP32),
        input_mbars=InputTilePipeline.BarrierArray(p, "input", rings),
        output_mbars=OutputTilePipeline.BarrierArray(p, "output", accumulators),
        sm100=Sm100.for_protocol(
            p, cta_group=cta_group, tiles=tiles, clc_stages=clc_stages, epilogue_load=loads, cluster=cluster
        ),
        source=_source(
            p, epilogue_load, load_order, epi_stages, prologue=min(rings, groups), slices=slices, fence=fence
        ),
        slices=slices,
        rings=rings,
        k_group_size=k_group_size,
        groups=groups,
        lookahead=bool(lookahead),
        step_cycles=mma_cycles(ROWS, block_n, block_k),
        epilogue_cycles=epilogue,
    )
    gemm.roles(p)
    return p


def _source(
    p: Protocol, epilogue_load: int, load_order: int, stages: int, *, prologue: int, slices: int, fence: int
) -> EpilogueLoad | None:
    """What the epilogue adds: its slots and barriers, in ``p``; None without an epilogue-load warp."""
    require("load_order", load_order, 0, 2 if epilogue_load else 0)
    require("fence", fence, 0, 1 if epilogue_load else 0)
    if not epilogue_load:
        return None
    slots = p.smem("source", stages, ROWS * SLICE_COLUMNS * BF16)
    return EpilogueLoad.for_protocol(
        p, slots, LoadOrder(load_order), prologue=prologue, slices=slices, fences_reads=bool(fence)
    )


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
    k_group_size: int = 1
    groups: int
    lookahead: bool = False
    step_cycles: int
    slices: int  #: of columns that the epilogue stores one by one
    epilogue_cycles: int
    source: EpilogueLoad | None = None  #: what the epilogue adds

    def roles(self, p: Protocol) -> None:
        """Give ``p`` the kernel's roles, warp by warp."""
        p.init(self.init)
        p.role("epilogue", warps=EPILOGUE_WARPS)(self.epilogue)
        p.role("scheduler")(self.scheduler)
        p.role("load")(self.load)
        p.role("mma")(self.mma)
        if self.source is not None:
            p.role("epilogue_load")(self.epilogue_load)

    def init(self) -> None:
        """Initialise every barrier."""
        InputTilePipeline.init_barriers(self.input_mbars, 1, self.input_consumers())
        OutputTilePipeline.init_barriers(self.output_mbars, *compute_accum_barrier_counts(EPILOGUE_THREADS, self.pair))
        if self.source is not None:
            self.source.init()
        self.sm100.init()

    def input_consumers(self) -> int:
        """Arrivals that free a stage of the input."""
        return compute_input_consumer_count(*self.sm100.cluster, self.pair)

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
        stages, tmem, mask = (
            self.accumulator.slots,
            TmemAllocation(self.accumulator),
            self.sm100.context().mma_complete_mask,
        )
        return OutputTilePipeline(self.output_mbars, tmem, mask, stages, self.stage_stride_cols(), self.pair)

    def stage_stride_cols(self) -> int:
        """Columns of tensor memory from one accumulator to the next."""
        return TMEM_COLUMNS // self.accumulator.slots

    def scheduler(self, w: Warp) -> None:
        """The scheduler warp."""
        self.sm100.scheduler(w)

    def load(self, w: Warp) -> None:
        """The load warp: every tile's K groups, then the drain."""
        source = self.source
        order = source.order_side() if source is not None else None
        with self.input().producer() as producer:
            for work in self.sm100.work_of_load(w):
                self.begin_tile(w, work.index)
                if source is not None:
                    source.finish_groups(w, order, work.index, 0)
                for k, tiles in acquired_stages(w, producer, self.groups, lookahead=self.lookahead):
                    with w.elect_one():
                        self.copy(w, tiles, work.index * self.groups + k)
                    if source is not None:
                        source.finish_groups(w, order, work.index, k + 1)
            producer.drain()  # the MMA warps still commit to what was loaded last, those of other CTAs among them

    def begin_tile(self, w: Warp, tile: int) -> None:
        """What the load warp does before the loads of a tile: nothing here."""

    def copy(self, w: Warp, tiles: ProducerTiles[TilePayload], group: int) -> None:
        """Each CTA multicasts its slices; the leader of a pair expects, and counts, the bytes that reach the pair."""
        ctx, full = self.sm100.context(), tiles.barrier()
        if ctx.elect_one_cta:
            full.expect_bytes(tiles.payload().stage_bytes(self.k_group_size, self.pair))
        full = full.mapa(ctx.leader_rank)
        for slot, item in self._slots(tiles.stage(), group):
            for name, tile in tiles.payload().arrays.items():
                index, slices, mask = self.slice(ctx, name)
                targets = mask if mask != 1 << w.cta else 0
                w.tma_load(share(tile[slot], index, slices), full, self.item(ctx, name, item), cta_mask=targets)

    def slice(self, ctx: KernelContext, name: str) -> tuple[int, int, int]:
        """Which slice of a tile a CTA loads, of how many, and the CTAs where it lands."""
        _, b, a = ctx.peer_cta_coord
        if name == "b_tiles":
            return b, ctx.b_slices, ctx.b_multicast_mask
        return a, ctx.a_slices, ctx.a_multicast_mask

    def item(self, ctx: KernelContext, name: str, step: int) -> int:
        """The number of the tile of A or B in this step: every row of the cluster has its own A, every column its B."""
        if name == "b_tiles":
            return (step * ctx.cluster_n + ctx.rank_n) * self.pair + ctx.peer_cta_coord[0]
        return step * ctx.cluster_m + ctx.rank_m

    def _slots(self, stage: int, group: int) -> list[tuple[int, int]]:
        """The tile slots of a stage, and the steps that they hold."""
        size = self.k_group_size
        return [(stage * size + j, group * size + j) for j in range(size)]

    def epilogue_load(self, w: Warp) -> None:
        """The epilogue-load warp."""
        if self.source is not None:
            self.source.load(w, self.sm100)

    def mma(self, w: Warp) -> None:
        """The MMA warp: multiplies in the leader, keeps step with the scheduler in its peer."""
        self.sm100.allocate(w)
        consumer, output = self.input().consumer(), self.output()
        for work in self.sm100.work_of_mma(w):
            if not self.sm100.context().elect_one_cta:
                self.follow(output)
                continue  # the peer's MMA warp only keeps step with the scheduler
            with output.producer() as accumulator:
                for k, tiles in acquired_stages(w, consumer, self.groups, lookahead=self.lookahead):
                    with w.elect_one():
                        self._multiply(w, tiles, accumulator.tmem.tile(), work.index, work.index * self.groups + k)
        self.sm100.deallocate()

    def follow(self, output: OutputTilePipeline) -> None:
        """What the peer's MMA warp does for each tile, beside keeping step: nothing here."""

    def _multiply(self, w: Warp, tiles: ConsumerTiles[TilePayload], accumulator: Slot, tile: int, group: int) -> None:
        ctx = self.sm100.context()
        for slot, step in self._slots(tiles.stage(), group):
            results = [(accumulator.mapa(cta), tile) for cta in ctx.group_ranks]
            w.mma(Engine.TCGEN05, reads=self.operands(ctx, slot, step), writes=results, cycles=self.step_cycles)
        self.commit(ctx, tiles.mbar())

    def operands(self, ctx: KernelContext, slot: int, step: int) -> list[tuple[Slot, int]]:
        """What an MMA reads: the tiles of every CTA of its group, with the items that they hold."""
        group = [replace(ctx, block_rank_in_cluster=rank) for rank in ctx.group_ranks]
        return [
            (part[slot].mapa(peer.block_rank_in_cluster), self.item(peer, name, step))
            for peer in group
            for name, part in (("a_tiles", self.a), ("b_tiles", self.b))
        ]

    def commit(self, ctx: KernelContext, mbar: SharedMemBarrier) -> None:
        """Free a stage of the input, in every CTA that loads for this one."""
        if ctx.cluster_size == 1:
            mma_arrive(mbar)
        else:
            mma_arrive_multicast(mbar, ctx.input_commit_mask)

    def epilogue(self, w: Warp) -> None:
        """An epilogue warp: reads the accumulator slice by slice, and stores."""
        self.sm100.find_tmem(w)
        output, source = self.output(), self.source
        residual = source.pipeline() if source is not None else None
        for work in self.sm100.work(w):
            with output.consumer() as stage:
                for n in range(self.slices):
                    if self.groups:
                        w.read(lanes(stage.tmem.tile(), w.index, n, self.slices), work.index)
                    if n == self.slices - 1:  # right after the last load: the MMAs of the next tile but one may begin
                        AccumBarrier.arrive(stage.pipeline, stage.index, self.pair)
                    if source is not None and residual is not None:
                        source.add(w, residual, work.index * self.slices + n)
                    self.sm100.store(w, work.index * self.slices + n, self.epilogue_cycles)
        self.sm100.finish_stores(w)
        self.sm100.leave_tmem()
