"""cluster_arrive: a second cluster arrive before the wait for the first, or a wait without an arrive."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import FaultKind

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
