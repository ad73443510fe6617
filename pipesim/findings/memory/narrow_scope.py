"""narrow_scope: two accesses to the same bytes are ordered across CTAs by an operation of CTA scope."""

from pipesim.findings.kind import Certainty, Evidence, FindingKind, ProtocolExample
from pipesim.findings.words import cause_of
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.program import Program


def _wider(program: Program, fault: Fault) -> str:
    return f"give {cause_of(program, fault)} cluster scope" if fault.cause_agent >= 0 else ""


NARROW_SCOPE = FindingKind(
    FaultKind.NARROW_SCOPE,
    what="Two accesses in different CTAs are ordered by an operation of CTA scope.",
    ptx="memory consistency model: scope",
    shows="The other CTA may see old bytes. Nothing detects it.",
    corrected="Give the arrive and the wait .cluster scope where they cross CTAs.",
    certainty=Certainty.MEMORY_MODEL,
    evidence=Evidence.MEMORY_MODEL,
    correction=_wider,
    example=ProtocolExample(
        """The arrive on the barrier of another CTA releases to its own CTA only.

    tile = p.smem("tile", slots=1, nbytes=64)
    ready = p.mbarriers("ready", 1, count=1)
    full = p.mbarriers("full", 1, count=1)

    @p.role("peer")
    def peer(w: Warp) -> None:
        with w.elect_one():
            if w.cta == 1:
                full[0].expect_bytes(64)
                full[0].wait(0)
                w.read(tile[0], item=0)
                ready[0].arrive_cluster(0, scope=Scope.CLUSTER if right else Scope.CTA)
                full[0].expect_bytes(64)
                full[0].wait(1)
            else:
                for item in range(2):
                    full[0].expect_bytes(64)
                    w.tma_load(tile[0], full[0], item=item, cta_mask=0b11)
                    full[0].wait(item)
                    if item == 0:
                        ready[0].wait_acquire(0, Scope.CLUSTER)
        w.cluster_sync()
""",
        cluster=2,
    ),
)
