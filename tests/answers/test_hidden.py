"""Two mistakes in one protocol: the second is reported as well, with the change without which the first hides it."""

import pytest

from pipesim import Protocol, Warp
from pipesim.answers.check import check, replay
from pipesim.answers.views.conclusion import Basis
from pipesim.model.finding import Deadlock, FaultKind, FaultReport, Verdict
from pipesim.prove.check import check as prove
from pipesim.prove.repair.behind import elsewhere, hidden_by
from pipesim.report.pages.checks.check import check_lines
from pipesim.targets import target_of
from tests.support.mistakes import BROKEN

STAGES, TILES, BYTES = 2, 3, 64


def two_rings(count: int = 1, acquires: int = 1) -> Protocol:
    """One ring after the other: the first hangs with a count of 2, in the second the slots may not be waited for."""
    p = Protocol("two_rings")
    a, b = (p.smem(name, slots=STAGES, nbytes=BYTES) for name in "ab")
    full_a, empty_a = p.mbarriers("full_a", STAGES, count=1), p.mbarriers("empty_a", STAGES, count=count)
    full_b, empty_b = p.mbarriers("full_b", STAGES, count=1), p.mbarriers("empty_b", STAGES, count=1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for tile, full, empty, waits in ((a, full_a, empty_a, True), (b, full_b, empty_b, acquires)):
                for i in range(TILES):
                    if waits:
                        empty[i % STAGES].wait((i // STAGES & 1) ^ 1)
                    full[i % STAGES].expect_bytes(BYTES)
                    w.tma_load(tile[i % STAGES], full[i % STAGES], i)

    @p.role("mma")
    def mma(w: Warp) -> None:
        with w.elect_one():
            for tile, full, empty in ((a, full_a, empty_a), (b, full_b, empty_b)):
                for i in range(TILES):
                    full[i % STAGES].wait(i // STAGES & 1)
                    w.read(tile[i % STAGES], i)
                    empty[i % STAGES].arrive()

    return p


def given_back_early() -> Protocol:
    """The slots of two tiles are given back before they are read."""
    p = Protocol("given_back_early")
    a, b = (p.smem(name, slots=1, nbytes=BYTES) for name in "ab")
    full, empty = p.mbarriers("full", 1, count=1), p.mbarriers("empty", 1, count=1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in range(TILES):
                empty[0].wait((i & 1) ^ 1)
                full[0].expect_bytes(2 * BYTES)
                w.tma_load(a[0], full[0], i)
                w.tma_load(b[0], full[0], i)

    @p.role("mma")
    def mma(w: Warp) -> None:
        with w.elect_one():
            for i in range(TILES):
                full[0].wait(i & 1)
                empty[0].arrive()
                w.read(a[0], i)
                w.read(b[0], i)

    return p


def test_what_a_hang_hides_is_found_with_the_change_that_removes_it() -> None:
    hang, hidden = check(target_of(two_rings), {"count": 2, "acquires": 0}).refutations
    assert isinstance(hang.finding, Deadlock)
    assert (hang.corrections, hang.after) == ((), None)
    assert isinstance(hidden.finding, FaultReport)
    assert hidden.after is not None
    assert (hidden.finding.kind, hidden.after.said) == (
        FaultKind.OVER_ARRIVAL,
        "initialise empty_a with a count of 1 instead of 2",
    )
    assert hidden.corrections[0].said.startswith("load waits for empty_b, with parity 1 in the first lap")


def test_one_mistake_hides_nothing() -> None:
    for given in ({"count": 2}, {"acquires": 0}):
        report = check(target_of(two_rings), given)
        assert [shown.after for shown in report.refutations] == [None] * len(report.refutations)
        assert any(shown.corrections for shown in report.refutations)
    assert check(target_of(two_rings), {}).verdict is Verdict.PROVED


@pytest.mark.slow
def test_the_report_says_with_which_change() -> None:
    said = " ".join(" ".join(check_lines(check(target_of(two_rings), {"count": 2, "acquires": 0}), 100)).split())
    assert "another finding hides this one, which shows with a change: initialise empty_a with a count of 1" in said
    assert said.count("proved with both changes") == 1
    assert "proved with this change" not in said


def test_findings_of_one_kind_at_other_lines() -> None:
    program = target_of(given_back_early).build()
    found = prove(program)
    races = [each for each in found.refutations if each.kind is FaultKind.RACE]
    more = elsewhere(program, found.doubts, races, lambda _done, _of: None)
    lines = {program.line(each.fault.other_agent, each.fault.other_pc) for each in (*races, *more) if each.fault}
    assert len([each for each in more if each.kind is FaultKind.RACE]) == 1
    assert len(lines) == 2
    assert elsewhere(program, found.doubts, (*races, *more), lambda _done, _of: None) == ()


def not_waited_for() -> Protocol:
    """Each copy of ``first`` and ``last`` is read while it is under way; the slot of the ring is given back early."""
    p = Protocol("not_waited_for")
    full, empty = p.mbarriers("full", 1, count=1), p.mbarriers("empty", 1, count=1)
    own, ring = (p.smem(name, slots=2, nbytes=BYTES) for name in ("own", "ring"))
    done = p.mbarriers("done", 2, count=1)

    @p.role("first")
    def first(w: Warp) -> None:
        with w.elect_one():
            done[0].expect_bytes(BYTES)
            w.tma_load(own[0], done[0], 0)
            w.write(own[0], 1)
            for i in range(TILES):
                full[0].wait(i & 1)
                empty[0].arrive()
                w.write(ring[0], i)

    @p.role("last")
    def last(w: Warp) -> None:
        with w.elect_one():
            done[1].expect_bytes(BYTES)
            w.tma_load(own[1], done[1], 1)
            w.write(own[1], 0)
            for i in range(TILES):
                empty[0].wait((i & 1) ^ 1)
                w.write(ring[0], i)
                full[0].arrive()

    return p


@pytest.mark.slow
def test_what_is_waived_hides_no_finding_of_its_kind_that_comes_later() -> None:
    """A schedule goes on after a fault that is known, and is replayed so. Sure is what happens in the usual run."""
    report = check(target_of(not_waited_for), {})
    found = [(shown.names, shown.elsewhere, shown.basis) for shown in report.refutations]
    assert found == [
        (("own",), False, Basis.CERTAIN),
        (("own",), True, Basis.CERTAIN),
        (("ring",), True, Basis.POSSIBLE),
    ]
    assert len({shown.place for shown in report.refutations}) == len(found)
    (again,) = replay(target_of(not_waited_for).build(), report.refutations[-1].replay).refutations
    assert (again.names, again.place) == (("ring",), report.refutations[-1].place)


@pytest.mark.slow
def test_two_changes_of_one_ring_are_no_second_finding() -> None:
    """That every lane arrives, and the count 32 that goes with it, is one slip corrected by another."""
    program = target_of(two_rings).build({"count": 2})
    (hang,) = prove(program).refutations
    assert hidden_by(program, hang, program, lambda _done, _of: None) is None


def test_other_ends_are_named_where_one_change_corrects_all() -> None:
    """They are no findings of their own then."""
    report = check(target_of(BROKEN["invalidated_by_the_producer"]), {})
    found = [(shown.finding.kind, shown.elsewhere) for shown in report.refutations]
    assert found == [(FaultKind.INVAL_PENDING, False)]
    assert all(shown.place for shown in report.refutations)
    assert report.also == (FaultKind.INVALIDATED,)
