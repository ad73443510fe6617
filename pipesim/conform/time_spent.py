"""Where each agent's time goes, with names from its program: the rows that a trace alone calls *everything else*.

From one event to the next an agent does the operations between them. If one of them waits for groups or at a named
barrier, which a trace need not record, that takes the time; else reads and writes of tiles do, else the agent only
issues: arrives, copies, multiplications, fences, loops. Waits on mbarriers and work have events in every trace.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

import numpy as np

from pipesim.conform.steady import one_cta
from pipesim.model.groups import ACCESSES, MEETINGS
from pipesim.model.ops import Engine, Op, Operation, Space, operand
from pipesim.model.program import Program
from pipesim.timed.costs import Prices
from pipesim.timed.profile import Profile
from pipesim.timed.work import QUARTERS
from pipesim.trace.meaning import WAITS_FROM, waited_for
from pipesim.trace.schema import ESTIMATED_WORK, OF_WORK, OPTIONAL, EventKind, Site, Trace
from pipesim.trace.sites import SiteTable, optional_of, site_table

ISSUE, TILES, WORKS, ELSE = "issue", "tile reads and writes", "work", "everything else"
Shares = dict[tuple[str, str], int]  #: (agent, what) → thousandths of the agent's time

#: Events after which their operation is over: what follows them is done by the operations after it.
_ENDS = frozenset(
    {EventKind.WAIT_RETURN, EventKind.WORK_END, EventKind.BAR_RETURN, EventKind.GROUP_RETURN, EventKind.TRY}
)


def time_spent(program: Program, trace: Trace) -> Shares:
    """Thousandths of each agent's time, from its first event to its last.

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
        found.append(_done(program, code[pc + (site.kind in _ENDS) : end]))
    return found


def _done(program: Program, operations: Sequence[Operation]) -> str:
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


def without_optional(trace: Trace) -> Trace:
    """The trace without the sites that a kernel need not record: what a simulation has that does not record them."""
    return _without(trace, OPTIONAL)


def without_estimates(trace: Trace) -> Trace:
    """A simulated trace as a recorder would have left it: without events of work that is estimated."""
    if not trace.meta.extra.get(ESTIMATED_WORK):
        return trace
    left = _without(trace, OF_WORK)
    extra = {key: value for key, value in left.meta.extra.items() if key != ESTIMATED_WORK}
    return Trace(replace(left.meta, extra=extra), left.events)


def _without(trace: Trace, kinds: Collection[EventKind]) -> Trace:
    kept = [number for number, site in enumerate(trace.meta.sites) if site.kind not in kinds]
    if len(kept) == len(trace.meta.sites):
        return trace
    events = trace.events.select(np.isin(trace.events.site, kept))
    renumbered = np.zeros(len(trace.meta.sites), dtype=np.int64)
    renumbered[kept] = np.arange(len(kept))
    meta = replace(trace.meta, sites=tuple(trace.meta.sites[number] for number in kept))
    return Trace(meta, replace(events, site=renumbered[events.site]))


def engines_busy(program: Program, profile: Profile, cycles: int) -> dict[str, int]:
    """Thousandths of a run of so many cycles in which each engine of a CTA works, of the CTA whose works most.

    The matrix engine of a quarter counts as one.
    """
    price = Prices(program, profile, traced=False)
    busy: dict[tuple[str, int, int], int] = {}
    for agent, code, lines in zip(program.agents, program.code, program.lines, strict=True):
        for op, line in zip(code, lines, strict=True):
            if op[0] == Op.ENGINE_WORK:
                cost = price(op, line)
                key = "matrix engine", agent.cta, agent.warp % QUARTERS if cost.products else -1
                busy[key] = busy.get(key, 0) + cost.engine
            elif op[0] == Op.TMA_LOAD:
                key = "copy engine", agent.cta, -1
                busy[key] = busy.get(key, 0) + price(op).engine
    worst: dict[str, int] = {}
    for (engine, _, _), spent in busy.items():
        worst[engine] = max(worst.get(engine, 0), round(1000 * spent / max(cycles, 1)))
    return worst
