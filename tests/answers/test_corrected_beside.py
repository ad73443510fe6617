"""Corrections of two lines about one barrier, and what is said where another finding is about the same barrier."""

from dataclasses import replace

from pipesim import Protocol, Warp
from pipesim.answers.check import check
from pipesim.answers.checking.state import causes_first
from pipesim.answers.views.check import CheckReport
from pipesim.answers.views.conclusion import Basis
from pipesim.model.finding import FaultKind, Verdict
from pipesim.targets import target_of


def sums(*, apart: bool, stages: int = 2, tiles: int = 4) -> Protocol:
    """Two copies a stage, each with a barrier of its own, or both with the first one."""
    p = Protocol("sums")
    x, y = p.smem("x", stages, 1024), p.smem("y", stages, 1024)
    x_full, y_full, free = (p.mbarriers(name, stages, 1) for name in ("x_full", "y_full", "free"))

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for n in range(tiles):
                free[n % stages].wait(n // stages & 1 ^ 1)
                x_full[n % stages].expect_bytes(1024)
                w.tma_load(x[n % stages], x_full[n % stages], n)
                full = (y_full if apart else x_full)[n % stages]
                full.expect_bytes(1024)
                w.tma_load(y[n % stages], full, n)

    @p.role("compute")
    def compute(w: Warp) -> None:
        for n in range(tiles):
            for full, tile in ((x_full, x), (y_full, y)):
                full[n % stages].wait(n // stages & 1)
                w.read(tile[n % stages], n)
            with w.elect_one():
                free[n % stages].arrive()

    return p


def watched(*, early: bool, watcher: bool, laps: int = 4) -> Protocol:
    """Math gives a slot back before it reads it, and a role waits for copies without being counted, or not."""
    p = Protocol("watched")
    q, full, empty = p.smem("q", 1, 1024), p.mbarriers("full", 1, 1), p.mbarriers("empty", 1, 1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for n in range(laps):
                empty[0].wait(n & 1 ^ 1)
                full[0].expect_bytes(1024)
                w.tma_load(q[0], full[0], n)

    @p.role("math")
    def math(w: Warp) -> None:
        for n in range(laps):
            full[0].wait(n & 1)
            if not early:
                w.read(q[0], n)
            with w.elect_one():
                empty[0].arrive()
            if early:
                w.read(q[0], n)

    if watcher:

        @p.role("watcher")
        def watch(_: Warp) -> None:
            for n in range(laps):
                full[0].wait(n & 1)

    return p


def report(protocol: Protocol) -> CheckReport:
    return check(target_of(protocol.flatten()), {})


def test_an_expect_and_its_copy_are_moved_to_another_barrier_together() -> None:
    assert report(sums(apart=True)).verdict is Verdict.PROVED
    (found,) = report(sums(apart=False)).refutations
    assert (found.finding.kind, found.basis) == (FaultKind.OVER_ARRIVAL, Basis.CERTAIN)
    assert found.corrections[0].said == "load arrives, and completes its copy, on y_full, not on x_full"


def test_no_wait_is_left_out_where_another_finding_is_about_its_barrier() -> None:
    assert report(watched(early=False, watcher=False)).verdict is Verdict.PROVED
    assert report(watched(early=False, watcher=True)).refutations[0].corrections
    beside = report(watched(early=True, watcher=True)).refutations
    assert {each.finding.kind: each.finding.correction for each in beside} == {"lapped_waiter": "", FaultKind.RACE: ""}


def kinds(*shown: tuple[str, bool]) -> list[str]:
    (hang,), (over,) = (report(each).refutations for each in (watched(early=False, watcher=True), sums(apart=False)))
    bases = {True: Basis.CERTAIN, False: Basis.POSSIBLE}
    some = [replace(hang if name.startswith("hang") else over, basis=bases[sure], command=name) for name, sure in shown]
    return [each.command for each in causes_first(tuple(some))]


def test_a_hang_that_is_only_possible_comes_after_what_is_certain() -> None:
    assert kinds(("hang", False), ("over", True), ("race", False)) == ["over", "hang", "race"]
    assert kinds(("hang", True), ("over", True)) == ["hang", "over"]
