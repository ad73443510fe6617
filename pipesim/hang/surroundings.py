"""What a program that may be dumped needs around it, and may not have in a container: asked before it starts.

A driver that cannot make its pipe or write its file ends the program without a word, or does not start at all.
"""

import ctypes
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from pipesim.errors import UsageError
from pipesim.process.system import file_limit

_DEBUGGER = "libcudadebugger.so.1"  #: seen with driver 580: "unspecified launch failure" without it
LEAST_BYTES = 1 << 30  #: that a disk must have free: with the machine code of NCCL a dump has 120 MB


def require_dump_folder(folder: Path) -> None:
    """Make the folder, and be sure that a dump can be written there; UsageError with what is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
        free = shutil.disk_usage(folder).free
    except OSError as error:
        raise UsageError(
            "no core dump can be written here",
            place=str(folder),
            cause=error.strerror or str(error),
            correction="name a folder on another disk with --keep DIR",
        ) from error
    if free < LEAST_BYTES:
        raise UsageError(
            f"the disk has {free >> 20:,} MB free, too few for a core dump",
            place=str(folder),
            correction=f"free {LEAST_BYTES >> 20:,} MB, or name a folder on another disk with --keep DIR",
        )
    for fact, correction in missing_of_system():
        raise UsageError(fact, correction=correction)


def missing_of_system() -> Iterator[tuple[str, str]]:
    """What this system or container lacks, and what corrects it."""
    most = file_limit()
    if most is not None and most < LEAST_BYTES:
        fact = f"a file may have {most:,} bytes at most here (ulimit -f), too few for a core dump"
        yield fact, "ulimit -f unlimited; of a container: docker run --ulimit fsize=-1"
    try:
        own = str(Path("/proc/self").readlink())
    except OSError:
        own = ""
    if own != str(os.getpid()):
        fact = "/proc is that of other processes, or not there: the program's processes cannot be found"
        yield fact, "mount it where this runs, as docker does: unshare --mount-proc"


def missing_of_driver(load: Callable[[str], object] = ctypes.CDLL) -> Iterator[tuple[str, str]]:
    """What a driver that is there lacks, and what corrects it."""
    try:
        load(_DEBUGGER)
    except OSError:
        fact = f"{_DEBUGGER} is not here, by which the driver writes a core dump: the program would end without one"
        yield (
            fact,
            "install it with the driver; of a container: docker run -e NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        )


def pipe_folder(keep: Path) -> tempfile.TemporaryDirectory[str]:
    """A folder for pipes: among the temporary files or, where there can be none, in that of the dumps.

    UsageError where neither can have a pipe, as some file systems of networks and of other hosts cannot.
    """
    for parent in (None, keep):
        with suppress(OSError):
            made = tempfile.TemporaryDirectory(prefix="pipesim-hang-", dir=parent, ignore_cleanup_errors=True)
            try:
                os.mkfifo(Path(made.name) / "probe")
            except OSError:
                made.cleanup()
            else:
                (Path(made.name) / "probe").unlink()
                return made
    raise UsageError(
        "no pipe can be made, through which a dump is asked for",
        place=f"{os.environ.get('TMPDIR', '/tmp')}, {keep}",  # noqa: S108  # named to a person
        cause="the file system has none, or is read-only",
        correction="name a folder on another disk in TMPDIR; of a container: docker run --tmpfs /tmp",
    )
