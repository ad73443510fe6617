"""The warp that comes last reads what all have stored: what tells it so orders that, and is not followed."""

import pytest

from pipesim.model.finding import FaultKind, Verdict
from pipesim.prove.check import check
from tests.support.small_ptx import SET_UP, program_of

ROW = " shl.b32 %r4, %r0, 2;\n add.u32 %r4, %r4, tile;\n"
#: Each of two warps stores a row; whoever finds that the other one has done so reads both.
ARRIVES = (
    SET_UP.format(first=64, count=1)
    + ROW
    + """ setp.ne.u32 %p1, %r2, 0;
 @%p1 bra.uni stored;
 @!%p0 st.shared.u32 [tile+1024], 0;
stored:
 bar.sync 0;
 st.shared.u32 [%r4], %r0;
 fence.acq_rel.cta;
 bar.warp.sync -1;
{arrive}
 fence.acq_rel.cta;
 bar.warp.sync -1;
 @!%p2 bra over;
{reads}
over:
"""
)
READS = " ld.shared.u32 %r10, [tile];\n ld.shared.u32 %r11, [tile+128];"
BY_LANE_0 = """ mov.u32 %r8, 0;
 @!%p1 atom.shared.{atom} %r8, [tile+1024], 1;
"""
SHUFFLED = BY_LANE_0 + " shfl.sync.idx.b32 %r9, %r8, 0, 31, -1;\n setp.eq.u32 %p2, %r9, 1;\n"
TOLD = """ shl.b32 %r5, %r1, 2;
 setp.eq.u32 %p3, %r8, 1;
 selp.u32 %r9, 1, 0, %p3;
 @!%p1 st.shared.u32 [%r5+2048], %r9;
 bar.warp.sync -1;
 ld.shared.u32 %r9, [%r5+2048];
 setp.ne.u32 %p2, %r9, 0;
"""
STATE = """ mbarrier.arrive.shared::cta.b64 %rd4, [%r3];
 mbarrier.pending_count.b64 %r8, %rd4;
 setp.le.u32 %p2, %r8, 32;
"""
PEEK = """ @!%p1 st.volatile.shared.u32 [tile+1024], 1;
 ld.volatile.shared.u32 %r8, [tile+1024];
 setp.ne.u32 %p2, %r8, 0;
"""
CLOCK = " mov.u32 %r8, %clock;\n setp.eq.u32 %p2, %r8, 700;\n"


@pytest.mark.parametrize(
    "arrive",
    [
        SHUFFLED.format(atom="add.u32"),
        SHUFFLED.format(atom="exch.b32"),
        SHUFFLED.format(atom="inc.u32").replace("31, -1;", "31, -1;\n mov.u32 %r6, %clock;\n add.u32 %r9, %r6, %r9;"),
        BY_LANE_0.format(atom="add.u32") + " setp.eq.u32 %p3, %r8, 1;\n vote.sync.any.pred %p2, %p3, -1;\n",
        BY_LANE_0.format(atom="add.u32") + TOLD,
        STATE,
        PEEK,
    ],
)
def test_what_a_warp_reads_because_it_comes_last_is_no_certain_race(arrive: str) -> None:
    assert check(program_of(ARRIVES.format(arrive=arrive, reads=READS))).verdict is Verdict.UNKNOWN


def test_what_another_value_decides_or_nothing_is_one() -> None:
    atomic = SHUFFLED.format(atom="add.u32")
    for text in ARRIVES.format(arrive=CLOCK, reads=READS), ARRIVES.format(arrive=atomic, reads="") + READS:
        found = check(program_of(text))
        assert found.verdict is Verdict.REFUTED
        assert FaultKind.RACE in {each.kind for each in found.refutations}
