"""``gemm_sm90.cu``: C = A * B^T in bf16. The CTAs share the rows of C, which is one tile wide."""

import numpy as np
import numpy.typing as npt

from hwkernels.device.bf16 import from_bf16, random_bf16
from hwkernels.device.launch import Shape
from hwkernels.twins.buffers import Argument, Input, MapOf, Output
from hwkernels.twins.twin import TENSOR_STRAY_NS, Params, Range, Twin
from pipesim.errors import ParameterError
from pipesim.ptx.launch.values import TensorMap

BLOCK_K, GROUP_ROWS, GROUP_THREADS = 64, 64, 128
RASTER = 16  #: rows of tiles that are gone through together
_BF16 = 2
_SOURCE_BYTES = 1 << 28


def defines(params: Params) -> dict[str, int]:
    """The kernel's macros."""
    return {
        "RING_STAGES": params["stages"] // params["k_group_size"],
        "K_GROUP": params["k_group_size"],
        "NUM_CONSUMER": params["num_consumer"],
        "BLOCK_N": params["block_n"],
        "LOOKAHEAD": params["lookahead"],
        "DRAIN": params["drain"],
    }


def shape(params: Params, grid: int) -> Shape:
    """A launch of this many CTAs: the operands' slots, the tiles of C, and the barriers."""
    rings, rows = params["stages"] // params["k_group_size"], GROUP_ROWS * params["num_consumer"]
    slot = (rows + params["block_n"]) * BLOCK_K * _BF16
    smem = rings * params["k_group_size"] * slot + rows * params["block_n"] * _BF16 + 16 * rings
    return Shape((grid,), (GROUP_THREADS * (1 + params["num_consumer"]),), smem)


def tensor_maps(params: Params, m: int, n: int, k: int) -> tuple[MapOf, ...]:
    """The maps of A (m, k), B (n, k) and C (m, n), all row-major."""
    boxes = (GROUP_ROWS * params["num_consumer"], params["block_n"], GROUP_ROWS)
    sizes = (("a", m, k), ("b", n, k), ("c", m, n))
    return tuple(
        MapOf(name, TensorMap("bf16", (columns, rows), (BLOCK_K, box), (columns * _BF16,), swizzle="128B"))
        for (name, rows, columns), box in zip(sizes, boxes, strict=True)
    )


def _arguments(params: Params, grid: int, seed: int) -> tuple[Argument, ...]:
    tiles, rows = grid * params["tiles"], GROUP_ROWS * params["num_consumer"]
    m, n, k = rows * max(tiles, 1), params["block_n"], BLOCK_K * params["k_iters"]
    random = np.random.default_rng(seed)
    a, b = random_bf16(random, (m, k)), random_bf16(random, (n, k))
    left: npt.NDArray[np.float64] = from_bf16(a).astype(np.float64)
    product = (left @ from_bf16(b).astype(np.float64).T).reshape(-1, rows, n)[:tiles]
    rounding = 2.0**-7  # of the result to bf16, twice
    return (
        Input("a", a, given=False),
        Input("b", b, given=False),
        Output("c", product, "uint16", relative=rounding, absolute=1e-4 * k**0.5, unpack=from_bf16, given=False),
        *tensor_maps(params, m, n, k),
        np.uint32(tiles),
        np.uint32(1),
        np.uint32(params["k_iters"]),
        np.uint32(RASTER),
        np.uint32(params["epilogue"]),
    )


def _nbytes(params: Params) -> tuple[int, ...]:
    a, b = (rows * BLOCK_K * _BF16 for rows in (GROUP_ROWS * params["num_consumer"], params["block_n"]))
    return a, b, (a + b) * params["k_group_size"]


def _require(params: Params, _grid: int) -> None:
    if params["stages"] < params["k_group_size"]:
        raise ParameterError(f"{params['stages']} stages hold no group of {params['k_group_size']}")
    rows = params["tiles"] * GROUP_ROWS * params["num_consumer"]
    if rows * params["k_iters"] * BLOCK_K * _BF16 > _SOURCE_BYTES:
        raise ParameterError("a CTA's part of A would be larger than 256 MiB", correction="use fewer tiles or k_iters")


GEMM_SM90 = Twin(
    "gemm_sm90",
    ranges={
        "stages": Range(1, 32),
        "tiles": Range(0, 1 << 12),
        "k_iters": Range(1, 1 << 12),
        "k_group_size": Range(1, 4, one_of=(1, 2, 4)),
        "num_consumer": Range(1, 2),
        "block_n": Range(64, 256, one_of=(64, 128, 256)),
        "block_k": Range(BLOCK_K, BLOCK_K),
        "tma": Range(1, 1),
        "epilogue": Range(0, 1 << 24),
        "lookahead": Range(0, 1),
        "drain": Range(0, 1),
    },
    defines=defines,
    shape=shape,
    arguments=_arguments,
    nbytes=_nbytes,
    room=48,  # the first step of a consumer also gives every stage to the producer
    require=_require,
    stray_ns=TENSOR_STRAY_NS,
)
