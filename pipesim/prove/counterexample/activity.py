"""What every agent does at each move of a schedule: the rows of a timeline in moves, where a simulation has cycles."""

from enum import Enum
from typing import NamedTuple

from pipesim.model.groups import ACCESSES, BLOCKING_WAITS, NOT_DRAWN, WORKS
from pipesim.model.machine import finished, initial_state
from pipesim.model.moves import Kind, canonical, held_up, make, opens
from pipesim.model.ops import Operation, operand
from pipesim.model.program import Program
from pipesim.model.waits import WaitPurpose, wait_purposes
from pipesim.prove.refutation import Schedule

FOREVER = -1  #: end of a wait that the schedule leaves open


class Activity(Enum):
    """What an agent is at."""

    ISSUES = "issues"
    WAITS = "waits"
    WORKS = "works"


class Span(NamedTuple):
    """From the move ``first`` to before ``end``, counted from 0; ``barrier``: the group waited for, and what for."""

    agent: int
    first: int
    end: int
    activity: Activity
    barrier: str = ""
    awaited: WaitPurpose | None = None


def activity(program: Program, schedule: Schedule) -> tuple[Span, ...]:
    """The spans of all agents, in the order in which they end.

    An agent waits for a barrier from its move before on, and is at a read or write from its begin to its end. What it
    waits for when the schedule is over has no end.
    """
    meant = wait_purposes(program)

    def what(agent: int, op: Operation) -> tuple[str, WaitPurpose | None]:
        if op[0] not in BLOCKING_WAITS:
            return "", None
        group = program.barriers[operand(op, "barrier")].name
        return group, meant.get((program.agents[agent].role, group))

    state = canonical(initial_state(program))
    free = [-1] * len(program.agents)  # the move after its last, -1 before its first
    found: list[Span] = []
    for now, move in enumerate(schedule):
        if move.kind != Kind.LAND:
            op = program.code[move.who][state.pcs[move.who]]
            if op[0] in BLOCKING_WAITS:
                first = free[move.who] if free[move.who] >= 0 else now
                found.append(Span(move.who, first, now + 1, Activity.WAITS, *what(move.who, op)))
            elif move.kind != Kind.OPEN and op[0] not in NOT_DRAWN:
                opened = op[0] in ACCESSES
                first = free[move.who] - 1 if opened else now
                found.append(Span(move.who, first, now + 1, Activity.WORKS if op[0] in WORKS else Activity.ISSUES))
            free[move.who] = now + 1
        state = make(program, state, move).state
    for agent, after in enumerate(free):
        if finished(program, state, agent):
            continue
        op = program.code[agent][state.pcs[agent]]
        if op[0] in ACCESSES and not opens(program, state, agent):
            found.append(Span(agent, after - 1, len(schedule), Activity.WORKS))
        elif held_up(program, state, agent) is not None:
            found.append(Span(agent, max(after, 0), FOREVER, Activity.WAITS, *what(agent, op)))
    return tuple(found)
