"""Values that decide what a warp does next, and that come out of registers or words which other things use as well."""

import pytest

from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.program import Program
from pipesim.prove.check import check
from tests.support.small_ptx import SET_UP, program_of

SET = SET_UP.format(first=1, count=1)


def answer(program: Program) -> tuple[Verdict, set[object]]:
    found = check(program)
    return found.verdict, {each.kind for each in found.refutations}


#: %r10 is a zero from which the loop's index begins, and then holds a part of the product. {parity}: of the wait.
PRODUCT = """ mov.b32 %r10, 0;
 mov.u64 %rd1, 0;
 add.s32 %r20, %r10, 0;
next:
 @!%p0 st.shared.u32 [tile], %r20;
 bar.warp.sync -1;
 @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3];
 and.b32 %r21, {parity}, 1;
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], %r21;
 @!%p9 bra again;
 ld.shared.u32 %r22, [tile];
 bar.sync 0;
 add.s32 %r20, %r20, 1;
 setp.lt.s32 %p8, %r20, 3;
 @%p8 bra next;
 wgmma.fence.sync.aligned;
 wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {{%r10, %r11, %r12, %r13}}, %rd1, %rd1, 1, 1, 1;
 wgmma.commit_group.sync.aligned;
 wgmma.wait_group.sync.aligned 0;
{then}"""


def test_a_register_keeps_its_value_until_a_product_is_written_to_it() -> None:
    right = SET + PRODUCT.format(parity="%r20", then="")
    assert answer(program_of(right, 4)) == (Verdict.PROVED, set())
    wrong = SET + PRODUCT.format(parity="%r10", then="")
    assert FaultKind.RACE in answer(program_of(wrong, 4))[1]


def test_what_a_product_decides_is_not_known_and_the_product_is_named() -> None:
    for between in ("", " add.s32 %r10, %r10, 1;\n"):
        then = f"{between} setp.eq.s32 %p7, %r10, 0;\n @%p7 bra end;\n bar.sync 0;\nend:\n"
        (stopped,) = program_of(SET + PRODUCT.format(parity="%r20", then=then), 4).coverage.stopped
        assert "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8" in stopped
    address = " shl.b32 %r30, %r10, 0;\n @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r10];\n"
    (stopped,) = program_of(SET + PRODUCT.format(parity="%r20", then=address), 4).coverage.stopped
    assert "the address of an mbarrier is not known" in stopped
    assert "wgmma.mma_async" in stopped


#: Warp 0 stores a word, arrives, stores another one, and arrives at two more; warp 1 waits in {loop} and reads both.
WORDS = """ @!%p0 mbarrier.init.shared::cta.b64 [%r3+16], 1;
 bar.sync 0;
 setp.ne.u32 %p1, %r2, 0;
 setp.eq.u32 %p2, %r1, 1;
 setp.ne.b32 %p10, 0, 0;
 setp.ne.b32 %p11, 0, 0;
 @%p2 bra again;
 st.shared.u32 [tile], 5;
 bar.warp.sync -1;
 @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r3];
 st.shared.u32 [tile+8], 5;
 bar.warp.sync -1;
 @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r3+8];
 @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r3+16];
 bra.uni over;
again:
{loop} @!%p13 bra again;
 ld.shared.u32 %r50, [tile];
 ld.shared.u32 %r51, [tile+8];
over:
"""
FIRST, SECOND, THIRD = (f" mbarrier.try_wait.parity.shared::cta.b64 %p{10 + n}, [%r3+{8 * n}], 0;\n" for n in range(3))
BOTH = " and.pred %p13, %p10, %p11;\n"
NEGATED = " selp.b32 %r20, 0, 1, %p10;\n selp.b32 %r21, 0, 1, %p11;\n or.b32 %r22, %r20, %r21;\n"
UNLESS = " @%p10 bra second;\n{0}second:\n @%p11 bra both;\n{1}both:\n"


@pytest.mark.parametrize(
    ("loop", "right"),
    [
        (FIRST + SECOND + BOTH, True),
        (FIRST + SECOND + " selp.b32 %r20, 1, 0, %p10;\n selp.b32 %r21, 1, 0, %p11;\n and.b32 %r22, %r20, %r21;\n"
         " setp.ne.s32 %p13, %r22, 0;\n", True),
        (FIRST + SECOND + NEGATED + " setp.eq.s32 %p13, %r22, 0;\n", True),
        (FIRST + SECOND + NEGATED + " setp.ne.s32 %p13, %r22, 2;\n setp.ne.and.s32 %p13, %r20, 1, %p13;\n", False),
        (FIRST + SECOND + " @!%p10 bra again;\n and.pred %p13, %p11, %p11;\n", True),
        (f" @!%p10{FIRST} @!%p11{SECOND}{BOTH}", True),
        (UNLESS.format(FIRST, SECOND) + BOTH, True),
        (FIRST + SECOND + THIRD + BOTH + " and.pred %p13, %p13, %p12;\n", True),
        (FIRST + SECOND + " or.pred %p13, %p10, %p11;\n and.pred %p13, %p13, %p10;\n", False),
    ],
)  # fmt: skip
def test_each_try_of_a_loop_that_ends_when_all_say_yes_is_a_wait(loop: str, right: bool) -> None:
    whole = WORDS.format(loop=loop)
    assert answer(program_of(SET + whole)) == (
        (Verdict.PROVED, set()) if right else (Verdict.REFUTED, {FaultKind.RACE})
    )
    late = whole.replace(" st.shared.u32 [tile+8], 5;\n", "").replace("over:", " st.shared.u32 [tile+8], 5;\nover:")
    assert answer(program_of(SET + late))[0] is Verdict.REFUTED


#: Warp 0 allocates tensor memory and publishes its address, which all warps read.
ALLOCATED = """ setp.ne.u32 %p1, %r1, 0;
 @%p1 bra allocated;
 mov.u32 %r30, tile;
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r30], 128;
allocated:
 {meet}
 ld.shared.b32 %r31, [tile];
 shl.b32 %r32, %r1, 21;
 add.u32 %r33, %r31, %r32;
 tcgen05.st.sync.aligned.32x32b.x1.b32 [%r33], {{%r2}};
 tcgen05.wait::st.sync.aligned;
 tcgen05.fence::before_thread_sync;
 bar.sync 1, 128;
 @%p1 bra end;
 tcgen05.fence::after_thread_sync;
 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r31, 128;
end:
"""


def test_the_columns_that_are_allocated_are_known_where_their_address_is_read() -> None:
    meet = "tcgen05.fence::before_thread_sync;\n bar.sync 0;\n tcgen05.fence::after_thread_sync;\n"
    right = program_of(SET + ALLOCATED.format(meet=meet), 4)
    assert not right.coverage.stopped
    assert answer(right) == (Verdict.PROVED, set())
    assert answer(program_of(SET + ALLOCATED.format(meet=""), 4))[0] is Verdict.REFUTED
