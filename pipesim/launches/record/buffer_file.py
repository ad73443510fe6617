"""The file with the buffer of one recorded launch: 128 bytes of description, then the buffer as the kernel left it.

The same form is written by pipesim in a Python process and by ``pipesim_record.h`` in C++ (which also has its layout),
and ``pipesim instrument`` writes it with what the buffer must hold before a launch. All numbers are little-endian.
"""

import struct
from dataclasses import dataclass
from enum import IntEnum
from pathlib import Path

from pipesim.bounds import MAX_TRACE_BYTES
from pipesim.errors import LaunchFileError
from pipesim.inputs import InputKind

MAGIC = b"PIPESIMR"
VERSION = 1
HEADER_BYTES = 128
_HEADER = struct.Struct("<8s6I2Q72s2I")
_STOP_FLAG, _WAITS_ONLY = 1, 2  #: how the kernel was instrumented
assert _HEADER.size == HEADER_BYTES
_FILE = InputKind("file of records", MAX_TRACE_BYTES, LaunchFileError, "record the kernel again")


class LaunchEnd(IntEnum):
    """How a recorded launch ended; the value is the one in the file."""

    FINISHED = 0  #: the kernel ran to its end
    STOPPED = 1  #: it ran beyond its deadline; its waits gave up when it was stopped
    RUNNING = 2  #: it did not even end then: the records are those that it had made so far
    FAILED = 3  #: the driver reported an error of the launch, as a trap


@dataclass(frozen=True)
class RecordedBuffer:
    """The buffer of one launch, and the device that made it. ``took_ns``: from the launch to its seen end, host time.

    ``driver``: the CUDA version of the driver, as 13000 for 13.0. ``stop_flag`` and ``waits_only`` are how its kernel
    was instrumented, and ``cta`` the one that it records. Before a launch, ``data`` is what the buffer must hold then.
    """

    end: LaunchEnd
    device: str
    sms: int
    capability: tuple[int, int]
    driver: int
    took_ns: int
    data: bytes
    stop_flag: bool = False
    waits_only: bool = False
    cta: int = 0

    def encode(self) -> bytes:
        """The bytes of the file."""
        flags = _STOP_FLAG * self.stop_flag | _WAITS_ONLY * self.waits_only
        major, minor = self.capability
        numbers = (VERSION, int(self.end), self.sms, major, minor, self.driver, len(self.data), self.took_ns)
        return _HEADER.pack(MAGIC, *numbers, self.device.encode()[:71], flags, self.cta) + self.data


def decode_buffer(data: bytes, place: str) -> RecordedBuffer:
    """The buffer in a file's bytes. LaunchFileError if they are something else, or not whole."""
    if len(data) < HEADER_BYTES or data[:8] != MAGIC:
        raise LaunchFileError("this is not a file of records", place=place, correction="give what pipesim_write wrote")
    _, version, end, sms, major, minor, driver, nbytes, took_ns, name, flags, cta = _HEADER.unpack_from(data)
    if version != VERSION or end not in LaunchEnd.__members__.values():
        raise LaunchFileError(
            f"a file of records of version {version}, with end {end}",
            place=place,
            cause=f"this pipesim reads version {VERSION}",
            correction="use one pipesim for both",
        )
    if len(data) - HEADER_BYTES != nbytes:
        raise LaunchFileError(
            f"the file has {len(data) - HEADER_BYTES:,} bytes of records, and should have {nbytes:,}",
            place=place,
            cause="it was not written to its end",
            correction="record the kernel again",
        )
    device = name.split(b"\0", 1)[0].decode(errors="replace")
    made = bool(flags & _STOP_FLAG), bool(flags & _WAITS_ONLY)
    capability, kept = (major, minor), data[HEADER_BYTES:]
    return RecordedBuffer(LaunchEnd(end), device, sms, capability, driver, took_ns, kept, *made, cta)


def read_record_file(path: Path) -> RecordedBuffer:
    """The buffer in a file. Raises as :func:`decode_buffer`."""
    return decode_buffer(_FILE.read_bytes(path), path.name)
