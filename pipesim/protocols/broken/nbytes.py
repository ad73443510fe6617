"""Bytes of transactions: expected too few, too many, not at all, too late, by an agent who does not arrive."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.protocols.broken.ring import TILE, Ring, ring

LARGE = 600_000  #: bytes; two of them are more than a barrier can expect


def _expecting(r: Ring, nbytes: int) -> Protocol:
    """The ring whose producer expects so many bytes of a tile."""

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(r.tiles):
            r.acquire(i)
            r.of_full(i).expect_bytes(nbytes)
            w.tma_load(r.tile[r.slot(i)], r.of_full(i), i)

    r.right_consumer()
    return r.p


def expects_too_few(stages: int = 2, tiles: int = 3) -> Protocol:
    """The producer expects 16 bytes less than it loads.

    The chips were only seen to hang, since no piece of a copy ended where the count came to 0; nothing promises that,
    so the phase that is over 16 bytes early, and the race after it, are schedules, too.

    tiles > 0: DEADLOCK, RACE
    else: proved
    """
    return _expecting(ring("expects_too_few", stages, tiles), TILE - 16)


def expects_half(stages: int = 2, tiles: int = 3) -> Protocol:
    """The producer expects half of what it loads.

    The chips were seen to do both: to hang, and to let the consumer pass with half a tile.

    tiles > stages: DEADLOCK, RACE, WRONG_ITEM
    tiles > 0: DEADLOCK, RACE
    else: proved
    """
    return _expecting(ring("expects_half", stages, tiles), TILE // 2)


def expects_too_many(stages: int = 2, tiles: int = 3) -> Protocol:
    """The producer expects 4 bytes more than it loads.

    tiles > 0: DEADLOCK
    else: proved
    """
    return _expecting(ring("expects_too_many", stages, tiles), TILE + 4)


def expects_nothing(stages: int = 2, tiles: int = 3) -> Protocol:
    """The producer arrives without expecting any bytes.

    tiles > stages: DEADLOCK, RACE, UNINITIALISED_READ
    tiles > 0: RACE, UNINITIALISED_READ
    else: proved
    """
    return _expecting(ring("expects_nothing", stages, tiles), 0)


def two_copies_one_expected(stages: int = 2, tiles: int = 2) -> Protocol:
    """Two copies of the same size fill a tile, the bytes of one are expected.

    tiles > 2 * stages: DEADLOCK, RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > stages: RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > 0: RACE, UNINITIALISED_READ
    else: proved
    """
    r = ring("two_copies_one_expected", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            r.of_full(i).expect_bytes(TILE // 2)
            for half in range(2):
                w.tma_load(r.tile[r.slot(i)].part(half * TILE // 2, TILE // 2), r.of_full(i), i)

    r.right_consumer()
    return r.p


def expects_without_arrival(stages: int = 2, tiles: int = 3) -> Protocol:
    """``expect_tx`` in the place of ``arrive.expect_tx``: the bytes are expected, no agent arrives.

    tiles > 0: DEADLOCK
    else: proved
    """
    r = ring("expects_without_arrival", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            r.of_full(i).expect_tx(TILE)
            w.tma_load(r.tile[r.slot(i)], r.of_full(i), i)

    r.right_consumer()
    return r.p


def expects_after_arrival(stages: int = 2, tiles: int = 3) -> Protocol:
    """The producer arrives first and expects the bytes after that: the phase may be over in between.

    tiles > stages: RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > 0: RACE, UNINITIALISED_READ
    else: proved
    """
    r = ring("expects_after_arrival", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            r.of_full(i).arrive()
            r.of_full(i).expect_tx(TILE)
            w.tma_load(r.tile[r.slot(i)], r.of_full(i), i)

    r.right_consumer()
    return r.p


def expects_a_skipped_copy(stages: int = 2, tiles: int = 3) -> Protocol:
    """The last tile is outside the matrix: its copy is skipped, its bytes are expected as always.

    tiles > 0: DEADLOCK
    else: proved
    """
    r = ring("expects_a_skipped_copy", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            r.of_full(i).expect_bytes(TILE)
            if i < tiles - 1:
                w.tma_load(r.tile[r.slot(i)], r.of_full(i), i)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(r.phase(i))
            if i < tiles - 1:
                w.read(r.tile[r.slot(i)], i)
            r.release(i)

    return r.p


def more_bytes_than_a_barrier_counts(tiles: int = 1) -> Protocol:
    """Two expectations of 600,000 bytes in one phase: more than the transaction count holds.

    tiles > 0: TX_RANGE
    else: proved
    """
    r = ring("more_bytes_than_a_barrier_counts", 1, tiles, full=2)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            for _ in range(2):
                r.of_full(i).expect_bytes(LARGE)
            for _ in range(2):
                r.of_full(i).complete_transaction(w.cta, LARGE)

    @r.role("consumer")
    def consumer(_: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(r.phase(i))
            r.release(i)

    return r.p
