"""The tracks of the agents: their events, taken in pairs, as slices."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from pipesim.model.awaited import Awaited
from pipesim.model.ending import HUNG
from pipesim.scene.parts import OPEN, SceneSlice, SceneTrack, SliceKind
from pipesim.trace.meaning import WAITS_FROM, awaited_by_site, waited_for
from pipesim.trace.schema import EventKind, Site, Trace

_WORDS = {
    EventKind.ARRIVE: "arrive",
    EventKind.EXPECT: "arrive, expects bytes",
    EventKind.COPY: "issue copy",
    EventKind.TRY: "try",
    EventKind.CP_ASYNC_ARRIVE: "cp.async arrive",
    EventKind.BAR_ARRIVE: "arrive",
    EventKind.COMMIT: "commit",
    EventKind.GROUP_COMMIT: "commit group",
}


class AgentSlices(NamedTuple):
    """Tracks, slices, and the slice of each event by its row (-1: none)."""

    tracks: tuple[SceneTrack, ...]
    slices: list[SceneSlice]
    of_row: list[int]


def agent_slices(trace: Trace, when: list[int]) -> AgentSlices:
    """The slices of all agents; ``when`` is the time of each event."""
    events, meta = trace.events, trace.meta
    sms = {header.cta: header.sm for header in meta.ctas}
    ctas = sorted({int(cta) for cta in np.unique(events.cta)} | sms.keys())
    tracks = [
        SceneTrack(cta, sms.get(cta, -1), info.warp, meta.agent_name(agent))
        for cta in ctas
        for agent, info in enumerate(meta.agents)
    ]
    first = {cta: n * len(meta.agents) for n, cta in enumerate(ctas)}
    kinds, names = _kinds(trace), _SliceNames(meta.sites)
    columns = (events.cta, events.agent, events.site, events.stage, events.parity, events.iteration, events.value)
    cta_of, agent_of, site_of, stage_of, parity_of, pass_of, value_of = (column.tolist() for column in columns)
    error_of = events.error_ps.tolist()
    slices: list[SceneSlice] = []
    of_row = [-1] * len(events)
    hung = meta.status in HUNG
    at, rows = 0, len(events)
    while at < rows:
        cta, agent, site = cta_of[at], agent_of[at], site_of[at]
        kind = meta.sites[site].kind
        pairs = kind in WAITS_FROM or kind is EventKind.WORK_BEGIN
        end = when[at]
        last = at
        if pairs:
            follows = at + 1 < rows and cta_of[at + 1] == cta and agent_of[at + 1] == agent
            if follows and meta.sites[site_of[at + 1]].kind == kind + 1:
                last, end = at + 1, when[at + 1]
            else:
                end = when[at + 1] if follows else OPEN if hung and kind in WAITS_FROM else end
        for row in range(at, last + 1):
            of_row[row] = len(slices)
        name, barrier = names(site, stage_of[at])
        slices.append(
            SceneSlice(
                first[cta] + agent, kinds[site], name, when[at], end, at, barrier, parity_of[at], pass_of[at],
                value_of[at], None, False, error_of[last],
            )
        )  # fmt: skip
        at = last + 1
    return AgentSlices(tuple(tracks), slices, of_row)


def _kinds(trace: Trace) -> list[SliceKind]:
    """How an event of each site, with the one that ends it, is drawn."""
    found = []
    for site, awaited in zip(trace.meta.sites, awaited_by_site(trace), strict=True):
        if site.kind is EventKind.WAIT_ENTER:
            found.append(SliceKind.ROOM if awaited is Awaited.ROOM else SliceKind.DATA)
        elif site.kind in WAITS_FROM:
            found.append(SliceKind.OTHER)
        else:
            found.append(SliceKind.WORK if site.kind is EventKind.WORK_BEGIN else SliceKind.ISSUE)
    return found


class _SliceNames:
    """What slices are called, and the barrier that they are on: one text for all that are alike."""

    def __init__(self, sites: tuple[Site, ...]) -> None:
        self._sites = sites
        self._known: dict[tuple[int, int], tuple[str, str]] = {}

    def __call__(self, site: int, stage: int) -> tuple[str, str]:
        key = (site, stage)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = _name(self._sites[site], stage)
        return found


def _name(site: Site, stage: int) -> tuple[str, str]:
    barrier = f"{site.group}[{stage}]" if site.group and stage >= 0 else site.group
    match site.kind:
        case EventKind.WAIT_ENTER:
            return f"wait {barrier}", barrier
        case EventKind.BAR_ENTER | EventKind.GROUP_ENTER:
            return f"wait for {waited_for(site)}", ""
        case EventKind.WORK_BEGIN:
            return "work", ""
        case EventKind.WAIT_RETURN | EventKind.WORK_END | EventKind.BAR_RETURN | EventKind.GROUP_RETURN:
            return "return", barrier  # of what began before the records did
        case EventKind.BAR_ARRIVE:
            return f"arrive named barrier {site.barrier}", ""
        case EventKind.GROUP_COMMIT:
            return f"commit {site.barrier} group", ""
        case kind:
            return f"{_WORDS[kind]} {barrier}".rstrip(), barrier
