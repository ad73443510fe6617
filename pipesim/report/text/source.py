"""What a report prints to be copied: source lines with their text, where the file can be read, and command lines.

A source line is ``my_gemm.py:52    pipe.consume().release()``. A long command is over several lines, and no word of it
is cut.
"""

import io
import linecache
import os
import re
import shlex
import tokenize
from collections.abc import Sequence
from pathlib import Path

from rich.cells import cell_len

from pipesim.inputs import confined, is_quotable, is_quoting, python_folders
from pipesim.ptx.source_files import current_sources
from pipesim.report.text.layout import wrap
from pipesim.report.text.words import place

_GAP = "    "
_DIGITS = 9  #: of a line's number
_AROUND = 4  #: lines before and after the one that is quoted
_REGISTERS = re.compile(r"(\{%\w+,) (?:%\w+, ){3,}(%\w+)")  # of a line of PTX, which may have 128 of them


def with_source(said: str, line: str, width: int, first: str, rest: str, tail: str = "") -> list[str]:
    """``said`` and ``tail``, wrapped as :func:`wrap` does, and the source line below them.

    ``line`` is ``file:number``. If it cannot be read its place is in brackets after ``said``, unless it is named there;
    nothing if it is "".
    """
    text = text_of(line)
    if not text:
        file, _, at = Path(line).name.rpartition(":")
        named = not line or (file in said and re.search(rf"\b{re.escape(at)}\b", said))
        return wrap(f"{said}{tail}" if named else f"{said} ({place(line)}){tail}", width, first, rest)
    return [*wrap(f"{said}{tail}", width, first, rest), *source_lines(line, text, width, rest)]


def with_hint(lines: Sequence[str], width: int) -> list[str]:
    """A report, and below it the option it needs to quote a source file that its lines name and that is there."""
    sources = current_sources() if is_quoting() and not confined else None
    for name, path in sources.outside.items() if sources is not None else ():
        if any(f"{name}:" in line for line in lines):
            said = f"not quoted: {name} lies outside the folders of sources, which this allows:"
            return [*lines, "", *wrap(said, width, "  ", "    "), f"    --source-root {shlex.quote(str(path.parent))}"]
    return [*lines]


def source_lines(line: str, text: str, width: int, indent: str) -> list[str]:
    """The place and its text in one line; where they do not fit the text is below its place."""
    where = indent + place(line)
    if cell_len(where + _GAP + text) <= width:
        return [where + _GAP + text]
    return [*wrap(place(line), width, indent), *wrap(text, width, indent + _GAP, indent + 2 * _GAP)]


def text_of(line: str) -> str:
    """The text of a source line without its indent and comment, "" if its file, or this line of it, cannot be read.

    The files that the current kernel's PTX names can (:mod:`pipesim.ptx.source_files`), and the cells of a notebook:
    these are where Python looks for the lines of a traceback.
    """
    file, colon, number = line.rpartition(":")
    if not colon or not number.isdecimal() or len(number) > _DIGITS:
        return ""
    text = " ".join(_without_comment(_lines(file, int(number), int(number) + 1)[0].strip()).split())
    return _REGISTERS.sub(r"\1 ..., \2", text)


def whole_text_of(line: str) -> str:
    """The text of a source line with its comment, "" where it cannot be read."""
    file, colon, number = line.rpartition(":")
    if not colon or not number.isdecimal() or len(number) > _DIGITS or not int(number):
        return ""
    return _lines(file, int(number), int(number) + 1)[0].strip()


def lines_around(line: str) -> tuple[tuple[int, str], ...]:
    """The source line ``file:number`` and up to four lines before and after it, numbered; () if it is not read."""
    if not text_of(line):
        return ()
    file, _, number = line.rpartition(":")
    at = int(number)
    first = max(1, at - _AROUND)
    lines = enumerate(_lines(file, first, at + _AROUND + 1), first)
    return tuple((n, text.rstrip().expandtabs(4)) for n, text in lines if text.strip() or n <= at)


def _lines(file: str, first: int, end: int) -> list[str]:
    """The lines from ``first`` (counted from 1) to the one before ``end``, "" for each that cannot be read."""
    sources = current_sources()
    own = sources.lines(file) if sources is not None else None
    if own is not None:
        return [own[n - 1] if 0 < n <= len(own) else "" for n in range(first, end)]
    if not is_quotable(Path(file), *python_folders()) and not _is_cell(file):
        return [""] * (end - first)
    linecache.checkcache(file)
    return [linecache.getline(file, n) for n in range(first, end)]


def _is_cell(file: str) -> bool:
    """True for what Python knows the lines of although there is no file, as of a notebook's cell."""
    return file in linecache.cache and not os.path.lexists(file)


def _without_comment(text: str) -> str:
    """A line of Python without the comment at its end: it is the code that is found wrong."""
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT and token.start[1]:
                return text[: token.start[1]]
    except (tokenize.TokenError, SyntaxError):  # a part of a statement, which ends on another line
        pass
    return text


_WITH_VALUE = ("-p", "--ctas", "--launch", "--profile", "--set", "--box")


def shell_words(command: str) -> list[str]:
    """The words of a command as a shell needs them, an option together with its value."""
    words: list[str] = []
    for word in map(shlex.quote, shlex.split(command)):
        if words and words[-1] in _WITH_VALUE:
            words[-1] += f" {word}"
        else:
            words.append(word)
    return words


def command_lines(first: str, words: Sequence[str], width: int, *, whole: bool = False) -> list[str]:
    """A command over several lines, each but the last with a backslash.

    A schedule may continue after a dot; ``whole``: no word is broken, so that a path stays whole.
    """
    lines = [first + words[0]]
    for word in words[1:]:
        if cell_len(lines[-1]) + 1 + cell_len(word) + 2 <= width:
            lines[-1] += f" {word}"
            continue
        lines[-1] += " \\"
        lines += [f"      {word}"] if whole else _broken(f"      {word}", width)
    return lines


def _broken(line: str, width: int) -> list[str]:
    """A line that is too long, broken after dots; the quotes around it let it continue."""
    lines = []
    while cell_len(line) > width and (at := line.rfind(".", 8, width)) > 0:
        lines.append(line[: at + 1])
        line = "      " + line[at + 1 :]
    return [*lines, line]
