"""The console of a report: its width, its colour, and what replaces characters that the stream cannot print."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from typing import IO

from rich.console import Console
from rich.text import Text

from pipesim.report.text.links import link_places, shows_links
from pipesim.report.text.printable import inert, printable

DEFAULT_WIDTH = 80  #: cells, where there is no terminal to ask
LEAST_WIDTH = 60  #: cells; below it a report keeps this width and the terminal breaks its lines
MOST_WIDTH = 1_000  #: cells, whatever COLUMNS says: a line of a report is filled to its width

GOOD, BAD, UNSURE = "✓", "✗", "?"

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
    (r"(?<!\S)\?(?= )", "bold yellow"),
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
