"""A counterexample as SVG: lanes side by side, time downwards, an arrow from what completes a phase to who saw it.

The steps are those of the terminal's report, the others folded. A lane is an agent, or a role where agents are many.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from pipesim.answers.views.check import Counterexample
from pipesim.prove.counterexample.words import Line, Part
from pipesim.report.findings.brief import in_short
from pipesim.report.findings.schedule import (
    Fold,
    ScheduleRows,
    in_lane,
    place_name,
    role_lane,
    schedule_rows,
    step_words,
)
from pipesim.report.pictures.drawing import LINE, MARGIN, TEXT_STYLE, arrowhead, box, label, px, svg_file
from pipesim.report.text.layout import middle, wrap, wrap_parts
from pipesim.report.text.words import number, parameters

MOST_AGENTS = 6  #: that have lanes of their own
_CELL = 7.3  #: width of a character: fonts differ, and a text must not leave its box
_LEAST, _MOST = 18, 30  #: cells of a lane's text
_FEW, _MOST_OF_FEW = 3, 34  #: so few lanes have room for more
_PAD = 7  #: between a box and its text
_GAP = 10  #: between two rows
_GUTTER = 18  #: between two lanes
_PHASE = re.compile(
    r"(?P<verb>.* )?phase (?P<phase>\d+)"
)  # of a step's note: an arrival that ends one, a wait that saw

_STYLE = TEXT_STYLE + (
    ".agent{fill:#e8eef7;stroke:#33557f}.life{stroke:#c3ccd6}.step{fill:#fff;stroke:#8b97a5}"
    ".focus{fill:#eaf2fc;stroke:#1f5fae}.bad{fill:#fdeceb;stroke:#b3261e;stroke-width:1.6}"
    ".done{fill:#f2f4f6;stroke:#c3ccd6}.fold{fill:#f7f8fa;stroke:none}.wrong{fill:#b3261e;font-weight:bold}"
    ".frees{fill:none;stroke:#1f5fae;stroke-width:1.4}"
)


@dataclass(frozen=True)
class _Sheet:
    """Where things are: the left end of each lane by its title, a lane's width, the source lines, the whole width."""

    lefts: dict[str, float]
    titles: dict[str, str]  #: the lane of each agent
    lane: float
    places: float
    width: float

    @property
    def cells(self) -> int:
        return int((self.lane - 2 * _PAD) / _CELL)


def schedule_svg(shown: Counterexample) -> str:
    """The SVG file of a counterexample, the same text every time."""
    found = schedule_rows(shown)
    frame = _frame(found, shown)
    body, top = _head(shown, frame)
    drawn: list[str] = []
    ends: dict[int, tuple[float, float]] = {}  # of each step its top and its bottom
    y = top
    for row in found.rows:
        if isinstance(row, Fold):
            drawn += _fold(row, frame, y)
            y += LINE + _GAP
            continue
        lines = wrap(in_lane(row.agent, frame.titles[row.agent], step_words(row)), frame.cells, "", "  ")
        height = LINE * len(lines) + 8
        kind = "bad" if row.number == found.wrong else "focus" if row.part is Part.FOCUS else "step"
        drawn += _step(row, lines, kind, frame, y)
        ends[row.number] = (y, y + height)
        y += height + _GAP
    standing, bottom = _final_states(shown, frame, y)
    lives = [
        f'<line class="life" x1="{px(x + frame.lane / 2)}" y1="{px(top - 8)}" x2="{px(x + frame.lane / 2)}" '
        f'y2="{px(bottom - _GAP)}"/>'
        for x in frame.lefts.values()
    ]
    arrows = _arrows(found.steps, ends, frame)
    defs = arrowhead("frees", "#1f5fae")
    title = f"the schedule that leads to {in_short(shown.finding)}"
    return svg_file(title, _STYLE, defs, [*body, *lives, *drawn, *standing, *arrows], frame.width, bottom + MARGIN)


def _frame(found: ScheduleRows, shown: Counterexample) -> _Sheet:
    steps = found.steps
    many = len(found.agents) > MOST_AGENTS
    titles = {agent: role_lane(agent) if many else agent for agent in found.agents}
    said = [in_lane(step.agent, titles[step.agent], step_words(step)) for step in steps]
    said += [*titles.values(), *shown.standing.values()]
    lanes = list(dict.fromkeys(titles.values()))
    most = _MOST_OF_FEW if len(lanes) <= _FEW else _MOST
    lane = min(most, max([_LEAST, *map(cell_len, said)])) * _CELL + 2 * _PAD
    left = MARGIN + _CELL * (max([4, *(len(number(step.number)) for step in steps)]) + 1)
    lefts = {title: left + n * (lane + _GUTTER) for n, title in enumerate(lanes)}
    places = left + len(lanes) * (lane + _GUTTER)
    widest = max((cell_len(place_name(step)) for step in steps), default=0)
    return _Sheet(lefts, titles, lane, places, max(places + widest * _CELL + MARGIN, 420))


def _head(shown: Counterexample, frame: _Sheet) -> tuple[list[str], float]:
    """What fails, at which sizes, and the boxes of the lanes; where they end."""
    y = float(MARGIN + LINE)
    cells = int((frame.width - 2 * MARGIN) / _CELL)
    body = []
    for line in wrap(in_short(shown.finding), cells):
        body.append(label(MARGIN, y, line, "wrong"))
        y += LINE
    for line in wrap_parts(["smallest", *parameters(shown.at, ())], cells) if shown.at else []:
        body.append(label(MARGIN, y, line, "quiet"))
        y += LINE
    body.append(label(MARGIN, y + 13, "move", "quiet"))
    for title, x in frame.lefts.items():
        body.append(box("agent", x, y - 6, frame.lane, LINE + 12, radius=5))
        body.append(label(x + frame.lane / 2, y + 12, middle(title, frame.cells), "name", middle_of=True))
    return body, y + LINE + 22


def _step(step: Line, lines: Sequence[str], kind: str, frame: _Sheet, y: float) -> list[str]:
    """One step: its number, its box in its lane, its source line."""
    x = frame.lefts[frame.titles[step.agent]]
    body = [label(MARGIN, y + LINE, number(step.number), "quiet")]
    body.append(box(kind, x, y, frame.lane, LINE * len(lines) + 8, radius=4))
    body += [label(x + _PAD, y + LINE * (n + 1), line) for n, line in enumerate(lines)]
    if place_name(step):
        body.append(label(frame.places, y + LINE, place_name(step), "quiet"))
    return body


def _fold(fold: Fold, frame: _Sheet, y: float) -> list[str]:
    """A band over all lanes that says what was left out."""
    left = min(frame.lefts.values(), default=float(MARGIN))
    room = int((frame.places - left) / _CELL)
    return [
        label(MARGIN, y + LINE - 2, "…", "quiet"),
        box("fold", left, y, frame.places - _GUTTER - left, LINE + 2),
        label(left + _PAD, y + LINE - 2, middle(fold.text, room), "quiet"),
    ]


def _final_states(shown: Counterexample, frame: _Sheet, y: float) -> tuple[list[str], float]:
    """Where the schedule leaves the agents, at the foot of their lanes; where that ends."""
    feet = dict.fromkeys(frame.lefts, y)
    body = []
    for agent, title in frame.titles.items():
        stands = shown.standing.get(agent, "")
        if not stands:
            continue
        lines = wrap(in_lane(agent, title, stands), frame.cells, "", "  ")
        height, top = LINE * len(lines) + 8, feet[title]
        waits = any(blocked.agent == agent for blocked in getattr(shown.finding, "blocked", ()))
        body.append(box("bad" if waits else "done", frame.lefts[title], top, frame.lane, height, radius=4))
        body += [label(frame.lefts[title] + _PAD, top + LINE * (n + 1), line) for n, line in enumerate(lines)]
        feet[title] = top + height + 4
    return body, max([*feet.values(), y])


def _arrows(steps: Sequence[Line], ends: dict[int, tuple[float, float]], frame: _Sheet) -> list[str]:
    """From each step that completes a phase to the waits of other lanes that saw it complete."""
    completed: dict[tuple[str, int, str], Line] = {}
    body = []
    for step in steps:
        found = _PHASE.fullmatch(step.note)
        if found is None or not step.barrier:
            continue
        key = (step.barrier, step.stage, found["phase"])
        if found["verb"]:
            completed[key] = step
        elif key in completed and frame.titles[completed[key].agent] != frame.titles[step.agent]:
            body.append(_arrow(completed[key], step, ends, frame))
    return body


def _arrow(source: Line, target: Line, ends: dict[int, tuple[float, float]], frame: _Sheet) -> str:
    """Out of the completing step's box, down between two lanes, and in at the side of the waiting one's."""
    one, two = frame.lefts[frame.titles[source.agent]], frame.lefts[frame.titles[target.agent]]
    right = one < two
    edge, sign = (one + frame.lane, 1) if right else (one, -1)
    end = two - 1 if right else two + frame.lane + 1
    y1, y2 = ends[source.number][1] - 8, sum(ends[target.number]) / 2
    way = f"M{px(edge)} {px(y1)}H{px(edge + sign * _GUTTER / 2)}V{px(y2)}H{px(end)}"
    return f'<path class="frees" marker-end="url(#frees)" d="{way}"/>'
