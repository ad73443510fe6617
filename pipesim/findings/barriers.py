"""Kinds of findings about the life of a barrier: waits that hang or are missed, arrivals, inits and invals."""

from pathlib import PurePath

from pipesim.findings.kind import Certainty, Evidence, FindingKind, ProtocolExample
from pipesim.findings.words import who_at
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program

DEADLOCK = FindingKind(
    "deadlock",
    "agents wait indefinitely",
    what=(
        "No agent can move, and some have not finished: each waits for a phase, a named barrier or a group that needs "
        "something which never comes."
    ),
    ptx="mbarrier: phase completion of the mbarrier object",
    shows=(
        "The kernel hangs: the launch does not end, and nothing reports why. With a time-out around the waits it traps "
        "or returns wrong results."
    ),
    corrected=(
        "Compare the count of the init with the arrivals of a phase, the bytes expected with the bytes copied, and the "
        "parity of the first wait with the phase that it means. Where the agents wait in a circle, one of them has to "
        "arrive before it waits."
    ),
    certainty=Certainty.SCHEDULE,
    example=ProtocolExample("""The barrier counts two arrivals, and one is made.

    full = p.mbarriers("full", 1, count=1 if right else 2)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive()

    @p.role("consumer")
    def consumer(_: Warp) -> None:
        full[0].wait(0)
"""),
)


LAPPED_WAITER = FindingKind(
    "lapped_waiter",
    "an agent for which no other one waits misses a phase, and waits indefinitely",
    what=(
        "A parity tells a phase from the one before and the one after it, and no more. An agent that waits in every "
        "lap of a ring, and does nothing for which the others wait, can be late: when two phases have completed before "
        "it looks, it asks for a parity that is not the current one any more, and waits for a phase that may never "
        "come."
    ),
    ptx="mbarrier.test_wait, mbarrier.try_wait: .parity",
    shows=(
        "Mostly nothing: an agent with little to do is early. Where it is held up for a lap, by a debugger, a trap "
        "handler, preemption or a busy scheduler, the kernel hangs at its end, where all threads meet."
    ),
    corrected=(
        "Let one warp wait, the one that fills or reads the stage; or let each of the others arrive on what is waited "
        "for before the stage is used again, and count them in its init."
    ),
    certainty=Certainty.SCHEDULE,
    example=ProtocolExample("""The second warp of the producer waits for every empty stage, and copies nothing.

    tile = p.smem("tile", 1, 64)
    full, empty = p.mbarriers("full", 1, count=1), p.mbarriers("empty", 1, count=1)

    @p.role("producer", warps=2)
    def producer(w: Warp) -> None:
        for n in range(3):
            if w.index == 0 or not right:
                empty[0].wait((n + 1) % 2)
            if w.index == 0:
                with w.elect_one():
                    full[0].expect_bytes(64)
                    w.tma_load(tile[0], full[0], n)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        for n in range(3):
            full[0].wait(n % 2)
            w.read(tile[0], n)
            with w.elect_one():
                empty[0].arrive()
"""),
)


OVER_ARRIVAL = FindingKind(
    FaultKind.OVER_ARRIVAL,
    what=(
        "An arrive makes more arrivals than the phase has pending. Lanes of a warp that execute it together are one "
        "arrival of as many; it cannot complete two phases."
    ),
    ptx="mbarrier: arrive-on operation on the mbarrier object",
    shows="The launch fails with CUDA_ERROR_LAUNCH_FAILED, and the context is lost (measured on H100 and H200).",
    corrected=(
        "Let one lane arrive (elect_one), or initialise the barrier with the number of all arrivals of a phase. If an "
        "agent arrives for the next phase too early, let it wait for the present one first."
    ),
    certainty=Certainty.SCHEDULE,
    concerns_init=True,
    detail=": {fault.found} arrive, {fault.expected} pending",
    example=ProtocolExample("""All 32 lanes arrive where one arrival is pending.

    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        if right:
            with w.elect_one():
                full[0].arrive()
        else:
            full[0].arrive()
"""),
)


def _never(program: Program, fault: Fault) -> str:
    """The correction of a barrier that no operation initialises."""
    inits = (op for op in program.operations if op[0] == Op.INIT)
    if fault.barrier < 0 or any(operand(op, "barrier") == fault.barrier for op in inits):
        return ""
    return f"initialise {program.barrier_name(fault.barrier)} in the init: the program never does"


NOT_INITIALISED = FindingKind(
    FaultKind.NOT_INITIALISED,
    what="A barrier is used and nothing orders the use after its init.",
    ptx="mbarrier.init",
    shows=(
        "If the use comes first, the launch usually fails; what the barrier unit finds is whatever the shared memory "
        "held. If the init happens to come first, all is well: so it may fail rarely."
    ),
    corrected=(
        "Initialise the barriers in one thread, then fence.mbarrier_init and __syncthreads(), in a cluster a cluster "
        "barrier, before anyone uses them."
    ),
    certainty=Certainty.SCHEDULE,
    causes_itself=True,
    concerns_init=True,
    correction=_never,
    example=ProtocolExample('''One warp initialises the barrier, and nothing makes the other wait for that.

    full = p.mbarriers("full", 1)

    @p.init
    def init() -> None:
        """Nothing: the producer does it."""

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].init(1)
        if right:
            w.sync_threads()

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        if right:
            w.sync_threads()
        with w.elect_one():
            full[0].arrive()
'''),
)


def _one_lane(program: Program, fault: Fault) -> str:
    """The correction of an init that one line makes several times in a row: each lane makes it."""
    code, line = program.code[fault.agent], program.line(fault.agent, fault.pc)
    again = [op == code[fault.pc] and program.line(fault.agent, pc) == line for pc, op in enumerate(code)]
    if fault.pc == 0 or not again[fault.pc - 1]:
        return ""
    lanes = next((n for n, same in enumerate(again[fault.pc :]) if not same), len(code) - fault.pc) + 1
    return f"elect one lane for the init: {lanes} lanes make it, each of them once"


REINITIALISED = FindingKind(
    FaultKind.REINITIALISED,
    what="A barrier is initialised again without mbarrier.inval in between, which PTX does not allow.",
    ptx="mbarrier.init, mbarrier.inval",
    shows=(
        "The barrier is reset silently: arrivals and bytes of the open phase are lost, and those who wait may wait "
        "indefinitely (measured on H100 and H200)."
    ),
    corrected=(
        "Execute mbarrier.inval when all agents are done with the barrier, then init; or keep the barrier, since its "
        "phases repeat by themselves."
    ),
    certainty=Certainty.SCHEDULE,
    causes_itself=True,
    concerns_init=True,
    correction=_one_lane,
    example=ProtocolExample("""The barrier gets another count without an inval in between.

    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            if right:
                full[0].inval()
            full[0].init(2)
"""),
)


INVALIDATED = FindingKind(
    FaultKind.INVALIDATED,
    what="A barrier is used after mbarrier.inval.",
    ptx="mbarrier.inval",
    shows="Nothing is detected: the arrive or the wait works on memory that may hold other data by then.",
    corrected="Let the agent that invalidates wait for all the others first, for example at a barrier of the CTA.",
    certainty=Certainty.SCHEDULE,
    concerns_init=True,
    example=ProtocolExample("""The barrier is used after its inval.

    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            if right:
                full[0].arrive()
            full[0].inval()
            if not right:
                full[0].arrive()
"""),
)


INVAL_PENDING = FindingKind(
    FaultKind.INVAL_PENDING,
    what="A barrier is invalidated in the middle of a phase: arrivals or bytes are still to come.",
    ptx="mbarrier.inval",
    shows="Nothing is detected: what comes later changes memory that may hold other data.",
    corrected="Wait for the phase to complete before mbarrier.inval.",
    certainty=Certainty.SCHEDULE,
    concerns_init=True,
    example=ProtocolExample("""The barrier is invalidated when one of two arrivals has been made.

    full = p.mbarriers("full", 1, count=2)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive(2 if right else 1)
            full[0].inval()
"""),
)


INIT_COUNT = FindingKind(
    FaultKind.INIT_COUNT,
    what="The count of an init is outside 1 to 1,048,575.",
    ptx="mbarrier: contents of the mbarrier object",
    shows=(
        "Nothing is detected: with a count of 0 the first arrive finds nothing pending, and a larger count spills into "
        "the other fields of the barrier (measured on H100 and H200)."
    ),
    corrected=(
        "Initialise with the number of arrivals that a phase receives; count consumers, not the warps that a "
        "configuration happens to leave out."
    ),
    certainty=Certainty.SCHEDULE,
    causes_itself=True,
    concerns_init=True,
    detail=": {fault.found:,}",
    example=ProtocolExample("""The count of the init is 0.

    full = p.mbarriers("full", 1)

    @p.init
    def init() -> None:
        full[0].init(1 if right else 0)

    @p.role("producer")
    def producer(w: Warp) -> None:
        w.work(cycles=100)
"""),
)


ARRIVE_COUNT = FindingKind(
    FaultKind.ARRIVE_COUNT,
    what="The count of an arrive is outside 1 to 1,048,575.",
    ptx="mbarrier.arrive",
    shows="A count of 0 changes nothing, so the phase lacks an arrival, and who waits for it hangs.",
    corrected="Give the number of arrivals that the agent represents, at least 1.",
    certainty=Certainty.SCHEDULE,
    causes_itself=True,
    detail=": {fault.found:,}",
    example=ProtocolExample("""The arrive makes no arrival.

    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive(1 if right else 0)
"""),
)


NO_COMPLETE = FindingKind(
    FaultKind.NO_COMPLETE,
    what="mbarrier.arrive.noComplete completes the phase, which PTX leaves undefined.",
    ptx="mbarrier.arrive, .noComplete",
    shows="On H100 and H200 the phase completes as with an ordinary arrive; another GPU or compiler may do otherwise.",
    corrected="Use an ordinary arrive for what may be the last arrival of a phase.",
    certainty=Certainty.LETTER,
    example=ProtocolExample("""An arrive that promises not to complete the phase makes its last arrival.

    full = p.mbarriers("full", 1, count=2 if right else 1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive_no_complete()
"""),
)


STALE_STATE = FindingKind(
    FaultKind.STALE_STATE,
    what="A wait by state uses the state of a phase that is neither the current one nor the one before.",
    ptx="mbarrier.test_wait, mbarrier.try_wait",
    shows="Only one bit of the phase is compared: the wait may pass too early, or wait for a phase that is long over.",
    corrected=(
        "Use the state that the arrive of this phase returned, before another phase completes; or wait by parity."
    ),
    certainty=Certainty.SCHEDULE,
    example=ProtocolExample("""A wait by state is made two phases after the arrive that returned the state.

    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            state = full[0].arrive()
            if not right:
                full[0].arrive()
            full[0].wait_state(state)
"""),
)


def _instead(program: Program, fault: Fault) -> str:
    """Which phase, given to which wait, and what is left unread."""
    earlier = PurePath(program.line(fault.cause_agent, fault.cause_pc)).name
    given = f": phase {fault.found}, which its wait{f' at {earlier}' if earlier else ''} was given"
    copy = program.code[fault.other_agent][fault.other_pc]
    access = next(iter(program.accesses_of(copy)))
    left = f"{program.access_name(access)} of {who_at(program, fault.other_agent, fault.other_pc)}"
    return f"{given}; what it reads then it has read and handed back, and {left} is not read"


STALE_WAIT = FindingKind(
    FaultKind.STALE_WAIT,
    what=(
        "An agent waits again for a phase of an mbarrier that it has been given before, and reads again what it has "
        "read and handed back, while what was delivered later is never read: its stage and its parity have begun "
        "again, and those of the producer have not."
    ),
    ptx="mbarrier.test_wait, mbarrier.try_wait",
    shows="Wrong results: a tile is computed from the data of an earlier one. No wait hangs and nothing traps.",
    corrected="Carry the stage and the parity on from tile to tile, as the producer does.",
    certainty=Certainty.SCHEDULE,
    evidence=Evidence.RUN,
    causes_itself=True,
    detail=_instead,
    example=ProtocolExample("""The consumer begins with the first stage again at the second tile.

    tile = p.smem("tile", slots=2, nbytes=64)
    full, empty = p.mbarriers("full", 2, count=1), p.mbarriers("empty", 2, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            for stage in range(2):
                empty[stage].wait(1)
                full[stage].expect_bytes(64)
                w.tma_load(tile[stage], full[stage], item=stage)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        for turn in range(2):
            stage = turn if right else 0
            full[stage].wait(0)
            w.read(tile[stage])
            with w.elect_one():
                empty[stage].arrive()
"""),
)
