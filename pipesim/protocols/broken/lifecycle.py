"""The life of a barrier: used before it is published, after its end, initialised twice, ended in a phase."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ops import Fence
from pipesim.protocols.broken.ring import Ring, ring


def init_not_published(stages: int = 2, tiles: int = 3) -> Protocol:
    """The producer initialises the barriers after the CTA barrier: nothing keeps the consumer from being first.

    tiles > 0: NOT_INITIALISED
    else: proved
    """
    r = ring("init_not_published", stages, tiles)

    @r.p.init
    def init() -> None:
        """Nothing: the producer does it, too late."""

    @r.role("producer")
    def producer(w: Warp) -> None:
        _init(r, w)
        for i in range(tiles):
            r.acquire(i)
            r.load(w, i)

    r.right_consumer()
    return r.p


def one_stage_forgotten(stages: int = 2, tiles: int = 3) -> Protocol:
    """The barriers of the last stage are never initialised.

    tiles >= stages: NOT_INITIALISED
    else: proved
    """
    r = ring("one_stage_forgotten", stages, tiles)

    @r.p.init
    def init() -> None:
        for s in range(stages - 1):
            r.full[s].init(1)
            r.empty[s].init(1)

    r.right_producer()
    r.right_consumer()
    return r.p


def count_of_zero(stages: int = 2, tiles: int = 3) -> Protocol:
    """``empty`` is initialised for no consumer.

    else: INIT_COUNT
    """
    r = ring("count_of_zero", stages, tiles)

    @r.p.init
    def init() -> None:
        for s in range(stages):
            r.full[s].init(1)
            r.empty[s].init(0)

    r.right_producer()
    r.right_consumer()
    return r.p


def initialised_by_both(stages: int = 2, tiles: int = 3) -> Protocol:
    """Each role initialises the barriers, in the belief that it is the one that does.

    else: REINITIALISED
    """
    r = ring("initialised_by_both", stages, tiles)

    @r.p.init
    def init() -> None:
        """Nothing: the roles do it."""

    @r.p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            _init(r, w)
        w.bar_sync(1, 64)
        with w.elect_one():
            for i in range(tiles):
                r.acquire(i)
                r.load(w, i)

    @r.p.role("consumer")
    def consumer(w: Warp) -> None:
        with w.elect_one():
            _init(r, w)
        w.bar_sync(1, 64)
        with w.elect_one():
            for i in range(tiles):
                r.read(w, i)
                r.release(i)

    return r.p


def invalidated_by_the_producer(stages: int = 2, tiles: int = 3) -> Protocol:
    """The producer invalidates ``full`` when it has issued its last copy, not when the consumer is done.

    tiles > 0: INVALIDATED, INVAL_PENDING
    else: proved
    """
    r = ring("invalidated_by_the_producer", stages, tiles)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(tiles):
            r.acquire(i)
            r.load(w, i)
        for barrier in r.full:
            barrier.inval()

    r.right_consumer()
    return r.p


def used_after_inval(stages: int = 2, tiles: int = 3) -> Protocol:
    """The consumer invalidates ``full`` of each stage in its last lap, and reads one tile more.

    tiles > 0: INVALIDATED
    else: proved
    """
    r = ring("used_after_inval", stages, tiles)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(tiles):
            r.read(w, i)
            if i == tiles - 1:
                r.of_full(i).inval()
                r.of_full(i).wait(r.phase(i))
            r.release(i)

    return r.p


def _init(r: Ring, w: Warp) -> None:
    with w.elect_one():
        for barrier in (*r.full, *r.empty):
            barrier.init(1)
        w.fence(Fence.MBARRIER_INIT)
