"""One capture, whatever is captured: request, plan, builds, launches, trace."""

from dataclasses import replace

from hwkernels.capture.launches import launch_all
from hwkernels.capture.plan import plan
from hwkernels.capture.request import Builds, CaptureRequest, check_request
from hwkernels.capture.subprocess_capture import dump, run_in_subprocess
from hwkernels.capture.trace import make_trace
from hwkernels.device.launch import DeviceInfo, Gpu, require_gpu
from hwkernels.source_recorder.clock_rate import clock_rate
from pipesim.errors import KernelHangError, KernelTrapError
from pipesim.model.ending import Ending
from pipesim.trace.schema import Trace

_HELD: list[Gpu] = []  # to let go of one whose kernel still runs would wait for it: it lasts as long as the process


def capture(request: CaptureRequest, builds: Builds | None = None) -> Trace:
    """Compile, run and check a kernel, and give the trace of its first recorded launch, whatever the kernel does.

    ``builds``: those of the request and its plan, if they are compiled already. A kernel whose waits are not bounded,
    or that has a fault, runs in a separate process. A launch that traps, or does not end, is repeated in one with its
    records in the host's memory, which survives it; ``memory="host"`` does that immediately. ``wrong_tiles`` counts
    those of all launches. Raises HardwareError without a usable GPU or if no trace is left, ParameterError and
    ConfigurationError for a request that cannot be carried out.
    """
    check_request(request)
    info = require_gpu()
    separate = request.fault is not None or request.memory == "host" or not request.subject.bounded
    try:
        return _in_subprocess(request, builds) if separate else capture_here(request, info, builds)
    except (KernelHangError, KernelTrapError) as error:
        if request.memory == "host":
            raise
        trace = _in_subprocess(replace(request, memory="host", encoding=""), None)
        if trace.meta.status != Ending.FINISHED:
            return trace
        first = Ending.TRAP if isinstance(error, KernelTrapError) else Ending.DEADLINE  # it went well this time
        return Trace(replace(trace.meta, extra=trace.meta.extra | {"gave_up": {"first": first}}), trace.events)


def compile_builds(request: CaptureRequest) -> Builds:
    """The builds of a request, so that a caller knows that they compile before a GPU is looked for."""
    return request.subject.compile(request, plan(request).memory)


def _in_subprocess(request: CaptureRequest, builds: Builds | None) -> Trace:
    """Carry it out in a separate process."""
    launches = 1 if request.memory == "host" or request.fault else 3 * request.repetitions + 2
    limit_s = launches * request.subject.limit_s(request)
    return run_in_subprocess(dump(request, builds), str(request.fault or request.subject.name), limit_s)


def capture_here(request: CaptureRequest, info: DeviceInfo, builds: Builds | None = None) -> Trace:
    """The same in this process, which can do nothing with the GPU any more once a kernel has trapped or hung."""
    laid = plan(request, info.smem_per_cta, info.smem_per_sm)
    compiled = builds or request.subject.compile(request, laid.memory)
    gpu = Gpu(info)
    _HELD.append(gpu)
    try:
        rate = clock_rate(gpu) if laid.memory == "host" else None
        launched = launch_all(gpu, request, laid, compiled)
    except KernelHangError:
        raise
    except BaseException:
        _close(gpu)
        raise
    if not any(run.status == Ending.DEADLINE for run in launched):
        _close(gpu)
    return make_trace(request, laid, compiled["traced"], info, launched, rate)


def _close(gpu: Gpu) -> None:
    gpu.close()
    _HELD.remove(gpu)
