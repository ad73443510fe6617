"""read_not_fenced: no fence.proxy.async between a read and the later write through the other proxy."""

from pipesim.findings.kind import Certainty, Evidence, FindingKind, ProtocolExample
from pipesim.model.finding import FaultKind

READ_NOT_FENCED = FindingKind(
    FaultKind.READ_NOT_FENCED,
    what=(
        "A read through one proxy is followed by a write through the other without a fence.proxy.async. The PTX memory "
        "model asks for one. On sm_100 and later it is a finding where a thread has read what a copy overwrites; "
        "otherwise it is an assumption of the verdict, and a finding with --strict-proxies."
    ),
    ptx="async proxy; membar, fence",
    shows=(
        "On Blackwell, readers got bytes of the next copy: DeepEP, NCCL's extensions and Triton added the fence "
        "after wrong results. An H200 never tore such a pair in 1.3 × 10⁷ laps (docs/memory-order.md), and rings of "
        "CUTLASS and Modular for Hopper have no fence there."
    ),
    corrected=(
        "Execute fence.proxy.async after the read, before the arrive that gives the stage back; or in the thread that "
        "issues the copy, after its wait for that arrive."
    ),
    certainty=Certainty.LETTER,
    evidence=Evidence.MEMORY_MODEL,
    switches=("--strict-proxies",),
    example=ProtocolExample("""Threads read what the next bulk copy overwrites; a finding with --strict-proxies.

    tile = p.smem("tile", slots=1, nbytes=64)
    full = p.mbarriers("full", 1, count=1)

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        with w.elect_one():
            for i in range(2):
                full[0].expect_bytes(64)
                w.tma_load(tile[0], full[0], item=i)
                full[0].wait(i)
                w.read(tile[0], item=i)
                if right:
                    w.fence(Fence.PROXY_ASYNC)
"""),
)
