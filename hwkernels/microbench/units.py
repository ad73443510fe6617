"""What products of a warp group and a try of a wait take on a GPU: ``tensor.cu`` and ``tries.cu`` say what is executed.

Of a round with 8 products and one with 4 the difference is what four products take; what is left is the latency of a
round.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hwkernels.device.compile import CompiledKernel, compile_cubin
from hwkernels.device.launch import DeviceInfo, Gpu

TENSOR, TRIES = (Path(__file__).parent / name for name in ("tensor.cu", "tries.cu"))
SMEM_BYTES = 66 * 1024  #: two tiles, at a multiple of 1,024
COLUMNS = 128  #: of a product
ROUNDS = 100
_THREADS = 128
_WORDS = 32  #: of what a launch writes
_MULTIPLY_ADDS = 64 * COLUMNS * 16  #: of one product


class UnitBench(Protocol):
    """Who launches: a GPU, or a test's substitute for it."""

    def products(self, batch: int, rounds: int) -> int:
        """The cycles of this many rounds of this many products."""

    def tries(self) -> npt.NDArray[np.uint32]:
        """What ``tries.cu`` writes: cycles of the first try, and of four more."""


def measure(bench: UnitBench) -> Mapping[str, int]:
    """The values of a latency profile that these kernels measure."""
    each = (round_of(bench, 8) - round_of(bench, 4)) / 4
    return {
        "mma.per_kcycle": round(1000 * _MULTIPLY_ADDS / each),
        "try.limit": int(np.median(bench.tries()[1:])),
    }


def round_of(bench: UnitBench, batch: int) -> float:
    """Cycles of a round: the difference of two launches, without what begins and ends one."""
    bench.products(batch, ROUNDS)  # fetches the code
    return (bench.products(batch, 2 * ROUNDS) - bench.products(batch, ROUNDS)) / ROUNDS


def compile_kernel(batch: int) -> CompiledKernel:
    """The kernel with this many products in a round."""
    return compile_cubin(TENSOR, {"COLUMNS": COLUMNS, "BATCH": batch})


class GpuUnits:
    """One CTA on one SM of a GPU. To be closed."""

    def __init__(self, info: DeviceInfo) -> None:
        self._gpu = Gpu(info)
        self._out = self._gpu.allocate(4 * _WORDS)

    def products(self, batch: int, rounds: int) -> int:
        """As :class:`UnitBench` has it."""
        kernel = self._gpu.load(compile_kernel(batch), SMEM_BYTES)
        self._gpu.launch(kernel, (1, _THREADS, SMEM_BYTES), (np.uint32(rounds), self._out))
        return int(self._read()[0])

    def tries(self) -> npt.NDArray[np.uint32]:
        """As :class:`UnitBench` has it."""
        self._gpu.launch(self._gpu.load(compile_cubin(TRIES, {}), 0), (1, 32, 0), (np.uint32(0), self._out))
        return self._read()[:5]

    def _read(self) -> npt.NDArray[np.uint32]:
        found = np.zeros(_WORDS, dtype=np.uint32)
        self._gpu.download(self._out, found)
        return found

    def close(self) -> None:
        """Give the GPU back."""
        self._gpu.close()
