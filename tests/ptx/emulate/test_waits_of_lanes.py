"""Lanes of a warp that wait for different mbarriers in one loop."""

import pytest

from pipesim.answers.check import check as whole_check
from pipesim.answers.views.conclusion import Basis
from pipesim.model.coverage import Assumption
from pipesim.model.finding import Verdict
from pipesim.prove.check import check
from tests.support.random_programs.lane_ways import of_ways
from tests.support.small_ptx import SET_UP, kernel_target, program_of

#: The first lanes of warp 0 wait for bars[0] and the others for bars[1], on which warp 1 arrives, and then read.
WAITS = """ setp.eq.u32 %p1, %r1, 1;
 @%p1 bra writer;
 setp.ge.u32 %p2, %r2, {lanes};
 selp.u32 %r10, 8, 0, %p2;
 add.u32 %r10, %r3, %r10;
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r10], 0;
 @!%p9 bra again;
 bar.warp.sync -1;
 ld.shared.u32 %r12, [tile];
 bra.uni over;
writer:
 st.shared.u32 [tile], %r1;
 bar.warp.sync -1;
 setp.ne.u32 %p3, %r2, 0;
 @%p3 bra over;
 mbarrier.arrive.shared::cta.b64 _, [%r3];
{second}over:
"""
SECOND = " mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n"


@pytest.mark.parametrize("lanes", [1, 16])
@pytest.mark.parametrize(("second", "verdict"), [(SECOND, Verdict.PROVED), ("", Verdict.REFUTED)])
def test_lanes_that_wait_for_different_mbarriers_wait_for_all(lanes: int, second: str, verdict: Verdict):
    program = program_of(SET_UP.format(first=1, count=1) + WAITS.format(lanes=lanes, second=second))
    assert check(program, 2_000).verdict is verdict
    assert program.coverage.complete == (verdict is Verdict.PROVED)
    assert any(each.kind is Assumption.LANES for each in program.coverage.assumed)


def test_a_lane_whose_wait_has_ended_may_arrive_for_one_that_waits():
    """PTX does not say that it waits for the other lane, so that the hang is not certain."""
    second = "over:\n @%p1 bra out;\n @%p2 bra out;\n" + SECOND + "out:\n"
    text = WAITS.format(lanes=1, second="").replace("over:\n", second)
    (hang,) = whole_check(kernel_target(SET_UP.format(first=1, count=1) + text, ctas=2), {}, quick=True).refutations
    assert hang.basis is Basis.POSSIBLE


#: Lanes of warp 1 wait where warp 0 arrives once; lane 0 arrives on the other way of their branch, or after they met.
TWO_WAYS = """ setp.ne.u32 %p2, %r2, 0;
 setp.eq.u32 %p1, %r1, 0;
 @%p1 bra arrives;
 @!%p2 bra first;
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 1;
 @!%p9 bra again;
 bra met;
first:
{alone}met:
 bar.warp.sync -1;
{met}arrives:
 @!%p2 mbarrier.arrive.shared::cta.b64 _, [%r3];
"""
#: Two warp groups share their registers anew; the first two warps do what follows.
SHARED = """ setp.ge.u32 %p5, %r1, 4;
 @%p5 bra more;
 setmaxnreg.dec.sync.aligned.u32 24;
 bra shared;
more:
 setmaxnreg.inc.sync.aligned.u32 240;
shared:
 setp.gt.u32 %p5, %r1, 1;
 @%p5 bra over;
"""


@pytest.mark.parametrize(
    ("alone", "met", "verdict"),
    [
        (" mbarrier.arrive.shared::cta.b64 _, [%r3];\n bra met;\n", " bra over;\n", Verdict.PROVED),
        ("", "", Verdict.REFUTED),
    ],
)
@pytest.mark.parametrize("first", ["", SHARED])
def test_lanes_on_another_way_of_a_branch_may_end_a_deadlock(first: str, alone: str, met: str, verdict: Verdict):
    """Whichever way a warp takes first, as they are followed apart. It was refuted; with registers it was unknown."""
    text = first + TWO_WAYS.format(alone=alone, met=met) + "over:\n"
    assert check(program_of(SET_UP.format(first=1, count=1) + text, warps=8 if first else 2)).verdict is verdict


#: Lane 0 copies into a tile and waits for it, or makes an mbarrier; the others do this on the other way of the branch.
USED = """ mov.u64 %rd1, 268435456;
 setp.ne.u32 %p2, %r2, 0;
 @%p2 bra others;
 mbarrier.init.shared::cta.b64 [%r3+16], 31;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 128, [%r3];
first: mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;
 @!%p9 bra first;
 bra met;
others:
{use}met:
 bar.warp.sync -1;
{later}"""
READS, ARRIVES = " ld.shared.u32 %r9, [tile];\n", " @%p2 mbarrier.arrive.shared::cta.b64 _, [%r3+16];\n"
AGAIN = "again: mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;\n @!%p9 bra again;\n"


@pytest.mark.parametrize(
    ("use", "later", "verdict"),
    [
        (AGAIN + READS, "", "proved"),
        ("", READS + ARRIVES, "proved"),
        (READS, "", "unknown"),  # these were proved, as if the lanes ran in step
        (ARRIVES, "", "unknown"),
    ],
)
def test_what_lanes_wait_for_on_one_way_of_a_branch_is_not_there_on_the_other(use: str, later: str, verdict: str):
    program = program_of(SET_UP.format(first=1, count=1) + USED.format(use=use, later=later), warps=1)
    assert check(program).verdict.value == verdict


@pytest.mark.parametrize("seed", [*range(4), 109, 169])
def test_lanes_on_two_ways_of_a_branch_are_as_two_warps(seed: int):
    assert not of_ways(seed)  # the last two were proved
