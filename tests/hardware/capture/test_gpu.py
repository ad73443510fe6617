"""On a Hopper GPU: what a recording must look like whatever the timing, and that faults are seen."""

import numpy as np
import pytest

from hwkernels.capture import CaptureRequest, TwinSubject, capture
from hwkernels.twins.fault import KernelFault
from pipesim.trace.consistency import check_trace
from pipesim.trace.schema import FAULTS

PARAMS = {"stages": 3, "tiles": 40, "tile_bytes": 4096, "consumer_warps": 2, "work": 100, "arrive_lanes": 1}


pytestmark = pytest.mark.gpu


def request(params, grid=1, **changes) -> CaptureRequest:
    return CaptureRequest(TwinSubject("producer_consumer", grid), params, **changes)


def _word(count: int, phase: int) -> int:
    """An mbarrier's word between two phases: minus count expected and pending, no bytes."""
    field = -count & 0xFFFFF
    return field << 1 | field << 43 | phase << 63


@pytest.mark.parametrize("clock", ["clock", "globaltimer", "both"])
def test_a_recording_is_whole(clock):
    trace = capture(request(PARAMS, grid=2, clock=clock, repetitions=2))
    check_trace(trace, "here")
    meta, events = trace.meta, trace.events
    assert (meta.status, meta.wrong_tiles) == ("finished", 0)
    assert [(c.written, c.dropped) for c in meta.ctas] == [((160, 200, 200), (0, 0, 0))] * 2
    words = {c.barrier_words for c in meta.ctas}  # full has done 14, 13, 13 phases: its stages end in phases 0, 1, 1
    assert words == {(*(_word(1, 0), _word(1, 1), _word(1, 1)), *(_word(2, 0), _word(2, 1), _word(2, 1)))}
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


def test_a_full_buffer_counts_what_it_dropped():
    """Iterations are kept whole: room for 7 records is room for one of 6 at most."""
    trace = capture(request(PARAMS, capacity=7, repetitions=1))
    check_trace(trace, "here")
    assert (trace.meta.ctas[0].written, trace.meta.ctas[0].dropped) == ((4, 5, 5), (156, 195, 195))


@pytest.mark.parametrize("memory", ["shared", "device", "host"])
def test_a_window_keeps_the_same_iterations_of_every_role(memory):
    trace = capture(request(PARAMS, grid=2, window=(10, 20), memory=memory, repetitions=1))
    check_trace(trace, "here")
    assert trace.meta.memory == memory
    assert [(c.written, c.dropped, c.passes) for c in trace.meta.ctas] == [((40, 50, 50), (0, 0, 0), (40, 40, 40))] * 2
    assert set(trace.events.iteration.tolist()) == set(range(10, 20))


OUTCOMES = {  # two consumers, 3 stages, tile 5 of 40: what must be, whatever the timing
    "missing_arrive": {"deadline"},
    "extra_arrive": {"deadline", "trap", "finished"},
    "wrong_parity": {"deadline", "trap", "finished"},
    "expect_more": {"deadline"},
    "expect_less": {"deadline", "trap", "finished"},
    "release_early": {"finished"},
    "no_acquire": {"deadline", "trap", "finished"},
    "leaves_early": {"deadline"},
    "swapped_stages": {"deadline", "trap", "finished"},
    "phase_not_toggled": {"deadline", "trap", "finished"},
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_fault_leaves_a_trace(kind):
    trace = capture(request(PARAMS, grid=2, fault=KernelFault(kind, 5), deadline_ms=20))
    check_trace(trace, "here")
    meta = trace.meta
    print(f"{meta.fault}: {meta.status}, {meta.wrong_tiles} wrong tiles, {len(trace.events)} events, {meta.extra}")
    assert (meta.fault, meta.memory) == (f"{kind}@5", "host")
    assert meta.status in OUTCOMES[kind]
    assert len(trace.events) > 30
    assert meta.extra["took_ms"] < 1020
    for cta in meta.ctas:
        assert len(cta.barrier_words) == (0 if meta.status == "trap" else 6)


@pytest.mark.parametrize("stages", [1, 2, 4, 8])
def test_upstreams_own_test_of_8192_items(stages):
    """One producer, one consumer, 8,192 items: every item arrives whole. No record is asked for."""
    params = {"stages": stages, "tiles": 8192, "tile_bytes": 1024, "consumer_warps": 1, "work": 0, "arrive_lanes": 1}
    trace = capture(request(params, capacity=0, record_ctas=0, repetitions=1))
    assert (trace.meta.status, trace.meta.wrong_tiles) == ("finished", 0)
