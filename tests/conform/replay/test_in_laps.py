"""A long run that is compared by its laps gets the answer of a replay, or none: as it is, and with an event wrong."""

from dataclasses import replace
from random import Random

import numpy as np
import pytest

import pipesim
from pipesim.answers import compare, in_laps, recorded_program
from pipesim.conform.agreement import Agreement
from pipesim.conform.replay.conformance import conform
from pipesim.conform.replay.in_laps import conform_in_laps
from pipesim.conform.result import TraceVerdict
from pipesim.conform.times import NoTime
from pipesim.targets import find
from pipesim.timed.engine import simulate
from pipesim.timed.profile import load_profile
from pipesim.trace.schema import Trace

RING = ("producer_consumer", {"stages": 2, "tiles": 65})
OTHERS = [
    ("producer_consumer", {"stages": 3, "tiles": 100}),
    ("attention_sm90", {"kv_blocks": 67}),
    ("persistent_scheduler", {"tiles": 60}),
]


def simulated(name: str, params: dict[str, int]) -> Trace:
    """A trace as if of hardware, whose bounds on latencies hold then as well."""
    trace = simulate(find(name).build(params), load_profile("h200"), traced=True).trace
    return Trace(replace(trace.meta, source="hardware"), trace.events)


def with_one_wrong(trace: Trace, random: Random) -> Trace:
    """The trace with an event less, or with one that is changed."""
    events, row = trace.events, random.randrange(len(trace.events))
    name, by = random.choice([("cycle", random.choice((1, 30, 300, 3000))), ("parity", 1), ("iteration", 1), ("", 0)])
    if not name:
        return Trace(trace.meta, events.select(np.delete(np.arange(len(events)), row)))
    column = getattr(events, name).copy()
    column[row] += random.choice((-by, by))
    return Trace(trace.meta, replace(events, **{name: column}))


@pytest.mark.parametrize(("name", "params"), [RING, *(pytest.param(*each, marks=pytest.mark.long) for each in OTHERS)])
def test_the_answer_is_that_of_a_replay(name, params, monkeypatch):
    monkeypatch.setattr(in_laps, "_LONG", 2)
    program, run = find(name).build(params), in_laps.long_run(find(name), params, 1)
    assert run is not None
    random = Random(7)
    trace = simulated(name, params)
    assert conform_in_laps(run, trace) == conform(program, trace)
    found = set()
    for _ in range(25):
        wrong = with_one_wrong(trace, random)
        whole, by_laps = conform(program, wrong), conform_in_laps(run, wrong)
        assert by_laps in (None, whole)
        found.add((whole.verdict, by_laps is None))
    assert {(TraceVerdict.AGREES, False), (TraceVerdict.DIFFERS, True)} <= found


def test_a_program_that_is_too_long_is_compared_without_times(monkeypatch):
    monkeypatch.setattr(recorded_program, "MAX_OPERATIONS", 400)
    monkeypatch.setattr(in_laps, "_LONG", 2)
    trace = simulated(*RING)
    for wrong, agreement in ((trace, Agreement.CONFORMS), (with_one_wrong(trace, Random(1)), Agreement.DIFFERS)):
        found = pipesim.compare(wrong)
        assert (found.agreement, found.time.why) == (agreement, NoTime.LONG)
        assert found.conformance.events == len(wrong.events)
    monkeypatch.setattr(compare, "MAX_LONG_OPERATIONS", 800)
    with pytest.raises(pipesim.PipesimError, match="has more than 400 operations"):
        pipesim.compare(with_one_wrong(trace, Random(1)))
