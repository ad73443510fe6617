"""What CTAs pay to talk by words of global memory, in cycles of the SM: ``words.cu`` says what is executed."""

from collections.abc import Callable
from enum import IntEnum
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hwkernels.device.compile import CompiledKernel, compile_cubin

SOURCE = Path(__file__).parent / "words.cu"
ROUNDS = 256  #: of a launch, at most as many as ``words.cu`` keeps
NONE = 0xFFFFFFFF  #: of ``words.cu``: a wait gave up
COLD = 16  #: rounds that fetch code
THREADS = 64
NBYTES = 4 * 16384


class WordKind(IntEnum):
    """``Kind`` of ``words.cu``."""

    LOADS = 0
    RELAXED = 1
    RELEASES = 2
    ADDS = 3
    BARRIER = 4


def measure(rounds: Callable[[WordKind, int], npt.NDArray[np.uint32]]) -> dict[str, int]:
    """The values of a latency profile that these kernels measure, for words on which CTAs of a GPU wait.

    ``rounds``: what a launch with this many CTAs writes. What a barrier takes beside its fence and the loads of its
    loop, of which the last finds the count half a load after it is there, is the way of a count. A flag has none: a hop
    is its fence and one load or two.
    """
    kinds = WordKind.LOADS, WordKind.RELAXED, WordKind.RELEASES, WordKind.ADDS
    load, relaxed, release, add = (float(np.median(rounds(kind, 1))) for kind in kinds)
    barrier = float(np.median(rounds(WordKind.BARRIER, 4)))
    return {
        "word.load": round(load),
        "word.store": round(relaxed),
        "word.release": round(release),
        "word.count": max(0, round(barrier - add - 1.5 * load)),
    }


@cache
def compile_kernel(kind: WordKind) -> CompiledKernel:
    """The kernel of one kind."""
    return compile_cubin(SOURCE, {"KIND": int(kind)})
