"""Runs the producer/consumer kernel on a GPU and makes a trace of it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy.typing as npt

from hwkernels.capture.faults import expected_bytes
from hwkernels.capture.launches import launch_all, launch_fault
from hwkernels.capture.request import CaptureRequest, Layout, check_request, compile_kernel, plan
from hwkernels.device.compile import Compiled
from hwkernels.device.launch import DeviceInfo, Gpu, require_gpu
from hwkernels.recorder.decode import Coding, Decoded, decode
from hwkernels.recorder.describe import describe
from hwkernels.recorder.measure import Launched, busiest_role, cost_of_record, overhead, run_of
from pipesim.model.ending import Ending
from pipesim.trace.schema import CtaInfo, Events, Run, Trace

__all__ = ["CaptureRequest", "capture"]


def capture(request: CaptureRequest) -> Trace:
    """Compile, run and check the kernel, and give the trace of its first recorded launch.

    ``wrong_tiles`` speaks of all launches, ``status`` of the one whose records are kept: the first traced launch, or
    the first that met its deadline. A request with a fault runs in a process of its own and comes back whatever
    happens. Raises HardwareError without a usable GPU or if a kernel without a fault traps, ParameterError and
    ConfigurationError for a request that cannot be run.
    """
    check_request(request)
    info = require_gpu()
    if request.fault is None:
        return capture_here(request, info)
    from hwkernels.capture.subprocess_capture import capture_apart

    return capture_apart(request)


def capture_here(request: CaptureRequest, info: DeviceInfo) -> Trace:
    """The same in this process, which can launch nothing any more if a fault traps."""
    layout = plan(request, info.smem_per_cta, info.smem_per_sm)
    gpu = Gpu(info)
    try:
        if request.fault is None:
            launched, rate = launch_all(gpu, request, layout), None
        else:
            run, rate = launch_fault(gpu, request, layout)
            launched = [run]
    finally:
        gpu.close()
    compiled = compile_kernel(request, traced=True, memory=layout.memory)
    return _trace(request, layout, compiled, info, launched, rate)


def _trace(
    request: CaptureRequest,
    layout: Layout,
    compiled: Compiled,
    info: DeviceInfo,
    launched: list[Launched],
    rate: npt.NDArray[Any] | None,
) -> Trace:
    # a launch that hung tells more than one that did not
    traced = [run for run in launched if run.traced]
    recorded = next((run for run in traced if run.gave_up), traced[0])
    meta = describe(request, layout, compiled, info, recorded.headers, rate)
    decoded = _decoded(request, layout, recorded, meta.device.sm_khz)
    runs = tuple(run_of(run, layout.marks) for run in launched) if request.fault is None else ()
    return Trace(
        replace(
            meta,
            ctas=tuple(_with_report(cta, recorded, layout) for cta in decoded.ctas),
            runs=runs,
            status=Ending.TRAP if recorded.trapped else Ending.DEADLINE if recorded.gave_up else Ending.FINISHED,
            wrong_tiles=sum(run.wrong_tiles for run in launched),
            window=request.window,
            fault="" if request.fault is None else str(request.fault),
            memory=layout.memory,
            extra=meta.extra | _extra(request, layout, launched, runs, decoded.events) | {"took_ms": recorded.took_ms},
        ),
        decoded.events,
    )


def _decoded(request: CaptureRequest, layout: Layout, recorded: Launched, khz: int) -> Decoded:
    """The records of a launch as events."""
    tile_bytes, count = request.params["tile_bytes"], layout.record_ctas
    coding = Coding(
        request.clock,
        (tile_bytes, expected_bytes(request.fault, tile_bytes)),
        request.window[0] if request.window else 0,
        counted=request.fault is None,
        khz=khz,
    )
    return decode(recorded.headers[:count], recorded.records[:count], layout.table, coding)


def _extra(
    request: CaptureRequest, layout: Layout, launched: list[Launched], runs: tuple[Run, ...], events: Events
) -> dict[str, Any]:
    """What only a kernel of ours can say: where it lay in memory, what recording costs, and where it gave up."""
    per_tile = overhead(runs, request.params["tiles"])
    gave_up = [run.describe_end(layout.table) for run in launched if run.gave_up]
    return {
        "overhead_millicycles_per_tile": per_tile,
        "cost_millicycles_per_record": cost_of_record(per_tile, busiest_role(events, layout.table)),
        "smem_bytes": layout.smem_bytes,
        "source_tiles": layout.source_tiles,
        **({"gave_up": gave_up[0]} if gave_up else {}),
    }


def _with_report(cta: CtaInfo, recorded: Launched, layout: Layout) -> CtaInfo:
    """The header with what the CTA reported at its end, if it came to one."""
    report = recorded.reports[cta.cta]
    if not report["status"] or recorded.trapped:
        return cta
    barriers = sum(group.stages for group in layout.table.barriers)
    return replace(
        cta,
        passes=tuple(report["iterations"][: len(layout.table.agents)].tolist()),
        barrier_words=tuple(report["barrier_words"][:barriers].tolist()),
    )
