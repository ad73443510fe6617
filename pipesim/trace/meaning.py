"""What the waits of a trace are for: as its site table says, else derived from who records what.

A trace that was recorded before its site table could say so names its sites, and that is enough: bytes bring data; who
waits for data brings room back to the one that copied it; a wait that a fresh barrier lets pass is for room.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import replace

import numpy as np

from pipesim.model.awaited import Awaited
from pipesim.model.program import meeting_name
from pipesim.trace.schema import EventKind, Site, Trace

_ASKS = (EventKind.WAIT_ENTER, EventKind.TRY)
#: From an event of such a kind to its agent's next one the agent waits.
WAITS_FROM = frozenset({EventKind.WAIT_ENTER, EventKind.BAR_ENTER, EventKind.GROUP_ENTER})


def waited_for(site: Site) -> str:
    """What an agent waits for from an event of this site on: ``full``, ``named barrier 1``, ``its bulk groups``."""
    return waited_words(site.kind, site.barrier)


def waited_words(kind: EventKind, barrier: str) -> str:
    """The same by the kind of the site and what it is on."""
    if kind is EventKind.BAR_ENTER:
        return meeting_name(int(barrier))
    return f"its {barrier.replace('_', '.')} groups" if kind is EventKind.GROUP_ENTER else barrier


def awaited_by_site(trace: Trace) -> tuple[Awaited | None, ...]:
    """What the wait or try of each site is for, None for a site of another kind."""
    sites = trace.meta.sites
    of: defaultdict[EventKind, set[tuple[str, str]]] = defaultdict(set)
    for site in sites:
        of[site.kind].add((site.role, site.barrier))
    asks = of[EventKind.WAIT_ENTER] | of[EventKind.TRY]
    brings = of[EventKind.COPY] | of[EventKind.EXPECT] | of[EventKind.CP_ASYNC_ARRIVE]
    with_bytes = {barrier for _, barrier in brings}

    def derived(site: Site) -> Awaited:
        if site.barrier in with_bytes:
            return Awaited.DATA
        arriving = {role for role, barrier in of[EventKind.ARRIVE] if barrier == site.barrier}
        mine = {barrier for role, barrier in brings if role == site.role}
        if any((role, barrier) in asks for role in arriving for barrier in mine):
            return Awaited.ROOM
        return Awaited.ROOM if _first_parity(trace, site) == 1 else Awaited.DATA

    return tuple((site.awaited or derived(site)) if site.kind in _ASKS else None for site in sites)


def known_from(trace: Trace, other: Trace) -> Trace:
    """The trace with what the site table of another trace of this protocol says where its own says nothing."""
    known = {site.key: site.awaited for site in other.meta.sites}
    sites = tuple(
        site if site.awaited is not None else replace(site, awaited=known.get(site.key)) for site in trace.meta.sites
    )
    return Trace(replace(trace.meta, sites=sites), trace.events)


def waited_groups(trace: Trace) -> tuple[tuple[str, Awaited], ...]:
    """The groups of barriers that the trace's agents wait for, and what for, in the order of its sites.

    A group is there twice where one role waits for data on it and another for room.
    """
    pairs = zip(trace.meta.sites, awaited_by_site(trace), strict=True)
    found = ((s.barrier, what) for s, what in pairs if s.kind is EventKind.WAIT_ENTER and what is not None)
    return tuple(dict.fromkeys(found))


def _first_parity(trace: Trace, site: Site) -> int:
    """The parity of the first wait or try of a role on a group, -1 where the beginning was not recorded."""
    if trace.meta.window and trace.meta.window[0] > 0:
        return -1
    alike = [n for n, each in enumerate(trace.meta.sites) if (each.role, each.barrier) == (site.role, site.barrier)]
    rows = np.flatnonzero(np.isin(trace.events.site, alike) & (trace.events.parity >= 0))
    return int(trace.events.parity[rows[0]]) if len(rows) else -1
