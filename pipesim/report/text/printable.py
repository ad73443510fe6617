"""Text at the edge: what a name from a file, a program or a compiler may do to a terminal or a CI system is nothing.

Every line that pipesim prints for a person goes through :func:`inert`. Files for other tools are quoted by their
exporters, and JSON by its own rules.
"""

from __future__ import annotations

import re

_BEGINS_COMMAND = re.compile(r"^(\s*)::")  # GitHub: a line whose first word begins with two colons
_HOLDS_COMMAND = re.compile(r"##(?=\w*\[)")  # GitHub's earlier form, Azure (##vso[), TeamCity (##teamcity[): anywhere


def printable(line: str) -> str:
    """One line without characters that move the cursor, colour, reorder or end it: each becomes a question mark.

    These are all that Unicode calls control, format, surrogate, private, unassigned, or white space but for the space.
    """
    return line if line.isprintable() else "".join(c if c.isprintable() else "?" for c in line)


def inert(line: str) -> str:
    """One line that is printable and that no CI system takes for a command, such as ``::error::`` of GitHub."""
    line = printable(line)
    if "::" in line:
        line = _BEGINS_COMMAND.sub(r"\1: :", line)
    return _HOLDS_COMMAND.sub("# #", line) if "##" in line else line


def inert_text(text: str) -> str:
    """The same for each line of a text; tabs become spaces."""
    return "\n".join(inert(line.expandtabs(4)) for line in text.split("\n"))
