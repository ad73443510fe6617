"""Accesses in the wrong order or place: given back before read, the wrong slot, memory with two uses."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.protocols.broken.ring import TILE, ring


def consumer_arrives_before_reading(stages: int = 2, tiles: int = 3) -> Protocol:
    """The consumer gives the slot back first and reads it then.

    tiles > stages: RACE, WRONG_ITEM
    else: proved
    """
    r = ring("consumer_arrives_before_reading", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(r.phase(i))
            r.release(i)
            w.read(r.tile[r.slot(i)], i)

    return r.p


def consumer_reads_the_next_slot(stages: int = 2, tiles: int = 3) -> Protocol:
    """The consumer waits for its stage and reads the slot after it.

    stages > 1 and tiles > 1: RACE, UNINITIALISED_READ, WRONG_ITEM
    stages > 1 and tiles > 0: UNINITIALISED_READ
    else: proved
    """
    r = ring("consumer_reads_the_next_slot", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(r.phase(i))
            w.read(r.tile[r.slot(i + 1)], i)
            r.release(i)

    return r.p


def producer_arrives_before_writing(stages: int = 2, tiles: int = 3) -> Protocol:
    """The producer writes the tile itself, with ordinary stores, and arrives before it does.

    tiles > stages: RACE, UNINITIALISED_READ, WRONG_ITEM
    tiles > 0: RACE, UNINITIALISED_READ
    else: proved
    """
    r = ring("producer_arrives_before_writing", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            r.of_full(i).arrive()
            w.write(r.tile[r.slot(i)], i)

    r.right_consumer()
    return r.p


def copy_wider_than_its_slot(stages: int = 2, tiles: int = 3) -> Protocol:
    """Each slot's copy reaches 16 bytes into the next slot's memory, which lies too close.

    tiles > stages > 1: RACE, WRONG_ITEM
    stages > 1 and tiles > 1: RACE
    else: proved
    """
    r = ring("copy_wider_than_its_slot", stages, tiles)
    close = r.p.smem("close", 1, stages * TILE + 16)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            r.of_full(i).expect_bytes(TILE + 16)
            w.tma_load(close[0].part(r.slot(i) * TILE, TILE + 16), r.of_full(i), i)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.of_full(i).wait(r.phase(i))
            w.read(close[0].part(r.slot(i) * TILE, TILE), i)
            r.release(i)

    return r.p


def epilogue_over_operands(stages: int = 2, tiles: int = 3) -> Protocol:
    """After its last tile the consumer writes its result into slot 0, which it gave back: it may be loaded by then.

    The tile that is loaded ahead lies in slot 0 when the number of tiles is a multiple of the stages.

    tiles % stages == 0: RACE
    else: proved
    """
    r = ring("epilogue_over_operands", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles + 1):  # the first tile of the next output, loaded ahead
            r.acquire(i)
            r.load(w, i)

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.read(w, i)
            r.release(i)
        w.write(r.tile[0], tiles)

    return r.p
