"""Kernels of the CuTe DSL out of packages, compiled without a GPU: ``python on_cute.py FOLDER ARCH`` (see ../cute.py).

Tensors are the host's and pass for a GPU's. What a package compiles is kept as PTX and called immediately, with the
arguments that it was compiled for; the libraries of ``fake`` note the launch.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cuda.bindings.driver
import cutlass.cute as cute
import torch
from cutlass.cutlass_dsl.cuda_jit_executor import CudaDialectJitCompiledFunction
from cutlass.utils.hardware_info import HardwareInfo
from flash_attn.cute import cute_dsl_utils
from flash_attn.cute import interface as attention

from pipesim.ptx.text.read import read_module
from tools.corpus.corpus_kernel import CorpusKernel
from tools.corpus.launch_notes import launches_noted, sizes_file

_COMPILE = cute.compile
_FORWARD = "_flash_attn_fwd"  #: what the public function calls, which takes an architecture
_PTX = Path(os.environ["CUTE_DSL_DUMP_DIR"])
_SMS = int(os.environ["PIPESIM_SMS"])
_SIZES, _NOTES = Path(os.environ["PIPESIM_SIZES"]), Path(os.environ["PIPESIM_NOTES"])


def compiled(function: Any, *args: Any, options: str = "", **named: Any) -> Callable[..., None]:
    """Compile what a package compiles, for the host's tensors; a call launches it with the arguments of this one."""
    called = function if inspect.isfunction(function) else function.__call__
    given = inspect.signature(called).parameters.values()
    found = _COMPILE(function, *args, **named)
    at_run_time = [arg for arg, each in zip(args, given, strict=False) if "Constexpr" not in str(each.annotation)]

    def launch(*_: Any, **__: Any) -> None:
        newest = max(_PTX.glob("*.ptx"), key=lambda path: path.stat().st_mtime_ns)
        text = newest.read_text(encoding="utf-8").rstrip("\0")
        _SIZES.write_text(sizes_file(read_module(text, newest.name)), encoding="utf-8")
        launches.append(text)
        found(*at_run_time, **named)

    return launch


launches: list[str] = []  #: the PTX of each launch, in order


def _attention(arch: str, depth: int, length: int = 512, key_heads: int = 2, **options: Any) -> Callable[[], None]:
    def run() -> None:
        q = torch.zeros(1, length, 2, depth, dtype=torch.bfloat16)
        k, v = (torch.zeros(1, 512, key_heads, depth, dtype=torch.bfloat16) for _ in range(2))
        getattr(attention, _FORWARD)(q, k, v, _arch=int(arch.strip("sm_a")), **options)

    return run


def kernels(arch: str) -> Iterator[tuple[str, Callable[[], None]]]:
    """What is launched on an architecture: the corpus's name of it, and a function that launches it."""
    yield "flash_fwd_d128", _attention(arch, 128)
    yield "flash_fwd_d128_causal", _attention(arch, 128, causal=True)
    yield "flash_fwd_d64", _attention(arch, 64)
    yield "flash_fwd_d64_window", _attention(arch, 64, window_size_left=128, window_size_right=0)
    yield "flash_fwd_d128_grouped", _attention(arch, 128, key_heads=1, causal=True)
    yield "flash_fwd_d64_decode", _attention(arch, 64, length=1, key_heads=1)


def _pass_for_gpu(arch: str) -> None:
    """Let the host's tensors pass for a GPU's of this architecture, and packages compile for them."""
    number = int(arch.strip("sm_a"))
    interface: Any = attention
    torch.Tensor.is_cuda = property(lambda _: True)
    torch.cuda.get_device_capability = lambda *_: (number // 10, number % 10)
    CudaDialectJitCompiledFunction.num_devices = property(lambda _: 1)
    HardwareInfo.__init__ = lambda *_, **__: None
    HardwareInfo.get_max_active_clusters = lambda _, cluster_size, *__: _SMS // cluster_size
    HardwareInfo.get_device_multiprocessor_count = lambda *_: _SMS
    cute.compile = compiled
    cute.runtime.make_fake_stream = lambda **_: cuda.bindings.driver.CUstream(0)
    tensor = functools.partial(cute_dsl_utils.to_cute_tensor, enable_tvm_ffi=False)
    interface.to_cute_tensor = tensor


def main(folder: Path, arch: str) -> None:
    """Launch everything; a kernel that cannot be compiled is named, and the next one follows."""
    warnings.simplefilter("ignore")
    _pass_for_gpu(arch)
    for name, launch in kernels(arch):
        launches.clear()
        _NOTES.unlink(missing_ok=True)
        try:
            launch()
        except Exception as error:  # noqa: BLE001  # whatever a compiler raises
            print(f"{name}-{arch}: {type(error).__name__}: {str(error).strip()[:300]}", flush=True)
        found = zip(launches, launches_noted(_NOTES) if _NOTES.is_file() else (), strict=False)
        kept = [(text, launch) for text, launch in found if "mbarrier" in text]
        for number, (text, launched) in enumerate(kept):
            built = CorpusKernel(arch, name + (f"_{number + 1}" if number else ""), text, launched)
            built.save(folder)
            print(built.stem, flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
