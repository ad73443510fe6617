"""A program with the manners of NVIDIA's driver: ``python fake_dumping_driver.py [early|mute|deaf|ranks|ends|traps]``.

It makes a pipe, waits for a byte, removes the pipe, writes an ELF file piece by piece with its table last, and aborts:
as seen with driver 580. ``early``: it ends in the middle of that, ``mute``: before it. ``deaf``: it has no context.
``ranks``: two processes below a launcher, which ends the second as soon as it sees that the first has ended. ``ends``:
with status 3. ``traps``: it writes the file without a byte, as of an exception.
"""

import os
import signal
import struct
import subprocess
import sys
import time
from pathlib import Path

SECTIONS = 40
ENTRY = 64


def elf(content: bytes) -> tuple[bytes, bytes]:
    """A core file with this content: what comes before the table of sections, and the table."""
    header = bytearray(b"\x7fELF\x02\x01\x01" + bytes(57))
    struct.pack_into("<Q", header, 40, ENTRY + len(content))
    struct.pack_into("<HHH", header, 58, ENTRY, SECTIONS, SECTIONS - 1)
    return bytes(header) + content, bytes(ENTRY * SECTIONS)


def place(variable: str) -> Path:
    """The path that the driver makes of it."""
    return Path(os.environ[variable].replace("%h", os.uname().nodename).replace("%p", str(os.getpid())))


def hang(manner: str) -> None:
    """Wait at the pipe, write, and abort."""
    pipe = place("CUDA_COREDUMP_PIPE")
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDWR)  # open at both ends: the byte may come at any time
    os.write(1, b"hangs\n")
    if manner != "traps":
        os.read(reader, 1)
    if manner == "mute":
        os._exit(1)
    pipe.unlink()
    before, table = elf(os.environ.get("RANK", "").encode() + bytes(200_000))
    with place("CUDA_COREDUMP_FILE").open("wb") as file:
        for at in range(0, len(before), 50_000):
            file.write(before[at : at + 50_000])
            file.flush()
            time.sleep(0.002)
            if manner == "early":
                os._exit(1)
        file.write(table)
    os.abort()


def launch_ranks() -> None:
    """Two ranks, and a launcher that ends the others when one has ended."""
    ranks = [subprocess.Popen([sys.executable, __file__], env={**os.environ, "RANK": str(rank)}) for rank in range(2)]
    while all(rank.poll() is None for rank in ranks):
        time.sleep(0.001)
    for rank in ranks:
        rank.send_signal(signal.SIGKILL)
    sys.exit(1)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["ends"]:
            sys.exit(3)
        case ["deaf"]:
            os.write(1, b"hangs\n")
            time.sleep(100)
        case ["ranks"]:
            launch_ranks()
        case given:
            hang("".join(given))
