"""Rings and relays of one CTA."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence

#: What is offered for each slip.
LAGGED_RING: dict[str, tuple[str, ...]] = {
    "lag_depth": ("copy leaves no more than 1 of its groups pending when it waits for them, instead of 2",),
    "fence_forgot": ("copy executes fence.proxy.async after its writes, before it signals any other agent",),
    "lag_stage": ("copy: the arrive on tile_full is for the stage 1 stage back",),
    "drain": ("copy arrives on tile_full for its last stages as well, when their transfers have ended",),
    "lane": ("copy: put the arrive on tile_full outside elect_one(): each of the 32 lanes is counted",),
    "cnt": ("initialise tile_full with a count of 32 instead of 64",),
    "no_wait_grp": ("copy waits for its cp.asyncs, leaving no more than 1 pending, before the fence",),
    "rel_in_if": ("every warp of gemm executes the arrive on tile_free, not only some of them",),
    "wgwait": ("gemm waits for its wgmmas before the arrive on tile_free",),
}


def lagged_ring(slip: str = "") -> Protocol:
    """A cp.async producer that signals a tile when the next is under way, and a wgmma warp group."""
    p = Protocol("lagged")
    S, N = (3, 6)
    t = p.smem("tile", S, 64)
    f = p.mbarriers("tile_full", S, 64 if slip == "cnt" else 32)
    e = p.mbarriers("tile_free", S, 4)

    @p.role("gemm", warps=4)
    def gemm(w: Warp) -> None:
        for i in range(N):
            s, ph = (i % S, i // S & 1)
            f[s].wait(ph)
            w.mma(Engine.WGMMA, reads=[(t[s], i)])
            w.commit(Engine.WGMMA)
            if slip != "wgwait":
                w.wait_group(Engine.WGMMA, 0)
            if slip != "rel_in_if" or w.index != 2:
                with w.elect_one():
                    e[s].arrive()

    @p.role("copy")
    def copy(w: Warp) -> None:

        def tell(i: int, left: int) -> None:
            if slip != "no_wait_grp" or left == 0:
                w.wait_group(Engine.CP_ASYNC, 2 if slip == "lag_depth" and left else left)
            if slip != "fence_forgot":
                w.fence(Fence.PROXY_ASYNC)
            s = (i + 1) % S if slip == "lag_stage" else i % S
            if slip == "lane":
                with w.elect_one():
                    f[s].arrive()
            else:
                f[s].arrive()

        for i in range(N):
            e[i % S].wait(i // S & 1 ^ 1)
            w.async_write(Engine.CP_ASYNC, t[i % S], i)
            w.commit(Engine.CP_ASYNC)
            if i:
                tell(i - 1, 1)
        if slip != "drain":
            tell(N - 1, 0)

    return p


#: What is offered for each slip.
RELAY_OF_THREE: dict[str, tuple[str, ...]] = {
    "no_fence": ("tr executes fence.proxy.async after its writes, before it signals any other agent",),
    "tr_waits_late": ("tr executes the write to cooked only after the wait for out_free",),
    "tr_rel_in_early": ("tr executes the arrive on in_free only after the read of raw",),
    "out_cnt": ("initialise out_full with a count of 2 instead of 1",),
    "tr_rel_wrong": ("tr: the arrive on out_full is meant for in_free",),
    "mma_rel_wrong": ("use: the arrive on in_free is meant for out_free",),
    "use_never_rel": ("one warp of use arrives on out_free for every stage, after the bar_sync",),
    "tr_half": ("every warp of tr executes the arrive on out_full, not only some of them",),
}


def relay_of_three(slip: str = "") -> Protocol:  # noqa: C901 (many slips)
    """Tiles that two warps transform between a load and a wgmma warp group."""
    p = Protocol("relay3")
    S, N = (2, 5)
    x = p.smem("raw", S, 64)
    y = p.smem("cooked", S, 64)
    inf = p.mbarriers("in_full", S, 1)
    ine = p.mbarriers("in_free", S, 2)
    of = p.mbarriers("out_full", S, 1 if slip == "out_cnt" else 2)
    oe = p.mbarriers("out_free", S, 1)

    @p.role("use", warps=4)
    def use(w: Warp) -> None:
        for i in range(N):
            s, ph = (i % S, i // S & 1)
            of[s].wait(ph)
            w.mma(Engine.WGMMA, reads=[(y[s], i)])
            w.commit(Engine.WGMMA)
            w.wait_group(Engine.WGMMA, 0)
            w.bar_sync(7, 128)
            if w.index == 0 and slip != "use_never_rel":
                with w.elect_one():
                    (ine if slip == "mma_rel_wrong" else oe)[s].arrive()

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in range(N):
                s, ph = (i % S, i // S & 1)
                ine[s].wait(ph ^ 1)
                inf[s].expect_bytes(64)
                w.tma_load(x[s], inf[s], i)

    @p.role("tr", warps=2)
    def tr(w: Warp) -> None:
        for i in range(N):
            s, ph = (i % S, i // S & 1)
            inf[s].wait(ph)
            if slip == "tr_rel_in_early":
                with w.elect_one():
                    ine[s].arrive()
            if slip != "tr_waits_late":
                oe[s].wait(ph ^ 1)
            w.read(x[s], i)
            w.write(y[s].part(32 * w.index, 32), i)
            if slip == "tr_waits_late":
                oe[s].wait(ph ^ 1)
            if slip != "no_fence":
                w.fence(Fence.PROXY_ASYNC)
            with w.elect_one():
                if slip == "tr_rel_wrong":
                    of[s].arrive()
                elif slip != "tr_rel_in_early":
                    ine[s].arrive()
                if slip != "tr_half" or w.index == 0:
                    of[s].arrive()

    return p


#: What is offered for each slip.
GATHER: dict[str, tuple[str, ...]] = {
    "pcount32": ("initialise rows_ready with a count of 128 instead of 32",),
    "noinc": ("gather arrives on rows_ready by cp.async with .noinc, so that its arrivals are counted",),
    "arr_before_copy": ("gather arrives on rows_ready only after its reads and writes of the stage",),
    "no_free_wait": ("gather waits for rows_free, with parity 1 in the first lap, before it uses a stage",),
    "free_count": ("initialise rows_free with a count of 2 instead of 1",),
    "red_rel_early": ("reduce arrives on rows_free only after its reads and writes of the stage",),
    "out_fence": ("reduce executes fence.proxy.async after its writes, before it signals any other agent",),
    "out_sync": ("reduce executes bar_sync at named barrier 3 (64 threads) after the fence",),
    "one_warp_gathers": ("every warp of gather executes the cp.async arrive on rows_ready, not only some of them",),
    "out_wait": ("reduce waits for its bulk stores before the bar_sync",),
}


def gather(slip: str = "") -> Protocol:
    """Four warps gather rows by cp.async; two reduce them and store the result."""
    p = Protocol("gather")
    S, N = (2, 5)
    r = p.smem("rows", S, 128)
    o = p.smem("o", 2, 32)
    rdy = p.mbarriers("rows_ready", S, 32 if slip == "pcount32" else 128)
    fre = p.mbarriers("rows_free", S, 1 if slip == "free_count" else 2)

    @p.role("gather", warps=4)
    def gather(w: Warp) -> None:
        for i in range(N):
            s = i % S
            ph = i // S % 2
            if slip != "no_free_wait":
                fre[s].wait(1 - ph)
            if slip == "arr_before_copy":
                rdy[s].cp_async_arrive(noinc=True)
            w.async_write(Engine.CP_ASYNC, r[s].part(32 * w.index, 32), i)
            if slip != "arr_before_copy" and (not (slip == "one_warp_gathers" and w.index == 3)):
                rdy[s].cp_async_arrive(noinc=slip != "noinc")

    @p.role("reduce", warps=2)
    def reduce(w: Warp) -> None:
        for i in range(N):
            s = i % S
            ph = i // S % 2
            rdy[s].wait(ph)
            if slip == "red_rel_early":
                with w.elect_one():
                    fre[s].arrive()
            w.read(r[s], i)
            if slip != "red_rel_early":
                with w.elect_one():
                    fre[s].arrive()
            if w.index == 0 and slip != "out_wait":
                with w.elect_one():
                    w.wait_group(Engine.BULK, 0)
            w.bar_sync(3, 64)
            w.write(o[w.index], i)
            if slip != "out_fence":
                w.fence(Fence.PROXY_ASYNC)
            if slip != "out_sync":
                w.bar_sync(3, 64)
            if w.index == 0:
                with w.elect_one():
                    w.async_read(Engine.BULK, o[0], i)
                    w.async_read(Engine.BULK, o[1], i)
                    w.commit(Engine.BULK)

    return p


#: What is offered for each slip.
PEELED_PROLOGUE: dict[str, tuple[str, ...]] = {
    "peel_no_parity": (
        "issue carries stage and phase of hole on instead of beginning again (parity 0 in the first lap)",
    ),
    "expect_twice": ("issue expects 64 bytes on pile_full instead of 128: as many as are copied",),
    "consumer_next_stage": ("take: the read of pile is for the slot 1 back: that of its own stage",),
    "rel_prev": ("take: the arrive on hole is for the stage 1 stage further",),
    "count3": ("initialise hole with a count of 3 instead of 1",),
    "wrong_lane": ("take: put the arrive on hole inside elect_one(): all 32 lanes execute it",),
    "toggle_every": ("take waits for pile_full with parity 0 in the first lap, alternating in each later lap",),
}


def peeled_prologue(slip: str = "") -> Protocol:
    """A producer that fills all stages before its loop, three readers."""
    p = Protocol("peeled")
    S, N = (3, 8)
    b = p.smem("pile", S, 64)
    f = p.mbarriers("pile_full", S, 1)
    e = p.mbarriers("hole", S, 1 if slip == "count3" else 3)

    @p.role("issue", warps=2)
    def issue(w: Warp) -> None:
        if w.index:
            return
        with w.elect_one():
            for n in range(S):
                f[n].expect_bytes(64)
                w.tma_load(b[n], f[n], n)
            for n in range(S, N):
                s = n % S
                e[s].wait(n // S - 1 & 1 ^ (slip == "peel_no_parity"))
                f[s].expect_bytes(128 if slip == "expect_twice" else 64)
                w.tma_load(b[s], f[s], n)

    @p.role("take", warps=3)
    def take(w: Warp) -> None:
        for n in range(N):
            s = n % S
            f[s].wait(n & 1 if slip == "toggle_every" else n // S & 1)
            w.read(b[(s + 1) % S if slip == "consumer_next_stage" else s], n)
            if slip == "wrong_lane":
                e[s].arrive()
            else:
                with w.elect_one():
                    e[(s + 2) % S if slip == "rel_prev" else s].arrive()

    return p
