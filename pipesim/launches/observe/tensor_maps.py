"""The tensor maps that a process encoded, by their 128 bytes, in the words of a launch file."""

from __future__ import annotations

from ctypes import c_uint32, c_uint64, string_at
from typing import Any

from pipesim.launches.observe.calls import ENCODE

_ELEMENTS = (
    *("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"),
    *("u4_align8", "u4_align16", "u6_align16"),
)  #: by CUtensorMapDataType
_INTERLEAVES = ("none", "16B", "32B")
_SWIZZLES = ("none", "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B")
MAP_BYTES = 128
_MOST = 1 << 16


class TensorMaps(dict[bytes, dict[str, Any]]):
    """What is known of each map; a map of which only the address was replaced has the members of the first."""

    def encoded(self, number: int, arguments: int) -> None:
        """Note a map after the call of CUPTI's number that encoded it."""
        given: Any = ENCODE[number].from_address(arguments)
        self._note(string_at(given.map, MAP_BYTES), _members(given))

    def before(self, address: int) -> dict[str, Any] | None:
        """What is known of the map whose address will be replaced."""
        return self.get(string_at(address, MAP_BYTES))

    def replaced(self, address: int, members: dict[str, Any] | None) -> None:
        """Note a map after its address was replaced."""
        if members is not None:
            self._note(string_at(address, MAP_BYTES), members)

    def _note(self, data: bytes, members: dict[str, Any]) -> None:
        if len(self) >= _MOST:
            self.pop(next(iter(self)))
        self[data] = members


def _members(given: Any) -> dict[str, Any]:
    rank = min(given.rank, 5)
    pixels = getattr(given, "pixels", 0)
    return {
        "element": _word(_ELEMENTS, given.element),
        "dims": _list(given.dims, c_uint64, rank),
        "box": [given.channels] if pixels else _list(given.box, c_uint32, rank),
        "strides": _list(given.strides, c_uint64, rank - 1),
        "element_strides": _list(given.steps, c_uint32, rank),
        "swizzle": _word(_SWIZZLES, given.swizzle),
        "interleave": _word(_INTERLEAVES, given.interleave),
        "pixels": pixels,
    }


def _word(words: tuple[str, ...], number: int) -> str:
    return words[number] if 0 <= number < len(words) else ""


def _list(address: int | None, kind: Any, count: int) -> list[int]:
    return list((kind * count).from_address(address)) if address and count > 0 else []
