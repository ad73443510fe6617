"""unscoped_arrive: an arrive on a barrier of another CTA has no scope."""

from collections.abc import Iterator

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import Advisory
from pipesim.model.groups import BARRIER
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program


def _look(program: Program) -> Iterator[Advisory]:
    """Arrives without a scope on a barrier of another CTA."""
    for a, code in enumerate(program.code):
        me = program.agents[a]
        for pc, op in enumerate(code):
            if op[0] == Op.ARRIVE and not operand(op, "semantics") and program.barriers[op[BARRIER]].cta != me.cta:
                claim = f"{me.role} arrives on {program.barriers[op[BARRIER]].name} of another CTA without a scope"
                claim += ", so with CTA scope, as libraries do"
                yield Advisory(me.role, claim, program.line(a, pc), "unscoped_arrive")


UNSCOPED_ARRIVE = FindingKind(
    "unscoped_arrive",
    "an arrive on a barrier of another CTA has no scope",
    what="An arrive on a barrier of another CTA is written without a scope, which PTX treats as CTA scope.",
    ptx="mbarrier.arrive",
    shows="No failure is known: CUTLASS and Modular's kernels do the same.",
    corrected="Write .release.cluster where you do not want to rely on that.",
    certainty=Certainty.WARNING,
    look=_look,
    of=Op.ARRIVE,
    across_ctas=True,
    example=ProtocolExample(
        """An arrive on the barrier of another CTA has no scope.

    ready = p.mbarriers("ready", 1, count=1)

    @p.role("peer")
    def peer(w: Warp) -> None:
        with w.elect_one():
            if right:
                ready[0].arrive_cluster(w.cta ^ 1, scope=Scope.CLUSTER)
            else:
                ready[0].arrive_cluster(w.cta ^ 1)
            ready[0].wait(0)
""",
        cluster=2,
    ),
)
