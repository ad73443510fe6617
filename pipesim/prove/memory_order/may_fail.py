"""Whether memory order can be wrong in a program at all: told from its operations, without a run.

Nearly every program keeps a discipline under which nothing can: no operation is relaxed or too narrow, every thread
fences what it has written for the other proxy before it lets any agent know, and every init is fenced before it is
used. Such a program needs no second look; any other gets one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence, Set

from pipesim.model.finding import Advisory
from pipesim.model.groups import HANDS_ON, MAY_ACQUIRE, MAY_RELEASE, TOUCHES_MEMORY
from pipesim.model.ops import Engine, Fence, Op, Operation, Order, Scope, Space, operand, order_of, scope_of
from pipesim.model.positions import ACCESS, ASYNC_ACCESS, BARRIER, COPY_MASK, ENGINE, FENCE, SKIP
from pipesim.model.program import Program

_TOO_WEAK = {
    **dict.fromkeys(MAY_RELEASE, frozenset({Order.RELAXED, Order.ACQUIRE})),
    **dict.fromkeys(MAY_ACQUIRE, frozenset({Order.RELAXED, Order.RELEASE})),
}
_PUBLISHES = frozenset({Fence.MBARRIER_INIT, Fence.PROXY_ASYNC})


def order_may_fail(program: Program) -> bool:
    """True if only a run can tell whether its memory order is right."""
    each = [frozenset(code) for code in program.code]
    used = frozenset().union(*each)
    if any(_weak(program, op) for op in used):
        return True
    shared = _shared(program, used)
    if any(op[0] == Op.TRANSFER_WRITE and op[ENGINE] == Engine.CP_ASYNC and op[ASYNC_ACCESS] in shared for op in used):
        return True
    inits = {op for op in used if op[0] == Op.INIT}
    writes = {op for op in used if op[0] == Op.WRITE and op[ACCESS] in shared}
    return any(
        not (_fenced(code, inits & own, _PUBLISHES) and _fenced(code, writes & own, {Fence.PROXY_ASYNC}))
        for code, own in zip(program.code, each, strict=True)
    )


def advisories(program: Program) -> tuple[Advisory, ...]:
    """Not faults, possibly intended: arrives without a scope on a barrier of another CTA, each role and line once."""
    found: dict[tuple[str, str], Advisory] = {}
    for a, code in enumerate(program.code) if program.ctas > 1 else ():
        me = program.agents[a]
        for pc, op in enumerate(code):
            if op[0] == Op.ARRIVE and not operand(op, "semantics") and program.barriers[op[BARRIER]].cta != me.cta:
                claim = f"{me.role} arrives on {program.barriers[op[BARRIER]].name} of another CTA without a scope"
                line = program.line(a, pc)
                told = Advisory(me.role, f"{claim}, which PTX treats as CTA scope; the libraries do the same", line)
                found.setdefault((me.role, line), told)
    return tuple(found.values())


def _weak(program: Program, op: Operation) -> bool:
    """True of what orders less than an instruction written without order and scope, as far as it may matter."""
    too_weak = _TOO_WEAK.get(op[0])
    if too_weak is None:
        return op[0] == Op.COMPLETE_TX
    written = operand(op, "semantics")
    if not written:
        return False
    narrow = program.ctas > 1 and scope_of(written) == Scope.CTA
    return narrow or order_of(written) in too_weak


def _shared(program: Program, used: Iterable[Operation]) -> frozenset[int]:
    """The accesses to bytes that both a thread (or ``cp.async``) writes and another engine touches."""
    generic: set[int] = set()
    asynchronous: set[int] = set()
    for op in used:
        if op[0] not in TOUCHES_MEMORY or op[0] == Op.READ:
            continue
        thread = op[0] == Op.WRITE or (op[0] != Op.TMA_LOAD and op[ENGINE] == Engine.CP_ASYNC)
        if op[0] == Op.TMA_LOAD and op[COPY_MASK]:
            ranks = (rank for rank in range(program.ctas) if op[COPY_MASK] >> rank & 1)
            asynchronous.update(program.at_rank(op[BARRIER], op[ASYNC_ACCESS], rank)[1] for rank in ranks)
        else:
            (generic if thread else asynchronous).add(operand(op, "access"))
    spaces = {Space.SHARED, Space.GLOBAL}
    generic = {a for a in generic if program.accesses[a].space in spaces}
    if not generic:
        return frozenset()
    cells = {c for a in asynchronous for c in range(*program.cells[a])}
    return frozenset(a for a in generic if not cells.isdisjoint(range(*program.cells[a])))


def _fenced(code: Sequence[Operation], what: Set[Operation], by: Set[Fence]) -> bool:
    """True if on every way through the code a fence follows each of these operations before anything hands it on."""
    pending = False
    jumped: set[int] = set()  # where a way comes in by a jump, something being unfenced
    for pc, op in enumerate(code) if what else ():
        pending = pending or pc in jumped
        if op in what:
            pending = True
        elif pending:
            if op[0] == Op.FENCE and op[FENCE] in by:
                pending = False
            elif op[0] in HANDS_ON:
                return False
            elif op[0] == Op.JUMP_IF:
                jumped.add(pc + 1 + op[SKIP])
    return True
