"""Launches that the libraries of ``fake`` noted become launch files: bytes become words, pointers and maps."""

import json
import struct
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipesim.ptx.launch.encoded_map import MAP_BYTES, decoded_map
from pipesim.ptx.launch.values import (
    ELEMENTS,
    INTERLEAVES,
    SWIZZLES,
    Array,
    Content,
    Field,
    Launch,
    Number,
    Parameter,
    Pointer,
    Struct,
    TensorMap,
)
from pipesim.ptx.text.declarations import Module

_MARK = b"pipesim-map:"
_SWIZZLES = tuple(each for each in SWIZZLES if each != "96B")  #: by the driver's numbers: it has none for that


def sizes_file(module: Module) -> str:
    """For each kernel, the sizes of its parameters, as the library wants them."""
    return "".join(f"{each.name} {' '.join(str(p.size) for p in each.params)}\n" for each in module.entries)


def launches_noted(path: Path) -> Iterator[Launch]:
    """The launches in a file of notes."""
    for line in path.read_text(encoding="utf-8").splitlines():
        yield launch_of(json.loads(line))


def launch_of(given: Mapping[str, Any]) -> Launch:
    """The launch of one note."""
    made = _Bytes([_tensor_map(each) for each in given["maps"]], given["memory"])
    parameters = tuple(Parameter("", made.parameter(bytes.fromhex(each))) for each in given["parameters"])
    shapes = [_three(given[name]) for name in ("grid", "block", "cluster")]
    return Launch(given["entry"], shapes[0], shapes[1], shapes[2], given["shared"], parameters=parameters)


def _three(sizes: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = sizes
    return x, y, z


def _tensor_map(given: Mapping[str, Any]) -> TensorMap:
    return TensorMap(
        tuple(ELEMENTS)[given["element"]],
        tuple(max(1, size) for size in given["dims"]),
        tuple(given["box"]),
        tuple(given["strides"]),
        tuple(given["steps"]) if any(step != 1 for step in given["steps"]) else (),
        _SWIZZLES[given["swizzle"]],
        INTERLEAVES[given["interleave"]],
        given["pixels"],
    )


class _Bytes:
    """The bytes of a launch: which of them are tensor maps, and which are pointers into the noted memory."""

    def __init__(self, maps: Sequence[TensorMap], memory: Sequence[Mapping[str, Any]]) -> None:
        self._maps = maps
        self._memory = [(each["base"], each["size"], bytes.fromhex(each["data"])) for each in memory]
        self._open: set[int] = set()

    def parameter(self, data: bytes) -> Content:
        """One parameter: a tensor map, a pointer, a number, or a structure of them."""
        if len(data) in {1, 2, 4, 8}:
            address = int.from_bytes(data, "little")
            return (self._pointer(address) if len(data) == 8 else None) or Number(f"u{8 * len(data)}", address)
        if len(data) == MAP_BYTES and data.startswith(_MARK):
            return self._map(data)
        if len(data) == MAP_BYTES and (decoded := decoded_map(data)):  # as the CuTe DSL's host code encodes one
            return decoded
        return Struct(len(data), tuple(self._fields(data)))

    def _fields(self, data: bytes) -> Iterator[Field]:
        """Words of 4 bytes between the maps and pointers; a last part that is shorter by bytes."""
        start = at = 0
        while at < len(data):
            special, size = self._special(data, at)
            if special is None:
                at += 4 if at + 4 <= len(data) else 1
                continue
            yield from _words(data, start, at)
            yield Field(at, special)
            start = at = at + size
        yield from _words(data, start, len(data))

    def _special(self, data: bytes, at: int) -> tuple[Content | None, int]:
        if at % 8 == 0 and data.startswith(_MARK, at) and at + MAP_BYTES <= len(data):
            return self._map(data[at : at + MAP_BYTES]), MAP_BYTES
        if at % 8 == 0 and at + 8 <= len(data):
            return self._pointer(int.from_bytes(data[at : at + 8], "little")), 8
        return None, 0

    def _map(self, data: bytes) -> TensorMap:
        return self._maps[int.from_bytes(data[len(_MARK) : len(_MARK) + 4], "little")]

    def _pointer(self, address: int) -> Pointer | None:
        for base, size, data in self._memory:
            if base <= address < base + max(size, 1):
                if not data or base in self._open:
                    return Pointer()
                self._open.add(base)
                fields = tuple(self._fields(data[address - base :]))
                self._open.discard(base)
                return Pointer(contents=fields)
        return None


def _words(data: bytes, start: int, end: int) -> Iterator[Field]:
    whole = (end - start) // 4
    if whole:
        yield Field(start, Array("u32", struct.unpack_from(f"<{whole}I", data, start)))
    if start + 4 * whole < end:
        yield Field(start + 4 * whole, Array("u8", tuple(data[start + 4 * whole : end])))
