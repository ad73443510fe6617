"""commit_after_exit: a commit may arrive when the CTA of its barrier has exited."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample

COMMIT_AFTER_EXIT = FindingKind(
    "commit_after_exit",
    "a commit may arrive when the CTA of its barrier has exited",
    what="A tcgen05.commit can arrive on a barrier when the CTA of that barrier has exited.",
    ptx="tcgen05.commit",
    shows="The arrival may change shared memory that the next CTA on the SM uses.",
    corrected="Let an agent wait for the last commits before the CTA ends.",
    certainty=Certainty.WARNING,
    note="a commit of {role} may arrive on {place} when the CTA of that barrier has exited",
    example=ProtocolExample('''from pipesim import Engine, Protocol, Warp


def commit_after_exit(right: int = 0) -> Protocol:
    """No agent waits for the arrival of the last commit."""
    p = Protocol("commit_after_exit")
    done = p.mbarriers("done", 1, count=1)

    @p.role("mma")
    def mma(w: Warp) -> None:
        with w.elect_one():
            w.commit(Engine.TCGEN05, done[0])
            if right:
                done[0].wait(0)

    return p
'''),
)
