"""Command lines with what is said of them, as text files beside the tests have them."""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple


class CommandLine(NamedTuple):
    """A command line, its exit code, the lines that it prints, and what leads it ("" or "slow")."""

    words: str
    code: int
    said: list[str]
    note: str = ""


def command_lines(file: str) -> Iterator[CommandLine]:
    """The blocks of a file in this folder: ``2 pipesim run xyzzy``, and below it, indented, what is printed."""
    text = Path(__file__).with_name(file).read_text(encoding="utf-8")
    for block in text.strip().split("\n\n"):
        head, *said = block.splitlines()
        before, _, words = head.partition(" pipesim ")
        note, _, code = before.rpartition(" ")
        yield CommandLine(words, int(code), [line.removeprefix("    ") for line in said], note)
