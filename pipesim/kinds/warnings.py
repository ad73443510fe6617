"""Smallest protocols that are proved with a warning, and with ``right=1`` without it."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence, Scope


def unread_data(right: int = 0) -> Protocol:
    """A tile is loaded and nobody reads it."""
    p = Protocol("unread_data")
    tile = p.smem("tile", slots=1, nbytes=64)
    full = p.mbarriers("full", 1, count=1)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        with w.elect_one():
            full[0].expect_bytes(64)
            w.tma_load(tile[0], full[0], item=0)
            full[0].wait(0)
            if right:
                w.read(tile[0], item=0)

    return p


def transfer_in_flight(right: int = 0) -> Protocol:
    """The CTA ends while its bulk copy still reads shared memory."""
    p = Protocol("transfer_in_flight")
    out = p.smem("out", slots=1, nbytes=64)

    @p.role("epilogue")
    def epilogue(w: Warp) -> None:
        w.write(out[0], item=0)
        w.fence(Fence.PROXY_ASYNC)
        w.sync_warp()
        with w.elect_one():
            w.async_read(Engine.BULK, out[0], item=0)
            w.commit(Engine.BULK)
            if right:
                w.wait_group(Engine.BULK)

    return p


def commit_after_exit(right: int = 0) -> Protocol:
    """Nobody waits for the arrival of the last commit."""
    p = Protocol("commit_after_exit")
    done = p.mbarriers("done", 1, count=1)

    @p.role("mma")
    def mma(w: Warp) -> None:
        with w.elect_one():
            w.commit(Engine.TCGEN05, done[0])
            if right:
                done[0].wait(0)

    return p


def cp_async_after_exit(right: int = 0) -> Protocol:
    """Nobody waits for the arrivals of the last cp.async."""
    p = Protocol("cp_async_after_exit")
    tile = p.smem("tile", slots=1, nbytes=64)
    full = p.mbarriers("full", 1, count=32)

    @p.role("producer")
    def producer(w: Warp) -> None:
        w.async_write(Engine.CP_ASYNC, tile[0], item=0)
        full[0].cp_async_arrive(noinc=True)
        if right:
            full[0].wait(0)
            w.read(tile[0], item=0)

    return p


def unscoped_arrive(right: int = 0) -> Protocol:
    """An arrive on the barrier of another CTA has no scope."""
    p = Protocol("unscoped_arrive", cluster=2)
    ready = p.mbarriers("ready", 1, count=1)

    @p.role("peer")
    def peer(w: Warp) -> None:
        with w.elect_one():
            if right:
                ready[0].arrive_cluster(w.cta ^ 1, scope=Scope.CLUSTER)
            else:
                ready[0].arrive_cluster(w.cta ^ 1)
            ready[0].wait(0)

    return p


def register_requests(right: int = 0) -> Protocol:
    """The warps of a warp group ask for different numbers of registers."""
    p = Protocol("register_requests")

    @p.role("one", warps=2)
    def one(w: Warp) -> None:
        w.setmaxnreg(152)

    @p.role("other", warps=2)
    def other(w: Warp) -> None:
        w.setmaxnreg(152 if right else 160)

    return p


def cp_async_count(right: int = 0) -> Protocol:
    """A barrier that counts bytes is arrived on by cp.async without .noinc."""
    p = Protocol("cp_async_count")
    tile = p.smem("tile", slots=2, nbytes=64)
    full = p.mbarriers("full", 1, count=33 if right else 1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        w.async_write(Engine.CP_ASYNC, tile[0], item=0)
        full[0].cp_async_arrive(noinc=bool(right))
        with w.elect_one():
            full[0].expect_bytes(64)
            w.tma_load(tile[1], full[0], item=1)
        full[0].wait(0)
        w.read(tile[0], item=0)
        w.read(tile[1], item=1)

    return p
