"""By which rate an instruction is priced."""

import pytest

from pipesim.ptx.text.instruction import Instruction
from pipesim.ptx.work.path import bytes_of, class_of, group_product, machine_instructions, products_of
from tests.support.ptx_text import kernel


def instruction(text: str) -> Instruction:
    return kernel(f"{text}\nret;").body[0]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("add.s32 %r1, %r2, 4;", "alu"),
        ("mad.lo.s32 %r1, %r2, %r3, %r4;", "alu"),
        ("setp.lt.s32 %p1, %r1, %r2;", "alu"),
        ("cvt.rn.f32.s32 %f1, %r1;", "alu"),
        ("bra L;\nL:", "alu"),
        ("mov.u32 %r1, %tid.x;", ""),
        ("cvta.to.global.u64 %rd1, %rd2;", ""),
        ("fma.rn.f32 %f1, %f2, %f3, %f4;", "fma"),
        ("max.f32 %f1, %f2, %f3;", "fma"),
        ("max.s32 %r1, %r2, %r3;", "alu"),
        ("ex2.approx.ftz.f32 %f1, %f2;", "exp2"),
        ("div.full.f32 %f1, %f2, %f3;", "exp2"),
        ("div.u32 %r1, %r2, %r3;", "alu"),
        ("shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;", "shuffles"),
        ("ld.shared.b32 %r1, [%r2];", "rounds"),
        ("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r1, %r2, %r3, %r4}, [%r5];", "rounds"),
        ("st.shared.b32 [%r2], %r1;", "shared_bytes"),
        ("ld.global.b32 %r1, [%rd2];", "global_accesses"),
        ("ld.b32 %r1, [%rd2];", "global_accesses"),
        ("atom.global.add.u32 %r1, [%rd2], 1;", "global_accesses"),
        ("st.global.b32 [%rd2], %r1;", "global_bytes"),
        ("ld.const.b32 %r1, [%rd2];", ""),
        (("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f1, %f2, %f3, %f4}, {%r1, %r2, %r3, %r4}, {%r5, %r6}, "
         "{%f1, %f2, %f3, %f4};"), "warp_products"),
        ("bar.warp.sync -1;", "alu"),
        ("cp.async.ca.shared.global [%r1], [%rd1], 4;", "alu"),
        # operations of the program, which have prices of their own
        ("bar.sync 0;", ""),
        ("mbarrier.arrive.shared::cta.b64 _, [%r1];", ""),
        ("mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r1], 0;", ""),
        ("fence.proxy.async.shared::cta;", ""),
        ("wgmma.commit_group.sync.aligned;", ""),
    ],
)  # fmt: skip
def test_each_has_one_class(text: str, kind: str) -> None:
    assert class_of(instruction(text)) == kind


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("ld.shared.b8 %r1, [%r2];", 32),
        ("ld.shared.f32 %f1, [%r2];", 128),
        ("ld.shared.v4.b32 {%r1, %r2, %r3, %r4}, [%r5];", 512),
        ("st.global.v2.b64 [%rd1], {%rd2, %rd3};", 512),
        ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %r2}, [%r5];", 256),
        ("stmatrix.sync.aligned.m8n8.x1.shared.b16 [%r5], {%r1};", 128),
    ],
)
def test_bytes_are_those_of_all_lanes(text: str, size: int) -> None:
    assert bytes_of(instruction(text)) == size


@pytest.mark.parametrize(
    ("shape", "parts"),
    [
        ("m16n8k16.row.col.f32.f16.f16.f32", 8),
        ("m16n8k8.row.col.f32.tf32.tf32.f32", 8),
        ("m16n8k32.row.col.f32.e4m3.e4m3.f32", 8),
        ("m16n8k32.row.col.s32.s8.s8.s32", 8),
        ("m16n8k8.row.col.f32.bf16.bf16.f32", 4),
        ("m8n8k4.row.col.f64.f64.f64.f64", 4),
        ("sp.m16n8k32.row.col.f32.f16.f16.f32", 8),
        ("m16n8k256.row.col.s32.b1.b1.s32.xor.popc", 8 // 2 + 4),
    ],
)
def test_products_of_a_warp_count_as_those_of_16_bits(shape: str, parts: int) -> None:
    text = f"mma.sync.aligned.{shape} {{%f1, %f2, %f3, %f4}}, {{%r1, %r2}}, {{%r3}}, {{%f1, %f2, %f3, %f4}};"
    assert products_of(instruction(text)) == parts


@pytest.mark.parametrize("types", ["k16.f32.f16.f16", "k32.f32.e4m3.e4m3", "k8.f32.tf32.tf32"])
def test_products_of_a_warp_group_take_as_long_for_every_type(types: str) -> None:
    """64 rows, 128 columns and 32 bytes of K: a quarter of 64 x 128 x 16 multiply-adds for each warp."""
    descriptors = instruction(f"wgmma.mma_async.sync.aligned.m64n128{types} {{%f1, %f2}}, %rd1, %rd2, 1, 1, 1, 0, 0;")
    registers = instruction(
        f"wgmma.mma_async.sync.aligned.m64n128{types} {{%f1, %f2}}, {{%r1, %r2, %r3, %r4}}, %rd2, 1, 1, 1, 0;"
    )
    assert group_product(descriptors) == ("mma", 32768)
    assert group_product(registers) == ("mma_registers", 32768)


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("add.s32 %r1, %r2, 1;", 1),
        ("add.s64 %rd1, %rd2, 1;", 2),
        ("mul.lo.s64 %rd1, %rd2, %rd3;", 4),
        ("div.u32 %r1, %r2, 7;", 5),
        ("rem.u32 %r1, %r2, %r3;", 20),
        ("div.s64 %rd1, %rd2, %rd3;", 80),
        ("popc.b32 %r1, %r2;", 4),
    ],
)
def test_what_the_hardware_has_no_instruction_for_counts_as_several(text: str, count: int) -> None:
    assert machine_instructions(instruction(text)) == count
