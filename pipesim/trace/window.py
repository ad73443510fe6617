"""Windows and losses: the trace that a recorder with less room would have left, made from a whole one.

An event belongs to the iteration that its ``iteration`` column names: how often its agent passed its site before. A
recorder keeps an iteration of an agent whole or not at all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from pipesim.errors import ParameterError
from pipesim.model.ending import Ending
from pipesim.trace.activity import WAITS_FROM
from pipesim.trace.schema import CtaInfo, EventKind, Events, Trace, TraceMeta

_OPEN = (*WAITS_FROM, EventKind.WORK_BEGIN)  # an event of the same agent ends what they begin


def cut(trace: Trace, first: int, end: int) -> Trace:
    """The iterations ``first`` to ``end - 1`` of every agent of a whole trace; headers say how far each agent came.

    Raises ParameterError for a window that keeps nothing, and for a trace of which something is missing already.
    """
    if not 0 <= first < end:
        raise ParameterError(
            f"the window {first}..{end} keeps no iteration", correction="for example 10..42, which keeps 10 to 41"
        )
    meta, events = trace.meta, trace.events
    if meta.window or any(sum(header.dropped) for header in meta.ctas):
        raise ParameterError(
            f"the trace of {meta.protocol} is not complete",
            cause="it was recorded with a window, or lost records",
            correction="cut a complete trace",
        )
    kept = events.select((events.iteration >= first) & (events.iteration < end))
    numbers = np.unique(events.cta).tolist()
    headers = meta.ctas or tuple(CtaInfo(number, 0) for number in numbers)
    ctas = tuple(replace(_recount(h, kept, meta), passes=h.passes or _passes(h.cta, events, meta)) for h in headers)
    return Trace(replace(meta, window=(first, end), ctas=ctas), kept)


def lose(trace: Trace, iterations: Mapping[int, int]) -> Trace:
    """The trace without the last this many kept iterations of these agents (by number, in every CTA), counted as
    dropped.

    Raises ParameterError if the trace has no headers, which hold the counts, or an agent's number is none of its.
    """
    meta, events = trace.meta, trace.events
    if not meta.ctas or not all(0 <= agent < len(meta.agents) for agent in iterations):
        raise ParameterError(
            f"the trace of {meta.protocol} has no headers, or not all of the agents {sorted(iterations)}",
            correction="cut it first; number the agents from 0",
        )
    gone = np.zeros(len(events), dtype=np.bool_)
    for header in meta.ctas:
        for agent, number in iterations.items():
            mine = np.flatnonzero((events.cta == header.cta) & (events.agent == agent))
            passes = events.iteration[mine]
            late = passes > _most(passes) - 1 - number
            if late.any():  # the buffer was full from there on, whatever the later records say
                gone[mine[int(np.argmax(late)) :]] = True
    kept, lost = events.select(~gone), events.select(gone)
    headers = []
    for header in meta.ctas:
        before = header.dropped or (0,) * len(meta.agents)
        now = _count(lost, header.cta, len(meta.agents))
        dropped = tuple(b + n for b, n in zip(before, now, strict=True))
        headers.append(replace(_recount(header, kept, meta), dropped=dropped))
    return Trace(replace(meta, ctas=tuple(headers)), kept)


def _recount(header: CtaInfo, kept: Events, meta: TraceMeta) -> CtaInfo:
    return replace(header, written=_count(kept, header.cta, len(meta.agents)))


def _count(events: Events, cta: int, agents: int) -> tuple[int, ...]:
    return tuple(np.bincount(events.agent[events.cta == cta], minlength=agents).tolist())


def _passes(cta: int, events: Events, meta: TraceMeta) -> tuple[int, ...]:
    """How many iterations each agent of a whole trace went through, less the one that it was stopped in."""
    found = []
    for agent in range(len(meta.agents)):
        mine = np.flatnonzero((events.cta == cta) & (events.agent == agent))
        passes = _most(events.iteration[mine])
        if len(mine) and meta.status != Ending.FINISHED and meta.sites[int(events.site[mine[-1]])].kind in _OPEN:
            passes -= 1
        found.append(passes)
    return tuple(found)


def _most(iterations: npt.NDArray[np.int64]) -> int:
    return int(iterations.max()) + 1 if len(iterations) else 0
