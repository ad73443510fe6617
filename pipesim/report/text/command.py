"""A command line that is to be copied into a shell: over several lines where it is long, and no word cut."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from rich.cells import cell_len

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
