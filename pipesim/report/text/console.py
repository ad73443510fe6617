"""The console of a report: its width, its colour, what replaces characters that the stream cannot print, and links.

A place of a source line is a hyperlink of a terminal: the control sequence OSC 8 around ``kernel.cu:49``.
"""

import os
import re
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import IO

from rich.console import Console
from rich.style import Style
from rich.text import Text

from pipesim.inputs import is_quotable, python_folders
from pipesim.ptx.source_files import path_of
from pipesim.report.text.words import inert, printable

DEFAULT_WIDTH = 80  #: cells, where there is no terminal to ask
LEAST_WIDTH = 60  #: cells; below it a report keeps this width and the terminal breaks its lines
MOST_WIDTH = 1_000  #: cells, whatever COLUMNS says: a line of a report is filled to its width

GOOD, BAD, UNSURE, SPARED = "✓", "✗", "?", "!"

#: One character for one, so that a translated line is as wide as it was.
ASCII = str.maketrans(
    {
        "✓": "v", "✗": "x", "▸": ">",
        "▴": "^", "·": "|", "→": ">", "–": "-", "−": "-", "±": "~", "×": "x", "…": "*", "─": "-",
        "█": "#", "░": ".", "▒": ":", "▓": "=", "“": '"', "”": '"', "’": "'", "‘": "'", "µ": "u",
        "│": "|", "┊": ":", "┼": "+", "╪": "+", "═": "=", "╌": "~", "╍": "~", "▶": ">", "◀": "<",
        **dict.fromkeys("▏▎▍▌▋▊▉", "#"),
        "●": "*", "◉": "@", "■": "#", "▣": "@", "○": "?",
    }
)  # fmt: skip

_DIGITS = 9  #: of COLUMNS that are read: the width of more is the most

_STYLES = (
    (r"✓", "green"),
    (r"✗.*", "bold red"),
    (r"(?<!\S)[?!](?= )", "bold yellow"),
    (r"▸.*|▴", "bold"),
    (r"█", "cyan"),
    (r"▓", "green"),
    (r"[░▒]", "bright_black"),
)


def make_console(file: IO[str] | None = None) -> Console:
    """A console on ``file`` (standard output if none): COLUMNS, else the terminal's width, else 80 cells.

    Nothing but text is written if the stream is not a terminal, the terminal is dumb, or NO_COLOR is set.
    """
    stream = sys.stdout if file is None else file
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM") in ("dumb", "unknown")
    return Console(
        file=stream,
        width=_columns(stream),
        height=100,  # with a height rich does not ask for the size, not even a dumb terminal
        color_system=None if plain else "auto",
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )


def _columns(stream: IO[str]) -> int:
    asked = os.environ.get("COLUMNS", "").lstrip("0")
    if asked.isdecimal():
        return min(int(asked[:_DIGITS]), MOST_WIDTH)
    try:
        return min(os.get_terminal_size(stream.fileno()).columns, MOST_WIDTH) or DEFAULT_WIDTH
    except (OSError, ValueError, AttributeError):  # a pipe, a closed file, a file in memory
        return DEFAULT_WIDTH


def width_of(console: Console) -> int:
    """Cells that a line may have."""
    return max(console.width, LEAST_WIDTH)


def mark(ok: bool | None) -> str:  # noqa: FBT001  # its one argument
    """✓ for True, ✗ for False, ? for None; the words beside it must say the same."""
    return UNSURE if ok is None else GOOD if ok else BAD


def paint(console: Console, lines: Iterable[str]) -> None:
    """Write ``lines``. If one of them has a character that the stream's encoding lacks, all are written in ASCII."""
    _write(console, [inert(line) for line in lines])


def paint_commands(console: Console, lines: Iterable[str]) -> None:
    """The same for lines that a CI system is to read as commands; whoever made them has quoted what they hold."""
    _write(console, [printable(line) for line in lines])


def _write(console: Console, clean: list[str]) -> None:
    encoding = console.encoding
    if not all(_prints(line, encoding) for line in clean):
        clean = [line.translate(ASCII).encode(encoding, "replace").decode(encoding) for line in clean]
    links = shows_links(console)
    for line in clean:
        text = style_line(line)
        if links:
            link_places(text)
        console.print(text, no_wrap=True, overflow="ignore", crop=False, soft_wrap=True)


def text_of(lines: Iterable[str]) -> str:
    """``lines`` as one text without colour: what :func:`paint` writes into a file that can hold every character."""
    return "\n".join(inert(line).rstrip() for line in lines)


def style_line(line: str) -> Text:
    """One line with its styles: headings, marks and the cells of a timeline. Colour only repeats what words say."""
    text = Text(line)
    if line[:1].strip() and line[0] not in (GOOD, BAD, UNSURE):
        text.stylize("bold")
    for pattern, style in _STYLES:
        text.highlight_regex(pattern, style)
    return text


def _prints(line: str, encoding: str) -> bool:
    try:
        line.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


_PLACE = re.compile(r"(?<![\w./@+-])([\w./@+-]+\.\w+):\d+")
_PACKAGES = Path(__file__).parents[3]  #: the folder of pipesim, whose own lines are named from there


def shows_links(console: Console) -> bool:
    """True for a terminal that shows more than text: no pipe, not where colour is refused."""
    return console.color_system is not None and console.file.isatty()


def link_places(text: Text) -> None:
    """Link each ``file:number`` to the file, if it is a source file that is there."""
    for found in _PLACE.finditer(text.plain):
        file = _file(found[1])
        if file is not None:
            text.stylize(Style(link=file.absolute().as_uri()), *found.span())


def _file(name: str) -> Path | None:
    """The file that a report calls ``name``: of the current kernel, below the current folder, or pipesim's own."""
    candidates = [Path(path_of(name)), *([_PACKAGES / name] if name.startswith("pipesim/") else [])]
    return next((path for path in candidates if is_quotable(path, *python_folders())), None)
