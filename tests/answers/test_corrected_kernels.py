"""Small kernels that are wrong by one line, beside the right ones, and the correction that is offered for each."""

from pathlib import Path

import pytest

from pipesim.model.finding import Fault, FaultKind, Verdict
from pipesim.model.ops import Op
from pipesim.prove.check import check
from pipesim.prove.repair.changes.left_over import of_reads_again
from pipesim.prove.repair.kinds import RepairKind
from pipesim.targets import Target, find
from tests.support.kernel_files import first_offered, with_a_pointer, written
from tests.support.small_ptx import text_of

#: Two warps copy 512 bytes a lap into two buffers and read what both have copied; groups are waited for in order.
BUFFERS = """.loc 1 1 1
 ld.param.u64 %rd1, [x]; mov.u32 %r0, %tid.x; mov.u32 %r4, tile; shl.b32 %r6, %r0, 4; add.u32 %r6, %r4, %r6;
 xor.b32 %r7, %r0, 32; shl.b32 %r7, %r7, 4; add.u32 %r7, %r4, %r7; mov.u32 %r8, 0; mov.u32 %r9, 0;
.loc 1 2 1
 cp.async.cg.shared.global [%r6], [%rd1], 16; cp.async.commit_group;
lap:
 add.u32 %r10, %r8, 1; xor.b32 %r11, %r9, 1024; add.u32 %r12, %r6, %r11; add.u32 %r13, %r7, %r9;
 setp.ge.u32 %p1, %r10, 4;
.loc 1 5 1
 BEGIN
 @%p1 bra none;
.loc 1 6 1
 cp.async.cg.shared.global [%r12], [%rd1], 16;
 INSIDE
none:
.loc 1 8 1
 ALWAYS
.loc 1 9 1
 cp.async.wait_group 1;
.loc 1 10 1
 bar.sync 0;
.loc 1 11 1
 OTHER ld.shared.u32 %r14, [%r13];
.loc 1 12 1
 END
 mov.u32 %r8, %r10; mov.u32 %r9, %r11; setp.lt.u32 %p2, %r8, 4;
 @%p2 bra lap;
"""
#: One thread asks for what all read after the copy; the barrier has one phase a lap.
HANDED = """.loc 1 1 1
 ld.param.u64 %rd1, [x]; mov.u32 %r0, %tid.x; mov.u32 %r3, bars; mov.u32 %r4, tile; setp.ne.u32 %p0, %r0, 0;
 @%p0 bra made;
 mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster;
made:
 bar.sync 0;
 mov.u32 %r8, 0;
lap:
 and.b32 %r9, %r8, 1; shr.u32 %r10, %r8, 1; and.b32 %r10, %r10, 1;
 @%p0 bra wait;
.loc 1 5 1
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;
.loc 1 6 1
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r4], [%rd1], 16, [%r3];
wait:
.loc 1 8 1
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3], PARITY;
 @!%p3 bra wait;
.loc 1 9 1
 ld.shared.u32 %r13, [%r4];
.loc 1 10 1
 bar.sync 0;
.loc 1 11 1
 AGAIN
 add.u32 %r8, %r8, 1; setp.lt.u32 %p2, %r8, 4;
 @%p2 bra lap;
"""
#: Four CTAs send each other a number, each to a place of its own.
SENT = """.loc 1 1 1
 mov.u32 %r0, %tid.x; mov.u32 %r3, bars; mov.u32 %r4, tile; mov.u32 %r7, %cluster_ctarank; setp.ne.u32 %p0, %r0, 0;
 @%p0 bra made;
 mbarrier.init.shared::cta.b64 [%r3], 1; fence.mbarrier_init.release.cluster;
.loc 1 4 1
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;
made:
 barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned; setp.gt.u32 %p1, %r0, 3;
.loc 1 1 1
 shl.b32 %r8, INDEX, 2; add.u32 %r9, %r4, %r8;
 @%p1 bra wait;
.loc 1 6 1
 mapa.shared::cluster.u32 %r10, %r9, %r0; mapa.shared::cluster.u32 %r11, %r3, %r0;
 st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%r10], %r7, [%r11];
wait:
.loc 1 8 1
 mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p3, [%r3], 0;
 @!%p3 bra wait;
.loc 1 9 1
 ld.shared.v4.u32 {%r12, %r13, %r14, %r15}, [%r4];
 barrier.cluster.arrive.release.aligned; barrier.cluster.wait.acquire.aligned;
"""
#: What one thread writes all read: one barrier orders it, the other one, which is relaxed, does not.
RELAXED = """.loc 1 1 1
 mov.u32 %r0, %tid.x; mov.u32 %r3, bars; mov.u32 %r4, tile; setp.ne.u32 %p0, %r0, 0;
 @%p0 bra made;
 mbarrier.init.shared::cta.b64 [%r3], 1; mbarrier.init.shared::cta.b64 [%r3+8], 1;
 fence.mbarrier_init.release.cluster;
made:
 bar.sync 0;
 @%p0 bra wait;
.loc 1 5 1
 st.shared.u32 [%r4], %r0;
.loc 1 6 1
 mbarrier.arrive.shared::cta.b64 _, [%r3+8]; mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%r3];
wait:
.loc 1 8 1
 mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 %p3, [%r3], 0;
 @!%p3 bra wait;
.loc 1 9 1
 ORDERED
.loc 1 10 1
 ld.shared.u32 %r13, [%r4];
"""
WAIT = "also: mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3+8], 0;\n @!%p3 bra also;"
COMMIT, SYNC = "cp.async.commit_group;", "bar.sync 0;"
RIGHT = {"BEGIN": "", "INSIDE": "", "ALWAYS": COMMIT, "END": SYNC, "OTHER": ""}
EMPTY = "compute executes cp.async.commit_group in every iteration, also where it has nothing to copy"
#: The kernel, its warps and CTAs; what is right in it, and what is wrong; what is offered, and at which line.
MISTAKES = {
    "no group in the last lap": (BUFFERS, 2, 1, RIGHT, {"INSIDE": COMMIT, "ALWAYS": ""}, EMPTY, 6),
    "no group in any lap": (BUFFERS, 2, 1, RIGHT, {"ALWAYS": ""}, EMPTY, 6),
    "the other one of two": (
        BUFFERS, 2, 1, RIGHT, {"OTHER": "xor.b32 %r13, %r13, 1024;\n"},
        ("compute reads the bytes from 640 on instead of from 1,024: `xor.b32 %r13, %r13, 0` instead of "
         "`xor.b32 %r13, %r13, 1024` (small.ptx, line 34)"), 11),
    "copied before others have read": (
        BUFFERS, 2, 1, {**RIGHT, "BEGIN": SYNC, "END": ""}, {"BEGIN": ""},
        "compute executes __syncthreads() before the transfer (small.cu:6)", 6),
    "the parity of another ring": (
        HANDED, 2, 1, {"PARITY": "%r9", "AGAIN": ""}, {"PARITY": "%r10"},
        "each of load and compute waits for bars with parity 0 in the first lap, alternating in each later lap",
        8),
    "one parity": (
        HANDED, 2, 1, {"PARITY": "%r9", "AGAIN": ""}, {"PARITY": "0"},
        "each of load and compute waits for bars with parity 0 in the first lap, alternating in each later lap",
        8),
    "two relaxed operations": (
        RELAXED, 2, 1, {"ORDERED": WAIT}, {"ORDERED": ""},
        "waiting waits for bars also before the read (small.cu:10)", 10),
    "read again where it is not safe": (
        HANDED, 2, 1, {"PARITY": "%r9", "AGAIN": ""}, {"AGAIN": "ld.shared.u32 %r14, [%r4];"},
        "each of load and compute executes __syncthreads() after the read of tile (small.cu:11)", 11),
    "its own place in each": (
        SENT, 1, 4, {"INDEX": "%r7"}, {"INDEX": "%r0"},
        ("load copies to the bytes from 128 on instead of from 132; load copies to the bytes from 132 on instead of "
         "from 128: `shl.b32 %r8, %r7, 2; add.u32 %r9, %r4, %r8` instead of `shl.b32 %r8, %r0, 2; add.u32 %r9, %r4, "
         "%r8` "
         "(%r0 is %tid.x, %r7 is %cluster_ctarank) (small.ptx, line 21)"), 6),
}  # fmt: skip


def kernel(folder: Path, text: str, warps: int, ctas: int) -> Target:
    (folder / "small.cu").write_text("\n" * 20)
    whole = text_of(text, ".param .u64 x").replace(".visible", f'.file 1 "{folder}/small.cu"\n.visible', 1)
    return find(written(folder / "small.ptx", whole, with_a_pointer(warps, ctas)))


def filled(text: str, parts: dict[str, str]) -> str:
    for name, part in parts.items():
        text = text.replace(name, part)
    return text


@pytest.mark.parametrize("mistake", MISTAKES)
def test_what_is_meant_is_offered_first(mistake: str, tmp_path: Path) -> None:
    text, warps, ctas, right, wrong, said, line = MISTAKES[mistake]
    assert check(kernel(tmp_path, filled(text, right), warps, ctas).build()).verdict is Verdict.PROVED
    first, *_ = first_offered(kernel(tmp_path, filled(text, {**right, **wrong}), warps, ctas))
    assert (first.said, first.line) == (said, f"small.cu:{line}")


@pytest.mark.parametrize(("again", "offered"), [("ld.shared.u32 %r14, [%r4];", 1), ("st.shared.u32 [%r4], %r0;", 0)])
def test_what_was_read_before_is_used_where_it_is_read_again(again: str, offered: int, tmp_path: Path) -> None:
    """Not where it may be another number by then."""
    twice = f"{again} ld.shared.u32 %r14, [%r4];"
    program = kernel(tmp_path, filled(HANDED, {"PARITY": "%r9", "AGAIN": twice}), 1, 1).build()
    agent = len(program.code) - 1
    reads = [pc for pc, op in enumerate(program.code[agent]) if op[0] == Op.READ]
    fault = Fault(FaultKind.RACE, agent, reads[-1])
    found = [repair for _, repair in of_reads_again(program, fault)]
    assert [(each.kind, each.past.line) for each in found[:1]] == [(RepairKind.OMIT, "small.cu:9")] * offered
