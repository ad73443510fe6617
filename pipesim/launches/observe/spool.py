"""The records of one process, written line by line to a file of its own in the spool folder."""

import hashlib
import json
import os
import secrets
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

MEMORY = ".memory"  #: the suffix of a file with a copy of memory
_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_CLOEXEC", 0)


class Spool:
    """Writes records and code; each line reaches the system before the call returns. OSError if it cannot be opened.

    ``nbytes`` is a limit on all of it: what is beyond is not written, and ``full`` is true from then on. ``copies``:
    bytes of memory that may still be written beside that.
    """

    def __init__(self, folder: Path, nbytes: int, copies: int = 0) -> None:
        self._folder, self.copies = folder, copies
        self._left = nbytes
        self._files: set[str] = set()
        name = f"{os.getpid()}-{secrets.token_hex(8)}.jsonl"
        self._file = os.open(folder / name, _FLAGS, 0o600)
        self._opened = os.fstat(self._file)
        self.full = False
        self._introduced = False

    def write(self, record: dict[str, Any]) -> bool:
        """Write one record; whether there was room."""
        return self._put(self._file, json.dumps(record).encode() + b"\n")

    def introduce(self, device: Callable[[], tuple[str, str]]) -> None:
        """Write once what process this is; its device is known from its first launch on."""
        if not self._introduced:
            self._introduced = True
            name, arch = device()
            argv = [each[:256] for each in sys.argv[:16]]
            self.write(
                {"kind": "process", "version": 1, "pid": os.getpid(), "argv": argv, "device": name, "arch": arch}
            )

    def code(self, data: bytes, suffix: str) -> str:
        """Write a file of code, if it is not there; its name, "" if there is no room."""
        key = hashlib.sha256(data).hexdigest()[:24] + suffix
        if key in self._files:
            return key
        try:
            file = os.open(self._folder / key, _FLAGS, 0o600)
        except FileExistsError:  # another process of the same command has it
            self._files.add(key)
            return key
        try:
            if not self._put(file, data):
                (self._folder / key).unlink()
                return ""
        finally:
            os.close(file)
        self._files.add(key)
        return key

    def memory(self, data: bytes) -> str:
        """Write a copy of memory, as a file of code; the caller has looked whether there is room."""
        left = self._left
        self._left += len(data)
        try:
            return self.code(data, MEMORY)
        finally:
            self.copies, self._left = self.copies - (left + len(data) - self._left), left

    def note(self, text: str) -> None:
        """Write a remark for the report."""
        self.write({"kind": "note", "text": text})

    def close(self) -> None:
        """Close the file of records."""
        if self._is_ours():
            os.close(self._file)
        self._file = -1

    def _is_ours(self) -> bool:
        """A program may close all files that it did not open, as one that becomes a daemon, and use their numbers."""
        try:
            return self._file >= 0 and os.path.samestat(os.fstat(self._file), self._opened)
        except OSError:
            return False

    def _put(self, file: int, data: bytes) -> bool:
        if not self._is_ours():
            self._file = -1
            return False
        if len(data) > self._left:
            self.full = True
            return False
        self._left -= len(data)
        while data:
            data = data[os.write(file, data) :]
        return True
