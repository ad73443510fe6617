"""On a Hopper GPU: every kernel of the registry as it is recorded, against its protocol and its reference."""

from dataclasses import replace

import pytest

from hwkernels.capture import CaptureRequest, TwinSubject, capture
from hwkernels.capture.pipeline import capture_here
from hwkernels.capture.twin_subject import recorded_request
from hwkernels.twins import REGISTRY
from pipesim.conform.diagnose.forgiving import explain_with
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import TraceVerdict
from pipesim.targets import find
from pipesim.trace.consistency import check_trace
from pipesim.trace.files import read_meta
from tests.support.paths import TRACES
from tests.support.recordings import RECORDINGS

pytestmark = pytest.mark.gpu
RECORDED = [name for name in RECORDINGS[::16] if "-at-" not in name]  # test_gpu has those with a fault


def captured(request, **more):
    trace = capture(replace(request, repetitions=1, deadline_ms=50, **more))
    check_trace(trace, "here")
    assert trace.meta.wrong_tiles == 0, trace.meta.extra
    return find(request.subject.name).build(dict(request.params), grid=request.ctas), trace


def usual(name):
    return CaptureRequest(TwinSubject(name), find(name).defaults)


@pytest.mark.parametrize("name", RECORDED)
def test_a_recording_conforms_and_its_result_is_right(name):
    request = recorded_request(read_meta(TRACES / name))
    program, trace = captured(request)
    if trace.meta.status == "deadline":  # the order that can be missed: the model must hang with it
        assert request.params["first_tile_only"] == 0
        followed = explain_with(program, trace)
        assert followed is not None
        assert followed.stuck is not None
        return
    assert trace.meta.status == "finished"
    found = conform(program, trace).verdict
    assert found is (TraceVerdict.AGREES if len(trace.events) else TraceVerdict.UNKNOWN)  # there may be no tile


#: Work of about 50 µs a tile, for which somebody waits: with a deadline of 0 a wait gives up after 32 tries.
LONG = {
    "producer_consumer": {"work": 100_000},
    "cluster_multicast": {"work": 100_000},
    "epilogue_residual": {"epilogue": 100_000},
    "gemm_sm90": {"epilogue": 100_000},
    "persistent_scheduler": {"work": 100_000},
}


@pytest.mark.parametrize("name", LONG)
def test_a_deadline_that_passes_ends_as_a_report(name, info):
    """In the test's own process: the next launch finds the context whole."""
    request = usual(name)
    wanted = replace(request, params=dict(request.params) | LONG[name], repetitions=1)
    trace = capture_here(replace(wanted, deadline_ms=0), info)
    check_trace(trace, "here")
    assert trace.meta.status == "deadline"
    assert "_wait_" in trace.meta.extra["gave_up"]["site"]
    whole = capture_here(wanted, info)
    assert (whole.meta.status, whole.meta.wrong_tiles) == ("finished", 0)


@pytest.mark.parametrize("memory", ["device", "host"])
@pytest.mark.parametrize("name", REGISTRY)
def test_records_in_other_memories_are_the_same(name, memory):
    program, trace = captured(usual(name), memory=memory)
    assert (trace.meta.status, trace.meta.memory) == ("finished", memory)
    assert conform(program, trace).verdict is TraceVerdict.AGREES
