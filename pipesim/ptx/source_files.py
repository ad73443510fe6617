"""Where the source lines that a kernel's PTX names can be read, so that reports show their text.

PTX names the files that its compiler read: absolute, or relative to the folder in which it ran. A report has their last
name only, for example ``kernel.cu:49``, which another kernel of the same process may have as well: each has a table of
its own, and a report is written while that of its kernel is the current one.
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from pipesim.bounds import MAX_PTX_BYTES
from pipesim.errors import PtxError
from pipesim.inputs import InputKind, is_quotable, is_quoting, is_source

_SOURCE = InputKind("source file", MAX_PTX_BYTES, PtxError, "its lines are not shown")


@dataclass(frozen=True, eq=False)
class SourceFiles:
    """The files whose lines a kernel names, by the names that reports have and by those that the PTX has.

    Each is read when a line is asked for. ``outside``: those that are there, and may not be quoted.
    """

    paths: Mapping[str, Path]
    outside: Mapping[str, Path] = field(default_factory=dict)
    _read: dict[str, tuple[str, ...]] = field(default_factory=dict, repr=False)

    def lines(self, name: str) -> tuple[str, ...] | None:
        """The lines of a file, () where it cannot be read; None of a file that the kernel does not name."""
        if name not in self.paths:
            return None
        if not is_quoting():
            return ()
        if name not in self._read:
            self._read[name] = tuple(_text(self.paths[name]).splitlines())
        return self._read[name]


_current: ContextVar[SourceFiles | None] = ContextVar("source files", default=None)


def current_sources() -> SourceFiles | None:
    """Those of the kernel that was read last, or in whose table :func:`lines_read_from` is; None before the first."""
    return _current.get()


def last_name(file: str) -> str:
    """The last name of a path that any system's compiler wrote."""
    return re.split(r"[\\/]", file)[-1]


def path_of(name: str) -> str:
    """The path of a file that reports call ``name``: where the current kernel has it, else the name as it is."""
    sources = current_sources()
    found = sources.paths.get(name) if sources is not None and is_quoting() else None
    return str(found) if found is not None else name


@contextmanager
def lines_read_from(sources: SourceFiles | None) -> Iterator[None]:
    """Inside, lines are read in this table, whatever kernel was read last; None: in none."""
    before = _current.set(sources)
    try:
        yield
    finally:
        _current.reset(before)


def enter_sources(ptx: Path, files: Iterable[str], sizes: Mapping[str, int] = MappingProxyType({})) -> SourceFiles:
    """Make the table of a PTX file and of the source ``files`` that it names the current one, and return it.

    A file is looked for under its own name, below the folder of the PTX, and beside it, and entered if it may be
    quoted (:mod:`pipesim.inputs`). A last name that two different
    files have is not entered: the wrong text would be worse than none; nor is one that no longer has the size of it in
    ``sizes``.
    """
    found: dict[str, set[Path]] = {ptx.name: {ptx.absolute()}}
    outside: dict[str, Path] = {}
    for file in files:
        name = last_name(file)
        places = (Path(file), ptx.parent / file, ptx.parent / name)
        right = [each for each in places if is_source(each) and sizes.get(file, 0) in (0, each.stat().st_size)]
        there = next((path for path in right if is_quotable(path, ptx.parent)), None)
        if there is not None:
            for each in {name, file}:
                found.setdefault(each, set()).add(there.absolute())
        elif right and is_source(right[0].resolve()):
            outside[name] = right[0].resolve()
    made = SourceFiles({name: path.pop() for name, path in found.items() if len(path) == 1}, outside)
    _current.set(made)
    return made


def _text(path: Path) -> str:
    try:
        return _SOURCE.read_text(path)
    except PtxError:  # not UTF-8, or deleted meanwhile
        return ""


class HeadingText(NamedTuple):
    """An ``if`` or a loop: from where to where its heading, what follows it and its ``else`` are in their text.

    ``leaves``: what follows ends with ``continue``, ``break`` or ``return``. ``variable`` of a loop, "" if none is
    certain, with the texts of its first value and of what is added to it for each iteration.
    """

    loop: bool
    head: tuple[int, int]
    body: tuple[int, int]
    other: tuple[int, int]
    leaves: bool
    condition: str
    variable: str = ""
    start: str = ""
    step: str = ""

    def outcome(self, past: int) -> bool | None:
        """What the condition was if it led past a place; None where the text does not say."""
        if self.body[0] <= past < self.body[1]:
            return False
        left = self.leaves and not self.loop and past >= self.body[1]
        return True if left or self.other[0] <= past < self.other[1] else None
