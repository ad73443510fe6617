"""The PTX that a compiler keeps by itself: Triton beside the machine code, the CuTe DSL in a folder of files."""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pipesim.bounds import MAX_PTX_BYTES
from pipesim.errors import CodeImageError
from pipesim.inputs import InputKind
from pipesim.launches.observe.compilers import Source, hash_of

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
                return Source(text.encode() if isinstance(text, str) else bytes(text), "Triton")
        except (AttributeError, KeyError, TypeError, OSError):
            continue
    return None


def _triton_kernels() -> Iterator[Any]:
    """What Triton compiled: the objects of its class that this process has."""
    module = sys.modules.get("triton.compiler.compiler")
    kind = getattr(module, "CompiledKernel", None)
    if kind is not None:
        yield from (each for each in gc.get_objects() if type(each) is kind)


_CUTE_FOLDER = "CUTE_DSL_DUMP_DIR"


def keep_cute_ptx(folder: Path) -> tuple[str, ...]:
    """Have the CuTe DSL write its PTX to a folder, which it does not make itself; the variables that were set for it.

    None is set where the program has its own folder, or has imported the package before.
    """
    if "cutlass" in sys.modules or _CUTE_FOLDER in os.environ:
        return ()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    switches = {"CUTE_DSL_KEEP": "ptx", "CUTE_DSL_KEEP_PTX": "1", _CUTE_FOLDER: str(folder)}
    set_now = tuple(name for name in switches if name not in os.environ)
    os.environ.update({name: switches[name] for name in set_now})
    return set_now


def cute_source(kernel: str) -> Source | None:
    """The PTX that the CuTe DSL wrote of a kernel, the newest file with an entry of its name."""
    folder = os.environ.get(_CUTE_FOLDER, "")
    if not folder or not any(name.startswith("cutlass") for name in list(sys.modules)):
        return None
    entry = re.compile(rb"\.entry\s+" + re.escape(kernel.encode()) + rb"\s*\(")
    try:
        files = sorted(Path(folder).glob("**/*.ptx"), key=lambda each: each.stat().st_mtime_ns, reverse=True)
        for file in files:
            text = _FILE.read_bytes(file)
            if entry.search(text):
                return Source(text.rstrip(b"\0"), "CuTe DSL")
    except (OSError, CodeImageError):
        return None
    return None
