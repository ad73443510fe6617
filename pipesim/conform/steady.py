"""What can be read off one trace: its steady state, its two ends, where its agents spend time, and what limits it.

What limits a run is found by one rule that reads events alone: the same for a simulated and for a recorded trace. In
the middle of the run each role is represented by its agent that waits least for others. If that one waits hardly at
all, its role limits the run: no other role can be faster. If every role waits, time passes on the way between them:
loads are too late where the role that waits least waits for copies, else the signals between roles are.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from pipesim.conform.result import Bottleneck, LimitKind, Spread
from pipesim.model.ending import Ending
from pipesim.model.groups import ACCESSES, MEETINGS
from pipesim.model.ops import Engine, Op, Operation, Space, operand
from pipesim.model.program import Program
from pipesim.model.steady import steady_window
from pipesim.trace.activity import WAITS_FROM, waited_for
from pipesim.trace.arrays import np
from pipesim.trace.schema import ESTIMATED_WORK, OF_WORK, Column, CtaInfo, EventKind, Events, Site, Trace
from pipesim.trace.sites import SiteTable, optional_of, site_table


@dataclass(frozen=True)
class Reading:
    """One trace in numbers: cycles, of the recorded CTA with the lowest number.

    None where the run is too short or did not finish, and where it takes a part of the run that was not recorded.
    """

    period_millicycles: int | None
    prologue: int | None  #: first event to the return of the last agent's first wait
    epilogue: int | None  #: last copy issued (or last event of the first agent that has any) to the last event
    total: int | None  #: first event to the last
    sites: dict[tuple[str, EventKind, str], Spread]


def read(trace: Trace, waits: int = 1) -> Reading | None:
    """The reading of ``trace``, None if it has no events. ``waits``: how often the last agent waits in an iteration."""
    events = one_cta(trace)
    if len(events) == 0:
        return None
    kinds = np.array([int(s.kind) for s in trace.meta.sites], dtype=np.int64)[events.site]
    start = int(events.cycle.min())
    last_agent = int(events.agent.max())
    passed = (kinds == EventKind.WAIT_RETURN) | ((kinds == EventKind.TRY) & (events.value == 1))  # once for each tile
    returns = events.cycle[(events.agent == last_agent) & passed]
    feeding = events.cycle[kinds == EventKind.COPY]
    last_feed = int(feeding.max()) if len(feeding) else int(events.cycle[events.agent == events.agent.min()].max())
    end = int(events.cycle.max())
    part = _recorded_part(trace, int(events.cta[0]))
    seen = not any(part.dropped[last_agent + 1 :])  # no later agent lost all that it had
    return Reading(
        period_millicycles=_period(trace, part, events, returns, last_agent, waits) if seen else None,
        prologue=int(returns[0]) - start if len(returns) and part.begins and seen else None,
        epilogue=end - last_feed if part.ends else None,
        total=end - start if part.begins and part.ends else None,
        sites=_sites(trace, events),
    )


def beats(period: int, bound: int) -> bool:
    """Whether a period that was read lies below the least there can be, by more than the ends of its window can tell.

    Then the iterations were too few for a steady state: the agent that was read still ran ahead of the others.
    """
    return 100 * period < 99 * bound


def one_cta(trace: Trace) -> Events:
    """The events of the recorded CTA with the lowest number, in the order of the file."""
    events, cta = trace.events, trace.events.stored("cta")
    return events.select(cta == cta.min()) if len(events) else events


@dataclass(frozen=True)
class _RecordedPart:
    """Which part of a CTA's run was recorded.

    ``first`` is the first iteration, ``begins`` and ``ends`` say whether the first and the last of the run are there;
    ``passes`` how many each agent went through (() if unknown), ``dropped`` how many records each lost.
    """

    first: int
    begins: bool
    ends: bool
    passes: tuple[int, ...]
    dropped: tuple[int, ...]


def _recorded_part(trace: Trace, cta: int) -> _RecordedPart:
    """What was recorded of a CTA. With nothing known about the passes, a window is taken to end before the run.

    A run that did not finish has no end.
    """
    header = next((h for h in trace.meta.ctas if h.cta == cta), CtaInfo(cta, 0))
    whole = trace.meta.status == Ending.FINISHED and not any(header.dropped)
    if not trace.meta.window:
        return _RecordedPart(0, begins=True, ends=whole, passes=header.passes, dropped=header.dropped)
    first, end = trace.meta.window
    ends = whole and bool(header.passes) and end >= max(header.passes)
    return _RecordedPart(first, first == 0, ends, header.passes, header.dropped)


def _period(trace: Trace, part: _RecordedPart, events: Events, returns: Column, agent: int, waits: int) -> int | None:
    """Steady-state period of an iteration in 1/1000 cycle, by the last agent's returns, ``waits`` in an iteration.

    Between the two that the steady window of the run names, or the farthest that were recorded, whole laps apart.
    """
    stages = max((b.stages for b in trace.meta.barriers), default=1)
    lap = stages * waits  # in returns
    if trace.meta.window and any(s.kind is EventKind.TRY for s in trace.meta.sites):
        return None  # tries and waits of one window are not of the same tiles
    count, offset = len(returns), 0
    if part.passes and (trace.meta.window or any(part.dropped)):
        recorded = len(np.unique(events.iteration[events.agent == agent]))
        each = len(returns) // max(recorded, 1)  # returns in an iteration
        count, offset = each * part.passes[agent], each * part.first
    steady = steady_window(count, lap)
    if steady is None:
        return None
    first = max(steady[0] - offset, 0)
    laps = (min(steady[1] - offset, len(returns) - 1) - first) // lap
    if laps < 1:
        return None
    return round(1000 * int(returns[first + laps * lap] - returns[first]) / (laps * stages))


def _sites(trace: Trace, events: Events) -> dict[tuple[str, EventKind, str], Spread]:
    """From each site to the same agent's next event, over all agents of the role."""
    gaps, at = gaps_of(events)
    found = {}
    for number, site in enumerate(trace.meta.sites):
        mine = gaps[at == number]
        if len(mine):
            p50, p95 = np.percentile(mine, [50, 95], method="nearest")
            found[site.key] = Spread(int(p50), int(p95))
    return found


def gaps_of(events: Events) -> tuple[Column, Column]:
    """Cycles from each event of a CTA to the same agent's next, and the site of the former."""
    follows = np.flatnonzero(events.agent[1:] == events.agent[:-1])
    return events.cycle[follows + 1] - events.cycle[follows], events.site[follows]


def gaps_from(trace: Trace, role: str, kind: EventKind) -> Column:
    """Cycles from each event of this kind of this role to the same agent's next, in the recorded CTA that is read."""
    sites = [n for n, site in enumerate(trace.meta.sites) if (site.role, site.kind) == (role, kind)]
    gaps, at = gaps_of(one_cta(trace))
    return np.asarray(gaps[np.isin(at, sites)], dtype=np.int64)


#: A role that waits for others in less than this many thousandths of the time limits the run.
BUSY_PERMILLE = 200
_FIRST, _LAST = 250, 875  #: of the recorded time, in thousandths: before and after are prologue and tail
_PASSES = 120  #: cycles of a wait that does not block, at most: 95 on Hopper (profiles, wait.issue), with its records
_OTHERS = frozenset({EventKind.WAIT_ENTER, EventKind.BAR_ENTER})  #: a wait for a group is for the agent's own transfers


def bottleneck(trace: Trace) -> Bottleneck | None:
    """What limits the run of a trace; None where fewer than two roles, or not its only one, were recorded for long."""
    events = one_cta(trace)
    if len(events) == 0:
        return None
    begin, end = int(events.cycle.min()), int(events.cycle.max())
    if not trace.meta.window:
        begin, end = (begin + (end - begin) * part // 1000 for part in (_FIRST, _LAST))
    kinds = np.array([int(site.kind) for site in trace.meta.sites], dtype=np.int64)
    passing = _shortest_wait(events, kinds)
    found: dict[str, tuple[int, str]] = {}  # role → waits of its agent that waits least, longest for
    for agent, info in enumerate(trace.meta.agents):
        waits = _waits(trace, events.select(np.flatnonzero(events.agent == agent)), (begin, end), passing)
        if waits is None:
            continue
        total = 1000 * sum(waits.values()) // max(end - begin, 1)
        longest = max(waits, key=lambda group: waits[group], default="")
        if info.role not in found or total < found[info.role][0]:
            found[info.role] = total, longest
    if not found or len(found) < min(2, len({info.role for info in trace.meta.agents})):
        return None
    role, (total, group) = min(found.items(), key=lambda each: each[1][0])
    if total < BUSY_PERMILLE:
        return Bottleneck(LimitKind.ROLE, role, total, group)
    copied = {site.barrier for site in trace.meta.sites if site.kind is EventKind.COPY}
    return Bottleneck(LimitKind.LOADS if group in copied else LimitKind.SIGNALS, role, total, group)


def _shortest_wait(events: Events, kinds: Column) -> int:
    """Cycles of the shortest wait: what a wait takes that does not block. In a window all of them may have blocked."""
    gaps, sites = gaps_of(events)
    return int(gaps[kinds[sites] == EventKind.WAIT_ENTER].min(initial=_PASSES))


def _waits(trace: Trace, mine: Events, span: tuple[int, int], passing: int) -> dict[str, int] | None:
    """Cycles that one agent waits for others within the span, by what it waits for; None if it does not run through it.

    An agent that ends before the span does, or begins after it, has another part in the run.
    """
    begin, end = span
    if len(mine) < 2 or int(mine.cycle[0]) > begin + (end - begin) // 2:
        return None
    if int(mine.cycle[-1]) < begin + (end - begin) // 2:
        return None
    waits: dict[str, int] = {}
    for at, (first, last) in enumerate(zip(mine.cycle[:-1].tolist(), mine.cycle[1:].tolist(), strict=True)):
        site = trace.meta.sites[int(mine.site[at])]
        blocked = min(last, end) - max(first + passing, begin)
        if site.kind in WAITS_FROM and site.kind in _OTHERS and blocked > 0:
            group = waited_for(site)
            waits[group] = waits.get(group, 0) + blocked
    return waits


ISSUE, TILES, WORKS, ELSE = "issue", "tile reads and writes", "work", "everything else"
Shares = dict[tuple[str, str], int]  #: (agent, what) → thousandths of the agent's time

#: Events after which their operation is over: what follows them is done by the operations after it.
_ENDS = frozenset(
    {EventKind.WAIT_RETURN, EventKind.WORK_END, EventKind.BAR_RETURN, EventKind.GROUP_RETURN, EventKind.TRY}
)


def time_spent(program: Program, trace: Trace) -> Shares:
    """Thousandths of each agent's time, from its first event to its last.

    From one event to the next an agent does the operations between them. If one of them waits for groups or at a named
    barrier, which a trace need not record, that takes the time; else reads and writes of tiles do, else the agent only
    issues: arrives, copies, multiplications, fences, loops. Waits on mbarriers and work have events in every trace.

    An agent whose events are not those of its operations one by one, as in a window, has *everything else* in place of
    what it does between them.
    """
    events = one_cta(trace)
    table = site_table(program, optional_of(trace.meta))
    first_cta = [agent for agent, of in enumerate(program.agents) if of.cta == 0]
    shares: Shares = {}
    for number in range(len(trace.meta.agents)):
        mine = events.select(np.flatnonzero(events.agent == number))
        if len(mine) < 2 or int(mine.cycle[-1]) == int(mine.cycle[0]) or number >= len(first_cta):
            continue
        spent: dict[str, int] = {}
        agent = first_cta[number]
        between = _between(program, table, agent, trace.meta.sites, mine.site.tolist())
        for at, cycles in enumerate(np.diff(mine.cycle).tolist()):
            what = _what(trace.meta.sites[int(mine.site[at])], between, at)
            spent[what] = spent.get(what, 0) + cycles
        span = int(mine.cycle[-1] - mine.cycle[0])
        shares |= {(trace.meta.agent_name(number), what): round(1000 * c / span) for what, c in spent.items()}
    return shares


def _what(site: Site, between: list[str], at: int) -> str:
    if site.kind in WAITS_FROM:
        return f"waiting for {waited_for(site)}"
    if site.kind is EventKind.WORK_BEGIN:
        return WORKS
    return between[at] if between else ELSE


def _between(
    program: Program, table: SiteTable, agent: int, sites: Sequence[Site], numbers: Sequence[int]
) -> list[str]:
    """What the agent does after each of its events; [] if they are not those of its operations in their order."""
    code = program.code[agent]
    places = [(pc, table.sites[record.site]) for pc, records in enumerate(table.records[agent]) for record in records]
    if len(numbers) > len(places) or any(
        site.key != sites[number].key for (_, site), number in zip(places, numbers, strict=False)
    ):
        return []
    found = []
    for at, (pc, site) in enumerate(places[: len(numbers)]):
        end = places[at + 1][0] if at + 1 < len(places) else len(code)
        found.append(_slowest_operation(program, code[pc + (site.kind in _ENDS) : end]))
    return found


def _slowest_operation(program: Program, operations: Sequence[Operation]) -> str:
    """What takes the time of these: a wait that is not recorded, then reads and writes, then their issue."""
    for op in operations:
        if op[0] == Op.WAIT_GROUP:
            return f"{ISSUE} and {Engine(operand(op, 'engine')).name.lower().replace('_', '.')} groups"
    codes = {op[0] for op in operations}
    if codes & MEETINGS:
        return f"{ISSUE} and named barriers"
    spaces = {program.accesses[operand(op, "access")].space for op in operations if op[0] in ACCESSES}
    if spaces - {Space.REGISTERS}:
        return TILES
    return f"{ISSUE} and {WORKS}" if Op.WORK in codes or spaces else ISSUE  # of registers: what is computed with them


def without_estimates(trace: Trace) -> Trace:
    """A simulated trace as a recorder would have left it: without events of work that is estimated."""
    if not trace.meta.extra.get(ESTIMATED_WORK):
        return trace
    return without_work(trace)


def without_work(trace: Trace) -> Trace:
    """The trace without events of work, estimated or recorded."""
    left = trace.without(OF_WORK)
    extra = {key: value for key, value in left.meta.extra.items() if key != ESTIMATED_WORK}
    return Trace(replace(left.meta, extra=extra), left.events)
