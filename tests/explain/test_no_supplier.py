"""Corrections that no count and no parity is: rings that overlap, and a wait for a barrier that no operation serves."""

import pytest

from pipesim.answers.check import check
from pipesim.answers.run import run
from pipesim.answers.views.check import CheckReport
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.finding import Deadlock, Verdict
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.report.findings.finding import finding_lines
from pipesim.targets import target_of
from pipesim.timed.profile import load_profile

NBYTES = 64


def two_rings(second: int = 4, tiles: int = 4, by_hand: int = 0) -> Protocol:
    """Two rings of two stages in one storage; the second begins at barrier ``second``, right from 4 on."""
    p = Protocol("two_rings")
    tiles_of = [p.smem(name, 2, NBYTES) for name in "ab"]
    storage = p.mbarriers("pipe", 8)

    def rings() -> tuple[ProducerConsumerPipeline, ProducerConsumerPipeline]:
        return ProducerConsumerPipeline(storage, 2), ProducerConsumerPipeline(storage.ptr() + second, 2)

    @p.init
    def init() -> None:
        if by_hand:
            for mbar in storage:
                mbar.init(1)
        else:
            for ring in rings():
                ring.init_mbars(1, 1)

    @p.role("load")
    def load(w: Warp) -> None:
        pipes = rings()
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                for pipe, tile in zip(pipes, tiles_of, strict=True):
                    with pipe.produce() as stage:
                        stage.mbar().expect_bytes(NBYTES)
                        w.tma_load(tile[stage.index()], stage.mbar(), i)

    @p.role("use")
    def use(w: Warp) -> None:
        pipes = rings()
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                for pipe, tile in zip(pipes, tiles_of, strict=True):
                    with pipe.consume_explicit() as stage:
                        w.read(tile[stage.index()], i)
                        stage.arrive()

    return p


def last_wait(tiles: int = 3, *, served: bool = False, elsewhere: bool = False) -> Protocol:
    """``store`` waits once for ``done``, on which ``use`` arrives after its last tile if ``served``."""
    p = Protocol("last_wait")
    tile = p.smem("tile", 1, NBYTES)
    full, empty, done = (p.mbarriers(name, 1, count=1) for name in ("full", "empty", "done"))
    other = p.mbarriers("other", 1, count=1)

    @p.role("load")
    def load(w: Warp) -> None:
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                empty[0].wait(1 - i % 2)
                full[0].expect_bytes(NBYTES)
                w.tma_load(tile[0], full[0], i)

    @p.role("use")
    def use(w: Warp) -> None:
        with w.elect_one():
            for i in w.loop(tiles, "tiles"):
                full[0].wait(i % 2)
                w.read(tile[0], i)
                empty[0].arrive()
            if served or elsewhere:
                (done if served else other)[0].arrive()

    @p.role("store")
    def store(w: Warp) -> None:
        with w.elect_one():
            done[0].wait(0)

    return p


def checked(target: object, **params: object) -> CheckReport:
    return check(target_of(target), params)  # type: ignore[arg-type]


def by_hand(second: int = 4, tiles: int = 4) -> Protocol:
    return two_rings(second, tiles, 1)


OVERLAP = (
    "give each pipeline its own barriers: pipe[2] and pipe[3] belong to several pipelines, which begin at pipe[0] "
    "and pipe[2]"
)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("target", [two_rings, by_hand])
def test_rings_that_overlap_are_the_cause(target: object) -> None:
    found = checked(target, second=2)
    assert found.verdict is Verdict.REFUTED
    for shown in found.refutations:
        assert (shown.finding.correction, shown.corrections) == (OVERLAP, ())
    assert checked(target).verdict is Verdict.PROVED  # the twin


def test_one_barrier_in_common() -> None:
    """Of rings that share less the barriers are named one by one, in a deadlock too."""
    program = two_rings(3, by_hand=1).flatten()
    assert program.overlaps == ("pipe[3] belongs to several pipelines, which begin at pipe[0] and pipe[3]",)
    assert two_rings(4).flatten().overlaps == ()
    found = checked(by_hand, second=3)
    assert found.verdict is Verdict.REFUTED
    said = {shown.finding.correction for shown in found.refutations}
    assert said == {f"give each pipeline its own barriers: {program.overlaps[0]}"}


def test_pipelines_of_different_size_in_one_place() -> None:
    p = Protocol("p")
    storage = p.mbarriers("pipe", 6)
    p.init(lambda: None)

    @p.role("r")
    def r(w: Warp) -> None:
        ProducerConsumerPipeline(storage, 2)
        ProducerConsumerPipeline(storage, 3)
        w.work(1)

    assert p.flatten().overlaps == ("pipe[2] and pipe[3] belong to several pipelines of different size at pipe[0]",)


def test_a_wait_that_no_operation_serves_names_the_missing_arrival() -> None:
    found = checked(lambda tiles=3: last_wait(tiles))
    (shown,) = found.refutations
    assert isinstance(shown.finding, Deadlock)
    assert [each.said for each in shown.corrections] == ["use arrives on done once at its end: no role does"]
    correction = "no role arrives on done[0]: add the arrive to the role that store waits for, or omit this wait"
    assert shown.finding.correction == correction
    assert f"likely correction: {correction}" in " ".join(" ".join(finding_lines([shown.finding])).split())
    assert checked(lambda tiles=3: last_wait(tiles, served=True)).verdict is Verdict.PROVED  # the twin


def test_an_arrive_on_a_barrier_that_no_role_waits_for_is_named() -> None:
    ran = run(last_wait(elsewhere=True).flatten(), load_profile("h100"))
    assert ran.deadlock is not None
    assert ran.deadlock.correction == (
        "no role arrives on done[0], and no role waits for other[0], on which arrivals are made: use one barrier for "
        "both"
    )
