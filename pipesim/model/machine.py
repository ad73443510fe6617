"""The machine: the one semantics of a flat program. Every driver moves it, none of them knows a rule of its own.

``step(program, state, agent)`` carries out one operation of one agent; ``begin`` opens the access of a read or write
that takes time, before its ``step``; ``land`` lets bytes of a transfer arrive. All are pure: no clock, no I/O, a new
state each time. What the program does wrong comes back as faults; the driver decides whether to continue. Whose move it
is, is always the driver's choice.
"""

from typing import Protocol

from pipesim.model import barrier as mbarrier
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import ANSWER, ASYNC_ACCESS, COPY_MASK, NO_EFFECT
from pipesim.model.ops import IN_ORDER, OPERANDS, Op
from pipesim.model.program import Program
from pipesim.model.rules import sync, transfer
from pipesim.model.rules.transfer import begin
from pipesim.model.state import (
    TMA,
    TORN,
    UNINITIALISED,
    Flight,
    Rule,
    State,
    Step,
    advance,
    exited,
    fill,
    initial_state,
    new,
    own_channel,
    unreachable,
    write_register,
)

__all__ = [
    "TMA",
    "TORN",
    "UNINITIALISED",
    "Flight",
    "State",
    "Step",
    "begin",
    "exited",
    "finished",
    "initial_state",
    "land",
    "own_channel",
    "pass_over",
    "step",
    "with_answer",
]

_RULES_BY_OP: dict[Op, Rule] = {**sync.MBARRIER_RULES, **sync.RULES, **transfer.RULES}
assert set(_RULES_BY_OP) == set(OPERANDS), "every operation has a rule"

_RULES: list[Rule] = [_RULES_BY_OP[min(_RULES_BY_OP)]] * (max(Op) + 1)  # by code; a valid program uses no other code
for _op, _rule in _RULES_BY_OP.items():
    _RULES[_op] = _rule


def finished(program: Program, state: State, agent: int) -> bool:
    """True if the agent has run its last operation."""
    return state[0][agent] >= len(program.code[agent])


def step(program: Program, state: State, agent: int) -> Step:
    """Carry out the next operation of ``agent``, which must not be finished."""
    operation = program.code[agent][state[0][agent]]
    return _RULES[operation[0]](program, state, agent, operation)


def pass_over(program: Program, state: State, agent: int, most: int) -> State:
    """The state after the operations without effect that come next, ``most`` at most: as their steps, in one."""
    code, pc = program.code[agent], state[0][agent]
    after, end = pc, min(pc + most, len(code))
    while after < end and code[after][0] in NO_EFFECT:
        after += 1
    return advance(state, agent, after - pc)


def land(program: Program, state: State, flight: Flight, nbytes: int = -1) -> Step:
    """Let ``nbytes`` more of a flight arrive (-1: all that remain); its last byte closes its access and signals."""
    issuer, pc, bar, remaining, arrivals, engine, _, first, end, writes, item, _, _ = flight
    part = remaining if nbytes < 0 else min(nbytes, remaining)
    last = part == remaining
    pcs, registers, holds, barriers, named, cluster, held, flights, commits, issued, cells = state
    if program.ctas > 1 and _gone(program, state, flight):
        return _lost(state, flight)
    where = flights.index(flight)
    left = () if last else (flight._replace(remaining=remaining - part),)
    flights = flights[:where] + left + flights[where + 1 :]
    if last and writes:
        cells = _land_item(cells, flights, flight) if engine in IN_ORDER else fill(cells, first, end, item)
    signalled = -1
    faults: tuple[Fault, ...] = ()
    if bar < 0:
        signalled = own_channel(program, issuer) if last else -1
    elif last or engine == TMA:
        before = barriers[bar]
        effect = mbarrier.add_tx(before, -part) if engine == TMA else mbarrier.arrive(before, arrivals)
        barriers = (*barriers[:bar], effect[0], *barriers[bar + 1 :])
        signalled = bar if effect[1] else -1
        if effect[2]:
            found, expected = (part, before.tx) if engine == TMA else (arrivals, before.pending)
            faults = (Fault(effect[2], issuer, pc, bar, found, expected),)
    after = new(State, (pcs, registers, holds, barriers, named, cluster, held, flights, commits, issued, cells))
    return new(Step, (after, -1, signalled, faults))


def _land_item(cells: tuple[int, ...], flights: tuple[Flight, ...], flight: Flight) -> tuple[int, ...]:
    """The cells after the last byte of ``flight``: its item, but where a later one of its agent and engine writes."""
    later = [f for f in flights if f.writes and f.agent == flight.agent and f.engine == flight.engine]
    for cell in range(flight.first, flight.end):
        if not any(f.first <= cell < f.end for f in later):
            cells = fill(cells, cell, cell + 1, flight.item)
    return cells


def _gone(program: Program, state: State, flight: Flight) -> bool:
    """True if its barrier or its memory is in another CTA than the issuer's, which has exited."""
    if flight.barrier >= 0:
        cta = program.barriers[flight.barrier].cta
        if cta != program.agents[flight.agent].cta and exited(program, state, cta):
            return True
    if flight.first == flight.end:
        return False
    op = program.code[flight.agent][flight.pc]
    if op[0] == Op.TMA_LOAD and op[COPY_MASK]:
        cta = program.cell_ctas[flight.first]
        return cta != program.agents[flight.agent].cta and exited(program, state, cta)
    return unreachable(program, state, flight.agent, op[ASYNC_ACCESS])


def _lost(state: State, flight: Flight) -> Step:
    """The flight ends in a CTA that has exited."""
    flights = tuple(f for f in state.flights if f != flight)
    fault = Fault(FaultKind.EXITED_CTA, flight.agent, flight.pc, flight.barrier)
    return Step(state._replace(flights=flights), faults=(fault,))


def with_answer(program: Program, state: State, agent: int, pc: int, answer: int) -> State:
    """The state in which the try at ``pc``, just executed, got this answer. PTX lets a try fail for no reason."""
    return write_register(state, agent, program.code[agent][pc][ANSWER], answer)


class Observer(Protocol):
    """Watches a run and changes nothing."""

    def on_step(self, before: State, agent: int, result: Step) -> None:
        """An agent was asked to move from ``before``: it did, or it was blocked."""

    def on_landing(self, flight: Flight, nbytes: int, result: Step) -> None:
        """A transfer delivered ``nbytes``, or its arrival."""
