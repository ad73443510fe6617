"""``persistent_scheduler.cu``: moments of the rows of a matrix, the rows handed out by a scheduler warp."""

import numpy as np

from hwkernels.device.launch import Shape
from hwkernels.twins.buffers import Argument, Input, Output
from hwkernels.twins.twin import Params, Range, Twin, dotted_groups
from pipesim.errors import ParameterError

_RESPONSE_BYTES = 16
_SOURCE_BYTES = 1 << 28
_TOLERANCE = 5e-5  # of sums of 1,000 terms below 1 a lane in float32, divided by their number


def _defines(params: Params) -> dict[str, int]:
    return {name.upper(): params[name] for name in ("stages", "tile_bytes", "consumer_warps", "clc_stages")}


def _shape(params: Params, grid: int) -> Shape:
    barriers = 2 * params["stages"] + 4 * params["clc_stages"]
    smem = params["stages"] * params["tile_bytes"] + params["clc_stages"] * _RESPONSE_BYTES + 8 * barriers
    return Shape((grid,), (32 * (2 + params["consumer_warps"]),), smem)


def _arguments(params: Params, grid: int, seed: int) -> tuple[Argument, ...]:
    rows, words = grid * params["tiles"], params["k_iters"] * params["tile_bytes"] // 4
    source = np.random.default_rng(seed).uniform(-1, 1, size=(rows, words)).astype(np.float32)
    powers = [source.astype(np.float64) ** (c + 1) for c in range(params["consumer_warps"])]
    moments = np.stack([x.sum(axis=1) / max(words, 1) for x in powers], axis=1)
    return (
        Input("source", source),
        Input("counters", np.zeros(grid, dtype=np.uint32)),
        Output("moments", moments, "float32", absolute=_TOLERANCE),
        np.uint32(params["tiles"]),
        np.uint32(params["k_iters"]),
        np.uint32(params["work"]),
    )


def _require(params: Params, _grid: int) -> None:
    if params["tiles"] * params["k_iters"] * params["tile_bytes"] > _SOURCE_BYTES:
        raise ParameterError("too many tiles: a CTA's matrix would be larger than 256 MiB", correction="use fewer")


PERSISTENT_SCHEDULER = Twin(
    "persistent_scheduler",
    ranges={
        "tiles": Range(0, 1 << 14),
        "k_iters": Range(0, 1 << 10),
        "stages": Range(1, 16),
        "tile_bytes": Range(16, 1 << 17, multiple_of=16),
        "consumer_warps": Range(1, 8),
        "work": Range(0, 1 << 20),
        "clc_stages": Range(1, 4),
        "atomic": Range(0, 1 << 24),  # what the model takes a fetch to cost; the kernel makes one
    },
    defines=_defines,
    shape=_shape,
    arguments=_arguments,
    nbytes=lambda params: (params["tile_bytes"],),
    groups=dotted_groups("pipe", "clc", "throttle"),
    require=_require,
)
