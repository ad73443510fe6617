"""inval_pending: the barrier is invalidated in the middle of a phase."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import FaultKind

INVAL_PENDING = FindingKind(
    FaultKind.INVAL_PENDING,
    what="A barrier is invalidated in the middle of a phase: arrivals or bytes are still to come.",
    ptx="mbarrier.inval",
    shows="Nothing is detected: what comes later changes memory that may hold other data.",
    corrected="Wait for the phase to complete before mbarrier.inval.",
    certainty=Certainty.SCHEDULE,
    concerns_init=True,
    example=ProtocolExample("""The barrier is invalidated when one of two arrivals has been made.

    full = p.mbarriers("full", 1, count=2)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive(2 if right else 1)
            full[0].inval()
"""),
)
