"""Waits for the state that an arrive returned, where lanes of a warp have arrived by different instructions."""

import pytest

from pipesim.model.finding import FaultKind, Verdict
from pipesim.prove.check import check
from tests.support.small_ptx import SET_UP, program_of

#: The first lane arrives and expects the bytes of its copy, the others arrive; all wait for what they were told.
TRANSACTION = (
    SET_UP.format(first=64, count=64)
    + """ mov.u64 %rd1, 268435456;
 setp.ne.u32 %p1, %r0, 0;
 @%p1 bra others;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 128, [%r3];
 mbarrier.arrive.expect_tx.shared::cta.b64 %rd2, [%r3], 128;
 bra all;
others:
 mbarrier.arrive.shared::cta.b64 %rd2, [{other}];
all:
 mbarrier.{wait}.shared::cta.b64 %p2, [%r3], %rd2;
 @!%p2 bra all;
 ld.shared.u32 %r5, [tile];
"""
)


@pytest.mark.parametrize("wait", ["try_wait", "test_wait"])
def test_states_of_one_phase_are_one(wait: str) -> None:
    """As in CUDA's guide: thread 0 calls ``barrier_arrive_tx``, the others ``arrive``, and all wait for their token."""
    program = program_of(TRANSACTION.format(wait=wait, other="%r3"))
    assert program.coverage.stopped == ()
    assert check(program).verdict is Verdict.PROVED


def test_states_of_several_mbarriers_are_not() -> None:
    program = program_of(TRANSACTION.format(wait="try_wait", other="%r3+8"))
    assert {each.kind for each in check(program).refutations} == {FaultKind.ILLEGAL_OPERAND}
