"""The terminal timeline: agents of one run above those of another on one scale, such as simulated above measured."""

from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

from pipesim.model.waits import WaitPurpose
from pipesim.report.text.layout import middle, pad, wrap_parts
from pipesim.report.text.words import count, number
from pipesim.trace.activity import Picture, SliceKind, Track, known_from, other_waits, picture, wait_kind, waited_groups
from pipesim.trace.schema import Trace

MOST_AGENTS = 8
MOST_LAPS = 12
CELLS_PER_LAP = 12  #: below that, an agent's short steps vanish between its long ones
LEAST_LAPS = 3
TICK_CELLS = 12  #: least distance of two ticks
NAME_WIDTH = 18  #: of "sim consumer/0"
FOLD_WIDTH = 2  #: of "-3" in "consumer/0-3"
HERE = "▴"
#: How an activity is drawn; of two that last equally long in a cell, the first here is drawn.
CELLS = {SliceKind.WORK: "▓", SliceKind.ISSUE: "█", SliceKind.DATA: "▒", SliceKind.ROOM: "░", SliceKind.OTHER: "▚"}
_SOURCES = {"simulation": "simulated", "schedule": "in schedule order"}


@dataclass(frozen=True)
class Moment:
    """A moment to be looked at: a cycle by the clock of a CTA of the lower trace."""

    cta: int
    cycle: int


@dataclass(frozen=True)
class _Scale:
    """What is drawn: ``window`` cycles from ``start`` in ``cells`` characters, which begin at column ``left``."""

    start: int
    window: int
    cells: int
    left: int
    unit: str = "cycle"

    def column(self, cycle: int) -> int:
        return self.left + (cycle - self.start) * self.cells // self.window


def timeline_lines(
    upper: Trace | None,
    lower: Trace | None,
    width: int,
    look_at: Moment | None = None,
    labels: tuple[str, str] = ("sim", "hw"),
) -> list[str]:
    """One row for each agent and trace, an axis in cycles and a legend; [] if there is nothing to draw.

    Where agents are more than rows, those of a role with the same activity share one.

    ``labels`` tell the rows of the two traces apart; ``look_at`` is by the clock of the lower one.

    The scale covers up to 12 laps of the ring, fewer where they would be drawn in less than 12 cells each: the first
    ones, those around ``look_at``, or the last ones of a run that is stuck.
    """
    upper, lower = _with_known_waits(upper, lower)
    shots, here = _shots(upper, lower, look_at, labels)
    return _paint(shots, _groups(upper, lower), width, here) if shots else []


def _shots(
    upper: Trace | None, lower: Trace | None, look_at: Moment | None, labels: tuple[str, str]
) -> tuple[list[tuple[str, Picture]], int | None]:
    """The traces whose agents have events, each under its label, and the cycle of the picture that is looked at."""
    shots: list[tuple[str, Picture]] = []
    one, two = (pad(label, max(map(cell_len, labels))) for label in labels)
    if upper is not None and len(upper.events):
        shots.append((one, picture(upper)))
    if lower is not None and len(lower.events):
        shots.append((two, picture(lower, *((look_at.cta, look_at.cycle) if look_at else ()), whole=upper is not None)))
    shots = [(label, shot) for label, shot in shots if shot.tracks]  # the events may be another CTA's
    here = look_at.cycle - shots[-1][1].origin if shots and look_at and lower is not None else None
    return shots, here


def _with_known_waits(upper: Trace | None, lower: Trace | None) -> tuple[Trace | None, Trace | None]:
    """Both traces; a simulation says what its waits are for, a recording need not."""
    if upper is None or lower is None:
        return upper, lower
    return known_from(upper, lower), known_from(lower, upper)


def _groups(upper: Trace | None, lower: Trace | None) -> list[tuple[str, SliceKind]]:
    """What the agents of both wait for, and what for."""
    traces = [trace for trace in (upper, lower) if trace is not None]
    on_mbarriers = [(name, wait_kind(what)) for trace in traces for name, what in waited_groups(trace)]
    others = ((name, SliceKind.OTHER) for trace in traces for name in other_waits(trace))
    return list(dict.fromkeys([*on_mbarriers, *others]))


def picture_lines(shot: Picture, groups: Sequence[tuple[str, WaitPurpose | None]], width: int) -> list[str]:
    """One picture as :func:`timeline_lines` draws those of traces; ``groups`` of barriers are waited for in it."""
    drawn = [(name, wait_kind(what)) for name, what in groups]
    return _paint([("", shot)], drawn, width, None) if any(track.spans for track in shot.tracks) else []


def _paint(
    shots: list[tuple[str, Picture]], groups: Sequence[tuple[str, SliceKind]], width: int, here: int | None
) -> list[str]:
    names = _names([shot for _, shot in shots])
    scale, rows = _rows(shots, names, width, here)
    heading = _heading_parts(shots, scale, around=here is not None)
    lines = [*wrap_parts(heading, width, "  timeline   "), "", _axis(scale)]
    for row in rows[:MOST_AGENTS]:
        for label, cells in row.lines:
            text = middle(label + row.title(names), scale.left - 3)
            lines.append(("  " + pad(text, scale.left - 2) + cells).rstrip())
    if here is not None:
        lines.append(" " * scale.column(max(scale.start, min(here, scale.start + scale.window - 1))) + HERE)
    if hidden := sum(len(row.names) for row in rows[MOST_AGENTS:]):
        lines.append(f"  and {count(hidden, 'more agent')}")
    alike = _any_shared(rows[:MOST_AGENTS])
    return lines + _legend(groups, scale, width, alike=alike)


@dataclass(frozen=True)
class _Row:
    """An agent, or several that look alike: the cells in each trace that has them, after the trace's label."""

    names: tuple[str, ...]
    lines: tuple[tuple[str, str], ...]

    def title(self, agents: list[str]) -> str:
        """``load``, ``softmax ×4`` for all agents of a role, ``consumer/0-3`` for some of them."""
        first, last = self.names[0], self.names[-1]
        role = _role(first)
        if first == last:
            return first
        if len(self.names) == sum(_role(agent) == role for agent in agents):
            return f"{role} ×{len(self.names)}"
        return f"{first}-{last.rpartition('/')[2]}"


def _rows(
    shots: list[tuple[str, Picture]], names: list[str], width: int, here: int | None
) -> tuple[_Scale, list[_Row]]:
    """The scale, and a row for each agent; where they are too many, shared ones, if any can be shared."""
    shared, drawn = _at_scale(shots, names, names, width, here, FOLD_WIDTH)
    rows = _fold_rows(drawn)
    if len(names) > MOST_AGENTS and _any_shared(rows[:MOST_AGENTS]):
        return shared, rows
    return _at_scale(shots, names, names[:MOST_AGENTS], width, here, 0)


def _at_scale(
    shots: list[tuple[str, Picture]], names: list[str], shown: list[str], width: int, here: int | None, more: int
) -> tuple[_Scale, list[_Row]]:
    """All agents, drawn beside names as long as those of ``shown`` and ``more`` cells."""
    label = max(cell_len(label) for label, _ in shots) + 1 if len(shots) > 1 else 0
    left = min(NAME_WIDTH, max(len("cycles"), label + max(map(cell_len, shown)) + more)) + 3
    scale = _scale([shot for _, shot in shots], width - left, left, here)
    return scale, [_draw_agent(shots, name, scale) for name in names]


def _any_shared(rows: list[_Row]) -> bool:
    return any(len(row.names) > 1 for row in rows)


def _draw_agent(shots: list[tuple[str, Picture]], name: str, scale: _Scale) -> _Row:
    """One agent, one trace above the other."""
    lines = tuple(
        (f"{label} " if len(shots) > 1 else "", _draw(track, scale.start, scale.window, scale.cells))
        for label, shot in shots
        if (track := _track(shot, name)) is not None
    )
    return _Row((name,), lines)


def _draw(track: Track, start: int, window: int, cells: int) -> str:
    """``window`` cycles from ``start`` in ``cells`` characters: what lasted longest in each, or a space."""
    spent: list[dict[SliceKind, int]] = [{} for _ in range(cells)]
    for first, last, kind in track.spans:
        begin, end = max(first - start, 0), min(last - start, window)
        for at in range(begin * cells // window, min(cells, -(-end * cells // window))):
            inside = min(end, _border(at + 1, window, cells)) - max(begin, _border(at, window, cells))
            if inside > 0:
                spent[at][kind] = spent[at].get(kind, 0) + inside
    return "".join(CELLS[max(CELLS, key=lambda kind: here.get(kind, 0))] if here else " " for here in spent)


def _border(cell: int, window: int, cells: int) -> int:
    """First cycle of a cell, rounded up as the cells of a cycle are rounded down."""
    return -(-cell * window // cells)


def _fold_rows(agents: list[_Row]) -> list[_Row]:
    """Neighbours of one role that are drawn alike, in every trace, share a row: the warps of a group mostly are."""
    rows: list[_Row] = []
    for agent in agents:
        before = rows[-1] if rows else None
        if before and before.lines == agent.lines and _role(before.names[0]) == _role(agent.names[0]):
            rows[-1] = _Row(before.names + agent.names, before.lines)
        else:
            rows.append(agent)
    return rows


def _role(name: str) -> str:
    return name.partition("/")[0]


def _names(pictures: list[Picture]) -> list[str]:
    """Agents of all pictures, in the order of their first appearance."""
    return list(dict.fromkeys(track.name for p in pictures for track in p.tracks))


def _track(shot: Picture, name: str) -> Track | None:
    return next((track for track in shot.tracks if track.name == name), None)


def _whole(pictures: list[Picture]) -> int:
    """Cycles of the longest run, or of the one that is stuck: what a healthy one does after that is unrelated."""
    stuck = [p for p in pictures if p.stuck]
    return max(1, *(p.end for p in stuck or pictures))


def _scale(pictures: list[Picture], room: int, left: int, here: int | None) -> _Scale:
    """Which cycles to draw; the end of a run that is stuck is followed by a piece of its waiting indefinitely."""
    whole = _whole(pictures)
    laps = min(MOST_LAPS, max(LEAST_LAPS, room // CELLS_PER_LAP))
    window = min(whole, max(1, laps * max(p.lap for p in pictures)))
    start = 0
    if any(p.stuck for p in pictures):
        start = whole - window
        window += window // 8 + 1
    elif here is not None:
        start = max(0, min(here - window // 2, whole - window))
    return _Scale(start, window, min(room, window), left, pictures[0].unit)


def _heading_parts(shots: list[tuple[str, Picture]], scale: _Scale, *, around: bool) -> list[str]:
    """Which part of which runs is drawn, and from where the cycles are counted."""
    whole = _whole([shot for _, shot in shots])
    end = scale.start + scale.window
    all_of_it = count(whole, scale.unit) + (" in the window" if any(shot.part for _, shot in shots) else "")
    if end >= whole:
        part = f"the last {number(whole - scale.start)} of" if scale.start else "all"
        part = f"{part} {all_of_it}"
        part += " and what waits indefinitely" if any(shot.stuck for _, shot in shots) else ""
    elif around:
        part = f"{number(scale.window)} of {all_of_it} around the divergence ({HERE})"
    else:
        part = f"the first {number(scale.window)} of {all_of_it}"
    parts = [part]
    for label, shot in shots:
        source = _SOURCES.get(shot.source, "measured")
        text = f"{label.strip() + ': ' if len(shots) > 1 else ''}{source}" + (
            f", CTA {shot.cta}" if shot.cta >= 0 else ""
        )
        located = around or (shot.stuck and len(shots) > 1)  # the report names cycles of the trace's own clock
        parts.append(f"{text}, 0 is its cycle {number(shot.origin)}" if located and shot.origin else text)
    return parts


def _axis(scale: _Scale) -> str:
    """Ticks at round numbers, each written from the cell in which it lies."""
    step = _step(scale.window, scale.cells)
    line = "  " + pad(f"{scale.unit}s", scale.left - 2)
    for tick in range(-(-scale.start // step) * step, scale.start + scale.window, step):
        column, text = scale.column(tick), number(tick)
        if column + len(text) <= scale.left + scale.cells:
            line = pad(line, column) + text
    return line


def _step(window: int, cells: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, ... cycles that keeps ticks apart."""
    power = 1
    while True:
        for step in (power, 2 * power, 5 * power):
            if step * cells >= TICK_CELLS * window or step >= window:
                return step
        power *= 10


def _legend(groups: Sequence[tuple[str, SliceKind]], scale: _Scale, width: int, *, alike: bool) -> list[str]:
    parts = [f"{CELLS[SliceKind.ISSUE]} issues"]
    for kind in (SliceKind.ROOM, SliceKind.DATA, SliceKind.OTHER):
        named = [name for name, what in groups if what is kind]
        more = f" or {len(named) - 2} others" if len(named) > 2 else ""  # two by name, further ones are only counted
        parts += [f"{CELLS[kind]} waits for {' or '.join(named[:2])}{more}"] * bool(named)
    parts += [f"{CELLS[SliceKind.WORK]} works", f"a cell is {_ratio(scale)} and shows the activity that lasted longest"]
    parts += ["agents with the same activity share a row"] * alike
    return wrap_parts(parts, width, "  ")


def _ratio(scale: _Scale) -> str:
    """Cycles of a cell, to a tenth."""
    tenths = (10 * scale.window + scale.cells // 2) // scale.cells
    return f"{number(tenths // 10)}.{tenths % 10} {scale.unit}s" if tenths % 10 else count(tenths // 10, scale.unit)
