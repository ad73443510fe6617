"""The Python of a page: its blocks as one file, and what they print.

A page's ``python`` blocks are run in their order in one namespace. A block that is indented continues the function that
the block before began; where the next one is not, the function ends with ``return p``. A fenced block that follows the
marker ``<!-- prints -->`` holds what the blocks since the last such marker print, in the repository's root.

``docs_output.py`` fills in what is printed.
"""

import contextlib
import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple
from unittest import mock

ROOT = Path(__file__).resolve().parents[1]
_BLOCK = re.compile(
    r"^```python\n(?P<code>.*?)^```$|^<!-- prints -->\n```\n(?P<printed>.*?)^```$", re.DOTALL | re.MULTILINE
)
_RETURN = "    return p\n"
PAGES = ("docs/api.md", "docs/tutorial.md")


class Segment(NamedTuple):
    """Blocks that are run together; ``printed`` is where the page has what they print, None if it does not show it."""

    code: str
    printed: tuple[int, int] | None


def segments(page: str) -> Iterator[Segment]:
    """The page's Python, in order."""
    code = ""
    for block in _BLOCK.finditer(page):
        if block["code"] is None:
            yield Segment(_closed(code), block.span("printed"))
            code = ""
            continue
        if not block["code"].startswith(" "):
            code = _closed(code)
        code += block["code"] + "\n"
    if code:
        yield Segment(_closed(code), None)


def as_file(page: str) -> str:
    """The page's Python as one file."""
    return "\n".join(segment.code for segment in segments(page))


def filled(page: str, name: str) -> str:
    """The page, called ``name``, with what its Python prints today."""
    if "<!-- prints -->" not in page:
        return page
    namespace: dict[str, object] = {"__name__": "page"}
    done, at = "", 0
    for n, segment in enumerate(segments(page)):
        printed = _run(segment.code, f"{name}, part {n + 1}", namespace)
        if segment.printed is not None:
            done += page[at : segment.printed[0]] + printed
            at = segment.printed[1]
    return done + page[at:]


def _closed(code: str) -> str:
    """The code with the ``return p`` of a protocol's function that its last block left open."""
    lines = [line for line in code.splitlines() if line.strip()]
    head = next((line for line in reversed(lines) if not line.startswith(" ")), "")
    return_missing = head.endswith("-> Protocol:") and lines[-1] != _RETURN.rstrip()
    return code + _RETURN if return_missing else code


def _run(code: str, name: str, namespace: dict[str, object]) -> str:
    stream = io.StringIO()
    with (
        mock.patch.dict(os.environ, {"COLUMNS": "80", "NO_COLOR": "1"}),
        contextlib.chdir(ROOT),
        contextlib.redirect_stdout(stream),
    ):
        exec(compile(code, name, "exec"), namespace)  # the page itself
    lines = stream.getvalue().replace(f"{ROOT}/", "").strip("\n").split("\n")
    return "".join(f"{line.rstrip()}\n" for line in lines)
