"""A protocol's diagram as SVG text: the lanes of the terminal, with the words of each row beside it."""

from collections.abc import Sequence
from dataclasses import dataclass
from xml.sax.saxutils import quoteattr

from rich.cells import cell_len

from pipesim.explain.anatomy.parts import Anatomy
from pipesim.report.pictures import show_words as words
from pipesim.report.pictures.drawing import (
    CELL,
    LINE,
    MARGIN,
    TEXT_STYLE,
    arrowhead,
    box,
    label,
    px,
    svg_file,
    xml_text,
)
from pipesim.report.pictures.lanes import Edge, LaneRow, Lanes, lanes_of
from pipesim.report.text.layout import middle, wrap, wrap_parts
from pipesim.report.text.words import parameters

_TEXT_CELLS = 72  #: characters of a line of words
_LEAST_LANE = 110
_ASIDE = 7  #: how much lower an edge to or from another CTA runs, so that it hides no other

_STYLE = TEXT_STYLE + (
    ".role{fill:#e8eef7;stroke:#33557f}.peers{fill:#f4ecdf;stroke:#8a5a14;stroke-dasharray:4 3}"
    ".life{stroke:#c3ccd6}.edge{fill:none;stroke:#1f5fae;stroke-width:1.6}.tile{stroke:#2d7a3e;stroke-width:3}"
    ".remote{stroke-dasharray:5 4}.barrier-mark{fill:#1f5fae}.tile-mark{fill:#2d7a3e}.waits{fill:#fff;stroke:#b3261e}"
)


@dataclass(frozen=True)
class _Frame:
    """Where things are: the middle of each lane, the left end of the words, and the whole width."""

    centres: tuple[float, ...]
    lane: float
    words: float
    width: float


def show_svg(anatomy: Anatomy) -> str:
    """The SVG file of a CTA, the same text every time."""
    lanes = lanes_of(anatomy)
    beside = _row_words(anatomy)
    frame = _frame(lanes, [part for role in anatomy.roles for part in words.role_parts(role)])
    body, bottom = _head(anatomy, lanes, frame)
    top = bottom
    rows = []
    for row, lines in zip(lanes.rows, beside, strict=True):
        rows += _row(row, lines, lanes, frame, bottom)
        bottom += LINE * max(len(lines), 1) + 10
    body += [
        f'<line class="life" x1="{px(x)}" y1="{px(top - 4)}" x2="{px(x)}" y2="{px(bottom)}"'
        f"{' stroke-dasharray=' + quoteattr('2 4') if n == lanes.peers else ''}/>"
        for n, x in enumerate(frame.centres)
    ]
    foot, bottom = _foot(anatomy, frame, bottom + LINE)
    return _file(anatomy, [*body, *rows, *foot], frame.width, bottom + MARGIN)


def _file(anatomy: Anatomy, body: Sequence[str], width: float, height: float) -> str:
    arrows = arrowhead("signal", "#1f5fae") + arrowhead("data", "#2d7a3e")
    return svg_file(anatomy.name, _STYLE, arrows, body, width, height)


def _frame(lanes: Lanes, under: Sequence[str]) -> _Frame:
    """Lanes wide enough for the titles of the roles and for what is written under them."""
    name = max((cell_len(row.label) for row in lanes.rows), default=0)
    note = max((cell_len(row.note) for row in lanes.rows), default=0)
    left = MARGIN + CELL * (max(name, note) + 2)
    titles = [*(each.title for each in lanes.lanes), *under]
    lane = max([_LEAST_LANE, *(CELL * (cell_len(title) + 3) for title in titles)])
    centres = tuple(left + lane * (n + 0.5) for n in range(len(lanes.lanes)))
    beside = left + lane * len(lanes.lanes) + 12
    return _Frame(centres, lane, beside, beside + CELL * _TEXT_CELLS + MARGIN)


def _head(anatomy: Anatomy, lanes: Lanes, frame: _Frame) -> tuple[list[str], float]:
    """The name, the parameters and the boxes of the roles; where they end."""
    y = MARGIN + LINE
    parts = parameters(anatomy.params, tuple((role.name, len(role.warps)) for role in anatomy.roles))
    if anatomy.ctas > 1:
        parts.append(words.place_words(anatomy))
    body = [label(MARGIN, y, anatomy.name, "title")]
    for line in wrap_parts(parts, int((frame.width - 2 * MARGIN) / CELL)) if parts else []:
        y += LINE
        body.append(label(MARGIN, y, line, "quiet"))
    y += LINE
    under = [words.role_parts(role) for role in anatomy.roles] + ([[]] if lanes.peers >= 0 else [])
    height = LINE * (1 + max((len(parts) for parts in under), default=0)) + 10
    for n, (lane, parts) in enumerate(zip(lanes.lanes, under, strict=True)):
        x, kind = frame.centres[n], "peers" if n == lanes.peers else "role"
        body.append(box(kind, x - frame.lane / 2 + 4, y, frame.lane - 8, height, radius=5))
        body.append(label(x, y + LINE, lane.title, "name", middle_of=True))
        room = int((frame.lane - 8) / CELL)
        body += [
            label(x, y + LINE * (2 + m), middle(part, room), "quiet", middle_of=True) for m, part in enumerate(parts)
        ]
    return body, y + height + 12


def _row(row: LaneRow, lines: Sequence[str], lanes: Lanes, frame: _Frame, top: float) -> list[str]:
    """One group of barriers or one tile: its label, its edges, its marks and its words."""
    y = top + LINE
    body = [f'<g class="{"tile-row" if row.is_tile else "barrier-row"}">']
    body.append(label(MARGIN, y, row.label, "name"))
    if row.note:
        body.append(label(MARGIN, y + LINE - 2, row.note, "quiet"))
    body += [_edge(edge, row, lanes, frame, y - 4 + (_ASIDE if edge.remote else 0)) for edge in row.edges]
    reached = {edge.target for edge in row.edges}
    for lane in row.targets:
        if lane not in reached:
            body.append(f'<circle class="waits" cx="{px(frame.centres[lane])}" cy="{px(y - 4)}" r="4.5"/>')
    for lane in row.sources:
        x = frame.centres[lane]
        if row.is_tile:
            body.append(f'<rect class="tile-mark" x="{px(x - 5)}" y="{px(y - 9)}" width="10" height="10"/>')
        else:
            body.append(f'<circle class="barrier-mark" cx="{px(x)}" cy="{px(y - 4)}" r="4.5"/>')
    body += [label(frame.words, y + n * LINE, line) for n, line in enumerate(lines)]
    return [*body, "</g>"]


def _edge(edge: Edge, row: LaneRow, lanes: Lanes, frame: _Frame, y: float) -> str:
    """A line with an arrow at who waits or reads; a loop if it is the same role."""
    one, two = frame.centres[edge.source], frame.centres[edge.target]
    if edge.source == edge.target:
        start, out, back = (
            f"M{px(one + 5)} {px(y - 3)}",
            px(one + 30),
            f"{px(one + 6)} {px(y + 3)}",
        )
        path = f"{start}C{out} {px(y - 14)} {out} {px(y + 14)} {back}"
    else:
        end = two + (-6 if one < two else 6)
        path = f"M{px(one)} {px(y)}H{px(end)}"
    kind = "edge" + (" tile" if row.is_tile else "") + (" remote" if edge.remote else "")
    source, target = lanes.lanes[edge.source].name, lanes.lanes[edge.target].name
    arrow = "data" if row.is_tile else "signal"
    return (
        f'<path class="{kind}" data-from={quoteattr(xml_text(source, plain=True))} '
        f"data-to={quoteattr(xml_text(target, plain=True))} data-over={quoteattr(xml_text(row.label, plain=True))} "
        f'marker-end="url(#{arrow})" d="{path}"/>'
    )


def _row_words(anatomy: Anatomy) -> list[list[str]]:
    """The words of each row, in the order of the rows."""
    roles, cta = anatomy.roles, anatomy.cta
    found = []
    for group in anatomy.groups:
        lines = wrap_parts(words.given_parts(group, roles, cta), _TEXT_CELLS)
        for part in words.sent_parts(group, roles, cta):
            lines += wrap(part, _TEXT_CELLS)
        found.append([*lines, *wrap(f"→ {words.waits_words(group, roles, cta)}", _TEXT_CELLS)])
    for tile in anatomy.tiles:
        parts = [*words.tile_parts(tile), *words.use_parts(tile.writers, "written by", roles, cta)]
        lines = wrap_parts(parts, _TEXT_CELLS)
        found.append([*lines, *wrap_parts(words.use_parts(tile.readers, "read by", roles, cta), _TEXT_CELLS)])
    return found


def _foot(anatomy: Anatomy, frame: _Frame, top: float) -> tuple[list[str], float]:
    """Named barriers, totals and the other CTAs; where they end."""
    cells = int((frame.width - 2 * MARGIN) / CELL)
    lines = []
    for meeting in anatomy.meetings:
        parts = words.meeting_parts(meeting, anatomy.roles, anatomy.cta)
        lines += wrap_parts(parts, cells, f"{words.meeting_label(meeting)}: ", "  ")
    lines += wrap_parts(words.total_parts(anatomy.totals), cells, "in all: ", "  ")
    if anatomy.others:
        lines += wrap_parts(words.other_parts(anatomy.others), cells, "other CTAs: ", "  ")
    return [label(MARGIN, top + n * LINE, line) for n, line in enumerate(lines)], top + len(lines) * LINE
