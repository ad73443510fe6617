"""Agents of one role that do something else than the others are named; where all do the same, nothing is said."""

import re
from functools import cache

import pytest

from pipesim import Protocol, Warp
from pipesim.answers.check import check
from pipesim.answers.views.check import CheckReport
from pipesim.model.finding import Deadlock, FaultKind, OneSided, Verdict
from pipesim.report.pages.checks.check import check_lines
from pipesim.targets import target_of
from tests.support.mistakes import BROKEN
from tests.support.mistakes.kernel_mistakes import KERNEL_MISTAKES


@cache
def report_of(name: str) -> CheckReport:
    make = BROKEN[name] if name in BROKEN else KERNEL_MISTAKES[name].wrong

    def protocol() -> Protocol:
        return make()

    return check(target_of(protocol), {})


def deadlock_of(name: str) -> Deadlock:
    (found,) = (shown.finding for shown in report_of(name).refutations if isinstance(shown.finding, Deadlock))
    return found


def said(report: CheckReport) -> str:
    return " ".join(" ".join(check_lines(report, 200)).split())


def test_one_warp_that_arrives_for_all() -> None:
    found = deadlock_of("right_ring.one_warp_copies")
    (uneven,) = found.one_sided
    assert uneven == OneSided("full", ((5, ("producer/0",)), (0, ("producer/1",))), uneven.line)
    assert "ring.py:" in uneven.line
    claim = "agents of one role do not all do the same: producer/0 arrives on full 5 times, producer/1 never"
    assert claim in said(report_of("right_ring.one_warp_copies"))


def test_a_rank_that_syncs_once_more() -> None:
    (uneven,) = deadlock_of("cluster_sync_by_one_cta").one_sided
    assert uneven.tallies == ((2, ("peer@0",)), (1, ("peer@1",)))


def test_nothing_is_said_where_all_do_the_same() -> None:
    assert deadlock_of("right_ring.never_released").one_sided == ()
    assert deadlock_of("empty_count_too_high").one_sided == ()


def test_a_lapped_wait_says_by_whom_and_that_nobody_waits_for_it() -> None:
    found = deadlock_of("right_ring.watcher_waits")
    (lapped,) = found.blocked
    assert (lapped.missed, lapped.lapped_by, lapped.counted) == (0, ("producer",), False)
    assert (found.kind, found.correction) == (
        "lapped_waiter",
        (
            "watcher: warps that neither use a stage nor arrive for it do not wait for full; or each of them arrives "
            "on empty as well, initialised with a count of 2 instead of 1"
        ),
    )
    page = said(report_of("right_ring.watcher_waits"))
    assert "watcher was lapped on full[1]: it asks for phase 0, but producer had completed phases 0 and 1" in page
    assert "no other agent waits for watcher: in its loop it arrives on nothing that they wait for" in page
    twice = deadlock_of("consumer_arrives_twice")
    assert (twice.blocked[0].missed, twice.blocked[0].lapped_by, twice.kind) == (0, ("consumer",), "deadlock")
    assert "no other agent waits for" not in said(report_of("consumer_arrives_twice"))


@pytest.mark.parametrize("only_at_its_end", [True, False])
def test_a_meeting_after_the_last_wait_does_not_hold_anyone_up_before(only_at_its_end: bool) -> None:
    """An idle warp that meets the others at the end, as compilers write it, and one that does so in every lap."""
    p = Protocol("meets")
    full, empty = p.mbarriers("full", 1, count=1), p.mbarriers("empty", 1, count=1)

    @p.role("producer", warps=2)
    def producer(w: Warp) -> None:
        for n in range(4):
            empty[0].wait((n + 1) % 2)
            if not only_at_its_end:
                w.bar_sync(1, 64)
            with w.elect_one():
                if w.index == 0:
                    full[0].arrive()
        w.bar_sync(1, 64)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        for n in range(4):
            full[0].wait(n % 2)
            with w.elect_one():
                empty[0].arrive()

    found = check(target_of(lambda: p), {})
    assert (found.verdict is Verdict.PROVED) is not only_at_its_end
    assert [each.kind for each in found.findings if isinstance(each, Deadlock)] == (
        ["lapped_waiter"] if only_at_its_end else []
    )


def test_a_wait_for_the_phase_before_the_first_is_lapped_as_well() -> None:
    (lapped,) = deadlock_of("right_ring.wait_outside").blocked
    assert (lapped.missed, lapped.lapped_by, lapped.counted) == (-1, ("consumer",), False)
    page = said(report_of("right_ring.wait_outside"))
    assert "was lapped on empty[0]: it asks for the phase before the first, but consumer had completed" in page


def test_both_sides_of_a_count_are_named() -> None:
    page = said(report_of("split_named.readers_say_64"))
    assert "64 threads, where writer says 96 (kernels.py:" in page
    assert "only 96 threads ever come there, but 128 are expected" in said(report_of("split_named.everybody_says_128"))
    counted = said(report_of("right_ring.one_warp_copies"))
    assert "the program makes 32 arrivals per phase, but the count is 64 " in counted
    (*_, consumer) = deadlock_of("right_ring.one_warp_copies").blocked
    assert "ring.py:" in consumer.count_line


def test_misuse_comes_below_what_follows_from_it_and_a_correction_is_told_once() -> None:
    report = report_of("split_named.readers_say_64")
    kinds = [shown.finding.kind for shown in report.refutations if not isinstance(shown.finding, Deadlock)]
    assert kinds[0] is FaultKind.BARRIER_THREADS
    page = said(report)
    assert page.count("96 threads at named barriers 1 and 2 instead of 64") == 1
    assert page.count("likely correction: the same as of the finding below") == len(kinds) - 1
    assert page.index("not ordered with respect to other agents") < page.index("likely correction")
    *_, last = re.findall(r"pipesim explain (\w+)", page)
    assert last == "barrier_threads", "the cause of the others"
    assert "of this line" in page
