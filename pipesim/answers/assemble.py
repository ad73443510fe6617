"""From results to reports: what the commands have in common between computing and painting."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.answers.view import HardwareBlock, SimulationLine
from pipesim.conform.compare import compare
from pipesim.conform.diagnose.examine import examine
from pipesim.conform.result import Comparison, Conformance, Figure
from pipesim.conform.steady import Reading, beats, read
from pipesim.conform.timing import median_period, noise_millicycles
from pipesim.errors import EvidenceError
from pipesim.explain.causes import with_causes
from pipesim.explain.faults import report_faults
from pipesim.explain.lap_counters import Laps
from pipesim.explain.notes import cut_off, early_passes, unmeasured
from pipesim.explain.unguarded import advisories
from pipesim.model.finding import Advisory, Deadlock, FaultReport, Finding, Verdict
from pipesim.model.program import Program
from pipesim.timed.critical import least_period, waits_per_trip
from pipesim.timed.engine import DEFAULT_BUDGET, Outcome, Simulation, simulate
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Trace, TraceMeta

AGREES, FINDINGS, UNKNOWN, TOLERANCE = 0, 1, 3, 4  #: exit codes


@dataclass(frozen=True)
class Simulated:
    """One simulation: its line of the report, what it found, and what that means for the exit code.

    ``why`` is the reason in words where the code is not 0; ``reading`` is None without an event. ``deadlock`` is the
    simulation's with its causes, ``notes`` what the program and this run give reason to say.
    """

    result: Simulation
    reading: Reading | None
    line: SimulationLine
    faults: tuple[FaultReport, ...]
    code: int
    why: str
    deadlock: Deadlock | None = None
    notes: tuple[Advisory, ...] = ()

    @property
    def findings(self) -> tuple[Finding, ...]:
        """The deadlock, then the faults."""
        return ((self.deadlock,) if self.deadlock else ()) + self.faults


@dataclass(frozen=True)
class Held:
    """One trace compared with the program: the block of the report, and what it means for the exit code.

    ``why`` is the reason in words where the code is not 0.
    """

    block: HardwareBlock
    comparison: Comparison
    code: int
    why: str


def mark_of(code: int) -> bool | None:
    """What a report's last line is marked with: True agrees, None unknown, False anything else."""
    return None if code == UNKNOWN else code == AGREES


def run_simulation(
    program: Program, profile: Profile, *, recording: bool = False, max_steps: int = DEFAULT_BUDGET
) -> Simulated:
    """Simulate, and say what follows: a finding beats a budget that ran out."""
    result = simulate(program, profile, recording=recording, max_steps=max_steps)
    reading = read(result.trace, waits_per_trip(program))
    faults = report_faults(program, result.faults)
    code, why = AGREES, ""
    if result.deadlock is not None:
        code, why = FINDINGS, "the simulation ends in a deadlock"
    elif faults:
        code, why = FINDINGS, f"the simulation breaks a rule: {faults[0].kind.value}"
    elif result.outcome is Outcome.UNKNOWN:
        code, why = UNKNOWN, f"the simulation ran out of its budget of {max_steps:,} operations"
    deadlock, notes = _explained(result, recording=recording, max_steps=max_steps)
    return Simulated(result, reading, _simulation_line(result, reading), faults, code, why, deadlock, notes)


def _explained(run: Simulation, *, recording: bool, max_steps: int) -> tuple[Deadlock | None, tuple[Advisory, ...]]:
    """The deadlock with its causes, and the notes. A run that went wrong is run again beside lap counters.

    They say nothing about one that ended well: its agents may leave phases out on purpose.
    """
    program = run.program
    notes = advisories(program) + unmeasured(program, run.profile.device) + cut_off(program, run.late)
    if run.deadlock is None and not run.faults:
        return None, notes
    laps = Laps(program)
    simulate(program, run.profile, recording=recording, max_steps=max_steps, observers=[laps])
    deadlock = with_causes(program, run.state, run.deadlock, laps.disagreements) if run.deadlock else None
    return deadlock, notes + early_passes(program, laps.disagreements)


def _simulation_line(run: Simulation, reading: Reading | None) -> SimulationLine:
    """One simulation in one line. Its seconds are left out, so that a report depends on its input only."""
    bound = least_period(run.program, run.profile)
    period = reading.period_millicycles if reading else None
    finished = run.outcome is Outcome.FINISHED
    steady = not (finished and bound and period and beats(period, bound.period_millicycles))
    by = bound.by if bound and finished else ""
    return SimulationLine(
        run.profile.name, run.profile.device, None, period if steady else None, by, run.outcome.value, steady
    )


def hold(program: Program, trace: Trace, source: str, profile: Profile | None, tolerance: float | None) -> Held:
    """Compare a trace with the program and say what follows. EvidenceError if it is the trace of another kernel.

    ``profile``: that of the trace's device if None. ``tolerance`` is in percent of the measured period.
    """
    try:
        comparison = compare(program, trace, profile)
    except EvidenceError as error:
        error.place = error.place or source
        raise
    meta = trace.meta
    plain, traced = (median_period(meta.runs, traced=t) for t in (False, True))
    noise = noise_millicycles(meta.runs, traced=False)
    simulated = meta.source == "simulation"
    block = HardwareBlock(
        source=source,
        device=f"simulation of {meta.device.name}" if simulated else meta.device.name,
        driver=meta.device.driver,
        runs=sum(1 for run in meta.runs if run.traced),
        conformance=comparison.conformance,
        dropped=comparison.conformance.lost,
        clock_error_ps=int(trace.events.error_ps.max()) if len(trace.events) else 0,
        order_error_cycles=comparison.conformance.uncertainty_cycles,
        overhead_permille=round(1000 * (traced - plain) / plain) if plain and traced else None,
        noise_permille=round(1000 * noise / plain) if plain and noise is not None else None,
        sm_khz=meta.device.sm_khz,
        timing=comparison.timing,
        simulated=comparison.simulated,
        measured=trace,
        examination=examine(program, trace, comparison.conformance),
    )
    code, why = _meaning(trace, comparison, tolerance)
    diagnosis = block.examination.diagnosis if block.examination else None
    if diagnosis is not None and len(diagnosis.explanations) == 1:
        why += f": {diagnosis.explanations[0].claim}"
    return Held(block, comparison, code, why)


def _meaning(trace: Trace, comparison: Comparison, tolerance: float | None) -> tuple[int, str]:
    """The exit code of one comparison and its reason: a divergence beats the unknown, the unknown the tolerance."""
    code, why = behaviour(trace, comparison.conformance)
    if code != AGREES or tolerance is None:
        return code, why
    figures = comparison.timing.figures if comparison.timing is not None else ()
    return _within(next((figure for figure in figures if figure.name == "period"), None), tolerance)


def behaviour(trace: Trace, found: Conformance) -> tuple[int, str]:
    """The exit code of one trace and its reason, whatever its times."""
    if found.verdict is Verdict.REFUTED:
        assert found.divergence is not None
        return FINDINGS, found.divergence.kind.value
    wrong = wrong_data(trace.meta)
    if wrong:
        return FINDINGS, wrong
    if found.verdict is Verdict.UNKNOWN:
        lost = "1 record was lost" if found.lost == 1 else f"{found.lost:,} records were lost"
        if found.lost:
            return UNKNOWN, lost
        return UNKNOWN, _why_unknown(trace, found)
    return AGREES, ""


def wrong_data(meta: TraceMeta) -> str:
    """What a recording says against its kernel, whatever its events: wrong tiles, wrong outputs; "" if nothing."""
    if meta.wrong_tiles:
        tiles = "1 tile" if meta.wrong_tiles == 1 else f"{meta.wrong_tiles:,} tiles"
        return f"{tiles} with wrong data"
    outputs = meta.extra.get("wrong_outputs")
    if isinstance(outputs, dict) and outputs:
        name, wrong = next(iter(outputs.items()))
        elements = "1 element differs" if wrong == 1 else f"{wrong:,} elements differ"
        return f"output {name} differs from the expected values ({elements})"
    return "a launch did not finish" if meta.extra.get("gave_up") else ""


def _why_unknown(trace: Trace, found: Conformance) -> str:
    """What leaves open whether a trace that lost nothing conforms."""
    if trace.meta.status == "unknown":
        return "the simulation ran out of its budget before it ended"
    if not found.ctas:
        return "the trace has no recorded CTA"
    if not found.events:
        return "the trace has no event to compare with the protocol"
    return "the trace does not show what the kernel did after its window"


def off_by(percentage: float) -> str:
    """A percentage with its sign, to a hundredth, as a tolerance is checked by: ``+0.25 %``, ``−36.51 %``."""
    return f"{percentage:+.2f} %".replace("-", "−")


def _within(period: Figure | None, tolerance: float) -> tuple[int, str]:
    """Whether the simulated period is near enough to the measured one, by the numbers themselves, not rounded."""
    if period is None or period.simulated is None or not period.measured:
        return UNKNOWN, "no period was measured, so the tolerance cannot be applied"
    off = 100 * (period.simulated - period.measured) / period.measured
    if abs(off) > tolerance:
        return TOLERANCE, f"the simulated period is {off_by(off)} off, outside {tolerance:g} %"
    return AGREES, ""
