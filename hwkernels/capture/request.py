"""What can be captured: a request, the checks of its values, and how it lies in memory. Needs no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hwkernels.capture.faults import KernelFault, check_fault
from hwkernels.device.compile import Compiled, compile_cubin
from hwkernels.device.sources import source_file
from hwkernels.recorder.counts import buffer_records, least_capacity
from hwkernels.recorder.layout import CLOCKS, MEMORIES, RECORD_WORDS, ROOM
from hwkernels.recorder.table import Table, read_table
from pipesim.errors import ConfigurationError, ParameterError
from pipesim.trace.steady import steady_window

PROTOCOL = "producer_consumer"
SOURCE = source_file(f"{PROTOCOL}.cu")
TABLE = source_file(f"{PROTOCOL}.table.h")
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
_RECORD_BYTES = 1 << 30
_PATIENCE = 4  #: nanoseconds of a deadline for each cycle of work: a cycle takes about half of one
_DEADLINE_MS = 2000  # the kernel counts nanoseconds in 31 bits


@dataclass(frozen=True)
class CaptureRequest:
    """What to run and what to record.

    ``params``: stages, tiles, tile_bytes, consumer_warps, arrive_lanes, work (SM cycles a tile). ``grid``: CTAs, one
    an SM at a time. ``clock``: "clock", "globaltimer" or "both". ``repetitions``: pairs of an untraced and a traced
    launch. ``record_ctas``: how many CTAs' events to keep. ``deadline_ms``: when a wait gives up. ``window``: (first,
    end) of the iterations to keep, () for all. ``capacity``: records an agent, in whole iterations of ROOM,
    or None for all of the window. ``memory``: where records go first: "shared", "device", "host", or ""
    for shared memory if they fit there, else device memory. ``fault``: what to do wrong. ``probe``: (a role's first
    warp, records) to record nothing but so many records at one place an iteration, which measures what one costs.
    """

    params: Mapping[str, int]
    grid: int = 1
    clock: str = "clock"
    repetitions: int = 5
    record_ctas: int = 8
    deadline_ms: int = 250
    seed: int = 0
    capacity: int | None = None
    window: tuple[int, ...] = ()
    memory: str = ""
    fault: KernelFault | None = None
    probe: tuple[int, ...] = ()

    @property
    def protocol(self) -> str:
        """The protocol that it is a run of."""
        return PROTOCOL

    @property
    def ctas(self) -> int:
        """CTAs in the launch."""
        return self.grid


@dataclass(frozen=True)
class Layout:
    """How a request lies in memory: computed once for all its launches, traced and untraced."""

    table: Table
    threads: int
    smem_bytes: int
    capacity: int  #: records that an agent's buffer has room for
    room: int  #: records that an iteration makes at most
    memory: str  #: where records go first
    source_tiles: int
    marks: tuple[int, int]  #: iterations between which the period is measured; NEVER twice if there are too few
    record_ctas: int


def compile_kernel(request: CaptureRequest, *, traced: bool, memory: str = "") -> Compiled:
    """The kernel of a request, with or without its recorder, which writes to ``memory``. Needs no GPU."""
    defines = {DEFINES[name]: request.params[name] for name in DEFINES}
    defines["PIPESIM_TRACE"] = int(traced)
    if request.fault is not None:
        defines["PIPESIM_FAULT"] = request.fault.number
    if traced:
        defines |= {"PIPESIM_CLOCK": CLOCKS[request.clock], "PIPESIM_MEMORY": MEMORIES[memory or "shared"]}
    if traced and memory == "host":
        defines["PIPESIM_EAGER"] = 1
    if request.probe:  # in both builds: a bare consumer is one of the differences
        defines |= {"PIPESIM_PROBE_ROLE": request.probe[0], "PIPESIM_PROBE": request.probe[1]}
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
    record_bytes = 4 * RECORD_WORDS[request.clock]
    kept = min(request.window[1], tiles) - request.window[0] if request.window else tiles
    each = max(ROOM, request.probe[1]) if request.probe else ROOM
    wanted = buffer_records(kept if request.capacity is None else request.capacity // each, each)
    room = (smem_per_cta - needed) // (agents * record_bytes)
    memory = request.memory or ("host" if request.fault else "shared" if wanted <= room else "device")
    most = room if memory == "shared" else _RECORD_BYTES // (request.grid * agents * record_bytes)
    capacity = min(wanted, most)
    if capacity < least_capacity(each):
        raise ConfigurationError(
            f"there is no room for records in {memory} memory",
            cause=f"{capacity} fit for each of {agents} warps, but {least_capacity(each)} are needed",
            correction="record to device memory (--memory device), or use fewer stages or smaller tiles",
        )
    # More than half of an SM's memory: two CTAs never share an SM, whatever the grid.
    alone = min(smem_per_sm // 2 + 1024, smem_per_cta)
    return Layout(
        table,
        32 * agents,
        max(needed + agents * capacity * record_bytes if memory == "shared" else needed, alone),
        capacity,
        each,
        memory,
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
    ]
    for name, value, low, high in ranges:
        if not low <= value <= high:
            raise ParameterError(f"{name} = {value} is out of range", correction=f"use {low:,} to {high:,}")
    if request.deadline_ms * 1_000_000 < _PATIENCE * request.params["work"]:
        raise ParameterError(
            f"a deadline of {request.deadline_ms} ms is too short for {request.params['work']:,} cycles of work a tile",
            cause="a slow wait would be reported as a hang",
            correction=f"give at least {-(-_PATIENCE * request.params['work'] // 1_000_000)} ms, or less work",
        )
    if request.params["tile_bytes"] % 16:
        raise ParameterError(f"tile_bytes = {request.params['tile_bytes']} is not a multiple of 16")
    if request.params["arrive_lanes"] not in {1, 32}:
        raise ParameterError(f"arrive_lanes = {request.params['arrive_lanes']}", correction="use 1 or 32")
    if request.memory not in {"", *MEMORIES}:
        raise ParameterError(f"memory = {request.memory!r}", correction=f"use one of {', '.join(MEMORIES)}")
    _check_window(request)
    if request.fault is not None:
        check_fault(request.fault, request.params)
    if request.clock not in CLOCKS:
        raise ParameterError(f"clock = {request.clock!r}", correction=f"use one of {', '.join(CLOCKS)}")
    if request.grid * request.params["tiles"] * request.params["consumer_warps"] * 4 > _CHECKSUM_BYTES:
        raise ParameterError(
            "too many tiles: the checksums alone would fill 1 GiB", correction="use fewer tiles or CTAs"
        )


def _check_window(request: CaptureRequest) -> None:
    window, tiles = request.window, request.params["tiles"]
    if not window:
        return
    if len(window) != 2 or not 0 <= window[0] < window[1]:
        raise ParameterError(f"the window {window} is not the first and the end of some iterations")
    if window[0] >= tiles:
        raise ParameterError(
            f"the window starts at iteration {window[0]}, after the last of {tiles} tiles",
            correction="start it earlier",
        )
    if request.fault is not None:
        raise ParameterError(
            "a run with a fault is recorded completely",
            cause="the cause and the consequences of a fault may lie outside of a window",
            correction="leave the window out",
        )
