"""What a CUDA kernel of the registry is, in one description: source, parameters, launch, data and how it is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.device.launch import Shape
from hwkernels.device.sources import source_file
from hwkernels.recorder.table import Table, read_table
from pipesim.errors import ParameterError
from pipesim.trace.schema import BarrierGroup, Site

Params = Mapping[str, int]

#: ``stray_ns`` of a kernel whose tensor cores work: the clock slows down as they begin and end. Seen: 308 ns (H100).
TENSOR_STRAY_NS = 600


@dataclass(frozen=True)
class Range:
    """The values of a parameter that the kernel can run with; the protocol may allow more."""

    low: int
    high: int
    multiple_of: int = 1
    one_of: tuple[int, ...] = ()


@dataclass(frozen=True)
class Input:
    """A buffer that holds ``data`` (contiguous) before each launch. ``given``: the kernel is given its address."""

    name: str
    data: npt.NDArray[Any]
    given: bool = True


@dataclass(frozen=True)
class Output:
    """A buffer of ``expected``'s shape and of ``dtype``, all bytes 0xEE before each launch, compared after it.

    ``expected``: float64 or integers, its first axis the tiles. An element is right if it differs from ``expected`` by
    ``absolute + relative * |expected|`` at most. ``unpack`` makes comparable values of what ``dtype`` holds (bf16).
    """

    name: str
    expected: npt.NDArray[Any]
    dtype: str
    relative: float = 0.0
    absolute: float = 0.0
    unpack: Callable[[npt.NDArray[Any]], npt.NDArray[Any]] | None = None
    given: bool = True  #: as of an :class:`Input`; else only a tensor map knows it


@dataclass(frozen=True)
class TensorMap:
    """A descriptor of a tensor in the buffer ``of``, given by value: ``const __grid_constant__ CUtensorMap``.

    ``dtype``, ``swizzle``: as in the driver's names (``BFLOAT16``, ``128B``; ``NONE``). ``dims``: elements, innermost
    first. ``strides``: bytes of the dimensions behind the innermost. ``box``: elements of one copy.
    """

    of: str
    dtype: str
    dims: tuple[int, ...]
    strides: tuple[int, ...]
    box: tuple[int, ...]
    swizzle: str = "NONE"


Argument = Input | Output | TensorMap | np.generic  #: one of a kernel, in the order of its parameters


@dataclass(frozen=True)
class Recorded:
    """One configuration that belongs into the repository's traces: parameters that differ from the defaults."""

    params: Params = field(default_factory=dict)
    grid: int = 1
    clock: str = "clock"
    repetitions: int = 5
    deadline_ms: int = 250


@dataclass(frozen=True)
class Kernel:
    """A kernel that is the twin of the protocol of the same name.

    ``ranges``: of every parameter of the protocol. ``defines``: the macros, which are also the table's values.
    ``shape``: the launch of so many CTAs of the protocol's grid (clusters, if it has them), without room for records,
    which lie behind the barriers, the last of its shared memory, or outside of the CTA. ``arguments``: of the kernel,
    without PIPESIM_RUN_PARAMS, for a seed.
    ``nbytes``: what an EXPECT or COPY moves, by the value in its record. ``groups``: the table's names of barrier
    groups that the protocol spells otherwise. ``room``: PIPESIM_ROOM, the most records between two PIPESIM_AT.
    ``require``: raises ParameterError for values that do not go together. ``recorded``: what is kept of it in
    ``traces``. ``units``: what wrong_tiles counts and overhead is per. ``stray_ns``: how far at most its load moves the
    SM clock off the line between two anchors, beyond what every kernel's does.
    """

    name: str
    ranges: Mapping[str, Range]
    defines: Callable[[Params], Mapping[str, int]]
    shape: Callable[[Params, int], Shape]
    arguments: Callable[[Params, int, int], tuple[Argument, ...]]  #: parameters, grid, seed
    nbytes: Callable[[Params], tuple[int, ...]]
    groups: Mapping[str, str] = field(default_factory=dict)
    room: int = 16
    require: Callable[[Params], None] | None = None
    units: Callable[[Params], int] = lambda params: params.get("tiles", 0)
    recorded: tuple[Recorded, ...] = ()
    stray_ns: int = 0

    @property
    def source(self) -> Path:
        """The kernel's file."""
        return source_file(f"{self.name}.cu")

    @property
    def table_file(self) -> Path:
        """The file of its roles, barriers and sites."""
        return source_file(f"{self.name}.table.h")

    def table(self, params: Params) -> Table:
        """The table for these parameters, its barrier groups named as in the protocol."""
        table = read_table(self.table_file, self.defines(params))
        barriers = tuple(BarrierGroup(self.groups.get(b.name, b.name), b.stages, b.count) for b in table.barriers)
        sites = tuple(Site(s.name, s.role, s.kind, self.groups.get(s.barrier, s.barrier)) for s in table.sites)
        return Table(table.roles, barriers, sites)

    def check(self, params: Params) -> None:
        """Raise ParameterError unless the kernel can run with these parameters."""
        if set(params) != set(self.ranges):
            raise ParameterError(f"{self.name} takes {', '.join(self.ranges)}, not {', '.join(sorted(params))}")
        for name, allowed in self.ranges.items():
            value = params[name]
            if allowed.one_of and value not in allowed.one_of:
                raise ParameterError(
                    f"the kernel of {self.name} has no {name} = {value}",
                    correction=f"use {' or '.join(map(str, allowed.one_of))}",
                )
            if not allowed.low <= value <= allowed.high:
                raise ParameterError(
                    f"the kernel of {self.name} has no {name} = {value}",
                    correction=f"use {allowed.low:,} to {allowed.high:,}",
                )
            if value % allowed.multiple_of:
                raise ParameterError(
                    f"the kernel of {self.name} has no {name} = {value}",
                    correction=f"use a multiple of {allowed.multiple_of}",
                )
        if self.require is not None:
            self.require(params)


def dotted(*names: str) -> dict[str, str]:
    """``groups`` for rings that the protocol calls ``name.full`` and ``name.empty``, and the table ``name_full``."""
    return {f"{name}_{side}": f"{name}.{side}" for name in names for side in ("full", "empty")}
