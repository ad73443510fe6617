"""The PTX that compilers in this process made: what was compiled is joined to a launch by the hash of its machine code.

A compiler that is a Python module is watched from its import on: NVRTC's functions in ``cuda.bindings`` and CuPy, the
``Program`` of ``cuda.core``, numba-cuda. Others keep the PTX: Triton and Inductor beside the machine code, the CuTe DSL
in a folder.
"""

import gc
import getpass
import glob
import hashlib
import os
import re
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from pipesim.bounds import MAX_PTX_BYTES
from pipesim.errors import CodeImageError, PipesimError
from pipesim.inputs import InputKind, json_value

Changes = Mapping[str, Callable[[Any], None]]  #: what is done with a module, by its name


def watch_imports(changes: Changes) -> Callable[[], None]:
    """Change the modules of these names; the function that is returned ends watching, and changes nothing back."""
    for name, change in changes.items():
        module = sys.modules.get(name)
        if module is not None:
            change(module)
    watch = _Watch(changes)
    sys.meta_path.insert(0, watch)

    def end() -> None:
        sys.meta_path[:] = [each for each in sys.meta_path if each is not watch]

    return end


class _Watch(MetaPathFinder):
    """Finds nothing itself, but sees each import of such a module and changes the module after it was made."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._inside = False

    def find_spec(self, name: str, _path: Any = None, _target: Any = None) -> ModuleSpec | None:
        """The spec that the others find, with a loader that changes the module at its end."""
        if self._inside or name not in self._changes:
            return None
        self._inside = True
        try:
            spec = find_spec(name)
        except (ImportError, ValueError):
            return None
        finally:
            self._inside = False
        if spec is not None and spec.loader is not None:
            spec.loader = _ChangingLoader(spec.loader, self._changes[name])
        return spec


class _ChangingLoader(Loader):
    """A loader that loads as another does, and then calls a function with the module."""

    def __init__(self, loader: Any, then: Callable[[ModuleType], None]) -> None:
        self._loader, self._then = loader, then

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        """As the other loader."""
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        """As the other loader; then the change, which must never harm the import."""
        self._loader.exec_module(module)
        self._then(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


@dataclass(frozen=True)
class Assembler:
    """The ptxas of a kernel's own compiler ("": that of PATH), and the options that decide about its results."""

    ptxas: str = ""
    options: tuple[str, ...] = ()


class Source(NamedTuple):
    """A module's PTX, the name of what compiled it, and what makes machine code of it."""

    text: bytes
    origin: str
    assembler: Assembler = Assembler()


def hash_of(image: bytes) -> str:
    """What machine code is known by."""
    return hashlib.sha256(image).hexdigest()


class CompiledPtx(dict[str, Source]):
    """The PTX of machine code, by its hash."""

    _unwatch: Callable[[], None] = staticmethod(lambda: None)

    def note(self, image: bytes, text: bytes, origin: str) -> None:
        """Machine code and the PTX from which it was made."""
        if image and text.strip(b"\0\n "):
            self[hash_of(image)] = Source(text.rstrip(b"\0"), origin)

    def watch(self) -> None:
        """Watch the compilers, those that are imported already and those that will be."""
        self._unwatch = watch_imports({name: partial(change, made=self) for name, change in _CHANGES.items()})

    def unwatch(self) -> None:
        """End watching imports. What was changed keeps working and notes on."""
        self._unwatch()


def _watch(owner: Any, name: str, look: Callable[..., None]) -> None:
    """Have a function of a module or class show ``look`` its result, then its arguments; once."""
    function = getattr(owner, name, None)
    if function is None or hasattr(function, "watched"):
        return

    def watched(*given: Any, **named: Any) -> Any:
        result = function(*given, **named)
        with suppress(Exception):  # the compiler's own error: there is no PTX, and the program must not see it
            look(result, *given, **named)
        return result

    watched.watched = True  # type: ignore[attr-defined]
    setattr(owner, name, watched)


def _watch_bindings(module: Any, made: CompiledPtx) -> None:
    """``cuda.bindings.nvrtc``: where machine code is asked for, the PTX is at hand."""

    def look(_: Any, program: Any, data: Any, *_rest: Any) -> None:
        if isinstance(data, bytes | bytearray):
            made.note(bytes(data), _ptx_of(module, program), "NVRTC")

    _watch(module, "nvrtcGetCUBIN", look)


def _ptx_of(nvrtc: Any, program: Any) -> bytes:
    """The PTX of a program of NVRTC, empty if it has none."""
    try:
        status, size = nvrtc.nvrtcGetPTXSize(program)
        data = b" " * (size if int(status) == 0 else 0)
        if data and int(nvrtc.nvrtcGetPTX(program, data)[0]) == 0:
            return data
    except (TypeError, ValueError, AttributeError):
        pass
    return b""


def _watch_core(module: Any, made: CompiledPtx) -> None:
    """``cuda.core``: its Program is replaced by one that looks at what it compiles."""
    program = getattr(module, "Program", None)
    if program is None or hasattr(program, "watched"):
        return

    class WatchedProgram(program):  # type: ignore[misc,valid-type]
        """``cuda.core.Program``, whose PTX is kept beside its machine code."""

        watched = True

        def compile(self, target_type: str, *args: Any, **kwargs: Any) -> Any:
            """As ``cuda.core.Program.compile``."""
            result = super().compile(target_type, *args, **kwargs)
            if target_type == "cubin":
                _note_core(self, result, made)
            return result

    WatchedProgram.__name__, WatchedProgram.__qualname__, WatchedProgram.__module__ = (
        "Program",
        "Program",
        program.__module__,
    )
    module.Program = WatchedProgram


def _note_core(program: Any, result: Any, made: CompiledPtx) -> None:
    try:
        from cuda.bindings import nvrtc

        image = result.code
        if program.backend.upper() == "NVRTC" and isinstance(image, bytes | bytearray):
            made.note(bytes(image), _ptx_of(nvrtc, program.handle), "cuda.core")
    except (ImportError, AttributeError, TypeError, ValueError):
        return


def _watch_cupy(module: Any, made: CompiledPtx) -> None:
    """``cupy_backends.cuda.libs.nvrtc``: the PTX beside the machine code."""

    def look(image: Any, program: Any) -> None:
        for whole in (bytes(image), bytes(image) + b"\0"):  # CuPy 14 leaves out the last byte, which is a zero
            made.note(whole, bytes(module.getPTX(program)), "CuPy")

    _watch(module, "getCUBIN", look)


def _watch_numba(module: Any, made: CompiledPtx) -> None:
    """``numba.cuda.codegen``: the PTX that is linked to machine code, if it is one text."""

    def look(result: Any, library: Any, cc: Any = None) -> None:
        image = bytes(getattr(result, "code", result))
        if hash_of(image) not in made:
            texts = [library.get_lto_ptx(cc)] if library._lto else library.get_asm_strs(cc)  # noqa: SLF001
            made.note(image, texts[0].encode() if len(texts) == 1 else b"", "numba-cuda")

    _watch(getattr(module, "CUDACodeLibrary", None), "get_cubin", look)


_CHANGES: dict[str, Callable[..., None]] = {
    "numba.cuda.codegen": _watch_numba,
    "numba_cuda.numba.cuda.codegen": _watch_numba,
    "cuda.bindings.nvrtc": _watch_bindings,
    "cuda.core": _watch_core,
    "cuda.core.experimental": _watch_core,
    "cupy_backends.cuda.libs.nvrtc": _watch_cupy,
}


_FILE = InputKind("PTX file", MAX_PTX_BYTES, CodeImageError, "give the PTX of one module")


def triton_source(image: str, function: int) -> Source | None:
    """The PTX that Triton keeps of a kernel, known by the hash of its machine code or by the function's handle."""
    if not any(each in sys.modules for each in ("triton", "triton.compiler")):
        return None
    for kernel in _triton_kernels():
        try:
            asm, handle = kernel.asm, getattr(kernel, "function", None)
            if (image and hash_of(asm["cubin"]) == image) or (not image and handle == function):
                text = asm["ptx"]
                metadata = getattr(kernel, "metadata", None)
                by = _triton_assembler(
                    fused=getattr(metadata, "enable_fp_fusion", True), more=getattr(metadata, "ptx_options", None)
                )
                return Source(text.encode() if isinstance(text, str) else bytes(text), "Triton", by)
        except (AttributeError, KeyError, TypeError, OSError):
            continue
    return None


def _triton_assembler(*, fused: object, more: object) -> Assembler:
    """The ptxas that Triton is to use, as Inductor says, or its own; with its options for a kernel."""
    package = Path(getattr(sys.modules.get("triton"), "__file__", None) or "none").parent
    own = package / "backends" / "nvidia" / "bin" / "ptxas"
    ptxas = Path(os.environ.get("TRITON_PTXAS_PATH") or own)
    options = () if fused else ("--fmad=false",)
    return Assembler(str(ptxas) if ptxas.is_file() else "", (*options, *(str(more).split() if more else ())))


def cached_source(image: str, kernel: str, folders: Iterable[Path]) -> Source | None:
    """The PTX of machine code that Triton or Inductor has in a cache, where another process may have put it.

    ``folders`` have files that this process loaded; those of the caches follow. The machine code is compared.
    """
    name = f"{glob.escape(kernel)}.cubin"
    places = chain((each.glob(name) for each in folders), (each.glob(f"**/{name}") for each in _triton_caches()))
    for cubin in chain.from_iterable(places):
        with suppress(OSError, PipesimError, ValueError):
            if hash_of(_FILE.read_bytes(cubin)) != image:
                continue
            text, said = _FILE.read_bytes(cubin.with_suffix(".ptx")), cubin.with_suffix(".json")
            known = json_value(_FILE.read_bytes(said).decode(), MAX_PTX_BYTES) if said.is_file() else {}
            by = _triton_assembler(fused=known.get("enable_fp_fusion", True), more=known.get("ptx_options"))
            return Source(text.rstrip(b"\0"), "Triton's cache", by)
    return None


def _triton_caches() -> Iterator[Path]:
    """Triton's folder and Inductor's, where a framework of this process may have files."""
    if not any(each in sys.modules for each in ("triton", "torch")):
        return
    home = Path(os.environ.get("TRITON_HOME") or Path.home())
    yield Path(os.environ.get("TRITON_CACHE_DIR") or home / ".triton" / "cache")
    inductor = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    with suppress(OSError, KeyError):
        yield Path(inductor) if inductor else Path(tempfile.gettempdir(), f"torchinductor_{getpass.getuser()}")


def _triton_kernels() -> Iterator[Any]:
    """What Triton compiled: the objects of its class that this process has."""
    module = sys.modules.get("triton.compiler.compiler")
    kind = getattr(module, "CompiledKernel", None)
    if kind is not None:
        yield from (each for each in gc.get_objects() if type(each) is kind)


_CUTE_FOLDER = "CUTE_DSL_DUMP_DIR"


def keep_ptx(folder: Path) -> tuple[str, ...]:
    """Have compilers keep what they make; the variables of the environment that were set for it.

    The CuTe DSL writes PTX and machine code to a folder, which it does not make itself. CuPy and quack compile each
    kernel again, because their caches have machine code alone. None is set where the program has set it, or has the
    package.
    """
    switches = {"CUPY_CACHE_IN_MEMORY": "1", "QUACK_CACHE_ENABLED": "0"}
    if "cutlass" not in sys.modules and _CUTE_FOLDER not in os.environ:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        switches |= {"CUTE_DSL_KEEP": "ptx,cubin", "CUTE_DSL_KEEP_PTX": "1", "CUTE_DSL_KEEP_CUBIN": "1"}
        switches[_CUTE_FOLDER] = str(folder)
    set_now = tuple(name for name in switches if name not in os.environ)
    os.environ.update({name: switches[name] for name in set_now})
    return set_now


def cute_source(image: str, kernel: str) -> Source | None:
    """The PTX that the CuTe DSL wrote of a kernel: beside its machine code, else the only text with its name."""
    folder = os.environ.get(_CUTE_FOLDER, "")
    if not folder or not any(name.startswith("cutlass") for name in list(sys.modules)):
        return None
    entry = re.compile(rb"\.entry\s+" + re.escape(kernel.encode()) + rb"\s*\(")
    found: dict[bytes, bool] = {}  # whether it is beside this machine code
    with suppress(OSError, CodeImageError):
        for file in sorted(Path(folder).glob("**/*.ptx")):
            text = _FILE.read_bytes(file).rstrip(b"\0")
            if entry.search(text):
                beside = file.with_suffix(".cubin")
                same = beside.is_file() and hash_of(_FILE.read_bytes(beside)) == image
                found[text] = found.get(text, False) or same
    right = [text for text, same in found.items() if same] or list(found)
    return Source(right[0], "CuTe DSL") if len(right) == 1 else None
