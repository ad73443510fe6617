"""The kernels that a file or a folder has PTX of: a program, library, object or fat binary, a compiler's cache."""

from __future__ import annotations

import mmap
import struct
from collections.abc import Iterator
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from pipesim.bounds import MAX_IMAGE_BYTES
from pipesim.errors import CodeImageError, PtxError
from pipesim.inputs import InputKind
from pipesim.launches.files.found_ptx import ENTRIES, dumped_ptx
from pipesim.launches.images.code_image import CONTAINER, Peek
from pipesim.launches.images.entry_text import ptx_of_entry
from pipesim.launches.images.fat_binary import Architecture, EntryKind, entries_at, entry_bytes

_COMPILED = InputKind("compiled file", MAX_IMAGE_BYTES, PtxError, "give a program, library, object or fat binary")
_MAGIC = struct.pack("<I", CONTAINER)
_ALIGNED = 8  #: bytes of which a container's place is a multiple: nvcc aligns its section so
_LISTED = 12  #: kernels that an error names


class EmbeddedKernel(NamedTuple):
    """A kernel with the text of its PTX, and where that is: ``libgemm.so, compute_90a`` or a file of the folder."""

    name: str
    text: str
    origin: str


def kernels_in(path: Path) -> dict[str, EmbeddedKernel]:
    """The kernels that ``path`` has PTX of, by name; of several PTX of one that of the latest architecture.

    Of a folder these are the kernels of its ``.ptx`` files, in the folders inside as well. PtxError where there is none
    or the file cannot be read; UsageError for a folder without PTX.
    """
    if path.is_dir():
        return {name: EmbeddedKernel(name, *texts[-1][::-1]) for name, texts in dumped_ptx(path).items()}
    with _COMPILED.open(path) as file:
        if not path.stat().st_size:
            raise PtxError(f"{path} is empty")
        with mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            return _kernels_of(data, path)


def _kernels_of(data: mmap.mmap, path: Path) -> dict[str, EmbeddedKernel]:
    found: dict[str, tuple[Architecture, str]] = {}
    machine_code: set[Architecture] = set()
    damaged = 0
    for at in _containers(data):
        try:
            for entry in entries_at(at, _peek(data)):
                if entry.kind == EntryKind.ELF:
                    machine_code.add(entry.architecture)
                elif entry.kind == EntryKind.PTX:
                    mine = entry.architecture, ptx_of_entry(entry_bytes(entry, _peek(data)))
                    for name in dict.fromkeys(ENTRIES.findall(mine[1])):
                        found[name] = max(found.get(name, mine), mine, key=itemgetter(0))
        except CodeImageError:  # other bytes may look like a container's start
            damaged += 1
    if not found:
        raise _no_ptx(path, sorted(machine_code), damaged)
    return {name: EmbeddedKernel(name, text, f"{path.name}, compute_{what}") for name, (what, text) in found.items()}


def chosen_kernel(path: Path, entry: str) -> EmbeddedKernel:
    """The kernel ``entry`` that ``path`` has PTX of, or its only one. PtxError names them if that is not clear."""
    found = kernels_in(path)
    if entry in found:
        return found[entry]
    if not entry and len(found) == 1:
        return next(iter(found.values()))
    names = sorted(found)
    listed = ", ".join(names[:_LISTED]) + f" and {len(names) - _LISTED:,} more" * (len(names) > _LISTED)
    kernels = "1 kernel" if len(names) == 1 else f"{len(names):,} kernels"
    raise PtxError(
        f"{path} has PTX of {kernels}" + f", and none is called {entry}" * bool(entry),
        cause=f"they are {listed}",
        correction="name one of them with --entry NAME",
    )


def _peek(data: mmap.mmap) -> Peek:
    return lambda address, nbytes: data[address : address + nbytes]


def _containers(data: mmap.mmap) -> Iterator[int]:
    """Where a container may begin."""
    at = data.find(_MAGIC)
    while at >= 0:
        if at % _ALIGNED == 0:
            yield at
        at = data.find(_MAGIC, at + len(_MAGIC))


def _no_ptx(path: Path, machine_code: list[Architecture], damaged: int) -> PtxError:
    if machine_code:
        has = "it has machine code only, for " + ", ".join(f"sm_{each}" for each in machine_code)
    elif damaged:
        has = "its fat binary is damaged, or cut" if damaged == 1 else f"{damaged} fat binaries are damaged, or cut"
    else:
        has = "there is no fat binary in it; of machine code by itself (.cubin) there is no PTX"
    option = "-gencode arch=compute_90a,code=[sm_90a,compute_90a]"
    return PtxError(f"{path} has no PTX", cause=has, correction=f"compile it with nvcc {option} -lineinfo")
