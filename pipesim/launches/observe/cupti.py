"""Where CUPTI's library may be, and its callback interface as far as observing needs it (``cupti_callbacks.h``)."""

import ctypes
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from ctypes import CFUNCTYPE, byref, c_int, c_uint32, c_void_p
from pathlib import Path
from typing import Any

from pipesim.errors import PipesimError

CUPTI = "PIPESIM_CUPTI"  #: the environment variable that names the library; no other is tried then
SONAMES = ("libcupti.so.13", "libcupti.so.12")  #: the newer first: it knows older drivers, not the reverse
_WHEELS = ("nvidia/cu13/lib/libcupti.so.13", "nvidia/cuda_cupti/lib/libcupti.so.12")  #: below a folder of packages
_TOOLKITS = ("CUDA_HOME", "CUDA_PATH")  #: environment variables that name the folder of a toolkit
_FOLDERS = ("extras/CUPTI/lib64", "lib64", "targets/x86_64-linux/lib")  #: of a toolkit
_OPEN_FILES = Path("/proc/self/maps")


def cupti_libraries(
    environment: Mapping[str, str] = os.environ, paths: Sequence[str] | None = None, maps: Path = _OPEN_FILES
) -> tuple[str, ...]:
    """What to give to ``dlopen``, best first: absolute paths of files that exist, then names for the loader.

    First the file that ``PIPESIM_CUPTI`` names, and then it alone; then one that this process has loaded already (two
    CUPTIs in one process cannot both subscribe); then those of the wheels below each of ``paths`` (``sys.path``), of
    the toolkits that ``CUDA_HOME`` and ``CUDA_PATH`` name; at last the bare names, which the loader may know.
    """
    named = environment.get(CUPTI, "")
    if named:
        return (named,)
    found = [*_in_maps(maps), *_in_wheels(sys.path if paths is None else paths), *_in_toolkits(environment), *SONAMES]
    return tuple(dict.fromkeys(found))


def _in_maps(maps: Path) -> Iterator[str]:
    """The libraries of CUPTI that are mapped into this process."""
    try:
        lines = maps.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return  # not Linux, or no /proc
    for line in lines:
        path = line.split(None, 5)[-1]
        if path.startswith("/") and Path(path).name.startswith("libcupti.so"):
            yield path


def _in_wheels(paths: Sequence[str]) -> Iterator[str]:
    for wheel in _WHEELS:
        yield from _existing(Path(path or ".", wheel) for path in paths)


def _in_toolkits(environment: Mapping[str, str]) -> Iterator[str]:
    homes = [environment[name] for name in _TOOLKITS if environment.get(name)]
    for name in (*SONAMES, "libcupti.so"):
        yield from _existing(Path(home, folder, name) for home in homes for folder in _FOLDERS)


def _existing(paths: Iterator[Path]) -> Iterator[str]:
    for path in paths:
        try:
            if path.is_file():
                yield str(path.absolute())
        except (OSError, ValueError):
            continue  # an entry of sys.path that is not a path


_CALLBACK = CFUNCTYPE(None, c_void_p, c_uint32, c_uint32, c_void_p)
_DRIVER_DOMAIN = 1  #: CUPTI_CB_DOMAIN_DRIVER_API
_OTHERS = 39  #: CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED


class CuptiError(PipesimError):
    """CUPTI cannot be used in this process. ``taken``: another profiler has it, and no other CUPTI will do."""

    taken = False


class Subscription:
    """Calls a function at each of the driver's calls with the given numbers, before it and after it.

    ``callback(number, data)`` has the address of a CallbackData; with ``called`` CUPTI calls that function of a
    library instead. CuptiError if CUPTI refuses; OSError without it.
    """

    def __init__(
        self, library: Path | str, numbers: Iterable[int], callback: Callable[[int, int], object], called: Any = None
    ) -> None:
        self._cupti = ctypes.CDLL(str(library))
        self._handle = c_void_p()

        def on_call(_: Any, domain: int, number: int, data: int) -> None:
            if domain == _DRIVER_DOMAIN:
                callback(number, data)

        self._called = called or _CALLBACK(on_call)  # kept: CUPTI holds its address
        self._require(self._cupti.cuptiSubscribe(byref(self._handle), self._called, None), "subscribe")
        self.report(numbers)

    def report(self, numbers: Iterable[int]) -> None:
        """Also have these calls reported. An older CUPTI lacks the newest: nothing calls these then."""
        for number in numbers:
            self._cupti.cuptiEnableCallback(c_uint32(1), self._handle, c_int(_DRIVER_DOMAIN), c_uint32(number))

    def close(self) -> None:
        """End the calls."""
        if self._handle.value:
            self._cupti.cuptiUnsubscribe(self._handle)
            self._handle = c_void_p()

    def _require(self, status: int, what: str) -> None:
        if status == _OTHERS:
            error = CuptiError(
                "another profiler observes this process",
                cause="CUPTI serves one subscriber at a time: Nsight, torch.profiler or Triton's Proton",
                correction="end it, or capture the launches in a run of their own",
            )
            error.taken = True
            raise error
        if status:
            raise CuptiError(
                f"CUPTI cannot {what}: error {status}", cause="CUPTI and the driver may be of two versions"
            )
