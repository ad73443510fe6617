"""Every operation in a person's words, in one place: ``wait empty[0] parity 1``, ``copy → tile[0] on full[0]``.

What every operation of a kind shares is left out: registers, a count of 1, an order that PTX gives without being asked.
"""

from collections.abc import Callable

from pipesim.model.groups import BY_PARITY, ENGINE_ACCESSES, ON_NAMED_BARRIER
from pipesim.model.ops import Engine, Fence, Op, Operation, Order, Scope, Space, operand, order_of, ranks, scope_of
from pipesim.model.program import Program
from pipesim.model.tables import meeting_name

_FENCES = {
    Fence.MBARRIER_INIT: "mbarrier_init",
    Fence.PROXY_ASYNC: "proxy.async",
    Fence.ACQ_REL: "acq_rel",
    Fence.SC: "sc",
    Fence.PROXY_TENSORMAP: "proxy.tensormap",
    Fence.TCGEN05_BEFORE: "tcgen05.before_thread_sync",
    Fence.TCGEN05_AFTER: "tcgen05.after_thread_sync",
}
_GROUPS = {Engine.BULK: "stores", Engine.CP_ASYNC: "cp.asyncs", Engine.WGMMA: "wgmmas", Engine.TCGEN05: "MMAs"}
#: What a transfer does, by its engine and whether it writes: in the present, and when it is over.
_TRANSFERS = {
    (Engine.BULK, False): ("store ←", "store has read"),
    (Engine.BULK, True): ("copy →", "copy has written"),
    (Engine.CP_ASYNC, False): ("cp.async ←", "cp.async has read"),
    (Engine.CP_ASYNC, True): ("cp.async →", "cp.async has written"),
    (Engine.WGMMA, False): ("MMA reads", "MMA has read"),
    (Engine.WGMMA, True): ("MMA →", "MMA has written"),
    (Engine.TCGEN05, False): ("MMA reads", "MMA has read"),
    (Engine.TCGEN05, True): ("MMA →", "MMA has written"),
}


def operation_in_words(program: Program, operation: Operation) -> str:
    """An operation by its program's names: ``arrive empty[0] ×32``."""
    op = Op(operation[0])
    return _WORDS[op](program, operation)


def operation_in_short(program: Program, operation: Operation) -> str:
    """The same where room is scarce: without parity, threads, and the barrier on which a copy counts its bytes."""
    op = Op(operation[0])
    match op:
        case _ if op in BY_PARITY:
            return operation_in_words(program, operation).partition(" parity ")[0]
        case Op.TMA_LOAD:
            return f"copy → {_item(accessed_bytes(program, operation), operand(operation, 'item'))}"
        case _ if op in ON_NAMED_BARRIER:
            return operation_in_words(program, operation).partition(" (")[0]
        case _:
            return operation_in_words(program, operation)


def landing_in_words(program: Program, operation: Operation, barrier: int, nbytes: int, remaining: int) -> str:
    """The words for ``nbytes`` of the ``remaining`` bytes of a flight of this operation: ``64 bytes land in a[0]``.

    ``barrier`` is where they are counted, or where the flight arrives; -1 for none.
    """
    op = Op(operation[0])
    match op:
        case Op.TMA_LOAD:
            part = f"{nbytes:,} of {remaining:,} bytes" if nbytes < remaining else f"{nbytes:,} bytes"
            place = _item(_landing(program, operation, barrier), operand(operation, "item"))
            return f"{part} land in {place}"
        case _ if op in ENGINE_ACCESSES:
            done = _TRANSFERS[Engine(operand(operation, "engine")), op == Op.TRANSFER_WRITE][1]
            return f"{done} {accessed_bytes(program, operation)}"
        case Op.CP_ASYNC_ARRIVE:
            return f"cp.async arrives on {program.barrier_name(barrier)}"
        case _:
            return f"commit arrives on {program.barrier_name(barrier)}"


def accessed_bytes(program: Program, operation: Operation) -> str:
    """The bytes that an operation reads or writes: ``tile[1]``, of a multicast ``tile[1]@0,1``."""
    if operation[0] == Op.TMA_LOAD and operand(operation, "cta_mask"):
        return f"{program.access_name(operand(operation, 'access'))}@{_ranks(operand(operation, 'cta_mask'))}"
    return memory_name(program, operand(operation, "access"))


def memory_name(program: Program, access: int) -> str:
    """``tile[1]``, in a cluster ``tile[1]@0``."""
    memory = program.accesses[access]
    at = f"@{memory.cta}" if program.ctas > 1 and memory.space is not Space.GLOBAL else ""
    return f"{program.access_name(access)}{at}"


def _item(place: str, item: int) -> str:
    return f"{place} (item {item:,})" if item >= 0 else place


def _landing(program: Program, copy: Operation, barrier: int) -> str:
    access = operand(copy, "access")
    for rank in ranks(operand(copy, "cta_mask")):
        if program.at_rank(operand(copy, "barrier"), access, rank)[0] == barrier:
            return f"{program.access_name(access)}@{rank}"
    return memory_name(program, access)


def _ranks(mask: int) -> str:
    """The CTAs of a mask: ``0,1``, or ``0..3`` if there are more than two in a row."""
    ctas = ranks(mask)
    if len(ctas) > 2 and ctas[-1] - ctas[0] == len(ctas) - 1:
        return f"{ctas[0]}..{ctas[-1]}"
    return ",".join(map(str, ctas))


def _times(count: int) -> str:
    return f" ×{count:,}" if count != 1 else ""


def _order_suffix(semantics: int) -> str:
    """``.relaxed`` (with a scope that is written on it): it releases nothing; ``.cta``: not to other CTAs."""
    if order_of(semantics) != Order.RELAXED:
        return ".cta" if scope_of(semantics) == Scope.CTA else ""
    scope = scope_of(semantics)
    return ".relaxed" + (f".{scope.name.lower()}" if scope != Scope.DEFAULT else "")


_VERBS = {
    Op.WAIT: "wait", Op.WAIT_UNLESS: "wait", Op.TRY_WAIT: "try", Op.TEST_WAIT: "test",
    Op.ARRIVE: "arrive", Op.ARRIVE_DROP: "arrive_drop", Op.ARRIVE_NO_COMPLETE: "arrive.noComplete",
}  # fmt: skip


def _barrier(p: Program, op: Operation) -> str:
    return p.barrier_name(operand(op, "barrier"))


def _suffix(p: Program, op: Operation) -> str:
    """What follows the verb of an mbarrier instruction: ``.relaxed full[0]``."""
    return f"{_order_suffix(operand(op, 'semantics'))} {_barrier(p, op)}"


def _arrive(p: Program, op: Operation) -> str:
    expect = f" + expect {operand(op, 'expect'):,}" if operand(op, "expect") else ""
    return f"{_VERBS[Op(op[0])]}{_suffix(p, op)}{_times(operand(op, 'count'))}{expect}"


def _by_parity(p: Program, op: Operation) -> str:
    return f"{_VERBS[Op(op[0])]}{_suffix(p, op)} parity {operand(op, 'parity')}"


def _wait_unless(p: Program, op: Operation) -> str:
    return _by_parity(p, op) + (" if needed" if operand(op, "register") >= 0 else "")


def _cp_async(p: Program, op: Operation) -> str:
    noinc = ".noinc" if operand(op, "noinc") else ""
    return f"cp.async arrive{noinc} {_barrier(p, op)}{_times(operand(op, 'lanes'))}"


def _meeting(p: Program, op: Operation, verb: str) -> str:
    return f"{verb} {meeting_name(p.named_barrier(op))} ({operand(op, 'threads'):,} threads)"


def _fence(_: Program, op: Operation) -> str:
    fence, scope = Fence(operand(op, "fence")), scope_of(operand(op, "semantics"))
    scoped = fence in (Fence.ACQ_REL, Fence.SC) and scope != Scope.DEFAULT
    return f"fence {_FENCES[fence]}" + (f".{scope.name.lower()}" if scoped else "")


def _copy(p: Program, op: Operation) -> str:
    on = _barrier(p, op)
    if operand(op, "cta_mask"):
        signalled = {p.barriers[barrier].cta for barrier, _ in p.landings(op)}
        on = f"{on.partition('@')[0]}@{_ranks(sum(1 << rank for rank in signalled))}"
    return f"copy → {_item(accessed_bytes(p, op), operand(op, 'item'))} on {on}"


def _transfer(p: Program, op: Operation) -> str:
    does = _TRANSFERS[Engine(operand(op, "engine")), op[0] == Op.TRANSFER_WRITE][0]
    return f"{does} {_item(accessed_bytes(p, op), operand(op, 'item'))}"


def _commit(p: Program, op: Operation) -> str:
    if operand(op, "barrier") >= 0:
        return f"commit → {_barrier(p, op)}"
    return f"commit its {_GROUPS[Engine(operand(op, 'engine'))]}"


def _commit_multicast(p: Program, op: Operation) -> str:
    return f"commit → {_barrier(p, op).partition('@')[0]}@{_ranks(operand(op, 'cta_mask'))}"


def _wait_group(_: Program, op: Operation) -> str:
    left = f", {operand(op, 'groups'):,} may run" if operand(op, "groups") else ""
    return f"wait for its {_GROUPS[Engine(operand(op, 'engine'))]}{left}"


def _engine_work(_: Program, op: Operation) -> str:
    return f"{_GROUPS[Engine(operand(op, 'engine'))].removesuffix('s')} takes {operand(op, 'cycles'):,} cycles"


def _access(p: Program, op: Operation, verb: str) -> str:
    return f"{verb} {_item(accessed_bytes(p, op), operand(op, 'item'))}"


def _loop(p: Program, op: Operation) -> str:
    return f"loop over {p.loops[operand(op, 'loop')] or 'iterations'}"


_WORDS: dict[Op, Callable[[Program, Operation], str]] = {
    Op.INIT: lambda p, op: f"init {_barrier(p, op)} count {operand(op, 'count'):,}",
    Op.INVAL: lambda p, op: f"inval {_barrier(p, op)}",
    Op.ARRIVE: _arrive,
    Op.ARRIVE_DROP: _arrive,
    Op.ARRIVE_NO_COMPLETE: lambda p, op: f"{_VERBS[Op(op[0])]}{_suffix(p, op)}{_times(operand(op, 'count'))}",
    Op.EXPECT_TX: lambda p, op: f"expect {_barrier(p, op)} {operand(op, 'bytes'):,}",
    Op.COMPLETE_TX: lambda p, op: f"complete {_barrier(p, op)} {operand(op, 'bytes'):,}",
    Op.WAIT: _by_parity,
    Op.WAIT_UNLESS: _wait_unless,
    Op.TRY_WAIT: _by_parity,
    Op.TEST_WAIT: _by_parity,
    Op.WAIT_STATE: lambda p, op: f"wait{_order_suffix(operand(op, 'semantics'))} {_barrier(p, op)} by state",
    Op.TEST_STATE: lambda p, op: f"test{_order_suffix(operand(op, 'semantics'))} {_barrier(p, op)} by state",
    Op.PENDING_COUNT: lambda *_: "read the pending count of a state",
    Op.CP_ASYNC_ARRIVE: _cp_async,
    Op.BAR_SYNC: lambda p, op: _meeting(p, op, "sync"),
    Op.BAR_ARRIVE: lambda p, op: _meeting(p, op, "arrive"),
    Op.CLUSTER_ARRIVE: lambda _, op: f"cluster arrive{_order_suffix(operand(op, 'semantics'))}",
    Op.CLUSTER_WAIT: lambda *_: "cluster wait",
    Op.FENCE: _fence,
    Op.TMA_LOAD: _copy,
    Op.TRANSFER_READ: _transfer,
    Op.TRANSFER_WRITE: _transfer,
    Op.COMMIT: _commit,
    Op.WAIT_GROUP: _wait_group,
    Op.ENGINE_WORK: _engine_work,
    Op.COMMIT_MULTICAST: _commit_multicast,
    Op.READ: lambda p, op: _access(p, op, "read"),
    Op.WRITE: lambda p, op: _access(p, op, "write"),
    Op.WORK: lambda _, op: f"work {operand(op, 'cycles'):,} cycles",
    Op.JUMP_IF: lambda _, op: f"skip {operand(op, 'skip'):,} operations if its register holds {operand(op, 'value')}",
    Op.LOOP_BEGIN: lambda p, op: f"{_loop(p, op)}, {operand(op, 'trips'):,} iterations",
    Op.LOOP_NEXT: lambda p, op: f"{_loop(p, op)}: next iteration",
    Op.LOOP_END: lambda p, op: f"{_loop(p, op)}: end",
    Op.SETMAXNREG: lambda _, op: f"setmaxnreg {operand(op, 'registers')}",
}
