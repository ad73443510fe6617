"""What products of a warp group and a try of a wait take on a GPU: ``tensor.cu`` and ``tries.cu`` say what is executed.

Of a round with 8 products and one with 4 the difference is what four products take; what is left is the latency of a
round.
"""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from hwkernels.device.compile import CompiledKernel, compile_cubin

TENSOR, TRIES = (Path(__file__).parent / name for name in ("tensor.cu", "tries.cu"))
SMEM_BYTES = 66 * 1024  #: two tiles, at a multiple of 1,024
COLUMNS = 128  #: of a product
ROUNDS = 100
THREADS = 128
_MULTIPLY_ADDS = 64 * COLUMNS * 16  #: of one product


def measure(products: Callable[[int, int], int], tries: npt.NDArray[np.uint32]) -> dict[str, int]:
    """The values of a latency profile that these kernels measure.

    ``products``: the cycles of rounds of this many products, and of this many rounds; ``tries``: of a first try, and of
    more.
    """
    each = (round_of(products, 8) - round_of(products, 4)) / 4
    return {"mma.per_kcycle": round(1000 * _MULTIPLY_ADDS / each), "try.limit": int(np.median(tries[1:]))}


def round_of(products: Callable[[int, int], int], batch: int) -> float:
    """Cycles of a round: the difference of two launches, without what begins and ends one."""
    products(batch, ROUNDS)  # fetches the code
    return (products(batch, 2 * ROUNDS) - products(batch, ROUNDS)) / ROUNDS


@cache
def compile_products(batch: int) -> CompiledKernel:
    """The kernel with this many products in a round."""
    return compile_cubin(TENSOR, {"COLUMNS": COLUMNS, "BATCH": batch})


@cache
def compile_tries() -> CompiledKernel:
    """The kernel of the tries."""
    return compile_cubin(TRIES, {})
