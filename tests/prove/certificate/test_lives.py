"""Barriers that are invalidated, begin again or lose arrivals: what the certificate says of them, and why it is right.

``tools/judge_proof.py --family lives`` judges random programs of this kind by the thousand.
"""

from collections.abc import Callable

import pytest

from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Engine, Fence, Op, Space
from pipesim.model.program import Program
from pipesim.model.tables import ALL_LANES, Access, Agent, Barrier
from pipesim.prove.certificate.certificate import Certificate
from pipesim.prove.certificate.requirements import Lives
from pipesim.prove.check import How, check
from pipesim.prove.happens_before.accesses import AccessEvent, EqualWrites
from pipesim.prove.refutation import Why
from tools.judge_proof import judge

Code = list[tuple[int, ...]]
MEET = (Op.BAR_SYNC, 0, 64, 32)
INIT, INVAL, ARRIVE = (Op.INIT, 0, 1), (Op.INVAL, 0), (Op.ARRIVE, 0, 1, 0, -1, 0)


def waits(parity: int) -> tuple[int, ...]:
    return (Op.WAIT, 0, parity, 0)


def of(*codes: Code, accesses: tuple[Access, ...] = ()) -> Program:
    """A program of one barrier and agents that meet at one named barrier."""
    code = tuple(tuple(tuple(map(int, op)) for op in each) for each in codes)
    return Program(
        name="lives",
        params={},
        agents=tuple(Agent(0, n, ALL_LANES, f"r{n}", 0) for n in range(len(codes))),
        barriers=(Barrier(0, "b", 0),),
        accesses=accesses,
        tiles=(),
        code=code,
        lines=tuple(tuple(range(len(each))) for each in code),
        sources=tuple(f"lives:{n}" for n in range(1, max(map(len, code)) + 1)),
        named_barriers=((0, 0),),
        registers=1,
        smem_bytes=64,
    )


def test_two_lives_one_after_the_other_are_proved_by_one_run() -> None:
    """The second life begins with phase 0 again, whatever the first one has completed."""
    first: Code = [INIT, MEET, waits(0), INVAL, INIT, MEET, waits(0), INVAL]
    found = check(of(first, [MEET, ARRIVE, MEET, ARRIVE]))
    assert (found.verdict, found.how, found.phases, found.doubts) == (Verdict.PROVED, How.CERTIFICATE, 1, ())


def test_a_commit_that_is_pending_at_the_inval_may_arrive_in_no_life_or_in_the_next_one() -> None:
    """The run that the certificate looks at has it arrive in the next life, for which the wait is; others do not."""
    commit: Code = [(Op.COMMIT, Engine.TCGEN05, 0)]
    begin: Code = [INIT, (Op.FENCE, Fence.MBARRIER_INIT, Space.SHARED), (Op.FENCE, Fence.PROXY_ASYNC, Space.SHARED)]
    found = check(of([*begin, *commit, INVAL, *begin, waits(0), INVAL]))
    assert found.verdict is Verdict.REFUTED
    assert FaultKind.INVALIDATED in {each.kind for each in found.refutations}
    right = check(of([*begin, *commit, waits(0), INVAL, *begin, *commit, waits(0), INVAL]))
    assert (right.verdict, right.how) == (Verdict.PROVED, How.CERTIFICATE)


def test_an_inval_that_no_wait_keeps_after_a_commit_is_refuted_without_a_search() -> None:
    """The commit is issued before the inval, and arrives when it likes: the schedule holds its arrival back.

    The copy that agent 1 waits for has to land before the inval, and the commit's arrival is the first that may.
    """
    first: Code = [INIT, (Op.FENCE, Fence.MBARRIER_INIT, 0), MEET, MEET]
    copy: Code = [(Op.TRANSFER_WRITE, Engine.TCGEN05, 0, 8, 1), (Op.COMMIT, Engine.TCGEN05, -1)]
    other: Code = [MEET, (Op.COMMIT, Engine.TCGEN05, 0), *copy, (Op.WAIT_GROUP, Engine.TCGEN05, 0), MEET]
    range_ = (Access(Space.SHARED, 0, 32, 8),)
    early = check(of([*first, INVAL], other, accesses=range_), 1)
    assert (early.verdict, early.states) == (Verdict.REFUTED, 0)
    assert [each.fault.kind for each in early.refutations if each.fault] == [FaultKind.INVALIDATED]
    waited = check(of([*first, waits(0), INVAL], other, accesses=range_), 1)
    assert (waited.verdict, waited.how) == (Verdict.PROVED, How.CERTIFICATE)


def test_an_inval_that_nothing_keeps_after_a_wait_is_refuted() -> None:
    """Agent 1 waits as well, and no agent hears of it."""
    found = check(of([INIT, MEET, waits(0), INVAL], [MEET, ARRIVE, waits(0)]))
    (shown,) = found.refutations
    assert (found.verdict, found.doubts[0].why) == (Verdict.REFUTED, Why.EARLY_INVAL)
    assert shown.fault is not None
    assert (shown.fault.kind, shown.fault.agent, shown.fault.pc) == (FaultKind.INVALIDATED, 1, 2)


def test_and_with_a_meeting_between_it_is_proved() -> None:
    found = check(of([INIT, MEET, waits(0), MEET, INVAL], [MEET, ARRIVE, waits(0), MEET]))
    assert (found.verdict, found.how) == (Verdict.PROVED, How.CERTIFICATE)


def test_an_answer_does_not_outlive_its_barrier() -> None:
    """The try says yes in this run; had it said no, the wait would be for a phase of the next life."""
    first: Code = [INIT, MEET, MEET, (Op.TRY_WAIT, 0, 0, 0, 0), INVAL, INIT, (Op.WAIT_UNLESS, 0, 0, 0, 0)]
    found = check(of(first, [MEET, ARRIVE, MEET]))
    assert (found.verdict, found.doubts[0].why) == (Verdict.REFUTED, Why.STALE_TRY)


def test_an_arrival_that_drops_out_lowers_the_count_of_the_phases_after_it() -> None:
    init, drop = (Op.INIT, 0, 2), (Op.ARRIVE_DROP, 0, 1, 0, -1, 0)
    found = check(of([init, MEET, ARRIVE, waits(0), ARRIVE, waits(1)], [MEET, drop]))
    assert (found.verdict, found.how, found.phases) == (Verdict.PROVED, How.CERTIFICATE, 2)


def test_one_that_stays_is_missed() -> None:
    init = (Op.INIT, 0, 2)
    found = check(of([init, MEET, ARRIVE, waits(0), ARRIVE, waits(1)], [MEET, ARRIVE]))
    assert (found.verdict, found.refutations[0].fault) == (Verdict.REFUTED, None)


# A certificate that lacks a rule of lives, and the program that it then takes for right


def no_doubt_of_early_invals(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lives, "end", lambda *_: ())


def landings_are_operations(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Lives, "land", lambda *_: None)


def an_init_needs_no_inval_before_it(patch: pytest.MonkeyPatch) -> None:
    begin = Lives.begin

    def begins(self: Lives, *given: object) -> bool:
        begin(self, *given)  # type: ignore[arg-type]
        return True

    patch.setattr(Lives, "begin", begins)


def answers_live_on(patch: pytest.MonkeyPatch) -> None:
    inval = Certificate._inval

    def ends(self: Certificate, did: object) -> None:
        tries = self._tries
        inval(self, did)  # type: ignore[arg-type]
        self._tries = tries

    patch.setattr(Certificate, "_inval", ends)


def equal_writes_have_no_past(patch: pytest.MonkeyPatch) -> None:
    enter = EqualWrites.enter

    def enters(self: EqualWrites, cell: int, access: AccessEvent, before: tuple[AccessEvent, ...]) -> object:
        known = bool(access.written) and any(each.written == access.written for each in self.latest(cell))
        enter(self, cell, access, before)
        return () if known else before

    patch.setattr(EqualWrites, "enter", enters)


def the_last_of_equal_writes_is_the_last(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(EqualWrites, "latest", lambda *_: ())


LACKING = [
    (no_doubt_of_early_invals, 371),
    (landings_are_operations, 77),
    (an_init_needs_no_inval_before_it, 599),
    (answers_live_on, 142),
    (equal_writes_have_no_past, 22),
    (the_last_of_equal_writes_is_the_last, 1),
]


@pytest.mark.parametrize(("lacks", "seed"), LACKING)
def test_a_certificate_that_lacks_a_rule_is_caught(
    lacks: Callable[[pytest.MonkeyPatch], None], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "CONTRADICTION" not in judge(seed, "lives")
    lacks(monkeypatch)
    assert "CONTRADICTION" in judge(seed, "lives")


@pytest.mark.slow
def test_random_lives_are_judged_as_the_search_does() -> None:
    for seed in range(60):
        assert not any(word.isupper() for word in judge(seed, "lives")), seed


# Writes of one item to the same cells

TILE = Access(Space.SHARED, 0, 0, 64)


def written(*codes: Code) -> Program:
    """A program of one tile and agents that meet at one named barrier."""
    return of(*codes, accesses=(TILE,))


def test_two_agents_may_write_the_same_and_whoever_reads_comes_after_both() -> None:
    write, read = (Op.WRITE, 0, 7), (Op.READ, 0, 7)
    right = check(written([write, MEET, read], [write, MEET]))
    assert (right.verdict, right.how, right.doubts) == (Verdict.PROVED, How.CERTIFICATE, ())
    other = check(written([write, MEET, read], [(Op.WRITE, 0, 8), MEET]))
    assert (other.verdict, other.refutations[0].kind) == (Verdict.REFUTED, FaultKind.RACE)
    early = check(written([write, read, MEET], [write, MEET]))
    assert (early.verdict, early.refutations[0].kind) == (Verdict.REFUTED, FaultKind.RACE)
