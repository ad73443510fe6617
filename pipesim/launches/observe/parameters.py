"""A launch's parameters as the driver was given them: bytes, and which words are addresses or tensor maps.

The tensor maps that the process encoded are known by their 128 bytes. What a pointer leads to is copied at the launch
where the kernel's control flow depends on it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from ctypes import c_uint32, c_uint64, string_at
from typing import Any, NamedTuple

from pipesim.errors import PipesimError
from pipesim.launches.observe.calls import ENCODE
from pipesim.launches.observe.driver import CudaDriver, pointers_at

_BUFFER, _SIZE = 1, 2  #: CU_LAUNCH_PARAM_BUFFER_POINTER, CU_LAUNCH_PARAM_BUFFER_SIZE
_MAP_BYTES, _MAP_ALIGN, _WORD = 128, 64, 8
_LARGEST_ALIGN = 256  #: of what an allocation has at least: no kernel asks for more

#: What is known of a tensor map that was encoded, by its 128 bytes; None of other bytes.
MembersOf = Callable[[bytes], Mapping[str, Any] | None]
Layout = tuple[tuple[int, int], ...]  #: offset and bytes of each parameter


class PointerWord(NamedTuple):
    """A word that is an address of device memory: its offset in the parameter, and the bytes from there on."""

    at: int
    address: int
    nbytes: int

    @property
    def align(self) -> int:
        """The largest power of two, up to 256, that divides the address."""
        return min(self.address & -self.address, _LARGEST_ALIGN)


class RawParameter(NamedTuple):
    """One parameter."""

    data: bytes
    pointers: tuple[PointerWord, ...]
    maps: tuple[tuple[int, Mapping[str, Any]], ...]

    def places(self, number: int, driver: CudaDriver) -> Iterator[tuple[int, int, int, int]]:
        """Of parameter ``number`` each pointer and tensor map: its offset, the end of its allocation, the address."""
        for each in self.pointers:
            yield number, each.at, each.address + each.nbytes, each.address
        for at, _ in self.maps:
            address = int.from_bytes(self.data[at : at + _WORD], "little")  # where all maps that were encoded have it
            nbytes = driver.memory_from(address)
            if nbytes is not None:
                yield number, at, address + nbytes, address

    def without_addresses(self) -> bytes:
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


def examine_parameters(raw: tuple[bytes, ...], driver: CudaDriver, members_of: MembersOf) -> tuple[RawParameter, ...]:
    """The parameters, with the words that are addresses of device memory and the tensor maps that were encoded."""
    return tuple(_examine_parameter(data, driver, members_of) for data in raw)


def _examine_parameter(data: bytes, driver: CudaDriver, members_of: MembersOf) -> RawParameter:
    found = [
        (at, members)
        for at in range(0, len(data) - _MAP_BYTES + 1, _MAP_ALIGN)
        if (members := members_of(data[at : at + _MAP_BYTES])) is not None
    ]
    covered = {at + n for at, _ in found for n in range(0, _MAP_BYTES, _WORD)}
    pointers = []
    for at in range(0, len(data) - _WORD + 1, _WORD):
        address = int.from_bytes(data[at : at + _WORD], "little")
        if at in covered or address < 1 << 16:  # no allocation begins there, and small numbers are frequent
            continue
        nbytes = driver.memory_from(address)
        if nbytes is not None:
            pointers.append(PointerWord(at, address, nbytes))
    return RawParameter(data, tuple(pointers), tuple(found))


def unwritten_halves(raw: tuple[bytes, ...], members_of: MembersOf) -> tuple[tuple[int, int], ...]:
    """(parameter, byte in it) of the second half of maps that the CuTe DSL wrote: what was on its stack."""
    from pipesim.ptx.launch.encoded_map import READ_BYTES, decoded_map

    return tuple(
        (number, at)
        for number, data in enumerate(raw)
        if len(data) == _MAP_BYTES and members_of(data) is None and decoded_map(data) is not None
        for at in range(READ_BYTES, _MAP_BYTES)
    )


_WHOLE = (2, 4, 8)  #: bytes of a parameter other than a structure; an empty one has 1
_HEAD = rb"\.entry\s+%s\s*\((.*?)\)"
_PARAMETER = re.compile(rb"\.param\b[^,]*?([\w$%]+)\s*(?:\[\s*\d*\s*\])?\s*(?:,|$)")
_NAMED = rb"(?<![\w$%%])%s"
_LOAD = rb"ld\.param\S*?(?:\.v([248]))?\.[a-z]+(\d+)(x2)?\s+[^;\[]*\[\s*" + _NAMED + rb"\s*(?:\+\s*(\d+))?\s*\]"
_USE = _LOAD + rb"|" + _NAMED + rb"(?![\w$%%])"  #: of a parameter; no load has no bits


def unread_bytes(text: bytes, kernel: str, layout: Layout) -> tuple[tuple[int, int], ...]:
    """(parameter, byte in it) of what a kernel's PTX does not read: padding, of which a program leaves what was there.

    A parameter of which more is done than loads at constant offsets counts as read.
    """
    head = re.search(_HEAD % re.escape(kernel.encode()), text, re.DOTALL)
    names = _PARAMETER.findall(head[1]) if head else []
    if head is None or len(names) != len(layout):
        return ()
    body, found = text[head.end() :].partition(b".entry")[0], list[tuple[int, int]]()
    for number, (name, (_, size)) in enumerate(zip(names, layout, strict=True)):
        unread = set[int]() if size in _WHOLE else set(range(size))
        for vector, bits, twice, offset in re.findall(_USE % ((re.escape(name),) * 2), body) if unread else ():
            at, nbytes = int(offset or 0), int(bits or 0) // 8 * int(vector or 1) * (2 if twice else 1)
            unread -= set(range(at, at + nbytes)) if bits else unread
        found += [(number, at) for at in sorted(unread)]
    return tuple(found)


MOST_COPIED = 1 << 16  #: bytes that are copied from one pointer on


def pointers_wanted(text: bytes, kernel: str) -> frozenset[tuple[int, int]]:
    """(parameter, offset in it) of each pointer to words that decide about the kernel's synchronisation.

    Empty for PTX that cannot be read, which the report will say.
    """
    from pipesim.ptx.flow.inline import inline_calls
    from pipesim.ptx.flow.slice import Need, slice_of
    from pipesim.ptx.launch.values import Launch
    from pipesim.ptx.prepare import entry_of
    from pipesim.ptx.text.read import read_module

    try:
        module = read_module(text.decode(errors="replace"), kernel, kernel)
        function = inline_calls(module, entry_of(module, Launch(kernel, (1, 1, 1), (32, 1, 1))))
        wanted = slice_of(function).wanted
    except (PipesimError, RecursionError):
        return frozenset()
    return frozenset(
        (number, each.offset - formal.offset)
        for each in wanted
        if each.need is Need.MEMORY
        for number, formal in enumerate(function.params)
        if formal.offset <= each.offset < formal.offset + formal.size
    )


_ELEMENTS = (
    *("u8", "u16", "u32", "s32", "u64", "s64", "f16", "f32", "f64", "bf16", "f32_ftz", "tf32", "tf32_ftz"),
    *("u4_align8", "u4_align16", "u6_align16"),
)  #: by CUtensorMapDataType
_INTERLEAVES = ("none", "16B", "32B")
_SWIZZLES = ("none", "32B", "64B", "128B", "128B_atom_32B", "128B_atom_32B_flip_8B", "128B_atom_64B")
_MOST_MAPS = 1 << 16


class TensorMaps(dict[bytes, dict[str, Any]]):
    """What is known about each map; a map of which only the address was replaced has the members of the first."""

    def note_encoded(self, number: int, arguments: int) -> None:
        """Note a map after the call of CUPTI's number that encoded it."""
        given: Any = ENCODE[number].from_address(arguments)
        self._note(string_at(given.map, _MAP_BYTES), _members(given))

    def map_before_change(self, address: int) -> dict[str, Any] | None:
        """What is known about the map whose address will be replaced."""
        return self.get(string_at(address, _MAP_BYTES))

    def note_replaced(self, address: int, members: dict[str, Any] | None) -> None:
        """Note a map after its address was replaced."""
        if members is not None:
            self._note(string_at(address, _MAP_BYTES), members)

    def _note(self, data: bytes, members: dict[str, Any]) -> None:
        if len(self) >= _MOST_MAPS:
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
