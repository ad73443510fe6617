"""What a launch file says: the shape of a launch, its arguments, and the policies that stand in for other CTAs."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import NamedTuple, TypeAlias

LAUNCH_VERSION = 1
FORMAT = "pipesim-launch"

Shape = tuple[int, int, int]  #: x, y, z
NO_SHAPE: Shape = (0, 0, 0)  #: a size that nobody has given yet

#: Bytes of a value of each type; integers are stored in two's complement, floating-point types by their bits.
TYPES = {
    **{f"{kind}{bits}": bits // 8 for kind in "bus" for bits in (8, 16, 32, 64)},
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f64": 8,
}

#: Bits of an element in shared memory, by the name of the driver's data type (CUtensorMapDataType).
ELEMENTS = {
    "u8": 8,
    "u16": 16,
    "u32": 32,
    "s32": 32,
    "u64": 64,
    "s64": 64,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
    "f32_ftz": 32,
    "tf32": 32,
    "tf32_ftz": 32,
    "u4_align8": 4,
    "u4_align16": 8,
    "u6_align16": 8,
}
SWIZZLES = ("none", "32B", "64B", "96B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B")
INTERLEAVES = ("none", "16B", "32B")


@dataclass(frozen=True)
class Number:
    """A scalar of one of TYPES; ``value`` is None where the file leaves it open."""

    type: str
    value: int | float | None


@dataclass(frozen=True)
class Array:
    """Integers of one of TYPES, one after the other."""

    type: str
    values: tuple[int, ...]


@dataclass(frozen=True)
class TensorMap:
    """A 128-byte tensor map (``cuTensorMapEncodeTiled``, or ``Im2col`` with ``pixels`` above 0).

    Sizes are in elements, the innermost dimension first; ``strides`` are in bytes and begin with the second dimension.
    Without an ``element`` or a ``box``, the map is one of which nothing is known.
    With ``pixels``, ``box`` is (channels,) and a copy moves that many channels of that many pixels.
    """

    element: str = ""
    dims: tuple[int, ...] = ()
    box: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    element_strides: tuple[int, ...] = ()
    swizzle: str = "none"
    interleave: str = "none"
    pixels: int = 0

    @cached_property
    def box_bytes(self) -> int:
        """Bytes that one copy writes to shared memory, parts outside of the tensor (zeros) included; 0 if not known."""
        if not self.element or not self.box:
            return 0
        steps = self.element_strides or (1,) * len(self.box)
        elements = prod(-(-size // step) for size, step in zip(self.box, steps, strict=False))
        return elements * max(self.pixels, 1) * ELEMENTS[self.element] // 8


class Field(NamedTuple):
    """Something at a byte offset of a structure or of the memory behind a pointer."""

    offset: int
    content: Content


@dataclass(frozen=True)
class Pointer:
    """An address in global memory, aligned to ``align`` bytes; ``contents`` is what is known of the memory there."""

    align: int = 256
    contents: tuple[Field, ...] = ()


@dataclass(frozen=True)
class Struct:
    """A parameter passed by value, of ``size`` bytes; bytes that no field covers are unknown."""

    size: int
    fields: tuple[Field, ...]


Content: TypeAlias = Number | Array | TensorMap | Pointer | Struct


class Parameter(NamedTuple):
    """A parameter of the kernel and the author's name for it ("" if not known)."""

    name: str
    content: Content


@dataclass(frozen=True)
class Policies:
    """What other CTAs would decide. ``tile_counter``: the first value that an atomic on a tile counter returns.

    ``launch_control``: how many clusters ``clusterlaunchcontrol.try_cancel`` hands to this one before it fails.
    ``lock_failures``: how many compare-and-swaps find a word of global memory taken before the first that takes it.
    """

    tile_counter: int = 0
    launch_control: int = 1
    lock_failures: int = 0


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel. ``dynamic_shared`` is in bytes; ``registers`` are those of a thread, 0 if not known.

    ``cta``: the one that is followed, with the others of its cluster: its number in the grid, x counted first.
    """

    entry: str
    grid: Shape
    block: Shape
    cluster: Shape = (1, 1, 1)
    dynamic_shared: int = 0
    registers: int = 0
    parameters: tuple[Parameter, ...] = ()
    policies: Policies = field(default_factory=Policies)
    version: int = LAUNCH_VERSION
    cta: int = 0

    @property
    def first_cta(self) -> Shape:
        """Where the cluster begins that is followed."""
        x, y, _ = self.grid
        at = (self.cta % x, self.cta // x % y, self.cta // (x * y))
        first = [a // c * c for a, c in zip(at, self.cluster, strict=True)]
        return first[0], first[1], first[2]


def size_of(content: Content) -> int:
    """Bytes that something takes as a parameter or in a structure."""
    match content:
        case Number(type=kind):
            return TYPES[kind]
        case Array(type=kind, values=values):
            return TYPES[kind] * len(values)
        case TensorMap():
            return 128
        case Pointer():
            return 8
        case Struct(size=size):
            return size
