"""The parts of one record: texts, bytes, the parameters of a launch. Each raises LaunchFileError with its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pipesim.bounds import MAX_KERNEL_NAME, MAX_RECORD_BYTES, MAX_TEXT
from pipesim.launches.records.record import SeenMap, SeenParameter, SeenPointer
from pipesim.ptx.launch import file as launch_file
from pipesim.ptx.launch.values import Members

CORRECTION = "run the program again; other programs must not write into the folder"
_MAP_BYTES = 128
_MAP_MEMBERS = ("at", *(name for name in launch_file.KINDS["tensor_map"] if name != "kind"))


def seen_parameter(data: Any, place: str) -> SeenParameter:
    """A parameter of a launch; what is known of its words lies within it and does not overlap."""
    given = Members(data, place, ("bytes", "pointers", "maps"))
    held = bytes_of(given, "bytes", launch_file.MOST_SPACE)
    pointers = tuple(_each(given, "pointers", lambda each: _pointer(each, len(held))))
    maps = tuple(_each(given, "maps", lambda each: _map(each, len(held))))
    taken: set[int] = set()
    for start, size in [(each.at, 8) for each in pointers] + [(each.at, _MAP_BYTES) for each in maps]:
        word = set(range(start, start + size))
        if word & taken:
            raise given.error("pointers", "two of them overlap", correction=CORRECTION)
        taken |= word
    return SeenParameter(held, pointers, maps)


def _pointer(given: Members, size: int) -> SeenPointer:
    align = given.whole("align", 1, low=1, high=1 << 12)
    if align & (align - 1):
        raise given.error("align", f"{align} is not a power of two", correction=CORRECTION)
    contents = bytes_of(given, "contents", MAX_RECORD_BYTES) if "contents" in given.data else None
    return SeenPointer(given.whole("at", high=size - 8), align, contents)


def _map(given: Members, size: int) -> SeenMap:
    at = given.whole("at", high=size - _MAP_BYTES)
    words = {name: value for name, value in given.data.items() if name != "at"}
    return SeenMap(at, launch_file.read_tensor_map(Members(words, given.place, _MAP_MEMBERS)))


def _each(given: Members, name: str, read: Callable[[Members], Any]) -> Iterator[Any]:
    known = _MAP_MEMBERS if name == "maps" else ("at", "align", "contents")
    for number, each in enumerate(given.items(name, [])):
        yield read(Members(each, given.at(f"{name}[{number}]"), known))


def bytes_of(given: Members, name: str, most: int) -> bytes:
    """A member that is hexadecimal digits, of at most so many bytes."""
    text = given.text(name)
    if len(text) > 2 * most:
        raise given.error(name, f"more than {most:,} bytes", correction=CORRECTION)
    if not text.isascii() or not (text.isalnum() or not text):
        raise given.error(name, "expected hexadecimal digits", correction=CORRECTION)
    try:
        return bytes.fromhex(text)
    except ValueError:
        raise given.error(name, "expected an even number of hexadecimal digits", correction=CORRECTION) from None


def name_of(given: Members, name: str) -> str:
    """A member that is a kernel's name."""
    text = given.text(name)
    if not text or len(text) > MAX_KERNEL_NAME or not text.isprintable() or not text.isascii():
        raise given.error(name, "expected a name of ASCII characters", correction=CORRECTION)
    return text


def line_of(given: Members, name: str, text: object) -> str:
    """A text in one line; characters that no terminal should see become question marks."""
    if not isinstance(text, str):
        raise given.error(name, "expected text", correction=CORRECTION)
    return "".join(c if c.isprintable() else "?" for c in text[:MAX_TEXT])
