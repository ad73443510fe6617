"""Files that appear whole or not at all, whatever pipesim writes: traces, programs, exports, pictures, caches.

Each is first a temporary file beside it, with a name that cannot be guessed. Also the folder of what is kept.
"""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from pipesim.errors import OutputExistsError, UsageError
from pipesim.process.watch import remove, temporary_files

_FLAGS = os.O_WRONLY | os.O_CREAT | os.O_EXCL
for _flag in ("O_NOFOLLOW", "O_CLOEXEC", "O_BINARY", "O_NOINHERIT"):  # the last two of Windows
    _FLAGS |= getattr(os, _flag, 0)
_SYSTEM = re.compile(r"/dev/(fd/)?[^/]*|/(proc|sys)/.*")  #: devices, and links to what a process has open


def write_whole(path: Path, data: bytes | Iterable[bytes], *, force: bool = False, private: bool = False) -> None:
    """Write ``data`` to ``path``; missing folders are made, and nothing shows under the name until all of it is there.

    ``data`` may come in parts, of which only one is in memory. ``private``: only this user may read it. Raises
    OutputExistsError if the file is there and ``force`` is not given, UsageError if the disk refuses.
    """
    require_free(path, force=force)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary_beside(path, 0o600 if private else 0o666) as (temporary, file):
            file.writelines((data,) if isinstance(data, bytes) else data)
            file.flush()
            os.fsync(file.fileno())
            file.close()  # Windows moves no file that is open
            _show(temporary, path, force=force)
    except OSError as error:
        raise UsageError(f"{path} cannot be written", cause=error.strerror or str(error)) from error


def require_free(path: Path, *, force: bool = False) -> None:
    """OutputExistsError if a file is there and ``force`` is not given, UsageError if it is not an ordinary file.

    A link to nothing also counts: it would be replaced.
    """
    if path.exists() and not path.is_file():
        raise UsageError(
            f"{path} is {'a folder' if path.is_dir() else 'not an ordinary file'}", correction="name a file"
        )
    # Links are not followed here: /dev/stdout may lead to a file, and would be replaced by another.
    if _SYSTEM.fullmatch(os.path.abspath(path)):  # noqa: PTH100
        raise UsageError(f"{path} is not an ordinary file", correction="name a file in another folder")
    if os.path.lexists(path) and not force:
        raise OutputExistsError(f"{path} exists already", correction="choose another name, or add --force to overwrite")


def _show(temporary: Path, path: Path, *, force: bool) -> None:
    if not force:
        try:
            path.hardlink_to(temporary)  # unlike a rename, a link never replaces what was written meanwhile
        except FileExistsError:
            require_free(path)
        except OSError:
            pass  # a file system without links
        else:
            return
    temporary.replace(path)


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
