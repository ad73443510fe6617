"""Rings and buffers of one CTA."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence

#: What is offered for each slip.
DOUBLE_BUFFER: dict[str, tuple[str, ...]] = {
    "no_second": ("worker executes __syncthreads() after the read of tile",),
    "no_first": ("worker executes __syncthreads() before the read of tile",),
    "wait_after_sync": ("worker executes the bar_sync only after the wait for its cp.asyncs",),
    "depth2": ("worker leaves no more than 1 of its groups pending when it waits for them, instead of 2",),
    "no_commit0": ("worker executes cp.async.commit_group in every iteration, also where it has nothing to copy",),
    "div_sync": ("every warp of worker executes the bar_sync, not only some of them",),
    "wait1_last": ("worker executes cp.async.commit_group in every iteration, also where it has nothing to copy",),
}


def double_buffer(slip: str = "") -> Protocol:
    """Four warps, two buffers that cp.async fills: the next tile is copied while this one is read."""
    p = Protocol("double_buffer")
    N = 5
    t = p.smem("tile", 2, 128)

    @p.role("worker", warps=4)
    def worker(w: Warp) -> None:

        def issue(i: int, c: bool = True) -> None:
            w.async_write(Engine.CP_ASYNC, t[i % 2].part(w.index * 32, 32), i)
            if c:
                w.commit(Engine.CP_ASYNC)

        issue(0, slip != "no_commit0")
        for i in range(N):
            last = i + 1 == N
            if not last:
                issue(i + 1)
            if slip == "wait_after_sync":
                w.sync_threads()
                w.wait_group(Engine.CP_ASYNC, 0 if last else 1)
            else:
                d = (1 if slip == "wait1_last" else 0) if last else 1
                if slip == "depth2" and (not last):
                    d = 2
                w.wait_group(Engine.CP_ASYNC, d)
                if slip != "no_first":
                    w.sync_threads()
            w.read(t[i % 2], i)
            if slip != "no_second" and (not (slip == "div_sync" and w.index == 3)):
                w.sync_threads()

    return p


#: What is offered for each slip.
MULTISTAGE_LOOP: dict[str, tuple[str, ...]] = {
    "depth": ("warp leaves no more than 1 of its groups pending when it waits for them, instead of 2",),
    "read_next": ("warp: the read of t is for the slot 1 back: that of its own stage",),
    "copy_slot": (),
    "prologue_commit": ("warp executes cp.async.commit_group in every iteration, also where it has nothing to copy",),
    "skip_warp": ("every warp of warp executes the bar_sync, not only some of them",),
}


def multistage_loop(slip: str = "") -> Protocol:
    """Three buffers that two warps fill by cp.async and read."""
    p = Protocol("sm80_mainloop")
    S, N = (3, 6)
    t = p.smem("t", S, 128)

    @p.role("warp", warps=2)
    def warp(w: Warp) -> None:

        def fetch(i: int) -> None:
            slot = i % S
            if slip == "copy_slot" and i >= S:
                slot = (i + 1) % S
            w.async_write(Engine.CP_ASYNC, t[slot].part(64 * w.index, 64), i)

        for i in range(S - 1):
            if i < N:
                fetch(i)
            if slip != "prologue_commit":
                w.commit(Engine.CP_ASYNC)
        for i in range(N):
            w.wait_group(Engine.CP_ASYNC, S - 1 if slip == "depth" else S - 2)
            if not (slip == "skip_warp" and w.index == 1):
                w.sync_threads()
            w.read(t[(i + 1) % S if slip == "read_next" else i % S], i)
            if slip != "no_sync_end":
                pass
            if i + S - 1 < N:
                fetch(i + S - 1)
            w.commit(Engine.CP_ASYNC)

    return p


#: What is offered for each slip.
WARP_GROUP_RING: dict[str, tuple[str, ...]] = {
    "all_issue": ("load: only one warp waits, copies and arrives, inside a condition: all 4 warps do so",),
    "wait_full": ("load: the wait for full is meant for empty",),
    "phase_mod": ("math waits for full with parity 0 in the first lap, alternating in each later lap",),
    "stage_minus": ("math: the wait for full is for the stage 1 stage further",),
    "rel_stage": ("math: the arrive on empty is for the stage 1 stage back",),
    "double_rel": ("math omits its second arrive on empty",),
}


def warp_group_ring(slip: str = "") -> Protocol:
    """A producer warp group of which one warp copies, two readers."""
    p = Protocol("wgring")
    S, N = (3, 7)
    t = p.smem("t", S, 64)
    full = p.mbarriers("full", S, 1)
    empty = p.mbarriers("empty", S, 2)

    @p.role("load", warps=4)
    def load(w: Warp) -> None:
        if w.index == 0 or slip == "all_issue":
            with w.elect_one():
                for i in range(N):
                    s, ph = (i % S, i // S & 1)
                    (full if slip == "wait_full" else empty)[s].wait(ph ^ 1)
                    full[s].expect_bytes(64)
                    w.tma_load(t[s], full[s], i)

    @p.role("math", warps=2)
    def math(w: Warp) -> None:
        for i in range(N):
            s, ph = (i % S, i // S & 1)
            full[(s - 1) % S if slip == "stage_minus" else s].wait(i % S & 1 if slip == "phase_mod" else ph)
            w.read(t[s], i)
            with w.elect_one():
                empty[(s + 1) % S if slip == "rel_stage" else s].arrive()
                if slip == "double_rel":
                    empty[s].arrive()

    return p


#: What is offered for each slip.
STORE_RING: dict[str, tuple[str, ...]] = {
    "store_rel_early": ("store arrives on c_free only after it has waited for its bulk stores",),
    "wait_read_depth": ("store leaves none of its groups pending when it waits for them, instead of 1",),
    "no_fence": ("math executes fence.proxy.async after its writes, before it signals any other agent",),
    "fence_late": ("math executes the fence before the arrive on c_ready",),
    "count": ("initialise c_ready with a count of 4 instead of 1",),
    "lanes": ("math: put the arrive on c_ready inside elect_one(): all 32 lanes execute it",),
    "math_starts_0": ("math waits for c_free with parity 1 in the first lap, alternating in each later lap",),
    "no_commit": ("store executes cp.async.bulk.commit_group after its bulk stores, before it waits for them",),
}


def store_ring(slip: str = "") -> Protocol:
    """Four warps write tiles that a store warp hands to bulk copies."""
    p = Protocol("store_pipe")
    S, N = (2, 5)
    c = p.smem("c", S, 128)
    rdy = p.mbarriers("c_ready", S, 1 if slip == "count" else 4)
    fre = p.mbarriers("c_free", S, 1)

    @p.role("math", warps=4)
    def math(w: Warp) -> None:
        for i in range(N):
            s, ph = (i % S, i // S % 2)
            fre[s].wait(ph if slip == "math_starts_0" else ph ^ 1)
            w.write(c[s].part(32 * w.index, 32), i)
            if slip not in ("no_fence", "fence_late"):
                w.fence(Fence.PROXY_ASYNC)
            if slip == "lanes":
                rdy[s].arrive()
            else:
                with w.elect_one():
                    rdy[s].arrive()
            if slip == "fence_late":
                w.fence(Fence.PROXY_ASYNC)

    @p.role("store")
    def store(w: Warp) -> None:
        with w.elect_one():
            for i in range(N - (slip == "store_one_less")):
                s, ph = (i % S, i // S % 2)
                rdy[s].wait(ph)
                w.async_read(Engine.BULK, c[s], i)
                if slip != "no_commit":
                    w.commit(Engine.BULK)
                if slip == "store_rel_early":
                    fre[s].arrive()
                w.wait_group(Engine.BULK, 1 if slip == "wait_read_depth" else 0)
                if slip != "store_rel_early":
                    fre[s].arrive()

    return p
