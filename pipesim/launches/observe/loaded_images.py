"""The images that a process loaded, and the PTX of each as far as it is available."""

import ctypes
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from ctypes import string_at
from pathlib import Path
from typing import NamedTuple

from pipesim.errors import CodeImageError
from pipesim.inputs import InputKind
from pipesim.launches.images.code_image import ImageKind, image_at
from pipesim.launches.images.fat_binary import choose, entries_at, entry_bytes
from pipesim.launches.observe.compilers import (
    Assembler,
    CompiledPtx,
    Source,
    cached_source,
    cute_source,
    hash_of,
    triton_source,
)
from pipesim.launches.observe.spool import Spool

_MOST_BYTES = 1 << 26  #: of one image that is read from a file, or whose PTX is kept
_FILE = InputKind("file of a module", _MOST_BYTES, CodeImageError, "load it from memory")


class KernelCode(NamedTuple):
    """The PTX of a kernel: its file in the spool, "" where there is none (``why_not``). ``text`` where it is text."""

    name: str
    origin: str = ""
    why_not: str = ""
    text: bytes = b""
    assembler: Assembler = Assembler()


class LoadedImage(NamedTuple):
    """One image: what it is known by, and the PTX that it carries (``data``, for a file with ``suffix``), if any.

    ``is_cubin``: it is machine code by itself, so a compiler of this process may have its PTX.
    """

    key: str = ""
    data: bytes = b""
    suffix: str = ""
    origin: str = ""
    why_not: str = "its module was loaded before the capture began"
    is_cubin: bool = False


class LoadedImages:
    """The images by the module or library that the driver made of them. ``arch`` says the device's architecture."""

    def __init__(self, compiled: CompiledPtx, arch: Callable[[], str]) -> None:
        self._compiled, self._arch = compiled, arch
        self._images: dict[int, LoadedImage] = {}
        self._links: dict[int, list[bytes]] = {}
        self._sources: dict[tuple[str, str], Source | None] = {}
        self._folders: dict[Path, None] = {}  #: of files that were loaded

    def note_loaded(self, handle: int, place: int, *, is_path: bool) -> None:
        """Note what a module or library was made of: the image at an address, or the file with a path there."""
        if handle and place:
            self._images[handle] = self._from_file(string_at(place)) if is_path else self._image_at(place)

    def forget(self, handle: int) -> None:
        """A module or library was unloaded."""
        self._images.pop(handle, None)

    def link_input(self, state: int, text: bytes) -> None:
        """PTX that the driver's linker was given."""
        self._links.setdefault(state, []).append(text)

    def note_linked(self, state: int, image: bytes) -> None:
        """Machine code that the driver's linker has made."""
        texts = self._links.pop(state, [])
        if len(texts) == 1:
            self._compiled.note(image, texts[0], "the driver's linker")

    def key_of(self, owners: Sequence[int]) -> str:
        """What an image is known by, "" if it was not seen when it was loaded."""
        return self._image(owners).key

    def code_of(self, owners: Sequence[int], function: int, kernel: str, spool: Spool) -> KernelCode:
        """The PTX of one of an image's kernels, written to the spool; or the reason why there is none."""
        image = self._image(owners)
        data, suffix, origin = image.data, image.suffix, image.origin
        source = self._source(image, function, kernel) if not data else None
        if source is not None:
            data, suffix, origin = source.text, ".ptx", source.origin
        if not data:
            return KernelCode("", why_not=image.why_not)
        name = spool.code(data, suffix)
        if not name:
            return KernelCode("", why_not="the limit on bytes was reached before its PTX was written")
        assembler = source.assembler if source is not None else Assembler()
        return KernelCode(name, origin, text=data if suffix == ".ptx" else b"", assembler=assembler)

    def _image(self, owners: Sequence[int]) -> LoadedImage:
        return next((self._images[each] for each in owners if each in self._images), LoadedImage())

    def _source(self, image: LoadedImage, function: int, kernel: str) -> Source | None:
        """The PTX of machine code, from the compiler that made it in this process."""
        key = image.key or hex(function), kernel
        if key not in self._sources:
            found = self._compiled.get(image.key)
            if found is None and (image.is_cubin or not image.key):  # Triton's is never in a fat binary
                found = triton_source(image.key, function) or cached_source(image.key, kernel, self._folders)
            self._sources[key] = found or cute_source(image.key, kernel)
        return self._sources[key]

    def _image_at(self, address: int) -> LoadedImage:
        try:
            image = image_at(address, string_at)
            match image.kind:
                case ImageKind.PTX:
                    text = string_at(address, image.nbytes)
                    return LoadedImage(hash_of(text), text, ".ptx", "PTX that the driver compiled")
                case ImageKind.ELF:
                    why = "the program loaded machine code, and no compiler in this process is known to have made it"
                    return LoadedImage(hash_of(string_at(image.address, image.nbytes)), why_not=why, is_cubin=True)
                case ImageKind.CONTAINER:
                    return self._in_fat_binary(image.address)
                case _:
                    return LoadedImage("unknown", why_not=f"the program loaded {image.kind.value}")
        except CodeImageError as error:
            return LoadedImage("unknown", why_not=f"the code that the program loaded cannot be read: {error.fact}")

    def _in_fat_binary(self, address: int) -> LoadedImage:
        entries = entries_at(address, string_at)
        key = hash_of(repr([(each.kind, each.architecture, each.payload_bytes) for each in entries]).encode())
        arch = self._arch()
        if not arch:
            why = "the device's architecture was not known when its fat binary was loaded"
            return LoadedImage(key, why_not=why)
        choice = choose(entries, arch, force_ptx=os.environ.get("CUDA_FORCE_PTX_JIT") == "1")
        if choice.ptx is None:
            if len(entries) == 1 and entries[0].payload_bytes <= _MOST_BYTES:  # the CuTe DSL has a file of it
                key = hash_of(entry_bytes(entries[0], string_at)[entries[0].header_bytes :])
            return LoadedImage(key, why_not=choice.why_not)
        if choice.ptx.header_bytes + choice.ptx.payload_bytes > _MOST_BYTES:
            return LoadedImage(key, why_not="its fat binary is too large to be kept")
        data = entry_bytes(choice.ptx, string_at)
        return LoadedImage(hash_of(data), data, ".entry", "a fat binary")

    def _from_file(self, path: bytes) -> LoadedImage:
        self._folders[Path(os.fsdecode(path)).parent] = None
        with suppress(CodeImageError):
            held = ctypes.create_string_buffer(_FILE.read_bytes(Path(os.fsdecode(path))))
            return self._image_at(ctypes.addressof(held))
        return LoadedImage("unknown", why_not="the file of its module cannot be read, or is too large")
