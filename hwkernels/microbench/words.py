"""What CTAs pay to talk by words of global memory, in cycles of the SM: ``words.cu`` says what is executed.

``python -m hwkernels.microbench.words`` prints a table (of an H200: docs/experiments.md): of the rounds of a
launch, or of all SMs, the median and the least.
"""

import sys
from collections.abc import Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from hwkernels.device.compile import CompiledKernel, compile_cubin
from hwkernels.device.launch import DeviceInfo, Gpu, require_gpu
from pipesim.errors import HardwareError, PipesimError

SOURCE = Path(__file__).parent / "words.cu"
ROUNDS = 256  #: of a launch, at most as many as ``words.cu`` keeps
NONE = 0xFFFFFFFF  #: of ``words.cu``: a wait gave up
_COLD = 16  #: rounds that fetch code
_THREADS = 64
_BYTES = 4 * 16384


class WordKind(IntEnum):
    """``Kind`` of ``words.cu``."""

    FLAGS = 0
    TURNS = 1
    LOADS = 2
    RELAXED = 3
    RELEASES = 4
    ADDS = 5
    ATOMS = 6
    BARRIER = 7


class WordBench(Protocol):
    """Who launches: a GPU, or a test's substitute for it."""

    def rounds(
        self, kind: WordKind, count: int, first: int = 1, *, cluster: int = 1, data: bool = True
    ) -> npt.NDArray[np.uint32]:
        """What a launch with ``count`` CTAs writes, CTA 0 and those from ``first`` on; in a cluster at its scope."""


def measure(bench: WordBench) -> Mapping[str, int]:
    """The values of a latency profile that these kernels measure, for words on which CTAs of a GPU wait.

    What a barrier takes beside its fence and the loads of its loop, of which the last finds the count half a load after
    it is there, is the way of a count. A flag has none: a hop is its fence and one load or two.
    """
    kinds = WordKind.LOADS, WordKind.RELAXED, WordKind.RELEASES, WordKind.ADDS
    load, relaxed, release, add = (float(np.median(bench.rounds(kind, 1))) for kind in kinds)
    barrier = float(np.median(bench.rounds(WordKind.BARRIER, 4)))
    return {
        "word.load": round(load),
        "word.store": round(relaxed),
        "word.release": round(release),
        "word.count": max(0, round(barrier - add - 1.5 * load)),
    }


def _pairs(bench: WordBench) -> Iterator[npt.NDArray[np.uint32]]:
    """Round trips of a flag between CTA 0 and others, each on an SM of its own."""
    for first in range(1, 132):
        yield bench.rounds(WordKind.FLAGS, 2, first)


def rows(bench: WordBench) -> Iterator[tuple[str, str]]:
    """The rows of the table: what, and its cycles."""
    said = {
        WordKind.LOADS: "ld.acquire.gpu, until its value is there",
        WordKind.RELAXED: "st.relaxed.gpu, until the thread continues",
        WordKind.RELEASES: "st.release.gpu, until the thread continues",
        WordKind.ADDS: "red.release.gpu.add, until the thread continues",
    }
    for kind, text in said.items():
        yield text, _numbers(bench.rounds(kind, 1, data=False))
    for kind in (WordKind.RELEASES, WordKind.ADDS):
        yield f"{said[kind]}, after a store of data", _numbers(bench.rounds(kind, 1))
    yield "a flag to another SM, half of there and back", _numbers(bench.rounds(WordKind.FLAGS, 2, 66, data=False) / 2)
    trips = list(_pairs(bench))
    yield "the same after a store of data, to each of 131 SMs", _numbers(np.concatenate(trips) / 2)
    middle = [float(np.median(each)) / 2 for each in trips]
    yield "the medians of these SMs", f"{min(middle):,.0f} to {max(middle):,.0f}"
    for data, text in ((False, ""), (True, ", after a store of data")):
        found = bench.rounds(WordKind.FLAGS, 2, 1, cluster=2, data=data)
        yield f"a flag in a cluster of 2, at cluster scope{text}", _numbers(found / 2)
    for count in (2, 3, 8):
        yield f"a flag through {count} CTAs, each hop", _numbers(bench.rounds(WordKind.FLAGS, count) / count)
    for count in (2, 3, 8, 32):
        yield (
            f"one word that {count} CTAs take turns on, each turn",
            _numbers(bench.rounds(WordKind.TURNS, count) / count),
        )
    for count in (2, 3, 4, 8, 32, 132):
        yield f"a barrier of {count} CTAs with 2 warps", _numbers(bench.rounds(WordKind.BARRIER, count))
    for count in (1, 2, 8, 32, 132):
        each = bench.rounds(WordKind.ATOMS, count)[:count] / ROUNDS
        text = f"{np.median(each):,.0f}; of all CTAs one every {np.max(each) / count:,.1f}"
        yield f"atom.add of {count} CTA{'s' if count > 1 else ''} on one word, until its answer", text


def compile_kernel(kind: WordKind, *, cluster: int = 1, data: bool = True) -> CompiledKernel:
    """The kernel of one kind."""
    return compile_cubin(SOURCE, {"KIND": int(kind), "CLUSTER": int(cluster > 1), "DATA": int(data)})


class GpuWords:
    """A CTA on every SM of a GPU, of which some take part. To be closed."""

    def __init__(self, info: DeviceInfo) -> None:
        self._gpu, self._sms = Gpu(info), info.sms - info.sms % 2
        self._kernels: dict[tuple[WordKind, int, bool], Any] = {}
        self._words, self._out = self._gpu.allocate(_BYTES), self._gpu.allocate(4 * ROUNDS)

    def rounds(
        self, kind: WordKind, count: int, first: int = 1, *, cluster: int = 1, data: bool = True
    ) -> npt.NDArray[np.uint32]:
        """As :class:`WordBench` has it."""
        key = kind, cluster, data
        if key not in self._kernels:
            self._kernels[key] = self._gpu.load(compile_kernel(kind, cluster=cluster, data=data), 0)
        self._gpu.fill(self._words, 0, _BYTES)
        arguments = (np.uint32(ROUNDS), np.uint32(count), np.uint32(first), self._words, self._out)
        self._gpu.launch(self._kernels[key], (self._sms, _THREADS, 0), arguments, cluster=cluster)
        found = np.zeros(ROUNDS, dtype=np.uint32)
        self._gpu.download(self._out, found)
        if NONE in found[: count if kind == WordKind.ATOMS else ROUNDS]:
            raise HardwareError(f"a wait of {kind.name} with {count} CTAs gave up", place=str(SOURCE))
        return found if kind == WordKind.ATOMS else found[_COLD:]

    def close(self) -> None:
        """Give the GPU back."""
        self._gpu.close()


def _numbers(cycles: npt.NDArray[Any]) -> str:
    return f"{np.median(cycles):,.0f}, at least {np.min(cycles):,.0f}"


def main() -> int:
    """Print the table; the exit code is that of the error, if any."""
    try:
        bench = GpuWords(require_gpu())
        lines = [f"| {what} | {cycles} |\n" for what, cycles in rows(bench)]
        sys.stdout.write(f"{dict(measure(bench))}\n{''.join(lines)}")
        bench.close()
    except PipesimError as error:
        sys.stderr.write(f"{error}\n")
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
