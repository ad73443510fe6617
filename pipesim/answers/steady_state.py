"""The steady state of a simulated run: the period of its inner loop, why there is none, and why there is no bound."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pipesim.answers.views.run import NoBound, NoPeriod
from pipesim.conform.steady import one_cta
from pipesim.model.groups import PARITY_WAITS, TRIP_BEGINS
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.trips import common_trips, last_waiting
from pipesim.timed.bounds.critical import MOST_OPERATIONS
from pipesim.trace.schema import EventKind, Trace
from pipesim.trace.sites import barrier_groups
from pipesim.trace.steady import steady_window


@dataclass(frozen=True)
class InnerPeriod:
    """The period of a loop inside another one, in its last whole run: 1/1000 cycle of an iteration, and its name."""

    millicycles: int
    loop: str


def inner_period(program: Program, trace: Trace) -> InnerPeriod | None:
    """The period of the inner loop of the last agent that waits, where the outer one has too few iterations for one.

    Between returned waits of one run of the loop, whole laps apart. None for a loop without waits, for too short a one,
    for an agent that tries instead, or whose returns are not those of its operations.
    """
    agent = last_waiting(program)
    if agent is None:
        return None
    loop = _last_inner_loop(program.code[agent])
    if loop is None:
        return None
    mark, waits = loop
    stages = max((group.stages for group in barrier_groups(program)), default=1)
    steady = steady_window(len(waits), stages)
    returns = _returns(program, trace, agent)
    if steady is None or returns is None or waits[steady[1]] >= len(returns):
        return None
    cycles = returns[waits[steady[1]]] - returns[waits[steady[0]]]
    return InnerPeriod(round(1000 * cycles / (steady[1] - steady[0])), program.loops[mark])


def iteration_of(program: Program) -> str:
    """Whose iteration the period of all roles is, with how many another role makes of it: ``consumer1, 2 of load``.

    "" where an iteration is that of every role, or it is not known how many iterations of others are one.
    """
    agent, trips = last_waiting(program), common_trips(program)
    if agent is None or agent not in trips:
        return ""
    mine = len(trips[agent])
    most, other = max((len(begins), -each) for each, begins in trips.items())
    if mine < 2 or most == mine or most % mine:  # of one iteration it is not known how many waits are in it
        return ""
    return f"{program.agents[agent].role}, {most // mine} of {program.agents[-other].role}"


def _last_inner_loop(code: tuple[Operation, ...]) -> tuple[int, list[int]] | None:
    """The innermost loop that an agent runs last, inside another one: its mark, and of each iteration the number of its
    first wait among all waits of the agent.
    """
    open_: list[tuple[int, list[int]]] = []
    last: tuple[int, list[int]] | None = None
    waits = 0
    for op in code:
        if op[0] in TRIP_BEGINS:
            if op[0] == Op.LOOP_BEGIN:
                open_.append((operand(op, "loop"), []))
            if open_:
                open_[-1][1].append(waits)
        elif op[0] == Op.LOOP_END and open_:
            mark, begins = open_.pop()
            each = {later - one for one, later in pairwise(begins)}
            if open_ and len(each) == 1 and 0 not in each:
                last = mark, begins
        elif op[0] in PARITY_WAITS:
            waits += 1
    return last


def _returns(program: Program, trace: Trace, agent: int) -> list[int] | None:
    """The cycles of an agent's returned waits; None where they are not one for each of its waits."""
    events = one_cta(trace)
    kinds = np.array([int(site.kind) for site in trace.meta.sites], dtype=np.int64)
    mine = (events.agent == agent) & (kinds[events.site] == EventKind.WAIT_RETURN) if len(events) else np.zeros(0, bool)
    found: list[int] = events.cycle[mine].tolist()
    return found if len(found) == sum(op[0] in PARITY_WAITS for op in program.code[agent]) else None


def why_no_period(program: Program) -> NoPeriod:
    """Why a run that finished has no period."""
    agent = last_waiting(program)
    if agent is None:
        return NoPeriod.NO_WAITS
    if not any(op[0] in TRIP_BEGINS for op in program.code[agent]):
        return NoPeriod.NO_LOOP
    return NoPeriod.TOO_FEW


def why_no_bound(program: Program) -> NoBound:
    """Why the least period of any schedule is not known: the first thing that its computation needs and lacks."""
    if sum(map(len, program.code)) > MOST_OPERATIONS:
        return NoBound.TOO_LARGE
    if any(op[0] == Op.JUMP_IF for code in program.code for op in code):
        return NoBound.JUMPS
    if not any(op[0] in TRIP_BEGINS for code in program.code for op in code):
        return NoBound.NO_LOOP
    trips = common_trips(program)
    if not trips:
        return NoBound.NO_COMMON_LOOP
    lap = max((group.stages for group in barrier_groups(program)), default=1)
    if steady_window(min(map(len, trips.values())), lap) is None:
        return NoBound.TOO_FEW
    return NoBound.UNEVEN
