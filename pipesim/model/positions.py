"""Where operands stand in the tuples of operations, for loops in which a look-up by name is measured to be too slow.

Derived from :data:`pipesim.model.ops.OPERANDS`: a name that is at different places has a constant for each family
of operations. Everywhere else :func:`pipesim.model.ops.operand` is the way.
"""

from __future__ import annotations

from pipesim.model.groups import ACCESSES, ASYNC_ACCESSES, COMMITS, EXPECTS, ON_BARRIER, PARITY_TRIES, TRANSACTIONS
from pipesim.model.ops import AT, Op, OperandName


def position(name: OperandName, *ops: int) -> int:
    """Where these operations (none: all that have it) have their operand of this name; a ValueError if they differ."""
    found = {AT[name][op] for op in ops or AT[name]}
    if len(found) != 1:
        raise ValueError(f"{', '.join(Op(op).name for op in ops or AT[name])}: {name} is at {sorted(found)}")
    return found.pop()


BARRIER = position("barrier", *(ON_BARRIER - COMMITS))
COUNT = position("count")
EXPECT = position("expect")
PARITY = position("parity")
NOINC = position("noinc")
NAMED_BARRIER = position("named_barrier")
THREADS = position("threads")
FENCE = position("fence")
ENGINE = position("engine")
GROUPS = position("groups")
VALUE = position("value")
SKIP = position("skip")

COMMIT_BARRIER = position("barrier", *COMMITS)
COMMIT_MASK = position("cta_mask", Op.COMMIT_MULTICAST)
COPY_MASK = position("cta_mask", Op.TMA_LOAD)
ACCESS = position("access", *ACCESSES)
ASYNC_ACCESS = position("access", *ASYNC_ACCESSES)
ITEM = position("item", *ACCESSES)
ASYNC_ITEM = position("item", *ASYNC_ACCESSES)
TX_BYTES = position("bytes", *TRANSACTIONS)
ASYNC_BYTES = position("bytes", *ASYNC_ACCESSES)
CP_ASYNC_LANES = position("lanes", Op.CP_ASYNC_ARRIVE)
NAMED_LANES = position("lanes", Op.BAR_SYNC, Op.BAR_ARRIVE)
TOKEN = position("register", *EXPECTS)  #: where an arrive puts its state token
NO_COMPLETE_TOKEN = position("register", Op.ARRIVE_NO_COMPLETE)
ANSWER = position(
    "register", *PARITY_TRIES, Op.TEST_STATE, Op.WAIT_UNLESS
)  #: where a try puts its answer, or a wait finds it
AWAITED_TOKEN = position("register", Op.WAIT_STATE)
TESTED_TOKEN = position("state_register", Op.TEST_STATE)
COUNTED_TOKEN = position("state_register", Op.PENDING_COUNT)
PENDING = position("register", Op.PENDING_COUNT)
JUMP_REGISTER = position("register", Op.JUMP_IF)
