"""A fault of memory order in words: the access before, the operation between that is too weak, and what fixes it."""

from __future__ import annotations

from pathlib import PurePath

from pipesim.explain.operation_words import accessed, operation_in_words
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import MAY_ACQUIRE, READS_MEMORY
from pipesim.model.ops import Op
from pipesim.model.program import Program


def behind(program: Program, fault: Fault) -> str:
    """What the access, or the use of a barrier, comes after: ``: tile[1] was read by mma/0 (ring.py:30)``."""
    operation = program.code[fault.other_agent][fault.other_pc]
    op = Op(operation[0])
    if op == Op.INIT:
        return f", which {_who(program, fault.other_agent, fault.other_pc)} initialises"
    what = f": {accessed(program, operation)} was {'read' if op in READS_MEMORY else 'written'} by"
    between = ""
    if fault.cause_agent >= 0:
        cause = operation_in_words(program, program.code[fault.cause_agent][fault.cause_pc])
        between = f"; `{cause}` of {_who(program, fault.cause_agent, fault.cause_pc)} comes between"
    return f"{what} {_who(program, fault.other_agent, fault.other_pc)}{between}"


def strengthened(program: Program, fault: Fault) -> str:
    """The likely correction."""
    other = program.agent_name(fault.other_agent)
    if fault.kind is FaultKind.MISSING_PROXY_FENCE:
        return f"{other} executes fence.proxy.async after its write, before it signals any other agent"
    if fault.kind is FaultKind.READ_NOT_FENCED:
        return ""  # who can execute the fence depends on who waits for the read: what is proved is proposed
    if fault.kind is FaultKind.UNPUBLISHED_INIT:
        return f"{other} executes fence.mbarrier_init after its inits, before the barrier of the CTA or cluster"
    if fault.cause_agent < 0:
        return ""
    cause = program.code[fault.cause_agent][fault.cause_pc]
    said = f"`{operation_in_words(program, cause)}` of {program.agent_name(fault.cause_agent)}"
    if fault.kind is FaultKind.NARROW_SCOPE:
        return f"give {said} cluster scope"
    return f"let {said} {'acquire' if cause[0] in MAY_ACQUIRE else 'release'}"


def _who(program: Program, agent: int, pc: int) -> str:
    """The agent, with the line of its operation in brackets."""
    line = PurePath(program.line(agent, pc)).name
    return program.agent_name(agent) + (f" ({line})" if line else "")
