"""What the hardware did: which traces speak for or against a program, and why there are none."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.answers.progress import Progress, Stage
from pipesim.answers.views.trace import CAPTURED_NOW
from pipesim.errors import EvidenceError, HardwareError, MissingExtraError, NoTraceError
from pipesim.model.program import Program
from pipesim.targets import Target
from pipesim.trace.files import read_meta, read_trace
from pipesim.trace.library import find_traces, foreign_files
from pipesim.trace.schema import Trace

if TYPE_CHECKING:
    from hwkernels.capture.request import CaptureRequest


Capture = Callable[[Program], Trace]  #: runs the kernel of a program on this machine's GPU and records it


class HardwareSource(Enum):
    """Where the traces of an answer are from."""

    GPU_OR_RECORDED = "GPU or recorded"  #: this machine's GPU if it has one and the protocol a kernel, else recorded
    RECORDED = "recorded"  #: the recorded traces, GPU or not
    LEFT_OUT = "left out"  #: no traces at all


@dataclass(frozen=True)
class CollectedTraces:
    """Traces, each with where it is from, and why there is none (or no more of them)."""

    traces: tuple[tuple[str, Trace], ...] = ()
    missing: EvidenceError | None = None


def collect(
    target: Target,
    program: Program,
    source: HardwareSource,
    folder: Path | None,
    capture: Capture | None,
    progress: Progress,
) -> CollectedTraces:
    """A fresh trace or the recorded ones, one a device. ``folder``: of these, not those that came with pipesim."""
    try:
        match source:
            case HardwareSource.LEFT_OUT:
                return CollectedTraces()
            case HardwareSource.GPU_OR_RECORDED if folder is None and has_kernel(target) and _has_gpu():
                with progress.stage(Stage.CAPTURE, program.name):
                    fresh = capture(program) if capture else capture_trace(plain_request(program))
                return CollectedTraces(((CAPTURED_NOW, fresh),))
            case _:
                return CollectedTraces(_stored_traces(program, folder, progress))
    except NoTraceError as error:
        return CollectedTraces(missing=error if has_kernel(program) else _unrecordable(error, program))
    except EvidenceError as error:
        return CollectedTraces(missing=error)


def left_out_files(folder: Path, progress: Progress) -> None:
    """Report the Parquet files of a user's folder that are left out because they are no traces."""
    foreign = tuple(foreign_files(folder))
    if foreign:
        progress.left_out(foreign)


# the recorded traces


def _stored_traces(program: Program, folder: Path | None, progress: Progress) -> tuple[tuple[str, Trace], ...]:
    """The recorded traces of this name, parameters and grid: one a device, the cheapest kind there is."""
    if folder is not None:
        left_out_files(folder, progress)
    chosen: dict[str, Path] = {}
    paths = [
        (path, read_meta(path))
        for path in find_traces(program.name, program.params, program.grid * program.ctas, folder)
    ]
    for path, meta in sorted(paths, key=lambda entry: (entry[1].clock != "clock", entry[1].memory == "device")):
        chosen.setdefault(meta.device.name, path)
    with progress.stage(Stage.READ):
        return tuple((f"{chosen[d].parent.name}/{chosen[d].name}", read_trace(chosen[d])) for d in sorted(chosen))


def _unrecordable(error: NoTraceError, program: Program) -> NoTraceError:
    """The same error without the advice to record one: there is no kernel to do it with."""
    return NoTraceError(
        error.fact,
        place=error.place,
        cause=f"{error.cause}; there is no CUDA kernel of {program.name}",
        correction="name a folder with its traces (--traces FOLDER), or do not compare with hardware (--no-hardware)",
    )


# this machine's GPU


def has_kernel(target: Target | Program) -> bool:
    """Whether there is a CUDA kernel of what this names."""
    from hwkernels.twins import kernel_names

    return target.name in kernel_names()


def plain_request(program: Program) -> CaptureRequest:
    """What to run for this program, everything else as usual."""
    from hwkernels.capture import CaptureRequest, TwinSubject

    return CaptureRequest(TwinSubject(program.name, program.grid), program.params)


def interpreted_request(program: Program) -> CaptureRequest:
    """The same for a program without a kernel: the interpreter runs it."""
    from hwkernels.capture import CaptureRequest, ProgramSubject
    from pipesim.model.program_json import dumps

    return CaptureRequest(ProgramSubject(program.name, dumps(program)), program.params)


def capture_trace(request: CaptureRequest) -> Trace:
    """The trace of a request. Raises HardwareError without a GPU, and whatever the capture raises."""
    from hwkernels.capture import capture

    return capture(request)


def _has_gpu() -> bool:
    from hwkernels.device.launch import require_gpu

    try:
        require_gpu()
    except (HardwareError, MissingExtraError):
        return False
    return True
