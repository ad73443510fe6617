"""tx_range: the transaction count leaves -1,048,575..1,048,576."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import FaultKind

TX_RANGE = FindingKind(
    FaultKind.TX_RANGE,
    what="The transaction count of a phase leaves -1,048,575 to 1,048,576 bytes.",
    ptx="mbarrier: tracking asynchronous operations by the mbarrier object",
    shows="The launch fails (measured on H100 and H200).",
    corrected="Expect at most 1,048,575 bytes in a phase: spread a larger tile over several barriers or phases.",
    certainty=Certainty.SCHEDULE,
    detail=": {fault.found:,} bytes on top of {fault.expected:,}",
    example=ProtocolExample("""More bytes are expected than a phase can count.

    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].expect_tx(1_000_000)
            full[0].expect_tx(16 if right else 1_000_000)
"""),
)
