"""Code that a process hands to the driver: of which kind it is, and where it ends, which only its headers say.

The driver is given an address alone. Standard library only: this runs in the process that is observed.
"""

import struct
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from pipesim.bounds import MAX_IMAGE_BYTES, MAX_IMAGE_PARTS, MAX_PTX_BYTES
from pipesim.errors import CodeImageError

#: ``peek(address, nbytes)``: that many bytes of memory. OSError, or fewer bytes, where the memory cannot be read.
Peek = Callable[[int, int], bytes]

START = 16  #: bytes that tell the kind; no image of any kind is shorter
_ELF = b"\x7fELF"
CONTAINER = 0xBA55ED50  #: of what nvcc's fatbinary writes; not in a header of CUDA's, but at the start of each file
_WRAPPER = 0x466243B1  #: FATBINC_MAGIC of fatbinary_section.h
_PTX_STARTS = (b".", b"//", b"/*")
_SPACE = b" \t\r\n\f\v"
_PAGE = 4096
_NOBITS = 8  #: SHT_NOBITS of elf(5): a section without bytes in the file


class ImageKind(Enum):
    """What a process gave to the driver. The value is a phrase for a sentence."""

    PTX = "PTX"
    ELF = "machine code"
    CONTAINER = "a fat binary"
    WRAPPER = "a pointer to a fat binary"
    UNKNOWN = "code of an unknown format"


@dataclass(frozen=True)
class CodeImage:
    """One image in memory. A wrapper was followed: ``kind`` is never WRAPPER. ``nbytes`` is 0 for UNKNOWN.

    Of PTX they are the text's without the NUL that ends it; of a container, its header's and its entries'.
    """

    kind: ImageKind
    address: int
    nbytes: int


def image_kind(start: bytes) -> ImageKind:
    """The kind of an image by its first bytes, at least :data:`START` of them; fewer are UNKNOWN."""
    if len(start) < START:
        return ImageKind.UNKNOWN
    (magic,) = struct.unpack_from("<I", start)
    if start.startswith(_ELF):
        return ImageKind.ELF
    if magic == CONTAINER:
        return ImageKind.CONTAINER
    if magic == _WRAPPER:
        return ImageKind.WRAPPER
    text = start.lstrip(_SPACE)
    if text.startswith(_PTX_STARTS) or not text:  # nvcc begins with empty lines
        return ImageKind.PTX if all(byte >= 32 or byte in _SPACE for byte in start) else ImageKind.UNKNOWN
    return ImageKind.UNKNOWN


def image_at(address: int, peek: Peek) -> CodeImage:
    """The image that a pointer given to ``cuModuleLoadData`` and its like leads to, with its size.

    Raises CodeImageError where a header is wrong or the memory cannot be read.
    """
    kind = image_kind(read(peek, address, START))
    if kind is ImageKind.WRAPPER:
        (address,) = struct.unpack("<Q", read(peek, address + 8, 8))
        kind = image_kind(read(peek, address, START))
        if kind is ImageKind.WRAPPER:
            raise CodeImageError("a wrapper of a fat binary leads to another wrapper")
    size = _SIZES.get(kind)
    nbytes = size(address, peek) if size else 0
    if nbytes > MAX_IMAGE_BYTES:
        raise CodeImageError(f"the header of {kind.value} says {nbytes:,} bytes; at most {MAX_IMAGE_BYTES:,} are read")
    return CodeImage(kind, address, nbytes)


def read(peek: Peek, address: int, nbytes: int) -> bytes:
    """Exactly these bytes. Raises CodeImageError where they cannot be read."""
    try:
        data = peek(address, nbytes)
    except (OSError, OverflowError, ValueError) as error:
        raise CodeImageError(f"{nbytes:,} bytes of code at {address:#x} cannot be read", cause=str(error)) from error
    if len(data) != nbytes:
        raise CodeImageError(f"of {nbytes:,} bytes of code at {address:#x} only {len(data):,} can be read")
    return data


def _ptx_bytes(address: int, peek: Peek) -> int:
    """Up to the NUL; never over the end of a page, because the next one may not be there."""
    at = address
    while at - address < MAX_PTX_BYTES:
        chunk = read(peek, at, _PAGE - at % _PAGE)
        end = chunk.find(0)
        if end >= 0:
            return at + end - address
        at += len(chunk)
    raise CodeImageError(f"PTX of more than {MAX_PTX_BYTES:,} bytes is not read", cause="it has no NUL at its end")


def _container_bytes(address: int, peek: Peek) -> int:
    """Header: magic u32, version u16, header bytes u16, bytes of all entries u64."""
    header, entries = struct.unpack_from("<HQ", read(peek, address, 16), 6)
    return int(header + entries)


def _elf_bytes(address: int, peek: Peek) -> int:
    """The largest end of a table, a section or a segment (elf(5), 64-bit, little-endian)."""
    header = read(peek, address, 64)
    if header[4:6] != b"\x02\x01":
        raise CodeImageError("machine code is not 64-bit little-endian ELF")
    segments, sections = struct.unpack_from("<QQ", header, 32)
    segment_bytes, segment_count, section_bytes, section_count = struct.unpack_from("<HHHH", header, 54)
    if sections and not section_count:  # more than fit into 16 bits: the first section has the number
        (section_count,) = struct.unpack("<Q", read(peek, address + sections + 32, 8))
    if (
        section_count > MAX_IMAGE_PARTS
        or (section_count and section_bytes < 64)
        or (segment_count and segment_bytes < 56)
    ):
        raise CodeImageError(f"the ELF header of machine code is damaged: {section_count} sections")
    end = max(64, segments + segment_bytes * segment_count, sections + section_bytes * section_count)
    if end > MAX_IMAGE_BYTES:
        return int(end)  # the caller refuses it
    for table, size, count, form, at in (
        (segments, segment_bytes, segment_count, "<Q16xQ", 8),  # p_offset, p_filesz
        (sections, section_bytes, section_count, "<QQ", 24),  # sh_offset, sh_size
    ):
        if count == 0:  # as in machine code without segments, whose headers then have no size either
            continue
        data = read(peek, address + table, size * count)
        for first in range(0, len(data), size):
            kind = struct.unpack_from("<I", data, first + 4)[0] if form == "<QQ" else 0
            offset, nbytes = struct.unpack_from(form, data, first + at)
            end = max(end, 0 if kind == _NOBITS else offset + nbytes)
    return int(end)


_SIZES = {ImageKind.PTX: _ptx_bytes, ImageKind.ELF: _elf_bytes, ImageKind.CONTAINER: _container_bytes}
