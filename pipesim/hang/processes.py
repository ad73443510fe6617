"""The processes of a program, as Linux shows them in /proc; it shows less of another user's.

A process in a container has a number there, and another one outside: what the driver and the environment of such a
process say is about the first.
"""

import os
import signal
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_PARENT, _STATE = 1, 0  #: of the fields of /proc/PID/stat that follow the name
_STORE = "pt_tcpstore_uv"  #: seen with PyTorch 2.11
_MOVED = ("rchar", "wchar")  #: bytes that were read and written, also by calls that reached no disk


def tree_of(process: int) -> tuple[int, ...]:
    """The process and those that it started, directly or not, parents first. Those that have ended are left out."""
    children: dict[int, list[int]] = {}
    for entry in _PROC.iterdir():
        if entry.name.isdigit() and (fields := _fields(int(entry.name))):
            children.setdefault(int(fields[_PARENT]), []).append(int(entry.name))
    found = [process]
    for each in found:
        found += sorted(children.get(each, ()))
    return tuple(each for each in found if is_alive(each))


def is_alive(process: int) -> bool:
    """False for one that has ended, also where its parent has not asked yet how."""
    fields = _fields(process)
    return bool(fields) and fields[_STATE] not in "ZX"


def environment_of(process: int) -> dict[str, str]:
    """What the process was started with; empty if it has ended, or is another user's."""
    return dict(each.split("=", 1) for each in _read(str(process), "environ").split("\0") if "=" in each)


def sees_other_files(process: int) -> bool:
    """Whether it has another file system than this process, as in a container; False where Linux does not say."""
    try:
        return (_PROC / str(process) / "ns/mnt").readlink() != (_PROC / "self/ns/mnt").readlink()
    except OSError:
        return False


def inner_number(process: int) -> int:
    """The number that a process has where it runs: in a container it is another one than outside."""
    return int((_status(process).get("NSpid") or str(process)).split()[-1])


def watcher_of(process: int, number: str) -> int | None:
    """The process above one that has this ``number`` where it runs, and takes SIGQUIT; None if there is none."""
    while number and (fields := _fields(process)):
        process = int(fields[_PARENT])
        takes = int(_status(process).get("SigCgt") or "0", 16) >> signal.SIGQUIT - 1 & 1
        if takes and str(inner_number(process)) == number:
            return process
    return None


def moved(processes: Iterable[int]) -> dict[str, int]:
    """The bytes that each thread has read and written since it began; 0 where Linux does not say.

    Without the thread that keeps PyTorch's store: the ranks ask it again and again, also when they hang.
    """
    threads = (task.relative_to(_PROC) for each in processes for task in (_PROC / str(each)).glob("task/*"))
    return {str(each): _moved_bytes(each) for each in threads if _read(each, "comm").strip() != _STORE}


def send(processes: Iterable[int], number: signal.Signals) -> None:
    """Send a signal to each that is still there and may be sent one."""
    for each in processes:
        with suppress(ProcessLookupError, PermissionError):
            os.kill(each, number)


def _status(process: int) -> dict[str, str]:
    lines = _read(str(process), "status").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _fields(process: int) -> list[str]:
    return _read(str(process), "stat").rpartition(")")[2].split()


def _moved_bytes(thread: Path) -> int:
    lines = _read(thread, "io").splitlines()
    return sum(int(value) for name, _, value in (line.partition(": ") for line in lines) if name in _MOVED)


def _read(which: str | Path, name: str) -> str:
    """A file of a process or a thread in /proc; empty if it has ended, or is another user's."""
    try:
        return (_PROC / which / name).read_bytes().decode(errors="surrogateescape")
    except OSError:
        return ""
