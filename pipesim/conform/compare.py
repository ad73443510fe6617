"""One trace against one program: behaviour first, then time."""

from dataclasses import dataclass, replace

from pipesim.conform.replay.conformance import conform
from pipesim.conform.result import Conformance, Figure, Timing
from pipesim.conform.steady import beats, read
from pipesim.conform.times import (
    NoTime,
    TimeComparison,
    compare_times,
    deciding_figure,
    no_time,
    why_no_time,
)
from pipesim.conform.timing import PeriodPair, compare_timing, like, median_period, noise_millicycles
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.model.steady import waits_per_trip
from pipesim.timed.bounds.critical import least_period
from pipesim.timed.engine import simulate
from pipesim.timed.profile import PERIOD, WHOLE_RUN, Profile, profile_for
from pipesim.trace.schema import Trace, TraceMeta
from pipesim.trace.sites import optional_of


@dataclass(frozen=True)
class Comparison:
    """One trace compared with one protocol: how it behaves, and how long it takes, apart from each other.

    ``simulated`` has what ``measured`` has, if not all of it was recorded.
    """

    conformance: Conformance
    timing: Timing | None
    simulated: Trace
    time: TimeComparison


def compare(
    program: Program, measured: Trace, profile: Profile | None = None, behaviour: Conformance | None = None
) -> Comparison:
    """Replay ``measured`` on the machine, and set it beside two simulations, with and without the cost of recording.

    ``profile``: of the device that recorded, if not given. ``behaviour``: what :func:`conform` says about the two, if
    that is known already. Raises EvidenceError if the trace was recorded from another kernel than ``program``
    describes. Without timing if a simulation did not finish.
    """
    behaviour = conform(program, measured) if behaviour is None else behaviour
    profile = profile or profile_for(measured.meta.device.name)
    program, stamps, also = as_launched(program, measured.meta), _stamps(measured), optional_of(measured.meta)
    traces = {t: simulate(program, profile, traced=t and stamps, also=also).trace for t in (False, True)}
    pairs = {traced: period_pair(program, profile, traces[traced], traced=traced and stamps) for traced in traces}
    whole = all(trace.meta.status == Ending.FINISHED for trace in traces.values())
    timed = whole and why_no_time(measured) is not NoTime.INTERPRETED
    timing = compare_timing(traces[True], measured, pairs, program) if timed else None
    if whole:
        time = compare_times(program, profile, measured, deciding_figure(timing.figures if timing else ()))
    else:
        time = no_time(profile, why_no_time(measured) or NoTime.NOT_SIMULATED)
    return Comparison(behaviour, timing, like(traces[True], measured), time)


def times_of(program: Program, measured: Trace, profile: Profile | None = None) -> TimeComparison:
    """What :func:`compare` says about the times, by the one or two simulations that it takes."""
    profile = profile or profile_for(measured.meta.device.name)
    program = as_launched(program, measured.meta)
    if (why := why_no_time(measured)) is not None:
        return no_time(profile, why)
    period = median_period(measured.meta.runs, traced=False)
    plain = simulate(program, profile, traced=False).trace if period else None
    if plain is not None and plain.meta.status != Ending.FINISHED:
        return no_time(profile, NoTime.NOT_SIMULATED)
    simulated = period_pair(program, profile, plain, traced=False).simulated if plain is not None else None
    if simulated:
        noise = noise_millicycles(measured.meta.runs, traced=False)
        return compare_times(program, profile, measured, Figure(PERIOD, None, simulated, period, noise))
    traced = simulate(program, profile, traced=_stamps(measured), also=optional_of(measured.meta)).trace
    if traced.meta.status != Ending.FINISHED:
        return no_time(profile, NoTime.NOT_SIMULATED)
    totals = [reading.total if reading is not None else None for reading in (read(traced), read(measured))]
    whole = Figure(WHOLE_RUN, None, *(None if total is None else 1000 * total for total in totals))
    return compare_times(program, profile, measured, deciding_figure((whole,)))


def as_launched(program: Program, measured: TraceMeta) -> Program:
    """The program in the launch that was measured: its CTAs, and whether its inputs were written just before it."""
    work = program.work
    if _has_warm_inputs(measured):
        work = tuple(each.without("fresh_copies") for each in work)
    return replace(program, grid=max(1, measured.grid // program.ctas), work=work)


def _has_warm_inputs(measured: TraceMeta) -> bool:
    """Whether earlier launches had read what it copies: so the first captures of the ring were made, which wrote its
    tiles once. All others write them before every launch.
    """
    return (
        measured.protocol == "producer_consumer" and "capacity" in measured.extra and "launch_ns" not in measured.extra
    )


def _stamps(measured: Trace) -> bool:
    """Whether its times contain the cost of recording: a simulation without records is compared with one without."""
    return measured.meta.source == "hardware" or bool(measured.meta.extra.get("recording"))


def period_pair(program: Program, profile: Profile, trace: Trace, *, traced: bool) -> PeriodPair:
    """The bound of the period and the period of a simulated ``trace``, None below the bound: the run is too short."""
    bound = least_period(program, profile, traced=traced)
    reading = read(trace, waits_per_trip(program))
    least = None if bound is None else bound.period_millicycles
    period = None if reading is None else reading.period_millicycles
    return PeriodPair(least, None if period and least and beats(period, least) else period)
