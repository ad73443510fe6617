"""wgmma_fence: a wgmma uses registers without a fence since another access to them."""

from pipesim.findings.kind import Certainty, Evidence, ExampleEdit, FindingKind, PtxExample
from pipesim.findings.words import correction_of_forbidden, what_is_forbidden
from pipesim.model.finding import FaultKind

WGMMA_FENCE = FindingKind(
    FaultKind.WGMMA_FENCE,
    what=(
        "No wgmma.fence comes before the first wgmma.mma_async of a warp, or between an access to registers and a "
        "wgmma.mma_async that has them as its accumulator or as fragments of A. Products of the same shape need none "
        "between them for their accumulator."
    ),
    ptx="wgmma.fence",
    shows=(
        "PTX leaves it undefined. ptxas 13.0 adds the fence where it sees the access, with a message (C7519, "
        "warpgroup.arrive is injected), and may execute the products one after the other."
    ),
    corrected="Execute wgmma.fence after the last access to the registers, before the products that use them.",
    certainty=Certainty.LETTER,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=what_is_forbidden,
    correction=correction_of_forbidden,
    example=PtxExample(
        " mov.u32 %r20, 0;\n mov.u64 %rd1, 64;\n wgmma.fence.sync.aligned;\n"
        " wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r20, %r21, %r22, %r23}, %rd1, %rd1, 1, 1, 1, 0, 0;\n"
        " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n",
        ExampleEdit("no fence before the first product", " wgmma.fence.sync.aligned;\n", ""),
        warps=4,
    ),
)
