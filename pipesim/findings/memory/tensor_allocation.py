"""tensor_allocation: tensor memory is not allocated, used or released as PTX has it."""

from pipesim.findings.kind import Certainty, Evidence, ExampleEdit, FindingKind, PtxExample
from pipesim.findings.words import what_is_forbidden
from pipesim.model.finding import FaultKind

TENSOR_ALLOCATION = FindingKind(
    FaultKind.TENSOR_ALLOCATION,
    what=(
        "tcgen05.alloc asks for another number than 32, 64, 128, 256 or 512 columns, for more than the CTA has left, "
        "or after relinquish_alloc_permit; tcgen05.dealloc releases something else than was allocated; columns are "
        "used that are not allocated, or still allocated when the kernel ends; CTAs of a pair do not allocate equally "
        "often; or instructions of a kernel differ in .cta_group."
    ),
    ptx="tcgen05.alloc, dealloc, relinquish_alloc_permit",
    shows=(
        "An allocation that does not fit waits, indefinitely if no warp releases columns; what is not released is "
        "missing for the next CTA on the SM, which then hangs. Columns of another CTA may be overwritten."
    ),
    corrected=(
        "Let one warp allocate what the kernel needs, in a power of two of columns, and release the same address and "
        "columns when the last access is complete."
    ),
    certainty=Certainty.MEMORY_MODEL,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=what_is_forbidden,
    example=PtxExample(
        " setp.ne.u32 %p4, %r1, 0;\n @%p4 bra rest;\n"
        " tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 64;\n"
        " ld.shared.u32 %r9, [tile];\n"
        " tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 64;\nrest:\n",
        ExampleEdit("fewer columns are released", "%r9, 64", "%r9, 32"),
    ),
)
