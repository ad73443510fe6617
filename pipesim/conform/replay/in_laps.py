"""A run of very many laps: some are left out for a replay, and all are compared by NumPy with what is known of one.

A lap ends in the state in which it began (:mod:`pipesim.prove.any_size.family`), so each comes after the one before it
by the same pairs of events. The trace without most of its laps is replayed with the program that has as many fewer. In
the others the events must be the same again, each agent's one after the other, and no pair of them out of order
(:mod:`pipesim.conform.replay.alike`). Where one is, nothing is said: that run has to be replayed whole.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from pipesim.conform.replay.alike import AlikeCtas
from pipesim.conform.replay.conformance import conform, known_of_first, recorded_ctas
from pipesim.conform.result import Conformance, TraceVerdict
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.prove.happens_before.snapshot import Lap
from pipesim.trace.arrays import np
from pipesim.trace.schema import Column, Events, Trace
from pipesim.trace.sites import optional_of, site_table

KEPT = 10  #: laps in the program of a trace without the others
_FIRST = 3  #: the lap with which all others are compared; those before it may begin otherwise
_SAME = ("site", "stage", "parity", "value")


@dataclass(frozen=True)
class LongRun:
    """A program of ``KEPT`` laps, the one with a lap more, and how many laps more than the former a trace has."""

    few: Program
    one_more: Program
    lap: Lap
    more: int


class _AgentLaps(NamedTuple):
    """The rows of one agent: where the first lap begins, and how many each has."""

    begin: int
    width: int


def conform_in_laps(run: LongRun, trace: Trace) -> Conformance | None:
    """What :func:`conform` says of a trace of a long run; None where that run has to be replayed to know it."""
    meta, few = trace.meta, run.few
    if meta.window or meta.status != Ending.FINISHED or few.agent_ctas > 1 or any(any(c.dropped) for c in meta.ctas):
        return None
    laps = _laps_of(run, trace)
    ctas = {cta: _rows_of_agents(trace.events, cta, len(laps)) for cta in recorded_ctas(trace)}
    if not ctas or not all(_is_even(trace.events, rows, laps, run) for rows in ctas.values()):
        return None
    short, less = (_without(trace, ctas, laps, left_out) for left_out in (run.more, run.more - 1))
    found, longer = conform(few, short), conform(run.one_more, less)
    alike = known_of_first(few, short)
    steady = None if alike is None else _steady_pairs(alike, short, laps)
    if steady is None or found.verdict is not TraceVerdict.AGREES or longer.verdict is not TraceVerdict.AGREES:
        return None
    if not all(_in_order(trace.events, rows, laps, steady, KEPT + run.more) for rows in ctas.values()):
        return None

    def grown(count: Callable[[Conformance], int]) -> int:
        return count(found) + run.more * (count(longer) - count(found))

    latency = found.latency
    if latency is not None:
        checked = grown(lambda each: each.latency.checked if each.latency else 0)
        latency = replace(latency, checked=checked, unchecked=grown(lambda e: e.latency.unchecked if e.latency else 0))
    return replace(found, events=len(trace.events), iterations=grown(lambda each: each.iterations), latency=latency)


def _laps_of(run: LongRun, trace: Trace) -> list[_AgentLaps]:
    table = site_table(run.few, optional_of(trace.meta))
    rows = [[len(each) for each in records] for records in table.records]
    ends = zip(rows, run.lap.begin, run.lap.end, strict=True)
    return [_AgentLaps(sum(each[:begin]), sum(each[begin:end])) for each, begin, end in ends]


def _rows_of_agents(events: Events, cta: int, agents: int) -> list[Column]:
    mine, agent = events.stored("cta") == cta, events.stored("agent")
    return [np.flatnonzero(mine & (agent == number)).astype(np.int32) for number in range(agents)]


def _is_even(events: Events, rows: list[Column], laps: list[_AgentLaps], run: LongRun) -> bool:
    """Whether each lap has the events of the one before it, each agent's one after the other."""
    for mine, (begin, width) in zip(rows, laps, strict=True):
        cycle, many = events.stored("cycle")[mine], KEPT + run.more
        if len(mine) < begin + width * many or bool((cycle[1:] < cycle[:-1]).any()):
            return False
        inside = mine[begin : begin + width * many]
        for name in _SAME:
            column = events.stored(name)[inside].reshape(many, width)
            if bool((column[1:] != column[0]).any()):
                return False
        lap = events.stored("site")[inside[:width]]
        passes = [int((lap == site).sum()) for site in lap]
        if bool((np.diff(events.stored("iteration")[inside].reshape(many, width), axis=0) != passes).any()):
            return False
    return True


def _without(trace: Trace, ctas: dict[int, list[Column]], laps: list[_AgentLaps], left_out: int) -> Trace:
    """The trace without this many laps in the middle; what comes after them keeps its times."""
    events, kept, ctas_then = trace.events, [], {each.cta: each for each in trace.meta.ctas}
    iteration = events.stored("iteration").astype(np.int64)
    for cta, rows in ctas.items():
        passes = list(ctas_then[cta].passes) if cta in ctas_then else []
        for agent, (mine, (begin, width)) in enumerate(zip(rows, laps, strict=True)):
            at = begin + width * (KEPT // 2)
            after, lap = mine[at + width * left_out :], events.stored("site")[mine[begin : begin + width]]
            kept += [mine[:at], after]
            sites, passed = np.unique(lap, return_counts=True)
            for site, times in zip(sites.tolist(), passed.tolist(), strict=True):
                iteration[after[events.stored("site")[after] == site]] -= times * left_out
            if passes and len(passed):
                passes[agent] -= int(passed.max()) * left_out
        if cta in ctas_then:
            ctas_then[cta] = replace(ctas_then[cta], passes=tuple(passes))
    places = np.sort(np.concatenate(kept))
    meta = replace(trace.meta, ctas=tuple(ctas_then[each.cta] for each in trace.meta.ctas))
    return Trace(meta, replace(events.select(places), iteration=iteration[places]))


Place = tuple[int, int, int]  #: of an event: its agent, the lap (negative: before all), and the event's number in it
Pair = tuple[Place, Place, int]  #: the first is at least that number of cycles before the second


def _steady_pairs(alike: AlikeCtas, short: Trace, laps: list[_AgentLaps]) -> list[Pair] | None:
    """The pairs of one lap, of which the second event is in lap ``_FIRST``; None where others have other ones."""
    first_cta = short.events.select(short.events.stored("cta") == alike.info.cta)
    places: list[Place] = [(-1, -1, -1)] * len(first_cta)
    for agent, (begin, width) in enumerate(laps):
        for n, row in enumerate(np.flatnonzero(first_cta.stored("agent") == agent).tolist()):
            lap, at = divmod(n - begin, width) if width else (-1, n)
            places[row] = agent, lap if n >= begin and lap < KEPT else -1, at
    by_lap: dict[int, set[Pair]] = {lap: set() for lap in range(_FIRST, KEPT)}
    for before, after, least in _pairs_of(alike):
        (one, lap, at), (other, last, place) = places[before], places[after]
        if last >= _FIRST:
            by_lap[last].add(((one, lap - last if lap >= 0 else -KEPT, at), (other, 0, place), least))
    steady = by_lap[_FIRST]
    if any(each != steady for each in by_lap.values()) or any(first[1] < -_FIRST for first, _, _ in steady):
        return None
    return sorted(steady)


def _pairs_of(alike: AlikeCtas) -> Iterator[tuple[int, int, int]]:
    """Rows, and how many cycles the second comes after the first at least."""
    yield from zip(alike.before.tolist(), alike.after.tolist(), [0] * len(alike.before), strict=True)
    least = alike.least - alike.uncertainty
    yield from zip(alike.releases.tolist(), alike.waits.tolist(), least.tolist(), strict=True)


def _in_order(events: Events, rows: list[Column], laps: list[_AgentLaps], pairs: list[Pair], many: int) -> bool:
    """Whether no lap from ``_FIRST`` on has a pair out of order."""
    times = [
        events.stored("cycle")[mine[begin : begin + width * many]].astype(np.int64).reshape(many, width)
        for mine, (begin, width) in zip(rows, laps, strict=True)
    ]
    return not any(
        bool((times[other][_FIRST:, place] - times[one][_FIRST + ago : many + ago, at] < least).any())
        for (one, ago, at), (other, _, place), least in pairs
    )
