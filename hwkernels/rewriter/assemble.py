"""ptxas: from PTX to a cubin, with the registers, spills and stack that it says."""

import re
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from pipesim.errors import HardwareError, PtxError

_NEWER = re.compile(r"Unsupported \.version .*\s*current version is '([\d.]+)'")
_VERSION = re.compile(r"^\s*\.version\s+[\d.]+", re.MULTILINE)
_TARGET = re.compile(r"^\s*\.target\s+(sm_\w+)", re.MULTILINE)
_ENTRY = re.compile(r"Compiling entry function '([^']+)'")
_REGISTERS = re.compile(r"Used (\d+) registers")
_STACK = re.compile(r"(\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads")
_WARNING = re.compile(r"\(C\d+\) Potential Performance Loss: (.*?)(?: in the function.*)?$", re.MULTILINE)
_LIMIT_S = 600


@dataclass(frozen=True)
class AssembledCubin:
    """A cubin, and what it takes: registers of a thread, bytes of spill stores and loads, bytes of stack."""

    cubin: bytes
    registers: int
    spills: int
    stack: int
    warnings: tuple[str, ...]


@cache
def find_ptxas() -> Path:
    """The newest ptxas: on the path, in a CUDA toolkit, in NVIDIA's packages or in Triton. HardwareError if none is."""
    found = {Path(on_path).resolve()} if (on_path := shutil.which("ptxas")) else set()
    found |= set(Path("/usr/local").glob("cuda*/bin/ptxas"))
    for package, below in (("nvidia", "cu*/bin/ptxas"), ("triton", "backends/nvidia/bin/ptxas")):
        spec = find_spec(package)
        for folder in (spec.submodule_search_locations or ()) if spec is not None else ():
            found |= set(Path(folder).glob(below))
    if not found:
        raise HardwareError(
            "there is no ptxas",
            cause="it is on no path, in no CUDA toolkit under /usr/local, in no package of NVIDIA's and not in Triton",
            correction="install it with `pip install nvidia-cuda-nvcc`",
        )
    return max(sorted(found), key=_release)


def _release(ptxas: Path) -> tuple[int, ...]:
    """Its release, (0,) if it does not run."""
    try:
        said = subprocess.run([str(ptxas), "--version"], capture_output=True, text=True, timeout=60, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return (0,)
    found = re.search(r"release (\d+)\.(\d+)", said.stdout)
    return (int(found[1]), int(found[2])) if found is not None else (0,)


def assemble(ptx: str, entry: str = "", ptxas: Path | None = None, options: tuple[str, ...] = ()) -> AssembledCubin:
    """Assemble PTX for the architecture that its ``.target`` names.

    A text newer than ptxas is assembled as the latest version that it knows: a version of PTX adds to the one before,
    and what that one has not is refused (PTX ISA, "Release Notes").

    ``entry``: the kernel whose registers are reported, the first if "". ``options``: more of ptxas. Raises PtxError
    with what ptxas says, or HardwareError without ptxas.
    """
    target = _TARGET.search(ptx)
    if target is None:
        raise PtxError("the PTX names no architecture", cause="it has no .target")
    with tempfile.TemporaryDirectory() as folder:
        source, cubin = Path(folder) / "kernel.ptx", Path(folder) / "kernel.cubin"
        source.write_text(ptx)
        command = [str(ptxas or find_ptxas()), "-v", f"-arch={target[1]}", *options, str(source), "-o", str(cubin)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LIMIT_S, check=False)  # noqa: S603
        if done.returncode or not cubin.is_file():
            lines = done.stderr.splitlines()
            said = next((line for line in lines if "error" in line or "fatal" in line), done.stderr[-200:])
            known = _NEWER.search(done.stderr)
            older = _VERSION.sub(f".version {known[1]}", ptx, count=1) if known is not None else ptx
            if older != ptx:
                return assemble(older, entry, ptxas, options)
            raise PtxError("ptxas refuses the rewritten PTX", cause=" ".join(said.split()))
        return _run_ptxas(done.stderr, entry, cubin.read_bytes())


def _run_ptxas(text: str, entry: str, cubin: bytes) -> AssembledCubin:
    parts = _ENTRY.split(text)
    said = dict(zip(parts[1::2], parts[2::2], strict=True))
    mine = said.get(entry) or next(iter(said.values()), "")
    registers = int(found[1]) if (found := _REGISTERS.search(mine)) else 0
    stack, stores, loads = (int(each) for each in found.groups()) if (found := _STACK.search(mine)) else (0, 0, 0)
    return AssembledCubin(cubin, registers, stores + loads, stack, tuple(dict.fromkeys(_WARNING.findall(text))))
