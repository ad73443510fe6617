"""A check in steps: the verdict first, each step in its time, and nothing lost of what is known when it is ended."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum
from unittest.mock import Mock

import pytest

from pipesim.answers.budget import Budget, BudgetSpentError
from pipesim.answers.check import check
from pipesim.answers.checking import stepped
from pipesim.answers.checking.failures import CheckQuestion
from pipesim.answers.checking.stepped import SteppedCheck
from pipesim.answers.progress import Progress, Unit
from pipesim.answers.views.check import CheckReport, CheckStep, CutBy, LeftOut
from pipesim.model.finding import Verdict
from pipesim.prove.check import How
from pipesim.report.pages.checks.check import check_lines, detail_lines, verdict_lines
from pipesim.targets import Target, find, target_of
from tests.support.nine_warps import nine_warps
from tests.support.small_ptx import kernel_target

EXPLAINED = (
    CheckStep.SMALLEST,
    CheckStep.SCHEDULE,
    CheckStep.CORRECTIONS,
    CheckStep.HIDDEN,
    CheckStep.OTHERS,
)
WRONG = {"stages": 1, "tiles": 2, "k_steps": 3, "empty_count": 9}


class Clock:
    """Seconds that pass only when the clock is read."""

    def __init__(self, step: float = 1.0) -> None:
        self.now = 0.0
        self._step = step

    def __call__(self) -> float:
        self.now += self._step
        return self.now


class Heard(Progress):
    """Keeps the steps and their units, and ends the check at one of them."""

    def __init__(self, ends_at: tuple[CheckStep, int] | None = None) -> None:
        self.units: dict[Enum, list[tuple[int, int]]] = {}
        self._ends_at = ends_at

    @contextmanager
    def check_step(self, protocol: str, step: Enum) -> Iterator[Unit]:
        units = self.units[step] = []

        def unit(done: int, of: int) -> None:
            if self._ends_at == (step, len(units)):
                raise KeyboardInterrupt
            units.append((done, of))

        yield unit


@pytest.fixture
def ring() -> Target:
    return target_of(nine_warps)


def checking(target: Target, params: dict[str, int], **more: object) -> SteppedCheck:
    return SteppedCheck(CheckQuestion(target, params, target.build(params)), **more)  # type: ignore[arg-type]


def words(report: CheckReport) -> str:
    return " ".join(" ".join(detail_lines(report, 200)).split())


@pytest.mark.slow
def test_the_verdict_is_known_before_anything_else_is_done(ring: Target) -> None:
    heard = Heard()
    steps = checking(ring, WRONG, progress=heard)
    known = steps.verdict()
    assert (known.verdict, list(heard.units)) == (Verdict.REFUTED, [CheckStep.VERDICT])
    assert not known.refutations
    steps.details()
    whole = steps.report()
    assert list(heard.units) == [CheckStep.VERDICT, *EXPLAINED]
    assert verdict_lines(known, 80) == verdict_lines(whole, 80)  # what was written of it stands
    assert check_lines(whole, 80) == verdict_lines(known, 80) + detail_lines(whole, 80)
    assert whole.refutations[0].at == {"tiles": 1, "k_steps": 2}
    assert whole.refutations[0].corrections
    assert (whole.left_out, whole.refutations[0].unfinished) == ((), ())


@pytest.mark.slow
def test_the_units_of_a_step_are_counted(ring: Target) -> None:
    heard = Heard()
    check(ring, WRONG, progress=heard)
    assert heard.units[CheckStep.SMALLEST] == [(n, 5) for n in range(5)]
    assert heard.units[CheckStep.SCHEDULE] == [(0, 1)]


@pytest.mark.slow
def test_within_its_limits_an_answer_does_not_depend_on_the_time(ring: Target) -> None:
    slow, quick = (check(ring, WRONG, budget=Budget(1e9, Clock(step))) for step in (1e3, 0.0))
    assert slow == quick == check(ring, WRONG)


def test_the_verdict_alone(ring: Target) -> None:
    heard = Heard()
    report = check(ring, WRONG, quick=True, progress=heard)
    assert list(heard.units) == [CheckStep.VERDICT]
    assert report.left_out == tuple(LeftOut(step, CutBy.NOT_ASKED) for step in EXPLAINED)
    assert (report.verdict, report.findings) == (Verdict.REFUTED, check(ring, WRONG, quick=True).findings)
    said = words(report)
    assert "the schedule" not in said
    assert "left out everything but the verdict: not asked for ✗ " in said
    assert " ✗ refuted: a schedule of nine_warps fails for" in said


def test_the_verdict_alone_of_what_is_right(ring: Target) -> None:
    report = check(ring, {"tiles": 1}, quick=True)
    assert (report.verdict, report.ranges) == (Verdict.PROVED, ())
    assert "deadlocks or breaks a rule for every CTA, at these parameters" in words(report)


@pytest.mark.sampled(1, 3)
@pytest.mark.parametrize("seconds", range(1, 6))
def test_a_step_ends_at_its_limit_and_keeps_what_it_has(ring: Target, seconds: int) -> None:
    """A second passes at each unit: the size is lowered as far as there was time, and the next step has its own."""
    report = check(ring, WRONG, budget=Budget(seconds, Clock()))
    cut = {each.step: each for each in report.left_out}
    assert cut[CheckStep.SMALLEST] == LeftOut(CheckStep.SMALLEST, CutBy.TIME, seconds - 1, 5)
    (shown,) = report.refutations
    assert shown.at == ({"tiles": 1} if seconds > 2 else {})
    assert CheckStep.SMALLEST in shown.unfinished
    assert (CheckStep.SCHEDULE in shown.unfinished) == (seconds == 1)
    said = words(report)
    assert f"the smallest size: time limit after {seconds - 1} of 5" in said
    assert "smallest ·" not in said
    assert ("smaller, not all sizes were tried · tiles 1" in said) == (seconds > 2)
    assert (", not shortened" in said) == (seconds == 1)


def test_the_limit_of_the_sizes_leaves_the_proof(ring: Target) -> None:
    report = check(ring, {"tiles": 1, "k_steps": 1}, budget=Budget(4, Clock()))
    assert (report.verdict, report.ranges) == (Verdict.PROVED, ())
    assert report.left_out == (LeftOut(CheckStep.SIZES, CutBy.TIME, 3),)
    said = words(report)
    assert "other sizes: time limit after 3 tried" in said
    assert "at these parameters" in said


@pytest.mark.long
def test_the_range_of_one_trip_count_stays_where_the_time_ends_in_the_next(ring: Target) -> None:
    params, heard = {"tiles": 1, "k_steps": 1}, Heard()
    whole = check(ring, params, progress=heard)
    known = set()
    most = len(heard.units[CheckStep.SIZES])  # the last programs of them are not made
    for seconds in (2, 3 * most // 5):
        report = check(ring, params, budget=Budget(seconds, Clock()))
        assert report.ranges == whole.ranges[: len(report.ranges)]
        assert report.left_out == (LeftOut(CheckStep.SIZES, CutBy.TIME, seconds - 1),)
        assert ("for any number of tiles" in words(report)) == (len(report.ranges) > 0)
        known.add(len(report.ranges))
    assert known == {0, 1}


@pytest.mark.slow
def test_what_is_known_when_it_is_interrupted_is_reported(ring: Target) -> None:
    steps = checking(ring, WRONG, progress=Heard(ends_at=(CheckStep.CORRECTIONS, 2)))
    steps.verdict()
    with pytest.raises(KeyboardInterrupt):
        steps.details()
    steps.interrupt()
    report, whole = steps.report(), check(ring, WRONG)
    assert report.left_out == (
        LeftOut(CheckStep.CORRECTIONS, CutBy.INTERRUPTED, 2),
        LeftOut(CheckStep.HIDDEN, CutBy.INTERRUPTED),
        LeftOut(CheckStep.OTHERS, CutBy.INTERRUPTED),
    )  # fmt: skip
    assert report.refutations[0].replay == whole.refutations[0].replay
    assert report.conclusion == whole.conclusion
    said = words(report)
    assert "interrupted after 2 tried · what a finding hides: interrupted · other schedules: interrupted" in said
    steps.details()  # there is nothing left to do
    assert steps.report() == report


def test_a_verdict_that_is_interrupted_is_unknown_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the first CTA does is proved by then."""
    steps = SteppedCheck(CheckQuestion(kernel := kernel_target("", ctas=2), {}, kernel.build({})))
    monkeypatch.setattr(stepped, "in_other_launches", Mock(side_effect=KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        steps.verdict()
    steps.interrupt()
    assert steps.report().how is How.STOPPED


def test_sizes_that_were_lowered_before_an_interrupt_stay(ring: Target) -> None:
    steps = checking(ring, WRONG, progress=Heard(ends_at=(CheckStep.SMALLEST, 3)))
    steps.verdict()
    with pytest.raises(KeyboardInterrupt):
        steps.details()
    steps.interrupt()
    (shown,) = steps.report().refutations
    assert shown.at == {"tiles": 1}
    assert shown.unfinished == (CheckStep.SMALLEST, CheckStep.SCHEDULE)


def test_a_budget_counts_work_and_asks_its_clock() -> None:
    clock = Clock(0.0)
    budget = Budget(2.0, clock, work=2_000)
    clock.now = 1.5
    budget.ask(1_000)
    clock.now = 2.0
    with pytest.raises(BudgetSpentError, match="time limit"):
        budget.ask(1_000)
    budget.start()
    budget.ask(1_999)
    budget.ask(1)  # it is asked before the work, and some is left
    with pytest.raises(BudgetSpentError, match="work limit"):
        budget.ask(1)


@pytest.mark.slow
def test_where_a_claim_ends_depends_on_the_work_and_not_on_the_clock() -> None:
    """Also of a machine on which every unit takes an hour."""
    ring, params = find("producer_consumer"), {"tiles": 2, "stages": 1}
    slow, quick = (check(ring, params, budget=Budget(None, Clock(step), work=300)) for step in (3_600.0, 0.0))
    assert slow == quick
    assert [each.why for each in quick.left_out] == [CutBy.WORK]
    assert check(ring, params, budget=Budget(None, Clock(3_600.0))).left_out == ()
