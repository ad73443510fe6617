"""Lanes that signal, wait or copy by one instruction, each for itself: others learn of it what this lane did."""

import pytest

from pipesim.model.coverage import Assumption, Strictness
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from tests.support.small_ptx import SET_UP, program_of, text_of

STRICT = Strictness({Assumption.LANES})
MEET = "bar.warp.sync -1;\n "


def rests_on_lanes(program: Program) -> bool:
    """Whether it is proved, but not where lanes are held to what PTX says."""
    assert check(program).verdict is Verdict.PROVED
    strictly = check(program.with_strictness(STRICT))
    assert {each.kind for each in strictly.refutations} <= {FaultKind.LANES_APART}
    return strictly.verdict is Verdict.REFUTED


#: The lanes of warp 0 store, {arrive}, and warp 1 reads what all have stored once bars[0] is complete.
ARRIVES = (
    SET_UP
    + """ setp.ne.u32 %p4, %r1, 0;
 setp.ne.u32 %p5, %r2, 0;
 and.b32 %r20, %r2, 1;
 mad.lo.u32 %r21, %r20, 8, %r3;
 shl.b32 %r22, %r2, 2;
 mov.u32 %r23, tile;
 add.u32 %r23, %r23, %r22;
 @%p4 bra waits;
 st.shared.u32 [%r23], %r2;
 {arrive}
 bra done;
waits:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;
 @!%p9 bra waits;
 ld.shared.u32 %r9, [tile+4];
done:
"""
)
BY_TWO = "mbarrier.arrive.shared::cta.b64 _, [%r21];"
OTHERS_FIRST = "mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n @!%p5 mbarrier.arrive.shared::cta.b64 _, [%r3];"


@pytest.mark.parametrize(
    ("arrive", "first", "count", "rests"),
    [
        (BY_TWO, 16, 16, True),  # of which each counts other lanes
        (MEET + BY_TWO, 16, 16, False),
        (OTHERS_FIRST, 1, 32, True),  # which tells only those that wait for the second one
        (MEET + OTHERS_FIRST, 1, 32, False),
        ("mbarrier.arrive.shared::cta.b64 _, [%r3];", 32, 1, False),
    ],
)
def test_an_arrive_hands_on_what_the_lanes_on_this_mbarrier_have_done(
    arrive: str, first: int, count: int, rests: bool
) -> None:
    program = program_of(ARRIVES.format(arrive=arrive, first=first, count=count))
    assert rests_on_lanes(program) is rests


#: Each lane of a warp stores {of} 16 rows of 32 bytes, and copies one of them.
ROWS = """ mov.u32 %r0, %tid.x;
 mov.u32 %r3, tile;
 mov.u64 %rd1, 268435456;
 shl.b32 %r4, %r0, 5;
 add.u32 %r5, %r3, %r4;
 mul.wide.u32 %rd2, %r0, 32;
 add.u64 %rd2, %rd1, %rd2;
 shl.b32 %r6, %r0, 4;
 add.u32 %r6, %r3, %r6;
 st.shared.v4.u32 [{at}], {{%r0, %r0, %r0, %r0}};
 st.shared.v4.u32 [{at}+{next}], {{%r0, %r0, %r0, %r0}};
 fence.proxy.async.shared::cta;
 {meet}cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r5], 32;
 cp.async.bulk.commit_group;
 cp.async.bulk.wait_group 0;
"""
OWN, SPREAD = {"at": "%r5", "next": 16}, {"at": "%r6", "next": 512}


@pytest.mark.parametrize(("of", "meet", "rests"), [(OWN, "", False), (SPREAD, "", True), (SPREAD, MEET, False)])
def test_a_lane_copies_what_others_have_stored_once_they_met(of: dict[str, object], meet: str, rests: bool) -> None:
    assert rests_on_lanes(program_of(ROWS.format(**of, meet=meet), 1)) is rests


#: Lanes of the first CTA store, {tell}, and those of the second one {learn} before they read what others have stored.
WORDS = """ ld.param.u64 %rd1, [words];
 add.u64 %rd2, %rd1, 4096;
 mov.u32 %r0, %tid.x;
 mov.u32 %r1, %ctaid.x;
 mul.wide.u32 %rd3, %r0, 4;
 add.u64 %rd4, %rd1, %rd3;
 add.u64 %rd5, %rd2, %rd3;
 setp.ne.u32 %p1, %r0, 0;
 setp.gt.u32 %p2, %r0, 1;
 setp.ne.u32 %p3, %r1, 0;
 @%p3 bra second;
 st.global.u32 [%rd5], %r0;
 {tell}
 bra end;
second:
{learn}
got:
 {met}ld.global.u32 %r3, [%rd2+124];
end:
"""
TELLS = {
    "one": "@%p1 bra end;\n st.release.gpu.global.u32 [%rd1], 1;",
    "fenced": "fence.acq_rel.gpu;\n @%p1 bra end;\n st.relaxed.gpu.global.u32 [%rd1], 1;",
    "two": "@%p2 bra end;\n st.release.gpu.global.u32 [%rd4], 1;",
    "each": "st.release.gpu.global.u32 [%rd4], 1;",
}
LEARNS = {
    "all": "again:\n ld.acquire.gpu.global.u32 %r2, [%rd1];\n setp.eq.u32 %p4, %r2, 0;\n @%p4 bra again;",
    "own": "again:\n ld.acquire.gpu.global.u32 %r2, [%rd4];\n setp.eq.u32 %p4, %r2, 0;\n @%p4 bra again;",
}
LEARNS["two"] = " @%p2 bra got;\n" + LEARNS["own"]


@pytest.mark.parametrize(
    ("tell", "learn", "met", "rests"),
    [
        ("one", "all", "", True),
        ("fenced", "all", "", True),
        ("two", "all", "", True),
        ("each", "all", "", True),
        (MEET + "one", "all", "", False),
        (MEET + "fenced", "all", "", False),
        (MEET + "two", "all", "", False),
        (MEET + "each", "all", "", False),
        (MEET + "each", "own", "", True),
        (MEET + "each", "own", MEET, False),
        (MEET + "two", "two", "", True),
        (MEET + "two", "two", MEET, False),
    ],
)
def test_a_word_hands_on_what_the_lane_that_writes_it_has_done(tell: str, learn: str, met: str, rests: bool) -> None:
    """As ``__syncwarp()`` is missing before a flag of global memory, or after the loop that waits for it."""
    said = MEET * tell.startswith(MEET) + TELLS[tell.removeprefix(MEET)]
    body = WORDS.format(tell=said, learn=LEARNS[learn], met=met)
    module = read_module(text_of(body, ".param .u64 words"), "small.ptx")
    together = Launch("kernel", (2, 1, 1), (32, 1, 1), parameters=(Parameter("words", Pointer()),), together=2)
    assert rests_on_lanes(extract(module, together).program) is rests
