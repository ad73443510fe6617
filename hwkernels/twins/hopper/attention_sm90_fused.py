"""``attention_sm90_fused.cu``: forward attention as ``attention_sm90.cu``, with K and V in one ring."""

from hwkernels.device.launch import Shape
from hwkernels.twins.buffers import Argument
from hwkernels.twins.hopper.attention_sm90 import BF16, arguments_of, queries_of, require_fits, shape_with
from hwkernels.twins.twin import TENSOR_STRAY_NS, Params, Range, Twin, dotted_groups


def _shape(params: Params, grid: int) -> Shape:
    return shape_with(params, grid, tiles=params["stages"], barriers=1 + 2 * params["stages"])


def _defines(params: Params) -> dict[str, int]:
    return {n.upper(): params[n] for n in ("depth", "block_n", "stages", "num_consumer", "pingpong")}


def _arguments(params: Params, grid: int, seed: int) -> tuple[Argument, ...]:
    return arguments_of({**params, "qk_stages": 1}, grid, seed)


def _require(params: Params, _grid: int) -> None:
    require_fits("attention_sm90_fused", _shape(params, 1).smem_bytes)


ATTENTION_SM90_FUSED = Twin(
    "attention_sm90_fused",
    ranges={
        "kv_blocks": Range(0, 1 << 12),
        "stages": Range(2, 27),
        "depth": Range(64, 128, one_of=(64, 128)),
        "block_n": Range(64, 128, one_of=(64, 128)),
        "num_consumer": Range(1, 2),
        "pingpong": Range(0, 1),
        "softmax": Range(0, 1 << 24),  # what the model takes a softmax to cost; the kernel makes one
    },
    defines=_defines,
    shape=_shape,
    arguments=_arguments,
    nbytes=lambda params: (
        params["block_n"] * params["depth"] * BF16,
        queries_of(params) * params["depth"] * BF16,
    ),
    groups=dotted_groups("kv"),
    room=16,
    require=_require,
    units=lambda params: params["kv_blocks"],
    stray_ns=TENSOR_STRAY_NS,
)
