"""cp_async_after_exit: a cp.async arrive may be counted when the CTA of its barrier has exited."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample

CP_ASYNC_AFTER_EXIT = FindingKind(
    "cp_async_after_exit",
    "a cp.async arrive may be counted when the CTA of its barrier has exited",
    what="A cp.async.mbarrier.arrive can be counted when the CTA of its barrier has exited.",
    ptx="cp.async.mbarrier.arrive",
    shows="The arrival may change shared memory that the next CTA on the SM uses.",
    corrected="Let an agent wait for the phase, or wait for the group of the copies, before the CTA ends.",
    certainty=Certainty.WARNING,
    note="a cp.async arrive of {role} may be counted on {place} when the CTA of that barrier has exited",
    example=ProtocolExample('''from pipesim import Engine, Protocol, Warp


def cp_async_after_exit(right: int = 0) -> Protocol:
    """No agent waits for the arrivals of the last cp.async."""
    p = Protocol("cp_async_after_exit")
    tile = p.smem("tile", slots=1, nbytes=64)
    full = p.mbarriers("full", 1, count=32)

    @p.role("producer")
    def producer(w: Warp) -> None:
        w.async_write(Engine.CP_ASYNC, tile[0], item=0)
        full[0].cp_async_arrive(noinc=True)
        if right:
            full[0].wait(0)
            w.read(tile[0], item=0)

    return p
'''),
)
