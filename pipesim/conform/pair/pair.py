"""Two recorded traces, A and B, of one protocol: the same configuration, the same behaviour, and what time became.

Behaviour is what each agent did, in its own order. The order between agents is a matter of time and decides nothing.

Where time was gained or lost from A to B: figures with their noise, and ledgers that add up. Of one CTA.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from math import lcm

from pipesim.conform.pair.lanes import PASS, AgentEvents, Entry, Key, MatchedTraces, Name, agent_name, match, site_keys
from pipesim.conform.pair.result import (
    PERIOD,
    TRACED,
    Behaviour,
    Difference,
    DifferenceKind,
    EventPair,
    Ledger,
    Pair,
    PairFigure,
    PairTiming,
    Segment,
    Surplus,
)
from pipesim.conform.pair.settings import clocks_differ, outcomes, pays_for_recording, recorders_differ, settings
from pipesim.conform.replay.divergence import describe_event
from pipesim.conform.result import TraceVerdict
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


_BEFORE, _AFTER = 3, 1  #: places shown around a difference
_FAR = 64  #: places to look ahead for how two sequences continue

EventContent = tuple[Key, int, int, int]  #: what an event says: site, stage, parity and value, -1 where not compared


def compare_traces(a: Trace, b: Trace) -> Pair:
    """Two traces compared. EvidenceError if they are of different protocols or have nothing in common."""
    matched = match(a, b)
    return Pair(settings(a, b), _behaviour(a, b, matched), pair_timing(a, b, matched))


def _behaviour(a: Trace, b: Trace, matched: MatchedTraces) -> Behaviour:
    events = _EventComparison(a, b, matched)
    differences: list[Difference] = []
    surplus: Counter[tuple[Name, Key, str]] = Counter()
    lost_a, lost_b, found = 0, 0, 0
    decided = Ending.UNKNOWN not in (a.meta.status, b.meta.status)
    for (cta, name), mine in matched.a.items():
        theirs = matched.b[cta, name]
        cut_a, cut_b = _lost_records(a.meta, cta, name), _lost_records(b.meta, cta, name)
        lost_a, lost_b = lost_a + cut_a, lost_b + cut_b
        difference = events.compare(cta, name, mine, theirs)
        ended = difference is not None and (
            (difference.here.a == "" and (cut_a or a.meta.status == Ending.UNKNOWN))
            or (difference.here.b == "" and (cut_b or b.meta.status == Ending.UNKNOWN))
        )
        if difference is not None and not ended:
            differences.append(difference)
        decided = decided and not ended and not cut_a and not cut_b
        counts = (Counter((e.key, e.turn) for e in mine.entries), Counter((e.key, e.turn) for e in theirs.entries))
        found += sum((counts[0] & counts[1]).values())
        if not ended:
            for side, rest in (("a", counts[0] - counts[1]), ("b", counts[1] - counts[0])):
                for (key, _), n in rest.items():
                    surplus[name, key, side] += n
    ends = outcomes(a.meta, b.meta)
    verdict = TraceVerdict.DIFFERS if differences or ends else TraceVerdict.AGREES if decided else TraceVerdict.UNKNOWN
    differences.sort(key=lambda d: (d.iteration, d.cta, d.cycle_a if d.cycle_a >= 0 else d.cycle_b, d.agent))
    notes = (*matched.notes, *events.notes)
    return Behaviour(
        verdict,
        matched.ctas,
        found,
        lost_a,
        lost_b,
        tuple(differences),
        _surplus(a.meta, b.meta, surplus),
        ends,
        notes,
        matched.window,
    )


def _surplus(a: TraceMeta, b: TraceMeta, counts: Counter[tuple[Name, Key, str]]) -> tuple[Surplus, ...]:
    rows = dict.fromkeys((name, key) for name, key, _ in counts)
    return tuple(
        Surplus(agent_name(a, b, name), key_words(key), counts[name, key, "a"], counts[name, key, "b"])
        for name, key in rows
    )


def _lost_records(meta: TraceMeta, cta: int, name: Name) -> int:
    """Records of this agent that the capture lost."""
    for header in meta.ctas:
        if header.cta == cta and header.dropped:
            return sum(
                n for agent, n in zip(meta.agents, header.dropped, strict=True) if (agent.role, agent.index) == name
            )
    return 0


def key_words(key: Key) -> str:
    """The events of a site in words: ``wait enter full``."""
    _, kind, barrier, number = key
    words = "pass" if kind == PASS else EventKind(kind).name.lower().replace("_", " ")
    return f"{words} {barrier}".rstrip() + (f" ({number + 1})" if number else "")


class _EventComparison:
    """What of an event can be compared between these two traces, and how it is said."""

    def __init__(self, a: Trace, b: Trace, matched: MatchedTraces) -> None:
        self._a, self._b = a, b
        self._other_stages = _other_stages(a.meta, b.meta)
        self._other_values = _other_values(matched) if a.meta.params != b.meta.params else {}
        self.notes = tuple(self._notes())

    def _notes(self) -> Iterable[str]:
        """What is not compared because the parameters say that it must differ."""
        groups = [name for name in self._other_stages if name]
        if groups:
            yield f"stage and parity are not compared, the stages differ: {', '.join(groups)}"
        for (role, *_), words, x, y in ((k, key_words(k), *v) for k, v in self._other_values.items()):
            yield f"the value is not compared: {role} {words} is {x:,} throughout A, {y:,} throughout B"

    def compare(self, cta: int, name: Name, mine: AgentEvents, theirs: AgentEvents) -> Difference | None:
        """The first place where an agent's events differ; None if they are the same."""
        one, two = ([self._content(e) for e in lane.entries] for lane in (mine, theirs))
        at = next((n for n, (x, y) in enumerate(zip(one, two, strict=False)) if x != y), min(len(one), len(two)))
        if at == len(one) == len(two):
            return None
        x, y = _entry(mine.entries, at), _entry(theirs.entries, at)
        here = x or y
        assert here is not None
        places = range(max(0, at - _BEFORE), min(at + _AFTER + 1, max(len(one), len(two))))
        return Difference(
            kind=_kind(one, two, at),
            cta=cta,
            agent=agent_name(self._a.meta, self._b.meta, name),
            iteration=here.turn,
            event=at,
            cycle_a=int(self._a.events.cycle[x.row]) if x else -1,
            cycle_b=int(self._b.events.cycle[y.row]) if y else -1,
            around=tuple(self._event_pair(mine, theirs, n) for n in places),
            at=at - places.start,
        )

    def _content(self, entry: Entry) -> EventContent:
        barrier = entry.key[2]
        staged = barrier not in self._other_stages
        value = -1 if entry.key in self._other_values else entry.value
        return (entry.key, entry.stage if staged else -1, entry.parity if staged else -1, value)

    def _event_pair(self, mine: AgentEvents, theirs: AgentEvents, n: int) -> EventPair:
        x, y = _entry(mine.entries, n), _entry(theirs.entries, n)
        here = x or y
        assert here is not None
        return EventPair(
            here.turn,
            describe_event(self._a, x.row, self._a.events) if x else "",
            describe_event(self._b, y.row, self._b.events) if y else "",
        )


def _entry(entries: list[Entry], n: int) -> Entry | None:
    return entries[n] if n < len(entries) else None


def _kind(one: list[EventContent], two: list[EventContent], at: int) -> DifferenceKind:
    """The smallest edit after which the two stay alike for longest; of two that are as good, the plainest."""
    if at >= len(one):
        return DifferenceKind.ONLY_B
    if at >= len(two):
        return DifferenceKind.ONLY_A
    same_site = one[at][0] == two[at][0]
    swapped = one[at : at + 2] == two[at : at + 2][::-1] and len(one[at : at + 2]) == 2
    edits = [
        (DifferenceKind.DETAIL if same_site else DifferenceKind.OTHER, _alike(one, two, at + 1, at + 1)),
        (DifferenceKind.ORDER, _alike(one, two, at + 2, at + 2) if swapped else -1),
        (DifferenceKind.ONLY_A, _alike(one, two, at + 1, at)),
        (DifferenceKind.ONLY_B, _alike(one, two, at, at + 1)),
    ]
    return max(edits, key=lambda edit: edit[1])[0]


def _alike(one: list[EventContent], two: list[EventContent], i: int, j: int) -> int:
    """For how many places the two sequences are the same, from i and j on."""
    n = 0
    for x, y in zip(one[i : i + _FAR], two[j : j + _FAR], strict=False):
        if x != y:
            break
        n += 1
    return n


def _other_stages(a: TraceMeta, b: TraceMeta) -> list[str]:
    """Groups of barriers whose stages the parameters changed, and "" (work goes by stage too) if there is one."""
    if a.params == b.params:
        return []
    mine, theirs = ({group.name: group.stages for group in meta.barriers} for meta in (a, b))
    other = [name for name in mine if name in theirs and mine[name] != theirs[name]]
    return [*other, ""] if other else []


def _other_values(matched: MatchedTraces) -> dict[Key, tuple[int, int]]:
    """Sites whose events say one value in all of A and another in all of B: a changed parameter, not a fault."""
    mine, theirs = (_values(lanes.values()) for lanes in (matched.a, matched.b))
    return {
        key: (next(iter(values)), next(iter(theirs[key])))
        for key, values in mine.items()
        if len(values) == 1 and len(theirs.get(key, ())) == 1 and values != theirs[key]
    }


def _values(lanes: Iterable[AgentEvents]) -> dict[Key, set[int]]:
    found: dict[Key, set[int]] = {}
    for lane in lanes:
        for entry in lane.entries:
            found.setdefault(entry.key, set()).add(entry.value)
    return found
