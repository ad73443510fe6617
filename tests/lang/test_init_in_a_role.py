"""Upstream's prologue written out: one lane of a role initialises, a fence, then a barrier that every user passes."""

import inspect
from contextlib import nullcontext

import pytest

from pipesim import Fence, Protocol, Warp
from pipesim.errors import ProtocolError
from pipesim.findings.catalog import report_fault
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.pipelines import ProducerConsumerPipeline
from pipesim.prove.check import check

BYTES = 1024


def ring(
    tiles: int = 5,
    *,
    at: int = 0,
    cluster: int = 1,
    elected: bool = True,
    fenced: bool = True,
    met: bool = True,
    both: bool = False,
    spare: int | None = None,
) -> Protocol:
    """A ring of 2 stages at barrier ``at`` of an array, initialised by the load warp (and by the other, with both)."""
    p = Protocol("ring", cluster=cluster)
    tile = p.smem("tile", 2, BYTES)
    b = p.mbarriers("b", 4 + at)
    if spare is not None:
        p.mbarriers("spare", 1, count=spare)

    def prologue(w: Warp, initialises: bool) -> ProducerConsumerPipeline:
        pipe = ProducerConsumerPipeline(b[at], 2)
        if initialises:
            with w.elect_one() if elected else nullcontext():
                pipe.init_mbars(1, 1)
                if fenced:
                    w.fence(Fence.MBARRIER_INIT)
        if met and cluster > 1:
            w.cluster_sync()
        elif met:
            w.sync_threads()
        return pipe

    @p.role("load")
    def load(w: Warp) -> None:
        pipe = prologue(w, initialises=True)
        with w.elect_one():
            for i in range(tiles):
                with pipe.produce() as stage:
                    stage.mbar().expect_bytes(BYTES)
                    w.tma_load(tile[stage.index()], stage.mbar(), i)

    @p.role("use")
    def use(w: Warp) -> None:
        pipe = prologue(w, initialises=both)
        with w.elect_one():
            for i in range(tiles):
                with pipe.consume() as stage:
                    w.read(tile[stage.index()], i)

    return p


def kinds(p: Protocol) -> tuple[Verdict, list[FaultKind | Ending]]:
    result = check(p.flatten())
    return result.verdict, [each.kind for each in result.refutations]


def corrections(p: Protocol) -> list[str]:
    """What reports say of a barrier that is initialised again."""
    program = p.flatten()
    faults = [each.fault for each in check(program).refutations if each.fault is not None]
    return [report_fault(program, fault).correction for fault in faults if fault.kind is FaultKind.REINITIALISED]


@pytest.mark.parametrize("cluster", [1, 2])
@pytest.mark.parametrize("at", [0, 3])
def test_the_right_prologue_is_proved(at: int, cluster: int) -> None:
    assert kinds(ring(at=at, cluster=cluster)) == (Verdict.PROVED, [])


@pytest.mark.parametrize(
    ("wrong", "kind"),
    [
        ({"fenced": False}, FaultKind.UNPUBLISHED_INIT),
        ({"met": False}, FaultKind.NOT_INITIALISED),
        ({"elected": False}, FaultKind.REINITIALISED),
        ({"both": True}, FaultKind.REINITIALISED),
        ({"fenced": False, "cluster": 2}, FaultKind.UNPUBLISHED_INIT),
        ({"met": False, "cluster": 2}, FaultKind.NOT_INITIALISED),
    ],
)
def test_the_wrong_twins_are_found(wrong: dict[str, bool], kind: FaultKind) -> None:
    verdict, found = kinds(ring(**wrong))
    assert verdict is Verdict.REFUTED
    assert kind in found


def test_lanes_that_all_initialise_are_told_to_elect_one() -> None:
    assert corrections(ring(elected=False)) == ["elect one lane for the init: 32 lanes make it, each of them once"]
    assert corrections(ring(both=True)) == [""], "two warps: no matter of lanes"


def test_barriers_that_nobody_initialises_are_an_error_where_they_are_declared() -> None:
    p = Protocol("nobody")
    mine, spare = p.mbarriers("mine", 2), p.mbarriers("spare", 2)
    line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]

    @p.role("r")
    def r(w: Warp) -> None:
        with w.elect_one():
            mine[0].init()
        spare[0].arrive()

    with pytest.raises(ProtocolError, match="no role initialises spare") as caught:
        p.flatten()
    assert caught.value.place == f"{__file__}:{line}"
