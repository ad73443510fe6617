"""On a Hopper GPU: what a recording must look like whatever the timing, and that faults are seen."""

from __future__ import annotations

import numpy as np
import pytest

from hwkernels.capture import capture
from hwkernels.launch import require_gpu
from hwkernels.request import CaptureRequest
from pipesim.errors import HardwareError, MissingExtraError
from pipesim.trace.consistency import check_trace
from pipesim.trace.schema import EventKind, Trace

PARAMS = {"stages": 3, "tiles": 40, "tile_bytes": 4096, "consumer_warps": 2, "work": 100, "arrive_lanes": 1}


@pytest.fixture(autouse=True)
def gpu():
    try:
        return require_gpu()
    except (HardwareError, MissingExtraError) as error:
        pytest.skip(str(error).replace("\n", "; "))


pytestmark = pytest.mark.gpu


def _rows(trace: Trace, cta: int, agent: int, kind: EventKind) -> np.ndarray:
    events, sites = trace.events, trace.meta.sites
    here = np.isin(events.site, [n for n, site in enumerate(sites) if site.kind is kind])
    return np.flatnonzero((events.cta == cta) & (events.agent == agent) & here)


@pytest.mark.parametrize("clock", ["clock", "globaltimer", "both"])
def test_a_recording_is_whole(clock):
    trace = capture(CaptureRequest(PARAMS, grid=2, clock=clock, repetitions=2))
    check_trace(trace, "here")
    meta, events = trace.meta, trace.events
    assert (meta.status, meta.wrong_tiles) == ("finished", 0)
    assert [(c.written, c.dropped) for c in meta.ctas] == [((160, 200, 200), (0, 0, 0))] * 2
    for cta in range(2):
        for agent in range(3):
            rows = (events.cta == cta) & (events.agent == agent)
            assert (np.diff(events.cycle[rows]) >= 0).all()
            sites = [n for n, site in enumerate(meta.sites) if site.role == meta.agents[agent].role]
            assert events.site[rows].tolist() == sites * 40
            assert events.stage[rows].tolist() == [i % 3 for i in range(40) for _ in sites]
    if clock == "both":  # two ways to the same instant: they may differ by their errors
        gap = np.abs(events.globaltimer_ns * 1000 - events.time_ps)
        assert (gap <= events.error_ps + 1000 * 2 * meta.device.globaltimer_step_ns).all()


def test_nothing_is_consumed_before_it_was_produced():
    trace = capture(CaptureRequest(PARAMS, grid=1, repetitions=1))
    copies = trace.events.cycle[_rows(trace, 0, 0, EventKind.COPY)]
    for agent in (1, 2):
        taken = trace.events.cycle[_rows(trace, 0, agent, EventKind.WAIT_RETURN)]
        assert (taken > copies).all()
        begun = trace.events.cycle[_rows(trace, 0, agent, EventKind.WORK_BEGIN)]
        ended = trace.events.cycle[_rows(trace, 0, agent, EventKind.WORK_END)]
        assert (ended - begun >= 100).all()
        freed = trace.events.cycle[_rows(trace, 0, agent, EventKind.ARRIVE)]
        reused = trace.events.cycle[_rows(trace, 0, 0, EventKind.WAIT_RETURN)]
        assert (reused[3:] > freed[:-3]).all()


@pytest.mark.parametrize("tiles", [0, 1, 2])
def test_few_tiles(tiles):
    trace = capture(CaptureRequest(PARAMS | {"tiles": tiles}, repetitions=1))
    assert (trace.meta.status, trace.meta.wrong_tiles, len(trace.events)) == ("finished", 0, 14 * tiles)


def test_a_full_buffer_counts_what_it_dropped():
    trace = capture(CaptureRequest(PARAMS, capacity=7, repetitions=1))
    check_trace(trace, "here")
    assert (trace.meta.ctas[0].written, trace.meta.ctas[0].dropped) == ((7, 7, 7), (153, 193, 193))


def test_the_result_check_sees_tiles_that_were_read_too_early():
    trace = capture(CaptureRequest(PARAMS, grid=4, repetitions=1, break_kind=1))
    assert trace.meta.wrong_tiles > 0


def test_a_consumer_that_never_arrives_ends_by_the_deadline():
    trace = capture(CaptureRequest(PARAMS, grid=2, repetitions=1, break_kind=2, deadline_ms=20))
    assert trace.meta.status == "deadline"
    assert trace.meta.wrong_tiles == 0
    assert trace.meta.extra["gave_up"]["iteration"] == 3  # both sides stop after the first lap
    assert (trace.events.iteration <= 3).all()


@pytest.mark.parametrize("stages", [1, 2, 4, 8])
def test_upstreams_own_test_of_8192_items(stages):
    """One producer, one consumer, 8,192 items: every item arrives whole. No record is asked for."""
    params = {"stages": stages, "tiles": 8192, "tile_bytes": 1024, "consumer_warps": 1, "work": 0, "arrive_lanes": 1}
    trace = capture(CaptureRequest(params, capacity=0, record_ctas=0, repetitions=1))
    assert (trace.meta.status, trace.meta.wrong_tiles) == ("finished", 0)
