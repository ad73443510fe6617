"""The cluster barrier does not wait for agents that have ended, in every engine alike."""

from collections import Counter

import pytest

from pipesim import Protocol, Scope, Warp
from pipesim.conform.diagnose.outcomes import random_schedule
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.moves import run_canonically
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.prove.check import How, check
from pipesim.prove.search.breadth_first import explore
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from tests.support.lanes import long_after, slow_but
from tests.support.random_programs.exits import ARRIVE, SYNC, one_in_each_cta, random_exits


def verdicts(program: Program) -> tuple[Verdict, Verdict, Verdict]:
    return check(program).verdict, explore(program).verdict, explore(program, reduced=False).verdict


def test_a_cta_that_returns_at_once_holds_nobody_up() -> None:
    program = one_in_each_cta(SYNC * 2, ())
    assert program.leaves_cluster_barrier
    assert verdicts(program) == (Verdict.PROVED,) * 3
    assert check(program).how is How.CERTIFICATE
    assert run_canonically(program).finished
    assert simulate(program, load_profile("h100")).outcome.value == "finished"


def test_one_that_has_arrived_and_ended_is_counted_once() -> None:
    assert verdicts(one_in_each_cta(SYNC, (ARRIVE,), SYNC)) == (Verdict.PROVED,) * 3


def test_one_that_only_waits_elsewhere_is_waited_for() -> None:
    stuck = ((int(Op.WAIT), 1, 0, 0),)
    assert verdicts(one_in_each_cta(SYNC, stuck)) == (Verdict.REFUTED,) * 3
    assert {shown.kind.value for shown in check(one_in_each_cta(SYNC, stuck)).refutations} == {"deadlock"}


def test_what_comes_to_a_cta_that_has_returned_is_a_fault_as_before() -> None:
    remote = (*SYNC, (int(Op.ARRIVE), 1, 1, 0, -1, 0))
    found = check(one_in_each_cta(remote, ()))
    assert {shown.kind for shown in found.refutations} == {FaultKind.EXITED_CTA}


def test_a_wait_by_state_is_for_the_phase_of_its_arrive() -> None:
    """Right by the certificate; two more arrives before the wait complete the next phase, too, which it then misses."""
    mine, other = (int(Op.ARRIVE), 0, 1, 0, 0, 0), (int(Op.ARRIVE), 0, 1, 0, -1, 0)
    waiting = (int(Op.WAIT_STATE), 0, 0, 0)
    right = check(one_in_each_cta((*SYNC, mine, waiting, *SYNC), (*SYNC, other, *SYNC), counts=(2, 1)))
    assert (right.verdict, right.how) == (Verdict.PROVED, How.CERTIFICATE)
    late = check(one_in_each_cta((*SYNC, mine, *SYNC, waiting), (*SYNC, other, other, other, *SYNC), counts=(2, 1)))
    assert FaultKind.STALE_STATE in {shown.kind for shown in late.refutations}


@pytest.mark.slow
@pytest.mark.parametrize("first", long_after(1, slow_but([0], range(0, 400, 100))))
def test_the_engines_agree_on_random_exits(first: int) -> None:
    """``tools/judge_proof.py --family exits`` runs as many as there is time for."""
    seen: Counter[object] = Counter()
    for seed in range(first, first + 100):
        program = random_exits(seed)
        plain, reduced, said = explore(program, reduced=False), explore(program), check(program, one_memory=True)
        assert (plain.verdict, plain.wrong, plain.outcomes) == (reduced.verdict, reduced.wrong, reduced.outcomes), seed
        assert said.verdict is plain.verdict, seed
        for n in range(5):
            walked = random_schedule(program, 10 * seed + n)
            kinds = {fault.kind for fault in walked.faults[:1]}
            assert kinds <= plain.kinds, seed
            assert walked.ended or kinds or plain.verdict is Verdict.REFUTED, seed
        seen[plain.verdict, program.leaves_cluster_barrier] += 1
    assert min(seen[Verdict.PROVED, True], seen[Verdict.REFUTED, True]) >= 5, seen


@pytest.mark.parametrize(("right", "kinds"), [(True, set()), (False, {FaultKind.EXITED_CTA})])
def test_a_role_that_returns_early_is_described_like_that(*, right: bool, kinds: set[FaultKind]) -> None:
    """CTA 1 has no work. CTA 0 goes through the cluster barrier without it; what it sends there is a fault."""
    p = Protocol("early", cluster=2)
    full = p.mbarriers("full", 1, count=1)

    @p.role("worker", warps=2)
    def worker(w: Warp) -> None:
        w.cluster_sync()
        if w.cta == 1:
            return
        w.cluster_sync()
        with w.elect_one():
            if w.warp == 0 and not right:
                full[0].arrive_cluster(1, scope=Scope.CLUSTER)

    found = check(p.flatten())
    assert {shown.kind for shown in found.refutations} == kinds
    assert (found.how is How.CERTIFICATE) == right
