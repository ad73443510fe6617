"""On a Hopper GPU: every kernel of the registry as it is recorded, against its protocol and its reference."""

from dataclasses import replace

import pytest

from hwkernels.capture import capture
from hwkernels.capture.pipeline import capture_here
from hwkernels.capture.twin_subject import recorded_request
from hwkernels.twins import REGISTRY
from pipesim.conform.diagnose.forgiving import explain_with
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import TraceVerdict
from pipesim.targets import find
from pipesim.trace.consistency import check_trace

pytestmark = pytest.mark.gpu
RECORDED = [
    pytest.param(name, recorded, id=f"{name}-{n}")
    for name, kernel in REGISTRY.items()
    for n, recorded in enumerate(kernel.recorded)
    if not recorded.fault  # test_gpu has them
]


def captured(name, recorded, **more):
    request = recorded_request(name, recorded)
    request = replace(request, repetitions=1, deadline_ms=min(recorded.deadline_ms, 50), **more)
    trace = capture(request)
    check_trace(trace, "here")
    assert trace.meta.wrong_tiles == 0, trace.meta.extra
    return find(name).build(dict(request.params), grid=request.ctas), trace


@pytest.mark.parametrize(("name", "recorded"), RECORDED)
def test_a_recording_conforms_and_its_result_is_right(name, recorded):
    program, trace = captured(name, recorded)
    if trace.meta.status == "deadline":  # the order that can be missed: the model must hang with it
        assert recorded.params["first_tile_only"] == 0
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
    request = recorded_request(name, REGISTRY[name].recorded[0])
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
    program, trace = captured(name, REGISTRY[name].recorded[0], memory=memory)
    assert (trace.meta.status, trace.meta.memory) == ("finished", memory)
    assert conform(program, trace).verdict is TraceVerdict.AGREES
