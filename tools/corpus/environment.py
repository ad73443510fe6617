"""Environments of their own, outside of the repository, with the packages of a family from the package index."""

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "pipesim-corpus"


@dataclass(frozen=True)
class Environment:
    """A virtual environment with some packages; ``beside``: another one, whose packages it can also import."""

    name: str
    packages: tuple[str, ...]
    beside: "Environment | None" = None

    @property
    def folder(self) -> Path:
        """Where it is."""
        return CACHE / self.name

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.folder / "bin" / "python"

    def made(self) -> Path:
        """Make it if it is not there, and install what is missing; where its packages are."""
        if not self.python.is_file():
            subprocess.run([sys.executable, "-m", "venv", self.folder], check=True)
        done = self.folder / "installed.txt"
        wanted = "\n".join(self.packages)
        if not done.is_file() or done.read_text(encoding="utf-8") != wanted:
            if self.beside is not None:
                (self._packages / "beside.pth").write_text(f"{self.beside.made()}\n", encoding="utf-8")
            subprocess.run([self.python, "-m", "pip", "install", "--quiet", *self.packages], check=True)
            done.write_text(wanted, encoding="utf-8")
        return self._packages

    @property
    def _packages(self) -> Path:
        (found,) = self.folder.glob("lib/python*/site-packages")
        return found

    def lines(self, *arguments: str | Path, **variables: str) -> Iterator[str]:
        """Run a Python program in it; its lines as they come. It can import pipesim, but not what pipesim needs."""
        given = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **variables}
        command = [self.python, *arguments]
        with subprocess.Popen(command, env=given, cwd=ROOT, stdout=subprocess.PIPE, text=True) as running:
            assert running.stdout is not None
            for line in running.stdout:
                yield line.rstrip()
        if running.returncode:
            yield f"{Path(arguments[0]).name} ended with {running.returncode}"


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
