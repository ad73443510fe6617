"""The CTAs of a cluster as one, so that what they do to each other's barriers can be replayed.

The clocks of two SMs have no common order that is exact to the cycle. So events are put on the common time line, whose
error is known: two events that are nearer than both errors together may have happened in either order.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pipesim.errors import EvidenceError
from pipesim.model.program import Program
from pipesim.trace.recorder import ps_to_cycles
from pipesim.trace.schema import AgentInfo, Column, CtaInfo, Events, Trace


def all_agents(program: Program) -> tuple[AgentInfo, ...]:
    """The agents of all CTAs of a cluster, in the order of the program."""
    return tuple(AgentInfo(a.role, a.index, a.warp) for a in program.agents)


def as_clusters(program: Program, trace: Trace) -> Trace:
    """``trace`` with each cluster as one CTA, which has the number of its first; the trace itself without clusters.

    ``cycle`` becomes cycles of the common time line, and the order of two timestamps uncertain by both their errors.
    EvidenceError if a cluster was not recorded whole.
    """
    size = program.ctas
    if size == 1 or len(trace.meta.agents) == len(program.agents):
        return trace
    headers = {header.cta: header for header in trace.meta.ctas}
    recorded = sorted({int(cta) for cta in np.unique(trace.events.cta)} | headers.keys())
    clusters = sorted({cta // size for cta in recorded})
    missing = [cta for c in clusters for cta in range(c * size, c * size + size) if cta not in recorded]
    if missing and trace.meta.source == "hardware":
        raise EvidenceError(
            f"CTA {missing[0]} was not recorded, but others of its cluster of {size} were",
            cause="its operations on their barriers are unknown",
            correction="record whole clusters (--record-ctas)",
        )
    events, khz = trace.events, trace.meta.device.sm_khz
    cycle = events.cycle if trace.meta.source != "hardware" else ps_to_cycles(events.time_ps, khz)
    merged = replace(_renumbered(program, events), cycle=cycle)
    order = _order(merged)
    infos = tuple(_one(headers, c * size, size) for c in clusters) if headers else ()
    stated = trace.meta.extra.get("order_error_cycles", 0)
    slack = 2 * (int(events.error_ps.max(initial=0)) * khz // 10**9 + 1) if trace.meta.source == "hardware" else 0
    extra = trace.meta.extra | {"order_error_cycles": stated + slack if type(stated) is int else stated}
    meta = replace(trace.meta, agents=all_agents(program), ctas=infos, extra=extra)
    return Trace(meta, merged.select(order))


def own_rows(program: Program, trace: Trace) -> Column:
    """The row of ``trace`` of each event of :func:`as_clusters` of it."""
    if program.ctas == 1 or len(trace.meta.agents) == len(program.agents):
        return np.arange(len(trace.events), dtype=np.int64)
    return _order(_renumbered(program, trace.events))


def _renumbered(program: Program, events: Events) -> Events:
    """Each event as one of its cluster: the cluster's first CTA, and the agent's number in the program."""
    size = program.ctas
    each = len(program.agents) // size
    return replace(events, cta=events.cta // size * size, agent=events.agent % each + events.cta % size * each)


def _order(merged: Events) -> Column:
    """The rows CTA by CTA and agent by agent, each agent's in their order."""
    order: Column = np.lexsort((np.arange(len(merged)), merged.agent, merged.cta))
    return order


def _one(headers: dict[int, CtaInfo], first: int, size: int) -> CtaInfo:
    """The headers of a cluster as one, the words of all its CTAs one behind another."""
    parts = [headers[cta] for cta in range(first, first + size)]
    passes = tuple(n for part in parts for n in part.passes) if all(part.passes for part in parts) else ()
    words = tuple(n for part in parts for n in part.barrier_words) if all(p.barrier_words for p in parts) else ()
    return replace(
        parts[0],
        written=tuple(n for part in parts for n in part.written),
        dropped=tuple(n for part in parts for n in part.dropped),
        passes=passes,
        barrier_words=words,
    )
