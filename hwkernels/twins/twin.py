"""What a twin is: a CUDA kernel of a protocol, described by its source, parameters, launch, data and checks."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from hwkernels.device.launch import Shape
from hwkernels.device.sources import source_file
from hwkernels.source_recorder.table import Table, read_table
from hwkernels.twins.buffers import Argument
from hwkernels.twins.fault import KernelFault
from pipesim.errors import ParameterError
from pipesim.trace.schema import BarrierGroup, Site

Params = Mapping[str, int]

NEVER = 0xFFFFFFFF  #: a mark that no iteration reaches

#: ``stray_ns`` of a kernel whose tensor cores work: the clock slows down as they begin and end. Seen: 364 ns (H200).
TENSOR_STRAY_NS = 600


@dataclass(frozen=True)
class Range:
    """The values of a parameter that the kernel can run with; the protocol may allow more."""

    low: int
    high: int
    multiple_of: int = 1
    one_of: tuple[int, ...] = ()

    def correction_of(self, value: int) -> str:
        """Which values to use instead of this one, "" if it can be run with."""
        if self.one_of and value not in self.one_of:
            return f"use {' or '.join(map(str, self.one_of))}"
        if not self.low <= value <= self.high:
            return f"use {self.low:,} to {self.high:,}"
        return f"use a multiple of {self.multiple_of}" if value % self.multiple_of else ""


@dataclass(frozen=True)
class Loop:
    """The loop of a twin whose roles all go through one, each site once an iteration.

    The kernel itself bounds what an iteration records, so that a window of iterations can be kept, and a buffer that is
    too small loses whole ones. ``iterations``: of every role. ``marks``: those between which the kernel takes its
    period, NEVER twice if there are too few.
    """

    iterations: Callable[[Params], int]
    marks: Callable[[Params], tuple[int, int]]


@dataclass(frozen=True)
class Faults:
    """The fault that can be injected into a twin: ``PIPESIM_FAULT`` in its source.

    ``check``: raises ParameterError for a fault that a kernel of these parameters never reaches, or cannot have.
    ``nbytes``: what an EXPECT or COPY of the faulty iteration moves, numbered after those of the twin.
    """

    check: Callable[[KernelFault, Params], None]
    nbytes: Callable[[KernelFault, Params], tuple[int, ...]]


@dataclass(frozen=True)
class Twin:
    """A kernel that is the twin of the protocol of the same name.

    ``ranges``: of every parameter of the protocol. ``defines``: the macros, which are also the table's values.
    ``shape``: the launch of this many CTAs of the protocol's grid (clusters, if it has them), without room for records,
    which lie after the barriers, the last of its shared memory, or outside of the CTA. ``arguments``: of the kernel,
    for a seed; PIPESIM_RUN_PARAMS follow if they are not among them.
    ``nbytes``: what an EXPECT or COPY moves, by the value in its record. ``groups``: the table's names of barrier
    groups that the protocol spells otherwise. ``room``: PIPESIM_ROOM, the most records between two PIPESIM_AT.
    ``require``: raises ParameterError for values that cannot be combined, of parameters and grid. ``units``: what
    wrong_tiles counts and overhead is per. ``stray_ns``: how far at most its load moves the SM clock off the line
    between two anchors, beyond what every kernel's does. ``work``: SM cycles that a role may spend between two waits.
    ``loop``, ``faults``: features that not every twin has. ``alone``: two CTAs must never share an SM. ``alignment``:
    of the records in shared memory. ``metadata``: what else its traces say.
    """

    name: str
    ranges: Mapping[str, Range]
    defines: Callable[[Params], Mapping[str, int]]
    shape: Callable[[Params, int], Shape]
    arguments: Callable[[Params, int, int], tuple[Argument, ...]]  #: parameters, grid, seed
    nbytes: Callable[[Params], tuple[int, ...]]
    groups: Mapping[str, str] = field(default_factory=dict)
    room: int = 16
    require: Callable[[Params, int], None] | None = None
    units: Callable[[Params], int] = lambda params: params.get("tiles", 0)
    stray_ns: int = 0
    work: Callable[[Params], int] = lambda _params: 0
    loop: Loop | None = None
    faults: Faults | None = None
    alone: bool = False
    alignment: int = 16
    metadata: Callable[[Params, int], Mapping[str, int]] = lambda _params, _grid: {}

    @property
    def source(self) -> Path:
        """The kernel's file."""
        return source_file(f"{self.name}.cu")

    @property
    def table_file(self) -> Path:
        """The file of its roles, barriers and sites."""
        return source_file(f"{self.name}.table.h")

    @property
    def features(self) -> frozenset[str]:
        """What of a request only some twins have, as the command line or the request calls it."""
        of_loop = {"--window", "capacity"} if self.loop is not None else set[str]()
        return frozenset(of_loop | ({"--fault"} if self.faults is not None else set()))

    def table(self, params: Params) -> Table:
        """The table for these parameters, its barrier groups named as in the protocol."""
        table = read_table(self.table_file, self.defines(params))
        barriers = tuple(BarrierGroup(self.groups.get(b.name, b.name), b.stages, b.count) for b in table.barriers)
        sites = tuple(Site(s.name, s.role, s.kind, self.groups.get(s.barrier, s.barrier)) for s in table.sites)
        return Table(table.roles, barriers, sites)

    def check(self, params: Params, grid: int = 1) -> None:
        """Raise ParameterError unless the kernel can run with these parameters and this many CTAs (or clusters)."""
        if set(params) != set(self.ranges):
            raise ParameterError(f"{self.name} takes {', '.join(self.ranges)}, not {', '.join(sorted(params))}")
        for name, allowed in self.ranges.items():
            correction = allowed.correction_of(params[name])
            if correction:
                fact = f"the kernel of {self.name} has no {name} = {params[name]}"
                raise ParameterError(fact, correction=correction)
        if self.require is not None:
            self.require(params, grid)


def dotted_groups(*names: str) -> dict[str, str]:
    """``groups`` for rings that the protocol calls ``name.full`` and ``name.empty``, and the table ``name_full``."""
    return {f"{name}_{side}": f"{name}.{side}" for name in names for side in ("full", "empty")}
