"""The buffer of a rewritten kernel: the one definition for the text that it executes and for the decoder.

::

    0     u32 stop: not 0 once waits shall end
    4     u32 reserved
    8     u64 where the first stream begins, from the buffer's beginning, as the kernel worked it out; 0: not begun
    16    u8 slots[ranks][warps][32]: the number of a lane's stream, NO_STREAM if it records nothing
    ...   streams, each of 2 * size bytes and aligned to that: records from its beginning on, and its frame at the end

A frame has 64 bytes: u64 clock and u64 globaltimer at the beginning, u32 SM, 12 bytes reserved; u64 clock and u64
globaltimer at the end, u32 cursor (the low half of the address after the last record), u32 hash.
"""

from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from hwkernels.records.encodings import UNWRITTEN
from pipesim.errors import TraceFormatError

STOP: Final = 0
STREAMS: Final = 8
SLOTS: Final = 16
NO_STREAM: Final = 0xFF
FRAME_BYTES: Final = 64

#: Offsets in a frame.
BEGIN_CLOCK, BEGIN_TIMER, SM, END_CLOCK, END_TIMER, CURSOR, HASH = 0, 8, 16, 32, 40, 48, 52
FRAME: np.dtype[Any] = np.dtype(
    {
        "names": ["begin_clock", "begin_timer", "sm", "end_clock", "end_timer", "cursor", "hash"],
        "formats": ["<u8", "<u8", "<u4", "<u8", "<u8", "<u4", "<u4"],
        "offsets": [BEGIN_CLOCK, BEGIN_TIMER, SM, END_CLOCK, END_TIMER, CURSOR, HASH],
        "itemsize": FRAME_BYTES,
    }
)
LANES: Final = 32


@dataclass(frozen=True)
class StreamKey:
    """Whose stream: the CTA's rank in its cluster, the warp, and the lane that stores."""

    rank: int
    warp: int
    lane: int


@dataclass(frozen=True)
class BufferLayout:
    """Where everything lies. ``size``: bytes of records of a stream that are kept, a power of two."""

    ranks: int
    warps: int
    streams: tuple[StreamKey, ...]
    size: int

    @property
    def stride(self) -> int:
        """Bytes from one stream to the next, and their alignment."""
        return 2 * self.size

    @property
    def nbytes(self) -> int:
        """Bytes of the buffer, at whatever address it lies."""
        return SLOTS + self.ranks * self.warps * LANES + (len(self.streams) + 1) * self.stride

    def initial(self) -> bytes:
        """What it holds before each launch."""
        slots = np.full((self.ranks, self.warps, LANES), NO_STREAM, dtype=np.uint8)
        for number, key in enumerate(self.streams):
            slots[key.rank, key.warp, key.lane] = number
        head = bytes(SLOTS) + slots.tobytes()
        return head + bytes([UNWRITTEN]) * (self.nbytes - len(head))

    def streams_of(self, buffer: bytes) -> list[bytes]:
        """The bytes of each stream. TraceFormatError if the buffer is not one of this layout after a launch."""
        if len(buffer) != self.nbytes:
            raise TraceFormatError(
                f"the buffer has {len(buffer):,} bytes",
                cause=f"this kernel's has {self.nbytes:,}",
                correction="decode the buffer with the kernel that wrote it",
            )
        first = int.from_bytes(buffer[STREAMS : STREAMS + 8], "little")
        if not first:
            raise TraceFormatError(
                "no warp of the launch has begun to record",
                cause="the kernel was launched without the buffer's address in its symbol, or not at all",
            )
        if first + len(self.streams) * self.stride > self.nbytes:
            raise TraceFormatError(f"the streams begin at byte {first:,}, beyond the buffer", cause="it is damaged")
        ends = (first + number * self.stride for number in range(len(self.streams)))
        return [buffer[at : at + self.stride] for at in ends]
