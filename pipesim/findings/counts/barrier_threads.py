"""barrier_threads: agents at a named barrier disagree about its number of threads, or it is not a multiple of 32."""

from pathlib import PurePath

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import ON_NAMED_BARRIER
from pipesim.model.ops import operand, operands
from pipesim.model.program import Program


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
