"""Stored traces in which one wait returns earlier than it did, and which waits are worth moving."""

from collections import defaultdict
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from pipesim.conform.replay.align import Alignments
from pipesim.conform.replay.conformance import _replay_cta, as_clusters, order_uncertainty, own_rows, recorded_ctas
from pipesim.conform.replay.latency_floor import LatencyFloors, ReleasePath
from pipesim.conform.replay.releases import Releases, ReleaseTime, Stopwatch
from pipesim.model.program import Program
from pipesim.trace.schema import EventKind, SiteKey, Trace
from pipesim.trace.sites import optional_of, site_table


class Tight(NamedTuple):
    """A recorded return of a wait, the path of the release it came nearest to, and by how many cycles it exceeds that.

    ``row`` is one of the trace's table, ``least`` the path's bound.
    """

    slack: int
    row: int
    path: ReleasePath
    least: int


class _Timer(Stopwatch):
    """Keeps how soon each wait returned after each operation that released it, in order of the replay."""

    times: list[ReleaseTime]

    def start(self, *cta: Any) -> Releases:
        """For the next CTA, whose times it keeps instead of the last one's."""
        self.times = []
        releases = super().start(*cta)
        measure = releases._time

        def timed(*one: Any) -> ReleaseTime | None:
            time = measure(*one)
            self.times += [] if time is None else [time]
            return time

        setattr(releases, "_time", timed)  # noqa: B010  # a method of one object
        return releases


def tight_returns(
    program: Program, trace: Trace, floors: LatencyFloors, only: frozenset[SiteKey] | None = None
) -> list[Tight]:
    """The returns of all waits whose releases were recorded, those first that came soonest after theirs.

    ``only``: the sites that were recorded, of a program that does more.
    """
    merged, rows = as_clusters(program, trace), own_rows(program, trace)
    found: defaultdict[int, list[Tight]] = defaultdict(list)
    table, khz = site_table(program, optional_of(trace.meta), only), trace.meta.device.sm_khz
    watch = _Timer(trace.events.cycle[rows], order_uncertainty(trace), khz, LatencyFloors("", 1, "", {}))
    alignments, uncertainty = Alignments(program, table, merged), order_uncertainty(merged)
    for cta in recorded_ctas(merged):
        mine = np.flatnonzero(merged.events.cta == cta)
        _replay_cta(program, table, merged, cta, mine, alignments, uncertainty, watch)
        here = rows[mine]
        for time in watch.times:
            release, row = time.release, int(here[time.row])
            least = release.path and floors.least(release.path, release.nbytes, khz)
            if release.path and least and trace.meta.sites[trace.events.site[row]].kind is EventKind.WAIT_RETURN:
                found[row].append(Tight(time.after - least.cycles, row, release.path, least.cycles))
    return sorted(min(each) for each in found.values())


def returned_by(trace: Trace, row: int, by: int) -> Trace:
    """The trace with the return of ``row`` this many cycles earlier (later, if below 0).

    The record of entering the wait goes along where it would come after it, and nothing else.
    """
    events, khz = trace.events, trace.meta.device.sm_khz
    cycle, time_ps = events.cycle.copy(), events.time_ps.copy()
    target = int(cycle[row]) - by
    enters = trace.meta.sites[int(events.site[row - 1])].kind is EventKind.WAIT_ENTER
    same = (events.cta[row - 1], events.agent[row - 1]) == (events.cta[row], events.agent[row])
    for moved in (row, row - 1) if row and enters and same else (row,):
        back = int(cycle[moved]) - target if moved == row else max(0, int(cycle[moved]) - target)
        cycle[moved] -= back
        time_ps[moved] -= back * 10**9 // khz
    return Trace(trace.meta, replace(events, cycle=cycle, time_ps=time_ps))
