"""The bytes of a launch's parameters as the words of a launch file, by the types that the PTX declares."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator, Sequence

from pipesim.launches.records.record import SeenMap, SeenParameter, SeenPointer
from pipesim.ptx.flow.slice import LaunchNeed, Need
from pipesim.ptx.launch.encoded_map import MAP_BYTES, decoded_map
from pipesim.ptx.launch.file import MOST_VALUES
from pipesim.ptx.launch.image import encode_value
from pipesim.ptx.launch.values import TYPES, Array, Content, Field, Number, Parameter, Pointer, Struct, TensorMap
from pipesim.ptx.text.declarations import Param

_MAP_ALIGN = 64  #: of a tensor map, in bytes (CUDA driver API, CUtensorMap)
_MOST_ALIGN = 1 << 12  #: of a pointer, as records give it
_FLOATS = {"f16": "<e", "f32": "<f", "f64": "<d"}
_WORDS = {4: "u32", 2: "u16", 1: "u8"}

WantedThings = Callable[[], Sequence[LaunchNeed]]  #: what the slice needs, found only where it makes a difference


def parameter(formal: Param, seen: SeenParameter, wanted: WantedThings) -> Parameter:
    """A parameter of a launch file, under the PTX's name. ``seen`` has as many bytes as ``formal``."""
    return Parameter(formal.name, _content(formal, seen, wanted))


def with_decoded_maps(formal: Param, seen: SeenParameter, wanted: WantedThings) -> SeenParameter:
    """The parameter, with the maps by which the kernel copies and which the process did not encode, from their bytes.

    ``seen`` itself if there are none.
    """
    known = [each.at for each in seen.maps]
    found = [
        SeenMap(at, decoded)
        for at in range(0, len(seen.data) - MAP_BYTES + 1, _MAP_ALIGN)
        if at not in known and (decoded := decoded_map(seen.data[at : at + MAP_BYTES]))
    ]
    if found:
        copied_by = {each.offset - formal.offset for each in wanted() if each.need is Need.TENSOR_MAP}
        found = [each for each in found if each.at in copied_by]
    if not found:
        return seen
    inside = [range(each.at, each.at + MAP_BYTES) for each in found]
    pointers = tuple(each for each in seen.pointers if not any(each.at in part for part in inside))
    return SeenParameter(seen.data, pointers, tuple(sorted((*seen.maps, *found), key=lambda each: each.at)))


def unseen_map(formal: Param, seen: SeenParameter) -> bool:
    """Whether a parameter has the size and alignment of a tensor map, and the process did not encode one like it."""
    return formal.size == MAP_BYTES and formal.align >= _MAP_ALIGN and not seen.maps and any(seen.data)


def _content(formal: Param, seen: SeenParameter, wanted: WantedThings) -> Content:
    if formal.size == MAP_BYTES and len(seen.maps) == 1:
        return seen.maps[0].map
    if formal.type == "b8" or formal.size != TYPES.get(formal.type, formal.size):
        return Struct(formal.size, tuple(_fields(formal, seen, wanted)))
    if formal.size == 8 and seen.pointers:
        return _pointer(formal.offset, seen.pointers[0], wanted)
    if formal.pointer and any(seen.data):  # declared as one, whether or not the driver knows its memory
        value = int.from_bytes(seen.data, "little")
        return Pointer(min(value & -value, _MOST_ALIGN))
    if formal.size in (1, 2, 4, 8):
        return number(formal.type, seen.data)
    return Struct(formal.size, tuple(_fields(formal, seen, wanted)))


def number(kind: str, data: bytes) -> Number:
    """The value of a PTX type ("b32", "s64", "f16", "f16x2") whose bytes these are.

    A launch file holds no NaN and no infinity, and not every NaN has its own spelling: such a value, and every word of
    a type that it does not know, is the unsigned integer of its size, which has the same bytes.
    """
    whole = f"u{8 * len(data)}"
    if kind in _FLOATS or kind == "bf16":
        (value,) = struct.unpack(_FLOATS.get(kind, "<f"), (b"\0\0" if kind == "bf16" else b"") + data)
        if math.isfinite(value) and encode_value(kind, value) == data:
            return Number(kind, value)
        return Number(whole, int.from_bytes(data, "little"))
    if kind == f"s{8 * len(data)}":
        return Number(kind, int.from_bytes(data, "little", signed=True))
    return Number(whole, int.from_bytes(data, "little"))


def _fields(formal: Param, seen: SeenParameter, wanted: WantedThings) -> Iterator[Field]:
    """What a structure consists of: tensor maps, pointers, and words between them, padding included."""
    known: list[tuple[int, int, Pointer | TensorMap]] = [(each.at, MAP_BYTES, each.map) for each in seen.maps]
    known += [(each.at, 8, _pointer(formal.offset + each.at, each, wanted)) for each in seen.pointers]
    at = 0
    for start, size, content in sorted(known, key=lambda each: each[0]):
        yield from _words(seen.data, at, start)
        yield Field(start, content)
        at = start + size
    yield from _words(seen.data, at, len(seen.data))


def _words(data: bytes, start: int, end: int) -> Iterator[Field]:
    """Bytes as words of 4, and smaller ones where a word of 4 does not fit; several of 4 are one array."""
    at = start
    while at < end:
        size = next(each for each in _WORDS if at % each == 0 and at + each <= end)
        if size == 4 and end - at >= 8:
            count = (end - at) // 4
            yield Field(at, _array("u32", data[at : at + 4 * count]))
            at += 4 * count
            continue
        yield Field(at, number(_WORDS[size], data[at : at + size]))
        at += size


def _pointer(offset: int, seen: SeenPointer, wanted: WantedThings) -> Pointer:
    """A pointer; what was copied from its memory is there if the synchronisation may depend on it."""
    if not seen.contents:
        return Pointer(seen.align)
    needs = [each for each in wanted() if each.need is Need.MEMORY and each.offset in (offset, -1)]
    if not needs:
        return Pointer(seen.align)
    kinds = [each.type.replace("b", "u").replace("f", "u") for each in needs]
    kind = min((each for each in kinds if each in TYPES), key=lambda each: TYPES[each], default="u32")
    return Pointer(seen.align, tuple(_memory(kind, seen.contents)))


def _memory(kind: str, data: bytes) -> Iterator[Field]:
    """Bytes of memory as words of a type; those that are left at the end are bytes."""
    size = TYPES[kind]
    whole = min(len(data) // size, MOST_VALUES) * size
    if whole:
        yield Field(0, _array(kind, data[:whole]))
    if whole < len(data) <= MOST_VALUES * size:
        yield Field(whole, _array("u8", data[whole:]))


def _array(kind: str, data: bytes) -> Array:
    size, signed = TYPES[kind], kind.startswith("s")
    words = range(0, len(data), size)
    return Array(kind, tuple(int.from_bytes(data[at : at + size], "little", signed=signed) for at in words))
