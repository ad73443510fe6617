"""Places of source lines as hyperlinks of a terminal: the control sequence OSC 8 around ``kernel.cu:49``."""

from __future__ import annotations

import re
from pathlib import Path

from rich.console import Console
from rich.style import Style
from rich.text import Text

from pipesim.inputs import is_source
from pipesim.ptx.source_files import path_of

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
    return next((path for path in candidates if is_source(path)), None)
