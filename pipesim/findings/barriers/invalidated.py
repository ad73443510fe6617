"""invalidated: the barrier is used after its inval."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import FaultKind

INVALIDATED = FindingKind(
    FaultKind.INVALIDATED,
    what="A barrier is used after mbarrier.inval.",
    ptx="mbarrier.inval",
    shows="Nothing is detected: the arrive or the wait works on memory that may hold other data by then.",
    corrected="Let the agent that invalidates wait for all the others first, for example at a barrier of the CTA.",
    certainty=Certainty.SCHEDULE,
    concerns_init=True,
    example=ProtocolExample("""The barrier is used after its inval.

    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            if right:
                full[0].arrive()
            full[0].inval()
            if not right:
                full[0].arrive()
"""),
)
