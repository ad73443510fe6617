"""Which source files a report may quote: regular files of code in the folders that belong to what was asked.

A PTX file, a flat program and a core dump are data, and may name any file of the machine; a report of them may be
printed where others read it. Their sources are read below their own folder, the working folder and the folders that a
person names with ``--source-root``, after links are resolved. All else is named, not quoted.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from pipesim.inputs import is_source

_roots: ContextVar[tuple[Path, ...] | None] = ContextVar("source roots", default=())
_protocols: set[Path] = set()  #: folders of Python files that were run


@contextmanager
def source_roots(folders: Iterable[Path] | None) -> Iterator[None]:
    """Inside, sources are also read below these folders; None: nothing is quoted, wherever it lies."""
    before = _roots.set(None if folders is None else tuple(folders))
    try:
        yield
    finally:
        _roots.reset(before)


def quote_protocols_of(file: Path) -> None:
    """A Python file is run, which is code that a person named: lines of its folder may be quoted."""
    _protocols.add(file.resolve().parent)


def python_folders() -> tuple[Path, ...]:
    """The folders of what Python runs here: of protocols' files, and where modules are imported from."""
    return (*_protocols, *map(Path, filter(None, sys.path)))


def is_quoting() -> bool:
    """Whether source lines may be shown at all."""
    return _roots.get() is not None


def is_quotable(path: Path, *folders: Path) -> bool:
    """True for a file of code below the working folder, a source root, or one of ``folders``, links resolved."""
    roots = _roots.get()
    if roots is None or not is_source(path):
        return False
    real = path.resolve()
    places = (Path.cwd(), *roots, *folders)
    return is_source(real) and any(real.is_relative_to(place.resolve()) for place in places)
