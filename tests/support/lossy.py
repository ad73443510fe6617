"""The trace that a recorder whose buffer was full would have left, made from one with headers."""

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from pipesim.trace.schema import Events, Trace


def lose(trace: Trace, iterations: Mapping[int, int]) -> Trace:
    """The trace without the last this many kept iterations of these agents (by number, in every CTA), counted as
    dropped."""
    meta, events = trace.meta, trace.events
    gone = np.zeros(len(events), dtype=np.bool_)
    for header in meta.ctas:
        for agent, number in iterations.items():
            mine = np.flatnonzero((events.cta == header.cta) & (events.agent == agent))
            passes = events.iteration[mine]
            late = passes > passes.max(initial=-1) - number
            if late.any():  # the buffer was full from there on, whatever the later records say
                gone[mine[int(np.argmax(late)) :]] = True

    def count(rows: Events, cta: int) -> tuple[int, ...]:
        return tuple(np.bincount(rows.agent[rows.cta == cta], minlength=len(meta.agents)).tolist())

    headers = []
    for header in meta.ctas:
        before = header.dropped or (0,) * len(meta.agents)
        now = count(events.select(gone), header.cta)
        dropped = tuple(b + n for b, n in zip(before, now, strict=True))
        headers.append(replace(header, written=count(events.select(~gone), header.cta), dropped=dropped))
    return Trace(replace(meta, ctas=tuple(headers)), events.select(~gone))
