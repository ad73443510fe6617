"""``python -m hwkernels.microbench.units``: what products take on the GPU of this machine, alone and beside other work.

``tensor.cu`` and ``tries.cu`` say what is executed. Of a round with 8 products and one with 4 the difference is what
four products take; what is left is the latency of a round. A table is printed for each size and place of operands.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path
from typing import Protocol

import numpy as np
import numpy.typing as npt

from hwkernels.device.compile import Compiled, compile_cubin
from hwkernels.device.launch import DeviceInfo, Gpu
from hwkernels.microbench.table import print_table

TENSOR, TRIES = (Path(__file__).parent / name for name in ("tensor.cu", "tries.cu"))
SMEM_BYTES = 66 * 1024  #: two tiles, at a multiple of 1,024
THREADS = 256
ROUNDS = 100
_WORDS = 32  #: of what a launch writes
_MULTIPLY_ADDS = 64 * 128 * 16  #: of one product of 128 columns


class Operands(IntEnum):
    """Where A of a product is: ``OPERANDS`` of ``tensor.cu``."""

    SHARED = 0
    REGISTERS = 1
    BOTH = 2


class Beside(IntEnum):
    """What the other warp group executes: ``Beside`` of ``tensor.cu``."""

    NOTHING = 0
    FMA = 1
    EXP2 = 2
    ALU = 3
    SOFTMAX = 4
    PRODUCTS = 5
    LOADS = 6


@dataclass(frozen=True)
class Products:
    """One build of ``tensor.cu``."""

    columns: int = 128
    operands: Operands = Operands.SHARED
    beside: Beside = Beside.NOTHING
    batch: int = 8

    def compiled(self, arch: str = "sm_90a") -> Compiled:
        """Its kernel."""
        defines = {
            "COLUMNS": self.columns,
            "OPERANDS": int(self.operands),
            "BESIDE": int(self.beside),
            "BATCH": self.batch,
        }
        return compile_cubin(TENSOR, defines, arch)


class UnitBench(Protocol):
    """Who launches: a GPU, or what a test puts in its place."""

    def products(self, what: Products, rounds: int) -> npt.NDArray[np.uint32]:
        """What ``tensor.cu`` writes: (8, 4)."""

    def tries(self) -> npt.NDArray[np.uint32]:
        """What ``tries.cu`` writes: cycles of the first try, and of four more."""


def measure(bench: UnitBench) -> Mapping[str, int]:
    """The values of a latency profile that these kernels measure."""
    each = (round_of(bench, Products(batch=8)) - round_of(bench, Products(batch=4))) / 4
    return {
        "mma.per_kcycle": round(1000 * _MULTIPLY_ADDS / each),
        "try.limit": int(np.median(bench.tries()[1:])),
    }


def round_of(bench: UnitBench, what: Products) -> float:
    """Cycles of a round: the difference of two launches, without what begins and ends one."""
    bench.products(what, ROUNDS)  # fetches the code
    long, short = (int(bench.products(what, rounds)[0, 0]) for rounds in (2 * ROUNDS, ROUNDS))
    return (long - short) / ROUNDS


class GpuUnits:
    """One CTA on one SM of a GPU. To be closed."""

    def __init__(self, info: DeviceInfo) -> None:
        self._gpu = Gpu(info)
        self._out = self._gpu.allocate(4 * _WORDS)

    def products(self, what: Products, rounds: int) -> npt.NDArray[np.uint32]:
        """As :class:`UnitBench` has it."""
        kernel = self._gpu.load(what.compiled(), SMEM_BYTES)
        self._gpu.launch(kernel, (1, THREADS, SMEM_BYTES), (np.uint32(rounds), self._out))
        return self._read().reshape(8, 4)

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


def row(bench: UnitBench, what: Products) -> str:
    """A line of the table."""
    words = bench.products(what, ROUNDS)
    issue, turns = int(words[0, 1]) / ROUNDS, int(words[4, 2])
    computes = what.beside not in {Beside.NOTHING, Beside.PRODUCTS} and turns
    other = f"{int(words[4, 0]) / (64 * turns):6.2f} cycles an instruction beside" if computes else ""
    name = f"{what.columns:4} {what.operands.name.lower():<10} beside {what.beside.name.lower():<9}"
    return f"{name} {round_of(bench, what):8.1f} cycles a round, {issue:7.1f} to issue  {other}".rstrip()


def lines(info: DeviceInfo) -> Iterator[str]:
    """The tables, measured on this GPU."""
    bench = GpuUnits(info)
    for columns in (64, 128, 256):
        for operands in Operands:
            if columns < 256 or operands is not Operands.BOTH:  # more registers than a thread has
                for beside in Beside:
                    yield row(bench, Products(columns, operands, beside))
    for name, value in measure(bench).items():
        yield f"{name} {value:,}"
    bench.close()


def main() -> int:
    """Print the table; the exit code is that of the error, if any."""
    return print_table(lines)


if __name__ == "__main__":
    sys.exit(main())
