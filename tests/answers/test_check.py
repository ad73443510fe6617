"""The verdict as a report: the smallest sizes, the causes of a deadlock, and what is told of the unknown."""

import pytest

from pipesim.answers.check import check
from pipesim.answers.checking import failures
from pipesim.answers.views.check import CheckReport
from pipesim.answers.views.conclusion import Basis
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.coverage import Assumption
from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock, FaultReport, Verdict
from pipesim.prove.check import How
from pipesim.prove.counterexample.words import Part
from pipesim.report.pages.checks.check import check_lines, shown_lines
from pipesim.targets import Target, find, target_of
from tests.support.mistakes import BROKEN
from tests.support.mistakes.ring import right_ring
from tests.support.mistakes.small import two_of_three
from tests.support.paths import ROOT


def checked(target: Target, params: dict[str, int], max_states: int = 1_000) -> CheckReport:
    return check(target, params, max_states=max_states)


@pytest.mark.slow
def test_a_missed_phase_is_told_at_the_smallest_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(failures, "corrections_of", lambda *_: ())  # they take their time
    # Without the fence a read is a finding beside it.
    report = checked(find("conv_epilogue"), {"fence": 1, "tiles": 3, "k_iters": 1})
    assert report.verdict is Verdict.REFUTED
    (shown,) = report.refutations
    assert shown.at == {"tiles": 2, "k_iters": 0}
    assert isinstance(shown.finding, Deadlock)
    blocked = {each.agent: each for each in shown.finding.blocked}
    assert (blocked["epilogue_load"].missed, blocked["epilogue_load"].phase_now) == (0, 2)
    said = " ".join(" ".join(check_lines(report, 100)).split())
    assert "epilogue_load was lapped on load_order[0]: it asks for phase 0, but load had" in said
    (last,) = [step for step in shown.schedule if step.number == 102]
    assert (last.agent, last.short, last.note, last.part) == (
        "load",
        "arrive load_order[0]",
        "completes phase 1",
        Part.FOCUS,
    )
    assert shown.standing["epilogue_load"] == "waits for load_order[0]"


def test_a_count_that_is_never_reached_is_told() -> None:
    report = checked(target_of(BROKEN["empty_count_too_high"]), {"stages": 2, "tiles": 9})
    (shown,) = report.refutations
    assert shown.at == {}  # its loop has no marks: nothing is known to be lowered
    assert isinstance(shown.finding, Deadlock)
    assert {each.given for each in shown.finding.blocked if each.barrier.startswith("empty")} == {1}


@pytest.mark.slow
def test_what_is_proved_and_what_is_not_known() -> None:
    proved = checked(find("producer_consumer"), {"tiles": 3})
    assert (proved.verdict, proved.how, proved.refutations, proved.states) == (
        Verdict.PROVED, How.CERTIFICATE, (), 0,
    )  # fmt: skip
    unknown = checked(target_of(two_of_three), {}, max_states=5)
    assert unknown.verdict is Verdict.UNKNOWN
    assert unknown.doubts
    lines = check_lines(unknown, 80)
    assert any(line.startswith("? unknown: neither proved nor refuted") for line in lines)
    assert "  not ordered with respect to other agents:" in lines
    assert max(map(len, lines)) <= 80


@pytest.mark.slow
def test_how_sure_a_finding_is() -> None:
    """No schedule of the first one ends; of the second one the usual schedule does, and a warp has to be late.

    An unfenced read before a copy gave wrong data on Blackwell, and is undefined by the letter of PTX alone before it;
    so is a transaction count of 1,048,576, except where ptxas makes it one operand.
    """
    watched = ROOT / "tests" / "ptx" / "kernels" / "scale_watched-sm_90a.ptx"
    unfenced = target_of(_read_then_copied).with_strictness(frozenset({Assumption.PROXIES}))
    for target, params, basis in (
        (target_of(BROKEN["empty_count_too_high"]), {}, Basis.CERTAIN),
        (find(str(watched)), {}, Basis.POSSIBLE),
        (unfenced, {"architecture": 100}, Basis.POSSIBLE),
        (unfenced, {"architecture": 90}, Basis.LETTER),
        (target_of(_one_byte_too_many), {}, Basis.POSSIBLE),
        (target_of(_one_byte_too_many), {"apart": 1}, Basis.LETTER),
    ):
        assert {shown.basis for shown in check(target, params, quick=True).refutations} == {basis}


def _one_byte_too_many(apart: int = 0) -> Protocol:
    """Of two expect_tx that follow each other ptxas makes one, which traps; nothing may come between them."""
    p = Protocol("one_byte_too_many")
    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].expect_tx(1_048_575)
            if apart:
                full[0].test_wait(0)
            full[0].expect_tx(1)

    return p


def _read_then_copied(architecture: int = 100) -> Protocol:
    """Without a proxy fence between a thread's read and the copy that overwrites what it has read."""
    p = Protocol("read_then_copied", architecture=architecture)
    tile = p.smem("tile", slots=1, nbytes=64)
    full = p.mbarriers("full", 1, count=1)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        with w.elect_one():
            for i in range(2):
                full[0].expect_bytes(64)
                w.tma_load(tile[0], full[0], item=i)
                full[0].wait(i)
                w.read(tile[0], item=i)

    return p


@pytest.mark.slow
def test_what_is_left_at_the_end_is_a_warning() -> None:
    left = checked(target_of(BROKEN["producer_runs_on"]), {"stages": 2, "tiles": 3})
    assert left.verdict is Verdict.PROVED
    (unread,) = (each.claim for each in left.advisories)
    assert "unread" in unread
    assert "producer: a copy into" in next(each.what for each in left.scope.assuming if each.kind is Assumption.EXIT)
    quick = check(target_of(BROKEN["producer_runs_on"]), {"stages": 2, "tiles": 3}, quick=True)
    assert Assumption.EXIT in quick.scope.kinds
    stopped = checked(target_of(BROKEN["consumer_stops_early"]), {"stages": 4, "tiles": 3})
    assert stopped.verdict is Verdict.PROVED
    assert any("unread" in each.claim for each in stopped.advisories)
    assert checked(target_of(right_ring), {"stages": 2, "tiles": 3}).advisories == ()


@pytest.mark.slow
def test_a_fault_of_a_small_size_is_confirmed_at_the_one_that_was_asked_for() -> None:
    """Nothing but the search follows a ring that is invalidated; at 40 tiles it reaches no end, at one it does."""
    target = target_of(BROKEN["used_after_inval"])
    report = checked(target, {"stages": 2, "tiles": 40}, max_states=3)
    assert report.verdict is Verdict.REFUTED
    assert report.refutations


def test_other_ways_to_go_wrong_are_named() -> None:
    report = checked(target_of(BROKEN["consumer_arrives_before_reading"]), {"stages": 1, "tiles": 4})
    kinds = {shown.finding.kind for shown in report.refutations if isinstance(shown.finding, FaultReport)}
    assert kinds
    assert report.also
    assert not kinds & set(report.also)
    assert "other schedules of this size end differently" in "\n".join(check_lines(report, 80))


def test_a_doubt_that_the_next_lap_repeats_is_told_once() -> None:
    report = checked(target_of(BROKEN["expects_after_arrival"]), {})
    assert (len(report.doubts), len(set(report.doubts))) == (12, 11)
    lines = check_lines(report, 100)
    assert "    producer: expect full[0] 64 and 1 more of this line" in lines
    assert "    and 2 more" in lines


def forgotten(tiles: int = 1) -> Protocol:
    """Its second barrier has no init; that no agent arrives on it would be right as well."""
    p = Protocol("forgotten")
    bars = p.mbarriers("bar", 2)

    @p.init
    def init() -> None:
        bars[0].init(1)

    @p.role("only")
    def only(w: Warp) -> None:
        with w.elect_one():
            bars[tiles].arrive()

    return p


def test_a_correction_that_is_proved_stands_in_the_place_of_what_the_rule_says() -> None:
    (shown,) = checked(target_of(forgotten), {}).refutations
    assert isinstance(shown.finding, FaultReport)
    said = "initialise bar[1] in the init: the program never does"
    assert shown.finding.correction == said
    (proved,) = shown.corrections
    assert proved.said == "initialise all barriers: the program never initialises some stages"
    page = " ".join(" ".join(shown_lines(shown, 200)).split())
    assert said not in page
    assert f"likely correction: {proved.said}; proved with this change" in page
    assert checked(target_of(forgotten), {"tiles": 0}).verdict is Verdict.PROVED


@pytest.mark.slow
def test_a_size_that_goes_wrong_beside_one_that_is_right_is_told() -> None:
    """Upstream's order of the loads is right for one tile, and for no more."""
    report = checked(find("conv_epilogue"), {"tiles": 1})
    assert report.verdict is Verdict.PROVED
    tiles = next(each for each in report.ranges if each.parameter == "tiles")
    assert (tiles.least, tiles.checked, tiles.fails, tiles.refuted) == (0, 1, 2, Ending.DEADLOCK)
    said = " ".join(" ".join(check_lines(report, 200)).split())
    assert "tiles: 0 to 1 checked individually, no further value: it fails at 2 (deadlock)" in said


def test_a_smaller_size_that_fails_at_another_tile_is_not_shown() -> None:
    """Without tiles the sums are read that no tile has made; with them the tile is read that no copy has filled."""

    def sums(tiles: int = 4) -> Protocol:
        p = Protocol("sums")
        tile, total = p.smem("tile", slots=2, nbytes=64), p.smem("total", slots=1, nbytes=64)
        full = p.mbarriers("full", 2, count=1)

        @p.role("load")
        def load(w: Warp) -> None:
            with w.elect_one():
                for i in w.loop(tiles, "tiles"):
                    full[i % 2].expect_bytes(64), w.tma_load(tile[i % 2], full[i % 2], item=i)

        @p.role("add")
        def add(w: Warp) -> None:
            for i in w.loop(tiles, "tiles"):
                w.read(tile[i % 2], item=i), w.write(total[0], item=i)
            w.read(total[0], item=tiles - 1)

        return p

    (shown, *_) = checked(target_of(sums), {}).refutations
    assert shown.at == {"tiles": 2}
