"""Kernels of clusters of two CTAs, right as they are."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Order, Scope

TILE, STAGES = 64, 2


def multicast_ring() -> Protocol:
    """Each CTA of a pair loads a half of every tile for both, when both have given the stage back."""
    tiles, half = 5, TILE // 2
    p = Protocol("multicast_ring", cluster=2)
    tile = p.smem("tile", STAGES, TILE)
    full, empty = p.mbarriers("full", STAGES, 1), p.mbarriers("empty", STAGES, 2)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                stage, lap = i % STAGES, i // STAGES
                empty[stage].wait(lap & 1 ^ 1)
                full[stage].expect_bytes(TILE)
                w.tma_load(tile[stage].part(w.cta * half, half), full[stage], i, cta_mask=0b11)
        w.cluster_sync()

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            stage, lap = i % STAGES, i // STAGES
            full[stage].wait(lap & 1)
            w.read(tile[stage], i)
            with w.elect_one():
                for rank in range(2):
                    empty[stage].arrive_cluster(rank)
        w.cluster_sync()

    return p


def push() -> Protocol:
    """CTA 0 reads what warps of both CTAs have written into its memory, once."""
    p = Protocol("push", cluster=2)
    tile = p.smem("tile", 2, TILE)
    near, far = p.mbarriers("near", 1, count=1), p.mbarriers("far", 1, 1)

    @p.role("writer")
    def writer(w: Warp) -> None:
        w.write(tile[w.cta].mapa(0), 7 + w.cta)
        with w.elect_one():
            (near if w.cta == 0 else far)[0].arrive_cluster(0, order=Order.RELEASE, scope=Scope.CLUSTER)
        w.cluster_sync()

    @p.role("reader")
    def reader(w: Warp) -> None:
        if w.cta == 0:
            near[0].wait_acquire(0, Scope.CLUSTER)
            w.read(tile[0], 7)
            far[0].wait_acquire(0, Scope.CLUSTER)
            w.read(tile[1], 8)
        w.cluster_sync()

    return p


def row_leader() -> Protocol:
    """CTA 0 multicasts A for both CTAs; each loads its own B."""
    tiles = 5
    p = Protocol("row_leader", cluster=2)
    a, b = p.smem("a", STAGES, 64), p.smem("b", STAGES, 32)
    full, a_free = p.mbarriers("full", STAGES, 1), p.mbarriers("a_free", STAGES, 2)
    b_free = p.mbarriers("b_free", STAGES, 1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in range(tiles):
                s, ph = i % STAGES, i // STAGES & 1
                b_free[s].wait(ph ^ 1)
                full[s].expect_bytes(96)
                if w.cta == 0:
                    a_free[s].wait_acquire(ph ^ 1, Scope.CLUSTER)
                    w.tma_load(a[s], full[s], i, cta_mask=3)
                w.tma_load(b[s], full[s], i)
        w.cluster_sync()

    @p.role("math")
    def math(w: Warp) -> None:
        for i in range(tiles):
            s, ph = i % STAGES, i // STAGES & 1
            full[s].wait(ph)
            w.read(a[s], i)
            w.read(b[s], i)
            with w.elect_one():
                b_free[s].arrive()
                a_free[s].arrive_cluster(0, order=Order.RELEASE, scope=Scope.CLUSTER)
        w.cluster_sync()

    return p
