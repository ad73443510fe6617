"""Blocks of braces have registers, variables and labels of their own, as inline assembly needs it."""

import pytest

from pipesim.errors import PtxError
from pipesim.ptx.text.instruction import Address, CodeLabel, Guard, Instruction, Register, Symbol, Vector
from tests.support.ptx_text import kernel

WAIT = """{{
.reg .pred P1;
LAB_WAIT:
mbarrier.try_wait.parity.shared::cta.b64 P1, [%r1], {parity};
@P1 bra DONE;
bra LAB_WAIT;
DONE:
}}
"""


def first(instruction: Instruction) -> str:
    """The name of the first operand, a register."""
    found, *_ = instruction.operands
    assert isinstance(found, Register)
    return found.name


def test_two_blocks_with_the_same_names_do_not_meet():
    made = kernel(WAIT.format(parity=0) + WAIT.format(parity=1))
    first, second = made.body[:3], made.body[3:]
    assert [each.operands[0] for each in first] == [Register("P1"), CodeLabel("DONE"), CodeLabel("LAB_WAIT")]
    assert [each.operands[0] for each in second] == [Register("P1$2"), CodeLabel("DONE$2"), CodeLabel("LAB_WAIT$2")]
    assert second[1].guard == Guard("P1$2", negated=False)
    assert made.labels == {"LAB_WAIT": 0, "DONE": 3, "LAB_WAIT$2": 3, "DONE$2": 6}
    assert made.registers == {"%r1": "b32", "P1": "pred", "P1$2": "pred"}


def test_an_inner_declaration_hides_an_outer_one():
    made = kernel("mov.u32 %r1, 0;\n{ .reg .b64 %r1; mov.u64 %r1, 1; { mov.u64 %r1, 2; } }\nmov.u32 %r1, 3;")
    assert [first(each) for each in made.body] == ["%r1", "%r1$1", "%r1$1", "%r1"]
    assert made.registers == {"%r1": "b32", "%r1$1": "b64"}


def test_an_inner_declaration_of_a_number_that_is_only_used_later_outside():
    made = kernel("{ .reg .b64 %r5; mov.u64 %r5, 1; }\nmov.u32 %r5, 3;")
    assert [first(each) for each in made.body] == ["%r5$1", "%r5"]


def test_an_inner_family_hides_an_outer_one():
    made = kernel("{ .reg .b64 %r<3>; mov.u64 %r2, 1; mov.u32 %r7, 0; }\nmov.u32 %r2, 3;")
    assert [first(each) for each in made.body] == ["%r2$1", "%r7", "%r2"]
    assert made.registers == {"%r2$1": "b64", "%r7": "b32", "%r2": "b32"}


def test_variables_of_two_calls_have_names_of_their_own():
    call = "{ .param .b32 p0; st.param.b32 [p0], %r1; }\n"
    made = kernel(call + call)
    assert [each.operands[0] for each in made.body] == [Address(Symbol("p0"), 0), Address(Symbol("p0$2"), 0)]
    assert [(each.name, each.space, each.size) for each in made.local] == [("p0", "param", 4), ("p0$2", "param", 4)]


def test_vector_registers_have_components():
    made = kernel(".reg .v2 .b32 %v;\nmov.u32 %v.x, %v.y;")
    assert made.body[0].operands == (Register("%v.x"), Register("%v.y"))
    whole = kernel(".reg .v2 .b32 %v;\n{ .reg .b32 %r0;\nst.async.weak.v2.b32 [%r1], %v, [%r2]; }")
    assert whole.body[0].operands[1] == Vector((Register("%v.x"), Register("%v.y")))  # 8 bytes, not 4
    family = kernel(".reg .v2 .b32 %v<2>;\n{ .reg .v4 .b32 %v<2>;\nmov.b128 %rq, %v1; }\nmov.b64 %v0, %v1.y;").body
    assert family[0].operands[1] == Vector(tuple(Register(f"%v1.{part}$1") for part in "xyzw"))
    assert family[1].operands == (Vector((Register("%v0.x"), Register("%v0.y"))), Register("%v1.y"))


def test_a_branch_reaches_a_label_of_an_outer_block_and_one_further_down():
    made = kernel("TOP: { @%p1 bra END; bra TOP; }\nEND: ret;")
    assert [each.operands for each in made.body] == [(CodeLabel("END"),), (CodeLabel("TOP"),), ()]
    assert made.labels == {"TOP": 0, "END": 2}


def test_a_jump_table_before_the_code():
    made = kernel("tab: .branchtargets A, B ,\n A;\n@%p1 brx.idx %r1, tab;\nA: mov.u32 %r1, 0;\nB: ret;")
    assert made.targets == {"tab": ("A", "B", "A")}
    assert made.body[0].operands == (Register("%r1"), CodeLabel("tab"))
    assert made.labels == {"A": 1, "B": 2}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("bra NOWHERE;", "the branch's target NOWHERE is not in the function"),
        ("{ A: ret; }\nbra A;", "the branch's target A is not in the function"),
        ("A: ret;\nA: ret;", "the label A is declared twice"),
        (".branchtargets A;\nA: ret;", "a list of targets or a prototype has no label"),
        ("t: .branchtargets A;\nret;", "the label A is not in the function"),
        ("{" * 200 + "}" * 200, "more than 128 blocks are nested"),
        (".reg .b32 %x<99999999>;", "99,999,999 registers are declared"),
        (".reg .b32;", "a declaration names nothing"),
        (".reg .q32 %x;", "one state space and one type"),
        ("??", "a statement cannot be read"),
        ("mov.u32 %r1, 0", "a statement cannot be read"),
    ],
)
def test_what_is_wrong_with_a_body(body, message):
    with pytest.raises(PtxError) as raised:
        kernel(body)
    assert message in raised.value.fact
    assert raised.value.place.startswith("k.ptx, line 1")
