"""A tensor map among the arguments of a user's kernel: ``map:FILE.npy,box=64x32,swizzle=128``. Needs no GPU.

It becomes a parameter ``const __grid_constant__ CUtensorMap``: 128 bytes that the driver encodes before the launch.
"""

from dataclasses import dataclass
from pathlib import Path
from reprlib import repr as brief
from typing import Any

import numpy as np
import numpy.typing as npt

from hwkernels.device.tensor_maps import check
from hwkernels.twins import buffers
from pipesim.bounds import MAX_DIGITS
from pipesim.errors import ParameterError
from pipesim.ptx.launch.values import ELEMENTS, TensorMap

Array = npt.NDArray[Any]

MAP_BYTES = 128  #: of the parameter
SPELLING = (
    "map:BASE,box=64x32[,swizzle=none|32|64|128][,type=bf16|f16|f32|u8|u32][,dims=256x128][,strides=512], BASE a .npy "
    "file or the name of an out; sizes from the innermost dimension on, box and dims in elements, strides in bytes"
)
_TYPES = ("bf16", "f16", "f32", "u8", "u32")
_OF_ARRAYS = {"float16": "f16", "float32": "f32", "uint8": "u8", "uint32": "u32", "uint16": "bf16", "int32": "u32"}
_SWIZZLES = {"none": "none", "32": "32B", "64": "64B", "128": "128B"}
_FIELDS = ("box", "swizzle", "type", "dims", "strides")


@dataclass(frozen=True)
class MapSpelling:
    """What ``map:...`` says. ``base``: a file or the name of an output. () and "" where nothing is said."""

    base: str
    box: tuple[int, ...]
    swizzle: str = "none"
    element: str = ""
    dims: tuple[int, ...] = ()
    strides: tuple[int, ...] = ()

    @property
    def is_file(self) -> bool:
        """Whether the tensor is in a file's array, which has dimensions and a type of its own."""
        return self.base.endswith(".npy")


def parse_map(text: str) -> MapSpelling:
    """What follows ``map:``. ParameterError for a field that is unknown, malformed or missing."""
    base, *fields = text.split(",")
    given: dict[str, str] = {}
    for field in fields:
        name, equals, value = field.partition("=")
        if name not in _FIELDS or not equals or name in given:
            raise _wrong(text, f"{field!r} is none of {', '.join(_FIELDS)}, each once with a value")
        given[name] = value
    if not base or "box" not in given:
        raise _wrong(text, "the base or the box is missing")
    for name, known in (("swizzle", _SWIZZLES), ("type", _TYPES)):
        if name in given and given[name] not in known:
            raise _wrong(text, f"{name}={given[name]} is none of {', '.join(known)}")
    sizes = {name: _sizes(text, given.get(name, "")) for name in ("box", "dims", "strides")}
    found = MapSpelling(
        base, sizes["box"], given.get("swizzle", "none"), given.get("type", ""), sizes["dims"], sizes["strides"]
    )
    if found.is_file and not Path(base).is_file():
        raise ParameterError(f"--arg map:{text}: there is no file {base}", correction="check its path")
    if not found.is_file and not (found.dims and found.element):
        raise _wrong(text, f"nothing says the dimensions and the type of {base}")
    return found


def tensor_map(spelled: MapSpelling, of: str, array: Array | None, nbytes: int) -> buffers.MapOf:
    """The map of a tensor in the buffer ``of`` of this many bytes; ``array``: that of the file, if it is one.

    ParameterError for what the copy engine cannot do, and for a tensor that does not fit its buffer.
    """
    element = spelled.element or _type_of(spelled, array)
    dims = spelled.dims or (tuple(reversed(array.shape)) if array is not None else ())
    size = ELEMENTS[element] // 8
    packed = tuple(int(np.prod(dims[: n + 1], dtype=np.int64)) * size for n in range(len(dims) - 1))
    strides = spelled.strides or packed
    found = TensorMap(element, dims, spelled.box, strides, swizzle=_SWIZZLES[spelled.swizzle])
    check(found)
    if len(dims) != len(spelled.box):
        raise _wrong(spelled.base, f"the tensor has {len(dims)} dimensions, the box {len(spelled.box)}")
    needed = dims[0] * size + sum((n - 1) * stride for n, stride in zip(dims[1:], strides, strict=True))
    if needed > nbytes:
        raise ParameterError(
            f"the tensor of --arg map:{spelled.base} has {needed:,} bytes, {of} has {nbytes:,}",
            correction="give fewer elements (dims=), or a larger buffer",
        )
    return buffers.MapOf(of, found)


def _type_of(spelled: MapSpelling, array: Array | None) -> str:
    name = "" if array is None else array.dtype.name
    if name not in _OF_ARRAYS:
        raise ParameterError(
            f"--arg map:{spelled.base}: a tensor map of {name or 'an unknown type'} is not known",
            correction=f"give type=, one of {', '.join(_TYPES)}",
        )
    return _OF_ARRAYS[name]


def _sizes(text: str, value: str) -> tuple[int, ...]:
    parts = value.split("x") if value else []
    if not all(part.isascii() and part.isdecimal() and len(part) <= MAX_DIGITS for part in parts):
        raise _wrong(text, f"{brief(value)} is not a list of whole numbers with x between them")
    return tuple(map(int, parts))


def _wrong(text: str, cause: str) -> ParameterError:
    return ParameterError(f"--arg map:{text} is not a tensor map", cause=cause, correction=f"write {SPELLING}")
