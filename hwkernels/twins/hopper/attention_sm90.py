"""``attention_sm90.cu``: forward attention in bf16 on random queries, keys and values, against float64."""

from math import e, log2, sqrt

import numpy as np
import numpy.typing as npt

from hwkernels.device.bf16 import from_bf16, random_bf16
from hwkernels.device.launch import Shape
from hwkernels.twins.buffers import Argument, Input, MapOf, Output
from hwkernels.twins.twin import TENSOR_STRAY_NS, Params, Range, Twin, dotted_groups
from pipesim.errors import ConfigurationError, ParameterError
from pipesim.ptx.launch.values import TensorMap

BF16 = 2  #: bytes of an element
GROUP_ROWS = 64  #: queries of a consumer warp group
TILES_OF_HEAD = 4  #: CTAs that share their keys and values in a recorded run
_ALIGNMENT = 1024  # of the swizzled tiles
_PANEL = 64  # columns of a head in a row of 128 bytes
_PRODUCER_WARPS = 4
_SMEM_OF_CTA = 227 * 1024

# The weights are rounded to bf16 before they are multiplied, and so is the result: each is off by 2^-9 of itself at
# most, and the result, a weighted mean, by less than that of a usual element of it, but for a few rows that are larger.
_RELATIVE, _OF_USUAL = 2.0**-7, 2.0**-6


def queries_of(params: Params) -> int:
    """Queries of a CTA."""
    return GROUP_ROWS * params["num_consumer"]


def attention(
    q: npt.NDArray[np.float64], k: npt.NDArray[np.float64], v: npt.NDArray[np.float64]
) -> npt.NDArray[np.float64]:
    """softmax(q k^T / sqrt(depth)) v of one head, in float64. ``q``: (queries, depth), ``k``, ``v``: (keys, depth).

    Without keys the result is zeros, as the kernel has it.
    """
    if not len(k):
        return np.zeros_like(q)
    scores = q @ k.T / sqrt(q.shape[1])
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    result: npt.NDArray[np.float64] = weights @ v / weights.sum(axis=1, keepdims=True)
    return result


def tensor_maps(params: Params, rows: int, keys: int) -> tuple[MapOf, MapOf, MapOf]:
    """How Q, K and V lie in device memory, (rows of all heads, depth) each, and the boxes that the kernel copies.

    The tensor is seen in panels of 64 columns, so that one copy brings several panels, one after the other.
    """
    depth, panels = params["depth"], params["depth"] // _PANEL

    def tensor_map(name: str, length: int, box_rows: int, box_panels: int) -> MapOf:
        dims, strides = (_PANEL, length, panels), (depth * BF16, _PANEL * BF16)
        return MapOf(name, TensorMap("bf16", dims, (_PANEL, box_rows, box_panels), strides, swizzle="128B"))

    return (
        tensor_map("queries", rows, queries_of(params), panels),
        tensor_map("keys", keys, params["block_n"], panels // params["qk_stages"]),
        tensor_map("values", keys, params["block_n"], panels),
    )


def scale_of(depth: int) -> np.float32:
    """What the kernel multiplies scores with, which takes powers of 2."""
    return np.float32(log2(e) / sqrt(depth))


def shape_of(params: Params, grid: int) -> Shape:
    """The launch of this many CTAs."""
    barriers = 1 + 2 * params["stages"] * (params["qk_stages"] + 1)
    return shape_with(params, grid, tiles=2 * params["stages"], barriers=barriers)


def shape_with(params: Params, grid: int, *, tiles: int, barriers: int) -> Shape:
    """The launch of this many CTAs, each with room for the queries, this many tiles of K or V, and barriers."""
    tile = params["block_n"] * params["depth"] * BF16
    smem = queries_of(params) * params["depth"] * BF16 + tiles * tile + 8 * barriers
    return Shape((grid,), (32 * (_PRODUCER_WARPS + 4 * params["num_consumer"]),), smem + _ALIGNMENT)


def _defines(params: Params) -> dict[str, int]:
    return {n.upper(): params[n] for n in ("depth", "block_n", "qk_stages", "stages", "num_consumer", "pingpong")}


def arguments_of(params: Params, grid: int, seed: int) -> tuple[Argument, ...]:
    """The kernel's, for random Q, K and V."""
    random, depth = np.random.default_rng(seed), params["depth"]
    rows, heads = grid * queries_of(params), -(-grid // TILES_OF_HEAD)
    keys = params["kv_blocks"] * params["block_n"]
    held = max(heads * keys, params["block_n"])  # a tensor has a row at least, also without keys
    q, k, v = (random_bf16(random, (n, depth)) for n in (rows, held, held))
    of_head = TILES_OF_HEAD * queries_of(params)
    wide = [from_bf16(x).astype(np.float64) for x in (q, k, v)]
    expected = np.concatenate(
        [
            attention(wide[0][h * of_head : (h + 1) * of_head], *(x[h * keys : (h + 1) * keys] for x in wide[1:]))
            for h in range(heads)
        ]
    )
    usual = float(np.sqrt(np.mean(expected**2)))
    return (
        *tensor_maps(params, rows, held),
        Output(
            "result",
            expected.reshape(grid * params["num_consumer"], GROUP_ROWS, depth),
            "uint16",
            relative=_RELATIVE,
            absolute=_OF_USUAL * usual,
            unpack=from_bf16,
        ),
        np.uint32(params["kv_blocks"]),
        np.uint32(TILES_OF_HEAD),
        scale_of(depth),
        Input("queries", q, given=False),
        Input("keys", k, given=False),
        Input("values", v, given=False),
    )


def _require(params: Params, _grid: int) -> None:
    if params["qk_stages"] * _PANEL > params["depth"]:
        raise ParameterError(
            f"{params['qk_stages']} slices of a head of {params['depth']}",
            cause=f"the kernel's slices have whole panels of {_PANEL} columns",
            correction=f"use qk_stages = {params['depth'] // _PANEL} or less",
        )
    require_fits("attention_sm90", shape_of(params, 1).smem_bytes)


def require_fits(name: str, smem: int) -> None:
    """ConfigurationError if a CTA cannot have so much shared memory."""
    if smem > _SMEM_OF_CTA:
        raise ConfigurationError(
            f"the kernel of {name} needs {smem:,} bytes of shared memory",
            cause=f"a CTA has {_SMEM_OF_CTA:,}",
            correction="use fewer stages, or smaller blocks",
        )


ATTENTION_SM90 = Twin(
    "attention_sm90",
    ranges={
        "kv_blocks": Range(0, 1 << 12),
        "stages": Range(1, 16),
        "depth": Range(64, 128, one_of=(64, 128)),
        "block_n": Range(64, 128, one_of=(64, 128)),
        "num_consumer": Range(1, 2),
        "pingpong": Range(0, 1),
        "softmax": Range(0, 1 << 24),  # what the model takes a softmax to cost; the kernel makes one
        "fused": Range(0, 0),
        "qk_stages": Range(1, 2),
    },
    defines=_defines,
    shape=shape_of,
    arguments=arguments_of,
    nbytes=lambda params: (
        params["block_n"] * params["depth"] * BF16 // params["qk_stages"],
        params["block_n"] * params["depth"] * BF16,
        queries_of(params) * params["depth"] * BF16,
    ),
    groups=dotted_groups("k", "v"),
    room=16,
    require=_require,
    units=lambda params: params["kv_blocks"],
    stray_ns=TENSOR_STRAY_NS,
)
