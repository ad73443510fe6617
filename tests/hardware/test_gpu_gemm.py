"""On a Hopper GPU: the layers under the GEMM, each alone, then the kernel against its protocol and its reference."""

import pytest

from hwkernels.capture.twin_request import KernelRequest
from hwkernels.capture.twin_trace import capture_kernel_of
from hwkernels.device.launch import Gpu, require_gpu
from hwkernels.experiments.products import Descriptor, run_product
from hwkernels.twins.hopper.gemm_sm90 import GEMM_SM90
from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import TraceVerdict
from pipesim.errors import HardwareError, MissingExtraError
from pipesim.targets import find
from pipesim.trace.consistency import check_trace

pytestmark = pytest.mark.gpu


@pytest.fixture(autouse=True)
def info():
    try:
        return require_gpu()
    except (HardwareError, MissingExtraError) as error:
        pytest.skip(str(error).replace("\n", "; "))


@pytest.mark.parametrize("n", [64, 128, 256])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("registers", [False, True])
def test_one_product(info, n, transpose, registers):
    gpu = Gpu(info)
    product = run_product(gpu, n, transpose=transpose, registers=registers)
    gpu.close()
    assert product.landed
    assert (product.shared == product.expected_shared).all()
    assert (product.wrong, product.stored) == (0, True)


def test_a_wrong_descriptor_is_seen(info):
    gpu = Gpu(info)
    product = run_product(gpu, 128, transpose=False, registers=False, b=Descriptor(16, 512, 32))
    gpu.close()
    assert product.landed
    assert product.wrong > 4000


@pytest.mark.parametrize("recorded", GEMM_SM90.recorded, ids=range(len(GEMM_SM90.recorded)))
def test_a_recording_conforms_and_its_result_is_right(recorded):
    params = find("gemm_sm90").defaults | dict(recorded.params)
    trace = capture_kernel_of(KernelRequest("gemm_sm90", params, recorded.grid, recorded.clock, repetitions=1))
    check_trace(trace, "here")
    assert (trace.meta.status, trace.meta.wrong_tiles) == ("finished", 0), trace.meta.extra
    program = find("gemm_sm90").build(params, grid=recorded.grid)
    assert conform(program, trace).verdict is TraceVerdict.AGREES
