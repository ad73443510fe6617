"""read_before_wait: registers of a wgmma are read before the wait for its group."""

from pipesim.findings.kind import Certainty, Evidence, ExampleEdit, FindingKind, PtxExample
from pipesim.findings.words import what_is_forbidden
from pipesim.model.finding import FaultKind

READ_BEFORE_WAIT = FindingKind(
    FaultKind.READ_BEFORE_WAIT,
    what=(
        "An instruction reads registers that a wgmma.mma_async writes, and in no schedule has a wgmma.wait_group "
        "completed its group. It is reported of kernels that are read from PTX, where every way leads from the wgmma "
        "to such a read."
    ),
    ptx="wgmma.wait_group",
    shows="Wrong results: the tensor cores have not written the registers, or only some of them.",
    corrected="Execute wgmma.wait_group before the registers are read.",
    certainty=Certainty.SCHEDULE,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=what_is_forbidden,
    example=PtxExample(
        " wgmma.fence.sync.aligned;\n"
        " wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r10, %r11, %r12, %r13}, %rd1, %rd1, 0, 1, 1, 0, 0;\n"
        " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n add.f32 %r20, %r10, %r11;\n",
        ExampleEdit("it is not waited for", " wgmma.wait_group.sync.aligned 0;\n", ""),
        warps=4,
    ),
)
