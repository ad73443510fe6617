"""What each assumption of a verdict means, who relies on it, and what was measured (``pipesim explain NAME``)."""

from dataclasses import dataclass
from types import MappingProxyType

from pipesim.model.coverage import RULES, Assumption


@dataclass(frozen=True)
class AssumptionText:
    """``clause`` follows "assuming that" in a verdict; ``relies``: who relies on it; ``strict``: with the switch."""

    clause: str
    what: str
    relies: str
    measured: str
    strict: str = ""


_FINDING = "what needs it is a finding"
_UNKNOWN = "a proof that needs it is unknown"
_NOT_MEASURED = "Nothing: it is about the program, not about the hardware."

ASSUMPTIONS = MappingProxyType(
    {
        Assumption.PROXIES: AssumptionText(
            "reads complete before the arrive that follows them",
            "A thread or an engine has read bytes that an access through the other proxy overwrites, and no "
            "fence.proxy.async comes in between. PTX asks for one whichever access is the write. Of a thread's read "
            "that a copy overwrites it is assumed before sm_100 only; later it is a finding (read_not_fenced).",
            "The rings of CUTLASS, Modular, Triton and TileLang on sm_90: none has a fence between a read and "
            "the next copy.",
            "An H200 tore no word in 1.3 × 10⁷ laps (docs/memory-order.md); the controls tore 37 to 100 % of them.",
        ),
        Assumption.INIT: AssumptionText(
            "an init is visible to copies and commits of its own CTA without a fence",
            "An mbarrier is initialised and used by a copy or a commit of its CTA. PTX asks for fence.mbarrier_init or "
            "fence.proxy.async in between; a barrier of the CTA or program order is not one.",
            "Compilers and libraries that order the init by a barrier of the CTA or by program order alone.",
            "No launch on H100 or H200 showed an init that came too late.",
        ),
        Assumption.TENSOR_MEMORY: AssumptionText(
            "tensor memory that is read where nothing was written holds what the kernel expects",
            "Tensor memory is read where no operation of the program has written before.",
            "Kernels that zero an accumulator by a flag of the first MMA, which a description may leave out.",
            _NOT_MEASURED,
        ),
        Assumption.TENSOR_FENCES: AssumptionText(
            "threads that synchronise order their accesses to tensor memory without tcgen05.fence",
            "Two threads access the same columns one after the other, ordered by mbarriers or barriers of threads. PTX "
            "asks for tcgen05.fence::before_thread_sync in the first (tcgen05.commit implies it) and "
            "tcgen05.fence::after_thread_sync in the second.",
            "CUTLASS, CuTe DSL, Triton and Modular on sm_100: of their GEMMs and attention kernels hardly any has such "
            "fences; each has tcgen05.wait and a release and an acquire.",
            "Nothing: no Blackwell GPU was measured.",
        ),
        Assumption.LANES: AssumptionText(
            "lanes of a warp that parted are together again",
            "Lanes of a warp take different ways (an elected lane, a branch), and an operation of all lanes "
            "follows; a lane signals what all have accessed or waited for, or accesses bytes of shared memory "
            "that others of its warp have accessed or waited for, without __syncwarp() or an mbarrier in between; "
            "activemask decides. PTX promises that lanes are together only at .aligned instructions, bar.warp.sync "
            "and other operations of all lanes, and an order of what they access only after barriers of both.",
            "Nearly every kernel with elect.sync or `if (threadIdx.x == 0)`.",
            "Compilers for sm_90 and sm_100 place reconvergence points there; PTX does not promise them.",
        ),
        Assumption.COMMITS: AssumptionText(
            "commits of one thread complete in the order in which they were issued",
            "One thread commits asynchronous operations to two mbarriers. PTX orders each commit after the operations "
            "before it, not after the commit before it.",
            "Triton, FlashAttention 4, CUTLASS's and DeepGEMM's kernels with two CTAs.",
            "It was never seen otherwise; no experiment of ours can force it (docs/experiments.md).",
        ),
        Assumption.EXIT: AssumptionText(
            "work under way when its CTA ends still finds the CTA's shared memory",
            "A copy, an MMA or a commit of a CTA still uses its shared memory or arrives on its mbarrier when the CTA "
            "ends. What reaches into another CTA that has ended is a finding in any case (exited_cta).",
            "Compilers and libraries that end a kernel with a bulk store and without wait_group, or with commits for "
            "which no agent waits.",
            "Nothing: PTX does not say it.",
        ),
        Assumption.PATTERN: AssumptionText(
            "the roles keep repeating the pattern seen in the checked sizes",
            "Sizes are checked one by one until the program repeats from lap to lap, and again at some far "
            "sizes; between "
            "and beyond these the repetition is assumed.",
            "Every claim for any number of iterations.",
            _NOT_MEASURED,
            "only the sizes that were checked are claimed",
        ),
        Assumption.REGISTERS: AssumptionText(
            "the launch has the stated number of registers a thread, which setmaxnreg distributes",
            "The registers of a thread at the launch are not known; a setmaxnreg may wait for those that other "
            "warps release.",
            "Kernels with setmaxnreg whose launch file or protocol does not say the registers.",
            _NOT_MEASURED,
        ),
        Assumption.TIME_OUTS: AssumptionText(
            "waits with a time limit do not time out",
            "The kernel leaves a wait when some time has passed; the way that it takes then is not followed.",
            "Kernels with a watchdog in their waits.",
            _NOT_MEASURED,
        ),
        Assumption.LOOPS: AssumptionText(
            "loops without synchronisation end",
            "A loop on which no synchronisation depends is not followed, and it does not count by a constant step to a "
            "bound. PTX promises nothing of its end.",
            "Newton iterations, searches, loops over a list.",
            _NOT_MEASURED,
        ),
        Assumption.GLOBAL_LOOPS: AssumptionText(
            "loops end that wait for global memory",
            "A loop reads global memory until another CTA or kernel writes it. The program does not have that writer.",
            "Kernels with flags or locks in global memory: split K, stream K, distributed ones.",
            _NOT_MEASURED,
        ),
        Assumption.GLOBAL_WORDS: AssumptionText(
            "words of global memory are read before another warp changes them",
            "One warp reads a word of global memory that another one changes; which value it reads depends on "
            "the schedule. Of a table in constant memory it reads the initial values of the PTX, which a host "
            "may change.",
            "Tile counters and flags in global memory, tables in constant memory.",
            _NOT_MEASURED,
        ),
        Assumption.RESIDENCY: AssumptionText(
            "a device holds that many CTAs at the same time",
            "CTAs wait for others with higher numbers, which start only when there is room for them. How many there is "
            "room for follows from threads, shared memory and registers of the launch file, for an H100 SXM or H200 "
            "(from sm_100 a B200); that they are there together is promised for a cooperative launch only.",
            "Grid barriers, and other kernels whose CTAs wait for later ones.",
            _NOT_MEASURED,
        ),
        Assumption.TRAPS: AssumptionText(
            "traps are not reached",
            "A branch leads to a trap, and its condition is not known; the way to the trap is not followed.",
            "Assertions in kernels.",
            _NOT_MEASURED,
        ),
        Assumption.POLICIES: AssumptionText(
            "other CTAs act as the launch file's policies say",
            "What cluster launch control hands out, a counter in global memory returns, or a lock answers "
            "depends on other "
            "CTAs; the launch file has one answer for each.",
            "Persistent kernels with a dynamic scheduler.",
            _NOT_MEASURED,
        ),
        Assumption.EQUAL_STORES: AssumptionText(
            "warps or lanes that store to the same bytes store equal values",
            "Several warps, or lanes in one instruction, write the same bytes: a race unless the values are equal.",
            "Compilers that let every warp of a group store what each has computed.",
            _NOT_MEASURED,
        ),
        Assumption.EXITED_THREADS: AssumptionText(
            "threads that have ended count at a barrier of all threads",
            "A thread ends before a barrier that all threads of its CTA or cluster, or all lanes of its warp, reach. "
            "PTX says so of barrier.cluster and of shfl.sync, not of bar, barrier and bar.warp.sync.",
            "Kernels with an early return; CUDA promises it of __syncthreads, PTX of barrier.cluster.",
            "On H100 and H200 such barriers complete.",
        ),
        Assumption.GENERIC_ADDRESSES: AssumptionText(
            "of a generic address given to .shared the low 32 bits count",
            "An instruction on .shared is given a generic address; PTX asks for one of the shared window.",
            "TileLang's and some hand-written kernels.",
            "Compilers take the low 32 bits, which are the address in the window.",
        ),
        Assumption.TENSOR_LANES: AssumptionText(
            "each warp accesses its own 32 lanes of tensor memory, at addresses of the first 32 or beyond all 128",
            "A warp loads or stores tensor memory at a lane of 0 to 31 and is not the first of its warp group, so that "
            "PTX does not let it access those lanes; or at its own lanes plus a multiple of 128, which do not exist. "
            "At lanes of any other warp it is a finding, illegal_operand.",
            "Modular's kernels for Blackwell, all of which give every warp the address of lane 0; hand-written ones "
            "that add 128 in the second CTA of a pair.",
            "Nothing: no Blackwell GPU was measured.",
            "the access is a finding",
        ),
        Assumption.BUFFERS: AssumptionText(
            "pointers and tensor maps of the launch lead to different memory",
            "The kernel writes the memory of one pointer or tensor map, and accesses that of another one. Whether "
            "both are the same allocation the launch file does not say.",
            "Every kernel that reads its inputs and writes an output.",
            _NOT_MEASURED,
        ),
        Assumption.TENSOR_LOADS: AssumptionText(
            "tcgen05.ld has written its registers where they are read",
            "Registers of tcgen05.ld are read before tcgen05.wait::ld.",
            "Compilers that place the wait after moves of the registers.",
            "Nothing: no Blackwell GPU was measured.",
        ),
        Assumption.EARLIER_KERNELS: AssumptionText(
            "no earlier kernel writes what is loaded before griddepcontrol.wait",
            "A kernel that waits for earlier ones loads global memory before its wait. Which buffers those write is "
            "not in its PTX. \"earlier\" of a launch file's pointer or tensor map says it; then nothing is assumed.",
            "Kernels that load weights and tables before the wait, while the kernel before still runs.",
            "On an H200 a word that the kernel before wrote late was old without the wait, in 200 of 200 launches.",
        ),
    }
)  # fmt: skip


def strict_words(kind: Assumption) -> str:
    """What becomes of a verdict that needs the assumption, with its switch."""
    return ASSUMPTIONS[kind].strict or (_FINDING if kind in RULES else _UNKNOWN)
