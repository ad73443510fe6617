"""What of a kernel of the registry is to be run and recorded, the checks of it, and its builds. Needs no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from hwkernels.capture.twin import Kernel
from hwkernels.device.compile import Compiled, compile_cubin
from hwkernels.device.launch import Shape
from hwkernels.recorder.counts import least_capacity
from hwkernels.recorder.layout import CLOCKS, MAX_BARRIERS, MAX_REPORTED_AGENTS, MEMORIES, RECORD_WORDS
from hwkernels.recorder.table import Table
from hwkernels.twins import registered
from pipesim.errors import ConfigurationError, ParameterError
from pipesim.protocols.limits import MAX_SMEM
from pipesim.targets import find
from pipesim.trace.sites import site_table

_RECORD_BYTES = 1 << 30
_ALIGNMENT = 16  # of the records behind the barriers
_DEADLINE_MS = 2000  # the kernel counts nanoseconds in 31 bits


@dataclass(frozen=True)
class KernelRequest:
    """What to run and what to record.

    ``kernel``: the name of the protocol and of its twin. ``grid``: CTAs, or clusters where the protocol has them.
    ``clock``: "clock", "globaltimer" or "both". ``repetitions``: pairs of an untraced and a traced launch.
    ``record_ctas``: how many CTAs' events to keep. ``deadline_ms``: when a wait gives up. ``memory``: where records go
    first: "shared", "device", "host", where they survive a kernel that traps or hangs, and cost more, or "" for shared
    memory if they fit there, else device memory.
    """

    kernel: str
    params: Mapping[str, int]
    grid: int = 1
    clock: str = "clock"
    repetitions: int = 5
    record_ctas: int = 8
    deadline_ms: int = 250
    seed: int = 0
    memory: str = ""

    @property
    def protocol(self) -> str:
        """The protocol that it is a run of."""
        return self.kernel

    @property
    def ctas(self) -> int:
        """CTAs in the launch."""
        shape = registered(self.kernel).shape(self.params, self.grid)
        return shape.grid[0]


@dataclass(frozen=True)
class KernelLayout:
    """How a request lies in memory."""

    table: Table
    shape: Shape
    capacity: int  #: records that an agent's buffer has room for
    room: int  #: PIPESIM_ROOM
    memory: str
    record_ctas: int


def compile_kernel_of(request: KernelRequest, *, traced: bool, memory: str = "") -> Compiled:
    """The kernel of a request, with or without its recorder, which writes to ``memory``. Needs no GPU."""
    kernel = registered(request.kernel)
    defines = {**kernel.defines(request.params), "PIPESIM_TRACE": int(traced)}
    if traced:
        first = memory or request.memory or "shared"
        defines |= {
            "PIPESIM_CLOCK": CLOCKS[request.clock],
            "PIPESIM_MEMORY": MEMORIES[first],
            "PIPESIM_CHECKED": 0,
            "PIPESIM_COUNTED": 1,  # _require_protocol counts them
            "PIPESIM_ROOM": kernel.room,
        }
        if first == "host":
            defines["PIPESIM_EAGER"] = 1
    return compile_cubin(kernel.source, defines)


def plan_kernel(request: KernelRequest, smem_per_cta: int = MAX_SMEM) -> KernelLayout:
    """Where everything goes. Raises ConfigurationError if it does not fit, or kernel and protocol differ.

    An untraced launch gets the same shared memory as a traced one.
    """
    kernel = registered(request.kernel)
    table, shape = kernel.table(request.params), kernel.shape(request.params, request.grid)
    if shape.smem_bytes > smem_per_cta:
        raise ConfigurationError(
            f"the kernel needs {shape.smem_bytes:,} bytes of shared memory",
            cause=f"a CTA has {smem_per_cta:,}",
            correction="use fewer stages or smaller tiles",
        )
    records = _require_protocol(kernel, table, request)
    capacity = max(least_capacity(kernel.room), records + kernel.room + 2)
    record_ctas = min(request.record_ctas // shape.cluster * shape.cluster, request.ctas)  # whole clusters
    nbytes = len(table.agents) * capacity * 4 * RECORD_WORDS[request.clock]
    left = smem_per_cta - shape.smem_bytes - _ALIGNMENT
    memory = request.memory or ("shared" if nbytes <= left else "device")
    if memory == "shared" and nbytes > left:
        raise ConfigurationError(
            f"there is no room for {nbytes:,} bytes of records in shared memory",
            cause=f"the kernel leaves {max(left, 0):,}",
            correction="record to device memory (--memory device), or use fewer stages, tiles or steps",
        )
    if memory == "shared":
        shape = replace(shape, smem_bytes=shape.smem_bytes + _ALIGNMENT + nbytes)
    elif request.ctas * nbytes > _RECORD_BYTES:
        raise ConfigurationError(
            f"the records of {request.ctas:,} CTAs, {capacity:,} a warp, are too many",
            correction="use fewer tiles or CTAs",
        )
    return KernelLayout(table, shape, capacity, kernel.room, memory, record_ctas)


def _require_protocol(kernel: Kernel, table: Table, request: KernelRequest) -> int:
    """ConfigurationError unless table and protocol agree; else the most records that an agent makes."""
    program = find(kernel.name).build(dict(request.params), grid=request.ctas)
    known = site_table(program)
    sites = {(s.role, s.kind, s.barrier) for s in known.sites}
    strange = [s.name for s in table.sites if (s.role, s.kind, s.barrier) not in sites]
    missing = sites - {(s.role, s.kind, s.barrier) for s in table.sites}
    for what, mine, theirs in (
        ("agents", table.agents, known.agents),
        ("barriers", table.barriers, known.barriers),
        ("sites", missing, set()),
    ):
        if mine != theirs:
            raise ConfigurationError(
                f"the {what} of {kernel.table_file.name} are not those of the protocol",
                cause=f"kernel: {mine}; protocol: {theirs}; sites of the kernel alone: {strange}",
            )
    if len(table.agents) > MAX_REPORTED_AGENTS or sum(b.stages for b in table.barriers) > MAX_BARRIERS:
        raise ConfigurationError(
            f"{len(table.agents)} warps and {sum(b.stages for b in table.barriers)} barriers do not fit the report",
            cause=f"it has room for {MAX_REPORTED_AGENTS} and {MAX_BARRIERS}",
            correction="use fewer stages or warps",
        )
    return max((sum(len(of_op) for of_op in of_agent) for of_agent in known.records), default=0)


def check_kernel_request(request: KernelRequest) -> None:
    """Raise ParameterError unless every part of the request has a value that the kernel can run with."""
    registered(request.kernel).check(request.params)
    for name, value, low, high in (
        ("grid", request.grid, 1, 65535),
        ("repetitions", request.repetitions, 1, 1000),
        ("record_ctas", request.record_ctas, 0, 65535),
        ("deadline_ms", request.deadline_ms, 1, _DEADLINE_MS),
    ):
        if not low <= value <= high:
            raise ParameterError(f"{name} = {value} is out of range", correction=f"use {low:,} to {high:,}")
    if request.memory not in {"", *MEMORIES}:
        raise ParameterError(f"memory = {request.memory!r}", correction=f"use one of {', '.join(MEMORIES)}")
    if request.clock not in CLOCKS:
        raise ParameterError(f"clock = {request.clock!r}", correction=f"use one of {', '.join(CLOCKS)}")
