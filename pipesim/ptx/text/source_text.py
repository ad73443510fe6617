"""The text of a PTX file without its comments, which knows its line numbers and can say where it is wrong."""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import accumulate

from pipesim.errors import PtxError

MAX_CHARACTERS = 1 << 26  #: of a file: the largest that compilers wrote for one kernel had about a fortieth of it

_COMMENT = re.compile(r'//[^\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/|/\*|"[^"\n]*+"')
_QUOTED = 60  #: characters of the text in a message


class SourceText:
    """A file's text, its comments replaced by blanks so that every position and line stays.

    Raises PtxError for a text that is too large, has a byte that no text has, or ends inside a comment.
    """

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        self.text = text
        if len(text) > MAX_CHARACTERS:
            raise PtxError(
                f"the text has {len(text):,} characters",
                place=name,
                cause=f"a PTX file may have {MAX_CHARACTERS:,}",
                correction="give the PTX of one kernel",
            )
        self._starts = list(accumulate((len(line) + 1 for line in text.split("\n")[:-1]), initial=0))
        if (zero := text.find("\0")) >= 0:
            raise self.error(zero, "the file is not text", cause="it may be a cubin or an object file")
        self.text = _COMMENT.sub(self._blank, text) if "/" in text else text

    def _blank(self, found: re.Match[str]) -> str:
        """Blanks for a comment, with its line ends; a string stays."""
        text = found[0]
        if text == "/*":
            raise self.error(found.start(), "a comment is not closed", correction="end it with */")
        if text[0] == '"':
            return text
        return " " * len(text) if text[1] == "/" else re.sub(r"[^\n]", " ", text)

    def line(self, position: int) -> int:
        """The line, from 1 on, of a position in the text."""
        return bisect_right(self._starts, position)

    def error(self, position: int, fact: str, *, cause: str = "", correction: str = "") -> PtxError:
        """What is wrong at a position; without a cause, the text there is quoted."""
        begin = self._starts[self.line(position) - 1]
        there = self.text[position:].lstrip() if position < len(self.text) else ""
        quoted = " ".join(there[:_QUOTED].split("\n")[0].split())
        return PtxError(
            fact,
            place=f"{self.name}, line {self.line(position)}, column {position - begin + 1}",
            cause=cause or (f"it says {quoted!r}" if quoted else "the text ends there"),
            correction=correction,
        )

    def error_at(self, line: int, fact: str, *, cause: str = "", correction: str = "") -> PtxError:
        """What is wrong in a line."""
        begin = self._starts[min(line, len(self._starts)) - 1]
        first = len(self.text[begin:]) - len(self.text[begin:].lstrip())
        return self.error(begin + first, fact, cause=cause, correction=correction)
