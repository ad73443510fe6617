"""Named barriers: a wrong number of threads, every agent arrives and none waits, one number for two purposes."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.tiles import TileArray
from pipesim.lang.warp import Warp
from pipesim.protocols.broken.ring import TILE
from pipesim.protocols.limits import require

PAIR = 64  #: threads of two warps


def _slot(name: str, tiles: int) -> tuple[Protocol, TileArray]:
    require("tiles", tiles, 0, 1 << 16)
    p = Protocol(name)
    return p, p.smem("tile", slots=1, nbytes=TILE)


def _hand_over(name: str, tiles: int, writer_threads: int, reader_threads: int) -> Protocol:
    """One warp writes a tile and another reads it, with a sync of both after each."""
    p, tile = _slot(name, tiles)

    @p.role("writer")
    def writer(w: Warp) -> None:
        for i in range(tiles):
            w.write(tile[0], i)
            w.bar_sync(1, writer_threads)
            w.bar_sync(1, writer_threads)

    @p.role("reader")
    def reader(w: Warp) -> None:
        for i in range(tiles):
            w.bar_sync(1, reader_threads)
            w.read(tile[0], i)
            w.bar_sync(1, reader_threads)

    return p


def sync_counts_a_third_warp(tiles: int = 2) -> Protocol:
    """Two warps meet at a named barrier that was told to expect three.

    tiles > 0: DEADLOCK
    else: proved
    """
    return _hand_over("sync_counts_a_third_warp", tiles, 3 * 32, 3 * 32)


def sync_counts_one_warp(tiles: int = 2) -> Protocol:
    """Two warps meet at a named barrier with a thread count for one: neither waits for the other.

    tiles > 1: RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > 0: RACE, UNINITIALISED_READ
    else: proved
    """
    return _hand_over("sync_counts_one_warp", tiles, 32, 32)


def warps_disagree_about_threads(tiles: int = 2) -> Protocol:
    """The writer says 64 threads, the reader 96.

    tiles > 0: BARRIER_THREADS
    else: proved
    """
    return _hand_over("warps_disagree_about_threads", tiles, PAIR, 96)


def threads_no_multiple_of_32(tiles: int = 2) -> Protocol:
    """Both say 48 threads: a named barrier counts whole warps.

    tiles > 0: BARRIER_THREADS
    else: proved
    """
    return _hand_over("threads_no_multiple_of_32", tiles, 48, 48)


def everybody_arrives(tiles: int = 2) -> Protocol:
    """Writer and reader both use ``barrier.arrive``: the barrier completes and no agent waits for it.

    tiles > 1: RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > 0: RACE, UNINITIALISED_READ
    else: proved
    """
    p, tile = _slot("everybody_arrives", tiles)

    @p.role("writer")
    def writer(w: Warp) -> None:
        for i in range(tiles):
            w.write(tile[0], i)
            w.bar_arrive(1, PAIR)

    @p.role("reader")
    def reader(w: Warp) -> None:
        for i in range(tiles):
            w.bar_arrive(1, PAIR)
            w.read(tile[0], i)

    return p


def writer_is_a_lap_ahead(tiles: int = 2) -> Protocol:
    """The writer only arrives, the reader syncs: two arrivals of the writer complete the barrier without the reader.

    Then the reader waits for an arrival that was spent.

    tiles > 1: DEADLOCK
    else: proved
    """
    require("tiles", tiles, 0, 1 << 16)
    p = Protocol("writer_is_a_lap_ahead")
    kept = p.smem("kept", slots=max(tiles, 1), nbytes=TILE)  # a slot for each tile: only the barrier is reused

    @p.role("writer")
    def writer(w: Warp) -> None:
        for i in range(tiles):
            w.write(kept[i], i)
            w.bar_arrive(1, PAIR)

    @p.role("reader")
    def reader(w: Warp) -> None:
        for i in range(tiles):
            w.bar_sync(1, PAIR)
            w.read(kept[i], i)

    return p


def one_number_for_two_pairs(tiles: int = 1) -> Protocol:
    """Two pairs of warps use named barrier 1: the warps that meet may be of different pairs.

    tiles > 1: DEADLOCK, RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > 0: DEADLOCK, RACE, UNINITIALISED_READ
    else: proved
    """
    require("tiles", tiles, 0, 1 << 16)
    p = Protocol("one_number_for_two_pairs")
    tile = p.smem("tile", slots=2, nbytes=TILE)

    @p.role("writer", warps=2)
    def writer(w: Warp) -> None:
        for i in range(tiles):
            w.write(tile[w.index], i)
            w.bar_sync(1, PAIR)
            w.bar_sync(1, PAIR)

    @p.role("reader", warps=2)
    def reader(w: Warp) -> None:
        for i in range(tiles):
            w.bar_sync(1, PAIR)
            w.read(tile[w.index], i)
            w.bar_sync(1, PAIR)

    return p


def sync_inside_a_condition(tiles: int = 2) -> Protocol:
    """The writer leaves out the last sync, for which the reader waits.

    tiles > 0: DEADLOCK
    else: proved
    """
    p, tile = _slot("sync_inside_a_condition", tiles)

    @p.role("writer")
    def writer(w: Warp) -> None:
        for i in range(tiles):
            w.write(tile[0], i)
            w.bar_sync(1, PAIR)
            if i < tiles - 1:
                w.bar_sync(1, PAIR)

    @p.role("reader")
    def reader(w: Warp) -> None:
        for i in range(tiles):
            w.bar_sync(1, PAIR)
            w.read(tile[0], i)
            w.bar_sync(1, PAIR)

    return p
