"""What looks suspicious and is right: each small protocol is proved, and a wrong twin of it is not."""

from collections.abc import Callable

import pytest

from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.finding import Verdict
from pipesim.model.ops import Fence
from pipesim.model.program import Program
from pipesim.prove.check import Check, How, check
from pipesim.prove.search.breadth_first import explore
from tests.support.mistakes import BROKEN
from tests.support.mistakes.ring import TILE, Ring, ring

MOST_STATES = 30_000


def phase_that_nobody_waits_for(*, synced: bool = True) -> Protocol:
    """A first arrival completes a phase for which no agent waits: a named barrier says that it is over."""
    p = Protocol("phase_that_nobody_waits_for")
    done = p.mbarriers("done", 1, 1)
    tile = p.smem("tile", 1, TILE)

    def meet(w: Warp) -> None:
        if synced:
            w.bar_sync(1, 96)

    @p.role("first")
    def first(w: Warp) -> None:
        with w.elect_one():
            done[0].arrive()
        meet(w)

    @p.role("writer")
    def writer(w: Warp) -> None:
        meet(w)
        w.write(tile[0], 1)
        with w.elect_one():
            done[0].arrive()

    @p.role("reader")
    def reader(w: Warp) -> None:
        meet(w)
        done[0].wait(1)
        w.read(tile[0], 1)

    return p


def copy_before_its_expectation(*, arrival_last: bool = True) -> Protocol:
    """The copy is issued first, its bytes are expected after that, and the arrival comes last: tx may be negative."""
    r = ring("copy_before_its_expectation", 2, 5)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(r.tiles):
            r.acquire(i)
            w.tma_load(r.tile[r.slot(i)], r.of_full(i), i)
            if not arrival_last:
                r.of_full(i).arrive()
            r.of_full(i).expect_tx(TILE)
            if arrival_last:
                r.of_full(i).arrive()

    r.right_consumer()
    return r.p


def acquired_twice(*, parity_of_second: int = 1) -> Protocol:
    """The producer waits again for a slot that it has already found free."""
    r = ring("acquired_twice", 2, 5)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(r.tiles):
            r.acquire(i)
            r.of_empty(i).wait(r.phase(i) ^ parity_of_second)
            r.load(w, i)

    r.right_consumer()
    return r.p


def try_then_wait_if_needed(*, needed: bool = True) -> Protocol:
    """The consumer tries, and waits only where the try has failed."""
    r = ring("try_then_wait_if_needed", 2, 5)
    r.right_producer()

    @r.role("consumer")
    def consumer(w: Warp) -> None:
        for i in range(r.tiles):
            ready = r.of_full(i).try_wait(r.phase(i))
            if needed:
                r.of_full(i).wait_if_needed(ready, r.phase(i))
            w.read(r.tile[r.slot(i)], i)
            r.release(i)

    return r.p


def two_wait_for_one_phase(*, counted: int = 2) -> Protocol:
    """Two consumer warps wait for the same phase, read the same tile and both give it back."""
    r = ring("two_wait_for_one_phase", 2, 4, empty=counted)
    r.right_producer()
    r.right_consumer(warps=2)
    return r.p


def never_given_back_and_never_needed(*, tiles: int = 2) -> Protocol:
    """The consumer gives nothing back, and the ring does not wrap."""
    return BROKEN["consumer_never_arrives"](2, tiles)


def several_copies_on_one_barrier(*, expected: int = 4) -> Protocol:
    """Four copies fill a tile and are counted on one barrier."""
    return _copied(pieces=4, expected=expected * TILE // 4)


def initialised_again(*, synced: bool = True) -> Protocol:
    """When both roles are done with a ring, its barriers are invalidated and initialised for a second round."""
    r = ring("initialised_again", 1, 2)

    def meet(w: Warp) -> None:
        if synced:
            w.bar_sync(1, 64)

    @r.p.role("producer")
    def producer(w: Warp) -> None:
        for again in range(2):
            with w.elect_one():
                for i in range(r.tiles):
                    r.acquire(i)
                    r.load(w, i)
            meet(w)
            with w.elect_one():
                if not again:
                    for barrier in (r.full[0], r.empty[0]):
                        barrier.inval()
                        barrier.init(1)
                    w.fence(Fence.MBARRIER_INIT)
            meet(w)

    @r.p.role("consumer")
    def consumer(w: Warp) -> None:
        for _ in range(2):
            with w.elect_one():
                for i in range(r.tiles):
                    r.read(w, i)
                    r.release(i)
            meet(w)
            meet(w)

    return r.p


def one_warp_leaves_early(*, counted: int = 1) -> Protocol:
    """Of two consumer warps the second has nothing to do and returns at once; the first goes on."""
    r = ring("one_warp_leaves_early", 2, 5, empty=counted)
    r.right_producer()

    @r.role("consumer", warps=2)
    def consumer(w: Warp) -> None:
        if w.index == 1:
            return
        for i in range(r.tiles):
            r.read(w, i)
            r.release(i)

    return r.p


def raw_copies_of_rows(*, expected: int = TILE) -> Protocol:
    """A tile as raw bulk copies of its two rows; `one_tensor_copy` is the same protocol with one copy of all of it."""
    return _copied(pieces=2, expected=expected)


def one_tensor_copy(*, expected: int = TILE) -> Protocol:
    return _copied(pieces=1, expected=expected)


def _copied(pieces: int, expected: int) -> Protocol:
    r: Ring = ring("copied", 2, 3)

    @r.role("producer")
    def producer(w: Warp) -> None:
        for i in range(r.tiles):
            r.acquire(i)
            r.of_full(i).expect_bytes(expected)
            for piece in range(pieces):
                part = r.tile[r.slot(i)].part(piece * TILE // pieces, TILE // pieces)
                w.tma_load(part, r.of_full(i), i)

    r.right_consumer()
    return r.p


#: The right protocol, what its verdict rests on, and what makes it wrong. The certificate knows a phase to be over only
#: from a wait, and follows no second init: those two are left to the search.
RIGHT: list[tuple[Callable[..., Protocol], How, dict[str, int]]] = [
    (phase_that_nobody_waits_for, How.CERTIFICATE, {"synced": False}),
    (copy_before_its_expectation, How.CERTIFICATE, {"arrival_last": False}),
    (acquired_twice, How.CERTIFICATE, {"parity_of_second": 0}),
    (try_then_wait_if_needed, How.CERTIFICATE, {"needed": False}),
    (two_wait_for_one_phase, How.CERTIFICATE, {"counted": 1}),
    (never_given_back_and_never_needed, How.CERTIFICATE, {"tiles": 3}),
    (several_copies_on_one_barrier, How.CERTIFICATE, {"expected": 3}),
    (initialised_again, How.CERTIFICATE, {"synced": False}),
    (one_warp_leaves_early, How.CERTIFICATE, {"counted": 2}),
    (raw_copies_of_rows, How.CERTIFICATE, {"expected": TILE // 2}),
    (one_tensor_copy, How.CERTIFICATE, {"expected": TILE // 2}),
]


def judged(program: Program) -> Check:
    said = check(program, MOST_STATES)
    assert said.verdict is explore(program, MOST_STATES, reduced=False).verdict, "the plain search is the judge"
    return said


@pytest.mark.slow
@pytest.mark.parametrize(("protocol", "how", "wrong"), RIGHT)
def test_what_is_right_is_proved_and_its_wrong_twin_is_not(
    protocol: Callable[..., Protocol], how: How, wrong: dict[str, int]
) -> None:
    said = judged(protocol().flatten())
    assert (said.verdict, said.how) == (Verdict.PROVED, how)
    assert judged(protocol(**wrong).flatten()).verdict is Verdict.REFUTED
