"""The two streams of a command: standard output that was delivered or not, and standard error that never fails.

A report that could not be written is an error of the command. An error message that could not be written is nothing
that anybody can be told, and must not change the exit code.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from pipesim.errors import UsageError


@contextmanager
def lasting_streams() -> Iterator[None]:
    """While the block runs both streams are there, also where the caller closed them, and standard error takes all.

    Streams that are not the process's own, as a test or a notebook has them, are left alone.
    """
    if sys.stdout is None:  # closed by the caller: no report is wanted
        sys.stdout = _nowhere()
    if sys.stderr is None:
        sys.stderr = _nowhere()
    before = sys.stderr
    own = sys.__stderr__
    if own is None or before is not own:
        yield
        return
    raw = _Lossy(own.fileno(), "w", closefd=False)
    sys.stderr = io.TextIOWrapper(
        io.BufferedWriter(raw), own.encoding, own.errors or "backslashreplace", line_buffering=True
    )
    try:
        yield
    finally:
        sys.stderr.flush()
        sys.stderr = before


def _nowhere() -> TextIO:
    """A stream that drops everything, as long as the process lives."""
    raw = io.FileIO(os.open(os.devnull, os.O_WRONLY), "w", closefd=False)
    return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace")


class _Lossy(io.FileIO):
    """A stream whose disk may be full, or whose reader gone: what cannot be written is dropped."""

    def write(self, data: bytes) -> int:  # type: ignore[override]  # any buffer of bytes, as BufferedWriter gives it
        """The bytes, all of which count as written."""
        with suppress(OSError):
            super().write(data)
        return len(data)


def deliver() -> None:
    """Write what is left in the buffer of standard output. UsageError if it cannot be, unless its reader has gone."""
    try:
        sys.stdout.flush()
    except OSError as error:
        undelivered(error)


def undelivered(error: OSError) -> None:
    """Standard output failed: the rest of it goes nowhere. UsageError, unless its reader has gone (``| head``)."""
    discard_output()
    if not isinstance(error, BrokenPipeError):
        raise UsageError(
            f"standard output cannot be written: {error.strerror or error}",
            cause="the disk is full, or the file was closed",
            correction="write to another file, or free space",
        ) from error


def discard_output() -> None:
    """Send the rest of standard output nowhere, so that the interpreter does not fail on it when it ends."""
    with suppress(OSError, ValueError):  # a file in memory has no number
        number = sys.stdout.fileno()
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, number)
        os.close(nowhere)
