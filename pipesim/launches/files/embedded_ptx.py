"""The kernels of a file or a folder: of programs, libraries, objects, fat binaries, machine code, compilers' caches."""

import mmap
import re
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from operator import itemgetter
from pathlib import Path

from pipesim.bounds import MAX_IMAGE_BYTES, MAX_KERNEL_FILES, MAX_PTX_BYTES
from pipesim.errors import CodeImageError, CoreDumpError, PipesimError, PtxError, UsageError
from pipesim.inputs import InputKind
from pipesim.launches.files.found_ptx import ENTRIES, ptx_of_file
from pipesim.launches.images.code_image import CONTAINER
from pipesim.launches.images.entry_text import payload_of_entry, ptx_of_entry
from pipesim.launches.images.fat_binary import Architecture, EntryKind, entries_at, entry_bytes
from pipesim.ptx.names.paths import kernel_name
from pipesim.targets import COMPILED

_COMPILED = InputKind("compiled file", MAX_IMAGE_BYTES, PtxError, "give a program, library, object or fat binary")
_MAGIC = struct.pack("<I", CONTAINER)
_ARCHIVE, _ELF, _CUDA = b"!<arch>\n", b"\x7fELF", struct.pack("<H", 190)  #: the last: e_machine, at byte 18
_ALIGNED = 8  #: bytes of which a container's place is a multiple: nvcc aligns its section so; ``ar`` objects to 2
_LISTED = 12  #: kernels that an error names
_TEXT = re.compile(rb"\.version \d+\.\d+\s+\.target sm_")
_TARGET = re.compile(r"^\.target\s+(\w+)", re.MULTILINE)


@dataclass(frozen=True)
class FoundKernel:
    """A kernel. ``text``: its PTX, "" where there is machine code alone. ``file``: what it is in, of which ``origin``
    says the part: ``libgemm.so, compute_90a``. ``problem``: of a ``file`` below a folder that cannot be read, why.
    """

    name: str
    text: str
    origin: str
    file: Path
    arch: str = ""
    problem: str = ""

    @property
    def has_mbarriers(self) -> bool:
        """Whether mbarriers are in its PTX: in the kernel, or, where it calls functions, anywhere."""
        found = re.search(rf"\.entry\s+{re.escape(self.name)}\b", self.text)
        mine = self.text[found.start() : self.text.find(".entry", found.end())] if found else ""
        return "mbarrier." in (self.text if "call" in mine else mine)


def found_kernels(path: Path) -> list[FoundKernel]:
    """The kernels of a file, of several PTX of one that of the latest architecture; of a folder those of its files.

    PtxError where a file cannot be read, or has none; UsageError for a folder without any.
    """
    return _of_folder(path) if path.is_dir() else _of_file(path)


def _of_folder(path: Path) -> list[FoundKernel]:
    try:
        every = path.rglob("*") if any(path.iterdir()) else ()
        paths = sorted(each for each in every if each.suffix in (".ptx", *COMPILED))
    except OSError as error:
        raise UsageError(f"the folder {path} cannot be read", cause=error.strerror or str(error)) from error
    if len(paths) > MAX_KERNEL_FILES:
        raise UsageError(f"{path} has {len(paths):,} files; at most {MAX_KERNEL_FILES:,} are read")
    found: list[FoundKernel] = []
    beside = {each.with_suffix(".cubin") for each in paths if each.suffix == ".ptx"}  #: of the same kernels
    for each in (path for path in paths if path not in beside):
        origin = str(each.relative_to(path))
        try:
            found += [replace(one, origin=origin) for one in _of_file(each, needed=False)]
        except PipesimError as error:
            found.append(FoundKernel("", "", origin, each, problem=f"not read: {error.fact}: {error.cause}"))
    if not found:
        fact = f"{path} has no kernel: no PTX file, and none in what is compiled"
        raise UsageError(fact, correction="name another, or each source by itself: KERNEL.cu, KERNEL.py:FUNCTION")
    return found


def dumped_ptx(folder: Path) -> dict[str, tuple[tuple[str, str], ...]]:
    """The kernels of a compiler's dump by name, each with the files that have it, as (name, text). As above."""
    found: dict[str, tuple[tuple[str, str], ...]] = {}
    for each in _of_folder(folder):
        found[each.name] = (*found.get(each.name, ()), *([(each.file.name, each.text)] if each.text else []))
    return found


def dumped_so_far(folder: Path | None) -> dict[str, tuple[tuple[str, str], ...]]:
    """The same of a folder that a program which still runs writes, or None: what there is now."""
    with suppress(UsageError):
        return dumped_ptx(folder) if folder else {}
    return {}


def _of_file(path: Path, *, needed: bool = True) -> list[FoundKernel]:
    if path.suffix == ".ptx":
        return _kernels_of_text(ptx_of_file(path), path, path.name)
    with _COMPILED.open(path) as file:
        if not path.stat().st_size:
            raise PtxError(f"{path} is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _of_image(data, path, needed=needed)


def _kernels_of_text(text: str, file: Path, origin: str) -> list[FoundKernel]:
    target = _TARGET.search(text)
    return [
        FoundKernel(name, text, origin, file, target[1] if target else "")
        for name in dict.fromkeys(ENTRIES.findall(text))
    ]


def _of_image(data: mmap.mmap, path: Path, *, needed: bool) -> list[FoundKernel]:
    """Its kernels; PtxError where there is none, if one is ``needed``."""
    if data[:4] == _ELF and data[18:20] == _CUDA:
        return _of_machine_code(data[:], path, path.name, "")
    found: dict[str, tuple[Architecture, FoundKernel]] = {}
    alone: dict[str, list[FoundKernel]] = {}
    damaged = 0

    def peek(address: int, nbytes: int) -> bytes:
        return data[address : address + nbytes]

    for at in _containers(data):
        try:
            for entry in entries_at(at, peek):
                held = entry_bytes(entry, peek)
                if entry.kind == EntryKind.ELF:
                    arch, code = f"sm_{entry.architecture}", payload_of_entry(held, MAX_IMAGE_BYTES, "machine code")
                    for each in _of_machine_code(code, path, f"{path.name}, {arch}", arch):
                        alone.setdefault(each.name, []).append(each)
                elif entry.kind == EntryKind.PTX:
                    origin = f"{path.name}, compute_{entry.architecture}"
                    for each in _kernels_of_text(ptx_of_entry(held), path, origin):
                        mine = entry.architecture, each
                        found[each.name] = max(found.get(each.name, mine), mine, key=itemgetter(0))
        except CodeImageError:  # other bytes may look like a container's start
            damaged += 1
    for text in _texts(data):
        for each in _kernels_of_text(text, path, f"{path.name}, text"):
            found.setdefault(each.name, (Architecture(0), each))
    if needed and not found and not alone:
        raise _no_ptx(path, damaged)
    codes = (
        replace(same[0], arch=", ".join(sorted({c.arch for c in same}))) for n, same in alone.items() if n not in found
    )
    return [*(each for _, each in found.values()), *codes]


def _texts(data: mmap.mmap) -> Iterator[str]:
    """PTX as text, as Mojo's programs have it: from one zero byte to the next."""
    end = 0
    for at in (each.start() for each in _TEXT.finditer(data)):
        if at >= end:
            start, end = data.rfind(b"\0", 0, at) + 1, max(data.find(b"\0", at), 0) or len(data)
            yield data[start : min(end, start + MAX_PTX_BYTES)].decode(errors="replace")


def _of_machine_code(code: bytes, path: Path, origin: str, arch: str) -> list[FoundKernel]:
    """The kernels of machine code, with the PTX that ``-lineinfo`` leaves in it, if it is there."""
    from pipesim.answers.autopsy.coded_dump import line_of  # with what most files do without
    from pipesim.coredump.cubin import Cubin

    try:
        cubin = Cubin(code)
    except CoreDumpError:
        return [FoundKernel("", "", origin, path, arch)]
    kept = {each.name: each for each in _kernels_of_text(cubin.ptx_with_lines(line_of), path, origin)}
    return [kept.get(name) or FoundKernel(name, "", origin, path, arch) for name in cubin.kernels]


def chosen_kernel(path: Path, entry: str) -> FoundKernel:
    """The kernel ``entry`` that ``path`` has PTX of, or its only one. PtxError names them if that is not clear."""
    return chosen(path, found_kernels(path), entry)


def is_named(name: str, entry: str) -> bool:
    """Whether ``--entry`` means a kernel: its name, that in C++, or a pattern of its name."""
    return entry in (name, kernel_name(name, arguments=True)) or fnmatchcase(name, entry)


def chosen(path: Path, kernels: Sequence[FoundKernel], entry: str) -> FoundKernel:
    """The same of the kernels of a path; of those of one name the last."""
    found = {each.name: each for each in kernels if each.text}
    named = [name for name in found if is_named(name, entry or "*")]
    if len(named) == 1:
        return found[named[0]]
    if not found:
        archs = ", ".join(sorted({each.arch or "a GPU" for each in kernels}))
        raise _without_ptx(path, f"it has machine code only, for {archs}")
    names = sorted(found)
    listed = ", ".join(names[:_LISTED]) + f" and {len(names) - _LISTED:,} more" * (len(names) > _LISTED)
    many = "1 kernel" if len(names) == 1 else f"{len(names):,} kernels"
    raise PtxError(
        f"{path} has PTX of {many}"
        + f", and {f'{len(named)} are' if named else 'none is'} called {entry}" * bool(entry),
        cause=f"they are {listed}",
        correction="name one of them with --entry NAME",
    )


def _containers(data: mmap.mmap) -> Iterator[int]:
    """Where a container may begin."""
    at = data.find(_MAGIC)
    while at >= 0:
        if at % (2 if data[: len(_ARCHIVE)] == _ARCHIVE else _ALIGNED) == 0:
            yield at
        at = data.find(_MAGIC, at + len(_MAGIC))


def _no_ptx(path: Path, damaged: int) -> PtxError:
    if damaged:
        has = "its fat binary is damaged, or cut" if damaged == 1 else f"{damaged} fat binaries are damaged, or cut"
    else:
        has = "there is no fat binary in it, and it is not machine code of a GPU"
    return _without_ptx(path, has)


def _without_ptx(path: Path, has: str) -> PtxError:
    option = "-gencode arch=compute_90a,code=[sm_90a,compute_90a]"
    return PtxError(f"{path} has no PTX", cause=has, correction=f"compile it with nvcc {option} -lineinfo")
