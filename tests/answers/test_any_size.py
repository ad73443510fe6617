"""What is claimed of any number of iterations: far values and combinations are tried before it is said."""

import numpy as np
import pytest

from pipesim import Protocol, Warp
from pipesim.answers.any_size import Families
from pipesim.answers.check import check
from pipesim.answers.every_cta.conditions import broken_words
from pipesim.answers.every_cta.reach import holds_to
from pipesim.answers.every_size.classes import AnyWord
from pipesim.answers.views.check import CheckReport, ProvedTogether
from pipesim.errors import ParameterError
from pipesim.lang.shared_mem_barrier import SharedMemBarrier
from pipesim.lang.tiles import TileArray
from pipesim.model.ending import Ending
from pipesim.model.finding import Verdict
from pipesim.model.ops import Engine
from pipesim.prove.any_size.family import Stop
from pipesim.ptx.free.forms import Form
from pipesim.ptx.free.varying import FreeInputs, Varying
from pipesim.report.pages.checks.check import check_lines
from pipesim.report.sentences.check import check_sentence, sizes_words
from pipesim.targets import find, target_of
from tests.support.paths import ROOT


def ring(p: Protocol, stages: int) -> tuple[TileArray, list[SharedMemBarrier], list[SharedMemBarrier]]:
    full, empty = p.mbarriers("full", stages, count=1), p.mbarriers("empty", stages, count=1)
    return p.smem("tile", stages, 128), [full[s] for s in range(stages)], [empty[s] for s in range(stages)]


def every_so_often(tiles: int = 3, period: int = 16, modulus: int = 1, residue: int = -1) -> Protocol:
    """The consumer forgets an arrive once every ``period`` tiles, or the first where many tiles leave ``residue``."""
    p = Protocol("every_so_often")
    forgets_first = tiles > 40 and tiles % modulus == residue
    tile, full, empty = ring(p, 2)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                empty[i % 2].wait(i // 2 & 1 ^ 1)
                full[i % 2].expect_bytes(128)
                w.tma_load(tile[i % 2], full[i % 2], i)

    @p.role("math")
    def math(w: Warp) -> None:
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                full[i % 2].wait(i // 2 & 1)
                w.read(tile[i % 2], i)
                if (not period or i % period != period - 1) and not (forgets_first and i == 0):
                    empty[i % 2].arrive()

    return p


def two_loops(tiles: int = 1, k_iters: int = 8, restarts: int = 1) -> Protocol:
    """The phase restarts with every tile: right for one tile, and for an even number of K iterations."""
    p = Protocol("two_loops")
    tile, (full,), (empty,) = ring(p, 1)

    def phase(t: int, k: int) -> int:
        return (k if restarts else t * k_iters + k) & 1

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for t in w.loop(tiles, "tiles"):
                for k in w.loop(k_iters, "k_iters"):
                    empty.wait(phase(t, k) ^ 1)
                    full.expect_bytes(128)
                    w.tma_load(tile[0], full, t * k_iters + k)

    @p.role("math")
    def math(w: Warp) -> None:
        with w.elect_one():
            for t in w.loop(tiles, "tiles"):
                for k in w.loop(k_iters, "k_iters"):
                    full.wait(phase(t, k))
                    w.read(tile[0], t * k_iters + k)
                    empty.arrive()

    return p


def of(function: object, **params: int) -> CheckReport:
    report = check(target_of(function), params)  # type: ignore[arg-type]  # a protocol's function
    assert report.verdict is Verdict.PROVED
    return report


@pytest.mark.sampled(1)
@pytest.mark.parametrize("period", [48, 90, 250])
def test_a_mistake_with_a_long_period_is_met_far_beyond_the_lap(period: int) -> None:
    (shown,) = of(every_so_often, period=period).ranges
    assert (shown.lap, shown.why, shown.refuted) == (0, Stop.CHANGES, Ending.DEADLOCK)
    assert shown.fails > period
    assert "at these parameters" in check_sentence(of(every_so_often, period=period))


@pytest.mark.parametrize(
    ("modulus", "residue"), [(2, 0), (2, 1), (3, 2), (5, 4), (7, 4), (8, 7), (12, 11), (16, 15), (24, 23), (32, 31)]
)
def test_a_mistake_of_sizes_with_one_residue_is_met(modulus: int, residue: int) -> None:
    """Where a number of tiles is no multiple of something, its rest is handled apart."""
    (shown,) = of(every_so_often, period=0, modulus=modulus, residue=residue).ranges
    assert (shown.lap, shown.why, shown.refuted) == (0, Stop.CHANGES, Ending.DEADLOCK)
    assert shown.fails % modulus == residue


def test_without_the_mistake_the_far_values_are_named() -> None:
    report = of(every_so_often, period=0)
    (shown,) = report.ranges
    assert (shown.lap, shown.far, shown.others) == (4, (34, 47, 64, 79, 95, 100, 127, 1_001), {})
    assert ", for every CTA, for any number of tiles; assuming " in check_sentence(report)
    assert (
        "that the roles keep repeating the pattern seen in the checked sizes (--strict-pattern, 1)"
        in check_sentence(report)
    )


def peels_the_first(tiles: int = 2) -> Protocol:
    """The first tile is taken before the loop, whether there is one or not."""
    p = Protocol("peels_the_first")
    tile, full, _ = ring(p, 4)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                full[i % 4].expect_bytes(128)
                w.tma_load(tile[i % 4], full[i % 4], i)

    @p.role("math")
    def math(w: Warp) -> None:
        full[0].wait(0)
        for i in w.loop(max(tiles - 1, 0), "tiles"):
            full[(i + 1) % 4].wait(0)

    return p


def test_the_least_value_that_fails_is_said_and_how() -> None:
    said = " ".join(" ".join(check_lines(of(peels_the_first), 200)).split())
    assert "sizes tiles: as given, not any number: it fails at 0 (deadlock)" in said


def in_turns(tiles: int = 4) -> Protocol:
    """Each group waits for every second phase only, so always with the same parity."""
    p = Protocol("in_turns")
    tile, (full,), (empty,) = ring(p, 1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in w.loop(tiles):
                empty.wait(i & 1 ^ 1)
                full.expect_bytes(128)
                w.tma_load(tile[0], full, i)

    def math(w: Warp, first: int) -> None:
        with w.elect_one():
            for i in range(first, tiles, 2):
                full.wait(i & 1)
                w.read(tile[0], i)
                empty.arrive()

    p.role("math0")(lambda w: math(w, 0))
    p.role("math1")(lambda w: math(w, 1))
    return p


@pytest.mark.slow
@pytest.mark.parametrize(("tiles", "once"), [(1, ("empty", "full")), (2, ()), (4, ())])
def test_a_barrier_with_several_phases_is_used_again(tiles: int, once: tuple[str, ...]) -> None:
    scope = check(target_of(in_turns), {"tiles": tiles}, most_ranges=0).scope
    assert [name for each in scope.not_judged for name in each.names] == list(once)


@pytest.mark.slow
def test_two_loops_that_are_right_alone_are_tried_together() -> None:
    report = of(two_loops)
    assert [(each.parameter, each.others) for each in report.ranges] == [
        ("tiles", {"k_iters": 8}),
        ("k_iters", {"tiles": 1}),
    ]
    assert report.together == ProvedTogether(("tiles", "k_iters"), 8, {"tiles": 2, "k_iters": 1}, refuted=True)
    assert " but not of both: it fails at tiles 2, k_iters 1; " in check_sentence(report)
    assert sizes_words(report.ranges) == "for any number of tiles (k_iters 8) or of k_iters (tiles 1)"


@pytest.mark.slow
def test_two_loops_that_are_right_together() -> None:
    report = of(two_loops, restarts=0)
    assert report.together == ProvedTogether(("tiles", "k_iters"), 16, {})
    assert "not of both" not in check_sentence(report)


def test_one_loop_is_not_tried_together_with_anything() -> None:
    assert of(every_so_often, period=0).together is None


@pytest.mark.sampled(1)
@pytest.mark.parametrize("both", [False, True])
def test_only_a_claim_that_needs_the_order_of_commits_says_so(*, both: bool) -> None:
    """An agent that waits for the later of two commits goes on to the next phase of the earlier; or waits for both."""

    def commits(tiles: int = 2) -> Protocol:
        p = Protocol("commits")
        done, last = p.mbarriers("done", 1, 1), p.mbarriers("last", 1, 1)

        @p.role("mma")
        def mma(w: Warp) -> None:
            with w.elect_one():
                for i in w.loop(tiles, "tiles"):
                    w.commit(Engine.TCGEN05, done[0])
                    w.commit(Engine.TCGEN05, last[0])
                    last[0].wait(i & 1)
                    if both:
                        done[0].wait(i & 1)

        return p

    target = target_of(commits)
    asked = Families(target, {}, target.build({}), by_commit_order=False)
    (every,) = asked.ranges(1)
    assert every.lap
    assert asked.by_commit_order == (set() if both else {"tiles"})
    plain = target_of(every_so_often)
    without = Families(plain, {"period": 0}, plain.build({"period": 0}), by_commit_order=False)
    assert without.ranges(1)
    assert without.by_commit_order == set()


@pytest.mark.parametrize(
    ("asked", "tiles"), [((), 1), (("tiles",), 3), (("tiles=1..2",), 1), (("tiles=4..",), 4), (("tiles=1..3",), 3)]
)
def test_what_may_have_any_value_is_checked_where_it_fails(asked: tuple[str, ...], tiles: int) -> None:
    """A ring of two stages whose empty barriers count to 2 is right for two tiles."""
    target = find(str(ROOT / "docs" / "examples" / "ring_two.py:ring"))
    report = check(target, {"tiles": 1}, quick=True, any_words=tuple(map(AnyWord.read, asked)))
    assert (report.verdict is Verdict.REFUTED, report.heading.params["tiles"]) == (tiles > 1, tiles)


@pytest.mark.slow
def test_only_a_trip_count_may_have_any_value() -> None:
    right = check(find("producer_consumer"), {}, quick=True, any_words=(AnyWord("tiles"),))
    assert (right.verdict, sizes_words(right.ranges)) == (Verdict.PROVED, "for any number of tiles")
    with pytest.raises(ParameterError, match="--any stages: producer_consumer has no such trip count"):
        check(find("producer_consumer"), {}, any_words=(AnyWord("stages"),))


def test_an_expression_whose_parts_are_shared_sixty_times_over_is_followed_once() -> None:
    """The indices of a ring that is lapped by remainders: written out it would have 2 ** 60 terms."""

    def deep(value: int) -> int:
        for _ in range(60):
            value = value % 97 + value % 89
        return value

    inputs = FreeInputs()
    value = deep(inputs.free("x", 5, 0, 900))
    assert value > 12
    ((terms, condition),) = inputs.conditions.items()
    assert holds_to(inputs, "x", 900, {"CTA": np.arange(1)}) == next(x for x in range(5, 900) if deep(x) <= 12) - 1 == 9
    assert broken_words(Form(0, terms), condition, 0, {}) == ""
    assert isinstance(value, Varying)
    (x,) = (atom for atom in value.form.atoms() if atom.function is None)
    assert inputs.settled(value, x, 5) == value
