"""Kinds of findings about instructions of a kernel that PTX permits only under a condition, whatever the schedule."""

from pipesim.findings.kind import Certainty, Evidence, ExampleEdit, FindingKind, ProtocolExample, PtxExample
from pipesim.findings.words import correction_of_forbidden, what_is_forbidden, who_at
from pipesim.model.dependent_launch import LaunchAct
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.groups import TAKES_REGISTERS
from pipesim.model.program import Program
from pipesim.model.rules.warp_shape import register_bound

TENSOR_ALLOCATION = FindingKind(
    FaultKind.TENSOR_ALLOCATION,
    what=(
        "tcgen05.alloc asks for another number than 32, 64, 128, 256 or 512 columns, for more than the CTA has left, "
        "or after relinquish_alloc_permit; tcgen05.dealloc releases something else than was allocated; columns are "
        "used that are not allocated, or still allocated when the kernel ends; CTAs of a pair do not allocate equally "
        "often; or instructions of a kernel differ in .cta_group."
    ),
    ptx="tcgen05.alloc, dealloc, relinquish_alloc_permit",
    shows=(
        "An allocation that does not fit waits, indefinitely if no warp releases columns; what is not released is "
        "missing for the next CTA on the SM, which then hangs. Columns of another CTA may be overwritten."
    ),
    corrected=(
        "Let one warp allocate what the kernel needs, in a power of two of columns, and release the same address and "
        "columns when the last access is complete."
    ),
    certainty=Certainty.MEMORY_MODEL,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=what_is_forbidden,
    example=PtxExample(
        " setp.ne.u32 %p4, %r1, 0;\n @%p4 bra rest;\n"
        " tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 64;\n"
        " ld.shared.u32 %r9, [tile];\n"
        " tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 64;\nrest:\n",
        ExampleEdit("fewer columns are released", "%r9, 64", "%r9, 32"),
    ),
)


READ_BEFORE_WAIT = FindingKind(
    FaultKind.READ_BEFORE_WAIT,
    what=(
        "An instruction reads registers that a wgmma.mma_async writes, and in no schedule has a wgmma.wait_group "
        "completed its group. It is reported of kernels that are read from PTX, where every way leads from the wgmma "
        "to such a read."
    ),
    ptx="wgmma.wait_group",
    shows="Wrong results: the tensor cores have not written the registers, or only some of them.",
    corrected="Execute wgmma.wait_group before the registers are read.",
    certainty=Certainty.SCHEDULE,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=what_is_forbidden,
    example=PtxExample(
        " wgmma.fence.sync.aligned;\n"
        " wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%r10, %r11, %r12, %r13}, %rd1, %rd1, 0, 1, 1, 0, 0;\n"
        " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n add.f32 %r20, %r10, %r11;\n",
        ExampleEdit("it is not waited for", " wgmma.wait_group.sync.aligned 0;\n", ""),
        warps=4,
    ),
)


ILLEGAL_OPERAND = FindingKind(
    FaultKind.ILLEGAL_OPERAND,
    what=(
        "An mbarrier is not at a multiple of 8 bytes; a bulk copy has an address, or bytes, not a multiple of 16, a "
        "tensor copy a place in shared memory not at a multiple of 128; an address or a multicast mask names a CTA "
        "that the cluster does not have; a CTA has no named barrier of that number, or one is used with no threads; "
        "a warp accesses lanes of tensor memory that it cannot reach."
    ),
    ptx="mbarrier, cp.async.bulk, cp.async.bulk.tensor, mapa, bar, tcgen05.ld",
    shows="Most end the launch with an error, such as a misaligned address; PTX leaves the others undefined.",
    corrected="Correct what computes the operand: the sentence of the finding says what PTX asks for.",
    certainty=Certainty.SCHEDULE,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=what_is_forbidden,
    correction=correction_of_forbidden,
    example=PtxExample(
        " mov.u32 %r9, 1;\n bar.sync %r9, 64;\n",
        ExampleEdit("there is no such barrier", "%r9, 1;", "%r9, 16;"),
    ),
)


WGMMA_FENCE = FindingKind(
    FaultKind.WGMMA_FENCE,
    what=(
        "No wgmma.fence comes before the first wgmma.mma_async of a warp, or between an access to registers and a "
        "wgmma.mma_async that has them as its accumulator or as fragments of A. Products of the same shape need none "
        "between them for their accumulator."
    ),
    ptx="wgmma.fence",
    shows=(
        "PTX leaves it undefined. ptxas 13.0 adds the fence where it sees the access, with a message (C7519, "
        "warpgroup.arrive is injected), and may execute the products one after the other."
    ),
    corrected="Execute wgmma.fence after the last access to the registers, before the products that use them.",
    certainty=Certainty.LETTER,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=what_is_forbidden,
    correction=correction_of_forbidden,
    example=PtxExample(
        " mov.u32 %r20, 0;\n mov.u64 %rd1, 64;\n wgmma.fence.sync.aligned;\n"
        " wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r20, %r21, %r22, %r23}, %rd1, %rd1, 1, 1, 1, 0, 0;\n"
        " wgmma.commit_group.sync.aligned;\n wgmma.wait_group.sync.aligned 0;\n",
        ExampleEdit("no fence before the first product", " wgmma.fence.sync.aligned;\n", ""),
        warps=4,
    ),
)


TENSOR_MAP_FENCE = FindingKind(
    FaultKind.TENSOR_MAP_FENCE,
    what=(
        "A kernel changes a tensor map in global memory, and a bulk copy uses it though the change was not released by "
        "fence.proxy.tensormap::generic.release or tensormap.cp_fenceproxy, or no thread of the CTA has acquired it "
        "since. Barriers alone do not order the proxy of tensor maps."
    ),
    ptx="membar, fence; tensormap.cp_fenceproxy",
    shows="The copy may use the map as it was: it moves a tile of the tensor before, or none at all.",
    corrected=(
        "Copy the changed map to global memory by tensormap.cp_fenceproxy, and execute "
        "fence.proxy.tensormap::generic.acquire of its 128 bytes in the thread that copies, before its first copy."
    ),
    certainty=Certainty.MEMORY_MODEL,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=what_is_forbidden,
    correction=correction_of_forbidden,
    example=PtxExample(
        " ld.param.u64 %rd1, [out];\n mov.u32 %r4, %ctaid.x;\n mul.wide.u32 %rd2, %r4, 128;\n"
        " add.u64 %rd3, %rd1, %rd2;\n"
        " @!%p0 tensormap.replace.tile.elemtype.global.b1024.b32 [%rd3], 7;\n"
        " @!%p0 tensormap.replace.tile.rank.global.b1024.b32 [%rd3], 0;\n"
        " @!%p0 tensormap.replace.tile.box_dim.global.b1024.b32 [%rd3], 0, 16;\n"
        " @!%p0 fence.proxy.tensormap::generic.release.gpu;\n"
        " @!%p0 fence.proxy.tensormap::generic.acquire.gpu [%rd3], 128;\n"
        " @!%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+8], 64;\n"
        " @!%p0 cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile+1024], "
        "[%rd3, {%r0}], [%r3+8];\n"
        "again:\n mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3+8], 0;\n @!%p2 bra again;\n",
        ExampleEdit(
            "no acquire before the copy", " @!%p0 fence.proxy.tensormap::generic.acquire.gpu [%rd3], 128;\n", ""
        ),
        ctas=2,
    ),
)


#: Why an access is taken to meet an earlier kernel, by the number in the fault; 0 and 1: the launch says it.
WHY = (
    "which an earlier kernel may write",
    "which an earlier kernel may read",
    "and no load of this CTA comes after a wait",
    "which other warps load after a wait",
    "to which this kernel also stores",
    "which an earlier kernel may still use",
)


def _access(program: Program, fault: Fault) -> str:
    each = program.coverage.dependent[fault.found]
    done = "is loaded" if each.kind is LaunchAct.LOAD else "is stored to"
    why = WHY[fault.expected]
    return (
        f": {each.buffer or 'memory'}, {why}, {done}"
        if why[:5] == "which"
        else f": {each.buffer or 'memory'} {done}, {why}"
    )


def _wait(_: Program, fault: Fault) -> str:
    said = "execute griddepcontrol.wait before it, in the same thread or in one that it waits for"
    other = ', or give the buffer "earlier": "none" in the launch file if no earlier kernel uses it'
    return said + (other if fault.expected > 1 else "")


BEFORE_GRID_WAIT = FindingKind(
    FaultKind.BEFORE_GRID_WAIT,
    what=(
        "A kernel that is launched while the kernel before still runs accesses global memory which that may write or "
        "read, and no griddepcontrol.wait of any thread comes before the access in every schedule. The launch file "
        'says which buffers are meant ("earlier"). Without it a store is reported, and a load if the same CTA shows '
        "that it is not meant: no load at all follows a wait, other warps load the buffer after it, or the kernel "
        "stores to the buffer; any other load is an assumption."
    ),
    ptx="griddepcontrol",
    shows="Old data, or data of the kernel before overwritten while it is used; often only on a busy GPU.",
    corrected="Execute the wait before the access, or in a thread for which the accessing one waits.",
    certainty=Certainty.SCHEDULE,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=_access,
    correction=_wait,
    example=PtxExample(
        " mov.u64 %rd1, 268435456;\n griddepcontrol.wait;\n st.global.u32 [%rd1], %r0;\n",
        ExampleEdit(
            "the store comes before the wait",
            " griddepcontrol.wait;\n st.global.u32 [%rd1], %r0;\n",
            " st.global.u32 [%rd1], %r0;\n griddepcontrol.wait;\n",
        ),
    ),
)


GLOBAL_RACE = FindingKind(
    FaultKind.GLOBAL_RACE,
    what=(
        "Two CTAs of one launch write the same bytes of global memory, or one writes what the other one reads, and "
        "neither learns how far the other one is: nothing orders the two accesses. Atomics may meet atomics; a "
        "strong load and store that are an update may not, since it may be lost. The addresses are those of the "
        "launch file, for all CTAs of the grid."
    ),
    ptx="Memory Consistency Model, Conflict and Data-races",
    shows=(
        "The result depends on which CTA runs first: wrong values in some launches, at the rows or columns where tiles "
        "meet, often only where a size is not a multiple of the tile."
    ),
    corrected=(
        "Let each CTA write bytes of its own: check the stride and the offset by the number of the CTA, and the guard "
        "of the last tile. Where several add to one place, use atomics, or a buffer for each and a second kernel."
    ),
    certainty=Certainty.MEMORY_MODEL,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=what_is_forbidden,
    example=PtxExample(
        " ld.param.u64 %rd1, [out];\n mov.u32 %r4, %ctaid.x;\n mul.wide.u32 %rd2, %r4, 256;\n"
        " add.u64 %rd3, %rd1, %rd2;\n mul.wide.u32 %rd4, %r0, 4;\n add.u64 %rd5, %rd3, %rd4;\n"
        " st.global.u32 [%rd5], %r0;\n",
        ExampleEdit("the rows of two CTAs overlap", "%r4, 256", "%r4, 128"),
        ctas=4,
    ),
)


def _how_many(program: Program, fault: Fault) -> str:
    what = "its warps ask for" if program.code[fault.agent][fault.pc][0] in TAKES_REGISTERS else "it is launched with"
    return f": {what} {fault.found:,}, an SM has {fault.expected:,}"


def _fewer(program: Program, fault: Fault) -> str:
    if program.code[fault.agent][fault.pc][0] in TAKES_REGISTERS:
        return f"let some of its warps ask for fewer than {who_at(program, fault.agent, fault.pc)}"
    warps = {agent.warp for agent in program.agents if agent.cta == program.agents[fault.agent].cta}
    return f"launch it with at most {register_bound(len(warps))} registers a thread"


TOO_MANY_REGISTERS = FindingKind(
    FaultKind.TOO_MANY_REGISTERS,
    what=(
        "A CTA has at most 65,536 registers. The launch gives each of its threads the same number, in multiples of 8, "
        "and setmaxnreg distributes them again."
    ),
    ptx="setmaxnreg",
    shows="A launch with more fails (cudaErrorLaunchOutOfResources); a request for more waits indefinitely.",
    corrected="Ask for fewer registers in some warps, or use fewer warps.",
    certainty=Certainty.SCHEDULE,
    evidence=Evidence.CODE,
    causes_itself=True,
    detail=_how_many,
    correction=_fewer,
    example=ProtocolExample("""Three warp groups ask for 240 registers a thread each.

    @p.role("math", warps=12)
    def math(w: Warp) -> None:
        w.setmaxnreg(160 if right else 240)
"""),
)
