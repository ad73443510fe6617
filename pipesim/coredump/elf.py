"""ELF files as hostile input: the sections of a dump, and of the machine code in it, each within its file.

Sections are known by their type, and by the section that they belong to (``link``) with a row of it (``info``): names
are for messages alone. A file that was cut off keeps the sections that are whole; what is missing is said. elf(5).
"""

import gzip
import lzma
import os
import struct
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from pipesim.bounds import (
    MAX_DUMP_BYTES,
    MAX_DUMP_SECTIONS,
    MAX_SMALL_BYTES,
    MAX_SMALL_DUMP_BYTES,
    MAX_UNPACKED_DUMP_BYTES,
)
from pipesim.errors import CoreDumpError
from pipesim.inputs import InputKind

_HEADER = 64
_ROW = struct.Struct("<IIQQQQIIQQ")
_NOBITS = 8
_CHUNK = 1 << 16
_MANY = 0xFFFF  #: a number of sections that does not fit: the first section's header has it
_NAME = 200  #: characters of a section's name that are shown

DUMP = InputKind("core dump", MAX_DUMP_BYTES, CoreDumpError, "give a core dump of a GPU, as the driver wrote it")


class ElfSection(NamedTuple):
    """One section: its type, its address in memory, where its bytes are in the file, and what it belongs to."""

    kind: int
    address: int
    offset: int
    size: int
    link: int
    info: int
    row: int  #: bytes of an entry, if it is a table
    name: int  #: its place in the table of names


@dataclass(frozen=True)
class ElfFile:
    """The sections of a file by their number; those that the file has not to their end are in ``missing``.

    ``read(offset, size)`` gives bytes that are there. ``names``: the section with the names, 0 if it is missing.
    ``expected``: sections that its header announces, of which ``listed`` have a header; ``length``: bytes of the file.
    """

    sections: dict[int, ElfSection]
    missing: dict[int, ElfSection]
    read: Callable[[int, int], bytes]
    names: int
    expected: int
    listed: int
    length: int
    kind: int  #: e_type
    machine: int
    notes: tuple[str, ...] = ()

    def bytes_of(self, section: ElfSection) -> bytes:
        """What is in a section; nothing for one that takes memory only."""
        return b"" if section.kind == _NOBITS else self.read(section.offset, section.size)

    def name_of(self, section: ElfSection) -> str:
        """The name of a section, "" if it is not known."""
        table = self.sections.get(self.names)
        if table is None or section.name >= table.size:
            return ""
        raw = self.read(table.offset + section.name, min(_NAME, table.size - section.name))
        return raw.partition(b"\0")[0].decode("utf-8", "replace")

    def of_kind(self, kind: int) -> Iterator[tuple[int, ElfSection]]:
        """The sections of a type, with their numbers, in the order of the file."""
        return ((number, each) for number, each in self.sections.items() if each.kind == kind)


def open_elf(path: Path, without: frozenset[int] = frozenset()) -> ElfFile:
    """A file as it is, or packed by gzip or xz, without the sections of some types.

    CoreDumpError if it cannot be read or is not ELF for 64 bits.
    """
    with DUMP.open(path) as file:
        start = file.read(6)
    notes: list[str] = []
    if start.startswith(b"\x1f\x8b"):
        packed = zlib.decompressobj(zlib.MAX_WBITS | 16)
        return parse_elf(_unpacked(path, packed.decompress, notes), str(path), notes, without)
    if start == b"\xfd7zXZ\0":
        unpack = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_UNPACKED_DUMP_BYTES).decompress
        return parse_elf(_unpacked(path, unpack, notes), str(path), notes, without)
    plain = _PlainFile(path)
    return _parse(plain.read, plain.length, str(path), notes, without)


def parse_elf(
    data: bytes | bytearray, place: str = "", notes: Sequence[str] = (), without: frozenset[int] = frozenset()
) -> ElfFile:  # fmt: skip
    """The sections of a file in memory. CoreDumpError if it is not ELF for 64 bits."""
    return _parse(lambda offset, size: bytes(data[offset : offset + size]), len(data), place, notes, without)


class _PlainFile:
    """A file that is read where it is asked for: the dump of a whole device may be larger than the memory."""

    def __init__(self, path: Path) -> None:
        with DUMP.open(path) as file:
            self.length = file.seek(0, 2)
            self._number = os.dup(file.fileno())

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            os.close(self._number)

    def read(self, offset: int, size: int) -> bytes:
        """Bytes of the file, fewer where it ends."""
        try:
            return os.pread(self._number, size, offset)
        except OSError as error:
            raise CoreDumpError("the core dump cannot be read", cause=error.strerror or str(error)) from error


def _unpacked(path: Path, unpack: Callable[..., bytes], notes: list[str]) -> bytearray:
    """What was packed, as far as it can be unpacked."""
    made = bytearray()
    allowed = MAX_SMALL_DUMP_BYTES if path.stat().st_size < MAX_SMALL_BYTES else MAX_UNPACKED_DUMP_BYTES
    with DUMP.open(path) as file:
        try:
            while chunk := file.read(_CHUNK):
                made += unpack(chunk, allowed + 1 - len(made))
                if len(made) > allowed:
                    most = f"unpacked it has more than {allowed:,} bytes"
                    raise CoreDumpError(
                        f"the core dump {path} cannot be read", cause=most, correction="unpack it first"
                    )
        except (lzma.LZMAError, zlib.error, gzip.BadGzipFile, EOFError, MemoryError) as error:
            notes.append(f"it cannot be unpacked to its end: {error or 'it ends early'}")
    return made


def _parse(
    read: Callable[[int, int], bytes], length: int, place: str, notes: Sequence[str], without: frozenset[int]
) -> ElfFile:  # fmt: skip
    header = read(0, _HEADER)
    if len(header) < _HEADER or header[:6] != b"\x7fELF\x02\x01":
        raise CoreDumpError("this is not an ELF file for 64 bits", place=place, correction=DUMP.correction)
    kind, machine = struct.unpack_from("<HH", header, 16)
    (start,) = struct.unpack_from("<Q", header, 40)
    row, count, names = struct.unpack_from("<HHH", header, 58)
    if not count and start:  # a number that does not fit is in the first header
        first = read(start, _ROW.size)
        count = _ROW.unpack(first)[5] if len(first) == _ROW.size else 1
    if names == _MANY:
        first = read(start, _ROW.size)
        names = _ROW.unpack(first)[6] if len(first) == _ROW.size else 0
    if (count and row != _ROW.size) or count > MAX_DUMP_SECTIONS:
        cause = f"it has {count:,} sections with headers of {row} bytes"
        raise CoreDumpError("the header of an ELF file is damaged", place=place, cause=cause)
    there = max(0, min(count, (length - start) // _ROW.size))
    table = read(start, there * _ROW.size) if there else b""
    whole: dict[int, ElfSection] = {}
    missing: dict[int, ElfSection] = {}
    left = 2 * length  # of bytes: many sections that are all in one place would be a large dump of a small file
    for number, fields in enumerate(_ROW.iter_unpack(table[: len(table) // _ROW.size * _ROW.size])):
        name, type_, _, address, offset, size, link, info, _, entry = fields
        if type_ not in without:
            fits = type_ == _NOBITS or (offset + size <= length and size <= left)
            left -= size if fits and type_ != _NOBITS else 0
            (whole if fits else missing)[number] = ElfSection(type_, address, offset, size, link, info, entry, name)
    return ElfFile(whole, missing, read, names, count, there, length, kind, machine, tuple(notes))
