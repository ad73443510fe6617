"""wrong_item: the bytes read hold a different item than the reader expects."""

from pipesim.explain.operation_words import accessed_bytes
from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import TOUCHES_MEMORY
from pipesim.model.program import Program


def _items(program: Program, fault: Fault) -> str:
    operation = program.code[fault.agent][fault.pc]
    where = f" in {accessed_bytes(program, operation)}" if operation[0] in TOUCHES_MEMORY else ""
    return f": item {fault.found} instead of {fault.expected}{where}"


WRONG_ITEM = FindingKind(
    FaultKind.WRONG_ITEM,
    what="The bytes are there and ordered, and hold another item than the reader expects.",
    ptx="memory consistency model: causality order",
    shows="The result is wrong in every launch, or in those in which one agent is late by a lap.",
    corrected=(
        "Compare the stage and the phase that writer and reader compute for the same item: the counters of one of them "
        "start, toggle or skip differently."
    ),
    certainty=Certainty.SCHEDULE,
    detail=_items,
    example=ProtocolExample("""The reader takes the slot of item 0 for that of item 1.

    tile = p.smem("tile", slots=2, nbytes=64)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        w.write(tile[0], item=0)
        w.write(tile[1], item=1)
        w.read(tile[1 if right else 0], item=1)
"""),
)
