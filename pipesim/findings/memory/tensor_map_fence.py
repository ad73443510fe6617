"""tensor_map_fence: a copy uses a tensor map that the kernel has changed, without the fences of its proxy."""

from pipesim.findings.kind import Certainty, Evidence, ExampleEdit, FindingKind, PtxExample
from pipesim.findings.words import correction_of_forbidden, what_is_forbidden
from pipesim.model.finding import FaultKind

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
