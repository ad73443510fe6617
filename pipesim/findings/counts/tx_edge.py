"""tx_edge: the transaction count is 1,048,576, one more than PTX allows."""

from itertools import takewhile

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample
from pipesim.model.barrier import MAX_COUNT
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.ops import Op, operand
from pipesim.model.program import Program


def one_operand(program: Program, fault: Fault) -> bool:
    """Whether ptxas may make one ``expect_tx`` of this one and those before it: too large an operand, which traps."""
    back = reversed(program.code[fault.agent][: fault.pc + 1])
    ones = takewhile(lambda op: op[0] == Op.EXPECT_TX and operand(op, "barrier") == fault.barrier, back)
    return sum(operand(op, "bytes") for op in ones) > MAX_COUNT


def _bytes(program: Program, fault: Fault) -> str:
    said = f": {fault.found:,} bytes on top of {fault.expected:,}"
    return said + "; ptxas may make one expect_tx of both, which traps" * one_operand(program, fault)


TX_EDGE = FindingKind(
    FaultKind.TX_EDGE,
    what="The transaction count is 1,048,576 bytes, one more than PTX allows.",
    ptx="mbarrier: tracking asynchronous operations by the mbarrier object",
    shows="H100 and H200 accept it, except where two expect_tx follow each other: ptxas makes one of both, whose "
    "operand traps on H200. Such a finding is possible, others are by the letter.",
    corrected="Expect at most 1,048,575 bytes in a phase.",
    certainty=Certainty.LETTER,
    detail=_bytes,
    example=ProtocolExample("""One byte more is expected than PTX allows.

    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            full[0].expect_tx(1_048_575)
            if not right:
                full[0].expect_tx(1)
"""),
)
