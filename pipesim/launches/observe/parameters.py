"""A launch's parameters as the driver was given them: bytes, and which words are addresses or tensor maps."""

from __future__ import annotations

from collections.abc import Mapping
from ctypes import string_at
from typing import Any, NamedTuple

from pipesim.launches.observe.driver import Driver, pointers_at

_BUFFER, _SIZE = 1, 2  #: CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE
_MAP_BYTES, _MAP_ALIGN, _WORD = 128, 64, 8
_LARGEST_ALIGN = 4096

Layout = tuple[tuple[int, int], ...]  #: offset and bytes of each parameter


class Pointed(NamedTuple):
    """A word that is an address of device memory: its offset in the parameter, and the bytes from there on."""

    at: int
    address: int
    nbytes: int

    @property
    def align(self) -> int:
        """The largest power of two, up to 4,096, that divides the address."""
        return min(self.address & -self.address, _LARGEST_ALIGN)


class Given(NamedTuple):
    """One parameter."""

    data: bytes
    pointers: tuple[Pointed, ...]
    maps: tuple[tuple[int, Mapping[str, Any]], ...]

    def masked(self) -> bytes:
        """The bytes with every address replaced by its alignment: two launches that differ in those alone are alike."""
        data = bytearray(self.data)
        for each in self.pointers:
            data[each.at : each.at + _WORD] = each.align.to_bytes(_WORD, "little")
        for at, _ in self.maps:
            data[at : at + _MAP_BYTES] = bytes(_MAP_BYTES)
        return bytes(data)


def raw_parameters(layout: Layout, parameters: int, extra: int) -> tuple[bytes, ...] | None:
    """The bytes of each parameter, from the array of pointers or from the one buffer of ``extra``."""
    if parameters:
        places = pointers_at(parameters, len(layout))
        return tuple(string_at(place, size) for place, (_, size) in zip(places, layout, strict=True))
    if extra:
        buffer = _buffer(extra)
        return tuple(string_at(buffer + offset, size) for offset, size in layout) if buffer else None
    return () if not layout else None


def _buffer(extra: int) -> int:
    """The address of the buffer that ``extra`` names, 0 if there is none."""
    for at in range(0, 16, 2):
        key, value = pointers_at(extra + _WORD * at, 2)
        if key == 0:
            break
        if key == _BUFFER:
            return value
    return 0


def examined(raw: tuple[bytes, ...], driver: Driver, maps: Mapping[bytes, Mapping[str, Any]]) -> tuple[Given, ...]:
    """The parameters, with the words that are addresses of device memory and the tensor maps that were encoded."""
    return tuple(_examined(data, driver, maps) for data in raw)


def _examined(data: bytes, driver: Driver, maps: Mapping[bytes, Mapping[str, Any]]) -> Given:
    found = [
        (at, maps[part])
        for at in range(0, len(data) - _MAP_BYTES + 1, _MAP_ALIGN)
        if (part := data[at : at + _MAP_BYTES]) in maps
    ]
    covered = {at + n for at, _ in found for n in range(0, _MAP_BYTES, _WORD)}
    pointers = []
    for at in range(0, len(data) - _WORD + 1, _WORD):
        address = int.from_bytes(data[at : at + _WORD], "little")
        if at in covered or address < 1 << 16:  # no allocation begins there, and small numbers are frequent
            continue
        nbytes = driver.memory_from(address)
        if nbytes is not None:
            pointers.append(Pointed(at, address, nbytes))
    return Given(data, tuple(pointers), tuple(found))
