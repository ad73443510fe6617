"""Waits that are missing, on the wrong barrier, crossed, or answered by a try in vain; and wrong numbers of
iterations.
"""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import TryResult
from pipesim.lang.warp import Warp
from pipesim.protocols.broken.ring import TILE, ring
from pipesim.protocols.limits import require


def producer_does_not_wait(stages: int = 2, tiles: int = 3) -> Protocol:
    """The producer loads without waiting for ``empty``.

    tiles > stages: DEADLOCK, OVER_ARRIVAL, RACE, WRONG_ITEM
    else: proved
    """
    r = ring("producer_does_not_wait", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.load(w, i)

    r.right_consumer()
    return r.p


def consumer_does_not_wait(stages: int = 2, tiles: int = 3) -> Protocol:
    """The consumer reads without waiting for ``full``.

    tiles > stages: RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > 0: RACE, UNINITIALISED_READ
    else: proved
    """
    r = ring("consumer_does_not_wait", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            w.read(r.tile[r.slot(i)], i)
            r.release(i)

    return r.p


def waits_for_the_stage_before(stages: int = 2, tiles: int = 3) -> Protocol:
    """The consumer waits for the ``full`` of the tile before, which has long been there.

    stages == 1 and tiles > 1: DEADLOCK, RACE, WRONG_ITEM
    tiles > stages > 1: DEADLOCK, RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > 1: RACE, UNINITIALISED_READ
    else: proved
    """
    r = ring("waits_for_the_stage_before", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(max(i - 1, 0)).wait(r.phase(max(i - 1, 0)))
            w.read(r.tile[r.slot(i)], i)
            r.release(i)

    return r.p


def waits_for_the_older_of_two(stages: int = 2, tiles: int = 3) -> Protocol:
    """Two copies fill a tile, each with a barrier of its own; the consumer waits for the first.

    tiles > stages: RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > 0: RACE, UNINITIALISED_READ
    else: proved
    """
    r = ring("waits_for_the_older_of_two", stages, tiles)
    late = r.p.mbarriers("late", stages, 1)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            for half, barriers in enumerate((r.full, late)):
                barriers[r.slot(i)].expect_bytes(TILE // 2)
                w.tma_load(r.tile[r.slot(i)].part(half * TILE // 2, TILE // 2), barriers[r.slot(i)], i)

    r.right_consumer()
    return r.p


def try_ignored(stages: int = 2, tiles: int = 3) -> Protocol:
    """The consumer tries once and reads, whatever the answer was.

    tiles > stages: RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > 0: RACE, UNINITIALISED_READ
    else: proved
    """
    r = ring("try_ignored", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).try_wait(r.phase(i))
            w.read(r.tile[r.slot(i)], i)
            r.release(i)

    return r.p


def try_before_the_step(stages: int = 2, tiles: int = 3) -> Protocol:
    """The consumer tries for its next tile before it has stepped: the answer is about the tile that it holds.

    stages == 1 and tiles > 1: RACE, WRONG_ITEM
    tiles > stages > 1: RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > 1: RACE, UNINITIALISED_READ
    else: proved
    """
    r = ring("try_before_the_step", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        ready: TryResult | bool = False
        for i in range(tiles):
            r.of_full(i).wait_if_needed(ready, r.phase(i))
            w.read(r.tile[r.slot(i)], i)
            ready = r.of_full(i).try_wait(r.phase(i))
            r.release(i)

    return r.p


def holds_one_ring_for_the_other(stages: int = 1, tiles: int = 3) -> Protocol:
    """Two rings: the producer fills A, then B; the consumer gives A back only when it has the *next* tile of B.

    With a second stage the producer is far enough ahead.

    stages == 1 and tiles > 1: DEADLOCK
    else: proved
    """
    a = ring("holds_one_ring_for_the_other", stages, tiles)
    p = a.p
    tile = p.smem("b", slots=stages, nbytes=TILE)
    full, empty = p.mbarriers("b_full", stages, 1), p.mbarriers("b_empty", stages, 1)

    @a.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            a.acquire(i)
            a.load(w, i)
            empty[a.slot(i)].wait(a.phase(i) ^ 1)
            full[a.slot(i)].expect_bytes(TILE)
            w.tma_load(tile[a.slot(i)], full[a.slot(i)], i)

    @a.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            a.read(w, i)
            if i == 0:
                full[0].wait(0)
            w.read(tile[a.slot(i)], i)
            empty[a.slot(i)].arrive()
            if i + 1 < tiles:
                full[a.slot(i + 1)].wait(a.phase(i + 1))
            a.release(i)

    return p


def consumer_stops_early(stages: int = 2, tiles: int = 5, missing: int = 3) -> Protocol:
    """The consumer leaves ``missing`` tiles before the end.

    Up to ``stages`` tiles that no agent reads fit in the ring; that they stay unread is not a finding.

    tiles >= missing > stages: DEADLOCK
    else: proved
    """
    require("missing", missing, 0, 1 << 16)
    r = ring("consumer_stops_early", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles - missing):
            r.read(w, i)
            r.release(i)

    return r.p


def producer_runs_on(stages: int = 2, tiles: int = 5) -> Protocol:
    """The producer loads one tile that no agent reads; its copy may be under way when the kernel ends.

    No schedule hangs or races; the copy under way at the end is a warning.

    else: proved
    """
    r = ring("producer_runs_on", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles + 1):
            r.acquire(i)
            r.load(w, i)

    r.right_consumer()
    return r.p


def consumer_peels_a_step(stages: int = 2, tiles: int = 2, k_iters: int = 0) -> Protocol:
    """Each output tile has ``k_iters`` steps; the consumer takes the first one of each without asking whether.

    k_iters == 0 and tiles > 0: DEADLOCK
    else: proved
    """
    require("k_iters", k_iters, 0, 1 << 16)
    r = ring("consumer_peels_a_step", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles * k_iters):
            r.acquire(i)
            r.load(w, i)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles * max(k_iters, 1)):
            r.read(w, i)
            r.release(i)

    return r.p


def producer_peels_a_step(stages: int = 2, tiles: int = 3, k_iters: int = 0) -> Protocol:
    """The same the other way round: the producer loads the first step of each output tile without asking whether.

    k_iters == 0 and tiles > stages: DEADLOCK
    else: proved
    """
    require("k_iters", k_iters, 0, 1 << 16)
    r = ring("producer_peels_a_step", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles * max(k_iters, 1)):
            r.acquire(i)
            r.load(w, i)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles * k_iters):
            r.read(w, i)
            r.release(i)

    return r.p
