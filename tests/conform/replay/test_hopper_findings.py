"""What docs/hopper.md says about waits, seen in the stored traces: an arrive wakes no suspended try, a landing does."""

import numpy as np
import pytest

from pipesim.trace.files import read_trace
from pipesim.trace.schema import EventKind
from tests.support.lanes import slow_but
from tests.support.paths import TRACES

FIRST_TRY, SECOND_TRY, POLL, SLACK = 95, 129, 183, 30
MOST_WARPS = 4  #: more make the steps of the polling longer


def blocked_times(folder, barrier):
    """Cycles that waits on this group took, over the rings of a device that were stamped by the clock alone."""
    taken = []
    for path in sorted((TRACES / folder).glob("producer_consumer-*-g1.parquet")):
        trace = read_trace(path)
        kinds = np.array([int(s.kind) for s in trace.meta.sites])
        groups = np.array([s.barrier == barrier for s in trace.meta.sites])
        few = trace.meta.params["consumer_warps"] <= MOST_WARPS
        if not len(trace.events) or not few:
            continue
        enters = np.flatnonzero((kinds[trace.events.site] == EventKind.WAIT_ENTER) & groups[trace.events.site])
        taken.extend((trace.events.cycle[enters + 1] - trace.events.cycle[enters]).tolist())
    return np.array(taken)


def on_a_poll(taken):
    """Which of these waits ended at a try of the polling, whose steps add up to a little more or less each time."""
    behind = taken - SECOND_TRY
    steps = np.round(behind / POLL)
    return np.abs(behind - steps * POLL) <= SLACK


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize("folder", slow_but(["h200"], ["h100", "h200"]))
def test_a_producer_blocked_on_arrives_returns_at_tries_only(folder):
    taken = blocked_times(folder, "empty")
    blocked = taken[taken > FIRST_TRY]
    assert len(blocked) > 500
    assert on_a_poll(blocked).mean() > 0.9  # four warps at once make the steps of the polling longer


@pytest.mark.sampled(1, 1)
@pytest.mark.parametrize("folder", slow_but(["h200"], ["h100", "h200"]))
def test_a_consumer_blocked_on_bytes_returns_at_any_time(folder):
    taken = blocked_times(folder, "full")
    blocked = taken[taken > 150]
    assert len(blocked) > 300
    assert on_a_poll(blocked).mean() < 0.75  # chance alone would give (2 * SLACK + 1) / POLL, a third
