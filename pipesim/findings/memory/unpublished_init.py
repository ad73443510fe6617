"""unpublished_init: a barrier is used before its init is visible to the user."""

from pipesim.findings.kind import Certainty, Evidence, FindingKind, ProtocolExample
from pipesim.model.finding import FaultKind

UNPUBLISHED_INIT = FindingKind(
    FaultKind.UNPUBLISHED_INIT,
    what=(
        "The init of a barrier is ordered before its use, but not visible to the user: a copy or a commit needs "
        "fence.mbarrier_init or fence.proxy.async after it."
    ),
    ptx="membar, fence: fence.mbarrier_init",
    shows="A copy may signal a barrier that is not yet initialised: it is lost, or the launch fails.",
    corrected=(
        "Execute fence.mbarrier_init after the inits, then the barrier of the CTA or the cluster. Within one CTA the "
        "missing fence is an assumption of the verdict, and a finding with --strict-init."
    ),
    certainty=Certainty.MEMORY_MODEL,
    evidence=Evidence.MEMORY_MODEL,
    switches=("--strict-init",),
    note="{role} initialises {place} without a fence before it is used",
    correction="{other} executes fence.mbarrier_init after its inits, before the barrier of the CTA or cluster",
    example=ProtocolExample('''A copy uses a barrier initialised without a fence; a finding with --strict-init.

    tile = p.smem("tile", slots=1, nbytes=64)
    full = p.mbarriers("full", 1)

    @p.init
    def init() -> None:
        """Nothing: the role does it."""

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        with w.elect_one():
            full[0].init(1)
            if right:
                w.fence(Fence.MBARRIER_INIT)
        w.sync_threads()
        with w.elect_one():
            full[0].expect_bytes(64)
            w.tma_load(tile[0], full[0], item=0)
            full[0].wait(0)
'''),
)
