"""Runs a kernel of the registry on a GPU and makes a trace of it.

``python -m hwkernels.capture.twin_trace FOLDER`` does so in a process of its own, for a kernel that traps or hangs in
spite of its bounded waits: its records are in the host's memory then, and are read before the process ends.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.capture.request import NEVER
from hwkernels.capture.source_launches import clock_rate
from hwkernels.capture.subprocess_capture import answer, run_apart
from hwkernels.capture.twin_launches import KernelLaunched, KernelLaunches
from hwkernels.capture.twin_request import (
    KernelLayout,
    KernelRequest,
    check_kernel_request,
    compile_kernel_of,
    plan_kernel,
)
from hwkernels.device.compile import Compiled
from hwkernels.device.launch import DeviceInfo, Gpu, require_gpu
from hwkernels.recorder.decode import Coding, decode
from hwkernels.recorder.describe import describe
from hwkernels.recorder.measure import overhead, run_of
from hwkernels.twins import registered
from pipesim.errors import KernelHangError, KernelTrapError
from pipesim.model.ending import Ending
from pipesim.trace.schema import CtaInfo, Trace

_HELD: list[Gpu] = []  # to let go of one whose kernel still runs would wait for it: it lasts as long as the process


def capture_kernel_of(request: KernelRequest) -> Trace:
    """Compile, run and check a kernel of the registry, and give the trace of its first recorded launch.

    ``wrong_tiles`` speaks of all launches. A launch that traps, or outlives the bounds of its waits, is repeated in a
    process of its own with its records in the host's memory. Raises HardwareError without a usable GPU, ParameterError
    and ConfigurationError for a request that cannot be run.
    """
    check_kernel_request(request)
    info = require_gpu()
    if request.memory == "host":
        return _apart(request)
    try:
        return capture_kernel_here(request, info)
    except (KernelHangError, KernelTrapError):
        return _apart(replace(request, memory="host", repetitions=1))


def _apart(request: KernelRequest) -> Trace:
    limit_s = 2 * request.repetitions * (request.deadline_ms / 1000 + 5)
    return run_apart(__name__, json.dumps(asdict(request), sort_keys=True), request.kernel, limit_s)


def capture_kernel_here(request: KernelRequest, info: DeviceInfo) -> Trace:
    """The same in this process, which can launch nothing any more if the kernel traps."""
    layout = plan_kernel(request, info.smem_per_cta)
    builds = {t: compile_kernel_of(request, traced=t, memory=layout.memory) for t in (False, True)}
    gpu = Gpu(info)
    _HELD.append(gpu)
    rate = clock_rate(gpu) if layout.memory == "host" else None
    launches = KernelLaunches(gpu, request, layout)
    kernels = {traced: gpu.load(code, layout.shape.smem_bytes) for traced, code in builds.items()}
    if layout.memory == "host":
        launched = [launches.run(kernels[True], traced=True, repetition=0)]
    else:
        launched = _in_turn(launches, kernels, request.repetitions)
    if not any(run.trapped for run in launched):
        gpu.close()
        _HELD.remove(gpu)
    return make_kernel_trace(request, layout, builds[True], info, launched, rate)


def _in_turn(launches: KernelLaunches, kernels: dict[bool, Any], repetitions: int) -> list[KernelLaunched]:
    """Warmed up, untraced and traced launches in turn. After one that met its deadline the repetitions end."""
    first = launches.run(kernels[True], traced=True, repetition=0)  # a kernel that gives up is not warmed up
    if first.gave_up:
        return [first]
    launches.warm_up(kernels[False], kernels[True])
    launched: list[KernelLaunched] = []
    for repetition in range(repetitions):
        launched += [launches.run(kernels[traced], traced=traced, repetition=repetition) for traced in (False, True)]
        if any(run.gave_up for run in launched):
            break
    return launched


def make_kernel_trace(
    request: KernelRequest,
    layout: KernelLayout,
    compiled: Compiled,
    info: DeviceInfo,
    launched: list[KernelLaunched],
    rate: npt.NDArray[Any] | None,
) -> Trace:
    """The trace of the first traced launch, or of the first that gave up."""
    kernel = registered(request.kernel)
    traced = [run for run in launched if run.traced]
    recorded = next((run for run in traced if run.gave_up or run.trapped), traced[0])
    meta = describe(request, layout, compiled, info, recorded.headers, rate)
    count = _begun(recorded, layout.record_ctas)
    coding = Coding(
        request.clock, kernel.nbytes(request.params), counted=False, khz=meta.device.sm_khz, stray_ns=kernel.stray_ns
    )
    decoded = decode(recorded.headers[:count], recorded.records[:count], layout.table, coding)
    complete = not any(run.gave_up or run.trapped for run in launched)
    runs = tuple(run_of(run, (NEVER, NEVER)) for run in launched) if complete else ()
    per_tile = overhead(runs, kernel.units(request.params)) if runs else {}
    return Trace(
        replace(
            meta,
            ctas=tuple(_with_words(cta, recorded, layout) for cta in decoded.ctas),
            runs=runs,
            status=Ending.TRAP if recorded.trapped else Ending.DEADLINE if recorded.gave_up else Ending.FINISHED,
            wrong_tiles=sum(run.wrong_tiles for run in launched),
            memory=layout.memory,
            extra=meta.extra
            | {"overhead_millicycles_per_tile": per_tile, "smem_bytes": layout.shape.smem_bytes}
            | _outcome(launched, layout),
        ),
        decoded.events,
    )


def _outcome(launched: list[KernelLaunched], layout: KernelLayout) -> dict[str, Any]:
    """Where the first launch gave up, if one did; how long launches took, and how far off their outputs were."""
    gave_up = [run.describe_end(layout.table) for run in launched if run.gave_up or run.trapped]
    found: dict[str, Any] = {"gave_up": gave_up[0]} if gave_up else {}
    times = {kind: [run.took_ns for run in launched if run.traced is traced and run.took_ns]
             for kind, traced in (("untraced", False), ("traced", True))}  # fmt: skip
    found["launch_ns"] = times
    for name in {name for run in launched for name in run.outputs}:
        checked = [run.outputs[name] for run in launched if name in run.outputs]
        found.setdefault("checked", {})[name] = {
            "elements": checked[0].elements,
            "wrong": max(c.wrong for c in checked),
            "largest_error": max(c.largest_error for c in checked),
            "first_wrong": next((c.first_wrong for c in checked if c.first_wrong), ""),
        }
    return found


def _begun(recorded: KernelLaunched, most: int) -> int:
    """How many of the first CTAs came to their first anchor: the others have no place in time."""
    missing = np.flatnonzero(recorded.headers[:most]["anchors"][:, 0]["globaltimer"] == 0)
    return int(missing[0]) if len(missing) else most


def _with_words(cta: CtaInfo, recorded: KernelLaunched, layout: KernelLayout) -> CtaInfo:
    """The header with the words of the barriers that the CTA left, if it came to its end."""
    report = recorded.reports[cta.cta]
    if not report["status"] or recorded.trapped:
        return cta
    barriers = sum(group.stages for group in layout.table.barriers)
    return replace(cta, barrier_words=tuple(report["barrier_words"][:barriers].tolist()))


def main(folder: str) -> int:
    """Capture and write."""
    return answer(folder, lambda text: capture_kernel_here(KernelRequest(**json.loads(text)), require_gpu()))


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # an ordinary end would wait for a kernel that still runs
