"""Where the source lines that a kernel's PTX names can be read, so that reports show their text.

PTX names the files that its compiler read: absolute, or relative to the folder in which it ran. A report has their
last name only, for example ``kernel.cu:49``. Here each is looked for, and entered where Python looks for the lines of a
traceback; it is read when a line is asked for.
"""

from __future__ import annotations

import linecache
from collections.abc import Iterable
from pathlib import Path

from pipesim.bounds import MAX_PTX_BYTES
from pipesim.errors import PtxError
from pipesim.inputs import InputKind, is_source

_SOURCE = InputKind("source file", MAX_PTX_BYTES, PtxError, "its lines are not shown")
_entered: set[str] = set()


def enter_sources(ptx: Path, files: Iterable[str]) -> None:
    """Let reports read the lines of a PTX file and of the source ``files`` that it names.

    A file is looked for under its own name, below the folder of the PTX, and beside it. A name that two different files
    have is not entered: the wrong text would be worse than none. What an earlier kernel entered is forgotten.
    """
    for name in _entered:
        linecache.cache.pop(name, None)
    _entered.clear()
    found: dict[str, set[Path]] = {ptx.name: {ptx}}
    for file in files:
        name = file.rpartition("/")[2]
        there = next((path for path in (Path(file), ptx.parent / file, ptx.parent / name) if is_source(path)), None)
        if there is not None:
            found.setdefault(name, set()).add(there)
    for name, paths in found.items():
        if len(paths) == 1:
            (path,) = paths
            linecache.cache[name] = (lambda path=path: _text(path),)  # read by linecache itself, once it is needed
            _entered.add(name)


def _text(path: Path) -> str:
    try:
        return _SOURCE.read_text(path)
    except PtxError:  # not UTF-8, or gone meanwhile
        return ""
