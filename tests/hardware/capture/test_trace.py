"""A capture from request to trace, on a GPU made of arrays."""

from dataclasses import replace

import numpy as np
import pytest

from hwkernels.capture import CaptureRequest, TwinSubject, capture
from hwkernels.capture.pipeline import capture_here
from hwkernels.capture.plan import plan
from hwkernels.capture.request import check_request
from hwkernels.device.launch import DeviceInfo, Shape, driver_values, launch_config
from hwkernels.source_recorder.layout import REPORT
from hwkernels.twins.buffers import Output
from hwkernels.twins.fault import parse_fault
from hwkernels.twins.hopper.producer_consumer import source_tiles
from pipesim.errors import HardwareError, KernelTrapError, ParameterError, UsageError
from pipesim.targets import find
from pipesim.trace.consistency import check_trace
from pipesim.trace.schema import Run, Trace

INFO = DeviceInfo(0, "Array GPU", 132, "9.0", "999.1", 232448, 233472)


@pytest.mark.slow
def test_a_capture(fake_gpu, request_of):
    trace = capture(request_of())  # too few tiles for a period: see the next test
    check_trace(trace, "here")
    meta = trace.meta
    assert (meta.source, meta.protocol, meta.grid) == ("hardware", "producer_consumer", 2)
    assert meta.params == {
        "stages": 2, "tiles": 4, "tile_bytes": 64, "consumer_warps": 1, "work": 0, "arrive_lanes": 1
    }  # fmt: skip
    assert (meta.status, meta.wrong_tiles, meta.clock, meta.record_bytes) == ("finished", 0, "clock", 4)
    assert meta.extra["encoding"] == "positional"
    assert (meta.device.name, meta.device.sm_khz, meta.device.globaltimer_step_ns) == ("Array GPU", 2_000_000, 32)
    assert "-DPIPESIM_TRACE=1" in meta.options
    assert meta.runs == tuple(
        Run(traced, repetition, (440, 440) if traced else (400, 400), (0, 0))
        for repetition in (0, 1)
        for traced in (False, True)
    )
    assert meta.extra["overhead_millicycles_per_tile"] == {"median": 10_000, "low": 10_000, "high": 10_000}
    assert [(c.cta, c.sm, c.written, c.dropped) for c in meta.ctas] == [
        (0, 7, (16, 20), (0, 0)),
        (1, 8, (16, 20), (0, 0)),
    ]
    assert len(trace.events) == 72
    assert trace.events.value[trace.events.site == 8].tolist() == [1] * 8
    gpu = fake_gpu.latest
    assert gpu.launches == [True, False, False, True, False, True]  # the first two warm up
    assert meta.extra["launch_ns"] == {"untraced": [12_345] * 2, "traced": [12_345] * 2}
    assert meta.extra["checked"]["sums"] == {"elements": 8, "wrong": 0, "largest_error": 0.0, "first_wrong": ""}
    assert gpu.closed


@pytest.mark.sampled(2, 4)
@pytest.mark.parametrize("memory", ["shared", "device", "host"])
@pytest.mark.parametrize("count", [0, 1, 2])
def test_the_records_of_the_first_ctas_are_kept_in_every_memory(fake_gpu, request_of, memory, count):
    """A kernel that records to device or host memory stores what every CTA does; from shared memory it copies these."""
    trace = capture_here(replace(request_of(), memory=memory, record_ctas=count), INFO)
    check_trace(trace, "here")
    assert ([c.cta for c in trace.meta.ctas], len(trace.events)) == ([*range(count)], 36 * count)


def test_the_kernels_own_period_is_taken_between_its_marks(fake_gpu, request_of):
    meta = capture(request_of(tiles=12)).meta
    assert {(run.traced, run.period_millicycles) for run in meta.runs} == {
        (False, (100_000, 100_000)), (True, (110_000, 110_000))
    }  # fmt: skip
    assert meta.extra["overhead_millicycles_per_tile"] == {"median": 10_000, "low": 10_000, "high": 10_000}


def test_a_wrong_tile_is_counted_in_every_launch(fake_gpu, request_of, monkeypatch):
    monkeypatch.setattr(fake_gpu, "mistake", "wrong")
    trace = capture(request_of())
    assert (trace.meta.status, trace.meta.wrong_tiles) == ("finished", 4)


def test_a_deadline_ends_the_repetitions(fake_gpu, request_of, monkeypatch):
    monkeypatch.setattr(fake_gpu, "mistake", "late")
    meta = capture(request_of()).meta
    assert (meta.status, meta.wrong_tiles, meta.runs) == ("deadline", 0, ())
    assert meta.extra["gave_up"] == {
        "cta": 1, "agent": "consumer/0", "site": "consumer_wait_full", "iteration": 2, "traced": True
    }  # fmt: skip
    assert fake_gpu.latest.launches == [True]


def test_a_cta_that_never_ends_is_an_error(fake_gpu, request_of, monkeypatch):
    monkeypatch.setattr(fake_gpu, "launch_within", lambda *_: 0)
    with pytest.raises(HardwareError, match="CTA 0 did not finish"):
        capture(request_of())
    assert fake_gpu.latest.closed


@pytest.mark.slow
def test_a_window_is_asked_for_and_said(fake_gpu, request_of):
    trace = capture(replace(request_of(), window=(1, 3)))
    check_trace(trace, "here")
    assert trace.meta.window == (1, 3)
    assert [c.written for c in trace.meta.ctas] == [(8, 10)] * 2
    assert set(trace.events.iteration.tolist()) == {1, 2}
    assert trace.events.stage[trace.events.iteration == 1].tolist() == [1] * 18


def _faulty(request_of, fault: str) -> Trace:
    """In this process: a GPU of arrays has no context to lose."""
    request = replace(request_of(), fault=parse_fault(fault))
    check_request(request)
    return capture_here(request, INFO)


@pytest.mark.slow
def test_a_fault_is_launched_once_after_a_right_kernel(fake_gpu, request_of):
    trace = _faulty(request_of, "expect_less@1")
    check_trace(trace, "here")
    meta = trace.meta
    assert (meta.fault, meta.memory, meta.status, meta.runs) == ("expect_less@1", "host", "finished", ())
    assert "-DPIPESIM_FAULT=5" in meta.options
    assert "-DPIPESIM_EAGER=1" in meta.options
    assert fake_gpu.latest.launches == [True] * 2  # the first, without the fault, warms up
    assert [(c.passes, len(c.barrier_words)) for c in meta.ctas] == [((4, 4), 4)] * 2


@pytest.mark.slow
def test_a_trap_leaves_what_was_recorded(fake_gpu, request_of, monkeypatch):
    monkeypatch.setattr(fake_gpu, "mistake", "trap")
    trace = _faulty(request_of, "extra_arrive@1")
    check_trace(trace, "here")
    meta = trace.meta
    assert (meta.status, meta.extra["gave_up"], meta.device.sm_khz) == (
        "trap",
        {"traced": True, "trap": True},
        2_000_000,
    )
    assert [(c.written, c.passes, c.barrier_words, len(c.anchors)) for c in meta.ctas] == [((6, 6), (), (), 1)] * 2
    ends = capture(request_of()).events.select(np.array([0, 1, 2, 3, 4, 5]))
    assert trace.events.select(np.arange(6)).cycle.tolist() == ends.cycle.tolist()


def test_a_trap_without_a_fault_is_captured_again_apart(fake_gpu, request_of, monkeypatch):
    def trap(*_: object) -> None:
        raise KernelTrapError("the kernel trapped")

    asked = []
    answer = capture(request_of())
    monkeypatch.setattr("hwkernels.capture.pipeline.run_in_subprocess", lambda *a: asked.append(a) or answer)
    monkeypatch.setattr(fake_gpu, "launch_within", trap)
    assert capture(request_of()).meta.extra["gave_up"] == {"first": "trap"}  # this time it went well
    ((document, what, limit_s),) = asked
    assert ('"memory": "host"' in document, what, limit_s) == (True, "producer_consumer", 5.25)
    assert fake_gpu.latest.closed


def test_only_tiles_that_were_reached_are_compared():
    expected = np.arange(8, dtype=np.uint32).reshape(4, 2)
    output = Output("sums", expected, "uint32", first_warp=1)
    found = (expected + np.uint32(1)).reshape(-1).view(np.uint8)

    def wrong_tiles(*iterations: int) -> int:
        reports = np.zeros(1, dtype=REPORT)
        reports["iterations"][0, :3] = iterations
        checked = output.check(found, reports)
        assert checked is not None
        return checked.wrong_tiles

    assert [wrong_tiles(4, 4, 4), wrong_tiles(4, 1, 3), wrong_tiles(4, 0, 0)] == [4, 3, 0]


def _base(**changes) -> CaptureRequest:
    params = {"stages": 4, "tiles": 1000, "tile_bytes": 16384, "consumer_warps": 2, "work": 0, "arrive_lanes": 1}
    return CaptureRequest(TwinSubject("producer_consumer"), params | changes)


@pytest.mark.slow
def test_a_plan():
    layout = plan(_base(), 232448, 233472)
    room = 232448 - 4 * 16384 - 64
    assert layout.capacity == 6009  # of 1000 tiles 5 clocks and a hash, the last hash, room for 6 more, and two
    assert layout.shape.smem_bytes == 4 * 16384 + 64 + 3 * 6009 * 4 <= 232448
    tagged = plan(replace(_base(), encoding="tagged"), 232448, 233472)
    assert tagged.capacity == 6014  # 1000 tiles of at most 6 records, two more, and two
    assert tagged.shape.smem_bytes == 4 * 16384 + 64 + 3 * 6014 * 8 <= 232448
    assert (layout.shape.block, layout.record_ctas) == ((96,), 1)
    long = plan(_base(tiles=3_000), 232448, 233472)
    assert (long.memory, long.capacity, long.shape.smem_bytes) == ("device", 18_009, 233472 // 2 + 1024)
    short = plan(replace(_base(tiles=3_000), memory="shared"), 232448, 233472)
    assert (short.memory, short.capacity, short.shape.smem_bytes) == ("shared", room // 24, 232448 - room % 24)
    few = plan(replace(_base(tiles=3_000), window=(2_990, 3_020)), 232448, 233472)
    assert (few.memory, few.capacity) == ("shared", 74)
    assert [source_tiles(_base(tiles=tiles).params, 1) for tiles in (1, 1000, 10_000)] == [9, 1000, 1024]


@pytest.mark.parametrize(
    ("changes", "fact"),
    [({"stages": 33}, "stages = 33"), ({"tiles": -1}, "tiles = -1"), ({"tile_bytes": 24}, "use a multiple of 16"),
     ({"arrive_lanes": 2}, "arrive_lanes = 2"), ({"consumer_warps": 0}, "consumer_warps = 0"),
     ({"depth": 1}, "takes stages")],
)  # fmt: skip
def test_values_out_of_range(changes, fact):
    with pytest.raises(ParameterError) as caught:
        check_request(_base(**changes))
    assert fact in str(caught.value)


@pytest.mark.parametrize(
    "change", [{"clock": "sundial"}, {"deadline_ms": 2001}, {"capacity": -1}, {"memory": "tape"}, {"repetitions": 0}]
)
def test_requests_out_of_range(change):
    with pytest.raises(ParameterError, match=f"{next(iter(change))} = "):
        check_request(replace(_base(), **change))


@pytest.mark.parametrize("change", [{"window": (1, 3)}, {"fault": parse_fault("no_acquire@1")}])
def test_features_that_a_twin_does_not_have(change):
    check_request(replace(_base(), **change))
    other = CaptureRequest(TwinSubject("persistent_scheduler"), find("persistent_scheduler").defaults)
    check_request(other)
    with pytest.raises(UsageError, match="has no effect for persistent_scheduler") as caught:
        check_request(replace(other, **change))
    assert caught.value.cause == "only the kernel of producer_consumer has it"


def test_a_deadline_shorter_than_the_work_is_refused():
    check_request(replace(_base(work=1 << 20), deadline_ms=5))
    with pytest.raises(ParameterError, match="too short for 1,048,576 cycles of work a tile"):
        check_request(replace(_base(work=1 << 20), deadline_ms=4))


class _Status(int):
    name = "CUDA_ERROR_LAUNCH_FAILED"


def test_a_trap_is_told_from_other_failures():
    assert driver_values((_Status(0), 5), "cuThing") == (5,)
    with pytest.raises(HardwareError, match="the kernel trapped: cuThing returned CUDA_ERROR_LAUNCH_FAILED"):
        driver_values((_Status(719),), "cuThing")
    with pytest.raises(HardwareError, match="cuThing failed: 1"):
        driver_values((1,), "cuThing")


def test_a_launch_through_the_driver_has_the_same_shape():
    driver = pytest.importorskip("cuda.bindings.driver")
    config = launch_config(driver, Shape((8,), (96,), 4096, 4), driver.CUstream(0))
    assert (config.gridDimX, config.gridDimY, config.gridDimZ, config.sharedMemBytes) == (8, 1, 1, 4096)
    assert (config.blockDimX, config.blockDimY, config.numAttrs) == (96, 1, 1)
    assert config.attrs[0].value.clusterDim.x == 4
