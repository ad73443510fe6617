"""Statements of the source that a compiler repeats, where it does not say the call again: which lines are of one."""

from pathlib import Path

from pipesim.model.finding import Verdict
from pipesim.prove.check import check
from pipesim.targets import Target, find
from tests.support.kernel_files import first_offered, with_a_pointer, written
from tests.support.small_ptx import text_of

BLOCKS = 4  #: of a loop that is unrolled
F = "function_name $L__info_string0"
#: Warp 0 fills two tiles, each in a ring of one stage; warp 1 reads them and gives both back by one function, inlined.
BEGIN = """.loc 1 1 1
 ld.param.u64 %rd1, [x]; mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; and.b32 %r2, %r0, 31; mov.u32 %r3, bars;
 mov.u32 %r4, tile; shl.b32 %r5, %r2, 2; add.u32 %r6, %r4, %r5; setp.ne.u32 %p0, %r0, 0; setp.ne.u32 %p1, %r2, 0;
 @%p0 bra made;
.loc 1 11 1
 mbarrier.init.shared::cta.b64 [%r3], 1;
.loc 1 12 1
 mbarrier.init.shared::cta.b64 [%r3+8], 1;
.loc 1 13 1
 mbarrier.init.shared::cta.b64 [%r3+16], 1;
.loc 1 14 1
 mbarrier.init.shared::cta.b64 [%r3+24], 1; fence.mbarrier_init.release.cluster;
made:
 bar.sync 0; setp.ne.u32 %p2, %r1, 0;
 @%p2 bra use;
 @%p1 bra end;
"""


def wait(label: str, barrier: int, parity: int) -> str:
    return f"{label}:\n mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3+{barrier}], {parity};\n @!%p3 bra {label};\n"


def load(block: int, ring: int) -> str:
    """One copy: the barriers of ring 0 are 0 (full) and 16 (empty), those of ring 1 follow them."""
    return (
        f".loc 1 {20 + 3 * ring} 5\n{wait(f'w{block}{ring}', 16 + 8 * ring, block & 1 ^ 1)}"
        f" mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+{8 * ring}], 128; add.u32 %r7, %r4, {512 * ring};\n"
        f" cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r7], [%rd1], 128, [%r3+{8 * ring}];\n"
    )


def give(block: int, ring: int, on: int) -> str:
    """``release``, called at line 43 or 53; its ``arrive`` is a call of another one. Only the first says of whose."""
    line = 43 + 10 * ring
    called = f".loc 1 61 5, {F}, inlined_at 1 {line} 5\n" if not block else ""
    return (
        f".loc 1 {line} 5\n.loc 1 61 5, {F}, inlined_at 1 {line} 5\n bar.warp.sync -1;\n.loc 1 {line - 2} 5\n"
        f" add.u32 %r9, %r9, 1;\n{called}.loc 1 70 5, {F}, inlined_at 1 61 5\n"
        f" @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r3+{16 + 8 * on}];\n"
    )


def use(block: int, ring: int, on: int) -> str:
    waits = f".loc 1 {41 + 10 * ring} 5\n{wait(f'u{block}{ring}', 8 * ring, block & 1)}"
    return f"{waits}.loc 1 {42 + 10 * ring} 5\n ld.shared.u32 %r8, [%r6+{512 * ring}];\n{give(block, ring, on)}"


def kernel(folder: Path, second: int) -> Target:
    """``second``: the ring that is given back where the second one is meant."""
    loads = "".join(load(block, ring) for block in range(BLOCKS) for ring in (0, 1))
    uses = "".join(use(block, ring, second * ring) for block in range(BLOCKS) for ring in (0, 1))
    body = f"{BEGIN}{loads} bra end;\nuse:\n mov.u32 %r9, 0;\n{uses}end:\n"
    text = text_of(body, ".param .u64 x").replace(".visible", '.file 1 "calls.cu"\n.visible', 1)
    text += ".section .debug_str\n{\n$L__info_string0: .b8 114, 0\n}\n"
    return find(written(folder / "calls.ptx", text, with_a_pointer(2)))


def test_one_call_in_an_unrolled_loop_is_corrected_in_all_iterations(tmp_path: Path) -> None:
    assert check(kernel(tmp_path, 1).build()).verdict is Verdict.PROVED
    said = [(each.said, each.line) for each in first_offered(kernel(tmp_path, 0))]
    assert said == [("compute arrives on calls.cu:14, not on calls.cu:13", "calls.cu:53")]
