"""What systems differ in: signals, timers, limits, locks, processes. Linux has all of it, Windows and a browser less.

The one module that asks for what a system may not have. Where something is missing, less is done, and
:func:`less_than_linux` says what in a sentence each.
"""

import os
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib import import_module
from io import RawIOBase
from pathlib import Path
from typing import IO, Any


def _optional(name: str) -> Any:
    """A module of the standard library that not every system has; None where it is not there."""
    try:
        return import_module(name)
    except ImportError:
        return None


_resource, _fcntl, _msvcrt = _optional("resource"), _optional("fcntl"), _optional("msvcrt")
_USUAL_BYTES = 8 << 30  #: of memory, unless a person sets another limit or the machine has less
_CGROUP = Path("/sys/fs/cgroup/memory.max")  #: of the container that this process is in (cgroup v2)
_LOCKED_AT = 1 << 40  #: a byte that no file has: Windows lets no other process read those that are locked


def _signals(*names: str) -> tuple[signal.Signals, ...]:
    return tuple(signal.Signals[name] for name in names if hasattr(signal, name))


HAS_THREADS = sys.platform not in ("emscripten", "wasi")  #: a browser runs one, and sends it no signals
HAS_FORK = hasattr(os, "fork") and HAS_THREADS
ENDING = _signals("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK")  #: those by which a person ends a process
#: That of a limit. Where there is no SIGALRM, one that only a process sends to itself, and that ends it in any case.
ALARM = _signals("SIGALRM", "SIGABRT")[0]
KILL = _signals("SIGKILL", "SIGTERM")[0]  #: after which a process does nothing; Windows ends it by either
HELD = (*ENDING, ALARM)  #: those that wait while something is done whole
NO_MEMORY_LIMIT = "this system does not say how much memory a process has: --max-memory is not watched"


def less_than_linux() -> Iterator[str]:
    """What pipesim does on Linux and not here, a sentence each."""
    if not resident_bytes():
        yield NO_MEMORY_LIMIT
    if not HAS_FORK:
        yield "this system has no fork: a protocol's file takes a Python of its own, which starts in half a second"
    if sys.platform != "linux":
        yield "programs that hang are dumped, and kernels recorded, on Linux alone"


def resident_bytes(process: int | str = "self") -> int:
    """The memory that a process has now; 0 where it has ended, or the system does not say."""
    return _statm_bytes(process, 1)


def data_bytes() -> int:
    """What the kernel counts against RLIMIT_DATA for this process, touched or not; 0 where the system does not say."""
    return _statm_bytes("self", 5)


def _statm_bytes(process: int | str, field: int) -> int:
    """One field of /proc/PID/statm (proc(5)), in bytes."""
    if not hasattr(os, "sysconf"):
        return 0
    try:
        pages = Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[field]
    except (OSError, IndexError):
        return 0
    return int(pages) * os.sysconf("SC_PAGE_SIZE")


def usual_bytes() -> int:
    """The usual memory limit of a process: 8 GiB, or three quarters of what the machine or the container has."""
    have = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else []
    with suppress(OSError, ValueError):  # not in a container, or one without a limit ("max")
        have.append(int(_CGROUP.read_text(encoding="ascii")))
    return min((_USUAL_BYTES, *(each * 3 // 4 for each in have)))


class Arrivals:
    """The numbers of the signals that arrive, for a thread that waits for them: the interpreter writes each."""

    def __init__(self) -> None:
        self._reads, self._writes = _socket_pair() if os.name == "nt" else _pipe()
        self._before = signal.set_wakeup_fd(self._writes.fileno(), warn_on_full_buffer=False)

    def wait(self, seconds: float) -> bytes:
        """Those that have arrived; empty after that number of seconds without one."""
        from select import select

        return self._reads.read(4096) or b"" if select([self._reads], [], [], seconds)[0] else b""

    def stop(self, number: int) -> None:
        """None of them any more; the thread gets ``number`` as the last."""
        signal.set_wakeup_fd(self._before)
        self._writes.write(bytes([number]))

    def close(self) -> None:
        """After the thread has ended."""
        self._reads.close()
        self._writes.close()


def _pipe() -> tuple[RawIOBase, RawIOBase]:
    reads, writes = os.pipe()
    os.set_blocking(writes, False)
    return os.fdopen(reads, "rb", buffering=0), os.fdopen(writes, "wb", buffering=0)


def _socket_pair() -> tuple[RawIOBase, RawIOBase]:
    """Of Windows, where nothing else can be waited for."""
    import socket

    reads, writes = socket.socketpair()
    writes.setblocking(False)
    with reads, writes:  # closed with what is made of them
        return reads.makefile("rb", buffering=0), writes.makefile("wb", buffering=0)


def set_timer(seconds: float) -> bool:
    """Have the system send :data:`ALARM` after that number of seconds, 0: never; False where it has no timer."""
    if not hasattr(signal, "setitimer"):
        return False
    signal.setitimer(signal.ITIMER_REAL, seconds)
    return True


def interrupt_main(number: int) -> None:
    """Let the main thread handle a signal now, if the system can also where it waits in a call of the system."""
    ident = threading.main_thread().ident
    if ident is not None and hasattr(signal, "pthread_kill"):
        signal.pthread_kill(ident, number)
    else:
        import _thread

        _thread.interrupt_main(signal.Signals(number))


def hold_signals(numbers: Iterable[int]) -> set[int]:
    """Signals of these numbers wait from now on; those that waited before, for :func:`set_held`."""
    if not hasattr(signal, "pthread_sigmask"):
        return set()
    return set(signal.pthread_sigmask(signal.SIG_BLOCK, numbers))


def set_held(numbers: Iterable[int]) -> None:
    """Signals of these numbers wait, and no others."""
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_SETMASK, numbers)


def lower_data_limit(most: int) -> tuple[int, int] | None:
    """Have the kernel refuse memory above ``most`` (setrlimit(2), RLIMIT_DATA); the limit before, None if unchanged."""
    if _resource is None:
        return None
    soft, hard = _resource.getrlimit(_resource.RLIMIT_DATA)
    if any(limit != _resource.RLIM_INFINITY and limit <= most for limit in (soft, hard)):
        return None
    _resource.setrlimit(_resource.RLIMIT_DATA, (most, hard))
    return soft, hard


def set_data_limit(limits: tuple[int, int]) -> None:
    """Set what :func:`lower_data_limit` has given back."""
    _resource.setrlimit(_resource.RLIMIT_DATA, limits)


def file_limit() -> int | None:
    """The bytes that a file may have here (ulimit -f); None if that is not limited."""
    most: int = _resource.getrlimit(_resource.RLIMIT_FSIZE)[0] if _resource else 0
    return None if _resource is None or most == _resource.RLIM_INFINITY else most


def lock_file(file: IO[Any] | Any) -> None:
    """Lock an open file for this process, until it is closed. OSError if another has it."""
    if _fcntl is not None:
        _fcntl.flock(file, _fcntl.LOCK_EX | _fcntl.LOCK_NB)
    elif _msvcrt is not None:
        file.seek(_LOCKED_AT)
        _msvcrt.locking(file.fileno(), _msvcrt.LK_NBLCK, 1)
        file.seek(0)
