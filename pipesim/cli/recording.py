"""What both ways to capture share: a GPU must be there, and the trace has a name before anything is recorded."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from pipesim.errors import HardwareError

if TYPE_CHECKING:
    from pipesim.trace.schema import TraceMeta


def require_gpu_or(correction: str) -> None:
    """HardwareError that says what can be done without a GPU, if there is none."""
    from hwkernels.device.launch import require_gpu

    try:
        require_gpu()
    except HardwareError as error:
        raise HardwareError(error.fact, place=error.place, cause=error.cause, correction=correction) from error


def empty_meta(protocol: str, params: dict[str, int], grid: int, clock: str) -> TraceMeta:
    """What is known about a trace before anything is recorded: enough for its name."""
    from pipesim.trace.schema import Device, TraceMeta

    return TraceMeta("hardware", protocol, params, grid, Device(""), (), (), (), clock=clock)


def usual_name(meta: TraceMeta) -> Path:
    """The name that the trace would have in the library, in this folder."""
    from pipesim.trace.library import trace_name

    return Path(Path(trace_name(meta)).name)
