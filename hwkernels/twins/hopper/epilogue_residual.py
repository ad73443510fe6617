"""``epilogue_residual.cu``: D = sum of A + beta * C, with the load-order barrier right and as upstream has it."""

import numpy as np

from hwkernels.device.launch import Shape
from hwkernels.twins.buffers import Argument, Input, Output
from hwkernels.twins.twin import Params, Range, Twin, dotted_groups
from pipesim.errors import ParameterError

BETA = 0.75
_RESPONSE_BYTES, _OUTPUTS, _WARPS = 16, 2, 8
_SOURCE_BYTES = 1 << 28
#: How far its load moves the SM clock off the line beyond what others' does. Seen on all SMs of an H200: 9 ns.
_STRAY_NS = 20


def _defines(params: Params) -> dict[str, int]:
    names = (
        "stages", "accumulators", "epi_stages", "clc_stages", "slices", "slice_bytes", "residual", "first_tile_only",
    )  # fmt: skip
    return {name.upper(): params[name] for name in names}


def _shape(params: Params, grid: int) -> Shape:
    stages, accumulators, epi_stages = (params[name] for name in ("stages", "accumulators", "epi_stages"))
    tile = params["slices"] * params["slice_bytes"]
    barriers = 2 * (stages + accumulators + epi_stages) + 1 + 4 * params["clc_stages"]
    smem = (stages + accumulators) * tile + (epi_stages + _OUTPUTS) * params["slice_bytes"]
    return Shape((grid,), (32 * _WARPS,), smem + params["clc_stages"] * _RESPONSE_BYTES + 8 * barriers)


def _arguments(params: Params, grid: int, seed: int) -> tuple[Argument, ...]:
    random = np.random.default_rng(seed)
    tiles, words = grid * params["tiles"], params["slices"] * params["slice_bytes"] // 4
    a = random.uniform(-1, 1, size=(tiles, params["k_iters"], words)).astype(np.float32)
    c = random.uniform(-1, 1, size=(tiles, words)).astype(np.float32)
    d = a.astype(np.float64).sum(axis=1) + (BETA * c.astype(np.float64) if params["residual"] else 0)
    return (
        Input("a", a),
        Input("c", c),
        Input("counters", np.zeros(grid, dtype=np.uint32)),
        Output("d", d, "float32", absolute=1e-6 * (2 + params["k_iters"])),
        np.float32(BETA),
        np.uint32(params["tiles"]),
        np.uint32(params["k_iters"]),
        np.uint32(params["epilogue"]),
        np.uint32(params["order_delay"]),
    )


def _require(params: Params, _grid: int) -> None:
    if params["tiles"] * params["k_iters"] * params["slices"] * params["slice_bytes"] > _SOURCE_BYTES:
        raise ParameterError("too many tiles: a CTA's A would be larger than 256 MiB", correction="use fewer")


EPILOGUE_RESIDUAL = Twin(
    "epilogue_residual",
    ranges={
        "stages": Range(1, 16),
        "tiles": Range(0, 1 << 14),
        "k_iters": Range(0, 1 << 10),
        "epi_stages": Range(1, 8),
        "accumulators": Range(1, 4),
        "clc_stages": Range(1, 4),
        "slices": Range(1, 32),
        "slice_bytes": Range(2048, 1 << 14, multiple_of=2048),
        "residual": Range(0, 1),
        "first_tile_only": Range(0, 1),
        "epilogue": Range(0, 1 << 20),
        "order_delay": Range(0, 1 << 20),
        "atomic": Range(0, 1 << 24),  # what the model takes a fetch to cost; the kernel makes one
    },
    defines=_defines,
    shape=_shape,
    arguments=_arguments,
    nbytes=lambda params: (params["slices"] * params["slice_bytes"], params["slice_bytes"]),
    groups=dotted_groups("input", "output", "epi_load", "clc", "throttle"),
    require=_require,
    stray_ns=_STRAY_NS,
)
