"""What CUTLASS's two Hopper kernels share: the producer warp group, the main loop, and how the epilogue stores.

Upstream: ``include/cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_{pingpong,cooperative}.hpp``, with the main loop
of ``include/cutlass/gemm/collective/sm90_mma_tma_gmma_ss_warpspecialized.hpp`` and the static persistent scheduler. In
CUTLASS the epilogue-load warp is number 2 of the producer's group, not 1; warp 1 is there for a dynamic scheduler.

CUTLASS's cooperative GEMM of Hopper: two consumer warp groups share every output tile.

Upstream: ``include/cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_cooperative.hpp``. Against ping-pong: no order
between the groups, all 256 threads give a stage back and synchronise in the epilogue, and the stores of a tile continue
while the next is multiplied: they are waited for once, at the end.

CUTLASS's ping-pong GEMM of Hopper: two consumer warp groups take whole output tiles in turn.

Upstream: ``include/cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_pingpong.hpp``. One group multiplies while the
other stores: an :class:`OrderedSequenceBarrier` of two stages lets only one of them be in its main loop, and only one
in its epilogue, where they share the buffers of D and even the named barrier.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pipesim.lang.intrinsics import elect
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import Slot, TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.pipelines import (
    OrderedSequenceBarrier,
    PipelineState,
    PipelineTmaAsync,
    TmaParams,
    make_producer_start_state,
)
from pipesim.pipelines.cutlass.base import ClusterShape
from pipesim.protocols.cutlass_epilogue import SUBTILE_COLUMNS, WARP, CutlassEpilogue, EpilogueWarp
from pipesim.protocols.limits import ranges
from pipesim.protocols.warp_group import BF16, GROUP, GROUP_THREADS, ROWS, mma_cycles, share

LOAD_REGISTERS, MMA_REGISTERS = 40, 232  #: of a thread, ``LoadRegisterRequirement`` and ``MmaRegisterRequirement``

RANGES = {
    "k_tiles": (1, 1 << 16),  # the main loop begins with a product, whatever K is
    "stages": (2, 32),  # a stage is given back while the next product runs
    "cluster": (1, 2),
    "block_n": (SUBTILE_COLUMNS, 256, SUBTILE_COLUMNS),
}


@dataclass(frozen=True, kw_only=True)
class CutlassSm90:
    """Memory, sizes and the producer's roles. ``consumers``: warps that share an output tile."""

    a: TileArray
    b: TileArray
    mainloop_mbars: BarrierStorage
    epilogue: CutlassEpilogue
    tiles: int
    k_tiles: int
    consumers: int
    cluster_shape: ClusterShape
    step_cycles: int

    @classmethod
    def for_protocol(
        cls, p: Protocol, *, stages: int, residual: int, block_n: int, block_k: int, epilogue: int, consumers: int,
        **trips: int,
    ) -> "CutlassSm90":  # fmt: skip
        """All that in ``p``: a warp group computes 64 rows of the output."""
        rows, row_bytes = ROWS * consumers // GROUP, block_k * BF16
        return cls(
            a=p.smem("a", stages, rows * row_bytes),
            b=p.smem("b", stages, block_n * row_bytes),
            mainloop_mbars=p.mbarriers("mainloop", 2 * stages),
            epilogue=CutlassEpilogue.for_protocol(
                p, residual=residual, rows=rows, columns=block_n, warps=consumers, cycles=epilogue
            ),
            **trips,
            consumers=consumers,
            cluster_shape=(p.cluster, 1),
            step_cycles=mma_cycles(ROWS, block_n, block_k) // GROUP,
        )

    def add_producer(self, p: Protocol) -> None:
        """The producer's warp group: the warp that loads A and B, the one that loads C, and those that do nothing."""
        p.role("load")(self.load)
        residual = self.epilogue.residual
        if residual is not None:
            p.role("epilogue_load")(self.epilogue_load)
        p.role("idle", warps=GROUP - (1 if residual is None else 2))(lambda w: w.setmaxnreg(LOAD_REGISTERS))

    def init(self) -> None:
        """Initialise the barriers of the main loop and of the epilogue."""
        PipelineTmaAsync.init_barriers(self.mainloop_mbars, self.a.slots, self._params(), self.cluster_shape)
        self.epilogue.init()

    def mainloop(self, w: Warp, leader: int = 0) -> PipelineTmaAsync:
        """The calling agent's pipeline of A and B; ``leader`` is the lane that expects the bytes."""
        return PipelineTmaAsync(self.mainloop_mbars, self.a.slots, self._params(leader), self.cluster_shape, warp=w)

    def _params(self, leader: int = 0) -> TmaParams:
        return TmaParams(self.a.nbytes + self.b.nbytes, leader, self.consumers * WARP)

    # the producer's warp group

    def load(self, w: Warp) -> None:
        """The main-load warp: every tile's K tiles; after those of the first it lets C be loaded."""
        w.setmaxnreg(LOAD_REGISTERS)
        pipe, state = self.mainloop(w, elect()), make_producer_start_state(self.a.slots)
        order = self.epilogue.order(main=True)
        for tile in w.loop(self.tiles, "tiles"):
            with w.elect_one():
                for k in w.loop(self.k_tiles, "k_tiles"):
                    pipe.producer_acquire(state)
                    self._copy(w, pipe, state, tile * self.k_tiles + k)
                    state.step()
            if tile == 0:
                order.arrive()  # whether C is loaded or not
        with w.elect_one():
            pipe.producer_tail(state)

    def _copy(self, w: Warp, pipe: PipelineTmaAsync, state: PipelineState, item: int) -> None:
        """A of this CTA, and this CTA's part of B, which all CTAs of the column get."""
        full, slot, ctas = pipe.producer_get_barrier(state), state.index(), self.cluster_shape[0]
        w.tma_load(self.a[slot], full, item)
        w.tma_load(share(self.b[slot], w.cta, ctas), full, item, cta_mask=(1 << ctas) - 1 if ctas > 1 else 0)

    def epilogue_load(self, w: Warp) -> None:
        """The epilogue-load warp: C of every tile, the first after the first tile's A and B."""
        w.setmaxnreg(LOAD_REGISTERS)
        residual = self.epilogue.residual
        assert residual is not None
        pipe, state = self.epilogue.load_pipe(residual), make_producer_start_state(residual.c.slots)
        order = self.epilogue.order(main=False)
        for tile in w.loop(self.tiles, "tiles"):
            if tile == 0:
                order.wait()
            self.epilogue.load(w, residual, pipe, state, tile)
        with w.elect_one():
            pipe.producer_tail(state)

    # the consumers

    def mma(self, w: Warp, pipe: PipelineTmaAsync, state: PipelineState, warp: int, tile: int) -> None:
        """Every product of a tile; a stage is given back when the next product is under way. The state stays."""
        read, release = state.copy(), state.copy()
        for k in w.loop(self.k_tiles, "k_tiles"):
            pipe.consumer_wait(read, pipe.consumer_try_wait(read))
            item = tile * self.k_tiles + k
            w.mma(
                Engine.WGMMA,
                reads=[(part, item) for part in self._operands(read.index(), warp)],
                cycles=self.step_cycles,
            )
            w.commit(Engine.WGMMA)
            if k:
                w.wait_group(Engine.WGMMA, 1)
                pipe.consumer_release(release)
                release.step()
            read.step()

    def _operands(self, slot: int, warp: int) -> Iterator[Slot]:
        """A warp's rows of A, and B in the parts in which it was loaded."""
        ctas = self.cluster_shape[0]
        yield share(self.a[slot], warp, self.consumers)
        yield from (share(self.b[slot], cta, ctas) for cta in range(ctas))

    def mma_tail(self, w: Warp, pipe: PipelineTmaAsync, state: PipelineState) -> None:
        """Wait for the last product and give its stage back. The state stays."""
        release = PipelineState.make_pipeline_state(state, self.k_tiles - 1)
        w.wait_group(Engine.WGMMA)
        pipe.consumer_release(release)

    def store(self, out: EpilogueWarp, tile: int) -> None:
        """One warp's part of a tile's epilogue, subtile by subtile."""
        for n in range(self.epilogue.subtiles):
            item = tile * self.epilogue.subtiles + n
            out.residual(item)
            out.convert()
            out.acquire()
            out.store(item)


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


_GROUPS = 2
_ORDERED = 2  #: stages of the order: main loop, epilogue


@ranges(**RANGES)
def cutlass_sm90_pingpong(
    tiles: int = 4,
    k_tiles: int = 8,
    stages: int = 4,
    residual: int = 0,
    cluster: int = 1,
    block_n: int = 128,
    block_k: int = 64,
    epilogue: int = 150,
) -> Protocol:
    """CUTLASS's ping-pong GEMM of Hopper: two consumer warp groups take turns at the tensor cores, tile by tile.

    ``tiles`` output tiles of 64 rows for this CTA, each of ``k_tiles`` steps of ``block_k``; ``residual`` 1: C is
    loaded too. ``cluster`` 2: two CTAs multicast B to each other. ``epilogue``: cycles per subtile of 32 columns.
    """
    p = Protocol("cutlass_sm90_pingpong", cluster=cluster)
    sm90 = CutlassSm90.for_protocol(
        p, tiles=tiles, k_tiles=k_tiles, stages=stages, residual=residual,
        block_n=block_n, block_k=block_k, epilogue=epilogue, consumers=GROUP,
    )  # fmt: skip
    kernel = Pingpong(sm90, p.mbarriers("math_wg_order", _ORDERED * _GROUPS))
    p.init(kernel.init)
    sm90.add_producer(p)
    p.role("consumer0", warps=GROUP)(lambda w: kernel.consumer(w, 0))
    p.role("consumer1", warps=GROUP)(lambda w: kernel.consumer(w, 1))
    return p


@dataclass(frozen=True)
class Pingpong:
    """What this kernel adds: the order of its two consumer warp groups."""

    sm90: CutlassSm90
    order_mbars: BarrierStorage

    def init(self) -> None:
        """Initialise every barrier."""
        self.sm90.init()
        OrderedSequenceBarrier.init_barriers(self.order_mbars, _ORDERED, _GROUPS, GROUP_THREADS)

    def consumer(self, w: Warp, group: int) -> None:
        """A warp of consumer group 0 or 1: every second tile; its states also pass the tiles of the other group."""
        w.setmaxnreg(MMA_REGISTERS)
        k_tiles = self.sm90.k_tiles
        pipe, state = self.sm90.mainloop(w), PipelineState(self.sm90.a.slots)
        order = OrderedSequenceBarrier(self.order_mbars, _ORDERED, _GROUPS, group)
        out = EpilogueWarp(self.sm90.epilogue, w, w.index)
        if group == 1:
            state.advance(k_tiles)
            out.advance()
        mine = range(group, self.sm90.tiles, _GROUPS)
        for turn in w.loop(len(mine), "tiles"):
            order.wait()
            self.sm90.mma(w, pipe, state, w.index, mine[turn])
            order.arrive()  # the last product is still under way
            self.sm90.mma_tail(w, pipe, state)
            state.advance(k_tiles * _GROUPS)
            order.wait()
            self.sm90.store(out, mine[turn])
            out.tail()  # the other group writes to the same buffers of D
            out.advance()
            order.arrive()
