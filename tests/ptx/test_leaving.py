"""CTAs and warps that end while others go on, or with work under way, read from PTX: each right and wrong."""

import pytest

from pipesim.model.coverage import Assumption, Strictness
from pipesim.model.finding import FaultKind, Verdict
from pipesim.prove.assumed import assumed_by
from pipesim.prove.check import How, check
from tests.support.small_ptx import SET_UP, program_of

MEET = " barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;\n"
RETURN = " mov.u32 %r5, %cluster_ctarank;\n setp.eq.u32 %p1, %r5, 1;\n @%p1 bra done;\n"
TO_THE_OTHER = (
    " mapa.shared::cluster.u32 %r6, %r3, 1;\n @!%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r6];\n"
)
SET = SET_UP.format(first=1, count=1)


@pytest.mark.parametrize("rounds", [1, 3])
def test_a_cta_that_returns_before_a_cluster_barrier_counts_as_arrived(rounds: int) -> None:
    """One run represents all schedules, whoever ends when; what is sent to the CTA that has returned is a fault."""
    early = SET + MEET + RETURN + MEET * rounds
    right = check(program_of(early + "done:\n", cluster=2))
    assert (right.verdict, right.how) == (Verdict.PROVED, How.CERTIFICATE)
    wrong = check(program_of(early + TO_THE_OTHER + "done:\n", cluster=2))
    assert {shown.kind for shown in wrong.refutations} == {FaultKind.EXITED_CTA}
    stays = check(
        program_of(SET + MEET + RETURN + TO_THE_OTHER + MEET + " bra end;\ndone:\n" + MEET + "end:\n", cluster=2)
    )
    assert stays.verdict is Verdict.PROVED


#: Each of 2 CTAs stores to the other one, after its first lines; and loads from it before its last ones.
REMOTE = """ mov.u32 %r5, %cluster_ctarank;\n xor.b32 %r5, %r5, 1;\n mapa.shared::cluster.u32 %r6, tile, %r5;
 FIRST @!%p0 st.shared::cluster.u32 [%r6], %r5;
 MEET @!%p0 ld.shared::cluster.u32 %r7, [%r6+128];\n LAST"""
RELAXED = MEET.replace("arrive", "arrive.relaxed")


@pytest.mark.parametrize(
    ("first", "last", "right"), [(MEET, MEET, True), (RELAXED, MEET, True), ("", MEET, False), (MEET, RELAXED, False)]
)
def test_the_memory_of_another_cta_is_there_from_a_first_barrier_of_the_cluster_to_a_last_one(
    first: str, last: str, *, right: bool
) -> None:
    body = (
        REMOTE.replace("FIRST", first).replace("LAST", last).replace("MEET", " st.shared.u32 [tile+128], %r5;\n" + MEET)
    )
    found = check(program_of(SET + body, 1, cluster=2))
    assert found.verdict is (Verdict.PROVED if right else Verdict.REFUTED)
    assert [each.kind for each in found.refutations] == ([] if right else [FaultKind.ABSENT_CTA])


def test_a_copy_into_shared_memory_that_nobody_waits_for_is_stated() -> None:
    """An assumption with its line; a finding under --strict-exit; none where the warp waits."""
    copy = " cp.async.ca.shared.global [tile], [%rd1], 16;\n cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%r3];\n"
    wait = "waits:\n mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;\n @!%p2 bra waits;\n"
    alone = " @%p0 bra done;\n"
    wrong, right = (program_of(SET + alone + copy + end + "done:\n", 1) for end in ("", wait))
    kinds = [{each.kind for each in assumed_by(each)} for each in (wrong, right)]
    assert [Assumption.EXIT in each for each in kinds] == [True, False]
    strict = [check(each.with_strictness(Strictness({Assumption.EXIT}))) for each in (wrong, right)]
    assert [each.verdict for each in strict] == [Verdict.REFUTED, Verdict.PROVED]
    assert {shown.kind for shown in strict[0].refutations} == {FaultKind.UNDER_WAY_AT_EXIT}
