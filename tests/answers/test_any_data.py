"""Loops that a vote of the CTA ends, or a word that one thread stores: proved for all answers, never refuted by one."""

import pytest

from pipesim.answers.check import check
from pipesim.model.coverage import Assumption, NotJudgedKind
from pipesim.model.finding import Verdict
from pipesim.ptx.emulate.data_answers import MOST_LAPS, DataAnswers
from pipesim.ptx.free.varying import FreeInputs, Varying
from pipesim.ptx.launch.values import Launch, Pointer
from pipesim.targets import Target
from tests.support.small_ptx import SET_UP, extraction_of

#: Each thread stores a word, all meet, and each loads that of another warp, until the vote says that it is enough.
LOOP = """ ld.param.u64 %rd1, [x];
 shl.b32 %r5, %r0, 2;
 mov.u32 %r6, tile;
 add.u32 %r6, %r6, %r5;
 xor.b32 %r7, %r5, 128;
 mov.u32 %r8, tile;
 add.u32 %r7, %r7, %r8;
again:
 ld.global.u32 %r9, [%rd1];
 setp.eq.u32 %p1, %r9, 0;
 st.shared.u32 [%r6], %r9;
 bar.sync 0;
 ld.shared.u32 %r10, [%r7];
 {vote}
 @{goes_on} bra again;
"""
WORD = """selp.u32 %r11, 1, 0, %p1;
 @!%p0 st.shared.u32 [tile+512], %r11;
 bar.sync 0;
 ld.shared.u32 %r12, [tile+512];
 {0} setp.ne.u32 %p2, %r12, 0;"""
VOTES = [
    ("bar.red.or.pred %p2, 0, %p1;", "%p2"),
    ("bar.red.and.pred %p2, 0, %p1;", "!%p2"),
    ("bar.red.popc.u32 %r11, 0, %p1; setp.lt.u32 %p2, %r11, 5;", "!%p2"),
    (WORD.format("bar.sync 0;"), "%p2"),
]


def target(body: str) -> Target:
    made = extraction_of(
        SET_UP.format(first=1, count=1) + body, params=".param .u64 x, .param .u64 y", values=(Pointer(),) * 2
    )
    return Target("small", None, made.program, {}, "", kernel=made)


@pytest.mark.slow
@pytest.mark.parametrize(("vote", "goes_on"), VOTES)
def test_what_a_vote_ends_is_proved_for_each_number_of_laps(vote: str, goes_on: str) -> None:
    found = check(target(LOOP.format(vote=vote, goes_on=goes_on)), {}, quick=True)
    assert found.verdict is Verdict.PROVED
    assert NotJudgedKind.DATA_LAPS in {each.kind for each in found.scope.not_judged}


@pytest.mark.slow
@pytest.mark.parametrize(("vote", "goes_on"), [*VOTES[:2], pytest.param(*VOTES[2], marks=pytest.mark.long)])
def test_what_fails_in_the_second_lap_may_never_happen(vote: str, goes_on: str) -> None:
    """Another warp waits in the vote for itself alone."""
    wrong = vote.replace(".pred %p2, 0,", ".pred %p2, %r1, 32,").replace("popc.u32 %r11, 0,", "popc.u32 %r11, %r1, 32,")
    found = check(target(" add.u32 %r1, %r1, 1;\n" + LOOP.format(vote=wrong, goes_on=goes_on)), {}, quick=True)
    assert found.verdict is Verdict.UNKNOWN


#: A bisection: all threads load one word, in shared memory, and compare what they make of it.
SAME = """ ld.param.u64 %rd1, [x];
 ld.param.u64 %rd2, [y];
 shl.b32 %r5, %r0, 2;
 mov.u32 %r6, tile;
 add.u32 %r6, %r6, %r5;
 mov.f32 %r21, 0f00000000;
again:
 ld.global.f32 %r22, [%rd1];
 st.shared.f32 [%r6], %r22;
 bar.sync 0;
 ld.shared.f32 %r23, [{place}];
 {between}
 add.f32 %r21, %r21, %r23;
 setp.lt.f32 %p2, %r21, 0f3F800000;
 bar.sync 0;
 @%p2 bar.sync 0;
 @%p2 bra again;
 bar.sync 1, 64;
"""
STORE = "@!%p0 st.shared.f32 [tile], %r22;"
LATER = f"bar.sync 0; {STORE} bar.sync 0; setp.eq.u32 %p3, %r1, 1; @%p3 ld.shared.f32 %r23, [tile];"
#: The second warp loads a word of global memory before a copy overwrites it, and the first one after that.
COPIED = """bar.sync 0; fence.proxy.async; bar.sync 0; setp.eq.u32 %p3, %r1, 1; @%p3 ld.global.f32 %r23, [%rd1];
 bar.sync 0; @!%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 16;
 cp.async.bulk.commit_group; cp.async.bulk.wait_group 0; bar.sync 0; @!%p3 ld.global.f32 %r23, [%rd1];"""


@pytest.mark.parametrize(
    ("place", "between", "verdict"),
    [
        ("tile", "", Verdict.PROVED),
        ("tile", COPIED, Verdict.UNKNOWN),  # it was proved
        ("tile", COPIED.replace("[%rd1], [tile]", "[%rd2], [tile]"), Verdict.PROVED),
        ("%r6", "", Verdict.UNKNOWN),  # each thread has its own
        ("tile", STORE, Verdict.REFUTED),  # some may load it after it is stored again
        ("tile", LATER, Verdict.UNKNOWN),  # the second warp does
        ("tile", "ld.global.f32 %r23, [%rd1];", Verdict.PROVED),
        ("tile", "ld.volatile.global.f32 %r23, [%rd1];", Verdict.UNKNOWN),  # the host or a peer may store in between
    ],
)
def test_a_branch_that_is_made_of_one_word_is_the_same_for_all(place: str, between: str, verdict: Verdict) -> None:
    found = check(target(SAME.format(place=place, between=between)), {}, quick=True)
    assert found.verdict is verdict
    other = any(each.kind is Assumption.BUFFERS for each in found.heading.coverage.assumed)
    assert other == ("[%rd2], [tile]" in between)  # which may be the same memory


def test_what_fails_before_the_first_answer_is_refuted() -> None:
    vote, goes_on = VOTES[0]
    body = LOOP.format(vote=vote, goes_on=goes_on).replace(" bar.sync 0;\n", "", 1)
    found = check(target(body), {}, quick=True)
    assert found.verdict is Verdict.REFUTED


def test_answers_are_counted_for_each_cta() -> None:
    answers = DataAnswers(Launch("small", (2, 1, 1), (32, 1, 1), (2, 1, 1), any_data=True), FreeInputs())
    free = [isinstance(answers.answer(3, 1, (cta, 0)), Varying) for _ in range(MOST_LAPS + 1) for cta in range(2)]
    assert free == [True] * 2 * MOST_LAPS + [False] * 2
