"""What a launch file says: the shape of a launch, its arguments, and the policies that stand in for other CTAs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import prod
from typing import Any, NamedTuple, TypeAlias

from pipesim.errors import ParameterError
from pipesim.model.dependent_launch import EarlierUse
from pipesim.model.rules.warp_shape import WARP, register_bound
from pipesim.model.tables import BLACKWELL
from pipesim.model.words import SEES, STRONG_DATA, TURNS

LAUNCH_VERSION = 1
FORMAT = "pipesim-launch"
MOST_TOGETHER = 8  #: CTAs that are followed together of a larger grid
MOST_OF_GRID = 256  #: of a grid that is followed whole
SIZES_TOGETHER = (2, 3, 4)  #: of them, where the grid may have any size
LAUNCH_CONTROL, TILE_COUNTER = "launch_control", "tile_counter"  #: policies; of ``--any`` the numbers of tiles
ANY_DATA = "any_data"
ANSWERS_OF_DATA = "answers_of_data"  #: how the names of what data decides begin
HANDED_OUT = "handed_out"  #: the policy, and the name of the tiles that are handed out where they are free

Shape = tuple[int, int, int]  #: x, y, z
#: Sizes, as words of ``--set``.
SHAPES = tuple(f"{shape}{axis}" for shape in ("grid", "block", "cluster") for axis in ("", ".y", ".z"))
NO_SHAPE: Shape = (0, 0, 0)  #: a size that has not been given yet


def shape_of(sizes: Sequence[int]) -> Shape:
    """Three sizes, x first, of one to three that are given."""
    x, y, z = (*sizes, 1, 1)[:3]
    return x, y, z


#: Bytes of a value of each type; integers are stored in two's complement, floating-point types by their bits.
TYPES = {
    **{f"{kind}{bits}": bits // 8 for kind in "bus" for bits in (8, 16, 32, 64)},
    "f16": 2,
    "bf16": 2,
    "f32": 4,
    "f64": 8,
}

#: Bits of an element in shared memory, by the driver's data type (CUtensorMapDataType), in the order of its numbers.
ELEMENTS = {
    "u8": 8,
    "u16": 16,
    "u32": 32,
    "s32": 32,
    "u64": 64,
    "s64": 64,
    "f16": 16,
    "f32": 32,
    "f64": 64,
    "bf16": 16,
    "f32_ftz": 32,
    "tf32": 32,
    "tf32_ftz": 32,
    "u4_align8": 4,
    "u4_align16": 8,
    "u6_align16": 8,
}
SWIZZLES = ("none", "32B", "64B", "96B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B")
INTERLEAVES = ("none", "16B", "32B")


ALL = "params"  #: what "params+64" begins with: byte 64 of all parameters
LAPS_SEEN = 2  #: laps more than with the least values that the run of a word with laps has, to be compared


class FreeRange(NamedTuple):
    """The values that a word may have: ``low``, and every ``step`` more up to ``high``; ``lap`` more any number of
    times, up to ``most``. ``name``: of the word. ``joint``: others have any value as well, each like an element of a
    free array.
    """

    low: int
    high: int
    step: int = 1
    name: str = ""
    lap: int = 0
    most: int = 0
    joint: bool = False

    @property
    def seen(self) -> int:
        """The least value, or with laps that of the run which shows that they repeat."""
        return self.low + LAPS_SEEN * self.lap


@dataclass(frozen=True)
class Number:
    """A scalar of one of TYPES; ``value`` is None where the file leaves it open.

    ``free``: what it may be instead of ``value``, of integers from 0 on. ``of_grid``: it is ``gridDim.x``.
    """

    type: str
    value: int | float | None
    free: FreeRange | None = None
    of_grid: bool = False


@dataclass(frozen=True)
class Free:
    """The values that every element of an array may have: ``low``, and each ``step`` more up to ``high``.

    ``rises_by``: by how much an element is greater than the one before, at least and at most; None: by any number.
    """

    low: int
    high: int
    step: int = 1
    rises_by: tuple[int, int] | None = None

    def why_not(self, values: Sequence[int]) -> str:
        """What is wrong with values of such an array; "" if nothing is."""
        for n, value in enumerate(values):
            if not self.low <= value <= self.high or (value - self.low) % self.step:
                said = f"{self.low} to {self.high}" + (f" in steps of {self.step}" if self.step > 1 else "")
                return f"value {n} is {value}, and free says {said}"
            if n and self.rises_by is not None:
                least, most = self.rises_by
                if not least <= value - values[n - 1] <= most:
                    return f"value {n} is {value} after {values[n - 1]}, and rises_by says {least} to {most} more"
        return ""


@dataclass(frozen=True)
class Array:
    """Integers of one of TYPES, one after the other. ``free``: they are those of the first run, of all that may be."""

    type: str
    values: tuple[int, ...]
    free: Free | None = None


@dataclass(frozen=True)
class TensorMap:
    """A 128-byte tensor map (``cuTensorMapEncodeTiled``, or ``Im2col`` with ``pixels`` above 0).

    Sizes are in elements, the innermost dimension first; ``strides`` are in bytes and begin with the second dimension.
    Without an ``element`` or a ``box``, the map is one of which nothing is known.
    With ``pixels``, ``box`` is (channels,) and a copy moves that many channels of that many pixels. ``earlier``: what
    earlier kernels may do with the tensor, None if that is not given.
    """

    element: str = ""
    dims: tuple[int, ...] = ()
    box: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()
    element_strides: tuple[int, ...] = ()
    swizzle: str = "none"
    interleave: str = "none"
    pixels: int = 0
    earlier: EarlierUse | None = None

    @cached_property
    def box_bytes(self) -> int:
        """Bytes that one copy writes to shared memory, parts outside of the tensor (zeros) included; 0 if not known."""
        if not self.element or not self.box:
            return 0
        steps = self.element_strides or (1,) * len(self.box)
        elements = prod(-(-size // step) for size, step in zip(self.box, steps, strict=False))
        return elements * max(self.pixels, 1) * ELEMENTS[self.element] // 8

    def bytes_inside(self, corner: Sequence[object]) -> tuple[Sequence[tuple[int, int]], bool]:
        """The bytes of a box in shared memory that may lie in the tensor, rows one after the other; whether they do.

        A store leaves out those that lie outside of it (PTX ISA, "Tensor access modes": out-of-boundary access).
        """
        bits, span = ELEMENTS.get(self.element, 0), 0 if self.swizzle == "none" else int(self.swizzle.partition("B")[0])
        apart = self.element_strides or self.interleave != "none" or (self.box and self.box[0] * bits < 8 * span)
        if apart or not len(self.dims) == len(self.box) == len(corner):  # rows may not come one after the other
            return [(0, self.box_bytes)], False
        parts, length, sure = [(0, 1)], 1, True
        for at, box, size in zip(corner, self.box, self.dims, strict=True):
            low, high = _inside(at, box, size) if isinstance(at, int) else (0, box)
            swizzled = self.swizzle != "none" and length == 1 and high - low < box  # its bytes are not in their order
            if swizzled or not isinstance(at, int):
                low, high, sure = 0, box, False
            whole = parts == [(0, length)]
            rows = [(low, high)] if whole else [(row, row + 1) for row in range(low, high)]
            parts = [(a * length + (0 if whole else f), (b - 1) * length + e) for a, b in rows for f, e in parts]
            length *= box
        return [(low * bits // 8, high * bits // 8) for low, high in parts if low < high], sure


def _inside(at: int, box: int, size: int) -> tuple[int, int]:
    """The rows of a box that lie in the tensor, in a dimension of this size. ``at``: the first, 32 bits with a sign."""
    at = (at + (1 << 31)) % (1 << 32) - (1 << 31)
    return int(-at) if at < 0 else 0, int(size - at) if size - at < box else box


class Field(NamedTuple):
    """Something at a byte offset of a structure or of the memory at a pointer."""

    offset: int
    content: Content


@dataclass(frozen=True)
class Pointer:
    """An address in global memory, aligned to ``align`` bytes; ``contents`` is what is known about the memory there,
    ``earlier`` what earlier kernels may do with it, None if that is not given.
    """

    align: int = 256
    contents: tuple[Field, ...] = ()
    earlier: EarlierUse | None = None


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

    ``launch_control``: how many clusters ``clusterlaunchcontrol.try_cancel`` hands to this one before it fails; None:
    as many as the rings of the kernel need to be gone through again (:func:`pipesim.ptx.emulation.emulate`).
    ``handed_out``: the tiles that this cluster gets, in their order, instead of the next ones: of launch control the
    numbers of clusters, x counted first, of a counter its answers.
    ``lock_failures``: how many compare-and-swaps find a word of global memory taken before the first that takes it.
    """

    tile_counter: int = 0
    launch_control: int | None = None
    lock_failures: int = 0
    handed_out: tuple[int, ...] = ()


class NamedBarriers(NamedTuple):
    """``stages`` mbarriers of one name, the first at a byte offset in shared memory and each ``step`` bytes further."""

    name: str
    offset: int
    stages: int = 1
    step: int = 8


class NamedTile(NamedTuple):
    """``slots`` ranges of ``nbytes`` bytes of one name, one after the other, from an offset in shared memory on."""

    name: str
    offset: int
    nbytes: int
    slots: int = 1


class NamedRole(NamedTuple):
    """The role of these warps of a CTA."""

    name: str
    warps: tuple[int, ...]


class GivenNames(NamedTuple):
    """What the launch file calls barriers, tiles and roles, which goes before what the source calls them."""

    barriers: tuple[NamedBarriers, ...] = ()
    tiles: tuple[NamedTile, ...] = ()
    roles: tuple[NamedRole, ...] = ()


@dataclass(frozen=True)
class Launch:
    """One launch of a kernel. ``dynamic_shared`` is in bytes; ``registers`` are those of a thread, 0 if not known.

    ``cta``: the one that is followed, with the others of its cluster: its number in the grid, x counted first. Without
    it the first one is, and a check is about all (:mod:`pipesim.answers.every_cta.kinds`). ``contents``: what elements
    of free arrays hold instead of what the arrays say, by the array's name and the index. ``left``: how many tiles
    other CTAs leave of those of a counter, its first answer without others, and its first one after all tiles.
    ``together``: how many CTAs are followed together, which talk by words of global memory; 0: one cluster.
    ``resident``: of these the first ones are there from the start, each other one when one has ended; 0: all.
    ``turns``: the order in which these execute atomics whose answer they use, as far as it is given, from 0 on.
    ``in_sequence``: what it does to global memory is compared with other launches. ``for_all``: one CTA is followed, of
    which each addition to a word counts as often as there are CTAs. ``any_ctas``: of these it is any, and along x they
    are any number up to this one. ``inside``: words by which its warps talk are followed. ``free_tiles``: how many
    launch control may hand out instead, or a counter of those that it leaves. ``strong_data``: strong accesses to data
    that CTAs share have to be ordered as weak ones have. ``sees``: agents with how many writes to a word their waits
    see, of each in its order, where what they do next may depend on that. ``any_data``: what data decides for a whole
    CTA may be anything (:mod:`pipesim.ptx.emulate.data_answers`).
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
    cta: int | None = None
    names: GivenNames = field(default_factory=GivenNames)
    contents: tuple[tuple[str, int, int], ...] = ()
    left: tuple[int, int, int] | None = None
    together: int = 0
    resident: int = 0
    turns: tuple[int, ...] = ()
    in_sequence: bool = False
    for_all: bool = False
    any_ctas: int = 0
    inside: bool = False
    free_tiles: FreeRange | None = None
    strong_data: bool = False
    sees: tuple[tuple[int, int], ...] = ()
    any_data: bool = False

    def with_setting(self, name: str, value: int) -> Launch:
        """The launch with another value of a policy, or ``cta``: another CTA is followed.

        :data:`TURNS` are the digits of a number, from 1 on.
        """
        if name in ("inside", STRONG_DATA, ANY_DATA):
            return replace(self, **{name: bool(value)})  # type: ignore[arg-type]
        if name == TILE_COUNTER and self.left is not None and self.free_tiles is not None:  # the number of tiles
            return replace(self, left=(value, *self.left[1:]))
        if name in ("cta", "resident"):
            return replace(self, **{name: value})  # type: ignore[arg-type]
        if name == "shared":
            return replace(self, dynamic_shared=value)
        if name in SHAPES:
            shape, _, axis = name.partition(".")
            sizes = [max(1, size) for size in getattr(self, shape)]
            sizes["xyz".index(axis or "x")] = value
            return replace(self, **{shape: shape_of(sizes)})  # type: ignore[arg-type]
        if name == "together":
            return self._with_together(value)
        if name == TURNS:
            return replace(self, turns=tuple(int(digit) - 1 for digit in str(value) if digit != "0"))
        if name == SEES:
            looks = (str(value)[n : n + 3] for n in range(0, len(str(value)) - 2, 3))
            return replace(self, sees=tuple((int(each[:2]) - 11, int(each[2])) for each in looks))
        if name.startswith(f"{HANDED_OUT}:"):
            index, given = int(name.partition(":")[2]), self.policies.handed_out
            if index > len(given):
                raise ParameterError(
                    f"--set {name}: tiles {len(given)} to {index - 1} that are handed out before are not given",
                    correction=f"give them in their order, from {HANDED_OUT}:0 on",
                )
            return replace(
                self, policies=replace(self.policies, handed_out=(*given[:index], value, *given[index + 1 :]))
            )
        changed: dict[str, Any] = {name: value}
        return replace(self, policies=replace(self.policies, **changed))

    @property
    def of_words(self) -> dict[str, int]:
        """The settings of what CTAs or warps do to words, in which order."""
        turns = "".join(str(each + 1) for each in self.turns)
        sees = "".join(f"{agent + 11}{version}" for agent, version in self.sees)
        given = (TURNS, int(turns or 0)), (STRONG_DATA, int(self.strong_data)), (SEES, int(sees or 0))
        return {name: value for name, value in given if value}

    def place_name(self, axis: int) -> str:
        """What the place of a cluster along an axis of the grid is called, of one CTA ``blockIdx.x``."""
        return f"{'blockIdx' if self.cluster[axis] == 1 else '%clusterid'}.{'xyz'[axis]}"

    @property
    def sizes_together(self) -> tuple[int, ...]:
        """How many CTAs can be followed together: all of a small grid; else 2, 3 and 4, of a grid that is as long, if
        it has one axis; else those along its last short axis, all others at 0; () without one.
        """
        long = [n for n in self.grid if n > 1]
        if prod(self.grid) <= SIZES_TOGETHER[-1]:
            return (prod(self.grid),)
        return SIZES_TOGETHER if len(long) == 1 else tuple(n for n in long if n <= MOST_TOGETHER)[-1:]

    def _with_together(self, ctas: int) -> Launch:
        """The launch of which this many CTAs are followed together; of a grid with one axis it has no more."""
        long = [axis for axis in range(3) if self.grid[axis] > 1]
        some = 0 <= ctas <= MOST_TOGETHER and (len(long) < 2 or ctas in (0, 1, *self.grid))
        if not some and not ctas == prod(self.grid) <= MOST_OF_GRID:
            sizes = ", ".join(map(str, self.sizes_together)) or "none"
            raise ParameterError(
                f"--set together={ctas}: this number of CTAs is not followed together", cause=f"here: {sizes}"
            )
        if len(long) > 1:
            return replace(self, together=ctas)
        x, y, z = (ctas if axis in long and ctas else n for axis, n in enumerate(self.grid))
        given = (each.content for each in self.parameters)
        given = (replace(one, value=x) if isinstance(one, Number) and one.of_grid else one for one in given)
        parameters = tuple(each._replace(content=one) for each, one in zip(self.parameters, given, strict=True))
        return replace(self, together=min(ctas, x * y * z), grid=(x, y, z), parameters=parameters)

    @property
    def followed_together(self) -> tuple[Shape, ...]:
        """The places in the grid of the CTAs that are followed together, () where it is one cluster."""
        x, y, z = self.grid
        if self.for_all:
            return (self.first_cta,)
        if self.together in (0, x * y * z):
            return tuple((n % x, n // x % y, n // (x * y)) for n in range(self.together))
        axis = max(axis for axis in range(3) if self.grid[axis] == self.together)
        return tuple((n * (axis == 0), n * (axis == 1), n * (axis == 2)) for n in range(self.together))

    @property
    def first_cta(self) -> Shape:
        """Where the cluster begins that is followed."""
        x, y, _ = self.grid
        cta = self.cta or 0
        at = (cta % x, cta // x % y, cta // (x * y))
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


_SMS = 132  #: of an H100 SXM and an H200
_SMS_BLACKWELL = 148  #: of a B200
_THREADS, _CTAS, _SHARED = 2_048, 32, 228 << 10  #: of an SM
_RESERVED = 1 << 10  #: bytes of shared memory that the system uses for each CTA


def ctas_that_fit(launch: Launch, shared_bytes: int, architecture: int) -> tuple[int, int]:
    """The most CTAs that are on the device at a time, as far as the launch says what they need; and the SMs of it.

    ``shared_bytes``: of a CTA, dynamic ones included. Registers count where the launch file has them.
    """
    warps = -(-prod(launch.block) // WARP)
    each = min(_CTAS, _THREADS // (WARP * warps), _SHARED // (shared_bytes + _RESERVED))
    while launch.registers and each and register_bound(warps, each) < launch.registers:
        each -= 1
    sms = _SMS_BLACKWELL if architecture >= BLACKWELL else _SMS
    return sms * each, sms
