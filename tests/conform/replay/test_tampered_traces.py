"""Twins of the traces that conform: for each kind of edit the trace is refused, at the event where it went wrong."""

from dataclasses import replace
from typing import Any

import pytest

from pipesim.conform.result import DivergenceKind
from pipesim.trace.schema import EventKind


def test_an_agent_runs_backwards(good: Any) -> None:
    for agent in range(len(good.trace.meta.agents)):
        row = good.rows(agent=agent)[9]
        found = good.changed(row, cycle=good.cycle(row - 1) - 1).refused()
        assert found.kind is DivergenceKind.BACKWARDS
        assert (found.agent, found.cycle) == (good.agent(row), good.cycle(row - 1) - 1)
        assert found.iteration == good.trace.events.iteration[row]
    # no uncertainty helps: an agent's own clock does not run backwards; standing still is no fault
    good.changed(row, cycle=good.cycle(row - 1)).conform()


def test_an_agent_is_missing(good: Any) -> None:
    for agent in range(len(good.trace.meta.agents)):
        found = good.without(*good.rows(agent=agent)).refused()
        assert found.kind is DivergenceKind.MISSING_EVENT
        assert found.agent == good.trace.meta.agent_name(agent)
        assert (found.iteration, found.cycle) == (0, -1)
        assert found.claim.startswith(f"the records of {found.agent} end where the protocol continues with: wait ")


# time between agents


def releases(good: Any) -> list[tuple[int, int]]:
    """(row of the last arrive or copy, row of the wait return that it releases) for each phase."""
    e = good.trace.events
    stages = good.trace.meta.barriers[0].stages
    copies = {int(e.iteration[r]): r for r in good.rows(kind=EventKind.COPY)}
    pairs = [(copies[int(e.iteration[row])], row) for row in good.rows(kind=EventKind.WAIT_RETURN, group="full")]
    arrives = good.rows(kind=EventKind.ARRIVE)
    for row in good.rows(kind=EventKind.WAIT_RETURN, group="empty"):
        lap = int(e.iteration[row]) - stages
        if lap >= good.first:
            last = max((r for r in arrives if e.iteration[r] == lap), key=good.cycle)
            pairs.append((last, row))
    return pairs


def movable(good: Any) -> list[tuple[int, int, int]]:
    """Those whose wait had begun so long before that its return can be moved before its release, and how far."""
    slack = good.uncertainty
    return [
        (release, row, good.cycle(release) - slack - good.cycle(row))
        for release, row in releases(good)
        if good.cycle(row - 1) <= good.cycle(release) - slack - 1
    ]


@pytest.mark.sampled(2, 5)
def test_a_wait_returns_before_it_was_released(good: Any) -> None:
    """A cycle more than the stated uncertainty is refused, by name and number; order allows the uncertainty itself."""
    pairs = movable(good)
    assert len(pairs) > 5
    for release, row, by in pairs[:: max(1, len(pairs) // 6)]:
        found = good.moved(row, by - 1).refused()
        assert found.kind is DivergenceKind.TOO_EARLY
        e = good.trace.events
        assert (found.agent, found.iteration) == (good.agent(row), e.iteration[row])
        assert found.cycle == good.cycle(release) - good.uncertainty - 1
        assert found.late_by == good.uncertainty + 1
        group = good.trace.meta.sites[int(e.site[row])].barrier
        assert found.barrier == f"{group}[{e.stage[row]}]"
        stages = good.trace.meta.barriers[0].stages
        assert found.phase_wanted == found.phase_now == e.iteration[row] // stages - (group == "empty")
        assert "missing; the next operation that could supply it came" in found.claim
        in_order, device = good.moved(row, by), good.trace.meta.device
        in_order.with_meta(device=replace(device, name="a chip that nobody measured")).accepted()
        if good.trace.meta.source == "hardware":  # in order, but no path is as short
            assert in_order.refused().kind is DivergenceKind.TOO_SOON
