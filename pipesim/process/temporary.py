"""Temporary files beside the file that they become, with names that cannot be guessed; the folder of what is kept."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pipesim.process.watch import remove, temporary_files

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL
for _flag in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"):  # the last two of Windows
    _FLAGS |= getattr(os, _flag, 0)


@contextmanager
def temporary_beside(path: Path, mode: int = 0o666) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file in the folder of ``path``, open for writing, and its name; removed at the end if it is still there.

    ``mode``: who may read and write it, less what the umask takes away. OSError if it cannot be made. It is also
    removed if a signal is raised at any moment: its name is noted before it exists, and removed a second time if the
    first is interrupted.
    """
    name = path.with_name(f".{path.name[:48]}.{os.urandom(8).hex()}.tmp")
    temporary_files.add(name)
    try:
        try:
            with os.fdopen(_create(name, mode), "wb") as file:
                yield name, file
        finally:
            remove(name)
    finally:
        remove(name)


def cache_folder(name: str, environment: Mapping[str, str] = os.environ) -> Path:
    """What is kept between commands: ``$XDG_CACHE_HOME/pipesim/NAME``, by default below ``~/.cache``."""
    base = Path(environment.get("XDG_CACHE_HOME", ""))
    return (base if base.is_absolute() else Path.home() / ".cache") / "pipesim" / name


def _create(name: Path, mode: int) -> int:
    try:
        return os.open(name, _FLAGS, mode)
    except FileExistsError:
        temporary_files.discard(name)  # another's: it is neither written to nor removed
        raise
