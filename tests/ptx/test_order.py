"""Orders that PTX does not promise and kernels rely on, read from PTX: each right, wrong, and under its strict rule."""

from __future__ import annotations

import pytest

from pipesim.model.assumptions import LENIENT, Assumption, Strictness
from pipesim.model.finding import Verdict
from pipesim.prove.assumed import assumed_by
from pipesim.prove.check import check
from tests.support.small_ptx import SET_UP, program_of

SET = SET_UP.format(first=1, count=1)
COMMIT = " @!%p0 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3{}];\n"
WARP_1 = " setp.eq.u32 %p1, %r1, 0;\n @%p1 bra done;\n"
WAIT = "waits{0}:\n mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3{1}], 0;\n @!%p2 bra waits{0};\n"
INVAL = " setp.ne.u32 %p3, %r2, 0;\n @!%p3 mbarrier.inval.shared::cta.b64 [%r3];\n"
TO_BOTH = (
    " .reg .b16 %h<2>;\n cvt.u16.u32 %h1, 3;\n mov.u32 %r5, %cluster_ctarank;\n or.b32 %r6, %r5, %r0;\n"
    " setp.ne.u32 %p4, %r6, 0;\n barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;\n{}"
)
MULTICAST = (
    " @!%p4 tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.multicast::cluster.b64 [%r3{}], %h1;\n"
)


@pytest.mark.parametrize(
    ("body", "cluster", "verdicts", "kind"),
    [
        (SET + COMMIT.format("") + COMMIT.format("+8") + WARP_1 + WAIT.format(1, "+8") + INVAL, 1, "pr", "INVALIDATED"),
        (SET + COMMIT.format("+8") + COMMIT.format("") + WARP_1 + WAIT.format(1, "+8") + INVAL, 1, "rr", "INVALIDATED"),
        (SET + COMMIT.format("") + COMMIT.format("+8") + WARP_1 + WAIT.format(1, "") + INVAL, 1, "pp", ""),
        (
            SET + TO_BOTH.format(MULTICAST.format("") + MULTICAST.format("+8")) + WAIT.format(1, "+8"),
            2,
            "pr",
            "EXITED_CTA",
        ),
        (
            SET + TO_BOTH.format(MULTICAST.format("+8") + MULTICAST.format("")) + WAIT.format(1, "+8"),
            2,
            "rr",
            "EXITED_CTA",
        ),
    ],
    ids=[
        "a later commit is waited for",
        "an earlier one",
        "that one",
        "of two CTAs a later one",
        "an earlier one of two",
    ],
)
def test_an_earlier_commit_has_arrived_when_a_later_one_has(body: str, cluster: int, verdicts: str, kind: str) -> None:
    """Wherever a barrier ends its life, or its CTA does, after a commit that is not the last of its thread on it."""
    program = program_of(body + "done:\n", cluster=cluster).with_strictness(LENIENT)
    found = [check(program), check(program.with_strictness(Strictness({Assumption.COMMITS})))]
    assert [{"p": Verdict.PROVED, "r": Verdict.REFUTED}[each] for each in verdicts] == [each.verdict for each in found]
    assert {shown.kind.name for each in found for shown in each.refutations} == ({kind} if kind else set())
    assert found[0].by_commit_order == (verdicts == "pr")
    if verdicts != "rr":
        rests = [each for each in assumed_by(program) if each.kind is Assumption.COMMITS]
        assert bool(rests) == (verdicts == "pr")
