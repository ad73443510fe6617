"""The first lines of a report: the protocol, its parameters, the launch, the roles; and a simulation in one."""

from __future__ import annotations

from rich.cells import cell_len

from pipesim.answers.views.heading import Heading
from pipesim.answers.views.run import SimulationLine
from pipesim.model.tables import WHOLE, Coverage
from pipesim.report.text.layout import field, pad, wrap, wrap_parts
from pipesim.report.text.words import NONE, count, cycles, parameters, seconds, warps

_PLACES = 4  #: of the same kind that a line names


def heading_lines(heading: Heading, width: int) -> list[str]:
    """``ring   stages 4 · tiles 64 · 16 KiB a tile · grid 1 CTA · 1 load warp → 2 mma warps``."""
    parts = parameters(heading.params, heading.roles)
    if "grid" not in heading.params:
        clusters = f" in clusters of {heading.cluster}" if heading.cluster > 1 else ""
        parts.append(f"grid {count(heading.grid, 'CTA')}{clusters}")
    name = heading.protocol
    if cell_len(name) > width // 3:
        above, first = wrap(name, width), "  "
    else:
        above, first = [], pad(name, cell_len(name) + 3)
    return [*above, *wrap_parts([*parts, *warps(heading.roles)], width, first), *_coverage(heading.coverage, width)]


def simulation_lines(simulation: SimulationLine, width: int) -> list[str]:
    """``simulation   profile h100 · finished · period 755 cycles · bound by consumer work``."""
    parts = [f"profile {simulation.profile} ({simulation.device})", simulation.outcome]
    if simulation.period_millicycles is not None:
        of = f" an iteration of {simulation.period_of}" if simulation.period_of else ""
        parts.append(f"period {cycles(simulation.period_millicycles)} cycles{of}")
    elif not simulation.steady:
        parts.append(f"period {NONE} (not steady)")
    elif simulation.no_period is not None:
        parts.append(f"no period: {simulation.no_period.value}")
    if simulation.bound_by:
        parts.append(f"bound by {simulation.bound_by}")
    elif simulation.no_bound is not None:
        parts.append(f"no bound: {simulation.no_bound.value}")
    if simulation.seconds is not None:
        parts.append(f"computed in {seconds(simulation.seconds)}")
    return field("simulation", parts, width)


def _lane_assumptions(coverage: Coverage) -> tuple[str, ...]:
    """What the verdict assumes about lanes."""
    places = coverage.rejoined
    if not places:
        return ()
    rest = len(places) - _PLACES
    where = ", ".join(places[:_PLACES]) + (f" and {count(rest, 'more place')}" if rest > 0 else "")
    return (f"lanes that part meet again at {where}: --strict-lanes makes it a finding",)


def _coverage(coverage: Coverage, width: int) -> list[str]:
    """What was read of a kernel, and what was not; nothing for a program that describes all there is."""
    if coverage == WHOLE:
        return []
    lines = [""]
    for label, sentences in (
        ("read", (" · ".join(coverage.extracted),) if coverage.extracted else ()),
        ("stopped", coverage.stopped),
        ("blocked", coverage.blocked),
        ("left out", coverage.left_out),
        ("inferred", coverage.inferred),
        ("assumed", (*_lane_assumptions(coverage), *coverage.assumed)),
        ("undefined", coverage.undefined),
        ("weakened", coverage.weakened),
    ):
        for sentence in sentences:
            lines += field(label, [sentence], width)
    return lines
