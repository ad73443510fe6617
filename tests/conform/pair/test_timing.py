"""Where time was gained or lost: exact where the change is known, and ledgers that add up whatever it is."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipesim.conform.pair.pair import compare_traces
from pipesim.conform.pair.result import Ledger, PairFigure, PairTiming
from pipesim.trace.schema import EventKind, Trace
from tests.conform.cases import run, simulated, stored
from tests.support.present import present

USUAL = "h100/producer_consumer-al1-cw2-s4-tb16384-t64-w600-g1.parquet"


def timing_of(a: Trace, b: Trace) -> PairTiming:
    return present(compare_traces(a, b).timing)


def slower(trace: Trace, cycles: int) -> Trace:
    """The work of every tile lasts so many cycles longer, and everything after it is that much later."""
    e = trace.events
    kinds = np.array([int(s.kind) for s in trace.meta.sites])[e.site]
    works = np.array([s.kind is EventKind.WORK_END for s in trace.meta.sites])
    has_work = np.isin(e.agent, np.unique(e.agent[works[e.site]]))
    after = has_work & np.isin(kinds, (EventKind.WORK_END, EventKind.ARRIVE))
    late = cycles * (e.iteration + after)
    return Trace(trace.meta, replace(e, cycle=e.cycle + late))


def figure(timing: PairTiming, name: str) -> PairFigure:
    (found,) = (f for f in timing.figures if f.name == name)
    return found


def adds_up(timing: PairTiming) -> None:
    for ledger in timing.ledgers:
        for part in ("a", "b", "steady_a", "steady_b"):
            assert sum(getattr(s, part) for s in ledger.segments) == getattr(ledger, part)


@pytest.mark.parametrize("cycles", [1, 36, 500])
def test_work_that_is_slower_by_exactly_so_many_cycles_a_tile(cycles: int) -> None:
    trace = stored(USUAL).trace
    timing = timing_of(trace, slower(trace, cycles))
    critical = timing.ledgers[0]
    assert (critical.agent, critical.iterations, critical.steady_tiles) == ("consumer/1", 64, 36)
    assert critical.b - critical.a == 64 * cycles
    assert critical.steady_b - critical.steady_a == 36 * cycles
    changed = {s.what: (s.b - s.a, s.steady_b - s.steady_a) for s in critical.segments if s.a != s.b}
    assert changed == {"work": (64 * cycles, 36 * cycles)}
    assert critical.segments[0].what == "work"
    assert figure(timing, "period, this trace").difference == 1000 * cycles
    assert figure(timing, "whole run, traced").difference == 64_000 * cycles
    adds_up(timing)


@pytest.mark.slow
@given(seed=st.integers(0, 2**32 - 1), dropped=st.integers(0, 3))
def test_every_ledger_adds_up_and_is_the_naive_one(seed: int, dropped: int) -> None:
    """Random delays and lost places: the segments sum to the span, and are those that a plain walk finds."""
    case = simulated(stages=2, tiles=12, work=30, warps=2)
    draw = np.random.default_rng(seed)
    e = case.trace.events
    cycle = e.cycle.copy()
    for agent in np.unique(e.agent):
        cycle[e.agent == agent] += np.cumsum(draw.integers(0, 50, int((e.agent == agent).sum())))
    other = case.with_events(replace(e, cycle=cycle))
    rows = draw.choice(np.arange(4, len(e) - 4), dropped, replace=False).tolist()
    other = other.without(*rows) if rows else other
    timing = timing_of(case.trace, other.trace)
    adds_up(timing)
    if not rows:
        for ledger in timing.ledgers:
            assert {s.what: (s.a, s.b) for s in ledger.segments} == naive(case.trace, other.trace, ledger)


def naive(a: Trace, b: Trace, ledger: Ledger) -> dict[str, tuple[int, int]]:
    """Each agent's events two by two."""
    found: dict[str, list[int]] = {}
    for side, trace in enumerate((a, b)):
        agent = [trace.meta.agent_name(n) for n in range(len(trace.meta.agents))].index(ledger.agent)
        for here, following in pairwise(np.flatnonzero(trace.events.agent == agent).tolist()):
            site = trace.meta.sites[int(trace.events.site[here])]
            what = f"after {site.kind.name.lower().replace('_', ' ')} {site.barrier}".rstrip()
            what = {EventKind.WAIT_ENTER: f"waiting for {site.barrier}", EventKind.WORK_BEGIN: "work"}.get(
                site.kind, what
            )
            found.setdefault(what, [0, 0])[side] += int(trace.events.cycle[following] - trace.events.cycle[here])
    return {what: (both[0], both[1]) for what, both in found.items()}


def test_noise_decides_what_a_difference_is_worth() -> None:
    assert PairFigure("period", 100, 110, 4, 5).beyond_noise is True
    assert PairFigure("period", 100, 109, 4, 5).beyond_noise is False
    assert PairFigure("period", 100, 91, 4, 5).beyond_noise is False
    assert PairFigure("period", 100, 90, 4, 5).beyond_noise is True
    assert PairFigure("period", 100, 200, None, 5).beyond_noise is None
    assert PairFigure("period", None, 200, 1, 5).difference is None
    assert PairFigure("period", 0, 200).permille is None


def test_the_cost_of_recording_is_compared_with_its_like() -> None:
    case = stored(USUAL)
    simulated = run(case.program).trace
    timing = timing_of(simulated, case.trace)
    assert timing.unlike
    period = figure(timing, "period")
    assert period.a == figure(timing, "period, this trace").a
    assert period.b == 1_085_667  # without recording, as the simulation is
    paying = replace(simulated, meta=replace(simulated.meta, extra={"recording": True}))
    timing = timing_of(paying, case.trace)
    assert not timing.unlike
    assert (figure(timing, "period").a, timing.primary) == (None, "period, this trace")
