"""Smallest protocols with a fault of an mbarrier: wrong, and with ``right=1`` corrected."""

from __future__ import annotations

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp


def deadlock(right: int = 0) -> Protocol:
    """The barrier counts two arrivals, and one is made."""
    p = Protocol("deadlock")
    full = p.mbarriers("full", 1, count=1 if right else 2)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive()

    @p.role("consumer")
    def consumer(_: Warp) -> None:
        full[0].wait(0)

    return p


def over_arrival(right: int = 0) -> Protocol:
    """All 32 lanes arrive where one arrival is pending."""
    p = Protocol("over_arrival")
    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        if right:
            with w.elect_one():
                full[0].arrive()
        else:
            full[0].arrive()

    return p


def init_count(right: int = 0) -> Protocol:
    """The count of the init is 0."""
    p = Protocol("init_count")
    full = p.mbarriers("full", 1)

    @p.init
    def init() -> None:
        full[0].init(1 if right else 0)

    @p.role("producer")
    def producer(w: Warp) -> None:
        w.work(cycles=100)

    return p


def arrive_count(right: int = 0) -> Protocol:
    """The arrive makes no arrival."""
    p = Protocol("arrive_count")
    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive(1 if right else 0)

    return p


def not_initialised(right: int = 0) -> Protocol:
    """One warp initialises the barrier, and nothing makes the other wait for that."""
    p = Protocol("not_initialised")
    full = p.mbarriers("full", 1)

    @p.init
    def init() -> None:
        """Nothing: the producer does it."""

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].init(1)
        if right:
            w.sync_threads()

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        if right:
            w.sync_threads()
        with w.elect_one():
            full[0].arrive()

    return p


def reinitialised(right: int = 0) -> Protocol:
    """The barrier gets another count without an inval in between."""
    p = Protocol("reinitialised")
    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            if right:
                full[0].inval()
            full[0].init(2)

    return p


def invalidated(right: int = 0) -> Protocol:
    """The barrier is used after its inval."""
    p = Protocol("invalidated")
    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            if right:
                full[0].arrive()
            full[0].inval()
            if not right:
                full[0].arrive()

    return p


def inval_pending(right: int = 0) -> Protocol:
    """The barrier is invalidated when one of two arrivals has been made."""
    p = Protocol("inval_pending")
    full = p.mbarriers("full", 1, count=2)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive(2 if right else 1)
            full[0].inval()

    return p


def no_complete(right: int = 0) -> Protocol:
    """An arrive that promises not to complete the phase makes its last arrival."""
    p = Protocol("no_complete")
    full = p.mbarriers("full", 1, count=2 if right else 1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive_no_complete()

    return p


def stale_state(right: int = 0) -> Protocol:
    """A wait by state is made two phases after the arrive that returned the state."""
    p = Protocol("stale_state")
    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            state = full[0].arrive()
            if not right:
                full[0].arrive()
            full[0].wait_state(state)

    return p
