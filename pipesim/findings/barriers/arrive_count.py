"""arrive_count: the count of an arrive is outside 1..1,048,575."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import FaultKind

ARRIVE_COUNT = FindingKind(
    FaultKind.ARRIVE_COUNT,
    what="The count of an arrive is outside 1 to 1,048,575.",
    ptx="mbarrier.arrive",
    shows="A count of 0 changes nothing, so the phase lacks an arrival, and who waits for it hangs.",
    corrected="Give the number of arrivals that the agent represents, at least 1.",
    certainty=Certainty.SCHEDULE,
    causes_itself=True,
    detail=": {fault.found:,}",
    example=ProtocolExample("""The arrive makes no arrival.

    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].arrive(1 if right else 0)
"""),
)
