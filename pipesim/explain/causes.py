"""Why a deadlock is there, where the program tells: a phase that was missed, and a count that is never reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipesim.explain.anatomy.groups import SignalLedger, ledger
from pipesim.explain.anatomy.parts import Means
from pipesim.explain.blocked import contributes
from pipesim.explain.lap_counters import Aliasing
from pipesim.explain.no_supplier import correction_of
from pipesim.explain.one_sided import one_sided
from pipesim.model.finding import Blocked, Deadlock
from pipesim.model.groups import ASKS, IN_FLIGHT, MEETINGS, ON_NAMED_BARRIER, PARITY_WAITS, SIGNALS
from pipesim.model.machine import State
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program


def with_causes(
    program: Program, state: State, found: Deadlock, laps: Sequence[Aliasing], asked: Program | None = None
) -> Deadlock:
    """The same deadlock in ``state``, with the causes that are known; ``laps`` are the disagreements of its run.

    ``asked``: the program that was asked about, if this is one of smaller sizes.
    """
    book = ledger(program)
    agents = {program.agent_name(a): a for a in range(len(program.agents))}
    blocked = []
    for each in found.blocked:
        agent = agents[each.agent]
        blocked.append(_caused(book, state, agent, each, _lapped(program, state, agent, laps)))
    found = replace(found, blocked=tuple(blocked), correction=correction_of(program, found, asked or program))
    return replace(found, one_sided=one_sided(program, state, found))


def _caused(book: SignalLedger, state: State, agent: int, each: Blocked, lapped: Aliasing | None) -> Blocked:
    """What one agent waits for, with its cause: it was lapped, or the count is never reached."""
    program = book.program
    if lapped is not None:
        arrives = contributes(program, lapped.barrier, "arrival")
        others = [n for n, code in enumerate(program.code) if n != agent and any(map(arrives, code))]
        names = tuple(program.agent_name(other) for other in others)
        return replace(each, missed=lapped.meant, lapped_by=names, counted=_is_counted(program, agent))
    given = _given(book, state, agent, each)
    return replace(each, given=given, count_line=_count_line(program, state, agent) if given >= 0 else "")


def _is_counted(program: Program, agent: int) -> bool:
    """True if the agent does anything for which another one can wait, once it has begun to wait itself."""
    code = program.code[agent]
    begin = next((pc for pc, op in enumerate(code) if op[0] in ASKS), 0)
    return any(op[0] in SIGNALS | IN_FLIGHT | MEETINGS for op in code[begin:])


def _count_line(program: Program, state: State, agent: int) -> str:
    """Where the count of what an agent waits for is stated: the init, or the agent's own bar_sync."""
    wait = program.code[agent][state.pcs[agent]]
    if wait[0] in ON_NAMED_BARRIER:
        return program.line(agent, state.pcs[agent])
    for other, code in enumerate(program.code):
        for pc, op in enumerate(code):
            if op[0] == Op.INIT and operand(op, "barrier") == operand(wait, "barrier"):
                return program.line(other, pc)
    return ""


def _lapped(program: Program, state: State, agent: int, laps: Sequence[Aliasing]) -> Aliasing | None:
    """How a blocked agent missed the phase that it asks for, None if its wait means what its parity says.

    An agent that asks again with the same parity may mean the phase after next: nothing is told of it.
    """
    pc = state.pcs[agent]
    found = [each for each in laps if (each.agent, each.pc) == (agent, pc) and not each.passed]
    if not found or (found[-1].meant < 0 and _is_counted(program, agent)):
        return None  # one that takes some of the phases only may begin with a later one
    before = [
        op for op in program.code[agent][:pc] if op[0] in PARITY_WAITS and operand(op, "barrier") == found[-1].barrier
    ]
    return None if before and operand(before[-1], "parity") == found[-1].parity else found[-1]


def _given(book: SignalLedger, state: State, agent: int, blocked: Blocked) -> int:
    """The arrivals that the program gives each phase, -1 where they reach the count or nobody can say.

    Nobody can where agents branch or drop out, or do not all arrive equally often, and often for what is waited for.
    """
    operation = book.program.code[agent][state.pcs[agent]]
    if operation[0] in ON_NAMED_BARRIER:
        return _threads(book.program, operation, blocked)
    if operation[0] not in PARITY_WAITS or not blocked.arrivals_missing:
        return -1
    barrier = operand(operation, "barrier")
    ways = {way: tally for way, tally in book.given[barrier].items() if tally.arrivals.high}
    ways = {way: tally for way, tally in ways.items() if way.means is not Means.CP_ASYNC}
    rounds = {tally.times for tally in ways.values()}
    uneven = any(
        way.agent in book.branching or way.means is Means.ARRIVE_DROP or tally.arrivals.low != tally.arrivals.high
        for way, tally in ways.items()
    )
    if len(rounds) != 1 or uneven:
        return -1
    asked = book.asked[barrier][agent]
    times = rounds.pop()
    for phases in (asked.times, asked.times - asked.first_parity):  # the last phase may have nobody who waits for it
        if phases and times % phases == 0:
            given = sum(tally.arrivals.high for tally in ways.values()) * (times // phases)
            return given if given < blocked.count else -1
    return -1


def _threads(program: Program, wait: Operation, blocked: Blocked) -> int:
    """The threads that ever come to the named barrier, -1 if they are enough."""
    number = operand(wait, "named_barrier")
    come = sum(
        operand(mine[0], "lanes")
        for code in program.code
        if (mine := [op for op in code if op[0] in ON_NAMED_BARRIER and operand(op, "named_barrier") == number])
    )
    return come if come < blocked.count else -1
