"""A CUDA driver and a CUPTI without a GPU, in C, for tests of what observes a process.

::

    fake = fake_cuda.built(folder)  # skips the test where there is no C compiler
    fake.run("data", "kernel.ptx", "launch", "copy__8_4", environment=...)  # program.c: see the list at its top

``fake.folder`` has ``libcuda.so.1``, ``libcupti.so.13``, ``program``, and ``program.so``, whose ``main`` a process in
Python can call; one that is started with
``fake.environment()`` loads them by name, so that Python with ctypes can use them, too. A kernel's parameters follow
from its name: ``copy__8_4`` has one of 8 bytes and one of 4, ``tiles__128_8`` a tensor map and a pointer. A kernel
``killed…`` ends the process in its launch, one named ``cluster…`` requires a cluster of 2. ``cuInit`` loads what
``CUDA_INJECTION64_PATH`` names, as the driver does. ``FAKE_CUDA_ARCH`` is the device's architecture
(90; ``90,80`` for two devices), with ``FAKE_CUDA_NO_CONTEXT`` no device is current,
``FAKE_CUPTI_TAKEN`` lets CUPTI refuse as if another profiler were there, ``FAKE_CUPTI_REFUSES`` as if the driver were
too old for the library that has this text in its path.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

_HERE = Path(__file__).parent
_LIBRARIES = {"libcuda.so.1": "cuda.c", "libcupti.so.13": "cupti.c"}


@dataclass(frozen=True)
class FakeCuda:
    """What was built, in a folder."""

    folder: Path

    def environment(self) -> dict[str, str]:
        """The variables of this process, with which a child loads the fakes; no CUDA of the machine."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("CUDA_", "PIPESIM_"))}
        return kept | {"LD_LIBRARY_PATH": str(self.folder), "PIPESIM_CUPTI": str(self.folder / "libcupti.so.13")}

    def run(
        self, *commands: str | Path | int, environment: Mapping[str, str] | None = None
    ) -> subprocess.CompletedProcess[str]:
        """Run the program with these commands. What it prints at its end is its result."""
        words = [str(self.folder / "program"), *map(str, commands)]
        chosen = self.environment() | dict(environment or {})
        return subprocess.run(
            words, env=chosen, capture_output=True, text=True, timeout=60, check=False, cwd=self.folder
        )


def built(folder: Path) -> FakeCuda:
    """The fakes, compiled into ``folder``. Skips the test where there is no C compiler."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        pytest.skip("there is no C compiler")
    options = [compiler, "-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-pthread"]
    for name, source in _LIBRARIES.items():
        soname = f"-Wl,-soname,{name}"
        _run([*options, "-fPIC", "-shared", soname, str(_HERE / source), "-o", str(folder / name), "-ldl"])
    libraries = [f"-L{folder}", "-l:libcuda.so.1"]
    _run([*options, str(_HERE / "program.c"), "-o", str(folder / "program"), *libraries])
    _run([*options, "-fPIC", "-shared", str(_HERE / "program.c"), "-o", str(folder / "program.so"), *libraries])
    return FakeCuda(folder)


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
