"""CUDA libraries that need no GPU, in C++: what of them a program of the corpus gets, and how they are built."""

import subprocess
from pathlib import Path

from tools.corpus.environment import ROOT

NO_GPU = ROOT / "pipesim" / "launches" / "observe" / "no_gpu"  #: of `pipesim launches --no-gpu`
CUDA = Path("/usr/local/cuda")
_HERE = NO_GPU
_OPTIONS = ("-O1", "-fPIC", f"-I{CUDA}/include", f"-I{NO_GPU}")


def runtime(folder: Path) -> Path:
    """``cudart.o`` for programs that are linked without the CUDA runtime."""
    made = folder / "cudart.o"
    if _stale(made, "cudart.cpp", "noted.hpp"):
        subprocess.run(["g++", "-std=c++17", *_OPTIONS, "-c", _HERE / "cudart.cpp", "-o", made], check=True)
    return made


def cute(folder: Path) -> Path:
    """The library to preload for host code of the CuTe DSL."""
    made = folder / "cute.so"
    source = Path(__file__).with_name("cute.cpp")
    if _stale(made, str(source), "cudart.cpp", "noted.hpp"):
        subprocess.run(["g++", "-std=c++17", *_OPTIONS, "-shared", source, "-o", made], check=True)
    return made


def driver(folder: Path) -> Path:
    """A folder with ``libcuda.so.1`` and ``libnvidia-ml.so.1``, for programs that load them by name."""
    folder = folder / "libraries"
    folder.mkdir(parents=True, exist_ok=True)
    if _stale(folder / "libcuda.so.1", "driver.cpp", "noted.hpp", "rest.c"):
        subprocess.run(["gcc", *_OPTIONS, "-c", _HERE / "rest.c", "-o", folder / "rest.o"], check=True)
        sources: list[str | Path] = [_HERE / "driver.cpp", folder / "rest.o", "-o", folder / "libcuda.so.1"]
        subprocess.run(["g++", "-std=c++17", *_OPTIONS, "-shared", *sources], check=True)
        management: list[str | Path] = [_HERE / "nvml.cpp", "-o", folder / "libnvidia-ml.so.1"]
        subprocess.run(["g++", "-std=c++17", *_OPTIONS, "-shared", *management], check=True)
    return folder


def _stale(made: Path, *sources: str) -> bool:
    newest = max((_HERE / each).stat().st_mtime for each in sources)
    return not made.is_file() or made.stat().st_mtime < newest
