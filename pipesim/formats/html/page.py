"""The page: a shell, a style, two scripts, and everything that is shown as one JSON document inside it.

Nothing is fetched: the page's own policy forbids it. Text of others gets in through :func:`script_json` alone, and the
scripts show it as text, never as markup.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import TYPE_CHECKING, Any, TypeVar

from pipesim.scene.parts import CounterKind, RunScene, SceneSlice
from pipesim.trace.activity import SliceKind

if TYPE_CHECKING:
    from pipesim.scene.story import AgentAt, BarrierAt, Story


_Any = TypeVar("_Any")
_COUNTED = {CounterKind.PHASE: "phase", CounterKind.BYTES: "bytes", CounterKind.SLOTS: "slots in use"}
_KINDS = {id(kind): n for n, kind in enumerate(SliceKind)}  #: the hash of a member is computed in Python


class _Texts:
    """Each text once, by its number."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}

    def __call__(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def encoded_run(run: RunScene) -> dict[str, object]:
    """A run: its tracks, and a list for each member of its slices and arrows. An open end is -1; no phase is -2."""
    texts = _Texts()
    tracks, kinds, names, begins, ends, _, _, _, passes, values, phases, late, errors = _members(run.slices)
    sources, targets, *_ = zip(*run.arrows, strict=True) if run.arrows else ((), ())
    return {
        "label": run.label,
        "notes": list(run.notes),
        "end": run.end,
        "tracks": [
            {
                "cta": track.cta,
                "place": track.place,
                "name": track.title,
                "flight": track.kind is not None,
            }
            for track in run.tracks
        ],
        "slices": {
            "track": tracks,
            "kind": [_KINDS[id(kind)] for kind in kinds],
            "name": [texts(name) for name in names],
            "begin": begins,
            "end": ends,
            "phase": [-2 if phase is None else phase for phase in phases],
            "iteration": passes,
            "value": values,
            "late": list(map(int, late)),
            "error": errors,
        },
        "arrows": {
            "source": sources,
            "target": targets,
        },
        "counters": [
            {
                "cta": counter.cta,
                "name": f"{counter.name} {_COUNTED[counter.kind]}",
                "phase": counter.kind is CounterKind.PHASE,
                "at": [at for at, _ in counter.points],
                "value": [value for _, value in counter.points],
            }
            for counter in run.counters
        ],
        "texts": list(texts.numbers),
    }


def _members(slices: Sequence[SceneSlice]) -> tuple[tuple[Any, ...], ...]:
    """The members of all slices, each by itself."""
    return tuple(zip(*slices, strict=True)) if slices else ((),) * len(SceneSlice._fields)


def encoded_story(story: Story) -> dict[str, object]:
    """A story: the state at its start, and what each step changes. A barrier is [expected, pending, tx, done]."""
    texts = _Texts()
    agents: tuple[AgentAt, ...] = story.start
    barriers: tuple[BarrierAt | None, ...] = (None,) * len(story.barriers)
    steps = []
    names = {name: n for n, name in enumerate(story.agents)}
    for step in story.steps:
        steps.append(
            {
                "number": step.line.number,
                "agent": names[step.line.agent],
                "what": step.line.what,
                "note": step.line.note,
                "line": step.line.line,
                "part": step.line.part.name.lower(),
                "agents": [[n, *_agent(now, texts)] for n, now in _differences(agents, step.agents)],
                "barriers": [[n, now and list(now)] for n, now in _differences(barriers, step.barriers)],
                "flights": [texts(said) for said in step.flights],
            }
        )  # fmt: skip
        agents, barriers = step.agents, step.barriers
    return {
        "agents": list(story.agents),
        "barriers": list(story.barriers),
        "start": [_agent(agent, texts) for agent in story.start],
        "steps": steps,
        "leftOut": story.left_out,
        "texts": list(texts.numbers),
    }


def _differences(before: Sequence[_Any], after: Sequence[_Any]) -> list[tuple[int, _Any]]:
    """What is different, with its number."""
    return [(n, now) for n, (was, now) in enumerate(zip(before, after, strict=True)) if was != now]


def _agent(agent: AgentAt, texts: _Texts) -> list[int]:
    return [texts(agent.standing.value), texts(agent.next), texts(agent.line)]


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
