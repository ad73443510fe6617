"""The PTX of one entry of a fat binary, which may be compressed."""

import struct

from pipesim.bounds import MAX_PTX_BYTES
from pipesim.errors import CodeImageError
from pipesim.launches.images.fat_binary import Compression, EntryKind, entry_of

_CUT = "the compressed PTX of a fat binary is damaged"


def ptx_of_entry(data: bytes) -> str:
    """The text of the entry that ``data``, the content of a file ``KEY.entry``, is.

    Raises CodeImageError where the header or the compressed text is damaged, the entry is not PTX, or the text would
    have more than :data:`~pipesim.bounds.MAX_PTX_BYTES` bytes.
    """
    entry = entry_of(data)
    if entry.kind != EntryKind.PTX:
        raise CodeImageError(f"an entry of a fat binary is of kind {entry.kind}, not PTX")
    return _text(payload_of_entry(data, MAX_PTX_BYTES, "PTX"))


def payload_of_entry(data: bytes, most: int, kind: str) -> bytes:
    """What such an entry of a ``kind`` packs, of ``most`` bytes at most. CodeImageError."""
    entry = entry_of(data)
    start = entry.header_bytes
    payload = data[start : start + (entry.compressed_bytes or entry.payload_bytes)]
    if entry.compression is not Compression.NONE:
        if entry.raw_bytes > most:
            raise CodeImageError(f"{kind} of {entry.raw_bytes:,} bytes is not read; at most {most:,} are")
        payload = (_zstd if entry.compression is Compression.ZSTD else lz4_block)(payload, entry.raw_bytes)
    if entry.member:
        offset, nbytes = struct.unpack_from("<IQ", entry.member, 4)
        payload = payload[offset : offset + nbytes]
    return payload


def _text(payload: bytes) -> str:
    text = payload.rstrip(b"\0")
    if len(text) > MAX_PTX_BYTES:
        raise CodeImageError(f"PTX of {len(text):,} bytes is not read; at most {MAX_PTX_BYTES:,} are")
    try:
        found = text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CodeImageError("the PTX of a fat binary is not a text", cause=str(error)) from error
    if "\0" in found or ".version" not in found:
        raise CodeImageError("the PTX of a fat binary is not a PTX text", cause="it is damaged, or packed unusually")
    return found


def _zstd(packed: bytes, nbytes: int) -> bytes:
    import pyarrow as pa

    try:
        raw: bytes = pa.Codec("zstd").decompress(packed, nbytes, asbytes=True)
    except (OSError, ValueError) as error:  # OSError is what Arrow makes of each error of a codec
        raise CodeImageError(_CUT, cause=str(error)) from error
    return raw


def lz4_block(packed: bytes, nbytes: int) -> bytes:
    """A block of LZ4 without a frame (lz4_Block_format.md), which must have exactly ``nbytes`` bytes.

    pyarrow's ``lz4_raw`` would leave memory as it was where the text is shorter. Raises CodeImageError.
    """
    raw = bytearray()
    at = 0
    try:
        while True:
            token = packed[at]
            count, at = _length(packed, at + 1, token >> 4)
            raw += packed[at : at + count]
            at += count
            if at >= len(packed) or len(raw) > nbytes:
                break
            back = packed[at] | packed[at + 1] << 8
            count, at = _length(packed, at + 2, token & 15)
            count += 4
            if not 0 < back <= len(raw) or count > nbytes - len(raw):
                raise CodeImageError(_CUT, cause="a match of LZ4 lies outside the text")
            seen = bytes(raw[-back:])[:count]
            raw += (seen * (count // len(seen) + 1))[:count]
    except IndexError as error:
        raise CodeImageError(_CUT, cause="it ends within a sequence of LZ4") from error
    if at != len(packed) or len(raw) != nbytes:
        raise CodeImageError(_CUT, cause=f"{nbytes:,} bytes were announced, and {len(raw):,} found")
    return bytes(raw)


def _length(packed: bytes, at: int, count: int) -> tuple[int, int]:
    """15 continues in further bytes, as long as they are 255. The length and where it ends."""
    if count == 15:
        more = 255
        while more == 255:
            more = packed[at]
            count += more
            at += 1
    return count, at
