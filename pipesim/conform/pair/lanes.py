"""Which event of A belongs to which of B: sites, agents and iterations of two traces brought under common names.

An agent that tries before it waits leaves a try alone where the tile was there, and a wait where it was not: that is a
matter of time. For comparing, a successful try and a wait's return are both the *pass* of their barrier, and what leads
to a pass (failed tries, the beginning of the wait) is left out where the agent's role tries at all.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from pipesim.errors import EvidenceError
from pipesim.trace.schema import EventKind, Events, SiteKey, Trace, TraceMeta
from pipesim.trace.sites import NO_SITES, optional_of

Key = tuple[str, int, str, int]  #: role, kind of event (or PASS), group of barriers, number among the like
Name = tuple[str, int]  #: an agent: role and number within the role
PASS = -1  #: the kind of a successful try and of a wait's return, where the role tries
_AT_A_TIME = 1 << 16  #: rows
_LEADS_TO_PASS = (EventKind.TRY, EventKind.WAIT_ENTER)


class Entry(NamedTuple):
    """One event under its common name. ``turn`` is the iteration, of a pass the number of passes before it."""

    key: Key
    turn: int
    stage: int
    parity: int
    value: int
    row: int


@dataclass
class AgentEvents:
    """The events of one agent of one CTA in program order, as far as they are compared.

    ``rows`` are all of them with their turns, ``entries`` those that behaviour is checked by.
    """

    rows: list[tuple[int, int]] = field(default_factory=list)
    entries: list[Entry] = field(default_factory=list)

    def end(self) -> int:
        """One more than the greatest turn, 0 without events."""
        return max((turn for _, turn in self.rows), default=-1) + 1

    def between(self, first: int, end: int | None) -> "AgentEvents":
        """What lies in the iterations from ``first`` to ``end``, exclusive (None: no end)."""
        return AgentEvents(
            [(row, turn) for row, turn in self.rows if first <= turn and (end is None or turn < end)],
            [e for e in self.entries if first <= e.turn and (end is None or e.turn < end)],
        )


Lanes = dict[tuple[int, Name], AgentEvents]  #: by CTA and agent


@dataclass(frozen=True)
class MatchedTraces:
    """Two traces on common ground: lanes of CTAs and agents that both have, and what was left out, in words.

    ``cut`` says that iterations were left out, so that the runs as wholes are of different length. ``window`` is
    (first, end) of those that both recorders kept, () where they kept the same.
    """

    a: Lanes
    b: Lanes
    ctas: tuple[int, ...]
    notes: tuple[str, ...]
    cut: bool
    window: tuple[int, ...] = ()


def match(a: Trace, b: Trace) -> MatchedTraces:
    """The common ground of two traces. EvidenceError if they are of different kernels, or have nothing in common."""
    if a.meta.protocol != b.meta.protocol:
        raise EvidenceError(
            f"the traces are of different protocols: A of {a.meta.protocol}, B of {b.meta.protocol}",
            cause="traces are compared event by event, which requires one protocol",
            correction="name two traces of the same protocol; its parameters and the device may differ",
        )
    for side, trace in (("A", a), ("B", b)):
        if not len(trace.events):
            raise EvidenceError(f"{side} has no event", correction="name a trace with events")
    alone = optional_of(a.meta) ^ optional_of(b.meta)
    mine, theirs = lanes(a, alone), lanes(b, alone)
    ctas = tuple(sorted({cta for cta, _ in mine} & {cta for cta, _ in theirs}))
    if not ctas:
        raise EvidenceError(
            "the traces have no recorded CTA in common",
            cause=f"CTAs with events: A {_ctas(mine)}; B {_ctas(theirs)}",
            correction="record the same CTAs in both",
        )
    agents = _agents(a.meta, b.meta)
    first, end, notes = _iterations(a.meta, b.meta, _end(mine), _end(theirs))
    cut_a, cut_b = (_slice_lanes(found, ctas, agents, first, end) for found in (mine, theirs))
    if not any(lane.entries and cut_b[where].entries for where, lane in cut_a.items()):
        raise EvidenceError(
            "the traces have no agent and iteration in common",
            cause="no agent has events in both traces, in the iterations that both kept",
            correction="record the same agents and the same window of iterations in both",
        )
    if alone:
        kinds = ", ".join(sorted({kind.name for _, kind, _ in alone}))
        notes = (*notes, f"kinds of events that only one trace records are not compared: {kinds}")
    left = sorted({cta for cta, _ in (*mine, *theirs)} - set(ctas))
    if left:
        notes = (*notes, f"CTAs recorded in one only are not compared: {', '.join(map(str, left))}")
    window = (first, end) if a.meta.window != b.meta.window and end is not None else ()
    return MatchedTraces(cut_a, cut_b, ctas, notes, first > 0 or end is not None, window)


def _slice_lanes(found: Lanes, ctas: tuple[int, ...], agents: list[Name], first: int, end: int | None) -> Lanes:
    return {(cta, name): found.get((cta, name), AgentEvents()).between(first, end) for cta in ctas for name in agents}


def _ctas(found: Lanes) -> str:
    return ", ".join(map(str, sorted({cta for cta, _ in found}))) or "none"


def _end(found: Lanes) -> int:
    return max((lane.end() for lane in found.values()), default=0)


def _agents(a: TraceMeta, b: TraceMeta) -> list[Name]:
    """The agents to compare: of both, but with the same parameters an agent that one lacks is a difference."""
    mine, theirs = ([(agent.role, agent.index) for agent in meta.agents] for meta in (a, b))
    if a.params == b.params:
        return list(dict.fromkeys((*mine, *theirs)))
    return [name for name in mine if name in theirs]


def _iterations(a: TraceMeta, b: TraceMeta, end_a: int, end_b: int) -> tuple[int, int | None, tuple[str, ...]]:
    """The iterations that both can have: inside both windows, and up to the smaller count where a parameter says it."""
    first, end, notes = 0, None, []
    if a.window != b.window:
        first = max(meta.window[0] if meta.window else 0 for meta in (a, b))
        end = min(meta.window[1] for meta in (a, b) if meta.window)
        notes.append(f"only the iterations in both windows are compared: {kept_words(first, end)}")
    for name in a.params:
        mine, theirs = a.params[name], b.params.get(name, a.params[name])
        counts = end_a <= mine and end_b <= theirs and (end_a == mine or end_b == theirs)
        if mine != theirs and counts:
            end = min(mine, theirs) if end is None else min(end, mine, theirs)
            said = "is the first iteration" if end == 1 else f"are the first {end} iterations"
            notes.append(f"compared {said}: {name} is {mine} in A, {theirs} in B")
            break
    return first, end, tuple(notes)


def kept_words(first: int, end: int) -> str:
    """The iterations from ``first`` to before ``end``: ``20 to 29``, or ``20`` alone."""
    return f"{first} to {end - 1}" if end - 1 > first else str(first)


def lanes(trace: Trace, but: frozenset[SiteKey] = NO_SITES) -> Lanes:
    """The events of each agent of each CTA, under their common names; those of the sites ``but`` are not compared."""
    keys = site_keys(trace.meta)
    tries = {(s.role, s.barrier) for s in trace.meta.sites if s.kind is EventKind.TRY}
    names = [(agent.role, agent.index) for agent in trace.meta.agents]
    found: Lanes = {}
    passes: dict[tuple[int, int, str], int] = {}
    base = trace.meta.window[0] if trace.meta.window else 0
    for row, (cta, agent, site, stage, parity, turn, value) in enumerate(_rows(trace.events)):
        lane = found.setdefault((cta, names[agent]), AgentEvents())
        key = keys[site]
        role, kind, barrier, _ = key
        if (role, barrier) in tries and kind in (*_LEADS_TO_PASS, EventKind.WAIT_RETURN):
            turn = base + passes.get((cta, agent, barrier), 0)
            if kind == EventKind.WAIT_RETURN or (kind == EventKind.TRY and value == 1):
                passes[cta, agent, barrier] = passes.get((cta, agent, barrier), 0) + 1
                lane.entries.append(Entry((role, PASS, barrier, 0), turn, stage, parity, 0, row))
        elif key[:3] not in but:
            lane.entries.append(Entry(key, turn, stage, parity, value, row))
        lane.rows.append((row, turn))
    return found


def _rows(e: Events) -> Iterator[tuple[int, ...]]:
    """CTA, agent, site, stage, parity, iteration and value of each event. Few become Python's integers at a time."""
    columns = (e.cta, e.agent, e.site, e.stage, e.parity, e.iteration, e.value)
    for begin in range(0, len(e), _AT_A_TIME):
        yield from zip(*(column[begin : begin + _AT_A_TIME].tolist() for column in columns), strict=True)


def site_keys(meta: TraceMeta) -> list[Key]:
    """The common name of each site: a simulation and a kernel call it differently, role, kind and barrier agree."""
    seen: dict[tuple[str, int, str], int] = {}
    keys = []
    for site in meta.sites:
        like = (site.role, int(site.kind), site.barrier)
        keys.append((*like, seen.get(like, 0)))
        seen[like] = seen.get(like, 0) + 1
    return keys


def agent_name(a: TraceMeta, b: TraceMeta, name: Name) -> str:
    """What reports call an agent: its role, with its number where the role has several agents in one of the traces."""
    role, index = name
    alone = all(sum(agent.role == role for agent in meta.agents) <= 1 for meta in (a, b))
    return role if alone else f"{role}/{index}"
