"""lanes_apart: lanes of a warp that parted are taken to be together again, which PTX does not promise there."""

from pipesim.findings.kind import Certainty, Evidence, ExampleEdit, FindingKind, PtxExample
from pipesim.model.finding import FaultKind

LANES_APART = FindingKind(
    FaultKind.LANES_APART,
    what=(
        "Lanes of a warp that took different branches execute an operation of all lanes, an elected lane signals "
        "what all have read or written, or a lane uses what another one has written or waited for, and PTX does not "
        "promise that they are together there, or not the order of what they access (a finding with --strict-lanes)."
    ),
    ptx="bar.warp.sync",
    shows=(
        "The compiler usually lets them meet. Where it does not, an arrive of 32 lanes becomes several arrivals, and "
        "lanes can run ahead of others that still read. shfl.sync, vote.sync, elect.sync and .aligned instructions "
        "have lanes execute together, but only barriers put what one lane has accessed before what another one does."
    ),
    corrected=(
        "Put __syncwarp() (bar.warp.sync with a mask of all these lanes) after the branch, before the operation that "
        "depends on it; or describe the role "
        "with lanes_apart=True, and it is proved with lanes that run independently."
    ),
    certainty=Certainty.LETTER,
    evidence=Evidence.LANES,
    switches=("--strict-lanes",),
    correction="let all lanes of the warp meet there: __syncwarp(), which is bar.warp.sync",
    example=PtxExample(
        " setp.lt.u32 %p4, %r2, 16;\n @!%p4 bra rest;\n st.shared.u32 [tile], %r2;\nrest:\n"
        " bar.warp.sync -1;\n mbarrier.arrive.shared::cta.b64 _, [%r3];",
        ExampleEdit("the lanes do not meet after the branch", " bar.warp.sync -1;\n", ""),
    ),
)
