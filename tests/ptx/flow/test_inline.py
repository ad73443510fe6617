"""Calls of device functions become their bodies."""

import pytest

from pipesim.errors import PtxError
from pipesim.ptx.flow.graph import graph_of
from pipesim.ptx.flow.inline import callee, inline_calls
from pipesim.ptx.text.instruction import Address, CodeLabel, Guard, Register, Symbol
from tests.support.ptx_text import module

TWICE = """.func (.param .b32 out) twice(.param .b32 in)
{
.reg .b32 %r<3>;
.reg .pred %p<2>;
ld.param.u32 %r1, [in];
@%p1 bra DONE;
add.u32 %r1, %r1, %r1;
DONE:
st.param.b32 [out], %r1;
ret;
}
"""
CALL = """{{ .param .b32 a;
.param .b32 b;
st.param.b32 [a], %r{0};
call.uni (b), twice, (a);
ld.param.b32 %r{0}, [b]; }}
"""


def made(body: str, before: str):
    found = module(body, before=before)
    return inline_calls(found, found.entries[0])


def test_two_calls_have_registers_labels_and_parameters_of_their_own():
    function = made(CALL.format(7) + CALL.format(8) + "ret;", TWICE)
    assert [each.mnemonic for each in function.body] == [
        *["st.param.b32", "ld.param.u32", "bra", "add.u32", "st.param.b32", "bra", "ld.param.b32"] * 2,
        "ret",
    ]
    assert [each.position for each in function.body] == list(range(15))
    second = function.body[7:14]
    assert second[1].operands == (Register("%r1$2i"), Address(Symbol("a$2"), 0))
    assert (second[2].guard, second[2].operands) == (Guard("%p1$2i", negated=False), (CodeLabel("DONE$2i"),))
    assert second[4].operands[0] == Address(Symbol("b$2"), 0)
    assert second[5].operands == (CodeLabel("twice$end2"),)
    assert function.labels["DONE$2i"] == 11
    assert function.labels["twice$end2"] == 13
    assert function.registers["%r1$1i"] == "b32"
    assert len(graph_of(function).blocks) == 7


def test_parameters_in_registers_are_moved():
    before = ".func (.reg .b32 %out) f(.reg .b32 %in)\n{ add.u32 %out, %in, 1; ret; }\n"
    function = made("call (%r5), f, (%r6);\nret;", before)
    assert [(each.opcode, each.operands[:2]) for each in function.body[:2]] == [
        ("mov", (Register("%in$1i"), Register("%r6"))),
        ("add", (Register("%out$1i"), Register("%in$1i"))),
    ]
    assert function.body[3].operands == (Register("%r5"), Register("%out$1i"))


@pytest.mark.parametrize(
    ("before", "call"),
    [
        (".extern .func outside();\n", "call outside;"),
        ("", "call (%r1), %rd1, (%r2), proto;"),
        (".func f()\n{ ret; }\n", "mov.u64 %rd1, f;"),
    ],
)
def test_what_stays_as_it_is(before, call):
    function = made(f"{call}\nret;", before)
    assert [each.opcode for each in function.body] == [call.split(" ", maxsplit=1)[0].split(".")[0], "ret"]


def test_a_function_that_calls_itself_is_inlined_once():
    function = made("call f;\nret;", ".func f()\n{ call f; ret; }\n")
    assert [each.opcode for each in function.body] == ["call", "bra", "ret"]
    assert callee(function.body[0]) == "f"


def test_shared_variables_of_what_is_called_are_the_kernels():
    function = made("call f;\nret;", ".func f()\n{ .shared .b64 x[2]; ret; }\n")
    assert [(each.name, each.size) for each in function.shared] == [("x", 16)]


def test_a_function_that_grows_without_end_is_refused(monkeypatch):
    monkeypatch.setattr("pipesim.ptx.flow.inline.MAX_KERNEL_INSTRUCTIONS", 1000)
    functions = [".func f0()\n{ ret; }\n"]
    functions += [f".func f{n}()\n{{ call f{n - 1}; call f{n - 1}; call f{n - 1}; ret; }}\n" for n in range(1, 14)]
    with pytest.raises(PtxError, match="k has more than 1,000 instructions with its calls inlined"):
        made("call f13;\nret;", "".join(functions))


def test_calls_that_are_nested_too_deeply():
    functions = [".func f0()\n{ ret; }\n"]
    functions += [f".func f{n}()\n{{ call f{n - 1}; ret; }}\n" for n in range(1, 100)]
    with pytest.raises(PtxError, match="more than 64 functions are called inside each other"):
        made("call f99;\nret;", "".join(functions))
