"""Random edits of random traces: what leaves the protocol is refused; times are held to an oracle of their own."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pipesim.conform.replay.latency_floor import ReleasePath, floors_for
from pipesim.conform.result import DivergenceKind, TraceVerdict
from pipesim.trace.schema import EventKind
from tests.conform.cases import simulated, stored

RINGS = st.fixed_dictionaries({
    "stages": st.integers(1, 3), "tiles": st.integers(2, 6), "warps": st.integers(1, 3),
    "work": st.sampled_from([0, 40]), "uncertainty": st.sampled_from([0, 1, 16]),
})  # fmt: skip
NAMES = (
    "h100/producer_consumer-al1-cw2-s4-tb16384-t5-w600-g1.parquet",
    "h200/producer_consumer-al1-cw2-s4-tb16384-t5-w600-g1.parquet",
    "h200/producer_consumer-al1-cw4-s1-tb4096-t64-w600-g1.parquet",
)
SIMULATED = settings(max_examples=25, deadline=None, derandomize=True)
RECORDED = settings(max_examples=20, deadline=None, derandomize=True)


def edited(case: Any, data: Any) -> tuple[Any, str, int]:
    """The case with one event other than it was; which edit, and the row."""
    e = case.trace.events
    row = data.draw(st.integers(0, len(e) - 1), label="row")
    edit = data.draw(st.sampled_from(["drop", "repeat", "exchange", "stage", "parity", "value", "iteration", "site"]))
    if edit == "drop":
        other = case.without(row)
        return (other.renumbered() if data.draw(st.booleans(), label="renumbered") else other), edit, row
    if edit == "repeat":
        return case.ordered([*range(row + 1), *range(row, len(e))]), edit, row
    if edit == "exchange":
        second = data.draw(st.integers(0, len(e) - 1), label="second")
        assume(row < second and case.same_agent(row, second))
        order = list(range(len(e)))
        order[row], order[second] = second, row
        return case.ordered(order), edit, row
    old = int(getattr(e, edit)[row])
    if edit == "site":  # another site of the same role, as a file must have it
        role = case.trace.meta.sites[old].role
        sites = [n for n, s in enumerate(case.trace.meta.sites) if s.role == role and n != old]
        return case.changed(row, site=data.draw(st.sampled_from(sites), label="site")), edit, row
    new = data.draw(st.integers(-1, 70_000).filter(lambda v: v != old), label="new")
    return case.changed(row, **{edit: new}), edit, row


def is_refused(case: Any, data: Any) -> None:
    other, edit, row = edited(case, data)
    if not len(other.trace.events):  # the only event of a window
        return
    found = other.refused()
    e = case.trace.events
    assert found.agent == case.agent(row)
    assert found.cta == e.cta[row]
    assert found.kind in {DivergenceKind.OTHER_EVENT, DivergenceKind.MISSING_EVENT, DivergenceKind.EXTRA_EVENT}
    if edit in ("stage", "parity", "value", "iteration", "site"):
        assert (found.kind, found.cycle) == (DivergenceKind.OTHER_EVENT, e.cycle[row])
    elif found.kind is DivergenceKind.OTHER_EVENT and edit != "exchange":
        assert found.cycle == e.cycle[row if edit == "repeat" else row + 1]


@pytest.mark.slow
@SIMULATED
@given(ring=RINGS, data=st.data())
def test_one_edit_of_a_simulated_trace(ring: dict[str, int], data: Any) -> None:
    """Of a whole trace, or of some iterations of it."""
    case = simulated(**ring)
    if data.draw(st.booleans(), label="window"):
        first = data.draw(st.integers(0, ring["tiles"] - 1), label="first")
        case = case.window(first, data.draw(st.integers(first + 1, ring["tiles"]), label="end"))
    is_refused(case, data)


@pytest.mark.slow
@RECORDED
@given(name=st.sampled_from(NAMES), data=st.data())
def test_one_edit_of_a_recorded_trace(name: str, data: Any) -> None:
    is_refused(stored(name), data)


# times


def constraints(case: Any) -> list[tuple[int, int, int]]:
    """(row, row of a wait return, least cycles between them). From tiles, stages and laps alone.

    A simulated trace has no least time; there the first must only not be later than the second.
    """
    device = case.trace.meta.device
    floors = floors_for(device.name) if case.trace.meta.source == "hardware" else None

    def least(path: ReleasePath, nbytes: int = 0) -> int:
        bound = floors.least(path, nbytes, device.sm_khz) if floors else None
        return bound.cycles if bound else 0

    arrive, copy = least(ReleasePath.ARRIVE), least(ReleasePath.COPY, case.trace.meta.params.get("tile_bytes", 0))
    e = case.trace.events
    stages = case.trace.meta.barriers[0].stages
    tile = {
        (case.kind(r), int(e.agent[r]), int(e.iteration[r])): r
        for r in case.rows()
        if case.trace.meta.sites[int(e.site[r])].barrier
    }
    pairs = []
    for (kind, agent, n), row in tile.items():
        if kind is EventKind.WAIT_RETURN and agent:
            pairs += [(tile[EventKind.EXPECT, 0, n], row, arrive), (tile[EventKind.COPY, 0, n], row, copy)]
        elif kind is EventKind.WAIT_RETURN and n >= stages:
            consumers = range(1, len(case.trace.meta.agents))
            pairs += [(tile[EventKind.ARRIVE, c, n - stages], row, arrive) for c in consumers]
    return pairs


def held_to_the_oracle(case: Any, cycles: Any) -> bool:
    """Whether the case with these times is accepted, which it must be exactly if no constraint is broken."""
    retimed = case.with_events(replace(case.trace.events, cycle=cycles))
    after = [(int(cycles[back] - cycles[first]), back, least) for first, back, least in constraints(case)]
    broken = {
        DivergenceKind.TOO_EARLY: [back for took, back, _ in after if took + case.uncertainty < 0],
        DivergenceKind.TOO_SOON: [back for took, back, least in after if took + case.uncertainty < least],
    }
    result = retimed.conform()
    if not any(broken.values()):
        assert result.verdict is TraceVerdict.AGREES
        return True
    found = result.divergence
    backs = broken[found.kind]
    assert (found.agent, found.iteration) in {(case.agent(r), int(case.trace.events.iteration[r])) for r in backs}
    assert found.late_by > (case.uncertainty if found.kind is DivergenceKind.TOO_EARLY else 0)
    return False


def one_moved(case: Any, data: Any) -> Any:
    """One event anywhere between its agent's event before and the one after."""
    row = data.draw(st.integers(0, len(case.trace.events) - 1), label="row")
    low = case.cycle(row - 1) if case.same_agent(row, row - 1) else 0
    high = case.cycle(row + 1) if case.same_agent(row, row + 1) else case.cycle(row) + 500
    cycles = case.trace.events.cycle.copy()
    cycles[row] = data.draw(st.integers(low, high), label="cycle")
    return cycles


def all_shaken(case: Any, data: Any) -> Any:
    """All events, each by a little, in the order of its agent."""
    e = case.trace.events
    by = data.draw(st.sampled_from([1, 10, 60]), label="by")
    random = np.random.default_rng(data.draw(st.integers(0, 10**6), label="seed"))
    cycles = e.cycle + random.integers(-by, by + 1, len(e))
    for agent in range(len(case.trace.meta.agents)):
        mine = e.agent == agent
        cycles[mine] = np.maximum.accumulate(cycles[mine])
    return cycles


@pytest.mark.slow
@SIMULATED
@given(ring=RINGS, data=st.data())
def test_one_event_at_another_time(ring: dict[str, int], data: Any) -> None:
    case = simulated(**ring)
    held_to_the_oracle(case, one_moved(case, data))


@pytest.mark.slow
@SIMULATED
@given(ring=RINGS, data=st.data())
def test_all_events_at_other_times(ring: dict[str, int], data: Any) -> None:
    case = simulated(**ring)
    held_to_the_oracle(case, all_shaken(case, data))


@pytest.mark.slow
@RECORDED
@given(name=st.sampled_from(NAMES), data=st.data())
def test_one_recorded_event_at_another_time(name: str, data: Any) -> None:
    case = stored(name)
    held_to_the_oracle(case, one_moved(case, data))
