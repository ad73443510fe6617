"""Words that the sentences of several kinds share: the bytes of an access, and of memory order what came before."""

from pathlib import PurePath

from pipesim.explain.operation_words import accessed_bytes, memory_name, operation_in_words
from pipesim.model.finding import Fault
from pipesim.model.groups import MAY_ACQUIRE, ON_BARRIER, READS_MEMORY, TOUCHES_MEMORY
from pipesim.model.ops import Op, Order, operand, order_of
from pipesim.model.program import Program


def tile_of(program: Program, fault: Fault) -> str:
    """Where the bytes are that a read or write is about; of a multicast the CTA in which it failed."""
    touches = program.code[fault.agent][fault.pc][0] in TOUCHES_MEMORY
    return f" in {memory_name(program, fault.found)}" if touches else ""


def cause_of(program: Program, fault: Fault) -> str:
    """The operation that is too weak, and whose it is."""
    return f"{_too_weak(program, fault)} of {program.agent_name(fault.cause_agent)}"


def _too_weak(program: Program, fault: Fault) -> str:
    """The operation that is too weak; of an access to a word what it does: it waits for none."""
    op = program.code[fault.cause_agent][fault.cause_pc]
    if op[0] not in ON_BARRIER or not program.is_word(operand(op, "barrier")):
        return f"`{operation_in_words(program, op)}`"
    relaxed = "relaxed " * (order_of(operand(op, "semantics")) == Order.RELAXED)
    does = "read" if op[0] in MAY_ACQUIRE else "write"
    return f"the {relaxed}{does} of {program.barrier_name(operand(op, 'barrier'))}"


def previous_use(program: Program, fault: Fault) -> str:
    """What the access, or the use of a barrier, comes after: ``: tile[1] was read by mma/0 (ring.py:30)``."""
    operation = program.code[fault.other_agent][fault.other_pc]
    op = Op(operation[0])
    if op == Op.INIT:
        return f", which {who_at(program, fault.other_agent, fault.other_pc)} initialises"
    what = f": {accessed_bytes(program, operation)} was {'read' if op in READS_MEMORY else 'written'} by"
    between = ""
    if fault.cause_agent >= 0:
        between = f"; {_too_weak(program, fault)} of {who_at(program, fault.cause_agent, fault.cause_pc)} comes between"
    return f"{what} {who_at(program, fault.other_agent, fault.other_pc)}{between}"


def meanwhile(program: Program, fault: Fault) -> str:
    """What a race is with: `` while mma/0 reads tile[1] (ring.py:30)``."""
    operation = program.code[fault.other_agent][fault.other_pc]
    verb = "reads" if Op(operation[0]) in READS_MEMORY else "writes"
    who = "its own transfer" if fault.other_agent == fault.agent else program.agent_name(fault.other_agent)
    line = PurePath(program.line(fault.other_agent, fault.other_pc)).name  # a claim is one sentence
    where = f" ({line})" if line else ""
    return f" while {who} {verb} {accessed_bytes(program, operation)}{where}"


def what_is_forbidden(program: Program, fault: Fault) -> str:
    """What the reader of a kernel has seen that PTX forbids whatever the schedule: ``: column 64 is not allocated``."""
    each = program.coverage.forbidden[fault.found]
    place = each.place.rpartition("(")[2].rstrip(")")
    return f": {each.what} ({place})"


def correction_of_forbidden(program: Program, fault: Fault) -> str:
    """What corrects that, "" if it leaves a doubt."""
    return program.coverage.forbidden[fault.found].correction


def who_at(program: Program, agent: int, pc: int) -> str:
    """The agent, with the line of its operation in brackets."""
    line = PurePath(program.line(agent, pc)).name
    return program.agent_name(agent) + (f" ({line})" if line else "")
