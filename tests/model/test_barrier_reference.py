"""The barrier functions against a naive one, written from PTX's words with every arrival and byte on a list."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipesim.model import barrier
from pipesim.model.barrier import FRESH, LIVE, BarrierState, Effect
from pipesim.model.finding import FaultKind


class Naive:
    """An mbarrier that keeps a list of who still has to arrive and a ledger of bytes, and counts nothing."""

    def __init__(self, count: int) -> None:
        self.expected = ["arrival"] * count
        self.phases: list[str] = []
        self._open()

    def _open(self) -> None:
        self.waiting = list(self.expected)
        self.promised: list[int] = []
        self.landed: list[int] = []

    def _ended(self) -> bool:
        if self.waiting or sum(self.promised) != sum(self.landed):
            return False
        self.phases.append("complete")
        self._open()
        return True

    def arrive(self, count: int, expect: int = 0) -> tuple[bool, FaultKind | None]:
        if count > len(self.waiting):
            return False, FaultKind.OVER_ARRIVAL
        self.promised.append(expect)
        for _ in range(count):
            self.waiting.pop()
        return self._ended(), None

    def arrive_drop(self, count: int, expect: int = 0) -> tuple[bool, FaultKind | None]:
        if count > len(self.expected) or count > len(self.waiting):
            return False, FaultKind.OVER_ARRIVAL
        del self.expected[:count]
        return self.arrive(count, expect)

    def arrive_no_complete(self, count: int) -> tuple[bool, FaultKind | None]:
        completed, fault = self.arrive(count)
        return completed, FaultKind.NO_COMPLETE if completed else fault

    def add_tx(self, nbytes: int) -> tuple[bool, FaultKind | None]:
        if nbytes >= 0:
            self.promised.append(nbytes)
        else:
            self.landed.append(-nbytes)
        return self._ended(), None

    def raise_pending(self, count: int) -> tuple[bool, FaultKind | None]:
        self.waiting += ["copy"] * count
        return False, None

    def word(self) -> BarrierState:
        due = sum(self.promised) - sum(self.landed)
        return BarrierState(len(self.expected), len(self.waiting), due, len(self.phases), LIVE)

    def passes(self, parity: int) -> bool:
        """Has the phase of this parity completed? The last one that did has the parity of its number."""
        return (len(self.phases) - 1) % 2 == parity  # a fresh barrier counts as having completed parity 1


counts = st.integers(1, 5)
sizes = st.sampled_from([0, 16, 32, 48])
calls = st.one_of(
    st.tuples(st.just("arrive"), counts),
    st.tuples(st.just("arrive"), counts, sizes),
    st.tuples(st.just("arrive_drop"), st.integers(1, 2)),
    st.tuples(st.just("arrive_drop"), st.integers(1, 2), sizes),
    st.tuples(st.just("arrive_no_complete"), counts),
    st.tuples(st.just("add_tx"), sizes),
    st.tuples(st.just("add_tx"), sizes.map(lambda n: -n)),
    st.tuples(st.just("raise_pending"), counts),
)


@pytest.mark.slow
@settings(max_examples=200, deadline=None)
@given(count=st.integers(1, 8), script=st.lists(calls, max_size=60))
def test_every_sequence_of_operations_agrees_with_the_naive_barrier(count: int, script: list[tuple[str, int]]) -> None:
    naive = Naive(count)
    state = barrier.init(FRESH, count)[0]
    tokens: list[tuple[int, int, int]] = []
    for name, *operands in script:
        tokens.append((barrier.token(state), len(naive.phases), len(naive.waiting)))
        effect: Effect = getattr(barrier, name)(state, *operands)
        state = effect[0]
        assert effect[1:] == getattr(naive, name)(*operands)
        assert state == naive.word()
        assert [barrier.passes(state, p) for p in (0, 1)] == [naive.passes(p) for p in (0, 1)]
        for held, phase, pending in tokens:
            assert barrier.token_pending(held) == pending
            passed, stale = barrier.token_passes(state, held)
            assert passed == (len(naive.phases) > phase)
            assert (stale is None) == (len(naive.phases) - phase in (0, 1))


def test_the_naive_barrier_would_notice_a_wrong_rule() -> None:
    """Twin: a barrier whose tx does not hold the phase open is told apart by the first copy."""
    naive = Naive(1)
    naive.arrive(1, 64)
    wrong, completed, _ = barrier.arrive(barrier.init(FRESH, 1)[0], 1)
    assert completed
    assert wrong != naive.word()
