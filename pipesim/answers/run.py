"""One simulated run: its line, its length, where its time goes, and what failed."""

from itertools import pairwise

from pipesim.answers.views.conclusion import heading
from pipesim.answers.views.run import NoBound, NoPeriod, RunReport, SimulationLine
from pipesim.conform.steady import Reading, beats, bottleneck, one_cta, read, time_spent
from pipesim.explain.causes import with_causes
from pipesim.explain.lap_counters import Laps, cut_off, early_passes, estimated_work, unmeasured_profile
from pipesim.findings.catalog import report_faults
from pipesim.model.ending import Ending
from pipesim.model.finding import Advisory, Deadlock, FaultReport
from pipesim.model.groups import PARITY_WAITS, TRIP_BEGINS
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.steady import common_trips, last_waiting, steady_window, waits_per_trip
from pipesim.timed.bounds.critical import MOST_OPERATIONS, least_period
from pipesim.timed.costs import engines_busy
from pipesim.timed.engine import DEFAULT_BUDGET, Simulation, simulate
from pipesim.timed.profile import Profile
from pipesim.trace.arrays import np
from pipesim.trace.schema import OF_WORK, OPTIONAL, EventKind, SiteKey, Trace
from pipesim.trace.sites import NO_SITES, barrier_groups, optional_sites


def inner_period(program: Program, trace: Trace) -> tuple[int, str] | None:
    """The period of the inner loop of the last agent that waits, where the outer one has too few iterations for one: in
    1/1000 cycle of an iteration, and the name of the loop.

    Between returned waits of its last run, whole laps apart. None for a loop without waits, for too short a one,
    for an agent that tries instead, or whose returns are not those of its operations.
    """
    agent = last_waiting(program)
    if agent is None:
        return None
    loop = _last_inner_loop(program.code[agent])
    if loop is None:
        return None
    mark, waits = loop
    stages = max((group.stages for group in barrier_groups(program)), default=1)
    steady = steady_window(len(waits), stages)
    returns = _returns(program, trace, agent)
    if steady is None or returns is None or waits[steady[1]] >= len(returns):
        return None
    cycles = returns[waits[steady[1]]] - returns[waits[steady[0]]]
    return round(1000 * cycles / (steady[1] - steady[0])), program.loops[mark]


def iteration_of(program: Program) -> str:
    """Whose iteration the period of all roles is, with how many another role makes of it: ``consumer1, 2 of load``.

    "" where an iteration is that of every role, or it is not known how many iterations of others are one.
    """
    agent, trips = last_waiting(program), common_trips(program)
    if agent is None or agent not in trips:
        return ""
    mine = len(trips[agent])
    most, other = max((len(begins), -each) for each, begins in trips.items())
    if mine < 2 or most == mine or most % mine:  # of one iteration it is not known how many waits are in it
        return ""
    return f"{program.agents[agent].role}, {most // mine} of {program.agents[-other].role}"


def _last_inner_loop(code: tuple[Operation, ...]) -> tuple[int, list[int]] | None:
    """The innermost loop that an agent runs last, inside another one: its mark, and of each iteration the number of its
    first wait among all waits of the agent.
    """
    open_: list[tuple[int, list[int]]] = []
    last: tuple[int, list[int]] | None = None
    waits = 0
    for op in code:
        if op[0] in TRIP_BEGINS:
            if op[0] == Op.LOOP_BEGIN:
                open_.append((operand(op, "loop"), []))
            if open_:
                open_[-1][1].append(waits)
        elif op[0] == Op.LOOP_END and open_:
            mark, begins = open_.pop()
            each = {later - one for one, later in pairwise(begins)}
            if open_ and len(each) == 1 and 0 not in each:
                last = mark, begins
        elif op[0] in PARITY_WAITS:
            waits += 1
    return last


def _returns(program: Program, trace: Trace, agent: int) -> list[int] | None:
    """The cycles of an agent's returned waits; None where they are not one for each of its waits."""
    events = one_cta(trace)
    kinds = np.array([int(site.kind) for site in trace.meta.sites], dtype=np.int64)
    mine = (events.agent == agent) & (kinds[events.site] == EventKind.WAIT_RETURN) if len(events) else np.zeros(0, bool)
    found: list[int] = events.cycle[mine].tolist()
    return found if len(found) == sum(op[0] in PARITY_WAITS for op in program.code[agent]) else None


def why_no_period(program: Program) -> NoPeriod:
    """Why a run that finished has no period."""
    agent = last_waiting(program)
    if agent is None:
        return NoPeriod.NO_WAITS
    if not any(op[0] in TRIP_BEGINS for op in program.code[agent]):
        return NoPeriod.NO_LOOP
    return NoPeriod.TOO_FEW


def why_no_bound(program: Program) -> NoBound:
    """Why the least period of any schedule is not known: the first thing that its computation needs and lacks."""
    if sum(map(len, program.code)) > MOST_OPERATIONS:
        return NoBound.TOO_LARGE
    if any(op[0] == Op.JUMP_IF for op in program.operations):
        return NoBound.JUMPS
    if not any(op[0] in TRIP_BEGINS for op in program.operations):
        return NoBound.NO_LOOP
    trips = common_trips(program)
    if not trips:
        return NoBound.NO_COMMON_LOOP
    lap = max((group.stages for group in barrier_groups(program)), default=1)
    if steady_window(min(map(len, trips.values())), lap) is None:
        return NoBound.TOO_FEW
    return NoBound.UNEVEN


def run(
    program: Program,
    profile: Profile,
    *,
    traced: bool = False,
    max_steps: int = DEFAULT_BUDGET,
    until_time_limit: bool = False,
) -> RunReport:
    """Simulate ``program`` on ``profile``.

    ``traced``: with what recording each event costs on the GPU. ``max_steps``: operations after which it is cut off.
    ``until_time_limit``: a time limit of the process cuts it off as well.
    """
    # a kernel that records these as well would be slower; without the cost of records they only show more
    also = _all_but_work(program) if traced else optional_sites(program)
    result = simulate(
        program, profile, traced=traced, max_steps=max_steps, until_time_limit=until_time_limit, also=also
    )
    trace = result.trace.without(OPTIONAL)
    reading = read(trace, waits_per_trip(program))
    faults = report_faults(program, result.faults)
    deadlock, notes = _explain(result, traced=traced, max_steps=max_steps)
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


def _explain(result: Simulation, *, traced: bool, max_steps: int) -> tuple[Deadlock | None, tuple[Advisory, ...]]:
    """The deadlock with its causes, and the notes. A run that failed is run again with lap counters.

    They say nothing about one that ended well: its agents may leave phases out intentionally.
    """
    program = result.program
    profile = result.profile
    unmeasured = unmeasured_profile(program, profile.device, profile.assumed)
    notes = unmeasured + cut_off(program, result.late) + estimated_work(program, result.profile.knows)
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
    guessed = coverage.stopped and not result.program.cut
    return Ending.UNKNOWN if goes_on or (end is Ending.DEADLOCK and guessed) else end


def _line(
    result: Simulation, trace: Trace, reading: Reading | None, faults: tuple[FaultReport, ...], max_steps: int
) -> SimulationLine:
    """One simulation in one line. Its seconds are left out, so that a report depends on its input only."""
    finished = result.outcome is Ending.FINISHED
    bound = least_period(result.program, result.profile) if finished else None
    period = reading.period_millicycles if reading else None
    steady = not (bound and period and beats(period, bound.period_millicycles))
    inner = inner_period(result.program, trace) if finished and period is None else None
    millicycles, loop = inner or (None, "")
    missing = finished and period is None and inner is None
    return SimulationLine(
        profile=result.profile.name,
        device=result.profile.device,
        seconds=None,
        period_millicycles=millicycles if inner else period if steady else None,
        bound_by=bound.by if bound else "",
        outcome=_outcome(result),
        steady=steady,
        broken=faults[0].kind if faults else None,
        budget=max_steps,
        cut=result.cut,
        period_of=loop if inner else iteration_of(result.program) if period and steady else "",
        no_period=why_no_period(result.program) if missing else None,
        no_bound=why_no_bound(result.program) if finished and bound is None else None,
    )
