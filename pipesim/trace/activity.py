"""What each agent of a trace does when: its events, taken in pairs, as spans to draw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipesim.model.awaited import Awaited
from pipesim.model.ending import HUNG
from pipesim.trace.meaning import WAITS_FROM, awaited_by_site, waited_for
from pipesim.trace.schema import EventKind, Events, Trace

ISSUE, EMPTY, FULL, WORK, OTHER = "█", "░", "▒", "▓", "▚"
CELLS = (WORK, ISSUE, FULL, EMPTY, OTHER)  #: of two activities that last equally long in a cell, the first is drawn

FOREVER = 1 << 62  #: end of a wait that never returned


@dataclass(frozen=True)
class Track:
    """One agent's spans (begin, end, cell), in order, in cycles since the first event of its CTA."""

    name: str
    spans: tuple[tuple[int, int, str], ...]


@dataclass(frozen=True)
class Picture:
    """One CTA's tracks, in the order of the trace's agents.

    ``end`` is its last event, ``origin`` its first event by the trace's own clock.
    ``lap`` is the cycles from one pass of the busiest place to the next, on the average: it only chooses the scale.
    ``stuck`` says that a wait is open: it never returned. ``part`` says that only a window of the run was recorded.
    ``unit`` is what the times count; of a schedule, whose ``cta`` is -1, they are its moves.
    """

    source: str
    cta: int
    tracks: tuple[Track, ...]
    origin: int
    end: int
    lap: int
    stuck: bool
    part: bool
    unit: str = "cycle"


def picture(trace: Trace, cta: int | None = None) -> Picture:
    """The tracks of a recorded CTA (None: the lowest number), shifted so that its first event is at 0."""
    events = trace.events
    if cta is None or not np.any(events.cta == cta):
        cta = int(events.cta.min()) if len(events) else 0
    mine = events.select(np.flatnonzero(events.cta == cta))
    origin = int(mine.cycle.min()) if len(mine) else 0
    end = int(mine.cycle.max()) - origin if len(mine) else 0
    lap = -(-end // (int(mine.iteration.max() - mine.iteration.min()) + 1)) if len(mine) else 0
    of_site = _cells(trace)
    tracks = tuple(_track(trace, mine, agent, origin, of_site) for agent in range(len(trace.meta.agents)))
    stuck = any(track.spans and track.spans[-1][1] == FOREVER for track in tracks)
    return Picture(trace.meta.source, cta, tracks, origin, end, lap, stuck, bool(trace.meta.window))


def _track(trace: Trace, events: Events, agent: int, origin: int, of_site: tuple[str, ...]) -> Track:
    rows = np.flatnonzero(events.agent == agent)
    times = [int(t) - origin for t in events.cycle[rows]]
    cells = [of_site[int(site)] for site in events.site[rows]]
    spans = list(zip(times[:-1], times[1:], cells[:-1], strict=True))
    if (
        times
        and trace.meta.status in HUNG  # its open waits never return; other traces may just stop there
        and trace.meta.sites[int(events.site[rows[-1]])].kind in WAITS_FROM
    ):
        spans.append((times[-1], FOREVER, cells[-1]))
    return Track(trace.meta.agent_name(agent), tuple(spans))


def _cells(trace: Trace) -> tuple[str, ...]:
    """What an agent does from an event of each site to its next event."""
    found = []
    for site, awaited in zip(trace.meta.sites, awaited_by_site(trace), strict=True):
        if site.kind is EventKind.WAIT_ENTER:
            found.append(waits(awaited))
        elif site.kind in WAITS_FROM:
            found.append(OTHER)
        else:
            found.append(WORK if site.kind is EventKind.WORK_BEGIN else ISSUE)
    return tuple(found)


def waits(awaited: Awaited | None) -> str:
    """How a wait for this is drawn; one that nothing is known of as a wait for data."""
    return EMPTY if awaited is Awaited.ROOM else FULL


def other_waits(trace: Trace) -> tuple[str, ...]:
    """What the agents of a trace wait for besides mbarriers, in the order of its sites."""
    found = (waited_for(s) for s in trace.meta.sites if s.kind in WAITS_FROM and s.kind is not EventKind.WAIT_ENTER)
    return tuple(dict.fromkeys(found))


def draw(track: Track, start: int, window: int, cells: int) -> str:
    """``window`` cycles from ``start`` in ``cells`` characters: what lasted longest in each, or a space."""
    spent: list[dict[str, int]] = [{} for _ in range(cells)]
    for first, last, cell in track.spans:
        begin, end = max(first - start, 0), min(last - start, window)
        for at in range(begin * cells // window, min(cells, -(-end * cells // window))):
            inside = min(end, _border(at + 1, window, cells)) - max(begin, _border(at, window, cells))
            if inside > 0:
                spent[at][cell] = spent[at].get(cell, 0) + inside
    return "".join(max(CELLS, key=lambda c: here.get(c, 0)) if here else " " for here in spent)


def _border(cell: int, window: int, cells: int) -> int:
    """First cycle of a cell, rounded up as the cells of a cycle are rounded down."""
    return -(-cell * window // cells)
