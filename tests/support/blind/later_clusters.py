"""Clusters of two CTAs."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Order, Scope

#: What is offered for each slip.
ROW_LEADER: dict[str, tuple[str, ...]] = {
    "leader_not_remote": ("math: the arrive on a_free is meant for the barrier of CTA 0",),
    "a_free_cnt": ("initialise a_free with a count of 2 instead of 1",),
    "peer_no_expect": ("every warp of load executes the arrive on full, not only some of them",),
    "peer_expect_b_only": ("load expects 96 bytes on full instead of 32: as many as are copied",),
    "self_mask": ("load multicasts on full to the CTAs of mask 0b11 instead of 0b1",),
    "no_sync_end": ("every warp of the cluster meets the others (cluster_sync) before it exits",),
    "b_free_missing": ("load waits for b_free, with parity 1 in the first lap, before it uses a stage",),
    "remote_relaxed": ("math: let the arrive release at cluster scope instead of .relaxed",),
}


def row_leader(slip: str = "") -> Protocol:
    """CTA 0 multicasts A for both CTAs; each loads its own B."""
    p = Protocol("row_leader", cluster=2)
    S, N = (2, 5)
    A = p.smem("a", S, 64)
    B = p.smem("b", S, 32)
    full = p.mbarriers("full", S, 1)
    af = p.mbarriers("a_free", S, 1 if slip == "a_free_cnt" else 2)
    bf = p.mbarriers("b_free", S, 1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in range(N):
                s, ph = (i % S, i // S & 1)
                if slip != "b_free_missing":
                    bf[s].wait(ph ^ 1)
                if slip == "peer_no_expect" and w.cta == 1:
                    pass
                elif slip == "peer_expect_b_only" and w.cta == 1:
                    full[s].expect_bytes(32)
                else:
                    full[s].expect_bytes(96)
                if w.cta == 0:
                    af[s].wait_acquire(ph ^ 1, Scope.CLUSTER)
                    w.tma_load(A[s], full[s], i, cta_mask=1 if slip == "self_mask" else 3)
                w.tma_load(B[s], full[s], i)
        if slip != "no_sync_end":
            w.cluster_sync()

    @p.role("math")
    def math(w: Warp) -> None:
        for i in range(N):
            s, ph = (i % S, i // S & 1)
            full[s].wait(ph)
            w.read(A[s], i)
            w.read(B[s], i)
            with w.elect_one():
                bf[s].arrive()
                if slip == "leader_not_remote":
                    af[s].arrive()
                else:
                    af[s].arrive_cluster(
                        0, order=Order.RELAXED if slip == "remote_relaxed" else Order.RELEASE, scope=Scope.CLUSTER
                    )
        if slip != "no_sync_end":
            w.cluster_sync()

    return p


#: What is offered for each slip.
CTA_SCHEDULER: dict[str, tuple[str, ...]] = {
    "peer_not_waited": ("initialise id_free with a count of 4 instead of 2",),
    "remote_rel": ("user: the arrive on id_free is meant for the barrier of CTA 0",),
    "no_cluster_end": ("every warp of the cluster meets the others (cluster_sync) before it exits",),
    "only_own": ("sched arrives on id_full of every CTA of the cluster, not only of its own",),
    "relaxed": ("sched: let the arrive release at cluster scope instead of .relaxed",),
    "user_no_wait": ("user waits for id_full, with parity 0 in the first lap, before it uses a stage",),
    "user_early": ("user arrives on id_free only after its reads and writes of the stage",),
}


def cta_scheduler(slip: str = "") -> Protocol:
    """CTA 0 hands numbers of tiles to the warps of both CTAs."""
    p = Protocol("cta_sched", cluster=2)
    D, N = (2, 4)
    ids = p.smem("ids", D, 16)
    f = p.mbarriers("id_full", D, 1)
    e = p.mbarriers("id_free", D, 2 if slip == "peer_not_waited" else 4)

    @p.role("sched")
    def sched(w: Warp) -> None:
        if w.cta == 0:
            for n in range(N):
                s, ph = (n % D, n // D & 1)
                e[s].wait_acquire(ph ^ 1, Scope.CLUSTER)
                for rank in range(2):
                    w.write(ids[s].mapa(rank), n)
                with w.elect_one():
                    for rank in range(2):
                        if slip != "only_own" or rank == 0:
                            f[s].arrive_cluster(
                                rank, order=Order.RELAXED if slip == "relaxed" else Order.RELEASE, scope=Scope.CLUSTER
                            )
        if slip != "no_cluster_end":
            w.cluster_sync()

    @p.role("user", warps=2)
    def user(w: Warp) -> None:
        for n in range(N):
            s, ph = (n % D, n // D & 1)
            if slip != "user_no_wait":
                f[s].wait_acquire(ph, Scope.CLUSTER)
            early = slip == "user_early"
            if not early:
                w.read(ids[s], n)
            with w.elect_one():
                e[s].arrive_cluster(w.cta if slip == "remote_rel" else 0)
            if early:
                w.read(ids[s], n)
        if slip != "no_cluster_end":
            w.cluster_sync()

    return p
