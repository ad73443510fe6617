"""The sets of operations that engines ask about: each is here once, with the reason why it exists.

A set that means "all operations with such an operand" is derived from :data:`pipesim.model.ops.OPERANDS`, so that a new
operation falls into it by itself. A set that is a decision lists its members.

Where operands stand in the tuples of operations, for loops in which a look-up by name is measured to be too slow.

Derived from :data:`pipesim.model.ops.OPERANDS`: a name that is at different places has a constant for each family
of operations. Everywhere else :func:`pipesim.model.ops.operand` is the way.
"""

from pipesim.model.ops import AT, OPERANDS, Op, OperandName

Group = frozenset[int]


def _with_operands(*names: OperandName) -> Group:
    """The operations that have all these operands."""
    return frozenset(op for op in map(int, OPERANDS) if all(op in AT[name] for name in names))


def _group(*ops: Op) -> Group:
    return frozenset(map(int, ops))


EVERY: Group = frozenset(map(int, OPERANDS))  #: the whole vocabulary

# registers; "state_register" is always read

READS_REGISTER = _group(Op.WAIT_UNLESS, Op.WAIT_STATE, Op.JUMP_IF)  #: their operand "register" is read
WRITES_REGISTER = _with_operands("register") - READS_REGISTER  #: theirs is where the result goes
#: May name no register: a result is dropped, and a wait that is skipped on a register always waits without one.
REGISTER_OPTIONAL = WRITES_REGISTER | _group(Op.WAIT_UNLESS)

# mbarriers

COMMITS = _with_operands("engine", "barrier")  #: signal when what was issued on an engine before has finished
ON_BARRIER = _with_operands("barrier")  #: name an mbarrier; a commit may name none (-1)
MULTICASTS = _with_operands("cta_mask")  #: may reach several CTAs of the cluster
MBARRIER = ON_BARRIER - COMMITS - _group(Op.TMA_LOAD)  #: instructions on an mbarrier: mbarrier.*, cp.async's arrive
LIFE = _group(Op.INIT, Op.INVAL)  #: begin and end the life of an mbarrier
ARRIVALS = _with_operands("barrier", "count") - LIFE  #: arrive in the moment in which they are carried out
EXPECTS = _with_operands("barrier", "expect")  #: arrivals that may add to the bytes their phase expects
TRANSACTIONS = _with_operands("barrier", "bytes", "semantics")  #: change the bytes of a phase and arrive nowhere
SIGNALS = ARRIVALS | TRANSACTIONS  #: change the open phase in the moment in which they are carried out
DELAYED_ARRIVALS = COMMITS | _group(Op.CP_ASYNC_ARRIVE)  #: arrive when earlier asynchronous work has finished
BY_PARITY = _with_operands("barrier", "parity")  #: ask for the phase of a parity, blocking or not
BY_STATE = _group(Op.WAIT_STATE, Op.TEST_STATE)  #: ask for the phase of a state token, blocking or not
ASKS = BY_PARITY | BY_STATE  #: ask whether a phase is complete
TRIES = ASKS & WRITES_REGISTER  #: give an answer, do not block
BLOCKING_WAITS = ASKS - TRIES  #: do not return before the phase is complete
PARITY_WAITS = BLOCKING_WAITS & BY_PARITY  #: those of a parity, whose phase must be worked out
PLAIN_WAITS = PARITY_WAITS - READS_REGISTER  #: those that wait whatever a try has said
PARITY_TRIES = TRIES & BY_PARITY  #: those of a parity, whose phase must be worked out

USES_BARRIER = MBARRIER - LIFE  #: need an mbarrier whose init has reached their agent
BY_ANSWER = _group(Op.WAIT_UNLESS, Op.JUMP_IF)  #: do one thing or another, by the result of a try_wait
ON_ANSWERS = TRIES | BY_ANSWER  #: give an answer, or go by one
ON_OTHER_CTA = EXPECTS | TRANSACTIONS  #: PTX has them for an mbarrier in another CTA of the cluster
BRINGS_BYTES = TRANSACTIONS | _group(Op.TMA_LOAD, Op.CP_ASYNC_ARRIVE)  #: what a phase with one of these brings is data

# named barriers and the cluster barrier

ON_NAMED_BARRIER = _with_operands(
    "named_barrier"
)  #: bar.sync and bar.arrive: threads are counted, no phase is asked for
CLUSTER = _group(Op.CLUSTER_ARRIVE, Op.CLUSTER_WAIT)  #: the one barrier of all threads of a cluster
MEETINGS = ON_NAMED_BARRIER | CLUSTER  #: barriers at which threads meet and that carry no bytes
MEETING_WAITS = _group(Op.BAR_SYNC, Op.CLUSTER_WAIT)  #: do not return before all have arrived
MEETING_ARRIVALS = MEETINGS - MEETING_WAITS  #: arrive and continue

# memory

TOUCHES_MEMORY = _with_operands("access")  #: read or write cells
ASYNC_ACCESSES = _with_operands(
    "access", "bytes"
)  #: put an access under way that ends later, so that bytes can be in flight
ACCESSES = TOUCHES_MEMORY - ASYNC_ACCESSES  #: the agent's own read or write, open until the operation ends
ENGINE_ACCESSES = _with_operands(
    "access", "engine"
)  #: accesses that end by groups or commits, not by bytes on a barrier
READS_MEMORY = _group(Op.READ, Op.TRANSFER_READ)  #: look at the item in their cells
WRITES_MEMORY = TOUCHES_MEMORY - READS_MEMORY  #: leave an item in their cells, so they name one
ON_ENGINE = _with_operands("engine")  #: are carried out by an engine, in the order of issue of one agent
IN_FLIGHT = ASYNC_ACCESSES | DELAYED_ARRIVALS  #: leave something under way that ends later
#: Of these one instruction of a warp group is, or several: its operands and its time.
OF_ONE_PRODUCT = ENGINE_ACCESSES | _group(Op.ENGINE_WORK)
ISSUES = ENGINE_ACCESSES | COMMITS  #: put something under way on the engine that they name

# memory order

MAY_RELEASE = ARRIVALS | _group(Op.CLUSTER_ARRIVE)  #: can be written with an order that releases what came before
MAY_ACQUIRE = ASKS | _group(Op.CLUSTER_WAIT)  #: can be written with an order that acquires what came before
#: By these others may learn of what their agent has done before, or they start what needs it.
HANDS_ON = SIGNALS | (MEETINGS - _group(Op.CLUSTER_WAIT)) | IN_FLIGHT
LETS_OTHERS_KNOW = HANDS_ON - ASYNC_ACCESSES - _group(Op.CP_ASYNC_ARRIVE)  #: of what their agent has done before
OWN_WRITES = ACCESSES & WRITES_MEMORY  #: written by the thread itself, in the moment in which it is carried out
ENDS_READS = _group(Op.READ, Op.WAIT_GROUP)  #: after them a read has ended of which their agent knows
SEES_READS_END = BLOCKING_WAITS | MEETING_WAITS | _group(Op.WAIT_GROUP)  #: they show an agent the ends of others' reads

# an agent by itself

LOOP_MARKS = _with_operands("loop")  #: say where an iteration begins; they are not instructions
TRIP_BEGINS = LOOP_MARKS - _group(Op.LOOP_END)  #: the marks after which an iteration runs
BRANCHES = _with_operands("skip")  #: the next operation depends on a register
#: Change no part of the machine's state: they order memory, carry names, or take time. Listed, not derived: a new
#: operation without a rule of its own is refused until it is decided, so that no proof skips it.
NO_EFFECT = _group(Op.FENCE, Op.ENGINE_WORK, Op.WORK, Op.LOOP_BEGIN, Op.LOOP_NEXT, Op.LOOP_END)
LEARNS_NOTHING = NO_EFFECT - _group(Op.FENCE)  #: after them their agent knows no more of memory than before
#: No other agent can see or change what they name: when they happen makes no difference to others.
PRIVATE = NO_EFFECT | _group(Op.JUMP_IF, Op.PENDING_COUNT)
TIMES_ITSELF_ONLY = PRIVATE - ON_ENGINE  #: private, and no engine starts work whose end others may wait for
TAKES_REGISTERS = _group(Op.SETMAXNREG)  #: takes registers from the pool of its CTA, or gives some back
#: May have to wait for something.
MAY_BLOCK = BLOCKING_WAITS | MEETING_WAITS | TAKES_REGISTERS | _with_operands("groups")
RETURNS_LATE = MAY_BLOCK | TRIES  #: end with an answer that comes from elsewhere, whether they blocked or not
WAITS_FOR_OTHERS = ASKS | MEETING_WAITS  #: hold an agent back for others, not for its own warp group's transfers
WORKS = (_with_operands("cycles") & PRIVATE) | ACCESSES  #: what an agent is seen to work on in a picture
USES_TILE = ACCESSES | ENGINE_ACCESSES | _group(Op.WORK)  #: between its wait for a tile and its release
#: The same with what orders it and waits for it: all that can stand between the wait and the release.
STAGE_WORK = USES_TILE | _group(Op.FENCE, Op.ENGINE_WORK, Op.COMMIT, Op.WAIT_GROUP)

# what one engine asks

#: Cost their issue and nothing more; a new operation needs a price here or a case of its own in ``timed/costs.py``.
ISSUE_ONLY = LIFE | COMMITS | _group(Op.PENDING_COUNT, Op.WAIT_GROUP, Op.FENCE, Op.WRITE, Op.SETMAXNREG)
COUNTS_BYTES = EXPECTS | _group(Op.EXPECT_TX, Op.TMA_LOAD)  #: name bytes of a phase, which an mbarrier has to count
#: Make the mbarrier that they name signal, and no other channel: a replay that needs the signal carries them out.
SUPPLIES_HERE = SIGNALS | BRINGS_BYTES | _group(Op.INIT)
#: Make something signal: an mbarrier, a barrier of threads, the registers of a CTA, the transfers of a warp group.
SUPPLIES = SUPPLIES_HERE | ON_NAMED_BARRIER | TAKES_REGISTERS | COMMITS | _group(Op.CLUSTER_ARRIVE)
#: Carried out as soon as a replay without records comes there: no agent needs them later, and they wait for no agent.
AT_ONCE_UNRECORDED = (NO_EFFECT - ON_ENGINE) | PARITY_TRIES | TAKES_REGISTERS | _group(Op.BAR_SYNC, Op.READ)
CHANGES_PHASE = (LIFE | SIGNALS) - _group(Op.ARRIVE)  #: do not commute on a barrier, as plain arrivals do
#: No rule in the certificate: they change what a phase needs, or ask in other ways than by parity.
UNCERTIFIED = BRANCHES | _group(Op.TEST_STATE, Op.ARRIVE_NO_COMPLETE, Op.PENDING_COUNT)
CORRECTABLE = PARITY_WAITS | _group(Op.ARRIVE, Op.TMA_LOAD)  #: a correction may be about the barrier that they name
UNLISTED = (PRIVATE | TAKES_REGISTERS) - _group(
    Op.FENCE
)  #: no steps of a schedule in words; a fence is one, since findings are about fences
NOT_DRAWN = UNLISTED - WORKS  #: leave no span in the picture of a schedule
SETS_UP = MEETINGS | _group(Op.INIT, Op.FENCE)  #: what agents do before they first use an mbarrier


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
