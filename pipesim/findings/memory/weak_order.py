"""weak_order: two accesses to the same bytes are ordered by a relaxed operation, which orders no data."""

from pipesim.findings.kind import Certainty, Evidence, FindingKind, ProtocolExample
from pipesim.findings.words import cause_of
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import MAY_ACQUIRE
from pipesim.model.ops import Fence, Op, operand
from pipesim.model.program import Program


def _stronger(program: Program, fault: Fault) -> str:
    if fault.cause_agent < 0:
        return ""
    acquires = program.code[fault.cause_agent][fault.cause_pc][0] in MAY_ACQUIRE
    behind = program.code[fault.other_agent][fault.other_pc :] if acquires else ()
    if any(op[0] == Op.FENCE and operand(op, "fence") == Fence.SC for op in behind):
        return f"execute fence.sc, which is __threadfence(), after {cause_of(program, fault)}"
    return f"let {cause_of(program, fault)} {'acquire' if acquires else 'release'}"


WEAK_ORDER = FindingKind(
    FaultKind.WEAK_ORDER,
    what=(
        "Two accesses to the same bytes are ordered by a relaxed arrive or wait, which orders no data; or only by the "
        "bytes of a copy that was issued after the first."
    ),
    ptx="memory consistency model: release and acquire patterns",
    shows="The reader may see old bytes although its wait has passed. Nothing detects it.",
    corrected=(
        "Use the default order (release and acquire), or put fence.acq_rel before a relaxed arrive and after a relaxed "
        "wait."
    ),
    certainty=Certainty.MEMORY_MODEL,
    evidence=Evidence.MEMORY_MODEL,
    correction=_stronger,
    example=ProtocolExample("""A relaxed wait lets the reader continue, and orders no data.

    tile = p.smem("tile", slots=1, nbytes=64)
    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            w.write(tile[0], item=0)
            full[0].arrive()

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        if right:
            full[0].wait_acquire(0)
        else:
            full[0].wait_relaxed(0)
        w.read(tile[0], item=0)
"""),
)
