"""One trace compared with its program, or two with each other: the agreement, the numbers, the tolerance if given."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from pipesim.answers.in_laps import long_run
from pipesim.answers.recorded_program import LongRunError, recorded_program
from pipesim.answers.views.conclusion import heading
from pipesim.answers.views.trace import CompareReport, PairReport, PairSide, PeriodCheck, TraceComparison
from pipesim.bounds import MAX_LOCK_FAILURES, MAX_LONG_OPERATIONS
from pipesim.conform.agreement import TraceAgreement, agreement_of, agreement_of_kernel
from pipesim.conform.compare import compare
from pipesim.conform.pair.pair import compare_traces
from pipesim.conform.pair.result import Pair
from pipesim.conform.recorded_kernel import recorded_kernel
from pipesim.conform.replay.conformance import conform
from pipesim.conform.replay.in_laps import conform_in_laps
from pipesim.conform.replay.word_values import RecordedWords
from pipesim.conform.result import Conformance, Timing
from pipesim.conform.times import NoTime, TimeComparison, no_time
from pipesim.conform.timing import TRACED_PERIOD, noise_millicycles
from pipesim.errors import EvidenceError, PipesimError, TooManyOperationsError, UnknownProtocolError
from pipesim.model.ending import Ending
from pipesim.model.program import Program
from pipesim.process.limits import LimitReachedError
from pipesim.process.watch import current
from pipesim.timed.profile import PERIOD, Profile, profile_for
from pipesim.trace.schema import HANDED_OUT, LOCK_FAILURES, TURNS, WORDS, Trace
from pipesim.trace.word_records import word_records

if TYPE_CHECKING:
    from pipesim.ptx.extract import Extraction


def compare_trace(
    program: Program,
    trace: Trace,
    source: str,
    profile: Profile | None = None,
    tolerance: float | None = None,
    *,
    captured: bool = False,
) -> CompareReport:
    """``trace`` beside what ``program`` does and how long it takes on ``profile``.

    ``source``: the trace's file. ``profile``: that of the trace's device if None. ``tolerance``: in percent of the
    measured period. ``captured``: the trace was recorded for this. EvidenceError if it is another kernel's.
    """
    found = trace_comparison(program, trace, source, profile, tolerance)
    return CompareReport(heading(program), (found,), captured)


def compare_long(
    long: LongRunError, trace: Trace, source: str, profile: Profile | None = None, tolerance: float | None = None
) -> tuple[Program, CompareReport]:
    """The same of a run whose program is too long to be made, without times: by its laps, or by all where these do not
    show that it conforms. The program has a few of the laps then. Raises ``long`` where that is too long as well.
    """
    target, meta = long.target, trace.meta
    run = long_run(target, long.params, meta.grid)
    program, behaviour = run.few if run else None, conform_in_laps(run, trace) if run else None
    if program is None or behaviour is None:
        try:
            program = target.build(long.params, grid=meta.grid, twice=False, most=MAX_LONG_OPERATIONS)
        except TooManyOperationsError:
            raise long from None
        behaviour = conform(program, trace)
    stands = agreement_of_kernel(program, trace, behaviour)
    time = no_time(profile or profile_for(meta.device.name), NoTime.LONG)
    program = replace(program, params={**program.params, **long.params})
    found = _comparison(trace, source, stands, None, None, time, tolerance)
    return program, CompareReport(heading(program), (found,), False)


def trace_comparison(
    program: Program, trace: Trace, source: str, profile: Profile | None = None, tolerance: float | None = None
) -> TraceComparison:
    """The comparison alone, as part of another answer. Raises as :func:`compare_trace` does."""
    try:
        behaviour = conform(program, trace)
        stands = agreement_of(program, trace, behaviour)
        timing, simulated, time = _times(program, trace, profile, behaviour)
    except EvidenceError as error:
        error.place = error.place or source
        raise
    return _comparison(trace, source, stands, timing, simulated, time, tolerance)


def with_ctas_of(read: Extraction, trace: Trace) -> Extraction:
    """The kernel where other CTAs did what the trace says: those that talk by words of global memory are followed
    together, with the atomics in its order; a counter gave the same tiles, and as many compare-and-swaps found a lock
    taken. EvidenceError for tiles that are not numbers.
    """
    if WORDS in trace.meta.extra:
        return read.together(trace.meta.grid, tuple(trace.meta.extra.get(TURNS, ())))
    tiles = trace.meta.extra.get(HANDED_OUT, [])
    if not isinstance(tiles, list) or not all(type(each) is int and 0 <= each < 1 << 32 for each in tiles):
        raise EvidenceError(f"the trace has no whole numbers of 32 bits as {HANDED_OUT}")
    read = read.with_tiles(tuple(tiles)) if tiles else read
    failures = trace.meta.extra.get(LOCK_FAILURES)
    if isinstance(failures, int) and failures != read.kernel.launch.policies.lock_failures:
        return read.with_setting("lock_failures", min(failures, MAX_LOCK_FAILURES))
    return read


def compare_kernel(read: Extraction, trace: Trace, source: str, profile: Profile | None = None) -> CompareReport:
    """``trace`` beside the program that was read from its kernel's PTX, and beside a simulation of it with the work
    that is estimated from its instructions. ``profile``: that of the trace's device if None.

    What the trace says about other CTAs replaces the launch's policies. EvidenceError if it is another kernel's.
    """
    read = with_ctas_of(read, trace)
    if trace.meta.status != Ending.FINISHED:
        read = read.past_hangs
    try:
        kernel = recorded_kernel(read.program, read.places, trace, read.by_line)
        said = word_records(read.words, read.program, read.instruction_at)
        talk = None if said is None else RecordedWords(() if read.words is None else read.words.words, said)
        behaviour = conform(kernel.program, kernel.trace, kernel.sites, talk)
    except EvidenceError as error:
        error.place = error.place or source
        raise
    stands = agreement_of_kernel(kernel.program, kernel.trace, behaviour)
    profile = profile or profile_for(trace.meta.device.name)
    if read.program.coverage.stopped or trace.meta.status != Ending.FINISHED:
        timing, simulated, time = None, None, no_time(profile, NoTime.KERNEL)
    elif read.words is not None:
        timing, simulated, time = None, None, no_time(profile, NoTime.WORDS)
    elif read.reads_clock:
        timing, simulated, time = None, None, no_time(profile, NoTime.CLOCK)
    else:
        timed = recorded_kernel(read.timed, read.places, trace, read.by_line)
        timing, simulated, time = _times(timed.program, timed.trace, profile, behaviour)
    comparison = _comparison(trace, source, stands, timing, simulated, time, None)
    return CompareReport(heading(kernel.program), (comparison,), False)


def _comparison(
    trace: Trace,
    source: str,
    stands: TraceAgreement,
    timing: Timing | None,
    simulated: Trace | None,
    time: TimeComparison,
    tolerance: float | None,
) -> TraceComparison:
    behaviour, meta = stands.conformance, trace.meta
    plain, traced = (_measured_value(timing, name) for name in (PERIOD, TRACED_PERIOD))
    noise = noise_millicycles(meta.runs, traced=False)
    return TraceComparison(
        source=source,
        device=meta.device.name,
        driver=meta.device.driver,
        runs=sum(1 for run in meta.runs if run.traced),
        agreement=stands.agreement,
        reason=stands.reason,
        conformance=behaviour,
        dropped=behaviour.lost,
        clock_error_ps=int(trace.events.error_ps.max()) if len(trace.events) else 0,
        order_error_cycles=behaviour.uncertainty_cycles,
        overhead_permille=round(1000 * (traced - plain) / plain) if plain and traced else None,
        noise_permille=round(1000 * noise / plain) if plain and noise is not None else None,
        sm_khz=meta.device.sm_khz,
        timing=timing,
        simulated=simulated,
        measured=trace,
        examination=stands.examination,
        time=time,
        period=_period(timing, tolerance) if tolerance is not None else None,
    )


def _times(
    program: Program, trace: Trace, profile: Profile | None, behaviour: Conformance
) -> tuple[Timing | None, Trace | None, TimeComparison]:
    """The times of ``trace`` beside simulated ones; without numbers where a limit of the process ended that."""
    try:
        found = compare(program, trace, profile, behaviour)
    except LimitReachedError:
        current().resume()
        return None, None, no_time(profile or profile_for(trace.meta.device.name), NoTime.LIMIT)
    return found.timing, found.simulated, found.time


def _measured_value(timing: Timing | None, name: str) -> int | None:
    """The measured number of this figure, None if there is none."""
    figures = timing.figures if timing is not None else ()
    return next((figure.measured for figure in figures if figure.name == name), None)


def _period(timing: Timing | None, tolerance: float) -> PeriodCheck:
    """How far the simulated period is off the measured one."""
    figures = timing.figures if timing is not None else ()
    period = next((figure for figure in figures if figure.name == PERIOD), None)
    if period is None or period.simulated is None or not period.measured:
        return PeriodCheck(None, tolerance)
    return PeriodCheck(100 * (period.simulated - period.measured) / period.measured, tolerance)


def compare_pair(a: Trace, b: Trace, sources: tuple[str, str] = ("", ""), tolerance: float | None = None) -> PairReport:
    """``b`` beside ``a``: their behaviour, then their times.

    ``sources``: the files of both. ``tolerance``: of B's period, in percent of A's.
    """
    pair = compare_traces(a, b)
    one, two = _side("A", sources[0], a), _side("B", sources[1], b)
    period = _pair_period(pair, a, b, tolerance) if tolerance is not None else None
    return PairReport(a.meta.protocol, one, two, pair, period)


def _side(label: str, source: str, trace: Trace) -> PairSide:
    """One of the traces, compared with its own protocol where that is built in."""
    try:
        found = agreement_of(recorded_program(trace.meta, place=source, records=len(trace.events)), trace)
    except UnknownProtocolError:
        return PairSide(label, source, trace, None)
    except PipesimError as error:
        return PairSide(label, source, trace, None, refused=error)
    return PairSide(label, source, trace, found.conformance, found.agreement, reason=found.reason)


def _pair_period(pair: Pair, a: Trace, b: Trace, tolerance: float) -> PeriodCheck:
    """How far B's period is off A's; of two runs that hung or trapped alike nothing is said about speed."""
    figure = pair.timing.decides if pair.timing else None
    unfinished = Ending.FINISHED not in (a.meta.status, b.meta.status)
    if unfinished or figure is None or not figure.a or figure.b is None or not figure.name.startswith("period"):
        return PeriodCheck(None, tolerance)
    return PeriodCheck(100 * (figure.b - figure.a) / figure.a, tolerance)
