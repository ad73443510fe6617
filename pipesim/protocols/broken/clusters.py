"""Two CTAs: peers that are not counted, bytes that one of them does not expect, an exit under a remote arrival."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.protocols.broken.ring import TILE, Ring, ring
from pipesim.protocols.limits import require

PAIR = 0b11  #: mask of both CTAs


def _multicast(
    r: Ring, *, released: tuple[int, ...], expecting: tuple[int, ...], drain: bool = True, mask: int = PAIR
) -> Protocol:
    """CTA 0 loads each tile for both. ``released``: whose consumers give back; ``expecting``: who expects the bytes.

    In CTA 1 the consumer itself expects what CTA 0 loads. ``mask``: where the multicast goes.
    """

    @r.role("loader")
    def loader(w: Warp) -> None:
        if w.cta != 0:
            return
        for i in range(r.tiles):
            r.acquire(i)
            r.of_full(i).expect_bytes(TILE)
            w.tma_load(r.tile[r.slot(i)], r.of_full(i), i, cta_mask=mask)
        for i in range(r.tiles, r.tiles + r.stages if drain else r.tiles):
            r.acquire(i)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(r.tiles):
            if w.cta in expecting:
                if w.cta == 1:
                    r.of_full(i).expect_bytes(TILE)
                r.of_full(i).wait(r.phase(i))
            w.read(r.tile[r.slot(i)], i)
            if w.cta in released:
                r.of_empty(i).arrive_cluster(0)

    return r.p


def peer_not_waited_for(stages: int = 1, tiles: int = 2) -> Protocol:
    """CTA 0 loads for both CTAs and counts only its own consumer: the slot of the other is overwritten.

    tiles > stages: DEADLOCK, RACE, WRONG_ITEM
    else: proved
    """
    r = ring("peer_not_waited_for", stages, tiles, cluster=2)
    return _multicast(r, released=(0,), expecting=(0, 1))


def multicast_misses_a_cta(stages: int = 1, tiles: int = 2) -> Protocol:
    """CTA 0 loads for both CTAs, and the mask of its multicast names itself only.

    tiles > 0: DEADLOCK
    else: proved
    """
    r = ring("multicast_misses_a_cta", stages, tiles, empty=2, cluster=2)
    return _multicast(r, released=(0, 1), expecting=(0, 1), mask=0b01)


def peer_arrives_uncounted(stages: int = 1, tiles: int = 2) -> Protocol:
    """CTA 0 loads for both, both consumers arrive, ``empty`` counts one.

    An arrival too many may also come when CTA 0 has ended, or let its drain wait indefinitely.

    tiles > stages: DEADLOCK, EXITED_CTA, OVER_ARRIVAL, RACE, WRONG_ITEM
    tiles > 0: DEADLOCK, EXITED_CTA
    else: proved
    """
    r = ring("peer_arrives_uncounted", stages, tiles, cluster=2)
    return _multicast(r, released=(0, 1), expecting=(0, 1))


def peer_counted_and_silent(stages: int = 1, tiles: int = 2) -> Protocol:
    """``empty`` counts both consumers, the one of CTA 1 does not arrive; the loader drains its ring at the end.

    tiles > 0: DEADLOCK
    else: proved
    """
    r = ring("peer_counted_and_silent", stages, tiles, empty=2, cluster=2)
    return _multicast(r, released=(0,), expecting=(0, 1))


def exit_under_a_remote_arrive(stages: int = 1, tiles: int = 1) -> Protocol:
    """CTA 0 does not drain its ring: it may have ended when the consumer of CTA 1 arrives there.

    tiles > 0: EXITED_CTA
    else: proved
    """
    r = ring("exit_under_a_remote_arrive", stages, tiles, empty=2, cluster=2)
    return _multicast(r, released=(0, 1), expecting=(0, 1), drain=False)


def peer_expects_nothing(stages: int = 1, tiles: int = 1) -> Protocol:
    """Only CTA 0 expects the bytes that land in both; CTA 1 reads as if they had landed everywhere at once.

    tiles > stages: RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > 0: RACE, UNINITIALISED_READ
    else: proved
    """
    r = ring("peer_expects_nothing", stages, tiles, empty=2, cluster=2)
    return _multicast(r, released=(0, 1), expecting=(0,))


def remote_arrive_before_init(tiles: int = 1) -> Protocol:
    """Each CTA initialises its own barrier after the cluster barrier and arrives at once on the other's.

    tiles > 1: DEADLOCK, NOT_INITIALISED
    tiles > 0: NOT_INITIALISED
    else: proved
    """
    require("tiles", tiles, 0, 1 << 16)
    p = Protocol("remote_arrive_before_init", cluster=2)
    ready = p.mbarriers("ready", 1)

    @p.init
    def init() -> None:
        """Nothing: the role does it, and no agent waits for that."""

    @p.role("peer")
    def peer(w: Warp) -> None:
        with w.elect_one():
            ready[0].init(1)
            for i in range(tiles):
                ready[0].arrive_cluster(w.cta ^ 1)
                ready[0].wait(i & 1)

    return p


def cluster_arrive_twice(tiles: int = 1) -> Protocol:
    """CTA 0 arrives at the cluster barrier again without waiting in between.

    tiles > 0: CLUSTER_ARRIVE
    else: proved
    """
    require("tiles", tiles, 0, 1 << 16)
    p = Protocol("cluster_arrive_twice", cluster=2)

    @p.role("peer")
    def peer(w: Warp) -> None:
        for _ in range(tiles):
            w.cluster_arrive()
            if w.cta == 0:
                w.cluster_arrive()
            w.cluster_wait()

    return p


def cluster_sync_by_one_cta(tiles: int = 1) -> Protocol:
    """CTA 0 synchronises the cluster once more than CTA 1, which does not end meanwhile: it waits for CTA 0.

    tiles > 0: DEADLOCK
    else: proved
    """
    require("tiles", tiles, 0, 1 << 16)
    p = Protocol("cluster_sync_by_one_cta", cluster=2)
    done = p.mbarriers("done", 1, count=1)

    @p.role("peer")
    def peer(w: Warp) -> None:
        for _ in range(tiles if w.cta == 0 else tiles - 1):
            w.cluster_sync()
        with w.elect_one():
            if w.cta == 0:
                done[0].arrive_cluster(1)
            else:
                done[0].wait(0)

    return p
