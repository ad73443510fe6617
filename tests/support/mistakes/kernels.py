"""Kernels typical of ``cp.async`` and of named barriers, right as they are: what mistakes of one CTA are made in."""

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence

TILE, STAGES = 64, 2


def grouped_ring() -> Protocol:
    """The producer signals a tile when the copies of the next are under way; wgmmas read the tiles."""
    stages, tiles = 3, 7
    p = Protocol("grouped_ring")
    tile = p.smem("tile", stages, TILE)
    full, empty = p.mbarriers("full", stages, 32), p.mbarriers("empty", stages, 4)

    @p.role("producer")
    def producer(w: Warp) -> None:
        def signal(i: int, left: int) -> None:
            w.wait_group(Engine.CP_ASYNC, left)
            w.fence(Fence.PROXY_ASYNC)
            full[i % stages].arrive()

        for i in range(tiles):
            empty[i % stages].wait(i // stages & 1 ^ 1)
            w.async_write(Engine.CP_ASYNC, tile[i % stages], i)
            w.commit(Engine.CP_ASYNC)
            if i:
                signal(i - 1, 1)
        signal(tiles - 1, 0)

    @p.role("idle", warps=3)
    def idle(w: Warp) -> None:
        w.work(1)

    @p.role("math", warps=4)
    def math(w: Warp) -> None:
        for i in range(tiles):
            full[i % stages].wait(i // stages & 1)
            w.mma(Engine.WGMMA, reads=[(tile[i % stages], i)])
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA, 0)
            with w.elect_one():
                empty[i % stages].arrive()

    return p


def multistage() -> Protocol:
    """The loop of Ampere kernels: every warp copies a part two tiles ahead, and reads all of the tile that has come."""
    stages, tiles, part = 3, 7, TILE // 4
    p = Protocol("multistage")
    tile = p.smem("tile", stages, TILE)

    @p.role("warp", warps=4)
    def warp(w: Warp) -> None:
        def copy(i: int) -> None:
            if i < tiles:
                w.async_write(Engine.CP_ASYNC, tile[i % stages].part(w.index * part, part), i)
            w.commit(Engine.CP_ASYNC)

        for i in range(stages - 1):
            copy(i)
        for i in range(tiles):
            w.wait_group(Engine.CP_ASYNC, 1)
            w.sync_threads()
            w.read(tile[i % stages], i)
            copy(i + stages - 1)

    return p


def split_named() -> Protocol:
    """A writer and two readers, two buffers: each pair of named barriers has one side that syncs, one that arrives."""
    tiles, full, empty = 5, 1, 3  # the first of two named barriers each
    p = Protocol("split_named")
    tile = p.smem("tile", STAGES, TILE)

    @p.role("writer")
    def writer(w: Warp) -> None:
        for i in range(tiles):
            w.bar_sync(empty + i % STAGES, 96)
            w.write(tile[i % STAGES], i)
            w.bar_arrive(full + i % STAGES, 96)

    @p.role("reader", warps=2)
    def reader(w: Warp) -> None:
        for stage in range(STAGES):
            w.bar_arrive(empty + stage, 96)  # both are free
        for i in range(tiles):
            w.bar_sync(full + i % STAGES, 96)  # filled
            w.read(tile[i % STAGES], i)
            if i + STAGES < tiles:
                w.bar_arrive(empty + i % STAGES, 96)
            _ = "after the arrive"

    return p
