"""What can be removed of small protocols, and what cannot."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pipesim import Fence, Protocol, Warp
from pipesim.answers.redundant import redundant
from pipesim.answers.views.redundant import RedundantReport
from pipesim.lang.tiles import Slot
from pipesim.model.coverage import RULES, WHOLE, Assumed, Assumption, Coverage, coverage_from
from pipesim.model.finding import Verdict
from pipesim.model.ops import Engine, Op, operand
from pipesim.model.program import Program
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.prove.redundant.candidates import candidates
from pipesim.prove.redundant.kept_proof import Withheld
from pipesim.prove.redundant.removal import RemovalKind, SyncKind, sites, without
from pipesim.targets import target_of
from tests.support.small_programs import build

Author = Callable[..., Protocol]


def ring(
    stages: int = 2, tiles: int = 6, twice: int = 0, fences: int = 1, count: int = 1, plain: int = 0, shared: int = 0
) -> Protocol:
    """A ring of two warps; ``twice``: the consumer waits once more for the phase that it has waited for.

    ``plain``: how many consumers beside it do not fence after their reads; ``shared``: all read in one function.
    """
    p = Protocol("ring")
    tile = p.smem("tile", slots=stages, nbytes=64)
    storage = p.mbarriers("pipe", ProducerConsumerPipeline.smem_bytes(stages) // 8)

    @p.init
    def init() -> None:
        ProducerConsumerPipeline(storage, stages).init_mbars(
            producer_arrive_count=1, consumer_arrive_count=count + plain
        )

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(64)
                    w.tma_load(tile[stage.index()], stage.mbar(), item=i)

    def read(w: Warp, slot: Slot, item: int) -> None:
        w.read(slot, item=item)

    def read_in_another_line(w: Warp, slot: Slot, item: int) -> None:
        w.read(slot, item=item)

    @p.role("mma")
    def mma(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.consume() as stage:
                    if twice:
                        storage[stage.index()].wait(i // stages & 1)
                    read(w, tile[stage.index()], i)
                    for _ in range(fences):
                        w.fence(Fence.PROXY_ASYNC)
                    for _ in range(count - 1):
                        storage[stages + stage.index()].arrive()

    def reads_only(w: Warp) -> None:
        pipe = ProducerConsumerPipeline(storage, stages)
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                with pipe.consume() as stage:
                    (read if shared else read_in_another_line)(w, tile[stage.index()], i)

    if plain:
        p.role("plain", warps=plain)(reads_only)
    return p


def asked(author: Author, **params: int) -> RedundantReport:
    return redundant(target_of(author), params)


def said(report: RedundantReport) -> list[str]:
    return [each.said for each in report.alone]


@pytest.mark.slow
def test_a_ring_needs_all_that_it_has() -> None:
    report = asked(ring)
    assert (report.verdict, report.withheld, report.alone, report.together) == (Verdict.PROVED, None, (), ())
    assert report.rules == tuple(each.switch for each in Assumption if each in RULES - {Assumption.LANES})
    assert report.assumed == ("--strict-lanes",)
    assert report.tried >= 4  # both waits, the fence, the fence after the inits


@pytest.mark.slow
def test_a_second_wait_for_one_phase_may_go_and_the_first_as_well_but_not_both() -> None:
    report = asked(ring, twice=1)
    assert said(report) == ["the wait for full of mma", "the wait for full of mma"]
    assert len({each.lines for each in report.alone}) == 2
    assert report.together == (0,)
    assert [(each.parameter, each.shown) for each in report.sizes] == [("tiles", True)]


@pytest.mark.slow
def test_an_arrive_goes_with_its_count() -> None:
    report = asked(ring, count=2)
    removals = [each.removal for each in report.alone]
    assert [(r.edit, r.what, r.fewer, r.count) for r in removals] == [(RemovalKind.ARRIVE, "empty", 1, 2)] * 2
    assert "with an init count of 1 instead of 2" in report.alone[0].said
    program = target_of(ring).build({"count": 2})
    edited = without(program, removals[0])
    assert edited is not None
    inits = [operand(op, "count") for op in edited.code[0] if op[0] == Op.INIT]
    assert inits == [1, 1, 1, 1]


@pytest.mark.slow
def test_a_wait_that_holds_only_while_the_stages_are_new_is_not_offered() -> None:
    """With fewer tiles than stages the wait for room never blocks: at this size alone it could go."""
    report = asked(ring, stages=4, tiles=3)
    assert (said(report), report.unfit > 0) == ([], True)


def test_the_same_of_a_flat_program_is_offered_for_it_has_one_size() -> None:
    report = redundant(target_of(target_of(ring).build({"stages": 4, "tiles": 3})), {})
    assert "the wait for empty of load" in said(report)


@pytest.mark.slow
def test_without_proxy_fences_a_removal_adds_nothing_to_what_is_assumed() -> None:
    """Nor is the fence of one role offered because another reads in the same line without one."""
    assert asked(ring, fences=0).assumed == ("--strict-proxies", "--strict-lanes")
    for shared in range(2):
        report = asked(ring, plain=1, shared=shared)
        assert report.assumed == ("--strict-proxies", "--strict-lanes")
        assert [each for each in report.alone if each.removal.edit is RemovalKind.FENCE] == []


def meeting(late: int = 0) -> Protocol:
    """Two warps hand over a tile through a named barrier, and meet at another, after the read or (``late``) before."""
    p = Protocol("meeting")
    tile = p.smem("tile", slots=1, nbytes=64)

    @p.role("one")
    def one(w: Warp) -> None:
        w.write(tile[0], 0)
        w.bar_sync(1, 64)
        w.bar_sync(2, 64)

    @p.role("two")
    def two(w: Warp) -> None:
        w.bar_sync(1, 64)
        if not late:
            w.read(tile[0], 0)
        w.bar_sync(2, 64)
        if late:
            w.read(tile[0], 0)

    return p


def own_barriers(report: RedundantReport) -> list[tuple[str, tuple[str, ...], int]]:
    """The named barriers that could go, but for the one of the prologue, with roles and source lines."""
    named = [each.removal for each in report.alone if each.removal.edit is RemovalKind.NAMED]
    return [(each.what, each.roles, len(each.sites)) for each in named if each.what != "0"]


def test_barriers_go_with_all_who_meet_there() -> None:
    assert own_barriers(asked(meeting)) == [("2", ("one", "two"), 2)]


def test_either_of_two_meetings_orders_the_tile_and_one_has_to_stay() -> None:
    report = asked(meeting, late=1)
    assert own_barriers(report) == [("1", ("one", "two"), 2), ("2", ("one", "two"), 2)]
    kept = {report.alone[n].removal.what for n in report.together if report.alone[n].removal.edit is RemovalKind.NAMED}
    assert kept - {"0"} == {"1"}


def test_a_wait_for_the_last_store_stays_although_nothing_races() -> None:
    report = asked(stored)
    assert [each for each in report.alone if each.removal.edit is RemovalKind.GROUP_WAIT] == []
    tried = [each.edit for each in candidates(target_of(stored).build())]
    assert RemovalKind.GROUP_WAIT in tried


def stored() -> Protocol:
    """A warp stores a tile by a bulk copy, and waits for it before it ends."""
    p = Protocol("stored")
    tile = p.smem("tile", slots=1, nbytes=64)

    @p.role("store")
    def store(w: Warp) -> None:
        w.write(tile[0], 0)
        w.fence(Fence.PROXY_ASYNC)
        w.sync_warp()
        with w.elect_one():
            w.async_read(Engine.BULK, tile[0], 0)
            w.commit(Engine.BULK)
            w.wait_group(Engine.BULK)

    return p


# what is withheld


def flat(coverage: Coverage = WHOLE) -> Program:
    return replace(target_of(ring).build({"twice": 1}), coverage=coverage)


@pytest.mark.parametrize("field", ["stopped", "blocked", "left_out", "undefined", "weakened", "fences", "reductions"])
def test_nothing_is_offered_of_a_program_that_leaves_something_out(field: str) -> None:
    report = redundant(target_of(flat(coverage_from({field: ["kernel.cu:1: something"]}))), {})
    assert (report.withheld, report.alone, report.tried) == (Withheld.COVERAGE, (), 0)
    assert redundant(target_of(flat()), {}).alone != (), "the twin: the same program with nothing left out"


def test_nothing_is_offered_where_lanes_are_taken_to_be_together() -> None:
    report = redundant(
        target_of(flat(Coverage(extracted=("1",), assumed=(Assumed(Assumption.LANES, "kernel.cu:1"),)))), {}
    )
    assert (report.verdict, report.withheld, report.alone) == (Verdict.PROVED, Withheld.LANES, ())


def test_nothing_is_offered_of_a_refuted_program() -> None:
    report = redundant(target_of(build("INIT; WAIT", smem_bytes=64)), {})
    assert (report.verdict, report.withheld, report.alone) == (Verdict.REFUTED, Withheld.REFUTED, ())


def test_fences_that_the_proof_does_not_judge_are_no_sites() -> None:
    program = build(*(f"FENCE fence={int(fence)}" for fence in (Fence.TCGEN05_AFTER, Fence.SC, Fence.PROXY_ASYNC)))
    assert [site.what for site in sites(program) if site.kind is SyncKind.FENCE] == [str(int(Fence.PROXY_ASYNC))]
