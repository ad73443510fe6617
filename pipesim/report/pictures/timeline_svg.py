"""The timeline of a run as SVG: a row for each agent, what it does at which cycle, the same part as in the terminal."""

from __future__ import annotations

from itertools import groupby

from rich.cells import cell_len

from pipesim.report.pictures.drawing import LINE, MARGIN, TEXT_STYLE, box, label, px, svg_file
from pipesim.report.pictures.timeline import Moment, TimelineRows, timeline_rows
from pipesim.report.text.layout import middle, wrap
from pipesim.report.text.words import count, number
from pipesim.trace.activity import EMPTY, FULL, ISSUE, OTHER, WORK
from pipesim.trace.schema import Trace

COLUMNS = 840  #: of the picture: what lasted longest in each is drawn
_CELL = 7.3
_NAME = 22  #: cells of an agent's name
_ROW, _BAR = 22, 16  #: from one row to the next, and the height of its bar
_KINDS = {ISSUE: "issues", EMPTY: "room", FULL: "data", WORK: "works", OTHER: "others"}

_STYLE = TEXT_STYLE + (
    ".issues{fill:#33557f}.works{fill:#2d7a3e}.room{fill:#e3e7ec}.data{fill:#f0d9a8}.others{fill:#d9c3e6}"
    ".grid{stroke:#c3ccd6;stroke-width:1}.here{stroke:#b3261e;stroke-width:1.5}"
)


def timeline_svg(
    upper: Trace | None,
    lower: Trace | None = None,
    look_at: Moment | None = None,
    labels: tuple[str, str] = ("sim", "hw"),
) -> str:
    """The SVG file of one run, or of two above each other on one scale; "" if there is nothing to draw.

    ``look_at`` is marked, by the clock of the lower one; ``labels`` tell the rows of the two apart.
    """
    found = timeline_rows(upper, lower, COLUMNS, look_at, labels)
    if found is None:
        return ""
    left = MARGIN + _CELL * (min(_NAME, max(cell_len(title) for title, _ in found.rows)) + 1)
    cells = max(len(cells) for _, cells in found.rows)
    wide = max(1.0, COLUMNS / cells)
    width = left + cells * wide + MARGIN
    body, top = [], float(MARGIN + LINE)
    for line in wrap(found.heading, int((width - 2 * MARGIN) / _CELL)):
        body.append(label(MARGIN, top, line, "quiet"))
        top += LINE
    bottom = top + LINE + _ROW * len(found.rows)
    body += _axis(found, left, wide, top, bottom, width - MARGIN)
    for n, (title, activity) in enumerate(found.rows):
        y = top + LINE + _ROW * n
        body.append(label(MARGIN, y + _BAR - 3, middle(title, _NAME)))
        body += _bars(activity, left, wide, y)
    if found.here >= 0:
        x = px(left + found.here * wide)
        body.append(f'<line class="here" x1="{x}" y1="{px(top + LINE - 4)}" x2="{x}" y2="{px(bottom)}"/>')
    foot = [f"and {count(found.hidden, 'more agent')}"] if found.hidden else []
    body += [label(MARGIN, bottom + LINE, line, "quiet") for line in foot]
    bottom += LINE * len(foot)
    return svg_file(found.heading, _STYLE, "", [*body, *_legend(found, bottom + 8)], width, bottom + 8 + LINE + MARGIN)


def _bars(activity: str, left: float, wide: float, y: float) -> list[str]:
    """The spans of one agent: a bar for each run of alike cells, a low one for a wait."""
    body, at = [], 0
    for cell, alike in groupby(activity):
        length = len(list(alike))
        if cell in _KINDS:
            low = cell in (EMPTY, FULL, OTHER)
            height = _BAR / 2 if low else _BAR
            body.append(box(_KINDS[cell], left + at * wide, y + (_BAR - height) / 2, length * wide, height))
        at += length
    return body


def _axis(found: TimelineRows, left: float, wide: float, top: float, bottom: float, right: float) -> list[str]:
    body = [label(MARGIN, top + 8, f"{found.unit}s", "quiet")]
    for cell, tick in found.ticks:
        x = left + cell * wide
        body.append(f'<line class="grid" x1="{px(x)}" y1="{px(top - 2)}" x2="{px(x)}" y2="{px(bottom)}"/>')
        if x + _CELL * (len(number(tick)) + 1) <= right:
            body.append(label(x + 3, top + 8, number(tick), "quiet"))
    return body


def _legend(found: TimelineRows, y: float) -> list[str]:
    """What the colours mean that the picture has."""
    named = (
        (ISSUE, "issues"),
        (WORK, "works"),
        (EMPTY, f"waits for {found.empty}"),
        (FULL, f"waits for {found.full}"),
        (OTHER, f"waits for {found.other}"),
    )
    seen = {cell for _, activity in found.rows for cell in activity}
    body, x = [], float(MARGIN)
    for cell, text in named:
        if cell in seen:
            body.append(box(_KINDS[cell], x, y, 14, 12))
            body.append(label(x + 20, y + 11, text))
            x += 20 + _CELL * (cell_len(text) + 3)
    return body
