"""``tcgen05.cp`` of one warp before ``tcgen05.mma`` of another: they are carried out in the order of their issue."""

import pytest

from pipesim.findings.catalog import report_fault
from pipesim.model.coverage import LENIENT, Assumption, Strictness
from pipesim.model.finding import FaultKind, Verdict
from pipesim.prove.check import check
from tests.support.small_ptx import SET_UP, program_of, text_of

COPY = " tcgen05.cp.cta_group::1.32x128b.warpx4 [%r8], %rd3;\n"
TOLD = " tcgen05.fence::before_thread_sync;\n mbarrier.arrive.shared::cta.b64 _, [%r3];\n"
WAITED = "{0}:\n mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3+{1}], 0;\n @!%p9 bra {0};\n"
PRODUCT = " tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r9], %rd4, %rd4, %r30, [%r8], [%r8], %p4;\n"
COMMIT = " tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r31];\n"
#: Warp 0 stores scales and copies them, warp 1 multiplies with them, and warp 0 then stores others.
RIGHT = (
    SET_UP.format(first=1, count=1)
    + f""" add.u32 %r31, %r3, 8;
 mov.u64 %rd3, 72;
 mov.u64 %rd4, 200;
 mov.u32 %r30, 134349824;
 setp.ne.u32 %p4, %r1, 0;
 @%p4 bra allocated;
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile+2048], 32;
 @!%p0 st.shared.v2.u64 [tile], {{%rd3, %rd3}};
 @!%p0 st.shared.v2.u64 [tile+2064], {{%rd3, %rd3}};
 fence.proxy.async.shared::cta;
allocated:
 bar.sync 0;
 ld.shared.u32 %r9, [tile+2048];
 add.u32 %r8, %r9, 16;
 setp.ne.u32 %p5, %r2, 0;
 @%p5 bra released;
 @%p4 bra multiplies;
{COPY}{TOLD}{WAITED.format("again", 8)} st.shared.u32 [tile], 6;
 bra released;
multiplies:
{WAITED.format("copied", 0)} tcgen05.fence::after_thread_sync;
{PRODUCT}{COMMIT}released:
 bar.sync 0;
 @%p4 bra done;
 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;
done:
"""
)
TWICE = COPY + " st.shared.u32 [tile+1024], 5;\n" + COPY.replace("%rd3", "%rd4") + TOLD
COPIED, RELEASED = WAITED.format("copied", 0), WAITED.format("again", 8)
LOADED = """released:
 add.u32 %r10, %r8, 2097152;
 @!%p4 bra met;
 tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r10];
 tcgen05.wait::ld.sync.aligned;
met:
"""
#: What the wrong twins have instead, and words of the line of the race.
WRONG = {
    "the product does not wait for the copy": (COPIED, "", "tcgen05.mma"),
    "it is told before the copy": (COPY + TOLD, TOLD + COPY, "tcgen05.mma"),
    "the scales are overwritten before the product": (RELEASED, "", "tcgen05.mma"),
    "the product is not committed": (COMMIT, " mbarrier.arrive.shared::cta.b64 _, [%r31];\n", "[tile], 6"),
    "no product reads the first of two copies": (COPY + TOLD, f"{TWICE} st.shared.u32 [tile], 7;\n", "tcgen05.mma"),
    "a load waits for no commit": ("released:\n", LOADED, "tcgen05.mma"),
}


def test_a_product_of_another_warp_comes_after_a_copy_that_is_not_committed() -> None:
    for right in (RIGHT, RIGHT.replace(COPY + TOLD, TWICE)):
        assert check(program_of(right, target="sm_100a").with_strictness(LENIENT)).verdict is Verdict.PROVED


@pytest.mark.parametrize("fence", ["before", "after"])
def test_it_needs_both_fences_of_tensor_memory(fence: str) -> None:
    program = program_of(RIGHT.replace(f" tcgen05.fence::{fence}_thread_sync;\n", ""), target="sm_100a")
    said = check(program.with_strictness(Strictness({Assumption.TENSOR_FENCES})))
    assert [each.fault and each.fault.kind for each in said.refutations] == [FaultKind.TENSOR_FENCE]


@pytest.mark.parametrize("name", WRONG)
def test_what_is_not_ordered_by_that_is_a_race(name: str) -> None:
    old, new, line = WRONG[name]
    assert old in RIGHT
    wrong = RIGHT.replace(old, new)
    program = program_of(wrong, target="sm_100a").with_strictness(LENIENT)
    faults = [each.fault for each in check(program).refutations if each.fault is not None]
    found = {
        text_of(wrong).splitlines()[int(report_fault(program, fault).line.rpartition(":")[2]) - 1]
        for fault in faults
        if fault.kind in (FaultKind.RACE, FaultKind.UNINITIALISED_READ)
    }
    assert any(line in each for each in found), (faults, found)
