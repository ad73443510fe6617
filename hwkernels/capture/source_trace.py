"""Runs a kernel that is not ours, in a process of its own, and makes a trace of it.

``python -m hwkernels.capture.source_trace FOLDER`` is that process. Nothing bounds the waits of such a kernel, so the
host stops waiting for it: then the process ends, and the driver ends the kernel with it. What it had recorded is read
before that, if the records go to the host's memory, which costs more; so this is done only in a second attempt.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.capture.arguments import Argument
from hwkernels.capture.parameters import require_parameters
from hwkernels.capture.source import ForeignLayout, ForeignRequest, compile_builds, plan_foreign
from hwkernels.capture.source_launches import ForeignLaunched, ForeignLaunches, clock_rate
from hwkernels.capture.subprocess_capture import answer, run_apart
from hwkernels.device.compile import Compiled
from hwkernels.device.launch import DeviceInfo, Gpu, require_gpu
from hwkernels.recorder.decode import Coding, decode
from hwkernels.recorder.describe import describe
from pipesim.errors import HardwareError, KernelHangError, KernelTrapError
from pipesim.trace.schema import Run, Trace

Builds = Mapping[str, Compiled]
_BUILD_OF = {"plain": False, "traced": True}
_HELD: list[Gpu] = []  # to let go of one whose kernel still runs would wait for it: it lasts as long as the process


def capture_foreign(request: ForeignRequest, builds: Builds, *, may_hang: bool = False) -> Trace:
    """Run a request whose builds "plain" and "traced" are compiled, and give its trace, whatever the kernel does.

    A launch that does not end within ``timeout_s``, or traps, is repeated so that its records survive it; ``may_hang``
    does that at once. Raises HardwareError without a GPU, or if no trace is left.
    """
    require_gpu()
    if may_hang:
        return _unbounded(request)
    launches = 2 * request.repetitions + 2
    try:
        return run_apart(__name__, dump(request, builds), Path(request.source).name, launches * request.timeout_s)
    except (KernelHangError, KernelTrapError) as error:
        trace = _unbounded(request)
        if trace.meta.status != "finished":
            return trace
        first = "trap" if isinstance(error, KernelTrapError) else "deadline"  # it went well this time
        return Trace(replace(trace.meta, extra=trace.meta.extra | {"gave_up": {"first": first}}), trace.events)


def _unbounded(request: ForeignRequest) -> Trace:
    document = dump(request, compile_builds(request, "eager"))
    return run_apart(__name__, document, Path(request.source).name, request.timeout_s)


def capture_foreign_here(request: ForeignRequest, builds: Builds, info: DeviceInfo) -> Trace:
    """The same in this process, with the builds "plain" and "traced", or with "eager" alone: then one launch is made.

    After a launch that hangs this process can do nothing with the GPU any more.
    """
    eager = "eager" in builds
    layout = plan_foreign(request, host=eager)
    gpu = Gpu(info)
    _HELD.append(gpu)
    rate = clock_rate(gpu)
    launched = _launch_unbounded(gpu, request, layout, builds) if eager else _launch_all(gpu, request, layout, builds)
    if launched[0].status != "deadline":
        gpu.close()
        _HELD.remove(gpu)
    return make_trace(request, layout, builds["eager" if eager else "traced"], info, launched, rate)


def _launch_all(gpu: Gpu, request: ForeignRequest, layout: ForeignLayout, builds: Builds) -> list[ForeignLaunched]:
    """Warmed up, untraced and traced launches in turn."""
    launches = ForeignLaunches(gpu, request, layout, host=False)
    kernels = {
        traced: gpu.load(builds["traced" if traced else "plain"], request.smem_bytes) for traced in (False, True)
    }
    for traced, kernel in kernels.items():
        require_parameters(gpu.parameter_sizes(kernel), request.arguments, traced=traced)
        launches.run(kernel, traced=traced)
    return [
        launches.run(kernels[traced], traced=traced, repetition=repetition, records=traced and not repetition)
        for repetition in range(request.repetitions)
        for traced in (False, True)
    ]


def _launch_unbounded(
    gpu: Gpu, request: ForeignRequest, layout: ForeignLayout, builds: Builds
) -> list[ForeignLaunched]:
    """One traced launch, which may hang or trap: everything recorded is in the host's memory."""
    launches = ForeignLaunches(gpu, request, layout, host=True)
    kernel = gpu.load(builds["eager"], request.smem_bytes)
    require_parameters(gpu.parameter_sizes(kernel), request.arguments, traced=True)
    return [launches.run(kernel, traced=True, records=True)]


def make_trace(
    request: ForeignRequest,
    layout: ForeignLayout,
    compiled: Compiled,
    info: DeviceInfo,
    launched: list[ForeignLaunched],
    rate: npt.NDArray[Any],
) -> Trace:
    """The trace of the first traced launch; ``rate``: headers that tell the SM clock where its own do not."""
    traced = [run for run in launched if run.traced]
    recorded = traced[0]
    if recorded.status == "finished":
        _require_anchors(recorded)
    meta = describe(request, layout, compiled, info, recorded.headers, rate)
    count = _begun(recorded, layout.record_ctas)
    coding = Coding(request.clock, request.nbytes, counted=False, khz=meta.device.sm_khz)
    decoded = decode(recorded.headers[:count], recorded.records[:count], layout.table, coding)
    said = {"kernel": Path(request.source).name, "entry": compiled.entry, "launch": _shape(request)}
    return Trace(
        replace(
            meta,
            ctas=decoded.ctas,
            runs=tuple(_run_of(run) for run in traced) if recorded.status == "finished" else (),
            status=recorded.status,
            memory="host" if "-DPIPESIM_EAGER=1" in compiled.options else "device",
            extra=meta.extra | said | _outcome(request, launched, recorded),
        ),
        decoded.events,
    )


def _shape(request: ForeignRequest) -> dict[str, Any]:
    """The size of the launch and what the kernel was given."""
    return {
        "grid": list(request.grid),
        "block": list(request.block),
        "cluster": request.cluster,
        "smem_bytes": request.smem_bytes,
        "arguments": [str(argument) for argument in request.arguments],
    }


def _outcome(request: ForeignRequest, launched: list[ForeignLaunched], recorded: ForeignLaunched) -> dict[str, Any]:
    """How long the launches took and what they left, or that the recorded one did not end."""
    if recorded.status != "finished":
        return {"gave_up": {"traced": True, "timeout_s": request.timeout_s, "trap": recorded.status == "trap"}}
    return {
        "launch_ns": {
            name: [run.took_ns for run in launched if run.traced is kind]
            for name, kind in (("untraced", False), ("traced", True))
        },
        "outputs": {n: sorted({run.outputs[n] for run in launched}) for n in recorded.outputs},
        "wrong_outputs": {
            name: max(run.wrong.get(name, 0) for run in launched) for run in launched for name in run.wrong
        },
    }


def _require_anchors(recorded: ForeignLaunched) -> None:
    """HardwareError if a CTA ended without having read both clocks at both its ends."""
    for which, when in ((0, "before its first record"), (1, "after its last")):
        missing = recorded.headers["anchors"][:, which]["globaltimer"] == 0
        if missing.any():
            raise HardwareError(
                f"CTA {int(np.argmax(missing))} did not read the clocks {when}",
                cause="without it its records cannot be placed in time",
                correction=f"let one thread of each CTA execute PIPESIM_ANCHOR(cta, {which}) there",
            )


def _begun(recorded: ForeignLaunched, most: int) -> int:
    """How many of the first CTAs came to their first anchor: the others have no place in time."""
    missing = np.flatnonzero(recorded.headers[:most]["anchors"][:, 0]["globaltimer"] == 0)
    return int(missing[0]) if len(missing) else most


def _run_of(run: ForeignLaunched) -> Run:
    """A traced launch: per CTA, the cycles between its anchors. No period: no kernel of others says where it is."""
    anchors = run.headers["anchors"]
    cycles = (anchors[:, 1]["clock_before"] - anchors[:, 0]["clock_after"]).astype(np.int64)
    return Run(True, run.repetition, tuple(cycles.tolist()), (0,) * len(cycles))


def dump(request: ForeignRequest, builds: Builds) -> str:
    """A request and its builds as JSON."""
    compiled = {n: {**asdict(b), "cubin": base64.b64encode(b.cubin).decode()} for n, b in builds.items()}
    return json.dumps({"request": asdict(request), "builds": compiled}, sort_keys=True)


def load(text: str) -> tuple[ForeignRequest, dict[str, Compiled]]:
    """The request and the builds of :func:`dump`."""
    document = json.loads(text)
    fields: dict[str, Any] = {n: tuple(v) if isinstance(v, list) else v for n, v in document["request"].items()}
    fields["arguments"] = tuple(Argument(**argument) for argument in fields["arguments"])
    builds = {
        name: Compiled(**{**b, "cubin": base64.b64decode(b["cubin"]), "options": tuple(b["options"])})
        for name, b in document["builds"].items()
    }
    return ForeignRequest(**fields), builds


def main(folder: str) -> int:
    """Capture and write."""
    return answer(folder, lambda text: capture_foreign_here(*load(text), require_gpu()))


if __name__ == "__main__":
    code = main(*sys.argv[1:])
    sys.stderr.flush()
    os._exit(code)  # an ordinary end would wait for a kernel that still runs
