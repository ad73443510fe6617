"""The simulated run beside the measured one, in numbers, and where each agent's time goes.

From one event to the next an agent does the operations between them. If one of them waits for groups or at a named
barrier, which a trace need not record, that takes the time; else reads and writes of tiles do, else the agent only
issues: arrives, copies, multiplications, fences, loops. Waits on mbarriers and work have events in every trace.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from pipesim.conform.result import Figure, Share, SiteTiming, Spread, Timing
from pipesim.conform.steady import Reading, one_cta, read
from pipesim.model.groups import ACCESSES, MEETINGS
from pipesim.model.ops import Engine, Op, Operation, Space, operand
from pipesim.model.program import Program
from pipesim.model.waits import waits_per_trip
from pipesim.timed.costs import Prices
from pipesim.timed.profile import PERIOD, WHOLE_RUN, Profile
from pipesim.timed.work import QUARTERS
from pipesim.trace.activity import WAITS_FROM, waited_for
from pipesim.trace.arrays import np
from pipesim.trace.schema import ESTIMATED_WORK, OF_WORK, OPTIONAL, Column, EventKind, Events, Run, Site, Trace
from pipesim.trace.sites import SiteTable, optional_of, site_table

TRACED_PERIOD = "period, traced"


@dataclass(frozen=True)
class PeriodPair:
    """The period that no schedule can beat and the simulated one, in 1/1000 cycle, None where there is none."""

    bound: int | None
    simulated: int | None


def compare_timing(
    simulated: Trace, measured: Trace, periods: dict[bool, PeriodPair], program: Program
) -> Timing | None:
    """A simulation that records against a recorded run; None if one of the two has no events.

    ``periods``: of the simulation without (False) and with (True) the cost of recording. The measured ones are medians
    over CTAs and repetitions, taken by the kernel itself, or from the events where it took none. Where only a part of
    the run was recorded, the same part of the simulated one is compared with it; ``simulated`` is a whole run.
    ``program`` names what agents do between their events.
    """
    part = like(simulated, measured)
    whole, sim, hw = read(simulated), read(part), read(measured, waits_per_trip(program))
    if whole is None or sim is None or hw is None:
        return None
    matched, bias, spread = _events(part, measured)
    spent, spent_hw = time_spent(program, part), time_spent(program, measured)
    return Timing(
        figures=_figures(whole, hw, measured, periods),
        sites=tuple(
            SiteTiming(role, kind.name.lower(), barrier, sim.sites.get(key, Spread(0, 0)), spread_)
            for key, spread_ in hw.sites.items()
            for role, kind, barrier in (key,)
        ),
        shares=tuple(
            Share(agent, what, spent.get((agent, what), 0), spent_hw.get((agent, what), 0))
            for agent, what in sorted(spent.keys() | spent_hw.keys(), key=lambda key: _order(measured, key))
        ),
        matched=matched,
        bias_cycles=bias,
        spread_cycles=spread,
    )


def like(simulated: Trace, measured: Trace) -> Trace:
    """The events of ``simulated`` that ``measured`` has too, if it was recorded with a window or lost records."""
    if not measured.meta.window and not any(sum(header.dropped) for header in measured.meta.ctas):
        return simulated
    there = set(_keys(one_cta(measured), _sites_as(simulated, measured)))
    events = simulated.events
    kept = np.array([key in there for key in _keys(events, events.site)], dtype=np.bool_)
    return Trace(replace(simulated.meta, window=measured.meta.window), events.select(kept))


def noise_millicycles(runs: tuple[Run, ...], *, traced: bool) -> int | None:
    """Half the range of the period of the first CTA over the repetitions, in 1/1000 cycle; None below two of them."""
    periods = [
        r.period_millicycles[0] for r in runs if r.traced is traced and r.period_millicycles and r.period_millicycles[0]
    ]
    return (max(periods) - min(periods)) // 2 if len(periods) > 1 else None


def median_period(runs: tuple[Run, ...], *, traced: bool) -> int | None:
    """Median period over repetitions and CTAs in 1/1000 cycle; None if none was measured."""
    periods = sorted(p for r in runs if r.traced is traced for p in r.period_millicycles if p)
    return periods[len(periods) // 2] if periods else None


def _figures(sim: Reading, hw: Reading, measured: Trace, periods: dict[bool, PeriodPair]) -> tuple[Figure, ...]:
    runs = measured.meta.runs
    plain, traced = periods[False], periods[True]
    return (
        Figure(
            PERIOD, plain.bound, plain.simulated,
            median_period(runs, traced=False), noise_millicycles(runs, traced=False),
        ),
        Figure(
            TRACED_PERIOD, traced.bound, traced.simulated,
            median_period(runs, traced=True) or hw.period_millicycles, noise_millicycles(runs, traced=True),
        ),
        Figure("prologue, traced", None, milli(sim.prologue), milli(hw.prologue)),
        Figure("epilogue, traced", None, milli(sim.epilogue), milli(hw.epilogue)),
        Figure(WHOLE_RUN, None, milli(sim.total), milli(hw.total), run_noise(runs, traced=True)),
    )  # fmt: skip


def milli(cycles: int | None) -> int | None:
    """Cycles in 1/1000 of one."""
    return None if cycles is None else 1000 * cycles


def run_lengths(runs: tuple[Run, ...], *, traced: bool) -> list[int]:
    """The cycles of the first CTA in each repetition that measured them, the shortest first."""
    return sorted(run.cycles[0] for run in runs if run.traced is traced and run.cycles and run.cycles[0])


def run_noise(runs: tuple[Run, ...], *, traced: bool) -> int | None:
    """Half the range of these, in 1/1000 cycle; None below two of them."""
    lengths = run_lengths(runs, traced=traced)
    return 1000 * (lengths[-1] - lengths[0]) // 2 if len(lengths) > 1 else None


def _events(simulated: Trace, measured: Trace) -> tuple[int, int, int]:
    """Events matched by (agent, site, iteration): how many, the median difference of their times, and the spread."""
    mine, theirs = one_cta(simulated), one_cta(measured)
    if not len(mine):
        return 0, 0, 0
    times = dict(zip(_keys(mine, mine.site), (mine.cycle - mine.cycle.min()).tolist(), strict=True))
    origin = int(theirs.cycle.min())
    differences = np.array(
        [
            cycle - origin - times[key]
            for key, cycle in zip(_keys(theirs, _sites_as(simulated, measured)), theirs.cycle.tolist(), strict=True)
            if key in times
        ],
        dtype=np.int64,
    )
    if not len(differences):
        return 0, 0, 0
    bias = int(np.percentile(differences, 50, method="nearest"))
    return len(differences), bias, int(np.percentile(np.abs(differences - bias), 95, method="nearest"))


def _sites_as(simulated: Trace, measured: Trace) -> Column:
    """The sites of the measured CTA's events, by the numbers of the simulated trace; -1 for those that it lacks."""
    names = {s.key: n for n, s in enumerate(simulated.meta.sites)}
    numbers = np.array([names.get(s.key, -1) for s in measured.meta.sites], dtype=np.int64)
    return np.asarray(numbers[one_cta(measured).site], dtype=np.int64)


def _keys(events: Events, sites: Column) -> list[tuple[int, int, int]]:
    return list(zip(events.agent.tolist(), sites.tolist(), events.iteration.tolist(), strict=True))


def _order(trace: Trace, key: tuple[str, str]) -> tuple[int, int, str]:
    """Waiting first, then work, then the rest; agents in the order of the trace."""
    agent, what = key
    names = [trace.meta.agent_name(a) for a in range(len(trace.meta.agents))]
    rank = 0 if what.startswith("waiting") else 1 if what == "work" else 2
    return (rank, names.index(agent) if agent in names else len(names), what)


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


def without_optional(trace: Trace) -> Trace:
    """The trace without the sites that a kernel need not record: what a simulation has that does not record them."""
    return _without(trace, OPTIONAL)


def without_estimates(trace: Trace) -> Trace:
    """A simulated trace as a recorder would have left it: without events of work that is estimated."""
    if not trace.meta.extra.get(ESTIMATED_WORK):
        return trace
    return without_work(trace)


def without_work(trace: Trace) -> Trace:
    """The trace without events of work, estimated or recorded."""
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
    """Thousandths of a run of this many cycles in which each engine of a CTA works, of the CTA whose works most.

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
