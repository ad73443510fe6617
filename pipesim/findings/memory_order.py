"""Kinds of findings that the memory model alone shows: accesses that a fence, a proxy or a scope does not order."""

from pipesim.explain.operation_words import memory_name
from pipesim.findings.kind import Certainty, Evidence, ExampleEdit, FindingKind, ProtocolExample, PtxExample
from pipesim.findings.words import cause_of
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import MAY_ACQUIRE
from pipesim.model.ops import Fence, Op, operand
from pipesim.model.program import Program

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


def _stronger(program: Program, fault: Fault) -> str:
    if fault.cause_agent < 0:
        return ""
    acquires = program.code[fault.cause_agent][fault.cause_pc][0] in MAY_ACQUIRE
    behind = program.code[fault.other_agent][fault.other_pc :] if acquires else ()
    if any(op[0] == Op.FENCE and operand(op, "fence") == Fence.SC for op in behind):
        return f"execute fence.sc, which is __threadfence(), after {cause_of(program, fault)}"
    return f"let {cause_of(program, fault)} {'acquire' if acquires else 'release'}"


WEAK_ORDER = FindingKind(
    FaultKind.WEAK_ORDER,
    what=(
        "Two accesses to the same bytes are ordered by a relaxed arrive or wait, which orders no data; or only by the "
        "bytes of a copy that was issued after the first."
    ),
    ptx="memory consistency model: release and acquire patterns",
    shows="The reader may see old bytes although its wait has passed. Nothing detects it.",
    corrected=(
        "Use the default order (release and acquire), or put fence.acq_rel before a relaxed arrive and after a relaxed "
        "wait."
    ),
    certainty=Certainty.MEMORY_MODEL,
    evidence=Evidence.MEMORY_MODEL,
    correction=_stronger,
    example=ProtocolExample("""A relaxed wait lets the reader continue, and orders no data.

    tile = p.smem("tile", slots=1, nbytes=64)
    full = p.mbarriers("full", 1, count=1)

    @p.role("producer")
    def producer(w: Warp) -> None:
        with w.elect_one():
            w.write(tile[0], item=0)
            full[0].arrive()

    @p.role("consumer")
    def consumer(w: Warp) -> None:
        if right:
            full[0].wait_acquire(0)
        else:
            full[0].wait_relaxed(0)
        w.read(tile[0], item=0)
"""),
)


def _wider(program: Program, fault: Fault) -> str:
    return f"give {cause_of(program, fault)} cluster scope" if fault.cause_agent >= 0 else ""


NARROW_SCOPE = FindingKind(
    FaultKind.NARROW_SCOPE,
    what="Two accesses in different CTAs are ordered by an operation of CTA scope.",
    ptx="memory consistency model: scope",
    shows="The other CTA may see old bytes. Nothing detects it.",
    corrected="Give the arrive and the wait .cluster scope where they cross CTAs.",
    certainty=Certainty.MEMORY_MODEL,
    evidence=Evidence.MEMORY_MODEL,
    correction=_wider,
    example=ProtocolExample(
        """The arrive on the barrier of another CTA releases to its own CTA only.

    tile = p.smem("tile", slots=1, nbytes=64)
    ready = p.mbarriers("ready", 1, count=1)
    full = p.mbarriers("full", 1, count=1)

    @p.role("peer")
    def peer(w: Warp) -> None:
        with w.elect_one():
            if w.cta == 1:
                full[0].expect_bytes(64)
                full[0].wait(0)
                w.read(tile[0], item=0)
                ready[0].arrive_cluster(0, scope=Scope.CLUSTER if right else Scope.CTA)
                full[0].expect_bytes(64)
                full[0].wait(1)
            else:
                for item in range(2):
                    full[0].expect_bytes(64)
                    w.tma_load(tile[0], full[0], item=item, cta_mask=0b11)
                    full[0].wait(item)
                    if item == 0:
                        ready[0].wait_acquire(0, Scope.CLUSTER)
        w.cluster_sync()
""",
        cluster=2,
    ),
)


def _memory(program: Program, fault: Fault) -> str:
    when = "what comes before its end is too weak" if fault.expected else "nothing of it comes before"
    return f": {memory_name(program, fault.found)}; {when}"


ABSENT_CTA = FindingKind(
    FaultKind.ABSENT_CTA,
    what=(
        "A thread of a kernel accesses the shared memory of another CTA of its cluster, and nothing that this CTA does "
        "comes before, so that it may not have started; or it exits after no more than a relaxed operation, so that "
        "the access may not have ended."
    ),
    ptx="barrier.cluster; CUDA C++ Programming Guide, Distributed Shared Memory",
    shows="Nothing in most launches: the CTAs of a cluster start together. Else what is stored is lost, or elsewhere.",
    corrected=(
        "Let all CTAs of the cluster meet before the first access (barrier.cluster.arrive.relaxed is enough there) and "
        "after the last one, by barrier.cluster.arrive and .wait in their default order."
    ),
    certainty=Certainty.MEMORY_MODEL,
    evidence=Evidence.MEMORY_MODEL,
    detail=_memory,
    example=PtxExample(
        " mov.u32 %r5, %cluster_ctarank;\n xor.b32 %r5, %r5, 1;\n mapa.shared::cluster.u32 %r6, tile, %r5;\n"
        " setp.ne.u32 %p1, %r0, 0;\n barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;\n"
        " @!%p1 st.shared::cluster.u32 [%r6], %r5;\n"
        " barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;\n",
        ExampleEdit(
            "the CTAs do not meet first",
            "%r0, 0;\n barrier.cluster.arrive.aligned;\n barrier.cluster.wait.aligned;\n",
            "%r0, 0;\n",
        ),
        warps=1,
        cluster=2,
    ),
)


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
