"""barrier_overrun: more threads arrive at a named barrier than its thread count."""

from pipesim.findings.kind import Certainty, ExampleEdit, FindingKind, FlatExample
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import ON_NAMED_BARRIER
from pipesim.model.ops import operand
from pipesim.model.program import Program

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
