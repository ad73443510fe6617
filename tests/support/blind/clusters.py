"""Clusters of two CTAs."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Order, Scope

#: What is offered for each slip.
MULTICAST: dict[str, tuple[str, ...]] = {
    "cnt_one_cta": ("initialise empty with a count of 4 instead of 2",),
    "half_bytes": ("tma expects 128 bytes on full instead of 64: as many as are copied",),
    "no_end": ("every warp of the cluster meets the others (cluster_sync) before it exits",),
    "rank0": ("cons arrives on empty of every CTA of the cluster, not only of one",),
    "leader_waits": ("every warp of tma executes the wait for empty, not only some of them",),
    "peer_mask": ("tma multicasts on full to the CTAs of mask 0b11 instead of 0b1",),
    "one_cons": ("every warp of cons executes the arrive on empty, not only some of them",),
    "tma1_silent_expect": ("every warp of tma executes the arrive on full, not only some of them",),
}


def multicast(slip: str = "") -> Protocol:
    """Two CTAs load a half of each tile for both; both give each stage back."""
    p = Protocol("mcast", cluster=2)
    S, N = (2, 6)
    buf = p.smem("buf", S, 128)
    full = p.mbarriers("full", S)
    empty = p.mbarriers("empty", S)

    @p.init
    def init() -> None:
        for s in range(S):
            full[s].init(1)
            empty[s].init(2 if slip == "cnt_one_cta" else 4)

    if slip == "no_start":
        pass

    @p.role("tma")
    def tma(w: Warp) -> None:
        with w.elect_one():
            for i in range(N):
                s, ph = (i % S, i // S & 1)
                if slip != "leader_waits" or w.cta == 0:
                    empty[s].wait(ph ^ 1)
                if slip != "tma1_silent_expect" or w.cta == 0:
                    full[s].expect_bytes(64 if slip == "half_bytes" else 128)
                w.tma_load(buf[s].part(64 * w.cta, 64), full[s], i, cta_mask=2 >> w.cta if slip == "peer_mask" else 3)
        if slip != "no_end":
            w.cluster_sync()

    @p.role("cons", warps=2)
    def cons(w: Warp) -> None:
        for i in range(N):
            s, ph = (i % S, i // S & 1)
            full[s].wait(ph)
            w.read(buf[s], i)
            if slip != "one_cons" or w.index == 0:
                with w.elect_one():
                    if slip != "rank0":
                        empty[s].arrive_cluster(1)
                    empty[s].arrive_cluster(0)
        if slip != "no_end":
            w.cluster_sync()

    return p


#: What is offered for each slip.
PARTIAL_SUMS: dict[str, tuple[str, ...]] = {
    "no_final": ("every warp of the cluster meets the others (cluster_sync) before it exits",),
    "back_local": ("sum: the arrive on back is meant for the barrier of CTA 1",),
    "rel_relaxed": ("part: let the arrive release at cluster scope instead of .relaxed",),
    "sum_no_wait": ("sum waits for got, with parity 0 in the first lap, before it uses a stage",),
    "part_no_wait": ("part waits for back, with parity 1 in the first lap, before it uses a stage",),
    "cnt": ("initialise got with a count of 1 instead of 2",),
}


def partial_sums(slip: str = "") -> Protocol:
    """CTA 1 writes partial sums into the memory of CTA 0."""
    p = Protocol("dsmem", cluster=2)
    S, N = (2, 4)
    b = p.smem("part_sum", S, 64)
    got = p.mbarriers("got", S, 2 if slip == "cnt" else 1)
    back = p.mbarriers("back", S, 1)

    @p.role("part")
    def part(w: Warp) -> None:
        if w.cta == 1:
            for i in range(N):
                s, ph = (i % S, i // S & 1)
                if slip != "part_no_wait":
                    back[s].wait_acquire(ph ^ 1, Scope.CLUSTER)
                w.write(b[s].mapa(0), i)
                with w.elect_one():
                    got[s].arrive_cluster(
                        0, order=Order.RELAXED if slip == "rel_relaxed" else Order.RELEASE, scope=Scope.CLUSTER
                    )
        if slip != "no_final":
            w.cluster_sync()

    @p.role("sum")
    def sum_(w: Warp) -> None:
        if w.cta == 0:
            for i in range(N):
                s, ph = (i % S, i // S & 1)
                if slip != "sum_no_wait":
                    got[s].wait_acquire(ph, Scope.CLUSTER)
                w.read(b[s], i)
                with w.elect_one():
                    back[s].arrive_cluster(0 if slip == "back_local" else 1)
        if slip != "no_final":
            w.cluster_sync()

    return p
