"""Names in a Promela model: they are written in comments alone, and this is the one function that quotes them.

A model may hold C (``c_code``), which the verifier then runs: a name that ended its comment would be code. SPIN itself
(6.5, with ``-Pcat``) looks for quotes, braces and ``$`` also in comments, and copies a line into an array.
"""

from __future__ import annotations

import string

_KEPT = frozenset(string.ascii_letters + string.digits + " _.,:;=+-*/@()[]<>|&!?%~^")
_LONGEST = 1_000  #: characters of a text


def comment_text(text: str) -> str:
    """``text`` as a comment can hold it: ASCII of a limited length, in which nothing ends or begins.

    White space becomes a space, and any other character that is not kept a question mark.
    """
    cut = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
    plain = "".join(c if c in _KEPT else " " if c.isspace() else "?" for c in cut)
    return plain.replace("*/", "* /").replace("/*", "/ *")


def comment(text: str) -> str:
    """A comment of one line."""
    return f"/* {comment_text(text)} */"
