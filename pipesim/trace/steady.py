"""Which iterations count as steady state. The kernels take their own period between the same two iterations."""

from __future__ import annotations

from math import lcm

from pipesim.model.ops import Op, operand
from pipesim.model.program import Program


def steady_window(trips: int, stages: int) -> tuple[int, int] | None:
    """The first and last iteration of the steady state of a loop of ``trips``, a multiple of ``stages`` apart.

    The first quarter (but at least one lap) and the last iterations are left out. None if no lap is left between.
    """
    first = max(trips // 4, stages)
    laps = (trips - 1 - trips // 8 - first) // stages
    return (first, first + laps * stages) if laps >= 1 else None


def marked_iterations(program: Program) -> tuple[int, int] | None:
    """Between which iterations a kernel of this program can take its period: those of a loop that all agents run.

    None if an agent has no loop, or too short a one.
    """
    trips = [
        max((operand(op, "trips") for op in code if op[0] == Op.LOOP_BEGIN), default=0) for code in program.code if code
    ]
    stages: dict[str, int] = {}
    for barrier in program.barriers:
        stages[barrier.name] = max(stages.get(barrier.name, 0), barrier.stage + 1)
    return steady_window(min(trips, default=0), lcm(*stages.values()) if stages else 1)
