"""TileLang kernels of ours, compiled offline: its compiler writes CUDA, nvcc makes the PTX."""

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from pipesim.ptx.launch.values import Content, Launch, Parameter, Pointer, TensorMap
from tools.corpus.corpus_kernel import CorpusKernel
from tools.corpus.environment import ROOT, Environment, to_ptx

ENVIRONMENT = Environment("tilelang", ("tilelang",))
_SCRIPT = ROOT / "tools" / "corpus" / "kernels" / "on_tilelang.py"
_SIGNATURE = re.compile(r"__global__ void kernel_kernel\((?P<parameters>[^)]*)\);")
_THREADS = re.compile(r"__launch_bounds__\((\d+)")
_GRIDS = {"gemm_s3": (4, 4, 1), "gemm_s2_wide": (2, 4, 1), "attention_s2": (8, 2, 1), "attention_s1": (4, 2, 1)}
_SHARED = 160 << 10  #: bytes of dynamic shared memory: enough for each
_REGISTERS = 168  #: of a thread, as nvcc gives 384 threads


def tilelang(folder: Path) -> Iterator[str]:
    """The kernels of ``kernels/on_tilelang.py``."""
    packages = ENVIRONMENT.made()
    sources = ENVIRONMENT.folder / "sources"
    here = packages / "tilelang"
    for line in ENVIRONMENT.lines(_SCRIPT, sources):
        name, _, arch = line.rpartition("-")
        if name not in _GRIDS:
            yield line
            continue
        source = sources / f"{line}.cu"
        try:
            ptx = to_ptx(source, arch, [here / "src", here / "3rdparty" / "cutlass" / "include"])
        except subprocess.CalledProcessError as error:
            yield f"{line}: {error.stderr[:300]}"
            continue
        CorpusKernel(arch, name, ptx, _launch(source.read_text(encoding="utf-8"), name)).save(folder)
        yield line


def _launch(source: str, name: str) -> Launch:
    signature, threads = _SIGNATURE.search(source), _THREADS.search(source)
    assert signature is not None, source
    assert threads is not None, source
    parameters = tuple(_parameter(each, name) for each in signature["parameters"].split(","))
    return Launch(
        "kernel_kernel", _GRIDS[name], (int(threads[1]), 1, 1), (1, 1, 1), _SHARED, _REGISTERS, parameters=parameters
    )


def _parameter(declared: str, name: str) -> Parameter:
    """A tensor map with its box, or a pointer."""
    title = declared.rsplit(maxsplit=1)[-1]
    content: Content = Pointer()
    if "CUtensorMap" in declared:
        content = TensorMap("f16", box=(64, 128) if title == "a_desc" else (64, 64)) if "gemm" in name else TensorMap()
    return Parameter(title, content)
