"""Where agents of one role, or of the ranks of a cluster, did not all do the same: who arrives how often."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable

from pipesim.explain.blocked import contributes
from pipesim.model.finding import Blocked, Deadlock, OneSided
from pipesim.model.groups import CLUSTER, ON_NAMED_BARRIER
from pipesim.model.machine import State
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program

_MOST = 2  #: that are told of


def one_sided(program: Program, state: State, found: Deadlock) -> tuple[OneSided, ...]:
    """Of each barrier that agents wait for and to which nobody will come any more: roles whose agents come unequally
    often.
    """
    if found.cut:
        return ()  # what the agents do after their waits was not read
    agents = {program.agent_name(agent): agent for agent in range(len(program.agents))}
    told: dict[OneSided, None] = {}
    for blocked in found.blocked:
        never = blocked.given >= 0 or not any(supplier.next_line for supplier in blocked.suppliers)
        if blocked.arrivals_missing and never and not blocked.lapped_by:
            comes = _comes(program, program.code[agents[blocked.agent]][state.pcs[agents[blocked.agent]]])
            told |= dict.fromkeys(_uneven(program, blocked, comes)) if comes is not None else {}
    return tuple(told)[:_MOST]


def _comes(program: Program, wait: Operation) -> Callable[[Operation], bool] | None:
    """A test for what an agent does where others wait with this operation: at any barrier of the group."""
    if wait[0] in ON_NAMED_BARRIER:
        number = program.named_barriers[operand(wait, "named_barrier")][1]
        return lambda op: (
            op[0] in ON_NAMED_BARRIER and program.named_barriers[operand(op, "named_barrier")][1] == number
        )
    if wait[0] in CLUSTER:
        return lambda op: op[0] == Op.CLUSTER_ARRIVE
    if wait[0] != Op.WAIT:
        return None
    group = program.barriers[operand(wait, "barrier")].name
    tests = [contributes(program, n, "arrival") for n, each in enumerate(program.barriers) if each.name == group]
    return lambda op: any(test(op) for test in tests)


def _uneven(program: Program, blocked: Blocked, comes: Callable[[Operation], bool]) -> list[OneSided]:
    """The roles of which some agents come more often than others, each once."""
    found: list[OneSided] = []
    for role in dict.fromkeys(agent.role for agent in program.agents):
        tallies: defaultdict[int, list[str]] = defaultdict(list)
        line = ""
        for agent, each in enumerate(program.agents):
            if each.role == role:
                places = [pc for pc, op in enumerate(program.code[agent]) if comes(op)]
                line = line or (program.line(agent, places[-1]) if places else "")
                tallies[len(places)].append(program.agent_name(agent))
        if len(tallies) > 1:
            barrier = blocked.barrier.partition("[")[0]
            ordered = sorted(tallies.items(), reverse=True)
            found.append(OneSided(barrier, tuple((times, tuple(names)) for times, names in ordered), line))
    return found
