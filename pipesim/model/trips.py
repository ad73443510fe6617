"""The trips of a program's loops, and the waits in one of them."""

from __future__ import annotations

from collections.abc import Sequence

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
            return found  # trips of a loop without a name are the same trips only if they are as many
    return {}
