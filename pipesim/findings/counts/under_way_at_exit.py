"""under_way_at_exit: a copy, MMA or commit is still under way when its CTA ends."""

from pipesim.findings.kind import Certainty, Evidence, FindingKind, ProtocolExample
from pipesim.model.finding import FaultKind

UNDER_WAY_AT_EXIT = FindingKind(
    FaultKind.UNDER_WAY_AT_EXIT,
    what=(
        "A CTA ends while its own copy, MMA or commit still uses its shared memory, and no agent of it waits for that "
        "(a finding with --strict-exit). PTX says nothing of that. What reaches into another CTA is exited_cta."
    ),
    ptx="async operations: completion mechanisms",
    shows="A bulk store may read, a copy or an arrival may change, memory that the next CTA on the SM uses.",
    corrected="Wait for the group, or for the mbarrier of the copy or commit, before the end.",
    certainty=Certainty.LETTER,
    evidence=Evidence.RUN,
    switches=("--strict-exit",),
    correction="wait for its group, or for the phase of the mbarrier on which it arrives, before the CTA ends",
    example=ProtocolExample("""The CTA ends while its bulk copy still reads shared memory.

    out = p.smem("out", slots=1, nbytes=64)

    @p.role("epilogue")
    def epilogue(w: Warp) -> None:
        w.write(out[0], item=0)
        w.fence(Fence.PROXY_ASYNC)
        w.sync_warp()
        with w.elect_one():
            w.async_read(Engine.BULK, out[0], item=0)
            w.commit(Engine.BULK)
            if right:
                w.wait_group(Engine.BULK, 0)
"""),
)
