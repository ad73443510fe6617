"""illegal_operand: an instruction has an operand that PTX does not allow there."""

from pipesim.findings.kind import Certainty, Evidence, ExampleEdit, FindingKind, PtxExample
from pipesim.findings.words import correction_of_forbidden, what_is_forbidden
from pipesim.model.finding import FaultKind

ILLEGAL_OPERAND = FindingKind(
    FaultKind.ILLEGAL_OPERAND,
    what=(
        "An mbarrier is not at a multiple of 8 bytes; a bulk copy has an address, or bytes, not a multiple of 16, a "
        "tensor copy a place in shared memory not at a multiple of 128; an address or a multicast mask names a CTA "
        "that the cluster does not have; a CTA has no named barrier of that number, or one is used with no threads; "
        "a warp accesses lanes of tensor memory that it cannot reach."
    ),
    ptx="mbarrier, cp.async.bulk, cp.async.bulk.tensor, mapa, bar, tcgen05.ld",
    shows="Most end the launch with an error, such as a misaligned address; PTX leaves the others undefined.",
    corrected="Correct what computes the operand: the sentence of the finding says what PTX asks for.",
    certainty=Certainty.SCHEDULE,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=what_is_forbidden,
    correction=correction_of_forbidden,
    example=PtxExample(
        " mov.u32 %r9, 1;\n bar.sync %r9, 64;\n",
        ExampleEdit("there is no such barrier", "%r9, 1;", "%r9, 16;"),
    ),
)
