"""One simulated run: its line, its length, where its time goes, and what went wrong."""

from __future__ import annotations

from pipesim.answers.steady_state import inner_period, iteration_of, why_no_bound, why_no_period
from pipesim.answers.views.heading import heading
from pipesim.answers.views.run import RunReport, SimulationLine
from pipesim.conform.bottleneck import bottleneck
from pipesim.conform.steady import Reading, beats, read
from pipesim.conform.timing import engines_busy, time_spent, without_optional
from pipesim.explain.causes import with_causes
from pipesim.explain.lap_counters import Laps
from pipesim.explain.notes import cut_off, early_passes, estimated, unmeasured
from pipesim.explain.unguarded import advisories
from pipesim.findings.fault_report import report_faults
from pipesim.model.ending import Ending
from pipesim.model.finding import Advisory, Deadlock, FaultReport
from pipesim.model.program import Program
from pipesim.model.trips import waits_per_trip
from pipesim.timed.bounds.critical import least_period
from pipesim.timed.engine import DEFAULT_BUDGET, Simulation, simulate
from pipesim.timed.profile import Profile
from pipesim.trace.schema import OF_WORK, SiteKey, Trace
from pipesim.trace.sites import NO_SITES, optional_sites


def run(
    program: Program,
    profile: Profile,
    *,
    traced: bool = False,
    max_steps: int = DEFAULT_BUDGET,
    until_time_limit: bool = False,
) -> RunReport:
    """Simulate ``program`` on ``profile``.

    ``traced``: with what recording each event costs on the chip. ``max_steps``: operations after which it is cut off.
    ``until_time_limit``: so it is at a time limit of the process.
    """
    # a kernel that records these, too, would be slower; without the cost of records they only show more
    also = _all_but_work(program) if traced else optional_sites(program)
    result = simulate(
        program, profile, traced=traced, max_steps=max_steps, until_time_limit=until_time_limit, also=also
    )
    trace = without_optional(result.trace)
    reading = read(trace, waits_per_trip(program))
    faults = report_faults(program, result.faults)
    deadlock, notes = _explained(result, traced=traced, max_steps=max_steps)
    return RunReport(
        heading=heading(program),
        simulation=_line(result, trace, reading, faults, max_steps),
        cycles=result.cycles,
        steps=result.steps,
        shares=time_spent(program, result.trace) if reading else {},
        trace=trace,
        deadlock=deadlock,
        faults=faults,
        advisories=notes,
        engines=engines_busy(program, profile, result.cycles) if result.outcome is Ending.FINISHED else {},
        limited_by=bottleneck(result.trace) if result.outcome is Ending.FINISHED else None,
    )


def _all_but_work(program: Program) -> frozenset[SiteKey]:
    """What a kernel records beside the sites that each has: of one that is recorded from its PTX all but its work."""
    if not program.counts_instructions:
        return NO_SITES
    return frozenset(key for key in optional_sites(program) if key[1] not in OF_WORK)


def _explained(result: Simulation, *, traced: bool, max_steps: int) -> tuple[Deadlock | None, tuple[Advisory, ...]]:
    """The deadlock with its causes, and the notes. A run that went wrong is run again beside lap counters.

    They say nothing about one that ended well: its agents may leave phases out on purpose.
    """
    program = result.program
    notes = advisories(program) + unmeasured(program, result.profile.device) + cut_off(program, result.late)
    if result.profile.prices_work:
        notes += estimated(program, result.profile.knows)
    if _outcome(result) is Ending.UNKNOWN or (result.deadlock is None and not result.faults):
        return None, notes
    laps = Laps(program)
    most = max_steps if result.cut is None else result.steps
    simulate(program, result.profile, traced=traced, max_steps=most, observers=[laps])
    deadlock = with_causes(program, result.state, result.deadlock, laps.disagreements) if result.deadlock else None
    return deadlock, notes + early_passes(program, laps.disagreements)


def _outcome(result: Simulation) -> Ending:
    """How it ended; not known where agents that were not followed to their end would have gone on."""
    coverage, end = result.program.coverage, result.outcome
    goes_on = end is Ending.FINISHED and not coverage.complete
    return Ending.UNKNOWN if goes_on or (end is Ending.DEADLOCK and coverage.stopped) else end


def _line(
    result: Simulation, trace: Trace, reading: Reading | None, faults: tuple[FaultReport, ...], max_steps: int
) -> SimulationLine:
    """One simulation in one line. Its seconds are left out, so that a report depends on its input only."""
    finished = result.outcome is Ending.FINISHED
    bound = least_period(result.program, result.profile) if finished else None
    period = reading.period_millicycles if reading else None
    steady = not (bound and period and beats(period, bound.period_millicycles))
    inner = inner_period(result.program, trace) if finished and period is None else None
    missing = finished and period is None and inner is None
    return SimulationLine(
        profile=result.profile.name,
        device=result.profile.device,
        seconds=None,
        period_millicycles=inner.millicycles if inner else period if steady else None,
        bound_by=bound.by if bound else "",
        outcome=_outcome(result),
        steady=steady,
        broken=faults[0].kind if faults else None,
        budget=max_steps,
        cut=result.cut,
        period_of=inner.loop if inner else iteration_of(result.program) if period and steady else "",
        no_period=why_no_period(result.program) if missing else None,
        no_bound=why_no_bound(result.program) if finished and bound is None else None,
    )
