"""What can be captured: a request, the checks of its values, and how it lies in memory. Needs no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hwkernels.compile import KERNELS, Compiled, compile_cubin
from hwkernels.layout import CLOCKS, RECORD_WORDS
from hwkernels.table import Table, read_table
from pipesim.errors import ConfigurationError, ParameterError
from pipesim.trace.steady import steady_window

PROTOCOL = "producer_consumer"
SOURCE = KERNELS / f"{PROTOCOL}.cu"
TABLE = KERNELS / f"{PROTOCOL}.table.h"
DEFINES = {
    "stages": "STAGES",
    "tile_bytes": "TILE_BYTES",
    "consumer_warps": "CONSUMER_WARPS",
    "arrive_lanes": "ARRIVE_LANES",
}
PARAMETERS = (*DEFINES, "tiles", "work")
SOURCE_BYTES = 16 << 20  #: tiles are read from so much memory at most, so that they stay in the L2 cache
NEVER = 0xFFFFFFFF  #: a mark that no iteration reaches
_CHECKSUM_BYTES = 1 << 30
_PATIENCE = 4  #: nanoseconds of a deadline for each cycle of work: a cycle takes about half of one
_DEADLINE_MS = 2000  # the kernel counts nanoseconds in 31 bits


@dataclass(frozen=True)
class CaptureRequest:
    """What to run and what to record.

    ``params``: stages, tiles, tile_bytes, consumer_warps, arrive_lanes, work (SM cycles a tile). ``grid``: CTAs, one
    an SM at a time. ``clock``: "clock", "globaltimer" or "both". ``repetitions``: pairs of an untraced and a traced
    launch. ``record_ctas``: how many CTAs' events to keep. ``deadline_ms``: when a wait gives up. ``capacity``: records
    an agent, or None for all that it will write; less where shared memory leaves less. ``break_kind``: 0, or a number
    of PIPESIM_BREAK to run the kernel with that fault.
    """

    params: Mapping[str, int]
    grid: int = 1
    clock: str = "clock"
    repetitions: int = 5
    record_ctas: int = 8
    deadline_ms: int = 250
    seed: int = 0
    capacity: int | None = None
    break_kind: int = 0


@dataclass(frozen=True)
class Layout:
    """How a request lies in memory: computed once for all its launches, traced and untraced."""

    table: Table
    threads: int
    smem_bytes: int
    capacity: int  #: records an agent
    source_tiles: int
    marks: tuple[int, int]  #: iterations between which the period is measured; NEVER twice if there are too few
    record_ctas: int


def compile_kernel(request: CaptureRequest, *, traced: bool) -> Compiled:
    """The kernel of a request, with or without its recorder. Needs no GPU."""
    defines = {DEFINES[name]: request.params[name] for name in DEFINES}
    defines |= {"PIPESIM_TRACE": int(traced), "PIPESIM_BREAK": request.break_kind}
    if traced:
        defines["PIPESIM_CLOCK"] = CLOCKS[request.clock]
    return compile_cubin(SOURCE, defines)


def plan(request: CaptureRequest, smem_per_cta: int, smem_per_sm: int) -> Layout:
    """Where everything goes. Raises ConfigurationError if the tiles do not fit. Needs no GPU."""
    stages, tiles, tile_bytes = (request.params[name] for name in ("stages", "tiles", "tile_bytes"))
    table = read_table(TABLE, {DEFINES[name]: request.params[name] for name in DEFINES})
    agents = len(table.agents)
    needed = stages * tile_bytes + 8 * sum(group.stages for group in table.barriers)
    if needed > smem_per_cta:
        raise ConfigurationError(
            f"{stages} stages of {tile_bytes:,} bytes need {needed:,} bytes of shared memory",
            cause=f"a CTA has {smem_per_cta:,}",
            correction="use fewer stages or smaller tiles",
        )
    sites = max(sum(1 for site in table.sites if site.role == role) for role, _ in table.roles)
    record_bytes = 4 * RECORD_WORDS[request.clock]
    wanted = sites * tiles if request.capacity is None else request.capacity
    capacity = min(wanted, (smem_per_cta - needed) // (agents * record_bytes))
    # More than half of an SM's memory: two CTAs never share an SM, whatever the grid.
    alone = min(smem_per_sm // 2 + 1024, smem_per_cta)
    return Layout(
        table,
        32 * agents,
        max(needed + agents * capacity * record_bytes, alone),
        capacity,
        max(1, min(SOURCE_BYTES // tile_bytes, max(2 * stages + 1, tiles * request.grid), 1 << 16)),
        period_marks(tiles, stages),
        min(request.record_ctas, request.grid),
    )


def period_marks(tiles: int, stages: int) -> tuple[int, int]:
    """The two iterations between which the kernel takes its period; NEVER twice if there are too few."""
    return steady_window(tiles, stages) or (NEVER, NEVER)


def check_request(request: CaptureRequest) -> None:
    """Raise ParameterError unless every part of the request has a value that the kernel can run with."""
    if set(request.params) != set(PARAMETERS):
        raise ParameterError(f"{PROTOCOL} takes {', '.join(PARAMETERS)}, not {', '.join(sorted(request.params))}")
    allowed = {
        "stages": (1, 32),
        "tiles": (0, 1 << 20),
        "tile_bytes": (16, (1 << 20) - 16),
        "consumer_warps": (1, 8),
        "arrive_lanes": (1, 32),
        "work": (0, 1 << 24),
    }
    ranges = [(name, request.params[name], *allowed[name]) for name in PARAMETERS]
    ranges += [
        ("grid", request.grid, 1, 65535),
        ("repetitions", request.repetitions, 1, 1000),
        ("record_ctas", request.record_ctas, 0, 65535),
        ("deadline_ms", request.deadline_ms, 1, _DEADLINE_MS),
        ("capacity", 0 if request.capacity is None else request.capacity, 0, 1 << 20),
        ("break_kind", request.break_kind, 0, 2),
    ]
    for name, value, low, high in ranges:
        if not low <= value <= high:
            raise ParameterError(f"{name} = {value} is out of range", correction=f"use {low:,} to {high:,}")
    if request.deadline_ms * 1_000_000 < _PATIENCE * request.params["work"]:
        raise ParameterError(
            f"a deadline of {request.deadline_ms} ms is too short for {request.params['work']:,} cycles of work a tile",
            cause="a wait that is merely slow would be taken for a hang",
            correction=f"give at least {-(-_PATIENCE * request.params['work'] // 1_000_000)} ms, or less work",
        )
    if request.params["tile_bytes"] % 16:
        raise ParameterError(f"tile_bytes = {request.params['tile_bytes']} is not a multiple of 16")
    if request.params["arrive_lanes"] not in {1, 32}:
        raise ParameterError(f"arrive_lanes = {request.params['arrive_lanes']}", correction="use 1 or 32")
    if request.clock not in CLOCKS:
        raise ParameterError(f"clock = {request.clock!r}", correction=f"use one of {', '.join(CLOCKS)}")
    if request.grid * request.params["tiles"] * request.params["consumer_warps"] * 4 > _CHECKSUM_BYTES:
        raise ParameterError(
            "too many tiles: the checksums alone would fill 1 GiB", correction="use fewer tiles or CTAs"
        )
