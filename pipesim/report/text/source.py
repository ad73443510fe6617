"""The author's source line with its text, where its file can be read: ``my_gemm.py:52    pipe.consume().release()``."""

from __future__ import annotations

import io
import linecache
import tokenize
from pathlib import Path

from rich.cells import cell_len

from pipesim.inputs import is_source
from pipesim.report.text.layout import wrap
from pipesim.report.text.words import place

_GAP = "    "
_DIGITS = 9  #: of a line's number


def with_source(said: str, line: str, width: int, first: str, rest: str, tail: str = "") -> list[str]:
    """``said`` and ``tail``, wrapped as :func:`wrap` does, and the source line below them.

    ``line`` is ``file:number``. If it cannot be read its place stands in brackets after ``said``; nothing if it is "".
    """
    text = text_of(line)
    if not text:
        return wrap(f"{said} ({place(line)}){tail}" if line else f"{said}{tail}", width, first, rest)
    return [*wrap(f"{said}{tail}", width, first, rest), *source_lines(line, text, width, rest)]


def source_lines(line: str, text: str, width: int, indent: str) -> list[str]:
    """The place and its text in one line; where they do not fit the text stands below its place."""
    where = indent + place(line)
    if cell_len(where + _GAP + text) <= width:
        return [where + _GAP + text]
    return [*wrap(place(line), width, indent), *wrap(text, width, indent + _GAP, indent + 2 * _GAP)]


def text_of(line: str) -> str:
    """The text of a source line without its indent and comment, "" if its file, or this line of it, cannot be read.

    The cells of a notebook can, and the files that a kernel's PTX names (:mod:`pipesim.ptx.source_files`): they are
    where Python looks for the lines of a traceback.
    """
    file, colon, number = line.rpartition(":")
    if not colon or not number.isdecimal() or len(number) > _DIGITS:
        return ""
    if file not in linecache.cache and not is_source(Path(file)):
        return ""
    linecache.checkcache(file)
    return " ".join(_without_comment(linecache.getline(file, int(number)).strip()).split())


def lines_around(line: str, more: int = 4) -> tuple[tuple[int, str], ...]:
    """The source line ``file:number`` and up to ``more`` lines before and after it, numbered; () if it is not read."""
    if not text_of(line):
        return ()
    file, _, number = line.rpartition(":")
    at = int(number)
    lines = [(n, linecache.getline(file, n).rstrip()) for n in range(max(1, at - more), at + more + 1)]
    return tuple((n, text.expandtabs(4)) for n, text in lines if text or n <= at)


def _without_comment(text: str) -> str:
    """A line of Python without the comment at its end: it is the code that is found wrong."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and token.start[1]:
                return text[: token.start[1]]
    except (tokenize.TokenError, SyntaxError):  # a part of a statement, which ends on another line
        pass
    return text
