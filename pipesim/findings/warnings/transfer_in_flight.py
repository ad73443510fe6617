"""transfer_in_flight: a transfer may still be in flight when its CTA has exited."""

from pipesim.findings.kind import Certainty, FindingKind, ProtocolExample

TRANSFER_IN_FLIGHT = FindingKind(
    "transfer_in_flight",
    "a transfer may still be in flight when its CTA has exited",
    what="A CTA can end while its own transfer still reads or writes its shared memory. PTX says nothing of that.",
    ptx="async operations: completion mechanisms",
    shows="A bulk store may read memory that the next CTA on the SM has overwritten.",
    corrected="Wait for the group, or for the mbarrier of the copy, before the end.",
    certainty=Certainty.WARNING,
    note="a transfer of {role} in {place} may still be in flight when its CTA has exited",
    example=ProtocolExample('''from pipesim import Engine, Fence, Protocol, Warp


def transfer_in_flight(right: int = 0) -> Protocol:
    """The CTA ends while its bulk copy still reads shared memory."""
    p = Protocol("transfer_in_flight")
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
                w.wait_group(Engine.BULK)

    return p
'''),
)
