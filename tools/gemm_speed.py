"""How fast ``gemm_sm90.cu`` is beside cuBLAS: ``python tools/gemm_speed.py [--size 8192] [--json FILE]``.

Needs a Hopper GPU, and PyTorch for cuBLAS (without it the last columns stay empty). Both multiply the same random
matrices, launch by launch in turn; medians of CUDA events. Rows of each result are held against float64.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # works from a checkout that is not installed


from hwkernels.device.bf16 import from_bf16, random_bf16
from hwkernels.device.compile import compile_cubin
from hwkernels.device.launch import Gpu, require_gpu
from hwkernels.device.tensor_maps import encode
from hwkernels.recorder.layout import FINISHED, REPORT
from hwkernels.twins.hopper.gemm_sm90 import GEMM_SM90, GROUP_ROWS, RASTER, defines, shape, tensor_maps
from pipesim.errors import HardwareError, PipesimError
from pipesim.targets import find

SHAPES: tuple[dict[str, int], ...] = (
    {"stages": 3, "block_n": 256},
    {"stages": 3, "block_n": 256, "lookahead": 1},
    {"stages": 2, "block_n": 256, "k_group_size": 2},
    {"stages": 4, "block_n": 128},
    {"stages": 6, "block_n": 128},
    {"stages": 6, "block_n": 128, "k_group_size": 2},
    {"stages": 4, "block_n": 128, "k_group_size": 4},
    {"stages": 4, "block_n": 256, "num_consumer": 1},
)
_ROWS, _REPETITIONS, _LIMIT_S, _DEADLINE_NS = 48, 15, 5.0, 200_000_000

Blas = Callable[[], float]


class Multiplication:
    """Square matrices on the device, and launches that multiply them."""

    def __init__(self, size: int, seed: int) -> None:
        self.info = require_gpu()
        self.gpu, self.size = Gpu(self.info), size
        random = np.random.default_rng(seed)
        self.a, self.b = (random_bf16(random, (size, size)) for _ in range(2))
        self.rows = random.choice(size, _ROWS, replace=False)
        self.expected = from_bf16(self.a[self.rows]).astype(np.float64) @ from_bf16(self.b).astype(np.float64).T
        self.at = {name: self.gpu.allocate(2 * size * size) for name in ("a", "b", "c")}
        self.gpu.upload(self.at["a"], self.a)
        self.gpu.upload(self.at["b"], self.b)
        self.reports, self.stop = self.gpu.allocate(self.info.sms * REPORT.itemsize), self.gpu.allocate(4)

    def launcher(self, changes: dict[str, int]) -> Callable[[], int]:
        """A function that launches this configuration, and gives its nanoseconds. HardwareError if it gives up."""
        params, gpu, size = find("gemm_sm90").defaults | changes, self.gpu, self.size
        m_tiles, n_tiles = size // (GROUP_ROWS * params["num_consumer"]), size // params["block_n"]
        launch = shape(params, min(self.info.sms, m_tiles * n_tiles))
        kernel = gpu.load(compile_cubin(GEMM_SM90.source, {**defines(params), "PIPESIM_TRACE": 0}), launch.smem_bytes)
        maps = [encode(tensor.at(self.at[tensor.of])) for tensor in tensor_maps(params, size, size, size)]
        numbers = (m_tiles, n_tiles, size // params["block_k"], RASTER, 0, _DEADLINE_NS)
        arguments: list[Any] = [*maps, *(np.uint32(n) for n in numbers), self.reports, self.stop]
        reports = np.zeros(launch.grid[0], dtype=REPORT)

        def run() -> int:
            gpu.fill(self.reports, 0, reports.nbytes)
            gpu.fill(self.stop, 0, 4)
            taken = gpu.launch_within(kernel, launch, arguments, _LIMIT_S)
            gpu.download(self.reports, reports)
            if (reports["status"] != FINISHED).any():
                raise HardwareError(f"gemm_sm90 gave up with {changes}")
            return taken

        return run

    def error(self) -> float:
        """The relative error of some rows of C in the Frobenius norm."""
        c = np.zeros((self.size, self.size), dtype=np.uint16)
        self.gpu.download(self.at["c"], c)
        found = from_bf16(c[self.rows]).astype(np.float64)
        return float(np.linalg.norm(found - self.expected) / np.linalg.norm(self.expected))

    def blas(self) -> Blas | None:
        """The same by cuBLAS: a function that gives its nanoseconds; None without PyTorch."""
        try:
            import torch
        except ImportError:
            return None
        a, b = (torch.from_numpy(x.view(np.int16)).cuda().view(torch.bfloat16) for x in (self.a, self.b))
        out = torch.empty((self.size, self.size), dtype=torch.bfloat16, device="cuda")

        def run() -> float:
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            torch.matmul(a, b.T, out=out)
            end.record()
            end.synchronize()
            return 1e6 * float(begin.elapsed_time(end))

        return run


def measure(work: Multiplication, blas: Blas | None, changes: dict[str, int]) -> dict[str, Any]:
    """One configuration beside cuBLAS."""
    work.gpu.fill(work.at["c"], 0xFF, 2 * work.size**2)
    run = work.launcher(changes)
    run()
    error = work.error()
    for _ in range(3):
        run()
    pairs = [(run(), blas() if blas else 0.0) for _ in range(_REPETITIONS)]
    tera = 2e-3 * work.size**3
    ours, theirs = (median(pair[which] for pair in pairs) for which in (0, 1))
    return {
        "params": changes, "us": ours / 1e3, "tflops": tera / ours, "error": error,
        "blas_tflops": tera / theirs if theirs else 0.0, "share": theirs / ours,
    }  # fmt: skip


def main() -> int:
    """Measure all shapes and print a line for each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=8192, help="rows and columns (a multiple of 256)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--json", type=Path, help="where the numbers go")
    options = parser.parse_args()
    try:
        work = Multiplication(options.size, options.seed)
        blas = work.blas()
        if blas:
            for _ in range(5):
                blas()
        found = [measure(work, blas, changes) for changes in SHAPES]
    except PipesimError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    print(f"{work.info.name}, {options.size}^3, bf16, seed {options.seed}")
    for each in found:
        beside = f"{100 * each['share']:.0f} % of cuBLAS ({each['blas_tflops']:.0f})" if each["share"] else "no PyTorch"
        name = " ".join(f"{key}={value}" for key, value in each["params"].items())
        print(f"{name:42} {each['us']:7.0f} us {each['tflops']:5.0f} TFLOP/s  {beside}  error {each['error']:.1e}")
    if options.json:
        options.json.write_text(json.dumps({"device": work.info.name, "size": options.size, "runs": found}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
