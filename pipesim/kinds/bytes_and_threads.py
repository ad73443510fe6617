"""Smallest protocols that miscount bytes, threads, or the CTAs of a cluster: wrong, and with ``right=1`` corrected."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Scope

MOST = (1 << 20) - 1  #: bytes that a phase can count


def tx_range(right: int = 0) -> Protocol:
    """More bytes are expected than a phase can count."""
    p = Protocol("tx_range")
    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].expect_tx(1_000_000)
            full[0].expect_tx(16 if right else 1_000_000)

    return p


def tx_edge(right: int = 0) -> Protocol:
    """One byte more is expected than PTX allows."""
    p = Protocol("tx_edge")
    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].expect_tx(1_048_575)
            if not right:
                full[0].expect_tx(1)

    return p


def exited_cta(right: int = 0) -> Protocol:
    """CTA 1 arrives on a barrier of CTA 0, which may have ended."""
    p = Protocol("exited_cta", cluster=2)
    done = p.mbarriers("done", 1, count=1)

    @p.role("peer")
    def peer(w: Warp) -> None:
        with w.elect_one():
            if w.cta == 1:
                done[0].arrive_cluster(0, scope=Scope.CLUSTER)
            elif right:
                done[0].wait(0)

    return p


def cluster_arrive(right: int = 0) -> Protocol:
    """A second arrive at the cluster barrier comes before the wait for the first."""
    p = Protocol("cluster_arrive", cluster=2)

    @p.role("peer")
    def peer(w: Warp) -> None:
        w.cluster_arrive()
        if not right:
            w.cluster_arrive()
        w.cluster_wait()

    return p


def barrier_threads(right: int = 0) -> Protocol:
    """The one warp says that 64 threads meet, the other says 96."""
    p = Protocol("barrier_threads")

    @p.role("producer")
    def producer(w: Warp) -> None:
        w.bar_sync(1, 64)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        w.bar_sync(1, 64 if right else 96)

    return p
