"""missing_proxy_fence: no fence.proxy.async between an ordinary write and the later asynchronous access."""

from pipesim.findings.kind import Certainty, Evidence, FindingKind, ProtocolExample
from pipesim.model.finding import FaultKind

MISSING_PROXY_FENCE = FindingKind(
    FaultKind.MISSING_PROXY_FENCE,
    what=(
        "A thread writes shared or global memory, and a bulk copy, wgmma or tcgen05 accesses the same bytes without a "
        "fence.proxy.async in between. Barriers alone do not order the two proxies."
    ),
    ptx="async proxy; membar, fence",
    shows="The asynchronous access may see old bytes. Nothing detects it; whether it happens depends on timing.",
    corrected=(
        "Execute fence.proxy.async after the writes, in the threads that wrote, before the barrier that lets the "
        "asynchronous access start."
    ),
    certainty=Certainty.MEMORY_MODEL,
    evidence=Evidence.MEMORY_MODEL,
    correction="{other} executes fence.proxy.async after its write, before it signals any other agent",
    example=ProtocolExample("""Threads write what a bulk copy then reads.

    out = p.smem("out", slots=1, nbytes=64)

    @p.role("epilogue")
    def epilogue(w: Warp) -> None:
        w.write(out[0], item=0)
        if right:
            w.fence(Fence.PROXY_ASYNC)
        w.sync_warp()
        with w.elect_one():
            w.async_read(Engine.BULK, out[0], item=0)
            w.commit(Engine.BULK)
            w.wait_group(Engine.BULK)
"""),
)
