"""The PTX that compilers in this process made: what was compiled is joined to a launch by the hash of its machine code.

A compiler that is a Python module is watched from its import on: NVRTC's functions in ``cuda.bindings`` and CuPy, and
the ``Program`` of ``cuda.core``. Others keep the PTX themselves (:mod:`pipesim.launches.observe.kept_ptx`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple

from pipesim.launches.observe.imports import watch_imports


class Source(NamedTuple):
    """A module's PTX, and the name of what compiled it."""

    text: bytes
    origin: str


def hash_of(image: bytes) -> str:
    """What machine code is known by."""
    return hashlib.sha256(image).hexdigest()


class Compiled(dict[str, Source]):
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


def _watch_bindings(module: Any, made: Compiled) -> None:
    """``cuda.bindings.nvrtc``: where machine code is asked for, the PTX is at hand."""
    function = getattr(module, "nvrtcGetCUBIN", None)
    if function is None or hasattr(function, "watched"):
        return

    def watched(program: Any, data: Any, *rest: Any) -> Any:
        result = function(program, data, *rest)
        if isinstance(data, bytes | bytearray):
            made.note(bytes(data), _ptx_of(module, program), "NVRTC")
        return result

    watched.watched = True  # type: ignore[attr-defined]
    module.nvrtcGetCUBIN = watched


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


def _watch_core(module: Any, made: Compiled) -> None:
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


def _note_core(program: Any, result: Any, made: Compiled) -> None:
    try:
        from cuda.bindings import nvrtc

        image = result.code
        if program.backend.upper() == "NVRTC" and isinstance(image, bytes | bytearray):
            made.note(bytes(image), _ptx_of(nvrtc, program.handle), "cuda.core")
    except (ImportError, AttributeError, TypeError, ValueError):
        return


def _watch_cupy(module: Any, made: Compiled) -> None:
    """``cupy_backends.cuda.libs.nvrtc``: the PTX beside the machine code."""
    function = getattr(module, "getCUBIN", None)
    if function is None or hasattr(function, "watched"):
        return

    def watched(program: Any) -> Any:
        image = function(program)
        with suppress(Exception):  # CuPy's own error: there is no PTX, and the program must not see it
            made.note(bytes(image), bytes(module.getPTX(program)), "CuPy")
        return image

    watched.watched = True  # type: ignore[attr-defined]
    module.getCUBIN = watched


_CHANGES: dict[str, Callable[..., None]] = {
    "cuda.bindings.nvrtc": _watch_bindings,
    "cuda.core": _watch_core,
    "cuda.core.experimental": _watch_core,
    "cupy_backends.cuda.libs.nvrtc": _watch_cupy,
}
