"""Smallest protocols whose accesses go wrong, or whose data is not ordered: wrong, and with ``right=1`` corrected."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence, Scope


def race(right: int = 0) -> Protocol:
    """A tile is written and read at the same time."""
    p = Protocol("race")
    tile = p.smem("tile", slots=1, nbytes=64)

    @p.role("producer")
    def producer(w: Warp) -> None:
        w.write(tile[0], item=0)
        w.sync_threads()
        if right:
            w.sync_threads()
        w.write(tile[0], item=1)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        w.sync_threads()
        w.read(tile[0], item=0)
        if right:
            w.sync_threads()

    return p


def uninitialised_read(right: int = 0) -> Protocol:
    """Nobody has written the second half of what is read."""
    p = Protocol("uninitialised_read")
    tile = p.smem("tile", slots=1, nbytes=64)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        w.write(tile[0].part(0, 32), item=0)
        if right:
            w.write(tile[0].part(32, 32), item=0)
        w.read(tile[0], item=0)

    return p


def wrong_item(right: int = 0) -> Protocol:
    """The reader takes the slot of item 0 for that of item 1."""
    p = Protocol("wrong_item")
    tile = p.smem("tile", slots=2, nbytes=64)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        w.write(tile[0], item=0)
        w.write(tile[1], item=1)
        w.read(tile[1 if right else 0], item=1)

    return p


def missing_proxy_fence(right: int = 0) -> Protocol:
    """Threads write what a bulk copy then reads."""
    p = Protocol("missing_proxy_fence")
    out = p.smem("out", slots=1, nbytes=64)

    @p.role("epilogue")
    def epilogue(w: Warp) -> None:
        w.write(out[0], item=0)
        if right:
            w.fence(Fence.PROXY_ASYNC)
        w.sync_warp()
        with w.elect_one():
            w.async_read(Engine.BULK, out[0], item=0)
            w.commit(Engine.BULK)
            w.wait_group(Engine.BULK)

    return p


def read_not_fenced(right: int = 0) -> Protocol:
    """Threads read what the next bulk copy overwrites; a finding with --strict-proxies."""
    p = Protocol("read_not_fenced")
    tile = p.smem("tile", slots=1, nbytes=64)
    full = p.mbarriers("full", 1, count=1)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        with w.elect_one():
            for i in range(2):
                full[0].expect_bytes(64)
                w.tma_load(tile[0], full[0], item=i)
                full[0].wait(i)
                w.read(tile[0], item=i)
                if right:
                    w.fence(Fence.PROXY_ASYNC)

    return p


def weak_order(right: int = 0) -> Protocol:
    """A relaxed wait lets the reader go on, and orders no data."""
    p = Protocol("weak_order")
    tile = p.smem("tile", slots=1, nbytes=64)
    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            w.write(tile[0], item=0)
            full[0].arrive()

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        if right:
            full[0].wait_acquire(0)
        else:
            full[0].wait_relaxed(0)
        w.read(tile[0], item=0)

    return p


def narrow_scope(right: int = 0) -> Protocol:
    """The arrive on the barrier of another CTA releases to its own CTA only."""
    p = Protocol("narrow_scope", cluster=2)
    tile = p.smem("tile", slots=1, nbytes=64)
    ready = p.mbarriers("ready", 1, count=1)
    full = p.mbarriers("full", 1, count=1)

    @p.role("peer")
    def peer(w: Warp) -> None:
        with w.elect_one():
            if w.cta == 1:
                full[0].expect_bytes(64)
                full[0].wait(0)
                w.read(tile[0], item=0)
                ready[0].arrive_cluster(0, scope=Scope.CLUSTER if right else Scope.CTA)
                full[0].expect_bytes(64)
                full[0].wait(1)
            else:
                for item in range(2):
                    full[0].expect_bytes(64)
                    w.tma_load(tile[0], full[0], item=item, cta_mask=0b11)
                    full[0].wait(item)
                    if item == 0:
                        ready[0].wait_acquire(0, Scope.CLUSTER)
        w.cluster_sync()

    return p


def unpublished_init(right: int = 0) -> Protocol:
    """A barrier is initialised and used by a copy without a fence; a finding with --strict-init."""
    p = Protocol("unpublished_init")
    tile = p.smem("tile", slots=1, nbytes=64)
    full = p.mbarriers("full", 1)

    @p.init
    def init() -> None:
        """Nothing: the role does it."""

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        with w.elect_one():
            full[0].init(1)
            if right:
                w.fence(Fence.MBARRIER_INIT)
        w.sync_threads()
        with w.elect_one():
            full[0].expect_bytes(64)
            w.tma_load(tile[0], full[0], item=0)
            full[0].wait(0)

    return p
