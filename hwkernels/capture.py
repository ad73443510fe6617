"""Runs the producer/consumer kernel on a GPU and makes a trace of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy.typing as npt

from hwkernels.compile import Compiled
from hwkernels.decode import TIMER_STEPS, Coding, decode, sm_khz, timer_step_ns
from hwkernels.faults import expected_bytes
from hwkernels.launch import DeviceInfo, Gpu, require_gpu
from hwkernels.launches import launch_all, launch_fault
from hwkernels.layout import RECORD_WORDS
from hwkernels.measure import Launched, busiest_role, cost_of_record, overhead, run_of
from hwkernels.request import PROTOCOL, CaptureRequest, Layout, check_request, compile_kernel, plan
from pipesim.trace.schema import CtaInfo, Device, Trace, TraceMeta

__all__ = ["CaptureRequest", "capture"]

CLOCK_SKEW_CYCLES = 20  #: bound on the difference of %clock between the warps of an SM


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
    from hwkernels.apart import capture_apart

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


def order_error_cycles(clock: str, khz: int, step_ns: int) -> int:
    """Cycles by which two stamps of one SM may stand in the wrong order.

    Two readings of ``%clock`` on one SM were at most 15 cycles apart when taken right behind a CTA barrier (2,000
    times, 8 warps, H100 and H200); a reading of ``%globaltimer`` is up to two of its usual steps old.
    """
    return CLOCK_SKEW_CYCLES + (-(-TIMER_STEPS * step_ns * khz // 1_000_000) if clock == "globaltimer" else 0)


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
    tile_bytes = request.params["tile_bytes"]
    khz = sm_khz(recorded.headers) or (0 if rate is None else sm_khz(rate))
    coding = Coding(
        request.clock,
        (tile_bytes, expected_bytes(request.fault, tile_bytes)),
        request.window[0] if request.window else 0,
        counted=request.fault is None,
        khz=khz,
    )
    count = layout.record_ctas
    decoded = decode(recorded.headers[:count], recorded.records[:count], layout.table, coding)
    runs = tuple(run_of(run, layout.marks) for run in launched) if request.fault is None else ()
    gave_up = [run.describe_end(layout.table) for run in launched if run.gave_up]
    per_tile = overhead(runs, request.params["tiles"])
    step_ns = timer_step_ns(recorded.headers)
    extra: dict[str, Any] = {
        "order_error_cycles": order_error_cycles(request.clock, khz, step_ns),
        "overhead_millicycles_per_tile": per_tile,
        "cost_millicycles_per_record": cost_of_record(per_tile, busiest_role(decoded.events, layout.table)),
        "capacity": layout.capacity,
        "smem_bytes": layout.smem_bytes,
        "source_tiles": layout.source_tiles,
        "seed": request.seed,
        "took_ms": recorded.took_ms,
    }
    if gave_up:
        extra["gave_up"] = gave_up[0]
    meta = TraceMeta(
        source="hardware",
        protocol=PROTOCOL,
        params=dict(request.params),
        grid=request.grid,
        device=Device(
            info.name,
            info.sms,
            info.capability,
            info.driver,
            compiled.nvrtc,
            khz,
            step_ns,
        ),
        agents=layout.table.agents,
        barriers=layout.table.barriers,
        sites=layout.table.sites,
        ctas=tuple(_with_report(cta, recorded, layout) for cta in decoded.ctas),
        runs=runs,
        clock=request.clock,
        status="trap" if recorded.trapped else "deadline" if recorded.gave_up else "finished",
        wrong_tiles=sum(run.wrong_tiles for run in launched),
        kernel_hash=compiled.kernel_hash,
        options=compiled.options,
        record_bytes=4 * RECORD_WORDS[request.clock],
        recorded_at=datetime.now(UTC).isoformat(timespec="seconds"),
        window=request.window,
        fault="" if request.fault is None else str(request.fault),
        memory=layout.memory,
        extra=extra,
    )
    return Trace(meta, decoded.events)


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
