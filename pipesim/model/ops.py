"""The vocabulary of the flat program, version 1: every operation, its operands and their meaning. This file owns it.

An operation is a tuple of small integers: its code, then the operands that :data:`OPERANDS` names, in that order.
Nothing here says what an operation does (``machine``) or how long it takes (``timed``).
"""

from enum import IntEnum
from typing import Literal


class Op(IntEnum):
    """Codes of the operations. PTX's names where PTX has one."""

    # mbarrier
    INIT = 1
    INVAL = 2
    ARRIVE = 3
    ARRIVE_DROP = 4
    ARRIVE_NO_COMPLETE = 5
    EXPECT_TX = 6
    COMPLETE_TX = 7
    WAIT = 8  #: a loop on try_wait.parity: blocks until the phase of this parity has completed
    WAIT_UNLESS = 9  #: the same, skipped if a register holds a true try result (the ``*_if_needed`` idiom)
    TRY_WAIT = 10
    TEST_WAIT = 11
    WAIT_STATE = 12
    TEST_STATE = 13
    PENDING_COUNT = 14
    CP_ASYNC_ARRIVE = 15
    # other barriers and fences
    BAR_SYNC = 20
    BAR_ARRIVE = 21
    CLUSTER_ARRIVE = 22
    CLUSTER_WAIT = 23
    FENCE = 24
    # transfers
    TMA_LOAD = 30
    TRANSFER_READ = 31
    TRANSFER_WRITE = 32
    COMMIT = 33
    WAIT_GROUP = 34
    ENGINE_WORK = 35
    COMMIT_MULTICAST = 36  #: COMMIT on the barrier at the same place in every CTA of a mask
    # memory and time
    READ = 40
    WRITE = 41
    WORK = 42
    # control
    JUMP_IF = 50
    LOOP_BEGIN = 51
    LOOP_NEXT = 52
    LOOP_END = 53
    SETMAXNREG = 54


OperandName = Literal[
    "barrier", "count", "expect", "register", "semantics", "bytes", "parity", "state_register", "lanes", "noinc",
    "named_barrier", "threads", "fence", "access", "item", "cta_mask", "engine", "groups", "cycles", "value", "skip",
    "loop", "trips", "registers",
]  # fmt: skip

OPERANDS: dict[Op, tuple[OperandName, ...]] = {
    Op.INIT: ("barrier", "count"),
    Op.INVAL: ("barrier",),
    # count: arrivals of one execution = executing lanes times the instruction's count; expect: bytes added to tx first;
    # register: where the state token goes, -1 for none
    Op.ARRIVE: ("barrier", "count", "expect", "register", "semantics"),
    Op.ARRIVE_DROP: ("barrier", "count", "expect", "register", "semantics"),
    Op.ARRIVE_NO_COMPLETE: ("barrier", "count", "register", "semantics"),
    Op.EXPECT_TX: ("barrier", "bytes", "semantics"),
    Op.COMPLETE_TX: ("barrier", "bytes", "semantics"),
    Op.WAIT: ("barrier", "parity", "semantics"),
    Op.WAIT_UNLESS: ("barrier", "parity", "register", "semantics"),
    Op.TRY_WAIT: ("barrier", "parity", "register", "semantics"),
    Op.TEST_WAIT: ("barrier", "parity", "register", "semantics"),
    Op.WAIT_STATE: ("barrier", "register", "semantics"),
    Op.TEST_STATE: ("barrier", "state_register", "register", "semantics"),
    Op.PENDING_COUNT: ("state_register", "register"),
    Op.CP_ASYNC_ARRIVE: ("barrier", "lanes", "noinc"),
    Op.BAR_SYNC: ("named_barrier", "threads", "lanes"),
    Op.BAR_ARRIVE: ("named_barrier", "threads", "lanes"),
    Op.CLUSTER_ARRIVE: ("semantics",),
    Op.CLUSTER_WAIT: ("semantics",),
    Op.FENCE: ("fence", "semantics"),
    # bytes are counted on the barrier as they land; item is what the destination then holds; cta_mask: ranks of a
    # multicast, each receiving at the same offset on its own copy of the barrier, 0 for none
    Op.TMA_LOAD: ("barrier", "access", "bytes", "item", "cta_mask"),
    Op.TRANSFER_READ: ("engine", "access", "bytes", "item"),
    Op.TRANSFER_WRITE: ("engine", "access", "bytes", "item"),
    # barrier: gets one arrival when everything issued on the engine before has finished, -1 closes a group instead
    Op.COMMIT: ("engine", "barrier"),
    Op.WAIT_GROUP: ("engine", "groups"),
    # what is issued on the engine next finishes no sooner than the engine has worked so long, after its earlier work
    Op.ENGINE_WORK: ("engine", "cycles"),
    Op.COMMIT_MULTICAST: ("engine", "barrier", "cta_mask"),
    Op.READ: ("access", "item"),
    Op.WRITE: ("access", "item"),
    Op.WORK: ("cycles",),
    Op.JUMP_IF: ("register", "value", "skip"),
    Op.LOOP_BEGIN: ("loop", "trips"),
    Op.LOOP_NEXT: ("loop",),
    Op.LOOP_END: ("loop",),
    Op.SETMAXNREG: ("registers",),
}

Operation = tuple[int, ...]

#: For each name the operations that have an operand of this name, and its position in their tuples.
AT: dict[OperandName, dict[int, int]] = {}
for _op, _names in OPERANDS.items():
    for _position, _name in enumerate(_names, 1):
        AT.setdefault(_name, {})[int(_op)] = _position


def operand(operation: Operation, name: OperandName) -> int:
    """The operand of this name; a KeyError for an operation that has none."""
    return operation[AT[name][operation[0]]]


def operands(operation: Operation, *names: OperandName) -> tuple[int, ...]:
    """Several operands, in the order of their names."""
    return tuple(operation[AT[name][operation[0]]] for name in names)


def ranks(mask: int) -> tuple[int, ...]:
    """The CTAs of a ``cta_mask``."""
    return tuple(rank for rank in range(mask.bit_length()) if mask >> rank & 1)


def with_operand(operation: Operation, name: OperandName, value: int) -> Operation:
    """The same operation with another value of this operand."""
    at = AT[name][operation[0]]
    return (*operation[:at], value, *operation[at + 1 :])


class Order(IntEnum):
    """Memory order written on an instruction; DEFAULT is an instruction without one (release / acquire in PTX)."""

    DEFAULT = 0
    RELAXED = 1
    RELEASE = 2
    ACQUIRE = 3
    ACQ_REL = 4


class Scope(IntEnum):
    """Scope written on an instruction; DEFAULT is an instruction without one (CTA in PTX)."""

    DEFAULT = 0
    CTA = 1
    CLUSTER = 2
    GPU = 3
    SYS = 4


def semantics(order: Order = Order.DEFAULT, scope: Scope = Scope.DEFAULT) -> int:
    """Order and scope as the one operand ``semantics``."""
    return order * 8 + scope


def order_of(operand: int) -> Order:
    """The order in a ``semantics`` operand."""
    return _ORDERS[operand // 8]


_ORDERS = tuple(Order)


def scope_of(operand: int) -> Scope:
    """The scope in a ``semantics`` operand."""
    return Scope(operand % 8)


class Fence(IntEnum):
    """Fences by what they order (PTX ISA, membar/fence)."""

    MBARRIER_INIT = 0
    PROXY_ASYNC = 1
    ACQ_REL = 2
    SC = 3
    PROXY_TENSORMAP = 4
    TCGEN05_BEFORE = 5  #: tcgen05.fence::before_thread_sync
    TCGEN05_AFTER = 6  #: tcgen05.fence::after_thread_sync


class Engine(IntEnum):
    """Who carries out a transfer that completes by groups or commits."""

    BULK = 0
    CP_ASYNC = 1
    WGMMA = 2
    TCGEN05 = 3


#: Engines that carry out what one agent issues in the order of issue, so that accumulation into one tile is not a race
#: (PTX ISA, wgmma.mma_async and tcgen05.mma of the same shape).
IN_ORDER = frozenset({Engine.WGMMA, Engine.TCGEN05})


class Space(IntEnum):
    """Memory that an access touches."""

    SHARED = 0
    GLOBAL = 1
    TENSOR = 2
    REGISTERS = (
        3  #: where a wgmma leaves its result; offsets count the registers of a CTA's threads one after the other
    )


def describe(operation: Operation) -> str:
    """An operation in words, operands by name: ``ARRIVE barrier=3 count=1 …``."""
    op = Op(operation[0])
    return " ".join([op.name, *(f"{n}={v}" for n, v in zip(OPERANDS[op], operation[1:], strict=True))])
