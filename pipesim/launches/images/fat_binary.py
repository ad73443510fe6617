"""The entries of a fat binary: PTX and machine code for several architectures, as nvcc packs them.

No header of CUDA's describes the format. It was read off files of nvcc 13.5 made with other options each, with
``cuobjdump`` as the yardstick (tests/launches/images/test_fat_binary.py); all 6,360 containers of 22 libraries of
CUDA, cuDNN and PyTorch are read by these rules. A container is ``0xBA55ED50 u32, version u16, header bytes u16, bytes
of all entries u64``, and then entries, each a header of 64 bytes or more and a payload. Standard library only: this
runs in the process that is observed.
"""

import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from typing import Self

from pipesim.bounds import MAX_IMAGE_BYTES, MAX_IMAGE_PARTS
from pipesim.errors import CodeImageError
from pipesim.launches.images.code_image import ImageKind, Peek, image_at, read

HEADER = 64  #: bytes of an entry's header before its name, its options or its members
#: kind u16, version u16, header bytes u32 (of a member: its offset), payload bytes u64, compressed bytes u32, offset of
#: the options u32, minor u16, major u16, architecture u32, offset of the name u32, its length u32, flags u64, 0, raw
#: bytes u64
_ENTRY = struct.Struct("<HHIQIIHHIIIQQQ")
_DEBUG, _LZ4, _ZSTD, _EXACT, _FAMILY = 0x2, 0x2000, 0x8000, 0x100000, 0x200000
_64_BIT = 0x1
_MOST_MEMBERS = 1 << 16  #: bytes of the list of a group's members


class EntryKind(IntEnum):
    """What an entry holds; the other numbers are code that no driver of today runs, or is only linked."""

    PTX = 1
    ELF = 2
    GROUP = 256  #: several entries that are compressed together (nvcc --concat)


class Compression(Enum):
    """How a payload is packed."""

    NONE = ""
    LZ4 = "LZ4"
    ZSTD = "zstd"


@dataclass(frozen=True, order=True)
class Architecture:
    """``sm_90a``: a number, and "" or ``a`` (this one alone) or ``f`` (its family)."""

    number: int
    variant: str = ""

    @classmethod
    def from_name(cls, name: str) -> Self:
        """The architecture of ``sm_90a`` or ``compute_90a``. Raises CodeImageError for another form."""
        match = re.fullmatch(r"(?:sm|compute)_([1-9]\d{1,3})([af]?)", name)
        if not match:
            raise CodeImageError(f"{name!r} is not an architecture", correction="write it as sm_90 or sm_90a")
        return cls(int(match[1]), match[2])

    def __str__(self) -> str:
        return f"{self.number}{self.variant}"


@dataclass(frozen=True)
class FatEntry:
    """One entry, or one member of a group. Header and payload are at ``address``, as nvcc wrote them.

    ``version``: of PTX, its ISA's, such as (9, 5). ``raw_bytes``: of the payload when it is not compressed, 0 if it
    never was. ``member``: of a group, the header that the group's list has for it; empty for an entry by itself.
    """

    kind: int
    architecture: Architecture
    address: int
    header_bytes: int
    payload_bytes: int
    compressed_bytes: int
    raw_bytes: int
    compression: Compression
    version: tuple[int, int]
    debug: bool
    is_64_bit: bool
    member: bytes = b""


def entries_at(address: int, peek: Peek) -> tuple[FatEntry, ...]:
    """The entries of a container (or of what a wrapper points to); only headers are read, no payload.

    A group's members take its place. Raises CodeImageError where a header is wrong or memory cannot be read.
    """
    image = image_at(address, peek)
    if image.kind is not ImageKind.CONTAINER:
        raise CodeImageError(f"expected a fat binary, found {image.kind.value}")
    _, header, _ = struct.unpack_from("<HHQ", read(peek, image.address, 16), 4)
    at, end = image.address + max(header, 16), image.address + image.nbytes
    found: list[FatEntry] = []
    while at < end:
        entry = _entry(read(peek, at, HEADER) if end - at >= HEADER else b"", at)
        if entry.header_bytes < HEADER or entry.header_bytes + entry.payload_bytes > end - at:
            raise CodeImageError("an entry of a fat binary does not fit into it")
        found += _members(entry, peek) if entry.kind == EntryKind.GROUP else [entry]
        at += entry.header_bytes + entry.payload_bytes
        if len(found) > MAX_IMAGE_PARTS:
            raise CodeImageError(f"a fat binary has more than {MAX_IMAGE_PARTS:,} entries")
    return tuple(found)


def entry_bytes(entry: FatEntry, peek: Peek) -> bytes:
    """The content of the file ``KEY.entry``: header and payload. Of a group's member, the group with this one alone."""
    if not entry.member:
        return read(peek, entry.address, entry.header_bytes + entry.payload_bytes)
    listed = struct.pack("<II", 1, 8 + len(entry.member)) + entry.member
    fixed = bytearray(read(peek, entry.address, HEADER))
    struct.pack_into("<I", fixed, 4, HEADER + len(listed))
    struct.pack_into("<I", fixed, 20, HEADER)
    return bytes(fixed) + listed + read(peek, entry.address + entry.header_bytes, entry.payload_bytes)


def entry_of(data: bytes) -> FatEntry:
    """The entry that begins ``data``, the content of a file ``KEY.entry``; its address is 0.

    Raises CodeImageError where it is cut or its header is wrong, or a group has not exactly one member.
    """

    def peek(address: int, nbytes: int) -> bytes:
        return data[address : address + nbytes]

    entry = _entry(data[:HEADER], 0)
    if entry.header_bytes < HEADER or entry.header_bytes + entry.payload_bytes > len(data):
        raise CodeImageError("an entry of a fat binary is cut or damaged")
    if entry.kind != EntryKind.GROUP:
        return entry
    members = _members(entry, peek)
    if len(members) != 1:
        raise CodeImageError(f"a group of a fat binary lists {len(members)} members, not one")
    return members[0]


def _entry(header: bytes, address: int) -> FatEntry:
    if len(header) < HEADER:
        raise CodeImageError("an entry of a fat binary is cut")
    kind, _, size, payload, packed, _, minor, major, number, _, _, flags, _, raw = _ENTRY.unpack(header)
    variant = "a" if flags & _EXACT else "f" if flags & _FAMILY else ""
    compression = Compression.ZSTD if flags & _ZSTD else Compression.LZ4 if flags & _LZ4 else Compression.NONE
    if payload > MAX_IMAGE_BYTES or (compression is not Compression.NONE and packed > payload):
        raise CodeImageError("an entry of a fat binary has sizes that do not fit together")
    return FatEntry(
        kind, Architecture(number, variant), address, size, payload, packed, raw, compression, (major, minor),
        bool(flags & _DEBUG), bool(flags & _64_BIT),
    )  # fmt: skip


_OF_GROUP = ("address", "header_bytes", "payload_bytes", "compressed_bytes", "raw_bytes", "compression")


def _members(group: FatEntry, peek: Peek) -> list[FatEntry]:
    """A group's list is where its options would be: number u32, its bytes u32, then a header for each member.

    In a member's header its offset within the raw payload takes the place of the header's size.
    """
    (at,) = struct.unpack("<I", read(peek, group.address + 20, 4))
    count, nbytes = (
        struct.unpack("<II", read(peek, group.address + at, 8)) if HEADER <= at <= group.header_bytes else (0, 0)
    )
    if not 8 <= nbytes <= min(group.header_bytes - at, _MOST_MEMBERS) or count > nbytes // HEADER:
        raise CodeImageError("the list of a group of a fat binary is damaged")
    listed = read(peek, group.address + at, nbytes)
    found = []
    first = 8
    for _ in range(count):
        header = listed[first : first + HEADER]
        member = _entry(header, 0)
        length = _member_bytes(listed, first)
        of_group = {name: getattr(group, name) for name in _OF_GROUP}
        found.append(replace(member, **of_group, member=listed[first : first + length]))
        first += length
    return found


def _member_bytes(listed: bytes, first: int) -> int:
    """The bytes of a member's header with its name and its options, each of which ends with a NUL; a multiple of 8."""
    (options,) = struct.unpack_from("<I", listed, first + 20)
    name, name_bytes = struct.unpack_from("<II", listed, first + 32)
    end = HEADER
    if name:
        end = max(end, name + name_bytes + 1)
    if options:
        if first + options + 8 > len(listed):
            raise CodeImageError("the options of a member of a fat binary's group are cut")
        text, text_bytes = struct.unpack_from("<II", listed, first + options)
        end = max(end, text + text_bytes + 1)
    length = (end + 7) & ~7
    if first + length > len(listed):
        raise CodeImageError("a member of a fat binary's group is cut")
    return length


@dataclass(frozen=True)
class Choice:
    """``ptx``: the entry with the PTX of what runs; None where it is not known, with the reason in one sentence."""

    ptx: FatEntry | None
    why_not: str = ""


def choose(entries: Sequence[FatEntry], device: str, *, force_ptx: bool = False) -> Choice:
    """The PTX that describes what runs on a device (``sm_90``).

    It is the one that the driver compiles, or the one of the same architecture as the machine code that runs: nvcc
    makes both from one source, though not necessarily from one another. ``force_ptx``: the process has
    ``CUDA_FORCE_PTX_JIT=1``, with which the driver ignores machine code. Where two entries fit equally, which one runs
    is not documented, and there is no PTX. CodeImageError for a device that is not written like ``sm_90``.
    """
    here = Architecture.from_name(device)
    ptx = [entry for entry in entries if entry.kind == EntryKind.PTX]
    code = [entry for entry in entries if entry.kind == EntryKind.ELF and not force_ptx]
    fitting = _best([entry for entry in code if _runs(entry.architecture, here)])
    if fitting:
        run = {entry.architecture for entry in fitting}
        same = [entry for entry in ptx if entry.architecture in run]
        has = f"its fat binary has machine code for {_names('sm', fitting)} and "
        if len(fitting) > 1 and same:
            return Choice(None, f"its fat binary has several machine codes for {device}: {_names('sm', fitting)}")
        reason = f"PTX only for {_names('compute', ptx)}" if ptx else "no PTX"
        return _only(same, has + reason, f"{has}{len(same)} PTX texts for it")
    compiled = _best([entry for entry in ptx if _compiles(entry.architecture, here)])
    has = f"its fat binary has nothing for {device}: "
    parts = [f"machine code for {_names('sm', code)}"] if code else []
    parts += [f"PTX for {_names('compute', ptx)}"] if ptx else []
    nothing = has + (" and ".join(parts) or "it is empty")
    return _only(compiled, nothing, f"its fat binary has several PTX texts for {device}: {_names('compute', compiled)}")


def _only(found: Sequence[FatEntry], none: str, several: str) -> Choice:
    return Choice(found[0]) if len(found) == 1 else Choice(None, several if found else none)


def _best(entries: Sequence[FatEntry]) -> list[FatEntry]:
    """Those of the highest number."""
    most = max((entry.architecture.number for entry in entries), default=0)
    return [entry for entry in entries if entry.architecture.number == most]


def _runs(code: Architecture, device: Architecture) -> bool:
    if code.variant == "a":
        return code.number == device.number
    return code.number // 10 == device.number // 10 and code.number <= device.number


def _compiles(ptx: Architecture, device: Architecture) -> bool:
    return _runs(ptx, device) if ptx.variant else ptx.number <= device.number


def _names(prefix: str, entries: Sequence[FatEntry]) -> str:
    """``compute_80, compute_120``."""
    return ", ".join(f"{prefix}_{each}" for each in sorted({entry.architecture for entry in entries}))
