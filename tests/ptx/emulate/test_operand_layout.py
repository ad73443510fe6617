"""Which bytes of shared memory an operand of a matrix instruction reads (PTX ISA, "Matrix Descriptor", "Strides")."""

import pytest

from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Op, operand
from pipesim.prove.check import check
from pipesim.ptx.emulate.effects.operands import OperandShape, groups, takes
from pipesim.ptx.emulate.memory import SHARED_BASE
from tests.support.small_ptx import SET_UP, program_of


def descriptor(leading: int, stride: int, swizzle: int, *, tcgen05: bool = False) -> int:
    """Of address 0, strides in bytes."""
    return leading >> 4 << 16 | stride >> 4 << 32 | (1 << 46 | swizzle << 61 if tcgen05 else swizzle << 62)


@pytest.mark.parametrize(
    ("swizzle", "shape", "leading", "stride", "expected"),
    [
        (1, OperandShape(32, 16, by_rows=False), 16, 1024, (0, 1024, 2048, 3072)),
        (0, OperandShape(16, 16, by_rows=False), 128, 256, (0, 128, 256, 384)),
        (1, OperandShape(128, 16, by_rows=True), 16384, 1024, (0, 1024, 16384, 17408)),
        (1, OperandShape(64, 16, by_rows=True), 16384, 1024, (0, 1024)),  # one swizzle: no leading offset
        (2, OperandShape(64, 16, by_rows=True), 4096, 512, (0, 512, 4096, 4608)),
        (0, OperandShape(16, 16, by_rows=True), 64, 512, (0, 64, 512, 576)),
    ],
)
def test_groups_are_where_the_strides_say(
    swizzle: int, shape: OperandShape, leading: int, stride: int, expected: tuple[int, ...]
) -> None:
    assert groups(descriptor(leading, stride, swizzle), shape, tcgen05=False) == expected
    other = {0: 0, 1: 2, 2: 4}[swizzle]
    assert groups(descriptor(leading, stride, other, tcgen05=True), shape, tcgen05=True) == expected


WAIT = """waits{n}:
 mbarrier.try_wait.parity.shared::cta.b64 %p{n}, [%r3+{at}], 0;
 @!%p{n} bra waits{n};
"""


TILE = 128  #: where the small kernels' ``tile`` is
PRODUCT = "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%r10, %r11, %r12, %r13}, {%r14, %r15, %r16, %r17}"


def product(order: int, strides: tuple[int, int], waits: str) -> str:
    """B, 8 by 16 or 16 by 8 elements, is copied in two halves of 128 bytes, each on an mbarrier of its own."""
    value = descriptor(*strides, 0) | SHARED_BASE + TILE >> 4
    return (
        SET_UP.format(first=1, count=1)
        + f""" @%p0 bra copied;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+8], 128;
 mov.u32 %r4, tile;
 add.s32 %r5, %r4, 128;
 mov.u64 %rd2, 0;
 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r4], [%rd2], 128, [%r3];
 cp.async.bulk.shared::cta.global.mbarrier::complete_tx::bytes [%r5], [%rd2], 128, [%r3+8];
copied:
{waits}
 mov.u64 %rd1, {value};
 wgmma.fence.sync.aligned;
 {PRODUCT}, %rd1, 1, 1, 1, {order};
 wgmma.commit_group.sync.aligned;
 wgmma.wait_group.sync.aligned 0;
"""
    )


BOTH = WAIT.format(n=1, at=0) + WAIT.format(n=2, at=8)
#: By rows or by K, and where the second half is: K's second 8, and nowhere.
CASES = [(0, (128, 256)), (1, (128, 256))]


@pytest.mark.parametrize(("order", "strides"), CASES)
def test_both_copies_that_a_tile_consists_of_are_read(order: int, strides: tuple[int, int]) -> None:
    program = program_of(product(order, strides, BOTH), warps=4)
    reads = {program.accesses[operand(op, "access")].offset for op in program.code[1] if op[0] == Op.TRANSFER_READ}
    assert reads == {TILE, TILE + 128}
    assert check(program).verdict is Verdict.PROVED


@pytest.mark.parametrize(("order", "strides"), CASES)
def test_a_copy_that_nobody_waited_for_is_a_race_though_the_address_lies_in_the_other(
    order: int, strides: tuple[int, int]
) -> None:
    found = check(program_of(product(order, strides, WAIT.format(n=1, at=0)), warps=4))
    assert found.verdict is Verdict.REFUTED


def test_a_copy_behind_the_operand_is_not_read() -> None:
    """The same with both halves of K at one place."""
    assert check(program_of(product(0, (0, 256), WAIT.format(n=1, at=0)), warps=4)).verdict is Verdict.PROVED


STORED = f""" mov.u32 %r4, tile;
 shl.b32 %r5, %r0, 4;
 add.u32 %r4, %r4, %r5;
 @%p0 bra filled;
 st.shared.v4.u32 [tile+2048], {{%r0, %r0, %r0, %r0}};
filled:
 bar.sync 0;
 st.shared.v4.u32 [%r4], {{%r0, %r0, %r0, %r0}};
 fence.proxy.async.shared::cta;
 bar.sync 1, 128;
 mov.u64 %rd1, {descriptor(128, 256, 0) | SHARED_BASE + TILE >> 4};
 mov.u64 %rd2, {descriptor(128, 256, 0) | SHARED_BASE + TILE + 2048 >> 4};
 wgmma.fence.sync.aligned;
 wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%r10, %r11, %r12, %r13}}, %rd1, %rd2, 1, 1, 1, 0, 0;
 wgmma.commit_group.sync.aligned;
 wgmma.wait_group.sync.aligned 0;
"""


@pytest.mark.parametrize("met", [True, False])
def test_warps_that_store_their_rows_and_do_not_meet_execute_the_same_product(met: bool) -> None:
    """A warp reads rows of the others, that are not yet written, or are meanwhile: a race, and no other instruction."""
    text = STORED if met else STORED.replace(" bar.sync 1, 128;\n", "")
    found = check(program_of(SET_UP.format(first=1, count=1) + text, warps=4)).refutations
    kinds = {each.fault.kind for each in found if each.fault is not None}
    assert FaultKind.WARP_SHAPE not in kinds
    assert (FaultKind.RACE in kinds) is not met


@pytest.mark.parametrize(("fence", "verdict"), [("", "refuted"), (" fence.proxy.async.shared::cta;\n", "proved")])
def test_bytes_that_threads_store_inside_an_operand_need_a_proxy_fence(fence: str, verdict: str) -> None:
    """Also within a group, where no descriptor and no stride leads to: it was proved without."""
    store = f" @!%p0 st.shared.u32 [tile+20], 1;\n{fence} bar.sync 0;\n"
    assert check(program_of(product(0, (128, 256), BOTH + store), warps=4)).verdict.value == verdict


def test_a_swizzled_row_has_the_bricks_of_one_step_of_k_at_other_places() -> None:
    of = descriptor(16, 1024, 1), OperandShape(16, 16, by_rows=False)
    found = [at for at in range(0, 4096, 16) if takes(*of, at, at + 16, tcgen05=False)]
    assert found[:6] == [0, 16, 128, 144, 288, 304]
    assert len(found) == 2 * 16
