"""The terminal timeline: agents of a simulated run above those of a measured one, on one scale."""

from __future__ import annotations

from rich.cells import cell_len

from pipesim.report.layout import middle, pad, wrap_parts
from pipesim.report.spans import EMPTY, FULL, ISSUE, WORK, Picture, Track, draw, picture, waited_groups, waits_empty
from pipesim.report.words import count, number
from pipesim.trace.schema import Trace

MOST_AGENTS = 8
MOST_PERIODS = 12
CELLS_PER_PERIOD = 12  #: below that, an agent's short steps vanish between its long ones
LEAST_PERIODS = 3
TICK_CELLS = 12  #: least distance of two ticks
NAME_WIDTH = 18  #: of "sim consumer/0"


def timeline_lines(
    simulated: Trace | None, measured: Trace | None, period_millicycles: int | None, width: int
) -> list[str]:
    """One row for each agent and trace, an axis in cycles and a legend; [] if there is nothing to draw.

    The scale covers up to 12 periods, fewer where they would be drawn in less than 12 cells each, and at most the
    whole run; without a period it covers the whole run.
    """
    pairs = (("sim", simulated), ("hw ", measured))
    labelled = [(label, picture(trace)) for label, trace in pairs if trace is not None and len(trace.events)]
    if not labelled:
        return []
    both = len(labelled) == 2
    names = _names([p for _, p in labelled])
    shown = names[:MOST_AGENTS]
    rows = [
        (f"{label} {name}" if both else name, track)
        for name in shown
        for label, shot in labelled
        if (track := _track(shot, name)) is not None
    ]
    left = min(NAME_WIDTH, max(len("cycles"), *(cell_len(text) for text, _ in rows))) + 3
    room = width - left
    window = _window([p for _, p in labelled], period_millicycles, room)
    cells = min(room, window)
    lines = _heading(labelled, window, width)
    lines += ["", *_axis(window, cells, left)]
    for text, track in rows:
        lines.append(("  " + pad(middle(text, left - 3), left - 2) + draw(track, window, cells)).rstrip())
    if len(names) > len(shown):
        lines.append(f"  and {count(len(names) - len(shown), 'more agent')}")
    return lines + _legend([t for t in (simulated, measured) if t is not None], window, cells, width)


def _names(pictures: list[Picture]) -> list[str]:
    """Agents of all pictures, in the order of their first appearance."""
    return list(dict.fromkeys(track.name for p in pictures for track in p.tracks))


def _track(shot: Picture, name: str) -> Track | None:
    return next((track for track in shot.tracks if track.name == name), None)


def _window(pictures: list[Picture], period: int | None, room: int) -> int:
    """Cycles to draw: some periods or the whole run. A run that is stuck is shown to its end, and a little further."""
    whole = max(p.end for p in pictures)
    if any(p.stuck for p in pictures):
        return max(1, whole + whole // 8 + 1)
    if not period:
        return max(1, whole)
    periods = min(MOST_PERIODS, max(LEAST_PERIODS, room // CELLS_PER_PERIOD))
    return max(1, min(whole, periods * period // 1000))


def _heading(labelled: list[tuple[str, Picture]], window: int, width: int) -> list[str]:
    whole = max(p.end for _, p in labelled)
    cycles = count(window, "cycle")
    parts = [f"all {cycles}" if window >= whole else f"the first {cycles} of {number(whole)}"]
    stuck = any(p.stuck for _, p in labelled)
    if stuck:
        parts = [f"the whole run, {count(whole, 'cycle')}, and what waits for ever"]
    for label, shot in labelled:
        source = "simulated" if shot.source == "simulation" else "measured"
        parts.append(f"{label.strip() + ': ' if len(labelled) > 1 else ''}{source}, CTA {shot.cta}")
    return wrap_parts(parts, width, "  timeline   ")


def _axis(window: int, cells: int, left: int) -> list[str]:
    """Ticks at round numbers, each written from the cell in which it lies."""
    step = _step(window, cells)
    line = "  " + pad("cycles", left - 2)
    for tick in range(0, window, step):
        column = left + tick * cells // window
        text = number(tick)
        if column + len(text) <= left + cells:
            line = pad(line, column) + text
    return [line]


def _step(window: int, cells: int) -> int:
    """The smallest of 1, 2, 5, 10, 20, ... cycles that keeps ticks apart."""
    power = 1
    while True:
        for step in (power, 2 * power, 5 * power):
            if step * cells >= TICK_CELLS * window or step >= window:
                return step
        power *= 10


def _legend(traces: list[Trace], window: int, cells: int, width: int) -> list[str]:
    groups = list(dict.fromkeys(g for t in traces for g in waited_groups(t)))
    empty = [g for g in groups if waits_empty(g)]
    full = [g for g in groups if not waits_empty(g)]
    parts = [f"{ISSUE} issues"]
    parts += [f"{EMPTY} waits for {_some(empty)}"] * bool(empty)
    parts += [f"{FULL} waits for {_some(full)}"] * bool(full)
    parts += [f"{WORK} works", f"a cell is {_ratio(window, cells)} and shows what lasted longest in it"]
    return wrap_parts(parts, width, "  ")


def _some(groups: list[str]) -> str:
    """Up to two names; further ones are only counted."""
    return " or ".join(groups[:2]) + (f" or {len(groups) - 2} others" if len(groups) > 2 else "")


def _ratio(window: int, cells: int) -> str:
    """Cycles of a cell, to a tenth."""
    tenths = (10 * window + cells // 2) // cells
    return f"{number(tenths // 10)}.{tenths % 10} cycles" if tenths % 10 else count(tenths // 10, "cycle")
