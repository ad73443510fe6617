"""``SharedMemBarrier``: every method of the API surface exists and records the right operation and counts."""

from collections.abc import Callable
from typing import Any

import pytest

from pipesim.errors import ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.warp import Warp
from pipesim.model.ops import Op, Operation, Order, Scope, semantics

RELEASE = semantics(Order.RELEASE, Scope.CLUSTER)
RELAXED = semantics(Order.RELAXED)


def recorded(body: Callable[[SharedMemBarrier], Any], cluster: int = 2) -> list[Operation]:
    """What two lanes of CTA 0 record on barrier 1 of 2, and what is written to registers nobody reads is -1."""
    p = Protocol("bar", cluster=cluster)
    bars = p.mbarriers("b", 2, count=1)

    @p.role("r")
    def r(w: Warp) -> None:
        if w.cta == 0:
            with w.lanes(2):
                body(bars[1])

    prologue = 4 if cluster == 1 else 5  # two inits, a fence, then a barrier of the CTA or both halves of the cluster's
    return list(p.flatten().code[0][prologue:])


CALLS: dict[str, tuple[Callable[[SharedMemBarrier], Any], Operation]] = {
    "inval": (lambda b: b.inval(), (Op.INVAL, 1)),
    "arrive": (lambda b: b.arrive(), (Op.ARRIVE, 1, 2, 0, -1, 0)),
    "arrive of 3 released": (
        lambda b: b.arrive(3, order=Order.RELEASE, scope=Scope.CLUSTER), (Op.ARRIVE, 1, 6, 0, -1, RELEASE),
    ),
    "arrive_cluster": (lambda b: b.arrive_cluster(1, 3), (Op.ARRIVE, 3, 6, 0, -1, 0)),
    "arrive_cluster at home": (lambda b: b.arrive_cluster(0), (Op.ARRIVE, 1, 2, 0, -1, 0)),
    "arrive_drop": (lambda b: b.arrive_drop(2), (Op.ARRIVE_DROP, 1, 4, 0, -1, 0)),
    "arrive_no_complete": (lambda b: b.arrive_no_complete(), (Op.ARRIVE_NO_COMPLETE, 1, 2, -1, 0)),
    "expect_bytes": (lambda b: b.expect_bytes(64), (Op.ARRIVE, 1, 2, 128, -1, 0)),
    "expect_bytes_relaxed": (lambda b: b.expect_bytes_relaxed(64), (Op.ARRIVE, 1, 2, 128, -1, RELAXED)),
    "arrive_and_expect_bytes": (lambda b: b.arrive_and_expect_bytes(64, 1), (Op.ARRIVE, 3, 2, 128, -1, 0)),
    "expect_tx": (lambda b: b.expect_tx(64), (Op.EXPECT_TX, 1, 128, RELAXED)),
    "complete_transaction": (
        lambda b: b.complete_transaction(1, 64), (Op.COMPLETE_TX, 3, 128, semantics(Order.RELAXED, Scope.CLUSTER)),
    ),
    "wait": (lambda b: b.wait(), (Op.WAIT, 1, 0, 0)),
    "wait of phase 1": (lambda b: b.wait(1), (Op.WAIT, 1, 1, 0)),
    "wait_acquire": (
        lambda b: b.wait_acquire(1, Scope.CLUSTER), (Op.WAIT, 1, 1, semantics(Order.ACQUIRE, Scope.CLUSTER)),
    ),
    "wait_relaxed": (lambda b: b.wait_relaxed(1), (Op.WAIT, 1, 1, semantics(Order.RELAXED, Scope.CTA))),
    "try_wait": (lambda b: b.try_wait(1), (Op.TRY_WAIT, 1, 1, -1, 0)),
    "test_wait": (lambda b: b.test_wait(), (Op.TEST_WAIT, 1, 0, -1, 0)),
    "wait_if_needed false": (lambda b: b.wait_if_needed(False, 1), (Op.WAIT, 1, 1, 0)),
    "cp_async_arrive": (lambda b: b.cp_async_arrive(), (Op.CP_ASYNC_ARRIVE, 1, 2, 0)),
    "cp_async_arrive noinc": (lambda b: b.cp_async_arrive(noinc=True), (Op.CP_ASYNC_ARRIVE, 1, 2, 1)),
}  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_each_method_records_its_operation(call: str) -> None:
    body, expected = CALLS[call]
    assert recorded(body) == [expected]


def test_results_that_are_read_get_registers() -> None:
    def body(b: SharedMemBarrier) -> None:
        ready = b.try_wait(1)
        b.wait_if_needed(ready, 1)
        state = b.arrive()
        passed = b.test_state(state)
        b.wait_if_needed(passed, 0)
        b.wait_state(state)
        b.pending_count(state)

    assert recorded(body) == [
        (Op.TRY_WAIT, 1, 1, 0, 0),
        (Op.WAIT_UNLESS, 1, 1, 0, 0),
        (Op.ARRIVE, 1, 2, 0, 0, 0),
        (Op.TEST_STATE, 1, 0, 1, 0),
        (Op.WAIT_UNLESS, 1, 0, 1, 0),
        (Op.WAIT_STATE, 1, 0, 0),
        (Op.PENDING_COUNT, 0, -1),
    ]


def test_every_instruction_of_ptx_mbarrier_can_be_recorded() -> None:
    """``COMMIT`` and ``TMA_LOAD`` signal barriers too, but from the warp object."""
    mbarrier = {op for op in Op if op <= Op.CP_ASYNC_ARRIVE}
    direct = {Op(expected[0]) for _, expected in CALLS.values()}
    assert direct | {Op.INIT, Op.WAIT_UNLESS, Op.WAIT_STATE, Op.TEST_STATE, Op.PENDING_COUNT} == mbarrier


@pytest.mark.parametrize("phase", [2, -1, 3])
@pytest.mark.parametrize("wait", ["wait", "wait_acquire", "wait_relaxed", "try_wait", "test_wait"])
def test_a_lap_counter_is_no_parity(wait: str, phase: int) -> None:
    with pytest.raises(ProtocolError, match=f"a wait takes parity 0 or 1, not {phase}") as caught:
        recorded(lambda b: getattr(b, wait)(phase))
    assert caught.value.correction == "pass phase & 1"
