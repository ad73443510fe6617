"""A broken rule in words: which agent, which operation, on what, and the two numbers that disagree."""

from __future__ import annotations

from pathlib import PurePath

from pipesim.explain.memory_words import behind, strengthened
from pipesim.explain.no_supplier import own_barriers
from pipesim.explain.operation_words import accessed, memory_name, operation_in_words
from pipesim.model.finding import MEMORY_ORDER, Fault, FaultKind, FaultReport
from pipesim.model.groups import ON_NAMED_BARRIER, READS_MEMORY, TOUCHES_MEMORY
from pipesim.model.ops import Op, operand, operands
from pipesim.model.program import Program

_MOST_NAMED = 4  #: agents that come to a named barrier


def report_faults(program: Program, faults: tuple[Fault, ...]) -> tuple[FaultReport, ...]:
    """The faults as reports print them, each (kind, agent, operation) once, in order."""
    return tuple(dict.fromkeys(report_fault(program, fault) for fault in faults))


def report_fault(program: Program, fault: Fault) -> FaultReport:
    """One fault in words."""
    operation = program.code[fault.agent][fault.pc]
    agent = program.agent_name(fault.agent)
    where = f" on {program.barrier_name(fault.barrier)}" if fault.barrier >= 0 else ""
    return FaultReport(
        fault.kind,
        f"{agent}: {fault.kind.value}{where}{_numbers(program, fault)}{_other(program, fault)}",
        agent,
        operation_in_words(program, operation),
        program.line(fault.agent, fault.pc),
        _correction(program, fault),
    )


def _correction(program: Program, fault: Fault) -> str:
    """The correction, where the program leaves no doubt: pipelines that overlap, a barrier that no operation
    initialises, or every lane.
    """
    if program.overlaps and fault.kind is not FaultKind.NOT_INITIALISED:
        return own_barriers(program)
    if fault.kind in MEMORY_ORDER:
        return strengthened(program, fault)
    if fault.kind is FaultKind.REINITIALISED:
        return _one_lane(program, fault)
    if fault.kind is FaultKind.LANES_APART:
        return "let all lanes of the warp meet there: __syncwarp(), which is bar.warp.sync"
    if fault.kind is not FaultKind.NOT_INITIALISED or fault.barrier < 0:
        return ""
    if any(op[0] == Op.INIT and operand(op, "barrier") == fault.barrier for code in program.code for op in code):
        return ""
    return f"initialise {program.barrier_name(fault.barrier)} in the init: the program never does"


def _one_lane(program: Program, fault: Fault) -> str:
    """Of an init that one line makes several times in a row: each lane makes it."""
    code, line = program.code[fault.agent], program.line(fault.agent, fault.pc)
    again = [op == code[fault.pc] and program.line(fault.agent, pc) == line for pc, op in enumerate(code)]
    if fault.pc == 0 or not again[fault.pc - 1]:
        return ""
    lanes = next((n for n, same in enumerate(again[fault.pc :]) if not same), len(code) - fault.pc) + 1
    return f"elect one lane for the init: {lanes} lanes make it, each of them once"


def _numbers(program: Program, fault: Fault) -> str:
    match fault.kind:
        case FaultKind.OVER_ARRIVAL:
            return f": {fault.found} arrive, {fault.expected} pending"
        case FaultKind.TX_RANGE | FaultKind.TX_EDGE:
            return f": {fault.found:,} bytes on top of {fault.expected:,}"
        case FaultKind.INIT_COUNT | FaultKind.ARRIVE_COUNT:
            return f": {fault.found:,}"
        case FaultKind.WRONG_ITEM:
            return f": item {fault.found} instead of {fault.expected}{_tile(program, fault)}"
        case FaultKind.EXITED_CTA if fault.barrier < 0:
            return f": {memory_name(program, fault.found)}" if fault.found >= 0 else ""
        case FaultKind.RACE | FaultKind.UNINITIALISED_READ:
            return _tile(program, fault)
        case FaultKind.TWO_OUTCOMES:
            one, other = (f"item {item}" if item >= 0 else "nothing" for item in (fault.found, fault.expected))
            where = accessed(program, program.code[fault.agent][fault.pc])
            return f": {one} in {where} after one, {other} after the other"
        case FaultKind.BARRIER_THREADS:
            return f": {fault.found} threads{_who_says(program, fault)}"
        case FaultKind.BARRIER_OVERRUN:
            return f": a surplus arrival{_who_comes(program, fault)}"
        case _:
            return ""


def _who_says(program: Program, fault: Fault) -> str:
    """Who gives another number of threads, and where: ``, where writer says 96 (ring.py:41)``."""
    number = operand(program.code[fault.agent][fault.pc], "named_barrier")
    for agent, code in enumerate(program.code):
        for pc, op in enumerate(code):
            if op[0] in ON_NAMED_BARRIER and operands(op, "named_barrier", "threads") == (number, fault.expected):
                line = PurePath(program.line(agent, pc)).name
                return f", where {program.agent_name(agent)} says {fault.expected}" + (f" ({line})" if line else "")
    return ""


def _who_comes(program: Program, fault: Fault) -> str:
    """All that come to the named barrier: ``, 96 threads of 64, as writer and reader/0 come there``."""
    number = operand(program.code[fault.agent][fault.pc], "named_barrier")
    come = [
        program.agent_name(agent)
        for agent, code in enumerate(program.code)
        if any(op[0] in ON_NAMED_BARRIER and operand(op, "named_barrier") == number for op in code)
    ]
    shown = ", ".join(come[:_MOST_NAMED]) + (f" and {len(come) - _MOST_NAMED} more" if len(come) > _MOST_NAMED else "")
    return f" makes {fault.found} threads, and it counts {fault.expected}; who comes there: {shown}"


def _other(program: Program, fault: Fault) -> str:
    """What a race is with: `` while mma/0 reads tile[1] (ring.py:30)``, "" where the fault names none."""
    if fault.other_agent < 0:
        return ""
    if fault.kind in MEMORY_ORDER:
        return behind(program, fault)
    operation = program.code[fault.other_agent][fault.other_pc]
    kind = Op(operation[0])
    verb = "reads" if kind in READS_MEMORY else "writes"
    who = "its own transfer" if fault.other_agent == fault.agent else program.agent_name(fault.other_agent)
    line = PurePath(program.line(fault.other_agent, fault.other_pc)).name  # a claim is one sentence
    where = f" ({line})" if line else ""
    return f" while {who} {verb} {accessed(program, operation)}{where}"


def _tile(program: Program, fault: Fault) -> str:
    """Where the bytes are that a read or write is about; of a multicast the CTA in which it went wrong."""
    operation = program.code[fault.agent][fault.pc]
    if operation[0] not in TOUCHES_MEMORY:
        return ""
    if fault.kind is FaultKind.WRONG_ITEM:
        return f" in {accessed(program, operation)}"
    return f" in {memory_name(program, fault.found)}"
