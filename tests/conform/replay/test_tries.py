"""Tries in a replay: a try may fail for no reason, but it cannot succeed before its phase can be complete."""

from typing import Any

import pytest

from pipesim.conform.result import DivergenceKind
from pipesim.lang.protocol import Protocol
from pipesim.trace.schema import EventKind
from tests.conform.cases import run, simulated


@pytest.fixture
def tried() -> Any:
    return simulated(stages=2, tiles=8, work=30, tries=True)


def tries(case: Any, answer: int, group: str) -> list[int]:
    return [r for r in case.rows(kind=EventKind.TRY, group=group) if case.trace.events.value[r] == answer]


def with_wait(case: Any, row: int) -> Any:
    """The try of ``row`` failed, and a wait followed, which passed at once."""
    model = next(r for r in case.rows(kind=EventKind.WAIT_ENTER, group="empty"))
    n = len(case.trace.events)
    longer = case.ordered([*range(row + 1), model, model + 1, *range(row + 1, n)])
    for at in (row + 1, row + 2):
        e = case.trace.events
        longer = longer.changed(at, cycle=case.cycle(row) + 2, stage=int(e.stage[row]), parity=int(e.parity[row]))
    return longer.changed(row, value=0).renumbered()


def test_a_try_may_fail_although_its_phase_was_complete(tried: Any) -> None:
    for row in tries(tried, 1, "empty"):
        with_wait(tried, row).accepted()


def test_a_failed_try_must_be_followed_by_the_wait(tried: Any) -> None:
    row = tries(tried, 1, "empty")[1]
    found = tried.changed(row, value=0).refused()
    assert (found.kind, found.agent, found.cycle) == (DivergenceKind.OTHER_EVENT, "load", tried.cycle(row + 1))
    assert "where the protocol has “wait empty[1] parity 1”" in found.claim


def succeeded(case: Any, row: int) -> Any:
    """The try of ``row`` succeeded and its wait was left out."""
    return case.without(row + 1, row + 2).changed(row, value=1).renumbered()


@pytest.mark.parametrize("uncertainty", [0, 16])
def test_a_try_cannot_succeed_before_its_phase(uncertainty: int) -> None:
    """A try that really failed is recorded as a success. Its stamp is from before it: the next event of its agent must
    be after the arrive that completes the phase, or the try succeeded too early.
    """
    case = simulated(uncertainty=uncertainty, stages=1, tiles=8, work=60, tries=True)
    row = tries(case, 0, "empty")[2]
    lap = int(case.trace.events.iteration[row])
    release = case.cycle(case.rows(kind=EventKind.ARRIVE)[lap - 1])
    lie = succeeded(case, row)
    assert lie.kind(row + 1) is EventKind.EXPECT
    lie.accepted()  # nothing contradicts a try that was suspended so long
    lie.changed(row + 1, cycle=release - uncertainty).accepted()
    found = lie.changed(row + 1, cycle=release - uncertainty - 1).refused()
    assert (found.kind, found.agent, found.barrier) == (DivergenceKind.TOO_EARLY, "load", "empty[0]")
    assert (found.cycle, found.iteration) == (lie.cycle(row), lap)
    assert (found.phase_wanted, found.late_by) == (lap - 1, uncertainty + 1)
    assert found.claim.startswith("load gets true from try_wait of empty[0] parity ")
    assert "before phase" in found.claim
    shown = next(m for m in found.moments if m.index == found.event)
    assert shown.hardware.endswith(": true")
    assert shown.model == f"false until phase {lap - 1} completes"


def polled() -> Protocol:
    """A warp that tests its own arrive by state; another must arrive too before the phase completes."""
    p = Protocol("polled")
    storage = p.mbarriers("b", 1, count=2)

    @p.role("asks")
    def asks(w: Any) -> None:
        with w.elect_one():
            token = storage[0].arrive()
            storage[0].test_state(token)
            w.work(10)

    @p.role("helps")
    def helps(w: Any) -> None:
        w.work(100)
        with w.elect_one():
            storage[0].arrive()

    return p


def test_a_test_by_state_is_held_to_its_phase_too() -> None:
    case = run(polled().flatten())
    (row,) = case.rows(kind=EventKind.TRY)
    assert case.trace.events.value[row] == 0
    assert case.trace.events.parity[row] == -1
    case.accepted()
    found = case.changed(row, value=1).refused()
    assert (found.kind, found.agent, found.barrier) == (DivergenceKind.TOO_EARLY, "asks", "b[0]")
    assert found.claim.startswith("asks gets true from try_wait of b[0] by state before phase 0")
    shown = next(m for m in found.moments if m.index == found.event)
    assert shown.hardware == "try b[0] by state: true"
