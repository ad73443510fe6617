"""The warp-specialised GEMM of Hopper: one producer warp group, one or two consumer warp groups with wgmma.

Upstream: ``linalg/matmul/gpu/sm90/matmul_kernels.mojo`` and ``tile_loader.mojo``. Priming is by the consumers: the
producer starts at phase 0 and every consumer group arrives on every ``empty`` before its loop. The input goes through
``InputTilePipeline`` with its two views, as in Blackwell's kernels: K groups, a stage tried ahead of its wait, the
drain. In place of the MMA's commit a lane arrives when the products are finished. The CUDA twin is
``hwkernels/twins/hopper/gemm_sm90.cu``.
"""

from dataclasses import dataclass

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import BarrierStorage, SharedMemBarrier, TryResult
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence
from pipesim.pipelines import InputTilePipeline, StandardTilePayload
from pipesim.protocols.limits import ranges, require_k_group
from pipesim.protocols.warp_group import BF16, F32, GROUP, GROUP_THREADS, MMA_K, ROWS, mma_cycles, share, store

#: A launch that records nothing compares the number of every wait with those of which it notes the time. For some sizes
#: the compiler computes the address of the note after each wait (read from the machine code, NVRTC 13.0). That takes as
#: long as this number of integer instructions.
_MARK = 25


@ranges(num_consumer=(1, 2), block_n=(8, 256, 8))
def gemm_sm90(
    stages: int = 4,
    tiles: int = 2,
    k_iters: int = 16,
    k_group_size: int = 1,
    num_consumer: int = 2,
    block_n: int = 128,
    block_k: int = 64,
    tma: int = 1,
    epilogue: int = 300,
    lookahead: int = 0,
    drain: int = 0,
) -> Protocol:
    """Hopper's GEMM: a producer warp group fills A and B, one or two consumer warp groups multiply with wgmma.

    ``tiles`` output tiles for this CTA, each of ``k_iters`` steps of ``block_k``; ``k_group_size`` (1, 2 or 4) steps
    share a pair of barriers, and ``stages`` is rounded down to a multiple of it. ``tma`` 1: one lane copies; 0: all 128
    threads copy with cp.async. ``epilogue``: cycles per tile. ``lookahead`` 1: the producer tries the next stage as
    soon as it has stepped, a consumer while its product runs; each waits only if it was not ready. ``drain`` 1: the
    producer waits until everything is consumed.
    """
    require_k_group(k_group_size, stages)
    rings = stages // k_group_size

    p = Protocol("gemm_sm90")
    slots = rings * k_group_size
    gemm = _Gemm(
        a=p.smem("a", slots, ROWS * num_consumer * block_k * BF16),
        b=p.smem("b", slots, block_n * block_k * BF16),
        c=p.smem("c", num_consumer, ROWS * block_n * BF16),
        accumulator=p.registers("accumulator", num_consumer, ROWS * block_n * F32),
        storage=InputTilePipeline.BarrierArray(p, "pipe", rings),
        stages=rings,
        tiles=tiles,
        groups=-(-k_iters // k_group_size),  # steps beyond K are loaded too: zeros
        k_group_size=k_group_size,
        num_consumer=num_consumer,
        tma=bool(tma),
        step_cycles=mma_cycles(ROWS, block_n, block_k) // GROUP,
        block_n=block_n,
        block_k=block_k,
        epilogue=epilogue,
        lookahead=bool(lookahead),
        drain=bool(drain),
        mark=_MARK if block_n == 256 or (block_n == 64 and k_group_size == 1) else 0,
    )
    p.init(gemm.init)
    p.role("producer", warps=GROUP)(gemm.producer)
    p.role("consumer", warps=GROUP * num_consumer)(gemm.consumer)
    return p


@dataclass(frozen=True)
class _Gemm:
    """The kernel's memory and sizes, and its roles. ``groups``: K groups of an output tile."""

    a: TileArray
    b: TileArray
    c: TileArray
    accumulator: TileArray
    storage: BarrierStorage
    stages: int
    tiles: int
    groups: int
    k_group_size: int
    num_consumer: int
    tma: bool
    step_cycles: int
    block_n: int
    block_k: int
    epilogue: int
    lookahead: bool
    drain: bool
    mark: int

    def init(self) -> None:
        InputTilePipeline.init_barriers(
            self.storage,
            producer_arv_count=1 if self.tma else GROUP_THREADS,
            consumer_arv_count=self.num_consumer,
        )

    def _input(self) -> InputTilePipeline[StandardTilePayload]:
        """The calling warp's input pipeline, which its consumers prime."""
        tiles = InputTilePipeline(
            self.storage, StandardTilePayload(self.a, self.b), self.stages, self.k_group_size
        )  # fmt: skip
        tiles.pipeline.producer_phase = 0
        return tiles

    def producer(self, w: Warp) -> None:
        w.setmaxnreg(40 if self.num_consumer == 2 else 24)
        if self.tma and w.index:
            return
        w.compute("gemm_sm90/begin_loads")
        tiles = self._input()
        with w.elect_one() if self.tma else w.lanes(32), tiles.producer() as producer:
            for tile in w.loop(self.tiles, "tiles"):
                if self.lookahead:
                    self._load_ahead(w, tiles, tile)
                else:
                    for k in w.loop(self.groups, "k_iters"):
                        stage = producer.acquire_stage()
                        self._load(w, stage.payload(), stage.stage(), stage.barrier(), tile * self.groups + k)
                        stage.release()
            if self.drain:
                tiles.drain_producer()
                w.compute("gemm_sm90/drain", alu=64 * self.stages)  # the code of a wait for each stage, once

    def _load_ahead(self, w: Warp, tiles: InputTilePipeline[StandardTilePayload], tile: int) -> None:
        """The K loop of a tile that tries each stage as soon as the one before is loaded."""
        ready: TryResult | bool = tiles.try_acquire_producer() if self.groups else False
        for k in w.loop(self.groups, "k_iters"):
            tiles.wait_consumer_if_needed(ready)
            stage = tiles.producer_stage()
            self._load(w, tiles.payload, stage, tiles.producer_mbar(stage), tile * self.groups + k)
            tiles.pipeline.producer_step()
            if k + 1 < self.groups:
                ready = tiles.try_acquire_producer()

    def _load(self, w: Warp, payload: StandardTilePayload, stage: int, full: SharedMemBarrier, group: int) -> None:
        if self.tma:
            full.expect_bytes(payload.stage_bytes(self.k_group_size))
        for k in range(self.k_group_size):
            last = k == self.k_group_size - 1  # then the loop repeats
            a, b = payload.get_tile(stage, k, self.k_group_size)
            for work, tile in (("load_a", a), ("load_b" if last else "load_a", b)):
                if self.tma:
                    w.tma_load(tile, full, group * self.k_group_size + k)
                    w.compute(f"gemm_sm90/{work}", fresh_copies=1, shared_copies=1)
                else:
                    w.async_write(Engine.CP_ASYNC, share(tile, w.index, GROUP), group * self.k_group_size + k)
        if not self.tma:
            full.cp_async_arrive()
            full.arrive()

    def consumer(self, w: Warp) -> None:
        w.setmaxnreg(232 if self.num_consumer == 2 else 240)
        tiles = self._input()
        if w.index % GROUP == 0:
            with w.elect_one():
                for s in range(self.stages):
                    tiles.consumer_mbar(s).arrive()
                    w.compute("gemm_sm90/prime")
        with tiles.consumer():
            for tile in w.loop(self.tiles, "tiles"):
                self._sum(w, tiles, tile)
                self._store(w, tile)

    def _sum(self, w: Warp, tiles: InputTilePipeline[StandardTilePayload], tile: int) -> None:
        """The K loop of a tile. With ``lookahead`` the next stage is tried while this one's product runs."""
        pipe = tiles.pipeline
        ready: TryResult | bool = pipe.try_wait_producer() if self.lookahead and self.groups else False
        for k in w.loop(self.groups, "k_iters"):
            pipe.wait_producer_if_needed(ready)
            w.compute("gemm_sm90/take", unrecorded_alu=self.mark)
            stage = pipe.consumer_stage()
            self._multiply(w, tiles.payload, stage, tile * self.groups + k)
            pipe.consumer_step()
            if self.lookahead and k + 1 < self.groups:
                ready = pipe.try_wait_producer()
            w.wait_group(Engine.WGMMA)
            if w.index % GROUP == 0:  # the wgmma is finished in all four warps: one lane gives the stage back for them
                with w.elect_one():
                    tiles.consumer_mbar(stage).arrive()
                    # a wait is gone round next; two groups meet on the tensor cores, not regularly as they do here,
                    # and the more the shorter their products are
                    meets = (self.num_consumer - 1) * min(256 // self.block_n, 4) ** 2
                    w.compute(
                        "gemm_sm90/give_back",
                        alu=30 * self.lookahead + meets,
                        unrecorded_alu=self.mark * self.lookahead // 2,  # beside the products
                    )

    def _store(self, w: Warp, tile: int) -> None:
        """The sums of a tile go to shared memory, and from there to global memory."""
        group, warp = divmod(w.index, GROUP)
        if self.groups:
            w.read(share(self.accumulator[group], warp, GROUP), (tile + 1) * self.groups * self.k_group_size - 1)
        store(
            w,
            share(self.c[group], warp, GROUP),
            self.c[group],
            group=group,
            item=tile,
            cycles=self.epilogue,
            work="gemm_sm90",
            copies=-(-self.block_n // 64),
            alu=40 * self.block_n // 64,
            spin=self.epilogue,
        )
        w.bar_sync(1 + group, GROUP_THREADS)  # the rows may be written again

    def _multiply(self, w: Warp, payload: StandardTilePayload, stage: int, group: int) -> None:
        if not self.tma:
            w.fence(Fence.PROXY_ASYNC)  # cp.async writes through the generic proxy, wgmma reads through the other
        sums = share(self.accumulator[w.index // GROUP], w.index % GROUP, GROUP)
        for k in range(self.k_group_size):
            a, b = payload.get_tile(stage, k, self.k_group_size)
            rows, item = share(a, w.index, GROUP * self.num_consumer), group * self.k_group_size + k
            w.mma(
                Engine.WGMMA,
                reads=[(rows, item), (b, item)],
                writes=[(sums, item)],
                cycles=self.step_cycles,
            )
            w.compute(
                "gemm_sm90/multiply",
                mma=ROWS * self.block_n * self.block_k // GROUP,
                products=self.block_k // MMA_K,
                alu=6 * (self.block_k // MMA_K),
            )
        w.commit(Engine.WGMMA)
