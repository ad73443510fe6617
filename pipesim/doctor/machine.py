"""The parts of a machine that are not Python packages: libraries, the driver, GPUs, and tools of others."""

from __future__ import annotations

import ctypes
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from hwkernels.device.presence import DriverPresent
from pipesim.answers.views.doctor import MachinePart, Purpose
from pipesim.errors import EvidenceError, MissingExtraError

GPU_EXTRA = "pip install 'pipesim[gpu]'"
OF_DRIVER = (Purpose.CAPTURE, Purpose.LAUNCHES, Purpose.HANG)
OF_PACKAGES = (Purpose.CAPTURE, Purpose.LAUNCHES)  #: those that use the CUDA packages
_HOPPER = 9
_LEAST_PYTHON = (3, 11)
_CUDA = (13, 0)  #: what the packages of the extra are of
_BRANCH = "580"  #: of drivers, the first that supports it

Load = Callable[[str], Any]


def python_part(
    version: tuple[int, ...] = tuple(sys.version_info[:3]), executable: str = sys.executable
) -> MachinePart:
    """The interpreter that runs this."""
    least = ".".join(map(str, _LEAST_PYTHON))
    said = ".".join(map(str, version))
    if version >= _LEAST_PYTHON:
        return MachinePart("Python", f"{said} · {executable}", needed=(Purpose.CHECK,))
    return MachinePart(
        "Python", "", f"{said} is older than {least}", f"install Python {least} or newer", (Purpose.CHECK,)
    )


def traces_part() -> MachinePart:
    """The recorded traces that came with pipesim."""
    from pipesim.trace.library import stored_traces, trace_folder

    try:
        folder = trace_folder()
        return MachinePart("traces", f"{len(stored_traces(folder))} recorded · {folder}", needed=(Purpose.CHECK,))
    except EvidenceError as error:
        return MachinePart(
            "traces", "", error.fact, "pip install --force-reinstall --no-deps pipesim", (Purpose.CHECK,)
        )


def nvrtc_part() -> MachinePart:
    """The compiler of CUDA C++."""
    from hwkernels.device.compile import nvrtc_version

    use = (Purpose.COMPILE, Purpose.CAPTURE)
    try:
        return MachinePart("NVRTC", nvrtc_version(), needed=use)
    except MissingExtraError as error:
        return MachinePart("NVRTC", "", error.cause or error.fact, GPU_EXTRA, use)


def driver_part(found: DriverPresent) -> MachinePart:
    """The NVIDIA driver."""
    cuda = f"CUDA {found.cuda[0]}.{found.cuda[1]}"
    if found.problem:
        correction = (
            "start the container with its GPUs (docker run --gpus all): the machine has a driver"
            if found.module and found.cuda == (0, 0)
            else f"on a machine with an NVIDIA GPU: install a driver of branch {_BRANCH} or newer"
        )
        return MachinePart("driver", "", found.problem, correction, OF_DRIVER)
    said = f"{found.module} ({cuda})" if found.module else cuda
    if found.cuda < _CUDA:
        problem = f"{said}: the CUDA packages need a driver for CUDA {_CUDA[0]}.{_CUDA[1]}"
        return MachinePart("driver", "", problem, f"install a driver of branch {_BRANCH} or newer", OF_PACKAGES)
    return MachinePart("driver", said, needed=OF_DRIVER)


def gpu_part(found: DriverPresent) -> MachinePart:
    """The GPUs, the first of which ``capture`` uses."""
    names = [f"{each.name} (sm_{each.capability[0]}{each.capability[1]})" for each in found.gpus]
    if not names:
        return MachinePart(
            "GPU", "", "the driver sees none" if not found.problem else "there is no driver", needed=OF_DRIVER
        )
    return MachinePart("GPU", " · ".join(names), needed=OF_DRIVER)


def hopper_part(found: DriverPresent) -> MachinePart:
    """What pipesim's own kernels are built for."""
    if found.gpus and found.gpus[0].capability[0] == _HOPPER:
        return MachinePart("Hopper", found.gpus[0].name, needed=(Purpose.CAPTURE,))
    problem = f"{found.gpus[0].name} runs no code for sm_90a" if found.gpus else "there is no GPU"
    return MachinePart("Hopper", "", problem, "capture on an H100 or H200; check needs no GPU", (Purpose.CAPTURE,))


def cupti_part(load: Load = ctypes.CDLL, libraries: Sequence[str] | None = None) -> MachinePart:
    """What ``launches`` catches launches with."""
    from pipesim.launches.observe.cupti import cupti_libraries

    problem = "libcupti was not found"
    for each in cupti_libraries() if libraries is None else libraries:
        try:
            load(each)
        except OSError as error:
            problem = str(error)
        else:
            return MachinePart("CUPTI", each, needed=(Purpose.LAUNCHES,))
    return MachinePart("CUPTI", "", problem, GPU_EXTRA, (Purpose.LAUNCHES,))


def tool_part(
    name: str, programs: Sequence[str], purpose: str, correction: str, find: Callable[[str], str | None]
) -> MachinePart:
    """A program of others that one purpose alone needs: the first of ``programs`` that is there."""
    found = next((path for path in map(find, programs) if path), None)
    return MachinePart(
        name,
        f"{found} · {purpose}" if found else "",
        "" if found else f"not found: {purpose}",
        correction * (not found),
    )


def tool_parts(find: Callable[[str], str | None] = shutil.which) -> tuple[MachinePart, ...]:
    """The programs of others."""
    compiler = os.environ.get("CC", "cc").split() or ["cc"]
    return (
        tool_part(
            "C compiler", [compiler[0], "gcc", "clang"], "launches of programs that are not Python",
            "install gcc or clang, or name one in CC", find,
        ),
        tool_part(
            "ptxas", ["ptxas", *_toolkit("ptxas")], "names what is wrong with PTX that cannot be read",
            "install the CUDA toolkit, or name its folder in CUDA_HOME", find,
        ),
        tool_part(
            "SPIN", ["spin"], "runs what export --to promela writes", "install spin (Debian: apt install spin)", find,
        ),
    )  # fmt: skip


def _toolkit(program: str) -> list[str]:
    return [str(Path(os.environ[name], "bin", program)) for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
