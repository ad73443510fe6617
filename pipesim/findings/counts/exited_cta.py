"""exited_cta: an operation on a barrier or the memory of a CTA that has exited."""

from pipesim.explain.operation_words import memory_name
from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.program import Program


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
