"""Values that decide what a warp does next, and that come out of registers or words which other things use as well."""

from __future__ import annotations

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
