"""Whose a source line of a kernel is: the user's, or that of a library or of the compiler's own headers."""

from __future__ import annotations

import re
from typing import NamedTuple

from pipesim.findings.kind import Owner
from pipesim.ptx.emit.names import short_file
from pipesim.ptx.text.instruction import Frame, Instruction

#: Folders of installed packages, of the system, and of the headers of CUDA's, CUTLASS's and compilers' own libraries.
_LIBRARY = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages)/"
    r"|^/usr/(?:include|lib|lib64|share)/|/(?:cuda|cuda-[\d.]+)/(?:.*/)?include/|/lib/clang/"
    r"|(?:^|/)include/(?:cutlass|cute|cuda|cub|thrust|nv|crt)/|^(?:cutlass|cute|cuda/std|cuda/__ptx|cub|thrust)/"
    r"|(?:^|/)triton/(?:language|experimental/gluon|tools)/|(?:^|/)tl_templates/"
    r"|(?:^|/)(?:mojo/)?stdlib/(?:std|src|stdlib)/"
)


class SourceOwner(NamedTuple):
    """``other``: the library's line that is inlined at the user's, or the user's that is inlined in a library's."""

    owner: Owner
    other: str = ""


def is_library(file: str) -> bool:
    """Whether a file, as ``.file`` names it, is not the user's."""
    return _LIBRARY.search(file) is not None


def owner_of(each: Instruction, *, has_lines: bool) -> SourceOwner:
    """Of an instruction; ``has_lines``: the PTX names source lines, so that one without any is the compiler's."""
    if each.source is None or not each.source.line:
        return SourceOwner(Owner.COMPILER if has_lines else Owner.USER)
    frames = each.source.frames
    outer, inner = frames[0], frames[-1]
    mine = next((frame for frame in reversed(frames) if not is_library(frame.file)), None)
    if mine is None:
        return SourceOwner(Owner.LIBRARY)
    if is_library(outer.file):
        return SourceOwner(Owner.USER, _place(mine))
    return SourceOwner(Owner.USER, _place(inner) if is_library(inner.file) else "")


def _place(frame: Frame) -> str:
    return f"{short_file(frame.file)}:{frame.line}"
