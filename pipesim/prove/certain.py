"""Which faults are certain where the program has accesses that may not happen, or copies of inferred bytes."""

from __future__ import annotations

from dataclasses import replace

from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import READS_MEMORY, TOUCHES_MEMORY
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.tables import LEAST_COPY, OPEN_WORD, SIZE_INFERRED, SIZE_UNKNOWN

#: What two accesses to the same bytes do wrong.
_OVERLAPS = frozenset(
    {
        FaultKind.RACE,
        FaultKind.UNINITIALISED_READ,
        FaultKind.WRONG_ITEM,
        FaultKind.MISSING_PROXY_FENCE,
        FaultKind.READ_NOT_FENCED,
        FaultKind.WEAK_ORDER,
        FaultKind.NARROW_SCOPE,
    }
)
#: What depends on how the bytes of a phase belong to its copies.
_SHARES = frozenset(
    {
        FaultKind.UNINITIALISED_READ,
        FaultKind.WRONG_ITEM,
        FaultKind.TWO_OUTCOMES,
        FaultKind.TX_RANGE,
        FaultKind.TX_EDGE,
    }
)


#: What a fence may prevent: of the rest every schedule of the program is one of the kernel.
_FENCED = frozenset(
    {
        FaultKind.MISSING_PROXY_FENCE,
        FaultKind.READ_NOT_FENCED,
        FaultKind.WEAK_ORDER,
        FaultKind.NARROW_SCOPE,
        FaultKind.TENSOR_FENCE,
        FaultKind.UNPUBLISHED_INIT,
    }
)


def is_unsure(program: Program, fault: Fault | None) -> bool:
    """Whether it may not happen: by a word that the launch leaves open, by two values that are not known, because the
    bytes that overlap are not known to be a copy's, or because a fence may run that the program does not have.
    """
    if fault is None:
        return False
    if program.coverage.fences and fault.kind in _FENCED:
        return True
    if program.coverage.reductions and (fault.kind in _OVERLAPS or fault.kind is FaultKind.TWO_OUTCOMES):
        return True
    if not program.unsure:
        return False
    why = {(agent, pc): reason for agent, pc, reason in program.unsure}
    both = (fault.agent, fault.pc), (fault.other_agent, fault.other_pc)
    reasons = [why.get(at, 0) for at in both]
    if sum(reason for reason in reasons if reason <= OPEN_WORD) >= OPEN_WORD:
        return True
    if fault.kind in _SHARES and SIZE_UNKNOWN in why.values():
        return True
    if fault.kind not in _OVERLAPS or max(reasons) < SIZE_INFERRED:
        return False
    ranges = [_sure_bytes(program, *at, reason) for at, reason in zip(both, reasons, strict=True)]
    return not (ranges[0] and ranges[1] and max(ranges[0].start, ranges[1].start) < min(ranges[0].stop, ranges[1].stop))


def certain_part(program: Program) -> Program:
    """The program in which nothing happens that may not, itself if there is nothing of the kind.

    What its reads find is not compared: without a write they find what was there before.
    """
    gone = {(agent, pc) for agent, pc, reason in program.unsure if reason <= OPEN_WORD}
    if not gone:
        return program

    def left(agent: int, pc: int, op: Operation) -> Operation:
        if (agent, pc) in gone:
            return int(Op.WORK), 0
        return (*op[:-1], -1) if op[0] in READS_MEMORY else op  # the item is the last operand

    code = tuple(tuple(left(a, pc, op) for pc, op in enumerate(each)) for a, each in enumerate(program.code))
    return replace(program, code=code, unsure=tuple(each for each in program.unsure if each[:2] not in gone))


def _sure_bytes(program: Program, agent: int, pc: int, reason: int) -> range:
    """The bytes that an operation is sure to touch, in whichever CTA."""
    op = program.code[agent][pc] if agent >= 0 else ()
    if not op or op[0] not in TOUCHES_MEMORY:
        return range(0)
    access = program.accesses[operand(op, "access")]
    nbytes = min(access.nbytes, LEAST_COPY) if reason >= SIZE_INFERRED else access.nbytes
    return range(access.offset, access.offset + nbytes)
