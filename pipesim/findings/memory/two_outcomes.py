"""two_outcomes: two schedules that both finish leave different results."""

from pipesim.explain.operation_words import accessed_bytes
from pipesim.findings.kind import Certainty, Evidence, ExampleEdit, FindingKind, FlatExample
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.program import Program


def _outcomes(program: Program, fault: Fault) -> str:
    one, other = (f"item {item}" if item >= 0 else "nothing" for item in (fault.found, fault.expected))
    where = accessed_bytes(program, program.code[fault.agent][fault.pc])
    return f": {one} in {where} after one, {other} after the other"


TWO_OUTCOMES = FindingKind(
    FaultKind.TWO_OUTCOMES,
    what="Two schedules both finish without a fault and leave different results: a try, or who came first, decides.",
    ptx="mbarrier.test_wait, mbarrier.try_wait",
    shows="Results differ from launch to launch, and each of them looks right by itself.",
    corrected="Wait where an outcome depends on a try_wait's result; fix the order of writers that exclude each other.",
    certainty=Certainty.SCHEDULE,
    evidence=Evidence.ALL_SCHEDULES,
    detail=_outcomes,
    example=FlatExample(
        "INIT; FENCE; BAR_SYNC threads=64; ARRIVE\nBAR_SYNC threads=64; WRITE item=2; WAIT; WRITE item=1; READ",
        ExampleEdit("it tries instead of waiting", "WAIT", "TRY_WAIT register=0; JUMP_IF register=0 value=0 skip=1"),
    ),
)
