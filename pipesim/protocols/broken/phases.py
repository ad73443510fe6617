"""Parities and counters of stages: wrong at the start, not toggled, toggled too often, not carried over, outrun."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.protocols.broken.ring import TILE, Ring, ring
from pipesim.protocols.limits import require


def _with_parities(r: Ring, producer_xor: int, consumer_xor: int) -> Protocol:
    """The ring in which a role's first parity is the wrong one."""

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(r.tiles):
            r.of_empty(i).wait(r.phase(i) ^ 1 ^ producer_xor)
            r.load(w, i)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(r.tiles):
            r.of_full(i).wait(r.phase(i) ^ consumer_xor)
            w.read(r.tile[r.slot(i)], i)
            r.release(i)

    return r.p


def producer_starts_at_zero(stages: int = 2, tiles: int = 5) -> Protocol:
    """The producer waits for parity 0 first, as if consumers had arrived on every ``empty`` before.

    tiles > 0: DEADLOCK
    else: proved
    """
    return _with_parities(ring("producer_starts_at_zero", stages, tiles), 1, 0)


def consumer_starts_at_one(stages: int = 2, tiles: int = 3) -> Protocol:
    """The consumer waits for parity 1 first, which passes at once on a fresh barrier.

    tiles > stages: DEADLOCK, RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > 0: DEADLOCK, RACE, UNINITIALISED_READ
    else: proved
    """
    return _with_parities(ring("consumer_starts_at_one", stages, tiles), 0, 1)


def producer_never_toggles(stages: int = 2, tiles: int = 5) -> Protocol:
    """The producer waits for parity 1 in every lap.

    tiles > stages: DEADLOCK, OVER_ARRIVAL, RACE, WRONG_ITEM
    else: proved
    """
    r = ring("producer_never_toggles", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.of_empty(i).wait(1)
            r.load(w, i)

    r.right_consumer()
    return r.p


def consumer_never_toggles(stages: int = 2, tiles: int = 5) -> Protocol:
    """The consumer waits for parity 0 in every lap.

    tiles > stages: DEADLOCK, RACE, WRONG_ITEM
    else: proved
    """
    r = ring("consumer_never_toggles", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(0)
            w.read(r.tile[r.slot(i)], i)
            r.release(i)

    return r.p


def phase_toggles_every_tile(stages: int = 2, tiles: int = 5) -> Protocol:
    """Both roles toggle their parity with every tile instead of with every lap.

    The second tile is always read before anything is there, for even and odd numbers of stages. With one stage a lap
    is a tile, and nothing is wrong.

    stages > 1 and tiles > 1: UNINITIALISED_READ
    else: proved
    """
    r = ring("phase_toggles_every_tile", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.of_empty(i).wait(i & 1 ^ 1)
            r.load(w, i)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(i & 1)
            w.read(r.tile[r.slot(i)], i)
            r.release(i)

    return r.p


def phase_toggles_a_stage_early(stages: int = 2, tiles: int = 5) -> Protocol:
    """The consumer toggles its parity on entering the last stage, not on leaving it.

    tiles >= 2 * stages > 0: DEADLOCK, RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles >= stages: DEADLOCK, RACE, UNINITIALISED_READ
    else: proved
    """
    r = ring("phase_toggles_a_stage_early", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait((i + 1) // stages & 1)
            w.read(r.tile[r.slot(i)], i)
            r.release(i)

    return r.p


def counters_restart_with_every_tile(stages: int = 2, tiles: int = 2, k_iters: int = 2) -> Protocol:
    """Both roles start each output tile of ``k_iters`` steps at stage 0 and the first parity; the barriers continue.

    Nothing is wrong while every slot of a tile is used an even number of times.

    tiles > 1 and k_iters % (2 * stages) > stages: WRONG_ITEM
    tiles > 1 and k_iters % (2 * stages) > 0: DEADLOCK, OVER_ARRIVAL, RACE, WRONG_ITEM
    else: proved
    """
    require("k_iters", k_iters, 0, 1 << 16)
    r = ring("counters_restart_with_every_tile", stages, tiles * k_iters)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(r.tiles):
            k = i % k_iters
            r.acquire(k)
            r.of_full(k).expect_bytes(TILE)
            w.tma_load(r.tile[r.slot(k)], r.of_full(k), i)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(r.tiles):
            k = i % k_iters
            r.of_full(k).wait(r.phase(k))
            w.read(r.tile[r.slot(k)], i)
            r.release(k)

    return r.p


def nobody_waits_for_the_sleeper(tiles: int = 3) -> Protocol:
    """A barrier announces each tile to a waiter, and the announcer never waits for the waiter: it is lapped.

    Two announcements bring the parity back, and the sleeper waits for the one that it has missed.

    tiles > 1: DEADLOCK
    else: proved
    """
    require("tiles", tiles, 0, 1 << 16)
    p = Protocol("nobody_waits_for_the_sleeper")
    go = p.mbarriers("go", 1, 1)

    @p.role("announcer")
    def announcer(w: Warp) -> None:
        with w.elect_one():
            for _ in range(tiles):
                go[0].arrive()

    @p.role("sleeper")
    def sleeper(_: Warp) -> None:
        for i in range(tiles):
            go[0].wait(i & 1)

    return p
