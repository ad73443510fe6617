"""The tracks of the agents: their events, taken in pairs, as slices."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import repeat
from typing import NamedTuple

import numpy as np

from pipesim.model.ending import HUNG
from pipesim.scene.parts import OPEN, SceneSlice, SceneTrack
from pipesim.trace.activity import WAITS_FROM, kinds_by_site, waited_for
from pipesim.trace.schema import Column, EventKind, Site, Trace, numbers

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
    of_row: Sequence[int]


def agent_slices(trace: Trace, when: Column) -> AgentSlices:
    """The slices of all agents; ``when`` is the time of each event."""
    events, meta = trace.events, trace.meta
    sms = {header.cta: header.sm for header in meta.ctas}
    ctas = sorted({int(cta) for cta in np.unique(events.cta)} | sms.keys())
    tracks = [
        SceneTrack(cta, sms.get(cta, -1), info.warp, meta.agent_name(agent))
        for cta in ctas
        for agent, info in enumerate(meta.agents)
    ]
    begins, ends, error, of_row = _pair_rows(trace, when)
    site, stage = events.site[begins], events.stage[begins]
    lowest, stages = int(stage.min(initial=0)), int(stage.max(initial=0)) - int(stage.min(initial=0)) + 1
    named, of_slice = np.unique(site * stages + stage - lowest, return_inverse=True)  # few texts, of many slices
    texts = [_name(meta.sites[n // stages], n % stages + lowest) for n in named.tolist()]
    text = numbers(of_slice)
    kinds = kinds_by_site(trace)
    members = (
        numbers(np.searchsorted(ctas, events.cta[begins]) * len(meta.agents) + events.agent[begins]),
        map(kinds.__getitem__, numbers(site)),
        map([name for name, _ in texts].__getitem__, text),
        numbers(when[begins]),
        numbers(ends),
        numbers(begins),
        map([barrier for _, barrier in texts].__getitem__, text),
        *(numbers(column[begins]) for column in (events.parity, events.iteration, events.value)),
        repeat(None, len(begins)),
        repeat(False, len(begins)),
        numbers(error),
    )
    return AgentSlices(tuple(tracks), list(map(_slice, zip(*members, strict=True))), numbers(of_row))


_slice = partial(tuple.__new__, SceneSlice)  # a tenth of its constructor's time


def _pair_rows(trace: Trace, when: Column) -> tuple[Column, Column, Column, Column]:
    """For each slice the row at which it begins, its end and the uncertainty of that; and the slice of each row.

    A wait, or work, ends with its agent's next event, which is its return: a slice has both. One that has no return
    ends with whatever its agent did next; in a run that hung a wait with no next event never ends.
    """
    events, sites = trace.events, trace.meta.sites
    kinds = np.array([site.kind for site in sites], dtype=np.int64)[events.site]
    waits = np.array([site.kind in WAITS_FROM for site in sites], dtype=bool)[events.site]
    lasts = waits | (kinds == EventKind.WORK_BEGIN)
    follows = np.zeros(len(events), dtype=bool)
    follows[:-1] = (events.cta[1:] == events.cta[:-1]) & (events.agent[1:] == events.agent[:-1])
    paired = lasts & follows
    paired[:-1] &= kinds[1:] == kinds[:-1] + 1
    begins = np.ones(len(events), dtype=bool)
    begins[1:] = ~paired[:-1]
    following = np.append(when[1:], 0)
    alone = np.where(waits & (trace.meta.status in HUNG), OPEN, when)
    ends = np.where(lasts & follows, following, alone)
    error = np.where(paired, np.append(events.error_ps[1:], 0), events.error_ps)
    return np.flatnonzero(begins), ends[begins], error[begins], np.cumsum(begins) - 1


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
