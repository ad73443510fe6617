"""Where time was gained or lost from A to B: figures with their noise, and ledgers that add up. Of one CTA."""

from collections import Counter
from dataclasses import dataclass
from math import lcm

from pipesim.conform.pair.lanes import PASS, AgentEvents, Key, MatchedTraces, Name, agent_name, site_keys
from pipesim.conform.pair.result import PERIOD, TRACED, Ledger, PairFigure, PairTiming, Segment
from pipesim.conform.pair.settings import clocks_differ, pays_for_recording, recorders_differ
from pipesim.conform.steady import read
from pipesim.conform.timing import median_period, milli, noise_millicycles, run_lengths, run_noise
from pipesim.model.ending import Ending
from pipesim.model.steady import steady_window
from pipesim.trace.activity import WAITS_FROM, waited_words
from pipesim.trace.arrays import np
from pipesim.trace.schema import EventKind, Run, Trace, TraceMeta

THIS_RUN = "period, this trace"
COMPARED, WHOLE = "compared part, traced", "whole run, traced"
_DECIDING = (PERIOD, TRACED, THIS_RUN, COMPARED, WHOLE)  #: the first that both have


def pair_timing(a: Trace, b: Trace, matched: MatchedTraces) -> PairTiming | None:
    """Both runs in numbers, None if no agent has two events in both. Of the CTA with the lowest number in both."""
    cta = matched.ctas[0]
    found = [
        (made, (_end(a, mine), _end(b, matched.b[cta, name])))
        for (where, name), mine in matched.a.items()
        if where == cta and (made := _ledger(a, b, name, mine, matched.b[cta, name])) is not None
    ]
    if not found:
        return None
    order = range(len(found))
    critical = max(order, key=lambda n: (sum(found[n][1]), n))  # of two that end together, the later agent
    last_a = max(order, key=lambda n: (found[n][1][0], n == critical))
    last_b = max(order, key=lambda n: (found[n][1][1], n == critical))
    ledgers = (found[critical][0], *(made for n, (made, _) in enumerate(found) if n != critical))
    figures = _figures(a, b, matched, ledgers[0])
    known = [f.name for f in figures if f.name in _DECIDING and f.a and f.b]
    unlike = pays_for_recording(a.meta) != pays_for_recording(b.meta)
    clocks = (a.meta.device.sm_khz, b.meta.device.sm_khz)
    return PairTiming(
        cta, figures, known[0] if known else "", ledgers, *clocks, clocks_differ(a.meta, b.meta), unlike,
        last=(found[last_a][0].agent, found[last_b][0].agent), recorders_differ=recorders_differ(a.meta, b.meta),
    )  # fmt: skip


def _end(trace: Trace, lane: AgentEvents) -> int:
    """When an agent's last compared event was, in cycles since the first event of its CTA."""
    last = lane.rows[-1][0]
    events = trace.events
    return int(events.cycle[last] - events.cycle[events.cta == events.cta[last]].min())


# Figures


def _figures(a: Trace, b: Trace, matched: MatchedTraces, critical: Ledger) -> tuple[PairFigure, ...]:
    tiles = critical.steady_tiles
    steady = (critical.steady_a, critical.steady_b)
    mine, theirs = (round(1000 * total / tiles) if tiles else None for total in steady)
    noise = [_exact(t.meta, noise_millicycles(t.meta.runs, traced=True)) for t in (a, b)]
    plain_noise = [_exact(t.meta, noise_millicycles(t.meta.runs, traced=False)) for t in (a, b)]
    found = [
        PairFigure(PERIOD, _plain_period(a.meta, mine), _plain_period(b.meta, theirs), *plain_noise),
        PairFigure(TRACED, *(median_period(t.meta.runs, traced=True) for t in (a, b)), *noise),
        PairFigure(THIS_RUN, mine, theirs, *noise),
    ]
    if matched.cut:  # other numbers of tiles: only what both went through is comparable
        spans = 1000 * critical.a, 1000 * critical.b
        found.append(PairFigure(COMPARED, *spans, *(_exact(t.meta, None) for t in (a, b))))
    else:
        run_noises = (_exact(t.meta, run_noise(t.meta.runs, traced=False)) for t in (a, b))
        found.append(PairFigure("whole run", *(_median_run(t.meta.runs) for t in (a, b)), *run_noises))
    found += _ends(a, b, matched)
    return tuple(f for f in found if f.a is not None or f.b is not None)


def _plain_period(meta: TraceMeta, of_events: int | None) -> int | None:
    """The period without recording: of the launches without it, or of a simulation that did not charge for it."""
    measured = median_period(meta.runs, traced=False)
    return of_events if measured is None and not pays_for_recording(meta) else measured


def _ends(a: Trace, b: Trace, matched: MatchedTraces) -> list[PairFigure]:
    """The two ends of the run and all of it, as far as both hold them: no window, both finished, nothing lost."""
    cta = matched.ctas[0]
    one, two = (read(Trace(t.meta, t.events.select(t.events.cta == cta))) for t in (a, b))
    if one is None or two is None or a.meta.window or b.meta.window:
        return []
    exact = [_exact(t.meta, None) for t in (a, b)]
    found = [PairFigure("prologue, traced", milli(one.prologue), milli(two.prologue), *exact)]
    lost = any(sum(header.dropped) for t in (a, b) for header in t.meta.ctas if header.cta == cta)
    if a.meta.status == b.meta.status == Ending.FINISHED and not lost and not matched.cut:
        noise = (_exact(t.meta, run_noise(t.meta.runs, traced=True)) for t in (a, b))
        found.append(PairFigure("epilogue, traced", milli(one.epilogue), milli(two.epilogue), *exact))
        found.append(PairFigure(WHOLE, milli(one.total), milli(two.total), *noise))
    return found


def _exact(meta: TraceMeta, noise: int | None) -> int | None:
    """A simulation has no noise: what it says is what it says again."""
    return 0 if meta.source == "simulation" else noise


def _median_run(runs: tuple[Run, ...]) -> int | None:
    lengths = run_lengths(runs, traced=False)
    return 1000 * lengths[len(lengths) // 2] if lengths else None


# Ledgers


@dataclass(frozen=True)
class _Account:
    """One agent in one trace: its span in cycles and how it was spent, by site."""

    span: int
    spent: Counter[Key]


def _ledger(a: Trace, b: Trace, name: Name, mine: AgentEvents, theirs: AgentEvents) -> Ledger | None:
    """Where an agent's time went, from its first to its last event that both have; None if it has no two of them."""
    also = {(e.key, e.turn) for e in theirs.entries}
    both = [e for e in mine.entries if (e.key, e.turn) in also]
    if len(both) < 2:
        return None
    rows_b = {(e.key, e.turn): e.row for e in theirs.entries}
    first, last = both[0], both[-1]
    if rows_b[first.key, first.turn] >= rows_b[last.key, last.turn]:
        return None  # B has them in the reverse order: there is no such span of time
    whole_a = _account(a, mine, first.row, last.row)
    whole_b = _account(b, theirs, rows_b[first.key, first.turn], rows_b[last.key, last.turn])
    steady = _steady(a, b, mine, theirs)
    nothing = _Account(0, Counter())
    steady_a = _account(a, mine, *steady[1]) if steady else nothing
    steady_b = _account(b, theirs, *steady[2]) if steady else nothing
    keys = list(dict.fromkeys((*whole_a.spent, *whole_b.spent, *steady_a.spent, *steady_b.spent)))
    merged: dict[str, list[int]] = {}
    for key in keys:
        cells = merged.setdefault(_what(key), [0, 0, 0, 0])
        for n, account in enumerate((whole_a, whole_b, steady_a, steady_b)):
            cells[n] += account.spent[key]
    segments = sorted((Segment(what, *cells) for what, cells in merged.items()), key=lambda s: -abs(s.b - s.a))
    turns = {e.turn for e in both}
    return Ledger(
        agent_name(a.meta, b.meta, name), max(turns) - min(turns) + 1, whole_a.span, whole_b.span,
        steady[0] if steady else 0, steady_a.span, steady_b.span, tuple(segments),
    )  # fmt: skip


def _what(key: Key) -> str:
    """What an agent does from an event of a site to its next event."""
    _, kind, barrier, number = key
    if kind in WAITS_FROM:
        return f"waiting for {waited_words(EventKind(kind), barrier)}"
    if kind == EventKind.WORK_BEGIN:
        return "work"
    words = EventKind(kind).name.lower().replace("_", " ")
    return f"after {words} {barrier}".rstrip() + (f" ({number + 1})" if number else "")


def _account(trace: Trace, lane: AgentEvents, first: int, last: int) -> _Account:
    """The cycles from row ``first`` to row ``last`` of one agent, each given to the event before it."""
    keys = site_keys(trace.meta)
    rows = np.array([row for row, _ in lane.rows if first <= row <= last], dtype=np.int64)
    cycles, sites = trace.events.cycle[rows], trace.events.site[rows]
    spent: Counter[Key] = Counter()
    for site, cost in zip(sites[:-1].tolist(), np.diff(cycles).tolist(), strict=True):
        spent[keys[site]] += cost
    return _Account(int(cycles[-1] - cycles[0]), spent)


def _steady(
    a: Trace, b: Trace, mine: AgentEvents, theirs: AgentEvents
) -> tuple[int, tuple[int, int], tuple[int, int]] | None:  # fmt: skip
    """The same steady window in both: its tiles, and the rows of the passes at its two ends. None if it has no lap.

    It is measured at the agent's first barrier, once for each tile, and is whole laps of both rings.
    """
    passed = [e.key for e in mine.entries if e.key[1] in (PASS, EventKind.WAIT_RETURN)]
    if not passed:
        return None
    one, two = ({e.turn: e.row for e in lane.entries if e.key == passed[0]} for lane in (mine, theirs))
    turns = sorted(one.keys() & two.keys())
    stages = lcm(*(max((group.stages for group in t.meta.barriers), default=1) for t in (a, b)))
    window = steady_window(len(turns), stages)
    if window is None:
        return None
    first, last = (turns[n] for n in window)
    if one[first] >= one[last] or two[first] >= two[last]:
        return None  # the agent's iterations are not in their order
    return window[1] - window[0], (one[first], one[last]), (two[first], two[last])
