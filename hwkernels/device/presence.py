"""Which driver and GPUs this machine has, asked with the standard library alone, and without a CUDA context."""

import ctypes
import re
from collections.abc import Callable
from ctypes import byref, c_char_p, c_int, create_string_buffer
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LIBRARY = "libcuda.so.1"
_MODULE = Path("/proc/driver/nvidia/version")
_NAME_BYTES = 256
_MAJOR, _MINOR = 75, 76  #: CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR


@dataclass(frozen=True)
class GpuPresent:
    """A GPU that the driver sees: its name, and its compute capability."""

    name: str
    capability: tuple[int, int]


@dataclass(frozen=True)
class DriverPresent:
    """What the driver says about itself. ``cuda``: the CUDA version that it supports, (0, 0) without a driver.

    ``module``: the version of its kernel module, "" where Linux has none loaded. ``problem``: why it cannot be used,
    "" if it can.
    """

    cuda: tuple[int, int] = (0, 0)
    module: str = ""
    gpus: tuple[GpuPresent, ...] = ()
    problem: str = ""


def driver_present(load: Callable[[str], Any] = ctypes.CDLL, module: Path = _MODULE) -> DriverPresent:
    """Ask the driver; ``load`` gives its library, or raises OSError."""
    version = module_version(module)
    try:
        library = load(_LIBRARY)
    except OSError as error:
        return DriverPresent(module=version, problem=str(error))
    number = c_int()
    if library.cuDriverGetVersion(byref(number)):
        return DriverPresent(module=version, problem="cuDriverGetVersion failed")
    cuda = number.value // 1000, number.value % 1000 // 10
    status = library.cuInit(0)
    if status:
        return DriverPresent(cuda, version, problem=f"cuInit failed: {_name_of(library, status)}")
    library.cuDeviceGetCount(byref(number))
    return DriverPresent(cuda, version, tuple(_gpu(library, ordinal) for ordinal in range(number.value)))


def module_version(path: Path = _MODULE) -> str:
    """The version of the driver's kernel module, "" where none is loaded."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        return ""
    found = re.search(r"\b(\d{3,}\.\d+(?:\.\d+)?)\b", text)
    return found[1] if found else ""


def _gpu(library: Any, ordinal: int) -> GpuPresent:
    device, major, minor = c_int(), c_int(), c_int()
    name = create_string_buffer(_NAME_BYTES)
    library.cuDeviceGet(byref(device), ordinal)
    library.cuDeviceGetName(name, _NAME_BYTES, device)
    library.cuDeviceGetAttribute(byref(major), _MAJOR, device)
    library.cuDeviceGetAttribute(byref(minor), _MINOR, device)
    return GpuPresent(name.value.decode(errors="replace"), (major.value, minor.value))


def _name_of(library: Any, status: int) -> str:
    text = c_char_p()
    library.cuGetErrorName(status, byref(text))
    return text.value.decode(errors="replace") if text.value else str(status)
