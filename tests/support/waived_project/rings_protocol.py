"""Rings with known findings: one that the baseline has, three that are waived, and one that is right."""

from collections.abc import Callable

from pipesim import Protocol, Warp
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.tiles import Slot

STAGES, TILES, BYTES = 2, 3, 64


def _ring(name: str, count: int, consume: Callable[..., None]) -> Protocol:
    p = Protocol(name)
    tile = p.smem("tile", slots=STAGES, nbytes=BYTES)
    full, empty = p.mbarriers("full", STAGES, count=1), p.mbarriers("empty", STAGES, count=count)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in range(TILES):
                empty[i % STAGES].wait((i // STAGES & 1) ^ 1)
                full[i % STAGES].expect_bytes(BYTES)
                w.tma_load(tile[i % STAGES], full[i % STAGES], i)

    @p.role("mma")
    def mma(w: Warp) -> None:
        with w.elect_one():
            for i in range(TILES):
                full[i % STAGES].wait(i // STAGES & 1)
                consume(w, tile[i % STAGES], empty[i % STAGES], i)

    return p


def right() -> Protocol:
    """As it should be."""

    def consume(w: Warp, tile: Slot, empty: SharedMemBarrier, i: int) -> None:
        w.read(tile, i)
        empty.arrive()  # pipesim: ignore[race] nothing is wrong here

    return _ring("right", 1, consume)


def in_baseline() -> Protocol:
    """A count that is never reached."""

    def consume(w: Warp, tile: Slot, empty: SharedMemBarrier, i: int) -> None:
        w.read(tile, i)
        empty.arrive()

    return _ring("in_baseline", 2, consume)


def arrives_first() -> Protocol:
    """The slot is given back before it is read."""

    def consume(w: Warp, tile: Slot, empty: SharedMemBarrier, i: int) -> None:
        empty.arrive()
        # pipesim: ignore[race] the next version reads first
        w.read(tile, i)

    return _ring("arrives_first", 1, consume)


def arrives_twice() -> Protocol:
    """An arrival too many."""

    def consume(w: Warp, tile: Slot, empty: SharedMemBarrier, i: int) -> None:
        w.read(tile, i)
        empty.arrive()
        empty.arrive()

    return _ring("arrives_twice", 1, consume)


def by_the_letter() -> Protocol:
    """An arrive that promises not to complete the phase completes it."""

    def consume(w: Warp, tile: Slot, empty: SharedMemBarrier, i: int) -> None:
        w.read(tile, i)
        empty.arrive_no_complete()

    return _ring("by_the_letter", 1, consume)
