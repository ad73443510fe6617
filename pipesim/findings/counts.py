"""Kinds of findings about what is counted: bytes of a phase, threads of a barrier; and about CTAs that have ended."""

from itertools import takewhile
from pathlib import PurePath

from pipesim.explain.operation_words import memory_name
from pipesim.findings.kind import Certainty, ExampleEdit, FindingKind, FlatExample, ProtocolExample
from pipesim.model.barrier import MAX_COUNT
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import ON_NAMED_BARRIER
from pipesim.model.ops import Op, operand, operands
from pipesim.model.program import Program

TX_RANGE = FindingKind(
    FaultKind.TX_RANGE,
    what="The transaction count of a phase leaves -1,048,575 to 1,048,576 bytes.",
    ptx="mbarrier: tracking asynchronous operations by the mbarrier object",
    shows="The launch fails (measured on H100 and H200).",
    corrected="Expect at most 1,048,575 bytes in a phase: spread a larger tile over several barriers or phases.",
    certainty=Certainty.SCHEDULE,
    detail=": {fault.found:,} bytes on top of {fault.expected:,}",
    example=ProtocolExample("""More bytes are expected than a phase can count.

    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].expect_tx(1_000_000)
            full[0].expect_tx(16 if right else 1_000_000)
"""),
)


def one_operand(program: Program, fault: Fault) -> bool:
    """Whether ptxas may make one ``expect_tx`` of this one and those before it: too large an operand, which traps."""
    back = reversed(program.code[fault.agent][: fault.pc + 1])
    ones = takewhile(lambda op: op[0] == Op.EXPECT_TX and operand(op, "barrier") == fault.barrier, back)
    return sum(operand(op, "bytes") for op in ones) > MAX_COUNT


def _bytes(program: Program, fault: Fault) -> str:
    said = f": {fault.found:,} bytes on top of {fault.expected:,}"
    return said + "; ptxas may make one expect_tx of both, which traps" * one_operand(program, fault)


TX_EDGE = FindingKind(
    FaultKind.TX_EDGE,
    what="The transaction count is 1,048,576 bytes, one more than PTX allows.",
    ptx="mbarrier: tracking asynchronous operations by the mbarrier object",
    shows="H100 and H200 accept it, except where two expect_tx follow each other: ptxas makes one of both, whose "
    "operand traps on H200. Such a finding is possible, others are by the letter.",
    corrected="Expect at most 1,048,575 bytes in a phase.",
    certainty=Certainty.LETTER,
    detail=_bytes,
    example=ProtocolExample("""One byte more is expected than PTX allows.

    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].expect_tx(1_048_575)
            if not right:
                full[0].expect_tx(1)
"""),
)


def _memory(program: Program, fault: Fault) -> str:
    """The memory that is accessed; a barrier is named in any case."""
    return f": {memory_name(program, fault.found)}" if fault.barrier < 0 <= fault.found else ""


EXITED_CTA = FindingKind(
    FaultKind.EXITED_CTA,
    what="An agent arrives on a barrier, or accesses the memory, of another CTA of the cluster that may have exited.",
    ptx="state spaces: shared",
    shows=(
        "The launch fails if the other CTA has exited (measured). If it is still there, nothing happens: so it may fail"
        " rarely."
    ),
    corrected=(
        "Let every CTA wait, before it ends, for what others still send to it: drain the ring, or end with a barrier of"
        " the cluster."
    ),
    certainty=Certainty.SCHEDULE,
    detail=_memory,
    example=ProtocolExample(
        """CTA 1 arrives on a barrier of CTA 0, which may have ended.

    done = p.mbarriers("done", 1, count=1)

    @p.role("peer")
    def peer(w: Warp) -> None:
        with w.elect_one():
            if w.cta == 1:
                done[0].arrive_cluster(0, scope=Scope.CLUSTER)
            elif right:
                done[0].wait(0)
""",
        cluster=2,
    ),
)


CLUSTER_ARRIVE = FindingKind(
    FaultKind.CLUSTER_ARRIVE,
    what="An agent arrives at the cluster barrier twice without a wait in between, or waits without an arrive.",
    ptx="barrier.cluster",
    shows="PTX leaves it undefined: CTAs of the cluster may continue too early or hang.",
    corrected="Execute barrier.cluster.arrive and barrier.cluster.wait in pairs, in every thread.",
    certainty=Certainty.SCHEDULE,
    causes_itself=True,
    example=ProtocolExample(
        """A second arrive at the cluster barrier comes before the wait for the first.

    @p.role("peer")
    def peer(w: Warp) -> None:
        w.cluster_arrive()
        if not right:
            w.cluster_arrive()
        w.cluster_wait()
""",
        cluster=2,
    ),
)


def _who_says(program: Program, fault: Fault) -> str:
    """Who gives another number of threads, and where: ``: 64 threads, where writer says 96 (ring.py:41)``."""
    number = operand(program.code[fault.agent][fault.pc], "named_barrier")
    for agent, code in enumerate(program.code):
        for pc, op in enumerate(code):
            if op[0] in ON_NAMED_BARRIER and operands(op, "named_barrier", "threads") == (number, fault.expected):
                line = PurePath(program.line(agent, pc)).name
                other = f"{program.agent_name(agent)} says {fault.expected}" + (f" ({line})" if line else "")
                return f": {fault.found} threads, where {other}"
    return f": {fault.found} threads"


BARRIER_THREADS = FindingKind(
    FaultKind.BARRIER_THREADS,
    what="The agents at a named barrier give different numbers of threads, or one that is not a multiple of 32.",
    ptx="bar, barrier",
    shows="PTX leaves it undefined: the barrier may let some go too early, hang, or stop the launch.",
    corrected=(
        "Give the same number at every bar.sync and bar.arrive of a barrier: all threads that take part, a whole number"
        " of warps."
    ),
    certainty=Certainty.SCHEDULE,
    causes_itself=True,
    detail=_who_says,
    example=ProtocolExample("""The one warp says that 64 threads meet, the other says 96.

    @p.role("producer")
    def producer(w: Warp) -> None:
        w.bar_sync(1, 64)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        w.bar_sync(1, 64 if right else 96)
"""),
)


_MOST_NAMED = 4  #: agents that arrive at the barrier


def _who_comes(program: Program, fault: Fault) -> str:
    """All that arrive at the named barrier."""
    number = operand(program.code[fault.agent][fault.pc], "named_barrier")
    come = [
        program.agent_name(agent)
        for agent, code in enumerate(program.code)
        if any(op[0] in ON_NAMED_BARRIER and operand(op, "named_barrier") == number for op in code)
    ]
    shown = ", ".join(come[:_MOST_NAMED]) + (f" and {len(come) - _MOST_NAMED} more" if len(come) > _MOST_NAMED else "")
    makes = f"makes {fault.found} threads, and it counts {fault.expected}"
    return f": a surplus arrival {makes}; who comes there: {shown}"


BARRIER_OVERRUN = FindingKind(
    FaultKind.BARRIER_OVERRUN,
    what="More threads arrive at a named barrier than its thread count.",
    ptx="bar, barrier",
    shows="PTX leaves it undefined: the barrier may complete for the wrong threads, hang, or stop the launch.",
    corrected="Count every thread that arrives, or give each purpose a named barrier of its own.",
    certainty=Certainty.SCHEDULE,
    detail=_who_comes,
    example=FlatExample(
        "BAR_ARRIVE threads=128 lanes=64\nBAR_ARRIVE threads=128 lanes=64",
        ExampleEdit("the barrier counts one warp less", "threads=128", "threads=96"),
    ),
)
