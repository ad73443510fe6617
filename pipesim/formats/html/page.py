"""The page: a shell, a style, two scripts, and everything that is shown as one JSON document inside it.

Nothing is fetched: the page's own policy forbids it. Text of others gets in through :func:`script_json` alone, and the
scripts show it as text, never as markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING

from pipesim.formats.html.columns import encoded_run, encoded_story
from pipesim.scene.parts import RunScene
from pipesim.trace.activity import SliceKind

if TYPE_CHECKING:  # as in encoded
    from pipesim.scene.story import Story

_ASSETS = ("text.js", "timeline.js", "story.js", "page.js")

SourceText = Sequence[tuple[int, str]]  #: lines of a file: number, text


@dataclass(frozen=True)
class Page:
    """What a page shows, from top to bottom; parts that are empty are left out.

    ``report``: lines of text at a fixed width. ``sources``: around each ``file:line`` of the story, its lines.
    ``pictures``: SVG of this program.
    """

    title: str
    runs: Sequence[RunScene] = ()
    story: Story | None = None
    claim: str = ""
    report: Sequence[str] = ()
    sources: Mapping[str, SourceText] | None = None
    pictures: Sequence[str] = ()


def page_parts(page: Page) -> Iterator[bytes]:
    """The file, in parts."""
    yield _HEAD.encode()
    yield f"<style>\n{_asset('page.css')}</style>\n</head>\n{_BODY}".encode()
    yield "".join(f"<figure>{each}</figure>\n" for each in page.pictures).encode()
    yield b'<script type="application/json" id="data">'
    document = {
        "title": page.title,
        "claim": page.claim,
        "report": list(page.report),
        "kinds": [{"name": kind.name.lower(), "text": kind.value} for kind in SliceKind],
        "sources": {place: [list(line) for line in text] for place, text in (page.sources or {}).items()},
        "story": encoded_story(page.story) if page.story is not None else None,
    }
    head = script_json(document)
    yield head[:-1].encode() + b',"runs":['
    for n, run in enumerate(page.runs):
        yield (b"," if n else b"") + script_json(encoded_run(run)).encode()
    yield b"]}</script>\n"
    scripts = "".join(_asset(name) for name in _ASSETS)
    yield f"<script>\n'use strict';\n{{\n{scripts}}}\n</script>\n</body>\n</html>\n".encode()


def script_json(value: object) -> str:
    """``value`` as JSON that can stand in a script element: no character of it can end the element or the string."""
    text = json.dumps(value, separators=(",", ":"))  # ASCII: neither U+2028 nor any other line end is left
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _asset(name: str) -> str:
    return (files("pipesim.formats.html") / "assets" / name).read_text(encoding="utf-8")


_HEAD = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width,initial-scale=1">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none';style-src 'unsafe-inline';script-src 'unsafe-inline'">
<meta name="generator" content="pipesim export --to html">
<title>pipesim</title>
"""

_BODY = """\
<body>
<header><h1 id="title"></h1><button id="theme" type="button">colours: automatic</button></header>
<noscript><p>The drawings of this page need JavaScript. Nothing is loaded from the network.</p></noscript>
<main id="main"></main>
"""
