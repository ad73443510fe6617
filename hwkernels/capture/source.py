"""A kernel that is not ours: what to compile, launch and record, the checks of it, and its builds. Needs no GPU."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from pathlib import Path

from hwkernels.capture.arguments import Argument, as_bytes, contents, parse_argument, read_npy
from hwkernels.device.compile import Compiled, compile_foreign
from hwkernels.recorder.counts import least_capacity
from hwkernels.recorder.layout import CLOCKS, MAX_AGENTS, RECORD_WORDS
from hwkernels.recorder.table import Table, names_in, read_table
from pipesim.errors import ConfigurationError, ParameterError, UsageError
from pipesim.trace.schema import EventKind

ROOM = 16  #: PIPESIM_ROOM where the kernel does not say otherwise
_MAX_STAGES = 32
USUAL_CAPACITY = 1 << 14
_DEVICE_BYTES, _HOST_BYTES = 1 << 30, 1 << 28  # of records
_MAX_THREADS = 1024
_MAX_CLUSTER = 16
_WITH_BYTES = (EventKind.EXPECT, EventKind.COPY)


@dataclass(frozen=True)
class ForeignRequest:
    """What to run and what to record.

    ``source``, ``table``: files. ``entry``: the kernel's name in C++, "" if the source has one. ``defines``: -D of all
    builds. ``options``: further ones of NVRTC. ``grid``, ``block``: up to three numbers each. ``cluster``: CTAs of one.
    ``smem_bytes``: dynamic shared memory of a CTA. ``expected``: the .npy file that an output must equal, by its name.
    ``nbytes``: bytes of an EXPECT or COPY, by the value in its record. ``protocol``, ``params``: what the trace says it
    is of. ``capacity``: records an agent. ``timeout_s``: when a launch is given up. The rest as in CaptureRequest.
    """

    source: str
    table: str
    protocol: str
    params: Mapping[str, int]
    grid: tuple[int, ...]
    block: tuple[int, ...]
    arguments: tuple[Argument, ...] = ()
    entry: str = ""
    defines: Mapping[str, str] | None = None
    options: tuple[str, ...] = ()
    cluster: int = 1
    smem_bytes: int = 0
    expected: Mapping[str, str] | None = None
    nbytes: tuple[int, ...] = ()
    clock: str = "clock"
    repetitions: int = 5
    record_ctas: int = 8
    seed: int = 0
    capacity: int = USUAL_CAPACITY
    timeout_s: int = 10

    @property
    def ctas(self) -> int:
        """CTAs in the launch."""
        return prod(self.grid)


@dataclass(frozen=True)
class ForeignLayout:
    """How the records lie in memory: ``ctas`` of ``table``'s agents, of which the first ``record_ctas`` are fetched."""

    table: Table
    ctas: int
    capacity: int
    record_ctas: int
    room: int  #: PIPESIM_ROOM


def table_values(table: Path, defines: Mapping[str, str], params: Mapping[str, int]) -> dict[str, int]:
    """A value for every name in the table: from -D, or the protocol's parameter of that name in lower case.

    The kernel is compiled with the same values, so that kernel, table and protocol cannot disagree. UsageError for a
    table that is not there, or a name without a value.
    """
    if not table.is_file():
        raise UsageError(
            f"there is no table {table}",
            cause="it lists the roles, barriers and recording sites of the kernel",
            correction="write one beside the kernel, or name it with --table",
        )
    values: dict[str, int] = {}
    for name in sorted(names_in(table)):
        given = defines.get(name, params.get(name.lower(), params.get(name)))
        try:
            values[name] = int(str(given), 0)
        except ValueError:
            raise UsageError(
                f"the table's {name} has no value" if given is None else f"{name}={given} is not a whole number",
                place=str(table),
                correction=f"give -D {name}=4, or a protocol with a parameter {name.lower()}",
            ) from None
    return values


def all_defines(request: ForeignRequest) -> dict[str, str]:
    """What every build defines: the -D, and the values that the table needs."""
    defines = dict(request.defines or {})
    values = table_values(Path(request.table), defines, request.params)
    return {**{name: str(value) for name, value in values.items()}, **defines}


def table_of(request: ForeignRequest) -> Table:
    """The kernel's table with this request's values. Raises UsageError."""
    table = Path(request.table)
    return read_table(table, table_values(table, request.defines or {}, request.params))


def compile_builds(request: ForeignRequest, *names: str) -> dict[str, Compiled]:
    """The builds of these names: "plain" (nothing recorded), "traced", "eager" (every record is stored at once)."""
    switches = {"PIPESIM_TRACE": "1", "PIPESIM_CLOCK": str(CLOCKS[request.clock]), "PIPESIM_MEMORY": "1"}
    builds = {"plain": {"PIPESIM_TRACE": "0"}, "traced": switches, "eager": {**switches, "PIPESIM_EAGER": "1"}}
    defines = all_defines(request)
    return {
        name: compile_foreign(Path(request.source), defines | builds[name], request.options, request.entry)
        for name in names
    }


def plan_foreign(request: ForeignRequest, *, host: bool) -> ForeignLayout:
    """Where the records go; ``host``: to the host's memory, of which less is asked for."""
    table = table_of(request)
    each = request.ctas * len(table.agents) * 4 * RECORD_WORDS[request.clock]
    capacity = min(request.capacity, (_HOST_BYTES if host else _DEVICE_BYTES) // each)
    room = _room(request)
    if capacity < least_capacity(room):
        raise ConfigurationError(
            f"there is no room for the records of {request.ctas:,} CTAs", correction="launch fewer CTAs"
        )
    return ForeignLayout(table, request.ctas, capacity, min(request.record_ctas, request.ctas), room)


def _room(request: ForeignRequest) -> int:
    """PIPESIM_ROOM: what the compiler is told, else what ``recorder.cuh`` says."""
    text = (request.defines or {}).get("PIPESIM_ROOM", str(ROOM))
    if not text.isdecimal() or not 1 <= int(text) <= 1 << 16:
        raise ParameterError(f"-D PIPESIM_ROOM={text} is not a number of records", correction="use 1 to 65,536")
    return int(text)


def check_foreign(request: ForeignRequest) -> None:
    """Raise a UsageError of some kind unless all of the request can be carried out as far as is known without a GPU."""
    if not Path(request.source).is_file():
        raise UsageError(f"there is no kernel {request.source}", correction="check the path after --kernel")
    for name, value, low, high in (
        *((f"a number of --grid {_shown(request.grid)}", n, 1, (1 << 31) - 1) for n in request.grid),
        *((f"a number of --block {_shown(request.block)}", n, 1, _MAX_THREADS) for n in request.block),
        ("--block, all threads", prod(request.block), 1, _MAX_THREADS),
        ("--cluster", request.cluster, 1, _MAX_CLUSTER),
        ("--smem", request.smem_bytes, 0, 232448),
        ("--repetitions", request.repetitions, 1, 1000),
        ("--record-ctas", request.record_ctas, 0, 65535),
        ("--capacity", request.capacity, least_capacity(_room(request)), 1 << 24),
        ("--timeout-s", request.timeout_s, 1, 3600),
        *(("--bytes", n, 1, (1 << 20) - 1) for n in request.nbytes),
    ):
        if not low <= value <= high:
            raise ParameterError(f"{name}: {value:,} is out of range", correction=f"use {low:,} to {high:,}")
    if request.grid[0] % request.cluster:
        raise ParameterError(
            f"--cluster {request.cluster} does not divide the {request.grid[0]} CTAs of --grid",
            correction=f"use a grid of {request.cluster}, {2 * request.cluster}, ...",
        )
    _check_table(request)
    _check_outputs(request)


def _shown(numbers: tuple[int, ...]) -> str:
    return ",".join(map(str, numbers))


def _check_table(request: ForeignRequest) -> None:
    table, threads = table_of(request), prod(request.block)
    agents = len(table.agents)
    if agents > MAX_AGENTS or not agents:
        raise UsageError(f"the table has {agents} warps", place=request.table, correction=f"use 1 to {MAX_AGENTS}")
    if 32 * agents > threads:
        raise UsageError(
            f"the table has {agents} warps, a block of {threads} threads has {-(-threads // 32)}",
            place=request.table,
            correction=f"give --block {32 * agents} or more, or a table of fewer warps",
        )
    deep = next((group for group in table.barriers if group.stages > _MAX_STAGES), None)
    if deep is not None:
        raise UsageError(
            f"barrier group {deep.name} has {deep.stages} stages; a record can name {_MAX_STAGES}", place=request.table
        )
    moving = [site.name for site in table.sites if site.kind in _WITH_BYTES]
    if moving and not request.nbytes:
        raise UsageError(
            f"the records of {moving[0]} do not give the number of bytes that it moves",
            place=request.table,
            correction="give --bytes N, or N0,N1,...: the bytes of records whose value is 0, 1, ...",
        )


def _check_outputs(request: ForeignRequest) -> None:
    outputs = {a.name: a for a in request.arguments if a.kind == "out"}
    if len(outputs) < sum(a.kind == "out" for a in request.arguments):
        raise ParameterError("two outputs have the same name", correction="name each: out:BYTES:NAME")
    for position, argument in enumerate(request.arguments):
        parse_argument(str(argument), position)
        if argument.kind == "npy":
            read_npy(argument.text)
    for name, path in (request.expected or {}).items():
        if name not in outputs:
            raise ParameterError(
                f"--expect {name}={path} does not name an output", correction=f"they are {', '.join(outputs) or 'none'}"
            )
        size, wanted = len(contents(outputs[name], 0, 0)), as_bytes(read_npy(path)).nbytes
        if size != wanted:
            raise ParameterError(f"{path} has {wanted:,} bytes, the output {name} has {size:,}")
