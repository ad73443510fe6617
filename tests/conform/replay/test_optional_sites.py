"""Named barriers, cp.async arrivals, commits and group waits in a trace: recorded, followed, and compared in order."""

from dataclasses import replace

import pytest

from pipesim.conform.compare import compare
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import DivergenceKind, TraceVerdict
from pipesim.model.program import Program
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.schema import ON_WORDS, OPTIONAL, EventKind, Trace
from pipesim.trace.sites import NO_SITES, optional_sites
from tests.conform.cases import Case
from tests.support.paths import EXAMPLES

PROFILE = load_profile("h200")
RECORDED = OPTIONAL - {EventKind.COMMIT} - ON_WORDS  #: what a protocol of this file has


def relay(**params: int) -> Program:
    return find(f"{EXAMPLES / 'relay.py'}:relay").build({"tiles": 9} | params)


def traced(program: Program, *, everything: bool = True) -> Trace:
    return simulate(program, PROFILE, traced=True, also=optional_sites(program) if everything else NO_SITES).trace


@pytest.fixture(scope="module")
def case() -> Case:
    return Case(relay(), traced(relay()))


@pytest.mark.parametrize("noinc", [0, 1])
@pytest.mark.parametrize("everything", [True, False])
def test_a_simulation_records_them_if_asked_and_conforms(noinc: int, everything: bool) -> None:
    program = relay(noinc=noinc)
    trace = traced(program, everything=everything)
    kinds = {site.kind for site in trace.meta.sites}
    assert (kinds & OPTIONAL == RECORDED) is everything
    found = conform(program, trace)
    assert (found.verdict, found.divergence) == (TraceVerdict.AGREES, None)


def test_a_named_barrier_that_lets_go_too_early_is_refused(case: Case) -> None:
    """One warp of four returns before the last of the others has come."""
    e = case.trace.events
    first = [r for r in case.rows(kind=EventKind.BAR_ENTER, group="1") if int(e.iteration[r]) == 3]
    last, early = max(first, key=case.cycle), min(first, key=case.cycle)
    cycle = e.cycle.copy()
    assert case.kind(early + 1) is EventKind.BAR_RETURN
    cycle[last] = cycle[last + 1] = case.cycle(early + 1) + 30
    cycle[last + 2 :][(e.agent == e.agent[last])[last + 2 :]] += 60
    found = case.with_events(replace(e, cycle=cycle)).refused()
    assert found.kind is DivergenceKind.TOO_EARLY
    assert "returns from named barrier 1 before all can have come: 32 of 128 threads missing" in found.claim


@pytest.mark.parametrize("kind", sorted(RECORDED))
def test_an_event_that_is_missing_or_has_another_value_is_refused(case: Case, kind: EventKind) -> None:
    _, row, gone, *_ = case.rows(kind=kind)
    missing = {DivergenceKind.OTHER_EVENT, DivergenceKind.EXTRA_EVENT, DivergenceKind.MISSING_EVENT}
    assert case.without(gone).refused().kind in missing
    found = case.changed(row, value=int(case.trace.events.value[row]) + 32).refused()
    assert found.kind is DivergenceKind.OTHER_EVENT


@pytest.mark.slow
def test_a_comparison_simulates_the_same_sites() -> None:
    program, trace = relay(tiles=40), traced(relay(tiles=40))
    found = compare(program, trace, PROFILE)
    assert found.timing is not None
    assert found.timing.matched == len(trace.events)
    told = {(site.kind, site.barrier) for site in found.timing.sites}
    assert {("bar_enter", "1"), ("group_commit", "bulk"), ("cp_async_arrive", "in_full")} <= told
    assert {"waiting for named barrier 1", "waiting for its bulk groups"} <= {s.what for s in found.timing.shares}
