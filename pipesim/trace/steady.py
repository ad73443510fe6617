"""Which iterations count as steady state. The kernels take their own period between the same two iterations."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm

from pipesim.model.ops import Op, operand
from pipesim.model.program import Program
from pipesim.model.waits import last_waiting, waits, waits_per_trip
from pipesim.trace.sites import barrier_groups


def steady_window(iterations: int, stages: int) -> tuple[int, int] | None:
    """The first and last iteration of the steady state of a loop, a multiple of ``stages`` apart.

    The first quarter (but at least one lap) and the last iterations are left out. None if no lap is left between.
    """
    first = max(iterations // 4, stages)
    laps = (iterations - 1 - iterations // 8 - first) // stages
    return (first, first + laps * stages) if laps >= 1 else None


@dataclass(frozen=True)
class PeriodMarks:
    """Between which waits of which agent a period is taken: numbers of its returned waits, ``iterations`` apart."""

    agent: int
    first: int
    last: int
    iterations: int


def period_marks(program: Program) -> PeriodMarks | None:
    """Where an untraced launch of ``program`` takes its period, so that it is the one that a trace of it shows.

    Between the same returns as ``conform.steady`` reads it. None where the run is too short for a steady state, or no
    agent waits.
    """
    agent = last_waiting(program)
    if agent is None:
        return None
    stages = max((group.stages for group in barrier_groups(program)), default=1)
    each = waits_per_trip(program)
    window = steady_window(waits(program.code[agent]), stages * each)
    if window is None:
        return None
    return PeriodMarks(agent, *window, (window[1] - window[0]) // each)


def marked_iterations(program: Program) -> tuple[int, int] | None:
    """Between which iterations a kernel of this program can take its period: those of a loop that all agents run.

    None if an agent has no loop, or too short a one.
    """
    iterations = [
        max((operand(op, "trips") for op in code if op[0] == Op.LOOP_BEGIN), default=0) for code in program.code if code
    ]
    stages: dict[str, int] = {}
    for barrier in program.barriers:
        stages[barrier.name] = max(stages.get(barrier.name, 0), barrier.stage + 1)
    return steady_window(min(iterations, default=0), lcm(*stages.values()) if stages else 1)
