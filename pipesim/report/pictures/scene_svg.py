"""Runs as SVG, for papers and issues: a row for each track, arrows from what released a wait last, one axis for all.

What is drawn is the picture model's; ``between`` chooses a part of the time, and only arrows of few waits are drawn.
"""

from collections.abc import Iterable, Iterator

from rich.cells import cell_len

from pipesim.report.pictures.drawing import LINE, MARGIN, TEXT_STYLE, arrowhead, box, label, px, svg_file
from pipesim.report.text.layout import middle, wrap
from pipesim.report.text.words import count, number
from pipesim.scene.parts import OPEN, RunScene, Scene, SceneSlice
from pipesim.trace.activity import SliceKind

WIDTH = 840  #: of the time axis, in pixels
MOST_ARROWS = 60  #: more of them hide the picture
_CELL, _NAME = 7.3, 26  #: width of a character, and cells of a track's name
_ROW, _BAR = 22, 16
_TICKS = 8

_COLOURS = {
    SliceKind.DATA: "#f0d9a8",
    SliceKind.ROOM: "#e3e7ec",
    SliceKind.OTHER: "#d9c3e6",
    SliceKind.WORK: "#2d7a3e",
    SliceKind.ISSUE: "#33557f",
    SliceKind.COPY: "#7cc4c4",
    SliceKind.MMA: "#dd9bb8",
}
_STYLE = (
    TEXT_STYLE
    + "".join(f".{kind.name.lower()}{{fill:{colour}}}" for kind, colour in _COLOURS.items())
    + ".grid{stroke:#c3ccd6;stroke-width:1}.here{stroke:#b3261e;stroke-width:1.5}.open{fill:#b3261e}"
    ".frees{fill:none;stroke:#1f5fae;stroke-width:1.2}"
)


def scene_svg(
    scene: Scene, cta: int | None = None, between: tuple[int, int] | None = None, here: int | None = None
) -> str:
    """The SVG file of a scene. ``cta``: the one that is drawn (None: the lowest of each run).

    ``between``: the picoseconds to draw, None for all; ``here``: a time that is marked.
    """
    first, end = between or (0, max([1, *(run.end for run in scene.runs)]))
    axis = _Axis(first, max(end, first + 1))
    body: list[str] = []
    top = float(MARGIN + LINE)
    for line in wrap(scene.title, int((axis.width - 2 * MARGIN) / _CELL)):
        body.append(label(MARGIN, top, line, "title"))
        top += LINE + 4
    ticks_at = top
    top += LINE
    kinds: dict[SliceKind, None] = {}
    for run in scene.runs:
        drawn, top = _run(run, cta, axis, top, kinds)
        body += drawn
    body[:0] = list(_ticks(axis, ticks_at, top))
    if here is not None:
        body.append(_upright("here", axis.x(here), ticks_at + 2, top))
    foot, bottom = _foot(scene, kinds, axis, top)
    return svg_file(
        scene.title, _STYLE, arrowhead("frees", "#1f5fae"), [*body, *foot], axis.width, bottom + MARGIN
    )  # fmt: skip


class _Axis:
    """Where times are."""

    def __init__(self, first: int, end: int) -> None:
        self.first, self.end = first, end
        self.left = MARGIN + _CELL * (_NAME + 1)
        self.width = self.left + WIDTH + MARGIN

    def x(self, at: int) -> float:
        """The place of a time, at the border if it is outside."""
        return self.left + WIDTH * (min(max(at, self.first), self.end) - self.first) / (self.end - self.first)


def _run(
    run: RunScene, cta: int | None, axis: _Axis, top: float, kinds: dict[SliceKind, None]
) -> tuple[list[str], float]:
    """The rows of one CTA of a run, and where they end."""
    ctas = sorted({track.cta for track in run.tracks})
    chosen = cta if cta in ctas else min(ctas, default=0)
    rows: dict[int, list[SceneSlice]] = {n: [] for n, track in enumerate(run.tracks) if track.cta == chosen}
    for each in run.slices:
        end = run.end if each.end == OPEN else each.end
        if each.track in rows and end >= axis.first and each.begin <= axis.end:
            rows[each.track].append(each)
    more = f", CTA {chosen} of {count(len(ctas), 'CTA')}" if len(ctas) > 1 else ""
    body = [label(MARGIN, top + LINE, run.label + more, "name")]
    top += LINE + 8
    feet = {}
    for n, mine in rows.items():
        if not mine:
            continue
        feet[n] = top + _BAR / 2
        body.append(label(MARGIN, top + _BAR - 3, middle(run.tracks[n].name, _NAME)))
        body += _bars(mine, run.end, axis, top)
        kinds.update(dict.fromkeys(each.kind for each in mine))
        top += _ROW
    return body + list(_arrows(run, feet, axis)), top + 6


def _bars(mine: Iterable[SceneSlice], end: int, axis: _Axis, y: float) -> Iterator[str]:
    """The slices of one track: a low bar for a wait; of those that would share a pixel only the first."""
    until = -1.0
    for each in mine:
        left, right = axis.x(each.begin), axis.x(end if each.end == OPEN else each.end)
        width = max(1.0, right - left)
        if left + width <= until + 0.5:
            continue
        until = left + width
        height = _BAR / 2 if each.kind.waits else _BAR
        yield box(each.kind.name.lower(), left, y + (_BAR - height) / 2, width, height)
        if each.end == OPEN:
            yield box("open", left, y + (_BAR - height) / 2, width, 2)


def _arrows(run: RunScene, feet: dict[int, float], axis: _Axis) -> Iterator[str]:
    """From what came last to the wait that it released; none where there are many."""
    shown = [
        arrow
        for arrow in run.arrows
        if arrow.last
        and arrow.at > run.slices[arrow.target].begin  # a wait that found its phase complete was not held up
        and axis.first <= arrow.to <= axis.end
        and run.slices[arrow.source].track in feet
        and run.slices[arrow.target].track in feet
    ]
    if len(shown) > MOST_ARROWS:
        return
    for arrow in shown:
        y1, y2 = feet[run.slices[arrow.source].track], feet[run.slices[arrow.target].track]
        yield (
            f'<path class="frees" d="M{px(axis.x(arrow.at))} {px(y1)}L{px(axis.x(arrow.to))} {px(y2)}" '
            'marker-end="url(#frees)"/>'
        )


def _ticks(axis: _Axis, top: float, bottom: float) -> Iterator[str]:
    step = 1
    while (axis.end - axis.first) / step > _TICKS:
        step *= 5 if str(step).startswith("2") else 2
        step = int(f"1{'0' * (len(str(step)) - 1)}") if str(step).startswith("4") else step
    at = -(-axis.first // step) * step
    while at <= axis.end:
        x = axis.x(at)
        yield _upright("grid", x, top + 2, bottom)
        ns = f"{at / 1000:,.0f} ns" if step >= 1000 else f"{number(at)} ps"
        if x + _CELL * (len(ns) + 1) <= axis.width - MARGIN:
            yield label(x + 3, top + 10, ns, "quiet")
        at += step


def _upright(kind: str, x: float, top: float, bottom: float) -> str:
    return f'<line class="{kind}" x1="{px(x)}" y1="{px(top)}" x2="{px(x)}" y2="{px(bottom)}"/>'


def _foot(scene: Scene, kinds: dict[SliceKind, None], axis: _Axis, top: float) -> tuple[list[str], float]:
    """What the colours mean that the picture has, and the notes of its runs."""
    body, x, y = [], float(MARGIN), top + 8
    for kind in SliceKind:
        if kind not in kinds:
            continue
        width = 20 + _CELL * (cell_len(kind.value) + 2)
        if x + width > axis.width:
            x, y = float(MARGIN), y + LINE + 4
        body += [box(kind.name.lower(), x, y, 14, 12), label(x + 20, y + 11, kind.value)]
        x += width
    y += LINE + 8
    for run in scene.runs:
        for note in run.notes:
            for line in wrap(f"{run.label}: {note}", int((axis.width - 2 * MARGIN) / _CELL)):
                body.append(label(MARGIN, y + LINE - 4, line, "quiet"))
                y += LINE
    return body, y
