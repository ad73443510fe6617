"""Orders that PTX does not promise and kernels rely on, read from PTX: each right, wrong, and under its strict rule."""

import pytest

from pipesim.model.coverage import LENIENT, Assumption, Strictness
from pipesim.model.finding import FaultKind, Verdict
from pipesim.prove.assumed import assumed_by
from pipesim.prove.check import check
from tests.support.small_ptx import SET_UP, program_of, text_of

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


COPY = (
    " @!%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;\n"
    " @!%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 128, [%r3];\n"
)
FENCE = " fence.proxy.async.shared::cta;\n"
#: Warp 1 reads what warp 0 copied and hands it back; warp 0 copies over it. {0}: after the read; {1}: before the copy
RING = (
    SET_UP.format(first=1, count=32)
    + " setp.eq.u32 %p1, %r1, 1;\n @%p1 bra reads;\n"
    + COPY
    + WAIT.format(1, "+8")
    + "{1}"
    + COPY
    + WAIT.format(2, "").replace(", 0;", ", 1;")
    + " bra done;\nreads:\n"
    + WAIT.format(3, "")
    + " ld.shared.u32 %r7, [tile];\n{0} mbarrier.arrive.shared::cta.b64 _, [%r3+8];\ndone:\n"
)


@pytest.mark.parametrize(
    ("target", "after", "before", "verdict"),
    [
        ("sm_90a", "", "", Verdict.PROVED),
        ("sm_100a", "", "", Verdict.REFUTED),
        ("sm_120", "", "", Verdict.REFUTED),
        ("sm_100a", FENCE, "", Verdict.PROVED),
        ("sm_100a", "", FENCE, Verdict.PROVED),
    ],
)
def test_what_a_thread_reads_of_a_ring_is_fenced_on_blackwell(
    target: str, after: str, before: str, verdict: Verdict
) -> None:
    """By the thread that reads, or by the one that issues the copy, after its wait. On sm_90 it is assumed."""
    program = program_of(RING.format(after, before), target=target).with_strictness(LENIENT)
    found = check(program)
    assert (program.architecture, found.verdict) == (int(target.strip("sm_a")), verdict)
    assert [shown.kind for shown in found.refutations] == [FaultKind.READ_NOT_FENCED] * (verdict is Verdict.REFUTED)
    text = text_of(RING.format(after, before), target=target).splitlines()
    for fault in (shown.fault for shown in found.refutations if shown.fault is not None):
        lines = program.line(fault.other_agent, fault.other_pc), program.line(fault.agent, fault.pc)
        read, copy = (text[int(line.rpartition(":")[2]) - 1] for line in lines)
        assert "ld.shared" in read
        assert "cp.async.bulk" in copy
    reads = any(each.kind is Assumption.PROXIES for each in assumed_by(program))
    assert verdict is Verdict.REFUTED or reads == (target == "sm_90a")


def test_an_init_and_a_copy_of_one_thread_need_no_fence_between() -> None:
    """Program order is no weaker than a barrier of the CTA: an assumption, and a finding with --strict-init."""
    own = SET.replace(" fence.mbarrier_init.release.cluster;\n", COPY.replace("@!%p0 ", "")) + WAIT.format(1, "")
    program = program_of(own).with_strictness(LENIENT)
    assert check(program).verdict is Verdict.PROVED
    assert [each.kind for each in assumed_by(program)] == [Assumption.INIT]
    strict = check(program.with_strictness(Strictness({Assumption.INIT})))
    assert [shown.kind for shown in strict.refutations] == [FaultKind.UNPUBLISHED_INIT]
