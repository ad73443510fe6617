"""Two recorded traces, A and B, of one protocol: the same configuration, the same behaviour, and what time became.

Behaviour is what each agent did, in its own order. The order between agents is a matter of time and decides nothing.
"""

from collections import Counter
from collections.abc import Iterable

from pipesim.conform.pair.lanes import PASS, AgentEvents, Entry, Key, MatchedTraces, Name, agent_name, match
from pipesim.conform.pair.result import Behaviour, Difference, DifferenceKind, EventPair, Pair, Surplus
from pipesim.conform.pair.settings import outcomes, settings
from pipesim.conform.pair.timing import pair_timing
from pipesim.conform.replay.divergence import describe_event
from pipesim.conform.result import TraceVerdict
from pipesim.model.ending import Ending
from pipesim.trace.schema import EventKind, Trace, TraceMeta

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
