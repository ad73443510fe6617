"""``python -m hwkernels.microbench.transfers``: loads and stores that meet in the copy engine of an SM.

``transfers.cu`` says what is executed. A line for each plan: of each warp that starts copies when it began, had started
them, found them landed or read, and found them written, in cycles.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from enum import IntEnum
from itertools import product
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hwkernels.device.compile import Compiled, compile_cubin
from hwkernels.device.launch import DeviceInfo, Gpu
from hwkernels.device.tensor_maps import encode, matrix
from hwkernels.microbench.table import print_table

TRANSFERS = Path(__file__).parent / "transfers.cu"
WARPS = 4
AREA = 48 * 1024  #: bytes of shared memory of each warp
SMEM_BYTES = WARPS * AREA + 1024
THREADS = 32 * WARPS
BOX = 8192  #: bytes of a box: 64 rows of 128 bytes
_MEMORY = WARPS << 20  #: bytes of device memory that is copied: each warp has its own
LATER = (0, 50, 100, 200, 300, 400, 600, 800)


class Kind(IntEnum):
    """What a warp starts: ``Kind`` of ``transfers.cu``."""

    NOTHING = 0
    LOAD = 1
    STORE = 2
    LOAD_BOX = 3
    STORE_BOX = 4


#: What the first warp starts and what the second, and how many copies each.
MEETING = (
    (Kind.STORE, Kind.STORE, ((1, 1), (2, 2), (4, 4))),
    (Kind.STORE_BOX, Kind.STORE_BOX, ((1, 1), (2, 2), (4, 4))),
    (Kind.LOAD, Kind.STORE, ((2, 2), (4, 2), (8, 2), (12, 2))),
    (Kind.LOAD_BOX, Kind.STORE_BOX, ((2, 2), (4, 2), (8, 2), (12, 2))),
    (Kind.STORE, Kind.LOAD, ((4, 1), (4, 4))),
    (Kind.STORE_BOX, Kind.LOAD_BOX, ((4, 1), (4, 4))),
    (Kind.LOAD_BOX, Kind.LOAD_BOX, ((1, 1), (2, 2), (4, 4))),
)


@dataclass(frozen=True)
class Copies:
    """What one warp starts, and how many cycles after the common time. ``nbytes``: of each copy, a multiple of 16."""

    kind: Kind
    later: int = 0
    count: int = 1
    nbytes: int = BOX

    @property
    def text(self) -> str:
        """As a column of the table has it."""
        return f"{self.count} {self.kind.name.lower().replace('_', ' ')} of {self.nbytes} at {self.later}"


def plans() -> Iterator[tuple[Copies, ...]]:
    """Every launch: of its warps what they start."""
    for nbytes, count in product((16, 1024, 2048, 4096, 8192, 16384, 32768), (1, 2, 4)):
        yield (Copies(Kind.STORE, 0, count, nbytes),)
    for kind, count in product((Kind.STORE_BOX, Kind.LOAD, Kind.LOAD_BOX), (1, 2, 4, 8)):
        yield (Copies(kind, 0, count),)
    for first, second, counts in MEETING:
        for (one, other), later in product(counts, LATER):
            yield Copies(first, 0, one), Copies(second, later, other)


def plan_words(plan: tuple[Copies, ...]) -> npt.NDArray[np.uint32]:
    """What ``transfers.cu`` reads: (WARPS, 4)."""
    words = np.zeros((WARPS, 4), dtype=np.uint32)
    for warp, copies in enumerate(plan):
        words[warp] = astuple(copies)
    return words


def compiled(arch: str = "sm_90a") -> Compiled:
    """The kernel."""
    return compile_cubin(TRANSFERS, {}, arch)


def row(plan: tuple[Copies, ...], words: npt.NDArray[np.uint32]) -> str:
    """A line of the table. ``words``: what ``transfers.cu`` writes, (WARPS, 4)."""
    return "  |".join(
        f"{copies.text:<32}" + "".join(f"{each:6}" for each in words[warp].tolist()) for warp, copies in enumerate(plan)
    )


def lines(info: DeviceInfo) -> Iterator[str]:
    """The table, measured on this GPU."""
    gpu = Gpu(info)
    memory, given, out = gpu.allocate(_MEMORY), gpu.allocate(16 * WARPS), gpu.allocate(16 * WARPS)
    tensor = encode(matrix(memory, _MEMORY // 128, 64, 64))
    kernel = gpu.load(compiled(), SMEM_BYTES)
    words = np.zeros((WARPS, 4), dtype=np.uint32)
    for plan in plans():
        gpu.upload(given, plan_words(plan))
        gpu.launch(kernel, (1, THREADS, SMEM_BYTES), (given, memory, tensor, out))
        gpu.download(out, words)
        yield row(plan, words)
    gpu.close()


def main() -> int:
    """Print the table; the exit code is that of the error, if any."""
    return print_table(lines)


if __name__ == "__main__":
    sys.exit(main())
