"""A process that reads files of strangers, confined by the kernel: Landlock for files, seccomp for the rest.

It then reads below the given folders and where Python's modules and libraries lie, writes below others, starts no
process, and has no network. landlock(7), seccomp(2); each is left out, and said, where the kernel does not have it.
"""

import ctypes
import errno
import os
import platform
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from pipesim.inputs import confined

_CREATE, _ADD_RULE, _RESTRICT = 444, 445, 446  #: system calls of Landlock, the same on all processors
_VERSION = 1  #: flag of the first: which version there is
_BENEATH = 1  #: the type of a rule
_READ_FILE, _READ_DIR = 1 << 2, 1 << 3
#: What a process that writes a file whole needs: write, remove, make a regular file, hard links, truncate.
_WRITE = 1 << 1 | 1 << 5 | 1 << 8 | 1 << 13 | 1 << 14
_FILE_RIGHTS = (0, 13, 14, 15, 15, 16)  #: how many there are, by version
_FOR_FILES = 1 << 1 | _READ_FILE | 1 << 14  #: what a rule about a file may have
_NET_SINCE, _SCOPES_SINCE = 4, 6
_NO_NEW_PRIVILEGES, _SET_SECCOMP, _FILTER = 38, 22, 2  #: prctl(2)
_LOADERS = ("/usr/lib", "/lib", "/lib64", "/usr/local/lib", "/etc/ld.so.cache", "/etc/localtime", "/usr/share/zoneinfo")
_DEVICES = ("/dev/null", "/dev/urandom", "/dev/zero")

#: Of seccomp: the audit number of a processor, then its calls: clone, clone3, and those that are refused (sockets,
#: programs, processes, other processes' memory, io_uring, handles of files, mounts and name spaces).
_CALLS = {
    "x86_64": (0xC000003E, 56, 435, (41, 59, 322, 57, 58, 101, 310, 311, 425, 304, 438, 165, 272, 308)),
    "aarch64": (0xC00000B7, 220, 435, (198, 221, 281, 117, 270, 271, 425, 265, 438, 40, 97, 268)),
}
_CLONE_THREAD = 0x10000
_X32 = 0x40000000  #: calls of another table of x86-64
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000  #: the second with an error number
_LOAD, _EQUAL, _AT_LEAST, _HAS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  #: of classic BPF
_NUMBER_AT, _ARCH_AT, _FIRST_AT = 0, 4, 16  #: in seccomp_data


def confine(reads: Iterable[Path], writes: Iterable[Path]) -> tuple[str, ...]:
    """Confine this process for the rest of its life; what the kernel cannot do of it, in words.

    ``reads``, ``writes``: files, and folders with all that is below them. To be called before there are threads.
    """
    confined.append(True)
    if sys.platform != "linux":
        return ("this system has neither Landlock nor seccomp: nothing but pipesim's own rules confines it",)
    calls = ctypes.CDLL(None, use_errno=True)
    calls.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    lacks = []
    if not _landlock(calls, reads, writes):
        lacks.append("this kernel has no Landlock: reads and writes of other files are not prevented by it")
    if not _seccomp(calls):
        lacks.append("this kernel or processor has no seccomp filter: processes and network are not prevented by it")
    return tuple(lacks)


def _landlock(calls: ctypes.CDLL, reads: Iterable[Path], writes: Iterable[Path]) -> bool:
    version = calls.syscall(_CREATE, None, ctypes.c_size_t(0), _VERSION)
    if version < 1:
        return False
    handled = (1 << _FILE_RIGHTS[min(version, len(_FILE_RIGHTS) - 1)]) - 1
    attributes = struct.pack("=QQQ", handled, 3 if version >= _NET_SINCE else 0, 3 if version >= _SCOPES_SINCE else 0)
    size = 24 if version >= _SCOPES_SINCE else 16 if version >= _NET_SINCE else 8
    rules = calls.syscall(_CREATE, attributes, ctypes.c_size_t(size), 0)
    if rules < 0:
        return False
    for path in (*reads, *_python_files()):
        _allow(calls, rules, path, handled & (_READ_FILE | _READ_DIR))
    for path in (*writes, Path(os.devnull)):  # the latter for output of which the reader has gone
        _allow(calls, rules, path, handled & (_READ_FILE | _READ_DIR | _WRITE))
    done: int = calls.syscall(_RESTRICT, rules, 0)
    os.close(rules)
    return done == 0


def _allow(calls: ctypes.CDLL, rules: int, path: Path, access: int) -> None:
    """A rule for what is there; of what is not there, none is needed."""
    try:
        handle = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    access = access if path.is_dir() else access & _FOR_FILES
    calls.syscall(_ADD_RULE, rules, _BENEATH, struct.pack("=Qi", access, handle), 0)
    os.close(handle)


def _python_files() -> Iterator[Path]:
    """Where this Python and its libraries are, and what it asks the kernel about itself."""
    here = Path(__file__).resolve().parents[2]
    names = (sys.prefix, sys.base_prefix, *sys.path, *_LOADERS, *_DEVICES, f"/proc/{os.getpid()}")
    yield from (Path(name) for name in names if name and Path(name) != Path.cwd())
    yield from (here / "pipesim", here / "hwkernels", here / "traces")


def _seccomp(calls: ctypes.CDLL) -> bool:
    known = _CALLS.get(platform.machine())
    if known is None:
        return False
    arch, clone, clone3, refused = known
    code = [(_LOAD, 0, 0, _ARCH_AT), (_EQUAL, 1, 0, arch), (_RETURN, 0, 0, _REFUSE | errno.EPERM)]
    code += [(_LOAD, 0, 0, _NUMBER_AT), (_AT_LEAST, 0, 1, _X32), (_RETURN, 0, 0, _REFUSE | errno.EPERM)]
    for number in refused:
        code += [(_EQUAL, 0, 1, number), (_RETURN, 0, 0, _REFUSE | errno.EPERM)]
    code += [(_EQUAL, 0, 1, clone3), (_RETURN, 0, 0, _REFUSE | errno.ENOSYS)]  # libraries then use clone
    code += [(_EQUAL, 0, 3, clone), (_LOAD, 0, 0, _FIRST_AT), (_HAS, 1, 0, _CLONE_THREAD)]
    code += [(_RETURN, 0, 0, _REFUSE | errno.EPERM), (_RETURN, 0, 0, _ALLOW)]
    lines = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *line) for line in code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code), ctypes.addressof(lines)))
    done: int = calls.prctl(_SET_SECCOMP, _FILTER, program, 0, 0)
    return done == 0
