"""Why a deadlock is there, where the program tells: a phase that was missed, and a count that is never reached."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipesim.explain.anatomy.groups import SignalLedger, ledger
from pipesim.explain.anatomy.parts import Means
from pipesim.explain.lap_counters import Aliasing
from pipesim.explain.no_supplier import correction_of
from pipesim.model.finding import Blocked, Deadlock
from pipesim.model.groups import PARITY_WAITS
from pipesim.model.machine import State
from pipesim.model.ops import operand
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
        missed = _missed(program, state, agent, laps)
        blocked.append(replace(each, missed=missed, given=_given(book, state, agent, each) if missed < 0 else -1))
    return replace(found, blocked=tuple(blocked), correction=correction_of(program, found, asked or program))


def _missed(program: Program, state: State, agent: int, laps: Sequence[Aliasing]) -> int:
    """The phase that a blocked agent asks for although it is complete, -1 if its wait means what its parity says.

    An agent that asks again with the same parity may mean the phase after next: nothing is told of it.
    """
    pc = state.pcs[agent]
    found = [each for each in laps if (each.agent, each.pc) == (agent, pc) and not each.passed]
    if not found or found[-1].meant < 0:
        return -1
    before = [
        op for op in program.code[agent][:pc] if op[0] in PARITY_WAITS and operand(op, "barrier") == found[-1].barrier
    ]
    return -1 if before and operand(before[-1], "parity") == found[-1].parity else found[-1].meant


def _given(book: SignalLedger, state: State, agent: int, blocked: Blocked) -> int:
    """The arrivals that the program gives each phase, -1 where they reach the count or nobody can say.

    Nobody can where agents branch or drop out, or do not all arrive equally often, and often for what is waited for.
    """
    operation = book.program.code[agent][state.pcs[agent]]
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
