"""What a proof or a counterexample leaves open, and a schedule that breaks a rule.

Also which faults are certain where the program has accesses that may not happen, or copies of inferred bytes.
"""

from collections.abc import Hashable
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import NamedTuple

from pipesim.findings.catalog import MEMORY_ORDER
from pipesim.model.ending import Ending
from pipesim.model.finding import Deadlock, Fault, FaultKind
from pipesim.model.groups import READS_MEMORY, TOUCHES_MEMORY, WRITES_MEMORY
from pipesim.model.moves import Move
from pipesim.model.ops import Op, Operation, operand
from pipesim.model.program import Program
from pipesim.model.tables import LEAST_COPY, OPEN_WORD, SIZE_INFERRED, SIZE_UNKNOWN

_FOUND = frozenset({FaultKind.UNINITIALISED_READ, FaultKind.WRONG_ITEM})
_ORDER = {FaultKind.MISSING_PROXY_FENCE, FaultKind.READ_NOT_FENCED, FaultKind.WEAK_ORDER, FaultKind.NARROW_SCOPE}
_OVERLAPS = _FOUND | _ORDER | {FaultKind.RACE}  #: what two accesses to the same bytes do wrong
#: What depends on how the bytes of a phase belong to its copies.
_SHARES = _FOUND | {FaultKind.TWO_OUTCOMES, FaultKind.TX_RANGE, FaultKind.TX_EDGE}
#: What a fence may prevent: of the rest every schedule of the program is one of the kernel.
_FENCED = _ORDER | {FaultKind.TENSOR_FENCE, FaultKind.UNPUBLISHED_INIT}
_HAS_A_LIST = MEMORY_ORDER | {FaultKind.READ_BEFORE_WAIT, FaultKind.NOT_INITIALISED, FaultKind.REINITIALISED}


class Why(Enum):
    """The reason. The value is a phrase for a report."""

    UNSUPPORTED = "an operation that only the search supports"
    UNPUBLISHED = "a barrier operation that may precede the init"
    EARLY_INVAL = "the inval can come before an operation on its barrier, or before a transfer has landed"
    EARLY_PART = "the arrival or its bytes can be counted in an earlier phase"
    EARLY_PASS = "the wait can pass one lap early"  # noqa: S105  # no password
    LAP = "the next phase can complete before this wait looks, so the wait misses one (parity ABA)"
    LATE_RAISE = "the expect_tx can come after the phase has completed without it"
    BYTES = "more bytes can land in a phase than it expects"
    ARRIVALS = "a phase can receive more arrivals than a barrier can count"
    STALE_TRY = "the result of a try_wait is used for another barrier, parity or phase"
    EXIT = "an operation on a barrier or the memory of another CTA, which may have exited"
    REGISTERS = "registers that are given back after a request for more, or more than the CTA was launched with"
    RACE = "two unordered accesses, at least one of them a write"


class Doubt(NamedTuple):
    """One reason: the operation it is about, the other one if there are two, and the channel.

    ``past``: how many operations of each agent must have been carried out for what is doubted to happen, and no more.
    """

    why: Why
    agent: int
    pc: int
    past: tuple[int, ...] = ()
    other_agent: int = -1
    other_pc: int = -1
    where: int = -1


Schedule = tuple[Move, ...]


@dataclass(frozen=True)
class Refutation:
    """The moves that lead to a DEADLOCK or a FAULT, and which it is; ``why``: the doubt that led to it, if any.

    ``usual``: the one run in which every operation is made as soon as it can be ends so as well.
    """

    end: Ending
    schedule: Schedule
    fault: Fault | None = None
    deadlock: Deadlock | None = None
    why: Why | None = field(default=None, compare=False)
    usual: bool = field(default=False, compare=False)

    @property
    def kind(self) -> FaultKind | Ending:
        """What is wrong, in one value."""
        return self.fault.kind if self.fault is not None else self.end


def sides_of(program: Program, fault: Fault) -> tuple[str, ...]:
    """The lines of a fault and of the other access."""
    at = (fault.agent, fault.pc), (fault.other_agent, fault.other_pc)
    return tuple(program.line(*side) for side in at if min(side) >= 0)


def lines_of(program: Program, refuted: Refutation) -> tuple[str, ...]:
    """The lines of a fault and of the other access, or of the waits of a hang."""
    fault, hang = refuted.fault, refuted.deadlock
    if fault is None:
        return tuple(each.line for each in hang.blocked) if hang is not None else ()
    return sides_of(program, fault)


def finding_key(program: Program, refuted: Refutation) -> Hashable:
    """Equal for findings of one kind at the same lines, and of hangs also for what is missing there."""
    waits = refuted.deadlock.blocked if refuted.deadlock is not None else ()
    missing = frozenset((each.line, each.arrivals_missing > 0, each.bytes_missing != 0) for each in waits)
    return refuted.kind, missing or lines_of(program, refuted)


def is_of_any_kind(refuted: Refutation) -> bool:
    """Whether changes of all kinds may correct it: then they are the same for all findings of a program."""
    return refuted.fault is None or refuted.fault.kind not in _HAS_A_LIST


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
    if fault.kind in _FOUND and not {fault.found, fault.expected}.isdisjoint(_open_items(program)):
        return True
    if fault.kind in _SHARES and SIZE_UNKNOWN in why.values():
        return True
    if fault.kind not in _OVERLAPS or max(reasons) < SIZE_INFERRED:
        return False
    ranges = [_sure_bytes(program, *at, reason) for at, reason in zip(both, reasons, strict=True)]
    return not (ranges[0] and ranges[1] and max(ranges[0].start, ranges[1].start) < min(ranges[0].stop, ranges[1].stop))


def _open_items(program: Program) -> set[int]:
    """What writes leave that may not happen by a word that the launch leaves open, or by what others have done."""
    open_ = (program.code[agent][pc] for agent, pc, why in program.unsure if why == OPEN_WORD)
    return {operand(op, "item") for op in open_ if op[0] in WRITES_MEMORY}


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
