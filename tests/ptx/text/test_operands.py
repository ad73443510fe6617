"""Operands as compilers and authors write them."""

import pytest

from pipesim.errors import PtxError
from pipesim.ptx.text.instruction import (
    Address,
    Arguments,
    CodeLabel,
    Float,
    Guard,
    Immediate,
    NegatedPredicate,
    Register,
    RegisterPair,
    Sink,
    Special,
    Symbol,
    TensorAddress,
    Vector,
)
from tests.support.ptx_text import kernel

LOAD = "shared::cluster.global.mbarrier::complete_tx::bytes"
R1, R2, RD1 = Register("%r1"), Register("%r2"), Register("%rd1")


@pytest.mark.parametrize(
    ("statement", "operands"),
    [
        ("mov.u32 %r1, %tid.x;", (R1, Special("%tid.x"))),
        ("mov.u32 %r1, %cluster_ctarank;", (R1, Special("%cluster_ctarank"))),
        ("mov.u32 %r1, WARP_SZ;", (R1, Immediate(32))),
        ("mov.u32 %r1, -17;", (R1, Immediate(-17))),
        ("mov.u32 %r1, 0xFFFFFFFF;", (R1, Immediate(0xFFFFFFFF))),
        ("mov.u32 %r1, 0x10U;", (R1, Immediate(16))),
        ("mov.u32 %r1, 0b101;", (R1, Immediate(5))),
        ("mov.u32 %r1, 017;", (R1, Immediate(15))),
        ("mov.u32 %r1, (3 + 4) * 2 << 1;", (R1, Immediate(28))),
        ("mov.u32 %r1, -7 / 2;", (R1, Immediate(-3))),
        ("mov.f32 %f1, 0f3F800000;", (Register("%f1"), Float(0x3F800000, 32))),
        ("mov.f64 %f1, 0d3FF0000000000000;", (Register("%f1"), Float(0x3FF0000000000000, 64))),
        ("mov.f32 %f1, 1.0;", (Register("%f1"), Float(0x3FF0000000000000, 64))),
        ("mov.pred %p1, -1;", (Register("%p1"), Immediate(-1))),
        ("mov.u64 %rd1, smem;", (RD1, Symbol("smem"))),
        ("mov.u64 %rd1, smem+64;", (RD1, Address(Symbol("smem"), 64))),
        ("ld.shared.u32 %r1, [smem];", (R1, Address(Symbol("smem"), 0))),
        ("ld.shared.u32 %r1, [%r2];", (R1, Address(R2, 0))),
        ("ld.shared.u32 %r1, [ %r2 + 16 ];", (R1, Address(R2, 16))),
        ("ld.shared.u32 %r1, [%r2+-16];", (R1, Address(R2, -16))),
        ("ld.shared.u32 %r1, [%r2 - 8];", (R1, Address(R2, -8))),
        ("ld.shared.u32 %r1, [%r2+4*8];", (R1, Address(R2, 32))),
        ("ld.shared.u32 %r1, [smem[4]];", (R1, Address(Symbol("smem"), 4))),
        ("ld.shared.u32 %r1, [1024];", (R1, Address(Immediate(1024), 0))),
        ("ld.shared.v2.u32 {%r1, _}, [%r2];", (Vector((R1, Sink())), Address(R2, 0))),
        ("shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1;",
         (RegisterPair(R1, Register("%p1")), R2, Immediate(0), Immediate(31), Immediate(-1))),
        ("elect.sync _|%p1, 0xffffffff;", (RegisterPair(Sink(), Register("%p1")), Immediate(0xFFFFFFFF))),
        ("setp.lt.and.s32 %p1|%p2, %r1, %r2, !%p3;",
         (RegisterPair(Register("%p1"), Register("%p2")), R1, R2, NegatedPredicate(Register("%p3")))),
        ("mbarrier.arrive.shared::cta.b64 _, [%r1];", (Sink(), Address(R1, 0))),
        (f"cp.async.bulk.tensor.2d.{LOAD} [%r1], [%rd1, {{%r2, 0}}], [smem+8];",
         (Address(R1, 0), TensorAddress(Address(RD1, 0), Vector((R2, Immediate(0)))), Address(Symbol("smem"), 8))),
        ("cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, %r2], [%r1];",
         (TensorAddress(Address(RD1, 0), Vector((R2,))), Address(R1, 0))),
        ("call.uni (%r1), f, (%r2, 3);", (Arguments((R1,)), Symbol("f"), Arguments((R2, Immediate(3))))),
        ("call.uni f, (%r2), proto;", (Symbol("f"), Arguments((R2,)), CodeLabel("proto"))),
        ("call f;", (Symbol("f"),)),
        ("ret;", ()),
    ],
)  # fmt: skip
def test_operands(statement, operands):
    made = kernel(statement, before=".shared .align 8 .b8 smem[256];\n")
    (instruction,) = made.body
    assert instruction.operands == operands


def test_modifiers_are_a_set_in_the_written_order():
    text = "mbarrier.try_wait.parity.acquire.cta.shared::cta.b64 %p1, [%r1], %r2, 0x989680;"
    (instruction,) = kernel(text).body
    assert (instruction.opcode, instruction.modifiers) == (
        "mbarrier",
        ("try_wait", "parity", "acquire", "cta", "shared::cta", "b64"),
    )
    assert instruction.mnemonic == text.split(" ", maxsplit=1)[0]
    assert instruction.has("parity", "try_wait")
    assert not instruction.has("parity", "expect_tx")
    assert instruction.has_any("expect_tx", "b64")
    assert not instruction.has_any("expect_tx", "arrive")


@pytest.mark.parametrize(
    ("guard", "found"),
    [
        ("@%p1 ", Guard("%p1", negated=False)),
        ("@!%p1 ", Guard("%p1", negated=True)),
        ("@ ! %p1\n", Guard("%p1", negated=True)),
    ],
)
def test_guards(guard, found):
    (instruction,) = kernel(f"{guard}mov.u32 %r1, 0;").body
    assert instruction.guard == found


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("mov.u32 %r1, [;", "'[' is not an operand"),
        ("mov.u32 %r1, %r99;", "%r99 is not declared: 99 registers have its name"),
        ("mov.u32 %r1,;", "an operand is missing"),
        ("mov.u32 %r1, a.y;", "'a.y' is not an operand"),
        ("mov.u32 %r1, 3 4;", "'3 4' is not an operand"),
        ("mov.u32 %r1, 1 / 0;", "'1 / 0' is not an operand"),
        ("ld.shared.u32 %r1, [];", "an address is missing"),
        ("ld.shared.u32 %r1, [%r1 * 2];", "'%r1 * 2' is not an address"),
        ("ld.shared.u32 %r1, [%tid.x];", "%tid.x is neither a register nor a variable"),
        ("mov.b64 %rd1, {{{{{{%r1}}}}}};", "brackets are nested too deeply"),
        ("setp.eq.u32 %p1, !7x, 0;", "'7x' is not an operand"),
        ("setp.eq.u32 %p1, ![%r1], 0;", "after ! is not a predicate"),
        ("@%q mov.u32 %r1, 0;", "the guard %q is not a register that is declared here"),
        ("mov.u32 %r1, 0 mov.u32 %r2, 1;", "'0 mov.u32 %r2' is not an operand"),
        ("bra 5;", "'5' is not a label"),
    ],
)
def test_what_is_not_an_operand(statement, message):
    with pytest.raises(PtxError) as raised:
        kernel(f"mov.u32 %r1, 0;\n  {statement}")
    assert message in raised.value.fact
    assert raised.value.place == "k.ptx, line 11, column 3"
    assert raised.value.cause.startswith("it says '")
