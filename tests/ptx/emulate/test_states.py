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


OTHERS = """ setp.ne.u32 %p1, %r2, 0;
 setp.ne.u32 %p2, %r1, 2;
 @!%p1 mbarrier.arrive.shared::cta.b64 %rd2, [%r3];
 @%p1 bra end;
 @%p2 bra end;
again:
 mbarrier.try_wait.shared::cta.b64 %p3, [%r3], %rd2;
 @!%p3 bra again;
end:
"""


@pytest.mark.parametrize(("count", "found"), [(3, Verdict.PROVED), (2, Verdict.REFUTED)])
def test_of_which_phase_a_state_is_depends_on_who_arrives_first(count: int, found: Verdict) -> None:
    """Of two of three arrivals the last one begins a phase that none ends. It was proved."""
    assert check(program_of(SET_UP.format(first=count, count=1) + OTHERS, 3)).verdict is found
