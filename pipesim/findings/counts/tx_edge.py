"""tx_edge: the transaction count is 1,048,576, one more than PTX allows."""

from __future__ import annotations

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.program import Program


def _bytes(_: Program, fault: Fault) -> str:
    return f": {fault.found:,} bytes on top of {fault.expected:,}"


TX_EDGE = FindingKind(
    FaultKind.TX_EDGE,
    what="The transaction count is 1,048,576 bytes, one more than PTX allows.",
    ptx="mbarrier: tracking asynchronous operations by the mbarrier object",
    shows="H100 and H200 accept it, unless ptxas makes one of two expect_tx that follow each other, which traps.",
    corrected="Expect at most 1,048,575 bytes in a phase.",
    certainty=Certainty.LETTER,
    detail=_bytes,
    example=ProtocolExample('''from pipesim import Protocol, Warp


def tx_edge(right: int = 0) -> Protocol:
    """One byte more is expected than PTX allows."""
    p = Protocol("tx_edge")
    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].expect_tx(1_048_575)
            if not right:
                full[0].expect_tx(1)

    return p
'''),
)
