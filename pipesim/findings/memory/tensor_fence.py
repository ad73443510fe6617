"""tensor_fence: no tcgen05.fence between accesses of two threads to the same tensor memory."""

from pipesim.findings.kind import Certainty, Evidence, FindingKind, ProtocolExample
from pipesim.model.finding import FaultKind

TENSOR_FENCE = FindingKind(
    FaultKind.TENSOR_FENCE,
    what=(
        "Two threads access the same columns of tensor memory, one of them with a write, and only synchronisation of "
        "threads orders them. PTX asks for tcgen05.fence::before_thread_sync in the first thread, which tcgen05.commit "
        "implies, and for tcgen05.fence::after_thread_sync in the second; without --strict-tensor-fences it is an "
        "assumption of the verdict."
    ),
    ptx="tcgen05.fence",
    shows=(
        "tcgen05 instructions are asynchronous, and may be carried out before or after the synchronisation that "
        "is between them in the code. Nothing detects it. The GEMMs of CUTLASS, Triton and Modular have no such "
        "fences."
    ),
    corrected=(
        "Execute tcgen05.fence::before_thread_sync after tcgen05.wait, before the arrive or the barrier, and "
        "tcgen05.fence::after_thread_sync after the wait for it, before the next tcgen05 instruction."
    ),
    certainty=Certainty.LETTER,
    evidence=Evidence.MEMORY_MODEL,
    switches=("--strict-tensor-fences",),
    example=ProtocolExample("""A warp reads an accumulator that one MMA has written and the next one overwrites.

    acc = p.tmem("acc", 1, 64)
    full, empty = p.mbarriers("full", 1, 1), p.mbarriers("empty", 1, 1)

    @p.role("mma")
    def mma(w: Warp) -> None:
        with w.elect_one():
            for i in range(2):
                empty[0].wait(i ^ 1)
                if right:
                    w.fence(Fence.TCGEN05_AFTER)
                w.mma(Engine.TCGEN05, writes=[(acc[0], i)])
                w.commit(Engine.TCGEN05, full[0])

    @p.role("epilogue")
    def epilogue(w: Warp) -> None:
        for i in range(2):
            full[0].wait(i)
            if right:
                w.fence(Fence.TCGEN05_AFTER)
            w.read(acc[0], i)
            if right:
                w.fence(Fence.TCGEN05_BEFORE)
            with w.elect_one():
                empty[0].arrive()
"""),
)
