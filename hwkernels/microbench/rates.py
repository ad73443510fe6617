"""Measure what instructions cost with ``rates.cu``, and say it in the values of a latency profile.

A class is measured twice, with many rounds and with half of them: the difference leaves the ends out. One warp on an SM
measures what an instruction costs a warp alone; all warps of an SM together what its shared memory moves.
"""

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hwkernels.device.compile import CompiledKernel, compile_cubin

SOURCE = Path(__file__).parent / "rates.cu"
ROUNDS = 64
UNROLLED = 32  #: instructions of a round: ``rates.cu`` has the same number
_CHAIN_WORDS = 1 << 20  #: of device memory: 4 MiB, which stay in the L2 cache
_STRIDE = 4099  #: words from one link of the chain to the next: another line of the cache each time
_FULL = 32  #: warps of a CTA of 1,024 threads
_REPEATS = 5


class InstructionKind(IntEnum):
    """``Kind`` of ``rates.cu``."""

    FMA = 0
    ALU = 1
    EXP2 = 2
    SHUFFLE_CHAIN = 3
    SHARED_CHAIN = 4
    SHARED_LOADS = 5
    GLOBAL_CHAIN = 6
    NOTHING = 7


@dataclass(frozen=True)
class MeasuredRate:
    """A value of a profile from the cycles of one instruction: of which kind, by how many warps."""

    value: str
    kind: InstructionKind
    warps: int
    of: Callable[[float], float]  #: cycles of one instruction of one warp → the value


_BYTES = 512  #: that a warp loads by one instruction of 16 bytes a lane

#: Not in a profile: ``shared.trip`` and ``shared.bytes_alone`` are of single loads. What batches of them take, which
#: ``class.rounds`` and ``class.shared_bytes`` say, is another number.
RATES: tuple[MeasuredRate, ...] = (
    MeasuredRate("class.fma", InstructionKind.FMA, 1, lambda cycles: 1000 * cycles),
    MeasuredRate("class.alu", InstructionKind.ALU, 1, lambda cycles: 1000 * cycles),
    MeasuredRate("class.exp2", InstructionKind.EXP2, 1, lambda cycles: 1000 * cycles),
    MeasuredRate("class.shuffles", InstructionKind.SHUFFLE_CHAIN, 1, lambda cycles: 1000 * cycles),
    MeasuredRate("shared.trip", InstructionKind.SHARED_CHAIN, 1, lambda cycles: 1000 * cycles),
    MeasuredRate("shared.bytes_alone", InstructionKind.SHARED_LOADS, 1, lambda cycles: 1000 * cycles / _BYTES),
    MeasuredRate("class.global_trips", InstructionKind.GLOBAL_CHAIN, 1, lambda cycles: 1000 * cycles),
    MeasuredRate(
        "shared.bytes_per_kcycle", InstructionKind.SHARED_LOADS, _FULL, lambda cycles: 1000 * _BYTES * _FULL / cycles
    ),
)


Cycles = Callable[[InstructionKind, int, int], npt.NDArray[np.uint32]]  #: of each warp: by kind, warps and rounds


@cache
def compile_kernel(kind: InstructionKind, arch: str = "sm_90a") -> CompiledKernel:
    """The kernel of one kind."""
    return compile_cubin(SOURCE, {"KIND": int(kind)}, arch)


def measure(cycles: Cycles, wanted: frozenset[str]) -> dict[str, int]:
    """The wanted values that can be measured so, as whole numbers."""
    found = {}
    for rate in RATES:
        if rate.value in wanted:
            found[rate.value] = max(1, round(rate.of(cycles_of(cycles, rate.kind, rate.warps))))
    return found


def cycles_of(cycles: Cycles, kind: InstructionKind, warps: int) -> float:
    """Cycles of one instruction of a warp, the loop around it left out: the median of several measurements."""
    return _each(cycles, kind, warps) - _each(cycles, InstructionKind.NOTHING, warps)


def _each(cycles: Cycles, kind: InstructionKind, warps: int) -> float:
    cycles(kind, warps, ROUNDS)  # fetches the code
    slopes = []
    for _ in range(_REPEATS):
        long, short = (int(cycles(kind, warps, rounds).max()) for rounds in (2 * ROUNDS, ROUNDS))
        slopes.append((long - short) / (ROUNDS * UNROLLED))
    return float(np.median(slopes))


def chain() -> npt.NDArray[np.uint32]:
    """A cycle through device memory: each word holds the index of the next link."""
    return ((np.arange(_CHAIN_WORDS, dtype=np.uint64) + _STRIDE) % _CHAIN_WORDS).astype(np.uint32)
