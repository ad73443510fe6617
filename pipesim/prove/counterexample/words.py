"""Doubts and schedules by the program's names: who, which operation, on what, in which phase, and the author's line."""

from dataclasses import dataclass
from enum import Enum

from pipesim.explain.operation_words import landing_in_words, operation_in_short, operation_in_words
from pipesim.findings.catalog import CONCERN_INITS
from pipesim.model.barrier import BarrierState, passes
from pipesim.model.groups import (
    BLOCKING_WAITS,
    CLUSTER,
    DELAYED_ARRIVALS,
    LIFE,
    LOOP_MARKS,
    ON_BARRIER,
    ON_NAMED_BARRIER,
    SETS_UP,
    TOUCHES_MEMORY,
    TRIES,
    UNLISTED,
)
from pipesim.model.machine import Step
from pipesim.model.moves import Kind, Move, canonical, make
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.state import State
from pipesim.model.tables import meeting_name
from pipesim.prove.counterexample.past import agents_to_show, core, past_of
from pipesim.prove.counterexample.play import Play
from pipesim.prove.refutation import Doubt, Refutation, Why


class Part(Enum):
    """What a step has to do with the failure. The value is what a report says about steps that it leaves out."""

    FOCUS = "on the barrier or the bytes of the failure"
    PAST = "before that"
    SETUP = "of the setup"
    ASIDE = "unrelated to the failure"
    PRIVATE = "not observable by other agents"


@dataclass(frozen=True)
class Line:
    """One step of a schedule: its number from 1 on, the agent, what it does, and the author's line.

    ``short`` says the same in fewer words. ``barrier`` is the group ("" where the step is on none) and ``stage`` its
    stage; ``phase`` is the phase in which the step is counted, or which a wait saw complete: -1 is the phase before the
    first, None where there is none. ``note`` is what came of it: ``1 of 2``, ``completes phase 0``.
    """

    number: int
    agent: str
    what: str
    line: str
    short: str = ""
    barrier: str = ""
    stage: int = -1
    phase: int | None = None
    note: str = ""
    part: Part = Part.PAST


@dataclass(frozen=True)
class DoubtLine:
    """One doubt: why, the operation with its agent and line, and the other one if there are two ("" if not)."""

    why: str
    what: str
    line: str
    other: str = ""
    other_line: str = ""


def doubt_line(program: Program, doubt: Doubt) -> DoubtLine:
    """A doubt in words."""
    if doubt.agent < 0:
        return DoubtLine(doubt.why.value, program.barrier_name(doubt.where), "")
    what, line = _operation(program, doubt.agent, doubt.pc), program.line(doubt.agent, doubt.pc)
    if doubt.other_agent < 0:
        return DoubtLine(_crowd(program, doubt) + doubt.why.value, what, line)
    other = _operation(program, doubt.other_agent, doubt.other_pc)
    return DoubtLine(doubt.why.value, what, line, other, program.line(doubt.other_agent, doubt.other_pc))


def _crowd(program: Program, doubt: Doubt) -> str:
    """``256 threads use it, and any 128 complete it: `` of a named barrier that more agents use than it waits for."""
    op = program.code[doubt.agent][doubt.pc]
    if doubt.why is not Why.EARLY_PART or op[0] not in ON_NAMED_BARRIER:
        return ""
    number, threads = operand(op, "named_barrier"), operand(op, "threads")
    come = sum(
        max((operand(each, "lanes") for each in code if _meets_at(each, number)), default=0) for code in program.code
    )
    return f"{come} threads use it, and any {threads} of them complete it: " if come > threads else ""


def _meets_at(op: Operation, number: int) -> bool:
    return op[0] in ON_NAMED_BARRIER and operand(op, "named_barrier") == number


def schedule_lines(program: Program, refuted: Refutation) -> tuple[Line, ...]:
    """Every step of a refutation's schedule but loop marks, numbered as in the schedule."""
    past = past_of(program, refuted)
    focus = _Focus(program, refuted)
    state = canonical(Play(program).state)
    set_up = [True] * len(program.agents)  # until it first waits for an mbarrier, or arrives on one
    found = []
    for number, move in enumerate(refuted.schedule):
        agent, pc = _moved_operation(state, move)
        op = program.code[agent][pc]
        result = make(program, state, move)
        set_up[agent] = set_up[agent] and (op[0] in SETS_UP or op[0] in UNLISTED)
        if op[0] in UNLISTED:
            part = Part.PRIVATE
        elif number not in past:
            part = Part.ASIDE
        elif focus.holds(op) or (number == len(refuted.schedule) - 1 and refuted.deadlock is None):
            part = Part.FOCUS
        else:
            part = Part.SETUP if set_up[agent] else Part.PAST
        if move.kind != Kind.STEP or op[0] not in LOOP_MARKS:
            found.append(_line(program, state, move, result, number + 1, part))
        state = result.state
    return tuple(found)


class _Focus:
    """The barriers and the bytes on which a failure shows. An init is one of them where its count may be the cause."""

    def __init__(self, program: Program, refuted: Refutation) -> None:
        self._program = program
        self._barriers: set[str] = set()
        self._cells: set[int] = set()
        fault = refuted.fault
        self._inits = fault is not None and fault.kind in CONCERN_INITS
        if fault is not None:
            ends = [(fault.agent, fault.pc)] + ([(fault.other_agent, fault.other_pc)] if fault.other_agent >= 0 else [])
            if fault.barrier >= 0:
                self._barriers.add(program.barrier_name(fault.barrier))
            for agent, pc in ends:
                self._cells |= set(_cells(program, program.code[agent][pc]))
        if refuted.deadlock is not None:
            causes = core(refuted.deadlock)
            self._barriers |= {b.barrier for b in refuted.deadlock.blocked if b.agent in causes}
            self._inits = any(b.arrivals_missing for b in refuted.deadlock.blocked if b.agent in causes)
            self._inits &= all(b.missed < 0 and not b.lapped_by for b in refuted.deadlock.blocked)

    def holds(self, op: Operation) -> bool:
        """True for an operation on one of them."""
        if op[0] in ON_NAMED_BARRIER:
            return meeting_name(self._program.named_barrier(op)) in self._barriers
        if op[0] in CLUSTER:
            return "the cluster barrier" in self._barriers
        barrier = _barrier_of(op)
        if op[0] == Op.INIT and not self._inits:
            return False
        if barrier >= 0 and self._program.barrier_name(barrier) in self._barriers:
            return True
        return not self._cells.isdisjoint(_cells(self._program, op))


def _barrier_of(op: Operation) -> int:
    """The mbarrier that an operation is on, -1 if none."""
    return operand(op, "barrier") if op[0] in ON_BARRIER else -1


def _cells(program: Program, op: Operation) -> range:
    return range(*program.cells[operand(op, "access")]) if op[0] in TOUCHES_MEMORY else range(0)


def _line(program: Program, state: State, move: Move, result: Step, number: int, part: Part) -> Line:
    agent, pc = _moved_operation(state, move)
    op = program.code[agent][pc]
    landing = move.kind == Kind.LAND
    on = state.flights[move.who].barrier if landing else _barrier_of(op)
    phase, note = _phase(state, op, move, result, on) if on >= 0 else (None, "")
    short = operation_in_short(program, op) if move.kind == Kind.STEP else _what(program, state, move)
    return Line(
        number,
        program.agent_name(agent),
        _what(program, state, move),
        program.line(agent, pc),
        short,
        program.barriers[on].name if on >= 0 else "",
        program.barriers[on].stage if on >= 0 else -1,
        phase,
        note,
        part,
    )


def _phase(state: State, op: Operation, move: Move, result: Step, on: int) -> tuple[int | None, str]:
    """The phase of a step on a barrier, and what came of it."""
    before, after = state.barriers[on], result.state.barriers[on]
    if any(fault.kind.traps for fault in result.faults):
        return before.done, ""
    if move.kind != Kind.LAND:
        if op[0] in LIFE:
            return None, ""
        if op[0] in BLOCKING_WAITS:
            return before.done - 1, f"phase {before.done - 1}" if before.done else "immediately"
        if op[0] in TRIES:
            return before.done - 1, _answer(before, op) if move.kind != Kind.FAIL else ""
        if op[0] in DELAYED_ARRIVALS or op[0] == Op.TMA_LOAD:
            return before.done, ""
    if result.signalled == on:
        return before.done, f"completes phase {before.done}"
    if after.pending != before.pending and after.expected > 1:
        return before.done, f"{after.expected - after.pending} of {after.expected}"
    return before.done, ""


def _answer(word: BarrierState, op: Operation) -> str:
    """What a try of a phase's parity finds; that of a state token is not known from the barrier alone."""
    if op[0] == Op.TEST_STATE:
        return ""
    return "true" if passes(word, operand(op, "parity")) else "false"


def _moved_operation(state: State, move: Move) -> tuple[int, int]:
    if move.kind == Kind.LAND:
        flight = state.flights[move.who]
        return flight.agent, flight.pc
    return move.who, state.pcs[move.who]


def _what(program: Program, state: State, move: Move) -> str:
    agent, pc = _moved_operation(state, move)
    words = operation_in_words(program, program.code[agent][pc])
    match move.kind:
        case Kind.OPEN:
            return f"{words} begins"
        case Kind.FAIL:
            return f"{words}: false"
        case Kind.LAND:
            flight = state.flights[move.who]
            return landing_in_words(program, program.code[agent][pc], flight.barrier, move.nbytes, flight.remaining)
        case _:
            return words


def _operation(program: Program, agent: int, pc: int) -> str:
    return f"{program.agent_name(agent)}: {operation_in_words(program, program.code[agent][pc])}"


def final_states(program: Program, refuted: Refutation) -> dict[str, str]:
    """Where a schedule leaves its agents, in the program's order: ``waits for empty[0]``, ``has finished``.

    "" after a fault, and of the agents of a deadlock that have no part in it.
    """
    names = [program.agent_name(agent) for agent in range(len(program.agents))]
    if refuted.deadlock is None:
        return dict.fromkeys(names, "")
    waits = {b.agent: f"waits for {b.barrier}" for b in refuted.deadlock.blocked}
    shown = agents_to_show(refuted.deadlock)
    return {name: waits.get(name, "has finished") if name in shown else "" for name in names}
