"""Calls that cannot be replaced by a body, and instructions that all lanes of a warp have to run together."""

import pytest

from pipesim.model.coverage import LENIENT
from pipesim.model.program import Program
from pipesim.prove.check import How, check
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch
from pipesim.ptx.text.read import read_module
from tests.support.small_ptx import SET_UP, text_of

WAIT = """again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;
 @!%p9 bra again;
"""
START = SET_UP.format(first=1, count=1)


def program(functions: str, body: str, warps: int = 2) -> Program:
    text = text_of(START + body).replace(".visible", functions + ".visible", 1)
    shape = (1, 1, 1)
    return extract(read_module(text, "small.ptx"), Launch("kernel", shape, (32 * warps, 1, 1), shape)).program


def verdict(of: Program) -> str:
    found = check(of.with_strictness(LENIENT))
    return found.verdict.value if found.how is not How.UNDEFINED else "undefined"


ARRIVE = ".func arrive (.reg .b32 %a)\n{{\n{0} mbarrier.arrive.shared::cta.b64 _, [%a];\n ret;\n}}\n"


def test_a_function_is_followed_unless_it_calls_itself() -> None:
    called = " @!%p0 call arrive, (%r3);\n" + WAIT
    assert verdict(program(ARRIVE.format(""), called)) == "proved"
    again = program(ARRIVE.format(" call arrive, (%a);\n"), called)
    assert verdict(again) == "unknown"
    assert "a function that calls itself" in again.coverage.stopped[0]


def test_a_function_whose_address_is_in_a_register_may_do_anything() -> None:
    known = program(ARRIVE.format(""), " @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3];\n" + WAIT)
    assert verdict(known) == "proved"
    body = " mov.u64 %rd1, arrive;\nproto: .callprototype _ (.reg .b32 _);\n call %rd1, (%r3), proto;\n" + WAIT
    assert "whose address is in a register" in program(ARRIVE.format(""), body).coverage.stopped[0]


def test_a_function_without_a_body_may_do_anything_unless_it_is_a_librarys() -> None:
    def calls(name: str) -> Program:
        function = f".extern .func {name} (.param .b32 a, .param .b64 b);\n"
        return program(function, f" @!%p0 call {name}, (%r2, %rd1);\n")

    assert verdict(calls("vprintf")) == "proved"
    assert "a call of outside" in calls("outside").coverage.stopped[0]
    assert verdict(calls("outside")) == "unknown"


@pytest.mark.parametrize("each", ["bar.sync 1, 128;", "setmaxnreg.dec.sync.aligned.u32 40;"])
def test_what_a_warp_runs_together_is_under_one_guard_for_all_lanes(each: str) -> None:
    guarded = f" setp.lt.u32 %p5, %r2, {{0}};\n @%p5 {each}\n"
    assert verdict(program("", guarded.format(32), warps=4)) == "proved"
    assert verdict(program("", guarded.format(16), warps=4)) == "refuted"
