"""From results to reports: what the commands have in common between computing and painting."""

from __future__ import annotations

from dataclasses import dataclass

from pipesim.conform.compare import compare
from pipesim.conform.result import Comparison
from pipesim.conform.timing import median_period, noise_millicycles
from pipesim.model.finding import Verdict
from pipesim.model.program import Program
from pipesim.report.view import HardwareBlock, Heading, SimulationLine
from pipesim.timed.bound import ring_law
from pipesim.timed.engine import Simulation
from pipesim.timed.profile import Profile
from pipesim.trace.schema import Trace

AGREES, FINDINGS, UNKNOWN, TOLERANCE = 0, 1, 3, 4


@dataclass(frozen=True)
class Held:
    """One trace held against the program: the block of the report, and what it means for the exit code."""

    block: HardwareBlock
    comparison: Comparison
    code: int
    why: str  #: the reason in words where the code is not 0


def heading(program: Program) -> Heading:
    """What was run."""
    roles: dict[str, int] = {}
    for agent in program.agents:
        if agent.cta == 0:
            roles[agent.role] = roles.get(agent.role, 0) + 1
    return Heading(program.name, program.params, program.grid, tuple(roles.items()))


def simulation_line(run: Simulation, period_millicycles: int | None) -> SimulationLine:
    """One simulation in one line. Its seconds are left out, so that a report depends on its input only."""
    bound = ring_law(run.program, run.profile)
    return SimulationLine(
        run.profile.name, run.profile.device, None, period_millicycles, bound.by if bound else "", run.outcome.value
    )


def hold(program: Program, trace: Trace, source: str, profile: Profile | None, tolerance: float | None) -> Held:
    """Compare a trace with the program and say what follows."""
    comparison = compare(program, trace, profile)
    meta = trace.meta
    plain, traced = (median_period(meta.runs, traced=t) for t in (False, True))
    noise = noise_millicycles(meta.runs, traced=False)
    block = HardwareBlock(
        source=source,
        device=meta.device.name,
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
    )
    code, why = _meaning(trace, comparison, tolerance)
    return Held(block, comparison, code, why)


def _meaning(trace: Trace, comparison: Comparison, tolerance: float | None) -> tuple[int, str]:
    found = comparison.conformance
    if found.verdict is Verdict.REFUTED:
        assert found.divergence is not None
        return FINDINGS, found.divergence.kind.value
    if trace.meta.wrong_tiles:
        return FINDINGS, f"{trace.meta.wrong_tiles} tiles held wrong data"
    if found.verdict is Verdict.UNKNOWN:
        reason = f"{found.lost:,} records were lost" if found.lost else "the trace has no recorded CTA"
        return UNKNOWN, reason
    if tolerance is not None and comparison.timing is not None:
        period = comparison.timing.figures[0]
        if period.error_permille is None:
            return UNKNOWN, "no period was measured, so none can be within the tolerance"
        if abs(period.error_permille) > 10 * tolerance:
            return TOLERANCE, f"the simulated period is {period.error_permille / 10:+.1f} % off, outside {tolerance:g} %"
    return AGREES, ""
