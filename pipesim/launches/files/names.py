"""Names of files for kernels: readable, safe in any folder, and the same for the same launches in the same order."""

from __future__ import annotations

import re
from hashlib import sha256

from pipesim.ptx.emit.names import kernel_name

_MOST = 48  #: characters of a name
_RESERVED = frozenset({"launches", "con", "prn", "aux", "nul"})  #: the index, and names that Windows has taken
_UNSAFE = re.compile(r"[^A-Za-z0-9_]+")


class FileNames:
    """Gives each kernel and PTX a name of its own."""

    def __init__(self) -> None:
        self._taken: set[str] = set(_RESERVED)

    def of(self, kernel: str, text: str) -> str:
        """The name, without a suffix, of a kernel's files; ``text``: its PTX."""
        safe = _UNSAFE.sub("_", kernel_name(kernel)).strip("_") or "kernel"
        digest = sha256(f"{kernel}\0{text}".encode("utf-8", "surrogateescape")).hexdigest()
        name = safe if len(safe) <= _MOST else f"{safe[:_MOST]}-{digest[:8]}"
        if name.lower() in self._taken:  # another kernel, or another PTX of this one
            name = f"{safe[:_MOST]}-{digest[:8]}"
        length = 16
        while name.lower() in self._taken:
            name, length = f"{safe[:_MOST]}-{digest[:length]}", length + 8
        self._taken.add(name.lower())
        return name


def launch_file_name(name: str, number: int) -> str:
    """``NAME.json`` of the first launch (0), ``NAME-2.json`` of the second."""
    return f"{name}.json" if number == 0 else f"{name}-{number + 1}.json"
