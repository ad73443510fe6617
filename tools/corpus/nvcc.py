"""nvcc out of the package index: CUDA C++ to PTX."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path

from tools.corpus.environment import Environment

#: nvcc with what it runs and includes, of one CUDA release: PyTorch asks for headers of an older one.
ENVIRONMENT = Environment(
    "nvcc", ("nvidia-cuda-nvcc", "nvidia-cuda-crt", "nvidia-nvvm", "nvidia-cuda-runtime", "nvidia-cuda-cccl")
)


def to_ptx(source: Path, arch: str, include: Iterable[Path], defines: Iterable[str] = ()) -> str:
    """The PTX of a CUDA source. CalledProcessError if nvcc refuses it."""
    home = ENVIRONMENT.made() / "nvidia" / "cu13"
    for tool in [*(home / "bin").iterdir(), *(home / "nvvm" / "bin").iterdir()]:
        if tool.is_file():
            tool.chmod(0o755)  # wheels do not keep it
    out = source.with_suffix(f".{arch}.ptx")
    command: list[str | Path] = ["nice", home / "bin" / "nvcc", "-std=c++17", "-O3", f"-arch={arch}", "-ptx", "-w"]
    command += ["-lineinfo", "--expt-relaxed-constexpr", *(f"-D{name}" for name in defines)]
    command += [f"-I{folder}" for folder in [*include, home / "include" / "cccl"]]
    given = {**os.environ, "PATH": f"{home / 'bin'}:{os.environ['PATH']}"}
    subprocess.run([*command, source, "-o", out], env=given, check=True, capture_output=True, text=True, timeout=1200)
    return out.read_text(encoding="utf-8")
