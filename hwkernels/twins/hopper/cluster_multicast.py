"""``cluster_multicast.cu``: each CTA correlates a signal of its own with one that its cluster shares by multicast."""

import numpy as np

from hwkernels.device.launch import Shape
from hwkernels.twins.buffers import Argument, Input, Output
from hwkernels.twins.twin import Params, Range, Twin
from pipesim.errors import ParameterError

_SOURCE_BYTES = 1 << 28
_TOLERANCE = 2e-3  # of sums of thousands of products below 1 in float32, 64 a lane


def _defines(params: Params) -> dict[str, int]:
    names = ("cluster", "stages", "own_bytes", "shared_bytes", "consumer_warps")
    return {name.upper(): params[name] for name in names}


def _shape(params: Params, grid: int) -> Shape:
    smem = params["stages"] * (params["own_bytes"] + params["shared_bytes"] + 16)
    return Shape((grid * params["cluster"],), (32 * (1 + params["consumer_warps"]),), smem, params["cluster"])


def _arguments(params: Params, grid: int, seed: int) -> tuple[Argument, ...]:
    random = np.random.default_rng(seed)
    cluster, tiles, words = params["cluster"], params["tiles"], params["own_bytes"] // 4
    own = random.uniform(-1, 1, size=(grid * cluster, tiles, words)).astype(np.float32)
    shared = random.uniform(-1, 1, size=(grid, tiles, words)).astype(np.float32)
    theirs = np.repeat(shared, cluster, axis=0).astype(np.float64)
    sums = [(own * np.roll(theirs, -4 * c, axis=2)).sum(axis=2) for c in range(params["consumer_warps"])]
    expected = np.stack(sums, axis=2).reshape(grid * cluster * tiles, params["consumer_warps"])
    return (
        Input("own", own),
        Input("shared", shared),
        Output("sums", expected, "float32", absolute=_TOLERANCE),
        np.uint32(tiles),
        np.uint32(params["work"]),
    )


def _require(params: Params, _grid: int) -> None:
    if params["own_bytes"] != params["shared_bytes"]:
        raise ParameterError(
            f"own_bytes = {params['own_bytes']} and shared_bytes = {params['shared_bytes']}",
            cause="the kernel multiplies a tile of one by a tile of the other",
            correction="give both the same value",
        )
    if params["tiles"] * params["own_bytes"] > _SOURCE_BYTES:
        raise ParameterError("too many tiles: a CTA's signal would be larger than 256 MiB", correction="use fewer")


CLUSTER_MULTICAST = Twin(
    "cluster_multicast",
    ranges={
        "cluster": Range(1, 8, one_of=(1, 2, 4, 8)),
        "stages": Range(1, 32),
        "tiles": Range(0, 1 << 16),
        "own_bytes": Range(128, 1 << 16, multiple_of=128),
        "shared_bytes": Range(128, 1 << 16, multiple_of=128),
        "consumer_warps": Range(1, 8),
        "work": Range(0, 1 << 20),
    },
    defines=_defines,
    shape=_shape,
    arguments=_arguments,
    nbytes=lambda params: (
        params["own_bytes"] + params["shared_bytes"],
        params["own_bytes"],
        params["shared_bytes"] // params["cluster"],
    ),
    require=_require,
)
