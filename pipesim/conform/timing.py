"""The simulated run beside the measured one, in numbers."""

from dataclasses import dataclass, replace

from pipesim.conform.result import Figure, Share, SiteTiming, Spread, Timing
from pipesim.conform.steady import Reading, one_cta, read, time_spent
from pipesim.model.program import Program
from pipesim.model.steady import waits_per_trip
from pipesim.timed.profile import PERIOD, WHOLE_RUN
from pipesim.trace.arrays import np
from pipesim.trace.schema import Column, Events, Run, Trace

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
