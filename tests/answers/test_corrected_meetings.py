"""Meetings of all warps that are missing where groups of them meet apart, and masks of multicasts: small kernels."""

from pathlib import Path

import pytest

from pipesim.model.finding import Verdict
from pipesim.prove.check import check
from pipesim.targets import Target, find
from tests.support.kernel_files import first_offered, with_a_pointer, written
from tests.support.small_ptx import text_of

#: Four warps write a number each and read those of all; two and two of them meet at a barrier of their own.
SUMS = """.loc 1 1 1
 mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; and.b32 %r2, %r0, 31; shr.u32 %r5, %r1, 1; add.u32 %r5, %r5, 1;
 mov.u32 %r4, tile; shl.b32 %r6, %r1, 2; add.u32 %r6, %r4, %r6; setp.ne.u32 %p0, %r2, 0; setp.eq.u32 %p1, %r1, 4;
 @%p1 bra end;
.loc 1 5 1
 @!%p0 st.shared.u32 [%r6], %r1;
.loc 1 6 1
 MEETING;
.loc 1 7 1
 ld.shared.v4.u32 {%r11, %r12, %r13, %r14}, [%r4];
end:
"""
#: Two CTAs load a half of a tile each for both, %r7 is their rank; a warp group multiplies one half by the other.
HALVES = """.loc 1 1 1
 ld.param.u64 %rd1, [x]; mov.u32 %r0, %tid.x; mov.u32 %r3, bars; mov.u32 %r4, tile; mov.u32 %r7, %cluster_ctarank;
 shl.b32 %r8, %r7, 9; add.u32 %r8, %r4, %r8; and.b32 %r9, %r4, 262143; shr.u32 %r9, %r9, 4; cvt.u64.u32 %rd2, %r9;
 add.u64 %rd3, %rd2, 32; setp.ne.u32 %p0, %r0, 0; mov.u16 %rs2, 1; shl.b16 %rs1, %rs2, %r7; mov.u16 %rs3, 3;
 @%p0 bra made;
 mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster;
made:
 barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
 @%p0 bra use;
.loc 1 5 1
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 1024;
.loc 1 6 1
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%r8], [%rd1], 512, [%r3], MASK;
use:
.loc 1 7 1
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], 0;
 @!%p3 bra use;
.loc 1 8 1
 wgmma.fence.sync.aligned;
 wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%f0,%f1,%f2,%f3}, %rd2, %rd3, 0, 1, 1, 0, 0;
 wgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;
 barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
"""
#: The kernel, what is right and what is wrong in it, its warps and CTAs; what is offered, and at which line.
MISTAKES = {
    "each group meets alone": (SUMS, "MEETING", "bar.sync 4, 128", "bar.sync %r5, 64", 5, 1,
        "compute executes bar_sync at named barrier 3 (128 threads) before the read (sums.cu:7)", 7),
    "to the own CTA alone": (HALVES, "MASK", "%rs3", "%rs1", 4, 2,
        "load_mma multicasts on bars to the CTAs of mask 0b11 instead of one that differs in each CTA", 6),
}  # fmt: skip


def kernel(folder: Path, text: str, warps: int, ctas: int) -> Target:
    text = text_of(text, ".param .u64 x").replace(" .reg .b64", " .reg .b16 %rs<4>; .reg .f32 %f<4>; .reg .b64", 1)
    text = text.replace(".visible", '.file 1 "sums.cu"\n.visible', 1)
    return find(written(folder / "sums.ptx", text, with_a_pointer(warps, ctas)))


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_meeting_or_the_mask_that_is_meant_is_offered(mistake: str, tmp_path: Path) -> None:
    text, what, right, wrong, warps, ctas, said, line = MISTAKES[mistake]
    assert check(kernel(tmp_path, text.replace(what, right), warps, ctas).build()).verdict is Verdict.PROVED
    found = first_offered(kernel(tmp_path, text.replace(what, wrong), warps, ctas))
    assert [(each.said, each.line) for each in found] == [(said, f"sums.cu:{line}")]
