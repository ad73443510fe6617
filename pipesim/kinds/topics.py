"""Every kind, in the order in which it is listed: what is wrong with barriers, counts, memory, order; then warnings."""

from __future__ import annotations

from pipesim.kinds import barriers, bytes_and_threads, memory, warnings
from pipesim.kinds.topic import Operations, PtxBody, Topic, WarningKind
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind

_BARRIERS = (
    Topic(
        Ending.DEADLOCK,
        "No agent can move, and some have not finished: each waits for a phase, a named barrier or a group that needs "
        "something which never comes.",
        "The kernel hangs: the launch does not end, and nothing reports why. With a time-out around the waits it traps "
        "or returns wrong results.",
        "Compare the count of the init with the arrivals of a phase, the bytes expected with the bytes copied, and the "
        "parity of the first wait with the phase that it means. Where the agents wait in a circle, one of them "
        "has to arrive before it waits.",
        barriers.deadlock,
    ),
    Topic(
        FaultKind.OVER_ARRIVAL,
        "An arrive makes more arrivals than the phase has pending. Lanes of a warp that execute it together are "
        "one arrival of as many; it cannot complete two phases.",
        "The launch fails with CUDA_ERROR_LAUNCH_FAILED, and the context is lost (measured on H100 and H200).",
        "Let one lane arrive (elect_one), or initialise the barrier with the number of all arrivals of a phase. If an "
        "agent arrives for the next phase too early, let it wait for the present one first.",
        barriers.over_arrival,
    ),
    Topic(
        FaultKind.NOT_INITIALISED,
        "A barrier is used and nothing orders the use after its init.",
        "If the use comes first, the launch usually fails; what the barrier unit finds is whatever the shared memory "
        "held. If the init happens to come first, all is well: so it may fail rarely.",
        "Initialise the barriers in one thread, then fence.mbarrier_init and __syncthreads(), in a cluster a cluster "
        "barrier, before anyone uses them.",
        barriers.not_initialised,
    ),
    Topic(
        FaultKind.REINITIALISED,
        "A barrier is initialised again without mbarrier.inval in between, which PTX does not allow.",
        "The barrier is reset silently: arrivals and bytes of the open phase are lost, and those who wait may "
        "wait indefinitely (measured on H100 and H200).",
        "Execute mbarrier.inval when all agents are done with the barrier, then init; or keep the barrier, since "
        "its phases repeat by themselves.",
        barriers.reinitialised,
    ),
    Topic(
        FaultKind.INVALIDATED,
        "A barrier is used after mbarrier.inval.",
        "Nothing is detected: the arrive or the wait works on memory that may hold other data by then.",
        "Let the agent that invalidates wait for all the others first, for example at a barrier of the CTA.",
        barriers.invalidated,
    ),
    Topic(
        FaultKind.INVAL_PENDING,
        "A barrier is invalidated in the middle of a phase: arrivals or bytes are still to come.",
        "Nothing is detected: what comes later changes memory that may hold other data.",
        "Wait for the phase to complete before mbarrier.inval.",
        barriers.inval_pending,
    ),
    Topic(
        FaultKind.INIT_COUNT,
        "The count of an init is outside 1 to 1,048,575.",
        "Nothing is detected: with a count of 0 the first arrive finds nothing pending, and a larger count spills into "
        "the other fields of the barrier (measured on H100 and H200).",
        "Initialise with the number of arrivals that a phase receives; count consumers, not the warps that "
        "a configuration happens to leave out.",
        barriers.init_count,
    ),
    Topic(
        FaultKind.ARRIVE_COUNT,
        "The count of an arrive is outside 1 to 1,048,575.",
        "A count of 0 changes nothing, so the phase lacks an arrival, and who waits for it hangs.",
        "Give the number of arrivals that the agent stands for, at least 1.",
        barriers.arrive_count,
    ),
    Topic(
        FaultKind.NO_COMPLETE,
        "mbarrier.arrive.noComplete completes the phase, which PTX leaves undefined.",
        "On H100 and H200 the phase completes as with an ordinary arrive; another GPU or compiler may do otherwise.",
        "Use an ordinary arrive for what may be the last arrival of a phase.",
        barriers.no_complete,
    ),
    Topic(
        FaultKind.STALE_STATE,
        "A wait by state uses the state of a phase that is neither the current one nor the one before.",
        "Only one bit of the phase is compared: the wait may pass too early, or wait for a phase that is long over.",
        "Use the state that the arrive of this phase returned, before another phase completes; or wait by parity.",
        barriers.stale_state,
    ),
)  # fmt: skip

_COUNTS = (
    Topic(
        FaultKind.TX_RANGE,
        "The transaction count of a phase leaves -1,048,575 to 1,048,576 bytes.",
        "The launch fails (measured on H100 and H200).",
        "Expect at most 1,048,575 bytes in a phase: spread a larger tile over several barriers or phases.",
        bytes_and_threads.tx_range,
    ),
    Topic(
        FaultKind.TX_EDGE,
        "The transaction count is 1,048,576 bytes, one more than PTX allows.",
        "H100 and H200 accept it; PTX does not promise it.",
        "Expect at most 1,048,575 bytes in a phase.",
        bytes_and_threads.tx_edge,
    ),
    Topic(
        FaultKind.EXITED_CTA,
        "An agent arrives on a barrier, or accesses the memory, of another CTA of the cluster that may have exited.",
        "The launch fails if the other CTA has exited (measured). If it is still there, nothing happens: so it may "
        "fail rarely.",
        "Let every CTA wait, before it ends, for what others still send to it: drain the ring, or end with a "
        "barrier of the cluster.",
        bytes_and_threads.exited_cta,
    ),
    Topic(
        FaultKind.CLUSTER_ARRIVE,
        "An agent arrives at the cluster barrier twice without a wait in between, or waits without an arrive.",
        "PTX leaves it undefined: CTAs of the cluster may go on too early or hang.",
        "Execute barrier.cluster.arrive and barrier.cluster.wait in pairs, in every thread.",
        bytes_and_threads.cluster_arrive,
    ),
    Topic(
        FaultKind.BARRIER_THREADS,
        "The agents at a named barrier give different numbers of threads, or one that is not a multiple of 32.",
        "PTX leaves it undefined: the barrier may let some go too early, hang, or stop the launch.",
        "Give the same number at every bar.sync and bar.arrive of a barrier: all threads that take part, a whole "
        "number of warps.",
        bytes_and_threads.barrier_threads,
    ),
    Topic(
        FaultKind.BARRIER_OVERRUN,
        "More threads arrive at a named barrier than its thread count.",
        "PTX leaves it undefined: the barrier may complete for the wrong threads, hang, or stop the launch.",
        "Count every thread that arrives, or give each purpose a named barrier of its own.",
        Operations(
            ("BAR_ARRIVE threads=96 lanes=64", "BAR_ARRIVE threads=96 lanes=64"),
            ("BAR_ARRIVE threads=128 lanes=64", "BAR_ARRIVE threads=128 lanes=64"),
        ),
    ),
)  # fmt: skip

_ARRIVES = "INIT; FENCE; BAR_SYNC threads=64; ARRIVE"
_TRIES = "BAR_SYNC threads=64; WRITE item=2; TRY_WAIT register=0; "

_MEMORY = (
    Topic(
        FaultKind.RACE,
        "Two accesses to the same bytes can happen at the same time, and at least one of them is a write.",
        "Results are wrong in some launches: tiles are torn or mixed. Nothing detects it, and a recording or a "
        "debugger can make it vanish.",
        "Let the later agent wait for an arrive that the earlier one makes after its access: a wait for full before "
        "reading, an arrive on empty after the last read, a barrier between writing and reading.",
        memory.race,
    ),
    Topic(
        FaultKind.UNINITIALISED_READ,
        "Bytes are read that nothing has written.",
        "The result has whatever the memory held: often the data of an earlier launch, so that a test may pass.",
        "Read what was written: compare offsets and sizes of both accesses, and wait for all copies of the phase. With "
        "--strict-tensor-memory the same holds for tensor memory.",
        memory.uninitialised_read,
    ),
    Topic(
        FaultKind.WRONG_ITEM,
        "The bytes are there and ordered, and hold another item than the reader expects.",
        "The result is wrong in every launch, or in those in which one agent is a lap behind.",
        "Compare the stage and the phase that writer and reader compute for the same item: the counters of one of them "
        "start, toggle or skip differently.",
        memory.wrong_item,
    ),
    Topic(
        FaultKind.TWO_OUTCOMES,
        "Two schedules both finish without a fault and leave different results: a try, or who came first, decides.",
        "Results differ from launch to launch, and each of them looks right by itself.",
        "Wait where the result depends on the answer of a try; fix the order of writers that exclude each other.",
        Operations(
            (_ARRIVES, _TRIES + "JUMP_IF register=0 value=0 skip=1; WRITE item=1; READ"),
            (_ARRIVES, "BAR_SYNC threads=64; WRITE item=2; WAIT; WRITE item=1; READ"),
        ),
    ),
    Topic(
        FaultKind.LANES_APART,
        "Lanes of a warp that took different branches execute an operation of all lanes, and PTX does not promise that "
        "they are together again (a finding with --strict-lanes).",
        "The compiler usually lets them meet. Where it does not, an arrive of 32 lanes becomes several arrivals, and "
        "lanes can run ahead of others that still read.",
        "Put __syncwarp() (bar.warp.sync) after the branch, before the operation of all lanes.",
        PtxBody(
            " setp.lt.u32 %p4, %r2, 16;\n @!%p4 bra rest;\n st.shared.u32 [tile], %r2;\nrest:\n"
            " mbarrier.arrive.shared::cta.b64 _, [%r3];\n",
            " setp.lt.u32 %p4, %r2, 16;\n @!%p4 bra rest;\n st.shared.u32 [tile], %r2;\nrest:\n"
            " bar.warp.sync -1;\n mbarrier.arrive.shared::cta.b64 _, [%r3];\n",
        ),
        ("--strict-lanes",),
    ),
    Topic(
        FaultKind.MISSING_PROXY_FENCE,
        "A thread writes shared or global memory, and a bulk copy, wgmma or tcgen05 accesses the same bytes without a "
        "fence.proxy.async in between. Barriers alone do not order the two proxies.",
        "The asynchronous access may see old bytes. Nothing detects it; whether it happens depends on timing.",
        "Execute fence.proxy.async after the writes, in the threads that wrote, before the barrier that lets the "
        "asynchronous access start.",
        memory.missing_proxy_fence,
    ),
    Topic(
        FaultKind.READ_NOT_FENCED,
        "A read through one proxy is followed by a write through the other without a fence.proxy.async. The PTX memory "
        "model asks for one; without --strict-proxies it is an assumption of the verdict.",
        "An H200 never tore such a pair in 1.3 × 10⁷ laps (docs/memory-order.md), and the rings of CUTLASS and Modular "
        "have no fence there.",
        "Execute fence.proxy.async after the read, before the arrive that gives the stage back, if you do not want "
        "to rely on that.",
        memory.read_not_fenced,
        ("--strict-proxies",),
    ),
    Topic(
        FaultKind.WEAK_ORDER,
        "Two accesses to the same bytes are ordered by a relaxed arrive or wait, which orders no data; or only by the "
        "bytes of a copy that was issued after the first.",
        "The reader may see old bytes although its wait has passed. Nothing detects it.",
        "Use the default order (release and acquire), or put fence.acq_rel before a relaxed arrive and after a "
        "relaxed wait.",
        memory.weak_order,
    ),
    Topic(
        FaultKind.NARROW_SCOPE,
        "Two accesses in different CTAs are ordered by an operation of CTA scope.",
        "The other CTA may see old bytes. Nothing detects it.",
        "Give the arrive and the wait .cluster scope where they cross CTAs.",
        memory.narrow_scope,
    ),
    Topic(
        FaultKind.UNPUBLISHED_INIT,
        "The init of a barrier is ordered before its use, but not visible to the user: a copy or a commit needs "
        "fence.mbarrier_init or fence.proxy.async after it.",
        "A copy may signal a barrier that is not yet initialised: it is lost, or the launch fails.",
        "Execute fence.mbarrier_init after the inits, then the barrier of the CTA or the cluster. Within one CTA the "
        "missing fence is a note, and a finding with --strict-init.",
        memory.unpublished_init,
        ("--strict-init",),
    ),
)  # fmt: skip

_WARNINGS = (
    Topic(
        WarningKind.UNREAD_DATA,
        "A tile is written or loaded, and no agent reads it.",
        "Nothing is wrong: the work is for nothing, or the protocol leaves out who reads it.",
        "Leave out the copy, or describe the read.",
        warnings.unread_data,
    ),
    Topic(
        WarningKind.TRANSFER_IN_FLIGHT,
        "A CTA can end while its own transfer still reads or writes its shared memory. PTX says nothing of that.",
        "A bulk store may read memory that the next CTA on the SM has overwritten.",
        "Wait for the group, or for the mbarrier of the copy, before the end.",
        warnings.transfer_in_flight,
    ),
    Topic(
        WarningKind.COMMIT_AFTER_EXIT,
        "A tcgen05.commit can arrive on a barrier when the CTA of that barrier has exited.",
        "The arrival may change shared memory that the next CTA on the SM uses.",
        "Let an agent wait for the last commits before the CTA ends.",
        warnings.commit_after_exit,
    ),
    Topic(
        WarningKind.CP_ASYNC_AFTER_EXIT,
        "A cp.async.mbarrier.arrive can be counted when the CTA of its barrier has exited.",
        "The arrival may change shared memory that the next CTA on the SM uses.",
        "Let an agent wait for the phase, or wait for the group of the copies, before the CTA ends.",
        warnings.cp_async_after_exit,
    ),
    Topic(
        WarningKind.UNSCOPED_ARRIVE,
        "An arrive on a barrier of another CTA is written without a scope, which PTX treats as CTA scope.",
        "Nothing is known to go wrong: CUTLASS and Modular's kernels do the same.",
        "Write .release.cluster where you do not want to rely on that.",
        warnings.unscoped_arrive,
    ),
    Topic(
        WarningKind.REGISTER_REQUESTS,
        "The four warps of a warp group must execute the same setmaxnreg; PTX leaves anything else undefined.",
        "What the hardware does was not measured.",
        "Let all four warps of the group request the same number, or none of them.",
        warnings.register_requests,
    ),
    Topic(
        WarningKind.CP_ASYNC_COUNT,
        "cp.async.mbarrier.arrive without .noinc is used on a barrier that also counts bytes. PTX adds the arrivals to "
        "the pending count; H100 and H200 add them to the bytes (measured).",
        "A phase can complete earlier or later than PTX says.",
        "Use .noinc and count these arrivals in the init, or give the bytes a barrier of their own.",
        warnings.cp_async_count,
    ),
)  # fmt: skip

TOPICS: dict[str, Topic] = {topic.name: topic for topic in (*_BARRIERS, *_COUNTS, *_MEMORY, *_WARNINGS)}
