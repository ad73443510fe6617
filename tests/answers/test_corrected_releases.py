"""What warps of kernels give back too early: before the last of several reads, or one of them before the others."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipesim.answers.checking.counterexample import corrections_of
from pipesim.model.finding import Verdict
from pipesim.prove.check import check
from pipesim.targets import Target, find
from tests.support.small_ptx import text_of

TILES = 5
#: Warp 0 copies tiles of 512 bytes into two stages; the others read each in two slices.
BODY = """.loc 1 1 1
 ld.param.u64 %rd1, [x]; mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; and.b32 %r2, %r0, 31; mov.u32 %r3, bars;
 mov.u32 %r4, tile; mov.u32 %r10, 0; shl.b32 %r5, %r2, 3; setp.ne.u32 %p0, %r0, 0;
 setp.ne.u32 %p5, %r0, 32;
 @%p0 bra made;
 mbarrier.init.shared::cta.b64 [%r3], 1; mbarrier.init.shared::cta.b64 [%r3+8], 1;
 mbarrier.init.shared::cta.b64 [%r3+16], EMPTY; mbarrier.init.shared::cta.b64 [%r3+24], EMPTY;
 fence.mbarrier_init.release.cluster;
made:
 bar.sync 0;
 setp.ne.u32 %p1, %r1, 0;
 @%p1 bra consume;
 setp.ne.u32 %p2, %r2, 0;
 @%p2 bra end;
produce:
.loc 1 20 5
STAGE not.b32 %r14, %r14; and.b32 %r14, %r14, 1;
w1:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r13+16], %r14;
 @!%p3 bra w1;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 512;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r16], [%rd1], 512, [%r13];
 add.u64 %rd1, %rd1, 512; add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, TILES;
 @%p4 bra produce;
 bra end;
consume:
.loc 1 30 5
STAGE and.b32 %r14, %r14, 1; add.u32 %r17, %r16, %r5;
w2:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r13], %r14;
 @!%p3 bra w2;
READS
.loc 1 50 5
 add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, TILES;
 @%p4 bra consume;
end:
"""
STAGE = """ and.b32 %r11, %r10, 1; shl.b32 %r12, %r11, 3; add.u32 %r13, %r3, %r12; shr.u32 %r14, %r10, 1;
 shl.b32 %r15, %r11, 9; add.u32 %r16, %r4, %r15;
"""
ARRIVE = ".loc 1 40 5\n GUARD mbarrier.arrive.shared::cta.b64 _, [%r13+16];\n"


def kernel(folder: Path, reads: str, count: int) -> Target:
    body = BODY.replace("STAGE", STAGE).replace("READS", reads)
    body = body.replace("EMPTY", str(count)).replace("TILES", str(TILES))
    text = text_of(body, ".param .u64 x").replace(".visible", '.file 1 "k.cu"\n.visible', 1)
    (folder / "k.ptx").write_text(text)
    (folder / "k.json").write_text(
        '{"format": "pipesim-launch", "version": 1, "entry": "kernel", "grid": [1], "block": [96],'
        ' "parameters": [{"kind": "pointer", "name": "x"}]}'
    )
    return find(str(folder / "k.ptx"))


def read(n: int) -> str:
    """A slice, at the same line of the source as the others, whose loop was unrolled."""
    return f".loc 1 38 5\n ld.shared.v2.u32 {{%r20, %r21}}, [%r17+{256 * n}];\n bar.warp.sync -1;\n"


ALL = ARRIVE.replace("GUARD ", "")
ONE = ARRIVE.replace("GUARD", "@!%p5")
MEET = " bar.sync 1, 64;\n"
#: The reads with what comes after them, right and wrong, and the count; then what is offered, and at which line.
RELEASES = {
    "the first slice": (
        read(0) + MEET + read(1) + ALL,
        read(0) + ALL + MEET + read(1),
        64,
        "compute executes the arrive on k.cu:1[2-3] only after its last use of tile from k.cu:20",
        40,
    ),
    "one for all": (
        read(0) + read(1) + MEET + ONE,
        read(0) + read(1) + ONE,
        1,
        (
            "each of compute and compute_2 executes bar_sync at named barrier 1 (64 threads) after the read of "
            "tile from k.cu:20 (k.cu:38)"
        ),
        38,
    ),
}


@pytest.mark.parametrize("name", RELEASES)
def test_what_is_given_back_too_early_is_given_back_later(name: str, tmp_path: Path) -> None:
    right, wrong, count, said, line = RELEASES[name]
    assert check(kernel(tmp_path, right, count).build()).verdict is Verdict.PROVED
    target = kernel(tmp_path, wrong, count)
    program = target.build()
    refuted = check(program).refutations[0]
    found = corrections_of(program, refuted, program, lambda done, of: None, target.editable)
    assert [(each.said, each.line) for each in found] == [(said, f"k.cu:{line}")]
