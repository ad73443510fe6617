"""Groups of warps that take turns, unrolled apart, and what warps give back too early or never: one change."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from pipesim.model.finding import Verdict
from pipesim.prove.check import check
from pipesim.targets import Target, find
from tests.support.kernel_files import first_offered, with_a_pointer, written
from tests.support.small_ptx import text_of

STAGES, BLOCKS, TILES = 4, 2, 6
FULL, EMPTY, MATH, STORE, OUT = 0, 32, 64, 80, 3072
HEAD = """.version 8.6
.target sm_90a
.address_size 64
.file 1 "turns.cu"
.visible .entry kernel(.param .u64 x)
{
 .reg .pred %p<9>; .reg .b32 %r<32>; .reg .b64 %rd<9>;
 .shared .align 8 .b64 bars[16]; .shared .align 128 .b8 tile[4096];
.loc 1 3 1
 ld.param.u64 %rd1, [x]; mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; and.b32 %r2, %r0, 31; mov.u32 %r3, bars;
 mov.u32 %r4, tile; mov.u32 %r30, 0; shl.b32 %r5, %r2, 2; add.u32 %r6, %r4, %r5; setp.ne.u32 %p1, %r2, 0;
 setp.ne.u32 %p0, %r0, 0;
 @%p0 bra made;
"""
GIVE = " @!%p1 mbarrier.arrive.shared::cta.b64 _, "
LABEL = "$L__info_string0"
INLINED = f", function_name {LABEL}, inlined_at 1 90 5"


def at(line: int, text: str) -> str:
    return f".loc 1 {line} 5{INLINED}\n{text}\n"


def wait(label: str, barrier: int, parity: int) -> str:
    return f"{label}:\n mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r3+{barrier}], {parity};\n @!%p3 bra {label};"


LOAD = f""" mov.u32 %r10, 0;
produce:
.loc 1 40 5
 and.b32 %r11, %r10, 3; shl.b32 %r12, %r11, 3; add.u32 %r13, %r3, %r12; shr.u32 %r14, %r10, 2; not.b32 %r14, %r14;
 and.b32 %r14, %r14, 1; shl.b32 %r15, %r11, 9; add.u32 %r16, %r4, %r15;
w:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r13+{EMPTY}], %r14;
 @!%p3 bra w;
.loc 1 41 5
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r13], 512;
.loc 1 42 5
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r16], [%rd1], 512, [%r13];
 add.u64 %rd1, %rd1, 512; add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, {TILES * BLOCKS};
 @%p4 bra produce;
 bra end;"""


def math(group: int, mistake: str) -> Iterator[str]:
    position = BLOCKS * group * (mistake != "from the beginning")
    wrong = {"no free turn": (0, 1, 0), "one parity": (group == 0,) * 3}
    for turn in range(TILES // 2):
        parity = int(wrong[mistake][turn] if mistake in wrong else (turn & 1) ^ (group == 0))
        yield at(64, wait(f"math{group}{turn}", MATH + 8 * group, parity))
        for block in range(BLOCKS):
            stage, lap = position % STAGES, position // STAGES
            yield at(66, wait(f"full{group}{turn}{block}", FULL + 8 * stage, lap & 1))
            yield at(70, f" ld.shared.u32 %r20, [%r6+{512 * stage}]; add.u32 %r30, %r30, %r20; bar.warp.sync -1;")
            yield at(75, f"{GIVE}[%r3+{EMPTY + 8 * stage}];")
            position += 1
        to = group if mistake == "to itself" else 1 - group
        yield at(77, f"{GIVE}[%r3+{MATH + 8 * to}];")
        position += BLOCKS * (mistake != "not past the other's")
        turns = MATH if mistake == "the other turn" else STORE
        yield at(80, wait(f"store{group}{turn}", turns + 8 * group, parity))
        yield at(81, f" st.shared.u32 [%r6+{OUT}], %r30;")
        yield at(82, " fence.proxy.async.shared::cta; bar.warp.sync -1;")
        yield at(84, f" @%p1 bra stored{group}{turn};\n add.u32 %r7, %r4, {OUT};")
        yield " cp.async.bulk.global.shared::cta.bulk_group [%rd1], [%r7], 128;"
        yield at(86, " cp.async.bulk.commit_group;")
        yield at(87, " cp.async.bulk.wait_group.read 0;" if mistake != "no wait" else "")
        yield at(88, f" mbarrier.arrive.shared::cta.b64 _, [%r3+{STORE + 8 * to}];\nstored{group}{turn}:")


def turns(mistake: str = "", store: int = 13) -> str:
    """``store``: the line that initialises the turns to store: those of MATH make one array with them at line 12."""
    rings = ((10, FULL, STAGES), (11, EMPTY, STAGES), (12, MATH, 2), (store, STORE, 2))
    inits = [
        f".loc 1 {line} 3\n mbarrier.init.shared::cta.b64 [%r3+{first + 8 * n}], 1;"
        for line, first, stages in rings
        for n in range(stages)
    ]
    parts = [
        *inits,
        " fence.mbarrier_init.release.cluster;\nmade:\n bar.sync 0;",
        " setp.eq.u32 %p4, %r1, 1;\n @%p4 bra one;\n setp.eq.u32 %p4, %r1, 2;\n @%p4 bra two;\n @%p1 bra end;",
        LOAD,
        "one:",
        *math(0, mistake),
        " bra end;\ntwo:",
        *math(1, mistake),
        "end:\n ret;\n}",
        f".section .debug_str\n{{\n{LABEL}: .b8 109, 97, 116, 104, 0\n}}\n",
    ]
    return HEAD + "\n".join(parts)


#: Warp 0 fills two stages in turn, two warps read them; one line makes the first barrier, another one the rest.
RING = """.loc 1 1 1
 mov.u32 %r0, %tid.x; shr.u32 %r1, %r0, 5; and.b32 %r2, %r0, 31; mov.u32 %r3, bars; mov.u32 %r4, tile; mov.u32 %r10, 0;
 shl.b32 %r5, %r2, 4; setp.ne.u32 %p0, %r0, 0;
 @%p0 bra made;
.loc 1 2 1
 mbarrier.init.shared::cta.b64 [%r3], 32;
.loc 1 3 1
 mbarrier.init.shared::cta.b64 [%r3+8], 32; mbarrier.init.shared::cta.b64 [%r3+24], 64;
.loc 1 OTHER 1
 mbarrier.init.shared::cta.b64 [%r3+16], 64; fence.mbarrier_init.release.cluster;
made:
 bar.sync 0;
turn:
.loc 1 20 5
 and.b32 %r11, %r10, 1; shl.b32 %r12, %r11, 3; add.u32 %r13, %r3, %r12; shr.u32 %r14, %r10, 1; and.b32 %r14, %r14, 1;
 shl.b32 %r15, %r11, 9; add.u32 %r16, %r4, %r15; add.u32 %r17, %r16, %r5; setp.ne.u32 %p1, %r1, 0;
 @%p1 bra use;
 xor.b32 %r14, %r14, 1;
w1:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r13+16], %r14;
 @!%p3 bra w1;
 st.shared.v4.u32 [%r17], {%r10, %r10, %r10, %r10}; mbarrier.arrive.shared::cta.b64 _, [%r13];
 bra next;
use:
.loc 1 30 5
w2:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r13], %r14;
 @!%p3 bra w2;
READS
next:
.loc 1 50 5
 add.u32 %r10, %r10, 1; setp.lt.u32 %p4, %r10, 5;
 @%p4 bra turn;
"""
ARRIVE = ".loc 1 40 5\n mbarrier.arrive.shared::cta.b64 _, [%r13+16];\n"
SLICES = [f".loc 1 38 5\n ld.shared.v2.u32 {{%r20, %r21}}, [%r17+{8 * n}];\n" for n in range(2)]
AGAIN = """.loc 1 41 5
w3:
 mbarrier.try_wait.parity.shared::cta.b64 %p3, [%r13], %r14;
 @!%p3 bra w3;
"""


def ring(other: int, reads: str) -> str:
    text = text_of(RING.replace("READS", reads).replace("OTHER", str(other)), ".param .u64 x")
    return text.replace(".visible", '.file 1 "turns.cu"\n.visible', 1)


#: The kernel, right and wrong; what is offered, and at which line of the source.
MISTAKES = {
    "no free turn": (turns(), turns("no free turn"),
        ("store waits for turns.cu:12[0] and turns.cu:13[0] with parity 1 in the first lap, alternating in each later "
         "lap"), 64),
    "not past the other's": (turns(), turns("not past the other's"),
        "each of store and store_2 advances stage and phase of turns.cu:10 by 2 more each time, past what others take",
        66),
    "from the beginning": (turns(), turns("from the beginning"),
        "each of store and store_2 begins turns.cu:10 by 2 stages further for each turn that others have before it",
        66),
    "to itself": (turns("", 12), turns("to itself", 12),
        ("each of store and store_2 arrives on turns.cu:12 of the one whose turn is next, not on that for which it "
         "waits itself"), 77),
    "from the beginning, in turns of two kinds": (turns("", 12), turns("from the beginning", 12),
        "each of store and store_2 begins turns.cu:10 by 2 stages further for each turn that others have before it",
        66),
    "one parity": (turns(), turns("one parity"),
        "every role flips the parity of its waits exactly once in each lap of the stages", 64),
    "the other turn": (turns(), turns("the other turn"),
                       "each of store and store_2 waits for turns.cu:13, not for turns.cu:12", 80),
    "no wait": (turns(), turns("no wait"),
        "each of store and store_2 waits for its bulk stores before the arrive on turns.cu:13 (turns.cu:88)", 88),
    "the first slice": (ring(3, AGAIN.join(SLICES) + ARRIVE), ring(3, SLICES[0] + ARRIVE + AGAIN + SLICES[1]),
        "compute_2 executes the arrive on turns.cu:3[1-2] only after its last read (turns.cu:38)", 40),
    "never": (ring(2, "".join(SLICES) + ARRIVE), ring(2, "".join(SLICES)),
        "compute_2 arrives on turns.cu:2[1] to turns.cu:3[1] whenever it has finished with a stage", 38),
}  # fmt: skip


def kernel(folder: Path, text: str) -> Target:
    return find(written(folder / "turns.ptx", text, with_a_pointer(3)))


def test_the_kernels_are_right_without_a_mistake(tmp_path: Path) -> None:
    for right in {right for right, *_ in MISTAKES.values()}:
        assert check(kernel(tmp_path, right).build()).verdict is Verdict.PROVED


@pytest.mark.slow
@pytest.mark.parametrize(
    "mistake", [pytest.param(each, marks=[pytest.mark.long] * each.endswith("two kinds")) for each in MISTAKES]
)
def test_one_change_of_the_source_is_offered(mistake: str, tmp_path: Path) -> None:
    _, wrong, said, line = MISTAKES[mistake]
    found = first_offered(kernel(tmp_path, wrong))
    assert [(each.said, each.line) for each in found] == [(said, f"turns.cu:{line}")]
