"""On a Hopper GPU: every kernel of the registry as it is recorded, against its protocol and its reference."""

import pytest

from hwkernels.capture.twin_request import KernelRequest
from hwkernels.capture.twin_trace import capture_kernel_of
from hwkernels.device.launch import require_gpu
from hwkernels.twins import REGISTRY
from pipesim.conform.diagnose.forgiving import explain_with
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import TraceVerdict
from pipesim.errors import HardwareError, MissingExtraError
from pipesim.targets import find
from pipesim.trace.consistency import check_trace

pytestmark = pytest.mark.gpu
RECORDED = [
    pytest.param(name, recorded, id=f"{name}-{n}")
    for name, kernel in REGISTRY.items()
    for n, recorded in enumerate(kernel.recorded)
]


@pytest.fixture(autouse=True)
def info():
    try:
        return require_gpu()
    except (HardwareError, MissingExtraError) as error:
        pytest.skip(str(error).replace("\n", "; "))


def captured(name, recorded, **more):
    params = find(name).defaults | dict(recorded.params)
    deadline = min(recorded.deadline_ms, 50)
    request = KernelRequest(name, params, recorded.grid, recorded.clock, repetitions=1, deadline_ms=deadline, **more)
    trace = capture_kernel_of(request)
    check_trace(trace, "here")
    assert trace.meta.wrong_tiles == 0, trace.meta.extra
    return find(name).build(params, grid=request.ctas), trace


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
    assert conform(program, trace).verdict is TraceVerdict.AGREES


@pytest.mark.parametrize("memory", ["device", "host"])
@pytest.mark.parametrize("name", REGISTRY)
def test_records_in_other_memories_are_the_same(name, memory):
    program, trace = captured(name, REGISTRY[name].recorded[0], memory=memory)
    assert (trace.meta.status, trace.meta.memory) == ("finished", memory)
    assert conform(program, trace).verdict is TraceVerdict.AGREES
