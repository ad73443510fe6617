"""What a cubin says about the parameters of its kernel. Needs no GPU."""

import struct
from collections.abc import Iterator

from hwkernels.device.compile import CompiledKernel

# ELF64: where the header reports the sections, and a section's name, offset and size among its 64 bytes.
_ELF = b"\x7fELF\x02\x01"
_SECTION_TABLE, _SECTION_COUNTS = 0x28, 0x3A
_SECTION = struct.Struct("<I20xQQ24x")
# .nv.info: entries of a format, an attribute and 16 bits, which are the value, or the size of the value that follows.
_ENTRY = struct.Struct("<BBH")
_SIZED = 0x04
_TOTAL = 0x19  #: EIATTR_CBANK_PARAM_SIZE
_PARAMETER = 0x17  #: EIATTR_KPARAM_INFO
_PARAMETER_INFO = struct.Struct("<IHHI")  # 0, ordinal, offset, flags with the size from bit 18 on
_SIZE_BIT = 18


def sizes_in_cubin(compiled: CompiledKernel) -> tuple[int, ...] | None:
    """The bytes of each parameter of the kernel, as its cubin says; None where that cannot be read.

    NVIDIA documents neither the section nor its attributes, so it counts only if the sizes add up to the total that
    is beside them. On a GPU the driver is asked again.
    """
    try:
        info = next((s for name, s in _sections(compiled.cubin) if name == f".nv.info.{compiled.entry}"), None)
        if info is None:
            return None
        total, found = 0, {}
        for attribute, value in _entries(info):
            if attribute == _TOTAL:
                total = int.from_bytes(value, "little")
            elif attribute == _PARAMETER:
                _, ordinal, offset, flags = _PARAMETER_INFO.unpack(value)
                found[ordinal] = (offset, flags >> _SIZE_BIT)
    except (struct.error, OverflowError):  # an offset beyond the file, or beyond any
        return None
    end = 0
    for ordinal in range(len(found)):
        offset, size = found.get(ordinal, (-1, 0))
        if offset < end:
            return None
        end = offset + size
    return tuple(found[ordinal][1] for ordinal in range(len(found))) if end == total else None


def _sections(cubin: bytes) -> Iterator[tuple[str, bytes]]:
    """Every section of an ELF file of 64 bits by its name; none of another file. struct.error if it is cut short."""
    if not cubin.startswith(_ELF):
        return
    (table,) = struct.unpack_from("<Q", cubin, _SECTION_TABLE)
    each, count, names = struct.unpack_from("<HHH", cubin, _SECTION_COUNTS)
    headers = [_SECTION.unpack_from(cubin, table + number * each) for number in range(count)]
    if names >= count:
        return
    _, start, size = headers[names]
    texts = cubin[start : start + size]
    for name, offset, length in headers:
        end = texts.find(b"\0", name)
        yield texts[name : end if end >= 0 else len(texts)].decode(errors="replace"), cubin[offset : offset + length]


def _entries(info: bytes) -> Iterator[tuple[int, bytes]]:
    """The attributes of a ``.nv.info`` section with their values."""
    at = 0
    while at < len(info):
        form, attribute, short = _ENTRY.unpack_from(info, at)
        at += _ENTRY.size
        if form == _SIZED:
            yield attribute, info[at : at + short]
            at += short
        else:
            yield attribute, short.to_bytes(2, "little")
