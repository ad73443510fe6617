"""What can be read off one trace: its steady state, its two ends, where its agents spend time. Linear in the trace."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pipesim.conform.result import Spread
from pipesim.model.ending import Ending
from pipesim.trace.schema import Column, CtaInfo, EventKind, Events, Trace
from pipesim.trace.steady import steady_window


@dataclass(frozen=True)
class Reading:
    """One trace in numbers: cycles, of the recorded CTA with the lowest number.

    None where the run is too short or did not finish, and where it takes a part of the run that was not recorded.
    """

    period_millicycles: int | None
    prologue: int | None  #: first event to the return of the last agent's first wait
    epilogue: int | None  #: last copy issued (or last event of the first agent that has any) to the last event
    total: int | None  #: first event to the last
    sites: dict[tuple[str, EventKind, str], Spread]


def read(trace: Trace, waits: int = 1) -> Reading | None:
    """The reading of ``trace``, None if it has no events. ``waits``: how often the last agent waits in an iteration."""
    events = one_cta(trace)
    if len(events) == 0:
        return None
    kinds = np.array([int(s.kind) for s in trace.meta.sites], dtype=np.int64)[events.site]
    start = int(events.cycle.min())
    last_agent = int(events.agent.max())
    passed = (kinds == EventKind.WAIT_RETURN) | ((kinds == EventKind.TRY) & (events.value == 1))  # once for each tile
    returns = events.cycle[(events.agent == last_agent) & passed]
    feeding = events.cycle[kinds == EventKind.COPY]
    last_feed = int(feeding.max()) if len(feeding) else int(events.cycle[events.agent == events.agent.min()].max())
    end = int(events.cycle.max())
    part = _recorded_part(trace, int(events.cta[0]))
    seen = not any(part.dropped[last_agent + 1 :])  # no later agent lost all that it had
    return Reading(
        period_millicycles=_period(trace, part, events, returns, last_agent, waits) if seen else None,
        prologue=int(returns[0]) - start if len(returns) and part.begins and seen else None,
        epilogue=end - last_feed if part.ends else None,
        total=end - start if part.begins and part.ends else None,
        sites=_sites(trace, events),
    )


def beats(period: int, bound: int) -> bool:
    """Whether a period that was read lies below the least there can be, by more than the ends of its window can tell.

    Then the iterations were too few for a steady state: the agent that was read still ran ahead of the others.
    """
    return 100 * period < 99 * bound


def one_cta(trace: Trace) -> Events:
    """The events of the recorded CTA with the lowest number, in the order of the file."""
    events = trace.events
    return events.select(events.cta == events.cta.min()) if len(events) else events


@dataclass(frozen=True)
class _RecordedPart:
    """Which part of a CTA's run was recorded.

    ``first`` is the first iteration, ``begins`` and ``ends`` say whether the first and the last of the run are there;
    ``passes`` how many each agent went through (() if unknown), ``dropped`` how many records each lost.
    """

    first: int
    begins: bool
    ends: bool
    passes: tuple[int, ...]
    dropped: tuple[int, ...]


def _recorded_part(trace: Trace, cta: int) -> _RecordedPart:
    """What was recorded of a CTA. With nothing known of the passes, a window is taken to end before the run.

    A run that did not finish has no end.
    """
    header = next((h for h in trace.meta.ctas if h.cta == cta), CtaInfo(cta, 0))
    whole = trace.meta.status == Ending.FINISHED and not any(header.dropped)
    if not trace.meta.window:
        return _RecordedPart(0, begins=True, ends=whole, passes=header.passes, dropped=header.dropped)
    first, end = trace.meta.window
    ends = whole and bool(header.passes) and end >= max(header.passes)
    return _RecordedPart(first, first == 0, ends, header.passes, header.dropped)


def _period(trace: Trace, part: _RecordedPart, events: Events, returns: Column, agent: int, waits: int) -> int | None:
    """Steady-state period of an iteration in 1/1000 cycle, by the last agent's returns, ``waits`` in an iteration.

    Between the two that the steady window of the run names, or the farthest that were recorded, whole laps apart.
    """
    stages = max((b.stages for b in trace.meta.barriers), default=1)
    lap = stages * waits  # in returns
    if trace.meta.window and any(s.kind is EventKind.TRY for s in trace.meta.sites):
        return None  # tries and waits of one window are not of the same tiles
    count, offset = len(returns), 0
    if part.passes and (trace.meta.window or any(part.dropped)):
        recorded = len(np.unique(events.iteration[events.agent == agent]))
        each = len(returns) // max(recorded, 1)  # returns in an iteration
        count, offset = each * part.passes[agent], each * part.first
    steady = steady_window(count, lap)
    if steady is None:
        return None
    first = max(steady[0] - offset, 0)
    laps = (min(steady[1] - offset, len(returns) - 1) - first) // lap
    if laps < 1:
        return None
    return round(1000 * int(returns[first + laps * lap] - returns[first]) / (laps * stages))


def _sites(trace: Trace, events: Events) -> dict[tuple[str, EventKind, str], Spread]:
    """From each site to the same agent's next event, over all agents of the role."""
    gaps, at = gaps_of(events)
    found = {}
    for number, site in enumerate(trace.meta.sites):
        mine = gaps[at == number]
        if len(mine):
            p50, p95 = np.percentile(mine, [50, 95], method="nearest")
            found[site.key] = Spread(int(p50), int(p95))
    return found


def gaps_of(events: Events) -> tuple[Column, Column]:
    """Cycles from each event of a CTA to the same agent's next, and the site of the former."""
    follows = np.flatnonzero(events.agent[1:] == events.agent[:-1])
    return events.cycle[follows + 1] - events.cycle[follows], events.site[follows]


def gaps_from(trace: Trace, role: str, kind: EventKind) -> Column:
    """Cycles from each event of this kind of this role to the same agent's next, in the recorded CTA that is read."""
    sites = [n for n, site in enumerate(trace.meta.sites) if (site.role, site.kind) == (role, kind)]
    gaps, at = gaps_of(one_cta(trace))
    return np.asarray(gaps[np.isin(at, sites)], dtype=np.int64)
