"""Loops around a try: which of them are waits, and what they do while its answer is no."""

import pytest

from pipesim.model.finding import FaultKind, Verdict
from pipesim.prove.check import check
from pipesim.ptx.emulate.cluster import EmulationLimits
from tests.support.small_ptx import SET_UP, extraction_of, program_of

#: Warp 0 stores a word and arrives; warp 1 asks in a loop, then loads the word.
WHOLE = (
    SET_UP.format(first=1, count=1)
    + """ setp.ne.u32 %p1, %r2, 0;
 setp.eq.u32 %p2, %r1, 1;
 mov.u32 %r10, 0;
 @%p2 bra reader;
 st.shared.u32 [tile], 5;
 bar.warp.sync -1;
 @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r3];
 bra.uni over;
reader:
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;
{ends} {loads}
over:
"""
)
LOADS = "ld.shared.u32 %r12, [tile];"
COUNT = " add.u32 %r10, %r10, 1;\n setp.lt.u32 %p8, %r10, {most};\n"
SPIN = " @!%p9 bra again;\n"


def verdict(ends: str, loads: str = LOADS) -> tuple[Verdict, set[FaultKind], tuple[str, ...]]:
    program = program_of(WHOLE.format(ends=ends, loads=loads))
    found = check(program)
    return (
        found.verdict,
        {shown.kind for shown in found.refutations if isinstance(shown.kind, FaultKind)},
        tuple(each.what for each in program.coverage.assumed),
    )


@pytest.mark.parametrize(
    "ends",
    [
        SPIN,
        " @%p9 bra done;\n bra.uni again;\ndone:\n",
        " selp.u32 %r11, 1, 0, %p9;\n setp.eq.u32 %p8, %r11, 0;\n @%p8 bra again;\n",
        " setp.ne.u32 %p7, 0, 0;\n or.pred %p8, %p9, %p7;\n @!%p8 bra again;\n",
    ],
)
def test_a_loop_that_only_the_answer_ends_is_a_wait(ends: str) -> None:
    assert verdict(ends)[:2] == (Verdict.PROVED, set())


@pytest.mark.parametrize(
    "ends",
    [
        COUNT.format(most=3) + " @%p8 bra again;\n",
        " setp.eq.u32 %p7, 0, 0;\n or.pred %p8, %p9, %p7;\n @!%p8 bra again;\n",
        " mov.u32 %r3, bars;\n" + COUNT.format(most=3) + " @%p8 bra again;\n",
    ],
)
def test_a_loop_that_ends_whatever_the_answer_is_no_wait(ends: str) -> None:
    assert verdict(ends)[:2] == (Verdict.REFUTED, {FaultKind.RACE})


@pytest.mark.slow
def test_a_loop_that_parts_with_each_answer_is_left_soon() -> None:
    """Each try found one branch more inside those before it, and looked at all of them."""
    on_yes = " not.pred %p7, %p9;\n mov.u32 %r9, -1;\n vote.sync.any.pred %p8, %p7, %r9;\n @!%p8 bra again;\n"
    assert "more than 1,024 tries" in program_of(WHOLE.format(ends=on_yes, loads=LOADS)).coverage.stopped[0]


def test_that_a_loop_asks_often_enough_is_stated() -> None:
    some = COUNT.format(most=1000) + " and.pred %p8, %p8, !%p9;\n @%p8 bra again;\n"
    found, kinds, assumed = verdict(
        some.replace("and.pred %p8, %p8, !%p9", "not.pred %p7, %p9;\n and.pred %p8, %p8, %p7")
    )
    assert (found, kinds) == (Verdict.PROVED, set())
    assert any(each.endswith("does not time out") for each in assumed)
    assert not verdict(SPIN)[2]


@pytest.mark.parametrize(
    ("address", "end", "times_out"),
    [
        ("add.u32 %r12, %r3, 0;", "@!%p9 bra spin;", False),
        ("mov.u32 %r12, bars;\n add.u32 %r12, %r12, 0;", "@!%p9 bra spin;", False),
        ("add.u32 %r12, %r12, 0;", "@!%p9 bra spin;", True),  # the sum of another iteration's
        (
            "add.u32 %r12, %r3, 0;",
            "@%p9 bra done;\n mov.u32 %r11, %clock;\n setp.lt.u32 %p8, %r11, 99;\n @%p8 bra spin;\ndone:",
            True,
        ),
    ],
)
def test_a_spin_in_a_loop_may_compute_its_address_again(*, address: str, end: str, times_out: bool) -> None:
    asks = "mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r12], %r13;"
    spin = f" mov.u32 %r12, %r3;\nouter:\n and.b32 %r13, %r10, 1;\nspin:\n {address}\n {asks}\n {end}\n"
    found, kinds, assumed = verdict(spin + COUNT.format(most=1) + " @%p8 bra outer;\n")
    assert (found, kinds) == (Verdict.PROVED, set())
    assert any("time out" in each for each in assumed) == times_out


def test_that_lanes_pass_a_wait_by_a_vote_of_others_is_stated() -> None:
    said = {vote: verdict(f" vote.sync.{vote}.pred %p9, %p9, -1;\n" + SPIN) for vote in ("any", "all")}
    assert {vote: (found, len(assumed)) for vote, (found, _, assumed) in said.items()} == {
        "any": (Verdict.PROVED, 1), "all": (Verdict.PROVED, 0),
    }  # fmt: skip


def test_what_a_loop_touches_while_the_answer_is_no_comes_before_the_wait() -> None:
    early = f" {LOADS}\n" + SPIN
    assert verdict(early, "")[:2] == (Verdict.REFUTED, {FaultKind.RACE})
    after = f"{SPIN} {LOADS}\n"
    assert verdict(after, "")[:2] == (Verdict.PROVED, set())
    elsewhere = " ld.shared.u32 %r12, [bars+8];\n" + SPIN
    assert verdict(elsewhere)[:2] == (Verdict.PROVED, set())


EITHER = """ setp.ne.u32 %p1, %r2, 0;
 setp.eq.u32 %p2, %r1, 1;
 @%p2 bra reader;
{0} st.shared.u32 [tile], 5;
 bar.warp.sync -1;
{1} @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r3];
 bra.uni over;
reader:
again:
 mbarrier.test_wait.parity.shared::cta.b64 %p9, [%r3], 0;
 @%p9 bra ready;
 mbarrier.test_wait.parity.shared::cta.b64 %p8, [%r3+8], 0;
 @!%p8 bra again;
ready:
 ld.shared.u32 %r12, [tile];
over:
"""


def test_a_loop_that_either_of_two_answers_ends_is_a_wait_for_none_of_them() -> None:
    arrive = " @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n"
    start = SET_UP.format(first=1, count=1)
    assert not check(program_of(start + EITHER.format("", arrive)), 2_000).refutations
    wrong = check(program_of(start + EITHER.format(arrive, "")))
    assert wrong.verdict is Verdict.REFUTED
    assert FaultKind.RACE in {shown.kind for shown in wrong.refutations}


def test_a_loop_that_any_of_two_collected_answers_ends_is_not_read_and_says_so() -> None:
    body = EITHER.format("", "").replace(" @%p9 bra ready;\n", "").replace("@!%p8", "@!%p7")
    body = body.replace(" @!%p7 bra", " or.pred %p7, %p9, %p8;\n @!%p7 bra")
    text = SET_UP.format(first=1, count=1) + body
    program = extraction_of(text, limits=EmulationLimits(operations=500)).program
    assert check(program, 2_000).verdict is Verdict.UNKNOWN
    assert any("in a loop of tries that is not a wait for each" in each for each in program.coverage.stopped)
