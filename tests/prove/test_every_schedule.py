"""Deadlocks that no order of operations prevents, which stand where a kernel has more order than its program."""

from dataclasses import replace

import pytest

from pipesim.model.coverage import Coverage
from pipesim.model.finding import Verdict
from pipesim.prove.check import How, check
from pipesim.prove.counterexample.every_schedule import hangs_in_every_schedule
from pipesim.prove.search.breadth_first import explore
from pipesim.targets import target_of
from tests.support.mistakes import BROKEN, MEMORY
from tests.support.random_programs import FAMILIES

WEAKENED = Coverage(weakened=("kernel.cu:1: a warp waits for a word of shared memory",))


@pytest.mark.parametrize(
    ("name", "verdict"),
    [
        ("empty_count_too_high", Verdict.REFUTED),  # no order brings the arrival that is missing
        ("every_lane_arrives", Verdict.REFUTED),  # one instruction has more arrivals than its barrier ever counts
        ("two_producers_one_counted", Verdict.UNKNOWN),  # while two may be kept apart
        ("expects_half", Verdict.UNKNOWN),  # an order may keep the read from the bytes that come later
        ("consumer_arrives_before_reading", Verdict.UNKNOWN),  # as may one between the read and the next copy
    ],
)
def test_a_weakened_order_leaves_what_no_order_prevents(name: str, verdict: Verdict) -> None:
    program = target_of(BROKEN[name]).build({})
    assert check(program).verdict is Verdict.REFUTED
    found = check(replace(program, coverage=WEAKENED))
    assert (found.verdict, found.how is How.WEAKENED) == (verdict, verdict is Verdict.UNKNOWN)


@pytest.mark.parametrize(
    ("name", "fences", "reductions"),
    [
        ("consumer_arrives_before_reading", Verdict.REFUTED, Verdict.UNKNOWN),  # a race that no fence prevents
        ("expects_half", Verdict.REFUTED, Verdict.REFUTED),  # a deadlock of some schedules
        (
            "two_producers_one_counted",
            Verdict.REFUTED,
            Verdict.REFUTED,
        ),  # over-arrival, whatever bytes hold
        ("store_not_fenced", Verdict.UNKNOWN, Verdict.UNKNOWN),  # what the fence prevents that may run
    ],
)
def test_a_fence_that_may_run_leaves_what_no_fence_prevents(name: str, fences: Verdict, reductions: Verdict) -> None:
    program = target_of((BROKEN | MEMORY)[name]).build({})
    assert check(program).verdict is Verdict.REFUTED
    for left, verdict in ((Coverage(fences=("k.cu:1: a fence",)), fences), (Coverage(reductions=("k:1",)), reductions)):
        found = check(replace(program, coverage=left))
        assert (found.verdict, found.how is How.PERHAPS) == (verdict, verdict is Verdict.UNKNOWN)


@pytest.mark.parametrize("family", ["exits", "operations", "corners", "rings"])
def test_no_schedule_of_a_random_program_ends_where_one_hangs_so(family: str) -> None:
    """The plain search follows every schedule of it."""
    certain = 0
    for seed in range(60):
        program = FAMILIES[family](seed)
        if hangs_in_every_schedule(program):
            certain += 1
            assert explore(program, 10_000, reduced=False).outcomes == 0, seed
    assert certain > 0
