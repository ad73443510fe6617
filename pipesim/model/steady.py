"""The waits of one iteration of a loop, and which iterations are steady state: where a period is taken."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from math import lcm

from pipesim.model.groups import PARITY_WAITS, TRIP_BEGINS
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program


def last_waiting(program: Program) -> int | None:
    """The last agent of the first CTA that waits for an mbarrier: a period is read between the returns of its waits."""
    mine = [agent for agent, of in enumerate(program.agents) if of.cta == 0 and waits(program.code[agent])]
    return mine[-1] if mine else None


def waits_per_trip(program: Program) -> int:
    """Waits in an iteration of the last agent of the first CTA that waits.

    1 if unknown. A try and the wait that it may save are one.
    """
    agent = last_waiting(program)
    begins = common_trips(program).get(agent, []) if agent is not None else []
    if agent is None or len(begins) < 2:
        return 1
    return max(1, waits(program.code[agent][begins[-2] : begins[-1]]))


def iterations(program: Program) -> int:
    """Iterations of the loop that a period is of: those of the last agent of the first CTA that waits, 0 without one.

    Its waits where there is no common loop, as a period is then the time from one wait to the next.
    """
    agent = last_waiting(program)
    if agent is None:
        return 0
    begins = common_trips(program).get(agent, [])
    return len(begins) if len(begins) > 1 else waits(program.code[agent])


def waits(code: Sequence[Operation]) -> int:
    """The waits for a phase of an mbarrier among these operations."""
    return sum(1 for op in code if op[0] in PARITY_WAITS)


def common_trips(program: Program) -> dict[int, list[int]]:
    """For each agent that loops, where the iterations of the common loop begin; empty if there is no common loop."""
    loops: dict[int, dict[int, list[int]]] = {}
    for agent, code in enumerate(program.code):
        mine: dict[int, list[int]] = {}
        entered: dict[int, int] = {}
        for pc, op in enumerate(code):
            if op[0] in TRIP_BEGINS:
                mine.setdefault(operand(op, "loop"), []).append(pc)
                entered[operand(op, "loop")] = entered.get(operand(op, "loop"), 0) + (op[0] == Op.LOOP_BEGIN)
        if mine:
            loops[agent] = {mark: begins for mark, begins in mine.items() if entered[mark] == 1}
    common = set.intersection(*(set(mine) for mine in loops.values())) if loops else set()
    for mark in sorted(common, key=lambda m: -max(len(mine[m]) for mine in loops.values())):
        found = {agent: mine[mark] for agent, mine in loops.items()}
        if program.loops[mark] or len({len(begins) for begins in found.values()}) == 1:
            return found  # iterations of a loop without a name are the same only if their number is
    return {}


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
    groups = Counter(barrier.name for barrier in program.barriers if barrier.cta == 0)
    stages = max(groups.values(), default=1)
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
