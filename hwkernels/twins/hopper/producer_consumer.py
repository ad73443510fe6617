"""``producer_consumer.cu``: each consumer warp sums its share of every tile; faults can be injected."""

import numpy as np
import numpy.typing as npt

from hwkernels.device.launch import Shape
from hwkernels.twins.buffers import Argument, Input, OfLaunch, Output
from hwkernels.twins.fault import KernelFault
from hwkernels.twins.twin import NEVER, Faults, Loop, Params, Range, Twin
from pipesim.errors import ParameterError
from pipesim.model.steady import steady_window

SOURCE_BYTES = 16 << 20  #: tiles are read from so much memory at most, so that they stay in the L2 cache
_CHECKSUM_BYTES = 1 << 30
_FIRST_CONSUMER = 1  # warp
_MACROS = ("stages", "tile_bytes", "consumer_warps", "arrive_lanes")


def defines(params: Params) -> dict[str, int]:
    """The kernel's macros."""
    return {name.upper(): params[name] for name in _MACROS}


def shape(params: Params, grid: int) -> Shape:
    """A launch of this many CTAs: the tiles, then the barriers."""
    return Shape((grid,), (32 * (1 + params["consumer_warps"]),), params["stages"] * (params["tile_bytes"] + 16))


def source_tiles(params: Params, grid: int) -> int:
    """How many different tiles there are."""
    wanted = max(2 * params["stages"] + 1, params["tiles"] * grid)
    return max(1, min(SOURCE_BYTES // params["tile_bytes"], wanted, 1 << 16))


def period_marks(tiles: int, stages: int) -> tuple[int, int]:
    """The two iterations between which the kernel takes its period; NEVER twice if there are too few."""
    return steady_window(tiles, stages) or (NEVER, NEVER)


def share_sums(source: npt.NDArray[np.uint32], warps: int) -> npt.NDArray[np.uint32]:
    """What each consumer warp must find: (tiles, warps) sums modulo 2^32 of the words of (tiles, words).

    Warps share a tile's 16-byte vectors as the kernel does: equal contiguous parts, the last one with the rest.
    """
    share = source.shape[1] // 4 // warps * 4
    bounds = [*range(0, share * warps, share)] if share else [0] * warps
    ends = [*bounds[1:], source.shape[1]]
    parts = [source[:, begin:end].sum(axis=1, dtype=np.uint32) for begin, end in zip(bounds, ends, strict=True)]
    return np.stack(parts, axis=1)


def _arguments(params: Params, grid: int, seed: int) -> tuple[Argument, ...]:
    tiles, different = params["tiles"], source_tiles(params, grid)
    words = (different, params["tile_bytes"] // 4)
    source = np.random.default_rng(seed).integers(0, 1 << 32, size=words, dtype=np.uint32)
    read = np.arange(grid * tiles, dtype=np.int64) % different  # by CTA and iteration
    numbers = (different, tiles % different, tiles, params["work"])
    return (
        Input("source", source),
        *(np.uint32(n) for n in numbers),
        OfLaunch.DEADLINE,
        *(np.uint32(mark) for mark in period_marks(tiles, params["stages"])),
        Output("sums", share_sums(source, params["consumer_warps"])[read], "uint32", first_warp=_FIRST_CONSUMER),
        OfLaunch.REPORTS,
        OfLaunch.STOP,
        OfLaunch.FAULT_AT,
    )


def _require(params: Params, grid: int) -> None:
    if grid * params["tiles"] * params["consumer_warps"] * 4 > _CHECKSUM_BYTES:
        raise ParameterError(
            "too many tiles: the checksums alone would fill 1 GiB", correction="use fewer tiles or CTAs"
        )


def check_fault(fault: KernelFault, params: Params) -> None:
    """ParameterError if a kernel of these parameters never reaches the place of the fault, or cannot have it."""
    tiles, stages = params["tiles"], params["stages"]
    if fault.iteration >= tiles:
        raise ParameterError(
            f"{fault} is after the last of {tiles} tiles", correction=f"use {fault.kind}@0 to {fault.kind}@{tiles - 1}"
        )
    if fault.kind == "swapped_stages" and (stages == 1 or fault.iteration + 1 >= tiles):
        raise ParameterError(
            f"{fault} has no other stage to swap with",
            cause="it swaps an iteration with the next",
            correction="use 2 stages or more, and not the last tile",
        )
    if fault.kind == "phase_not_toggled" and fault.iteration // stages == (tiles - 1) // stages:
        raise ParameterError(
            f"{fault} has no effect: there is no lap after it",
            cause=f"{tiles} tiles in {stages} stages",
            correction="use an earlier tile, or more tiles",
        )
    if fault.kind == "expect_less" and params["tile_bytes"] < 32:
        raise ParameterError(f"{fault} needs tiles of 32 bytes or more", cause="it expects half of a tile's bytes")


def expected_bytes(fault: KernelFault, tile_bytes: int) -> int:
    """The bytes that a faulty iteration expects instead of a tile's: those of the kernel."""
    match fault.kind:
        case "expect_more":
            return tile_bytes + 16
        case "expect_less":
            return tile_bytes // 32 * 16
        case _:
            return tile_bytes


PRODUCER_CONSUMER = Twin(
    "producer_consumer",
    ranges={
        "stages": Range(1, 32),
        "tiles": Range(0, 1 << 20),
        "tile_bytes": Range(16, (1 << 20) - 16, multiple_of=16),
        "consumer_warps": Range(1, 8),
        "work": Range(0, 1 << 24),
        "arrive_lanes": Range(1, 32, one_of=(1, 32)),
    },
    defines=defines,
    shape=shape,
    arguments=_arguments,
    nbytes=lambda params: (params["tile_bytes"],),
    room=6,
    require=_require,
    work=lambda params: params["work"],
    loop=Loop(lambda params: params["tiles"], lambda params: period_marks(params["tiles"], params["stages"])),
    faults=Faults(check_fault, lambda fault, params: (expected_bytes(fault, params["tile_bytes"]),)),
    alone=True,
    alignment=0,
    metadata=lambda params, grid: {"source_tiles": source_tiles(params, grid)},
)
