"""Words of global memory that are polled by atomics, looked at once, or tried: what is proved, and what is refuted."""

import pytest

from pipesim.answers.check import check
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.prove.check import check as prove
from pipesim.report.sentences.check import scope_parts
from tests.answers.test_together import kernel
from tests.support.random_words import judged_warps

RACE, WEAK = FaultKind.RACE, FaultKind.WEAK_ORDER

#: Each CTA leaves a part, sets its flag by an atomic that replaces it, and waits for the flag of the next one.
FIX_UP = """mad.wide.u32 %rd5, %r1, 4, %rd1; mad.wide.u32 %rd6, %r1, 4, %rd2;
st.global.u32 [%rd6], %r1; BEFORE atom.global.exch.b32 %r7, [%rd5], 1; setp.eq.u32 %p1, %r1, 2; @%p1 bra end;
spin: POLL @%p2 bra spin; AFTER
ld.global.u32 %r9, [%rd6+4]; st.global.u32 [%rd3], %r9;
end:"""
POLLS = {
    "add": "atom.global.add.u32 %r8, [%rd5+4], 0; setp.ne.u32 %p2, %r8, 1;",
    "cas": "atom.global.cas.b32 %r8, [%rd5+4], 0, 0; setp.ne.u32 %p2, %r8, 1;",
    "or": "atom.global.or.b32 %r8, [%rd5+4], 0; setp.ne.u32 %p2, %r8, 1;",
    "taken back": "atom.global.cas.b32 %r8, [%rd5+4], 1, 0; setp.ne.u32 %p2, %r8, 1;",
    "volatile": "ld.volatile.global.u32 %r8, [%rd5+4]; setp.ne.u32 %p2, %r8, 1;",
}
FENCE = "membar.gl;"


@pytest.mark.sampled(4)
@pytest.mark.parametrize(("before", "after"), [(FENCE, FENCE), ("", FENCE), (FENCE, "")])
@pytest.mark.parametrize("poll", POLLS)
def test_a_flag_that_is_polled_by_atomics_is_waited_for(poll: str, before: str, after: str) -> None:
    """A flag that an atomic sets was not understood: whatever polled it, the verdict was unknown."""
    body = FIX_UP.replace("POLL", POLLS[poll]).replace("BEFORE", before).replace("AFTER", after)
    found = check(kernel(body), {}, quick=True)
    assert [each.finding.kind for each in found.refutations] == ([] if before and after else [WEAK])
    assert found.verdict is (Verdict.PROVED if before and after else Verdict.REFUTED)


#: CTA 1 looks once whether CTA 0 has done it, and else does it itself.
LOOK = """setp.ne.u32 %p1, %r1, 0; @%p1 bra other;
st.global.u32 [%rd2], 1; SET bra end;
other: ld.SEEN.global.u32 %r8, [%rd1]; setp.eq.u32 %p2, %r8, 0; @%p2 bra mine; ld.global.u32 %r9, [%rd2]; MORE
mine: st.global.u32 [%rd3], 1;
end:"""
#: A lock that is tried once: what is done under it, and what is done without.
TRY = """atom.acquire.gpu.global.cas.b32 %r8, [%rd1], 0, 1; setp.ne.u32 %p2, %r8, 0; @%p2 bra taken;
st.global.u32 [%rd2], %r1; GIVEN bra end;
taken: ELSE
end:"""
#: The first CTA does it, and the others wait for that.
ONCE = """atom.relaxed.gpu.global.cas.b32 %r8, [%rd1], 0, 1; setp.ne.u32 %p2, %r8, 0; @%p2 bra spin;
st.global.u32 [%rd2], 1; SET bra end;
spin: ld.relaxed.gpu.global.u32 %r9, [%rd1]; setp.ne.u32 %p2, %r9, 2; @%p2 bra spin; AFTER
ld.global.u32 %r9, [%rd2]; st.global.u32 [%rd3], %r9;
end:"""
RELEASE, RELAXED = "st.release.gpu.global.u32 [%rd1], 1;", "st.relaxed.gpu.global.u32 [%rd1], 1;"
GIVE, SET = "st.release.gpu.global.u32 [%rd1], 0;", "st.release.gpu.global.u32 [%rd1], 2;"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (LOOK.replace("SET", RELEASE).replace("SEEN", "acquire.gpu"), None),
        (LOOK.replace("SET", RELAXED).replace("SEEN", "acquire.gpu"), WEAK),
        (LOOK.replace("SET", RELEASE).replace("SEEN", "relaxed.gpu"), WEAK),
        (LOOK.replace("SET", RELEASE).replace("SEEN", "volatile").replace("MORE", "st.global.u32 [%rd2], 2;"), WEAK),
        (LOOK.replace("SET", RELEASE).replace("SEEN", "acquire.gpu").replace("[%rd3]", "[%rd2]"), RACE),
        (TRY.replace("GIVEN", GIVE), None),
        (TRY.replace("GIVEN", GIVE).replace("ELSE", "st.global.u32 [%rd2], 7;"), RACE),
        (TRY.replace("GIVEN", GIVE.replace("release", "relaxed")), WEAK),
        (ONCE.replace("SET", SET).replace("AFTER", "fence.acq_rel.gpu;"), None),
        (ONCE.replace("SET", SET), WEAK),
        (ONCE.replace("SET", SET.replace("release", "relaxed")).replace("AFTER", "fence.acq_rel.gpu;"), WEAK),
        (ONCE.replace("SET", ""), Ending.DEADLOCK),
    ],
)  # fmt: skip
def test_what_is_seen_once_is_followed_with_each_value(body: str, wrong: FaultKind | Ending | None) -> None:
    """A lock that is tried once was proved whatever is done where it is taken."""
    for word in ("MORE", "ELSE", "AFTER"):
        body = body.replace(word, "")
    found = check(kernel(body, 2), {}, quick=True)
    assert [each.finding.kind for each in found.refutations] == ([wrong] if wrong else [])
    assert found.verdict is (Verdict.REFUTED if wrong else Verdict.PROVED)
    again = kernel(body, 2).kernel
    for name, (value,) in found.scope.policies.items():
        again = again and again.with_setting(name, value)
    assert not wrong or (again and prove(again.program).verdict is Verdict.REFUTED)


#: Each of 2 CTAs says that it comes, and enters where it does not see the other one.
ENTERS = """mul.lo.u32 %r3, %r1, 4; cvt.u64.u32 %rd5, %r3; add.u64 %rd6, %rd1, %rd5; sub.u64 %rd7, %rd1, %rd5;
st.relaxed.gpu.global.u32 [%rd6], 1; FENCE ld.relaxed.gpu.global.u32 %r8, [%rd7+4];
setp.ne.u32 %p2, %r8, 0; @%p2 bra end; st.global.u32 [%rd2], %r1;
end:"""


@pytest.mark.parametrize("fence", ["", "membar.gl;"])
def test_what_no_order_of_all_accesses_has_refutes_nothing(fence: str) -> None:
    """Both enter without a ``fence.sc``, which no order shows; with one neither does."""
    found = check(kernel(ENTERS.replace("FENCE", fence), 2), {}, quick=True)
    assert found.verdict is Verdict.UNKNOWN
    assert "no order of all accesses" in scope_parts(found)["not judged"]


#: CTAs take turns, as by CUTLASS's ``Semaphore``: all threads vote on whether the first one still waits.
VOTED = """mov.u32 %r10, OTHERS; setp.ne.u32 %p1, %r0, 0; WHO LOOK
meet: setp.ne.u32 %p2, %r10, TURN; bar.red.and.pred %p3, 0, %p2; ENDS bra mine;
@%p1 bra meet; ld.HOW.gpu.global.u32 %r10, [%rd1]; bra meet;
mine: mad.wide.u32 %rd5, %r0, 4, %rd2; ld.global.u32 %r9, [%rd5]; add.u32 %r9, %r9, 1; st.global.u32 [%rd5], %r9;
DONE setp.ne.u32 %p1, %r0, 0; @%p1 bra end; add.u32 %r11, %r1, 1; st.release.gpu.global.u32 [%rd1], %r11;
end:"""
PARTS = {"OTHERS": "-1", "WHO": "", "LOOK": "@%p1 bra meet; ld.acquire.gpu.global.u32 %r10, [%rd1];"}
PARTS |= {"TURN": "%r1", "HOW": "acquire", "DONE": "bar.sync 0;", "ENDS": "@!%p3"}
_AND = "selp.u32 %r12, 1, 0, %p3; setp.lt.u32 %p5, %r1, 9; setp.eq.and.u32 %p4, %r12, 0, %p5;"


@pytest.mark.parametrize(
    ("other", "wrong"),
    [
        ({}, None),
        ({"LOOK": ""}, None),
        ({"HOW": "relaxed"}, WEAK),
        ({"TURN": "3"}, Ending.DEADLOCK),
        ({"DONE": ""}, RACE),
        ({"OTHERS": "%r1"}, "other threads vote for the end"),
        ({"ENDS": f"{_AND} @%p4"}, "place in a loop where data decides"),
        ({"WHO": "setp.eq.u32 %p1, %r0, -1;"}, "other threads vote for the end"),  # each thread loads
    ],
)
def test_a_wait_on_whose_end_all_threads_vote_is_one_of_the_thread_that_loads(
    other: dict[str, str], wrong: FaultKind | Ending | str | None
) -> None:
    """Its kernel was not followed to its end, as it synchronises in the loop."""
    body = VOTED
    for name, part in (PARTS | other).items():
        body = body.replace(name, part)
    found = check(kernel(body, 3, 64), {}, quick=True)
    if wrong.__class__ is str:
        assert found.verdict is Verdict.UNKNOWN
        assert str(wrong) in scope_parts(found)["not judged"]
    else:
        assert {each.finding.kind for each in found.refutations} == ({wrong} if wrong else set())
        assert found.verdict is (Verdict.REFUTED if wrong else Verdict.PROVED)


#: The first lane of each warp takes a lock, or counts and the last one adds up.
WARP_LOCK = """and.b32 %r2, %r0, 31; setp.ne.u32 %p1, %r2, 0; @%p1 bra end;
spin: atom.relaxed.gpu.global.cas.b32 %r8, [%rd1], 0, 1; setp.ne.u32 %p2, %r8, 0; @%p2 bra spin; TAKEN
ld.global.u32 %r9, [%rd2]; add.u32 %r9, %r9, 1; st.global.u32 [%rd2], %r9; GIVEN
end:"""
WARP_LAST = """and.b32 %r2, %r0, 31; setp.ne.u32 %p1, %r2, 0; @%p1 bra end; shr.u32 %r2, %r0, 5;
mad.lo.u32 %r2, %r1, 2, %r2; mad.wide.u32 %rd5, %r2, 4, %rd2; st.global.u32 [%rd5], %r2; GIVEN
atom.relaxed.gpu.global.add.u32 %r8, [%rd1], 1; mov.u32 %r3, %nctaid.x; mad.lo.u32 %r3, %r3, 2, -1;
setp.ne.u32 %p2, %r8, %r3; @%p2 bra end; TAKEN ld.global.v2.u32 {%r4, %r5}, [%rd2];
end:"""
GIVES = {"exch": "atom.relaxed.gpu.global.exch.b32 %r7, [%rd1], 0;", "store": "st.relaxed.gpu.global.u32 [%rd1], 0;"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("taken", "given"), [(FENCE, FENCE), ("", FENCE), (FENCE, "")])
@pytest.mark.parametrize("gives", [*GIVES, "last"])
def test_several_warps_of_a_cta_take_a_lock_or_count(gives: str, taken: str, given: str) -> None:
    """It was not judged: orders were those of CTAs."""
    body = WARP_LAST if gives == "last" else WARP_LOCK.replace("GIVEN", "GIVEN " + GIVES[gives])
    found = check(kernel(body.replace("TAKEN", taken).replace("GIVEN", given), 2, 64), {}, quick=True)
    assert [each.finding.kind for each in found.refutations] == ([] if taken and given else [WEAK])
    assert found.verdict is (Verdict.PROVED if taken and given else Verdict.REFUTED)
    again = kernel(body.replace("TAKEN", taken).replace("GIVEN", given), 2, 64).kernel
    for name, (value,) in found.scope.policies.items():
        again = again and again.with_setting(name, value)
    assert (taken and given) or (again and prove(again.program).verdict is Verdict.REFUTED)


#: What a CTA does with the first ticket, or the second one, depends on which CTA it is.
TICKET = """atom.relaxed.gpu.global.add.u32 %r8, [%rd1], 1; add.u32 %r9, %r8, %r1; sub.u32 %r10, %r8, %r1;
setp.ne.u32 %p1, %r9, 1; @%p1 bra end; setp.eq.u32 %p2, %r10, 0; @%p2 bra end; WRONG
end:"""


WAIT = "hang: ld.relaxed.gpu.global.u32 %r9, [%rd1+4]; setp.eq.u32 %p3, %r9, 0; @%p3 bra hang;"


@pytest.mark.parametrize(("wrong", "kind"), [("st.global.u32 [%rd2], %r1;", RACE), (WAIT, Ending.DEADLOCK), ("", None)])
def test_ctas_that_do_the_same_in_one_order_may_not_in_another(wrong: str, kind: FaultKind | Ending | None) -> None:
    """It was proved by the order in which CTA 0 comes first, and 1 next."""
    found = check(kernel(TICKET.replace("WRONG", wrong), 2), {}, quick=True)
    assert [each.finding.kind for each in found.refutations] == ([kind] if kind else [])
    assert found.verdict is (Verdict.REFUTED if kind else Verdict.PROVED)


#: CTAs take tiles until there are none; each odd tile waits for the one before.
TILES = """again: atom.relaxed.gpu.global.add.u32 %r8, [%rd1], 1; setp.ge.u32 %p1, %r8, 4; @%p1 bra end;
mad.wide.u32 %rd5, %r8, 4, %rd1; mad.wide.u32 %rd6, %r8, 4, %rd2; and.b32 %r9, %r8, 1; setp.eq.u32 %p2, %r9, 0;
@%p2 bra make;
spin: ld.HOW.gpu.global.u32 %r10, [%rd5]; setp.eq.u32 %p3, %r10, 0; @%p3 bra spin; ld.global.u32 %r11, [%rd6-4];
make: st.global.u32 [%rd6], %r8; SET bra again;
end:"""
SETS = "st.release.gpu.global.u32 [%rd5+4], 1;"


@pytest.mark.parametrize(
    ("how", "sets", "wrong"), [("acquire", SETS, None), ("relaxed", SETS, WEAK), ("acquire", "", Ending.DEADLOCK)]
)
def test_tiles_by_ticket_that_depend_on_each_other(how: str, sets: str, wrong: FaultKind | Ending | None) -> None:
    """Of CTAs that do not ask which they are one order is as good as those with other numbers."""
    found = check(kernel(TILES.replace("HOW", how).replace("SET", sets), 2, which="0"), {}, quick=True)
    assert [each.finding.kind for each in found.refutations] == ([wrong] if wrong else [])
    assert found.verdict is (Verdict.REFUTED if wrong else Verdict.PROVED)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [519, 537, 540, 547])
def test_what_warps_of_one_cta_share_is_ordered_as_what_ctas_do(seed: int) -> None:
    """Where warps talk by words of all CTAs only what CTAs share was looked at: races of two warps were proved."""
    assert judged_warps(seed) in ("decided", "not decided")
