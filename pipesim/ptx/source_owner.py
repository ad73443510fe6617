"""Whose a source line of a kernel is: the user's, or that of a library or of the compiler's own headers."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple

from pipesim.findings.kind import Owner
from pipesim.ptx.emit.names import short_file, source_of
from pipesim.ptx.text.instruction import Frame, Instruction
from pipesim.ptx.text.module import Module

#: Folders of installed packages, of the system, and of the headers of CUDA's, CUTLASS's and compilers' own libraries.
_LIBRARY = re.compile(
    r"(?:^|/)(?:site-packages|dist-packages)/"
    r"|^/usr/(?:include|lib|lib64|share)/|/(?:cuda|cuda-[\d.]+)/(?:.*/)?include/|/lib/clang/"
    r"|(?:^|/)include/(?:cutlass|cute|cuda|cub|thrust|nv|crt)/|^(?:cutlass|cute|cuda/std|cuda/__ptx|cub|thrust)/"
    r"|(?:^|/)triton/(?:language|experimental/gluon|tools)/|(?:^|/)tl_templates/"
    r"|(?:^|/)(?:mojo/)?stdlib/(?:std|src|stdlib)/"
)


class SourceOwner(NamedTuple):
    """``other``: a line that is inlined at the one that reports name: of the user at a library's, or where that has
    several; of a library at the user's.
    """

    owner: Owner
    other: str = ""


def is_library(file: str) -> bool:
    """Whether a file, as ``.file`` names it, is not the user's."""
    return _LIBRARY.search(file) is not None


def own_line(each: Instruction, module: Module) -> str:
    """``file:line`` of the innermost function that is the user's, where an instruction has one; else its line."""
    frames = each.source.frames if each.source is not None else ()
    return next((_place(frame) for frame in reversed(frames) if not is_library(frame.file)), source_of(each, module))


def _line_apart(each: Instruction, kept: Iterable[Instruction]) -> Frame | None:
    """The line inlined at the outermost one that tells an instruction apart from others of it, None if none is needed.

    The innermost one of functions that are inlined once, of those of the same file if there are any; the call's line of
    a function that wraps an instruction in several places.
    """
    frames, mine = each.source.frames if each.source is not None else (), _lines(each)
    others, found, once = [_lines(other) for other in kept], list[Frame](), list[Frame]()
    for depth, frame in enumerate(frames):
        beside = {lines[depth : depth + 1] for lines in others if lines[:depth] == mine[:depth]}
        if depth and len(beside) > 1 and not is_library(frame.file):
            found.append(frame)
            calls = {lines[:depth] for lines in others if lines[depth : depth + 1] == mine[depth : depth + 1]}
            once += [frame] if len(calls) == 1 else []
    if not found:
        return None
    near, inside = ([frame for frame in part if frame.file == frames[0].file] for part in (once, frames[1:]))
    return (near or inside or once or found[:1])[-1]


def _lines(each: Instruction) -> tuple[tuple[str, int], ...]:
    return tuple(frame[:2] for frame in each.source.frames) if each.source is not None else ()


def owner_of(each: Instruction, kept: Iterable[Instruction], *, has_lines: bool) -> SourceOwner:
    """Of an instruction; ``kept``: those that became operations. ``has_lines``: the PTX names source lines, so that one
    without any is the compiler's.
    """
    if each.source is None or not each.source.line:
        return SourceOwner(Owner.COMPILER if has_lines else Owner.USER)
    frames = each.source.frames
    outer, inner = frames[0], frames[-1]
    mine = next((frame for frame in reversed(frames) if not is_library(frame.file)), None)
    if mine is None:
        return SourceOwner(Owner.LIBRARY)
    if is_library(outer.file):
        return SourceOwner(Owner.USER, _place(mine))
    apart = _line_apart(each, kept) or (inner if is_library(inner.file) else None)
    return SourceOwner(Owner.USER, _place(apart) if apart is not None else "")


def _place(frame: Frame) -> str:
    return f"{short_file(frame.file)}:{frame.line}"
