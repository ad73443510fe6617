"""Counts of arrivals: too many, too few, by the wrong number of warps or lanes."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.protocols.broken.ring import TILE, ring


def full_count_too_high(stages: int = 2, tiles: int = 5) -> Protocol:
    """``full`` counts two arrivals, the producer makes one.

    tiles > 0: DEADLOCK
    else: proved
    """
    r = ring("full_count_too_high", stages, tiles, full=2)
    r.right_producer()
    r.right_consumer()
    return r.p


def empty_count_too_high(stages: int = 2, tiles: int = 5) -> Protocol:
    """``empty`` counts two consumers, there is one.

    tiles > stages: DEADLOCK
    else: proved
    """
    r = ring("empty_count_too_high", stages, tiles, empty=2)
    r.right_producer()
    r.right_consumer()
    return r.p


def two_producers_one_counted(stages: int = 2, tiles: int = 3) -> Protocol:
    """Two producer warps load half a tile each and arrive, ``full`` counts one: each completes a phase of its own.

    tiles > stages: DEADLOCK, OVER_ARRIVAL, RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > 0: DEADLOCK, OVER_ARRIVAL, RACE, UNINITIALISED_READ
    else: proved
    """
    r = ring("two_producers_one_counted", stages, tiles)

    @r.role("producer", warps=2)
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            r.of_full(i).expect_bytes(TILE // 2)
            w.tma_load(r.tile[r.slot(i)].part(w.index * TILE // 2, TILE // 2), r.of_full(i), i)

    r.right_consumer()
    return r.p


def two_consumers_one_counted(stages: int = 2, tiles: int = 3) -> Protocol:
    """Two consumer warps read and arrive, ``empty`` counts one: the faster one gives the slot away.

    tiles > 2 * stages: DEADLOCK, OVER_ARRIVAL, RACE, WRONG_ITEM
    tiles > stages: DEADLOCK, RACE, WRONG_ITEM
    else: proved
    """
    r = ring("two_consumers_one_counted", stages, tiles)
    r.right_producer()
    r.right_consumer(warps=2)
    return r.p


def second_consumer_silent(stages: int = 2, tiles: int = 3) -> Protocol:
    """Two consumer warps read, only the first is counted and arrives: no agent waits for the second.

    A second consumer that is lapped twice may also miss its phase and wait indefinitely.

    tiles > stages: DEADLOCK, RACE, WRONG_ITEM
    else: proved
    """
    r = ring("second_consumer_silent", stages, tiles)
    r.right_producer()

    @r.role("consumer", warps=2)
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.read(w, i)
            if w.index == 0:
                r.release(i)

    return r.p


def consumer_arrives_twice(stages: int = 2, tiles: int = 5) -> Protocol:
    """The consumer arrives twice on ``empty``: the second arrival is counted in the next phase.

    tiles > 2 * stages: DEADLOCK, OVER_ARRIVAL, RACE, WRONG_ITEM
    tiles > stages: DEADLOCK
    else: proved
    """
    r = ring("consumer_arrives_twice", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.read(w, i)
            r.release(i)
            r.release(i)

    return r.p


def consumer_never_arrives(stages: int = 2, tiles: int = 5) -> Protocol:
    """The consumer reads and does not give back.

    tiles > stages: DEADLOCK
    else: proved
    """
    r = ring("consumer_never_arrives", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.read(w, i)

    return r.p


def consumer_arrives_every_second(stages: int = 2, tiles: int = 5) -> Protocol:
    """The consumer gives back only tiles of even number: a wrong predicate.

    tiles > stages + 1: DEADLOCK
    else: proved
    """
    r = ring("consumer_arrives_every_second", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.read(w, i)
            if i % 2 == 0:
                r.release(i)

    return r.p


def every_lane_arrives(stages: int = 2, tiles: int = 5) -> Protocol:
    """All 32 lanes of the consumer arrive, ``empty`` counts one: the hardware traps.

    tiles > 0: OVER_ARRIVAL
    else: proved
    """
    r = ring("every_lane_arrives", stages, tiles)
    r.right_producer()

    @r.p.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.read(w, i)
            r.release(i)

    return r.p


def consumer_drops(stages: int = 2, tiles: int = 5) -> Protocol:
    """The consumer uses ``arrive_drop``: from its first turn on ``empty`` expects no arrival.

    The second time round the hardware traps: no arrival is left to drop.

    tiles > stages: OVER_ARRIVAL
    else: proved
    """
    r = ring("consumer_drops", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.read(w, i)
            r.of_empty(i).arrive_drop()

    return r.p


def wrong_role_arrives(stages: int = 2, tiles: int = 5) -> Protocol:
    """The producer itself arrives on ``empty``, in the place of the consumer.

    tiles > stages: DEADLOCK, OVER_ARRIVAL, RACE, WRONG_ITEM
    else: proved
    """
    r = ring("wrong_role_arrives", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            r.load(w, i)
            r.release(i)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.read(w, i)

    return r.p
