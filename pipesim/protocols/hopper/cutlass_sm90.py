"""What CUTLASS's two Hopper kernels share: the producer warp group, the main loop, and how the epilogue stores.

Upstream: ``include/cutlass/gemm/kernel/sm90_gemm_tma_warpspecialized_{pingpong,cooperative}.hpp``, with the main loop
of ``include/cutlass/gemm/collective/sm90_mma_tma_gmma_ss_warpspecialized.hpp`` and the static persistent scheduler. In
CUTLASS the epilogue-load warp is number 2 of the producer's group, not 1; warp 1 is there for a dynamic scheduler.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from pipesim.lang.intrinsics import elect
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage
from pipesim.lang.tiles import Slot, TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine
from pipesim.pipelines import PipelineState, PipelineTmaAsync, TmaParams, make_producer_start_state
from pipesim.pipelines.cutlass.base import ClusterShape
from pipesim.protocols.cutlass_epilogue import SUBTILE_COLUMNS, WARP, CutlassEpilogue, EpilogueWarp
from pipesim.protocols.warp_group import BF16, GROUP, ROWS, mma_cycles, share

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
        cls, p: Protocol, *, tiles: int, k_tiles: int, stages: int, residual: int, block_n: int, block_k: int,
        epilogue: int, consumers: int,
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
            tiles=tiles,
            k_tiles=k_tiles,
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
