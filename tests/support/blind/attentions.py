"""Attention: several rings, and groups that compute in turn."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Engine, Fence

#: What is offered for each slip.
ATTENTION: dict[str, tuple[str, ...]] = {
    "q_no_acquire": (
        "ld waits for q_empty, with parity 1 in the first lap, before the work that it signals on q_full",
    ),
    "q_no_release": ("sm arrives on q_empty after its last use of each stage of q_full",),
    "v_early_rel": ("sm arrives on v_empty only after its reads and writes of the stage",),
    "ke_for_ve": ("sm: the arrive on k_empty is meant for v_empty",),
    "released_crosswise": ("sm: exchange v_empty and k_empty where it arrives on them",),
    "kf_for_vf": ("sm: the wait for k_full is meant for v_full",),
    "v_exp_on_k": ("ld: the arrive on k_full is meant for v_full",),
    "v_tma_on_k": ("ld: the copy to k_full is meant for v_full",),
    "q_parity": ("sm waits for q_full with parity 0 in the first lap, alternating in each later lap",),
    "kv_bytes": ("ld expects 32 bytes on v_full instead of 64: as many as are copied",),
    "k_not_waited": (
        "ld waits for k_empty, with parity 1 in the first lap, before the work that it signals on k_full",
    ),
}


def attention(slip: str = "") -> Protocol:
    """Q of a tile, rings of K and of V, two warps that use them."""
    p = Protocol("fa")
    S, NB, T = (2, 3, 2)
    q = p.smem("q", 1, 64)
    k = p.smem("k", S, 64)
    v = p.smem("v", S, 32)
    qf = p.mbarriers("q_full", 1, 1)
    qe = p.mbarriers("q_empty", 1, 2)
    kf = p.mbarriers("k_full", S, 1)
    ke = p.mbarriers("k_empty", S, 2)
    vf = p.mbarriers("v_full", S, 1)
    ve = p.mbarriers("v_empty", S, 2)

    @p.role("ld")
    def ld(w: Warp) -> None:
        with w.elect_one():
            for t in range(T):
                if slip != "q_no_acquire":
                    qe[0].wait(t & 1 ^ 1)
                qf[0].expect_bytes(64)
                w.tma_load(q[0], qf[0], 1000 + t)
                for b in range(NB):
                    i = t * NB + b
                    s, ph = (i % S, i // S & 1)
                    if slip != "k_not_waited":
                        ke[s].wait(ph ^ 1)
                    kf[s].expect_bytes(64)
                    w.tma_load(k[s], kf[s], i)
                    ve[s].wait(ph ^ 1)
                    (kf if slip == "v_exp_on_k" else vf)[s].expect_bytes(64 if slip == "kv_bytes" else 32)
                    w.tma_load(v[s], (kf if slip == "v_tma_on_k" else vf)[s], i)

    @p.role("sm", warps=2)
    def sm(w: Warp) -> None:
        for t in range(T):
            qf[0].wait(0 if slip == "q_parity" else t & 1)
            for b in range(NB):
                i = t * NB + b
                s, ph = (i % S, i // S & 1)
                kf[s].wait(ph)
                w.read(q[0], 1000 + t)
                w.read(k[s], i)
                with w.elect_one():
                    (ve if slip == "released_crosswise" else ke)[s].arrive()
                (kf if slip == "kf_for_vf" else vf)[s].wait(ph)
                if slip == "v_early_rel":
                    with w.elect_one():
                        ve[s].arrive()
                w.read(v[s], i)
                if slip != "v_early_rel":
                    with w.elect_one():
                        (ke if slip in ("ke_for_ve", "released_crosswise") else ve)[s].arrive()
            if slip != "q_no_release":
                with w.elect_one():
                    qe[0].arrive()

    return p


#: What is offered for each slip.
TWO_GROUPS: dict[str, tuple[str, ...]] = {
    "no_init_arrive": ("wg1 arrives at named barrier 1 (64 threads) once before it begins",),
    "wrong_next": ("wg1 uses named barrier 1 instead of 2 at the bar_arrive",),
    "v_not_released_by_wg1": ("each of wg0 and wg1 executes the arrive on v_free, not only some of their warps",),
    "k_released_late_wrong": ("wg0: the arrive on v_free is meant for k_free",),
    "v_wait_forgotten": (
        "wg0 waits for v_full, with parity 0 in the first lap, before the work that it signals on v_free",
    ),
    "o_store_no_fence": ("every role executes fence.proxy.async after its writes, before it signals any other agent",),
    "o_no_wait": ("wg1 waits for its bulk stores before the write to o",),
}


def two_groups(slip: str = "") -> Protocol:
    """Attention of two groups that compute in turn by named barriers, and store their results."""
    p = Protocol("fa3")
    S, NB, T = (2, 4, 2)
    k = p.smem("k", S, 64)
    v = p.smem("v", S, 64)
    o = p.smem("o", 2, 32)
    kf = p.mbarriers("k_full", S, 1)
    kx = p.mbarriers("k_free", S, 2)
    vf = p.mbarriers("v_full", S, 1)
    vx = p.mbarriers("v_free", S, 2)
    th = 32 if slip == "threads32" else 64

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in range(T * NB):
                s, q = (i % S, i // S % 2)
                kx[s].wait(1 - q)
                kf[s].expect_bytes(64)
                w.tma_load(k[s], kf[s], i)
                vx[s].wait(1 - q)
                vf[s].expect_bytes(64)
                w.tma_load(v[s], vf[s], i)

    def group(w: Warp, g: int) -> None:
        if g == 1 and slip != "no_init_arrive":
            w.bar_arrive(1, th)
        n = 0
        for t in range(T):
            for b in range(NB):
                s, q = (n % S, n // S % 2)
                kf[s].wait(q)
                w.bar_sync(1 + g, th)
                w.read(k[s], n)
                if not (g == 1 and t == T - 1 and (b == NB - 1)):
                    w.bar_arrive(2 if slip == "wrong_next" and g == 1 else 2 - g, th)
                with w.elect_one():
                    (vx if slip == "k_released_late_wrong" and g == 0 else kx)[s].arrive()
                if not (slip == "v_wait_forgotten" and g == 0):
                    vf[s].wait(q)
                w.read(v[s], n)
                if not (slip == "v_not_released_by_wg1" and g == 1):
                    with w.elect_one():
                        vx[s].arrive()
                n += 1
            with w.elect_one():
                if not (slip == "o_no_wait" and g == 1):
                    w.wait_group(Engine.BULK, 0)
            w.write(o[g], t)
            if slip != "o_store_no_fence":
                w.fence(Fence.PROXY_ASYNC)
            with w.elect_one():
                w.async_read(Engine.BULK, o[g], t)
                w.commit(Engine.BULK)

    @p.role("wg0")
    def wg0(w: Warp) -> None:
        group(w, 0)

    @p.role("wg1")
    def wg1(w: Warp) -> None:
        group(w, 1)

    return p
