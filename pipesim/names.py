"""What a name may be, wherever it comes from: a protocol's author, a flat program, a trace, a kernel's table.

Names reach terminals, workflow logs, CUDA headers and Promela models. So they are short and printable, and names that
are used unquoted in another language are identifiers. How a text is quoted in another language is its exporter's.
"""

from __future__ import annotations

import unicodedata
from reprlib import repr as brief

from pipesim.bounds import MAX_NAME, MAX_TEXT

_NO_TEXT = "it is not text"
_CUT = 40  #: characters of a wrong name that an error shows
_CONTROL = frozenset({"Cc", "Cs", "Zl", "Zp"})  #: control characters, halves of characters, separators of lines


def wrong_name(text: object) -> str:
    """What is wrong with a name, "" if nothing is: it is not empty, not long, and its characters are printable."""
    if not isinstance(text, str):
        return _NO_TEXT
    if not text:
        return "it is empty"
    if len(text) > MAX_NAME:
        return f"it has {len(text):,} characters; at most {MAX_NAME} are possible"
    return "" if text.isprintable() else _wrong_character([c for c in text if not c.isprintable()])


def wrong_identifier(text: object) -> str:
    """The same of a parameter's name: Python, C and Promela must be able to spell it."""
    wrong = wrong_name(text)
    return wrong or ("" if str(text).isidentifier() else "a letter or _ comes first, then letters, digits and _")


def wrong_text(text: object) -> str:
    """The same of a text in one line, such as a source line: it may be empty, and have any character of a path."""
    if not isinstance(text, str):
        return _NO_TEXT
    if len(text) > MAX_TEXT:
        return f"it has {len(text):,} characters; at most {MAX_TEXT:,} are possible"
    return "" if text.isprintable() else _wrong_character([c for c in text if unicodedata.category(c) in _CONTROL])


def quoted_name(text: object) -> str:
    """A wrong name as an error shows it: in quotes, its unprintable characters escaped, cut."""
    if not isinstance(text, str):
        return brief(text)
    return repr(text) if len(text) <= _CUT else f"{text[:_CUT]!r}..."


def readable(text: str) -> str:
    """A text that should be a name, as an error shows it: as it is if it can be one, else :func:`quoted_name`."""
    return quoted_name(text) if wrong_name(text) else text


def _wrong_character(wrong: list[str]) -> str:
    return f"it has the character U+{ord(wrong[0]):04X}" if wrong else ""
