"""A ring of one load warp and eight math warps with wgmma and a TMA-store epilogue, right and with a wrong count."""

from pipesim import Protocol, Warp
from pipesim.model.ops import Engine, Fence

MATH = 8  #: warps, two warp groups
ROWS, COLUMNS, DEPTH = 128, 128, 64  #: of a tile; DEPTH is a k-step
BF16, F32 = 2, 4  #: bytes


def nine_warps(
    stages: int = 3, tiles: int = 3, k_steps: int = 8, empty_count: int = MATH, full_count: int = 1
) -> Protocol:
    """The load warp fills A and B; eight math warps multiply; one lane of each gives the stage back.

    Right with an ``empty_count`` of 8 and a ``full_count`` of 1. ``tiles`` output tiles of ``k_steps`` each; the sums
    of a tile go through shared memory to a bulk store by one lane.
    """
    p = Protocol("nine_warps")
    a, b = p.smem("a", stages, ROWS * DEPTH * BF16), p.smem("b", stages, COLUMNS * DEPTH * BF16)
    c = p.smem("c", 1, ROWS * COLUMNS * BF16)
    sums = p.registers("sums", MATH, ROWS * COLUMNS * F32 // MATH)
    full, empty = p.mbarriers("full", stages), p.mbarriers("empty", stages)

    @p.init
    def init() -> None:
        for stage in range(stages):
            full[stage].init(full_count)
            empty[stage].init(empty_count)

    @p.role("load", warps=1)
    def load(w: Warp) -> None:
        n = 0
        with w.elect_one():
            for _ in w.loop(tiles, "tiles"):
                for _ in w.loop(k_steps, "k_steps"):
                    stage, lap = n % stages, n // stages
                    empty[stage].wait(1 - lap % 2)
                    full[stage].expect_bytes(a[stage].nbytes + b[stage].nbytes)
                    w.tma_load(a[stage], full[stage], n)
                    w.tma_load(b[stage], full[stage], n)
                    n += 1

    @p.role("math", warps=MATH)
    def math(w: Warp) -> None:
        rows, n = ROWS * DEPTH * BF16 // MATH, 0
        store = ROWS * COLUMNS * BF16 // MATH
        for tile in w.loop(tiles, "tiles"):
            for _ in w.loop(k_steps, "k_steps"):
                stage, lap = n % stages, n // stages
                full[stage].wait(lap % 2)
                mine = a[stage].part(w.index * rows, rows)
                w.mma(Engine.WGMMA, reads=[(mine, n), (b[stage], n)], writes=[(sums[w.index], n)], cycles=128)
                w.commit(Engine.WGMMA)
                w.wait_group(Engine.WGMMA)
                with w.elect_one():
                    empty[stage].arrive()
                n += 1
            if k_steps:
                w.read(sums[w.index], n - 1)
            w.write(c[0].part(w.index * store, store), tile)
            w.fence(Fence.PROXY_ASYNC)
            w.bar_sync(1, MATH * 32)
            if w.index == 0:
                with w.elect_one():
                    w.async_read(Engine.BULK, c[0], tile)
                    w.commit(Engine.BULK)
                    w.wait_group(Engine.BULK)
            w.bar_sync(1, MATH * 32)

    return p
