"""``python -m hwkernels.microbench.turns``: in which order a tensor core takes the products of two warp groups.

``turns.cu`` says what is executed. A line for each number of products and each start of the second group: of a warp of
either group when it began, had issued its first products and the others, and had the results of both, in cycles. Then
a line for each start of the second group while the first warp of the first one is late: of that warp, the next of its
group and one of the other group.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hwkernels.device.compile import Compiled, compile_cubin
from hwkernels.device.launch import DeviceInfo, Gpu
from hwkernels.microbench.table import print_table

TURNS = Path(__file__).parent / "turns.cu"
SMEM_BYTES = 66 * 1024  #: two tiles, at a multiple of 1,024
THREADS = 256
_WORDS = 41  #: of what a launch writes
SIZES = ((128, 4, 0), (128, 8, 0), (128, 16, 0), (128, 8, 8), (256, 4, 0), (256, 8, 0), (64, 8, 8))
APART = 600  #: cycles by which the first warp of the first group is late, where it is
LATER = (0, 20, 40, 60, 100, 150, 200, 300, 400, 500, 600, 800, 1000, 1300)


def compiled(columns: int, first: int, second: int, arch: str = "sm_90a") -> Compiled:
    """The kernel for products of so many columns, so many with A in shared memory and so many with A in registers."""
    return compile_cubin(TURNS, {"COLUMNS": columns, "FIRST": first, "SECOND": second}, arch)


def row(
    columns: int, products: tuple[int, int], later: int, words: npt.NDArray[np.uint32], warps: tuple[int, ...] = (0, 4)
) -> str:
    """A line of the table, of some warps. ``words``: what ``turns.cu`` writes, (8, 5)."""
    told = "  |".join("".join(f"{each:6}" for each in words[warp].tolist()) for warp in warps)
    return f"{columns:4} {products[0]:2} + {products[1]:2}  later {later:5}  {told}"


def lines(info: DeviceInfo) -> Iterator[str]:
    """The table, measured on this GPU."""
    gpu = Gpu(info)
    out = gpu.allocate(4 * _WORDS)
    words = np.zeros(_WORDS, dtype=np.uint32)
    for apart, warps in ((0, (0, 4)), (APART, (0, 1, 4))):
        for columns, first, second in SIZES:
            kernel = gpu.load(compiled(columns, first, second), SMEM_BYTES)
            for later in LATER:
                gpu.launch(kernel, (1, THREADS, SMEM_BYTES), (np.uint32(later), np.uint32(apart), out))
                gpu.download(out, words)
                yield row(columns, (first, second), later, words[:40].reshape(8, 5), warps)
    gpu.close()


def main() -> int:
    """Print the table; the exit code is that of the error, if any."""
    return print_table(lines)


if __name__ == "__main__":
    sys.exit(main())
