"""Copies at addresses of global memory that are aligned in no execution."""

import random
from collections.abc import Callable

import pytest

from pipesim.model.finding import FaultKind
from pipesim.prove.check import check
from pipesim.ptx.flow import addresses
from pipesim.ptx.launch.values import Content, Number, Pointer
from tests.support.small_ptx import SET_UP, program_of, text_of

START = SET_UP.format(first=1, count=1) + " @%p0 bra over;\n ld.param.u64 %rd0, [x];\n cvta.to.global.u64 %rd1, %rd0;\n"
LOAD = "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd2], 16, [%r3];"
STORE = "cp.async.bulk.global.shared::cta.bulk_group [%rd2], [tile], 16;"
SMALL = "cp.async.ca.shared.global [tile], [%rd2], 8;"
IN_LOOP = """ mov.u64 %rd2, %rd1;
 mov.u32 %r10, 0;
again:
 add.s64 %rd2, %rd2, {};
 add.u32 %r10, %r10, 1;
 setp.lt.u32 %p8, %r10, 1;
 @%p8 bra again;
"""
INDEX = " mov.u32 %r10, %clock;\n mul.wide.u32 %rd3, %r10, {};\n add.s64 %rd3, %rd1, %rd3;\n add.s64 %rd2, %rd3, {};\n"
PLUS = " add.s64 %rd2, %rd1, {};\n"


def said(body: str, copy: str, x: Content) -> list[str]:
    """What is forbidden of a copy, all at its line."""
    whole = f"{START}{body} {copy}\nover:\n"
    program = program_of(whole, 1, params=".param .u64 x", values=[x])
    found = {each.kind for each in check(program).refutations} & {FaultKind.ILLEGAL_OPERAND}
    assert bool(found) == bool(program.coverage.forbidden)
    number = text_of(whole, ".param .u64 x").split("\n").index(f" {copy}") + 1
    assert {each.place for each in program.coverage.forbidden} <= {f"small.ptx:{number}"}
    return [each.what for each in program.coverage.forbidden]


@pytest.mark.parametrize(
    ("body", "copy", "x", "wrong"),
    [
        (PLUS.format(4), LOAD, Pointer(), "4 bytes above a multiple of 16"),
        (PLUS.format(16), LOAD, Pointer(), ""),
        (PLUS.format(4), STORE, Pointer(), "4 bytes above a multiple of 16"),
        (PLUS.format(32), STORE, Pointer(), ""),
        (PLUS.format(4), SMALL, Pointer(), "4 bytes above a multiple of 8"),
        (PLUS.format(8), SMALL, Pointer(), ""),
        (PLUS.format(4), SMALL.replace("8;", "8, %r2;"), Pointer(), ""),  # perhaps it reads nothing
        (PLUS.format(4), LOAD, Pointer(4), ""),  # the pointer may be 12 above a multiple of 16
        (PLUS.format(2), LOAD, Pointer(4), "2 bytes above a multiple of 4"),
        (PLUS.format(4), LOAD, Number("u64", 0x1000C), ""),
        (PLUS.format(4), LOAD, Number("u64", None), ""),
        (INDEX.format(256, 8), LOAD, Pointer(), "8 bytes above a multiple of 16"),
        (INDEX.format(4, 8), LOAD, Pointer(), ""),  # the index may be even
        (INDEX.format(4, 2), LOAD, Pointer(), "2 bytes above a multiple of 4"),
        (IN_LOOP.format(16), LOAD.replace("%rd2", "%rd2+4"), Pointer(), "4 bytes above a multiple of 16"),
        (IN_LOOP.format(4), LOAD, Pointer(), ""),
        (PLUS.format(4) + " and.b64 %rd2, %rd2, -16;\n", LOAD, Pointer(), ""),
        (" or.b64 %rd2, %rd1, 1;\n", LOAD, Pointer(1), "1 byte above a multiple of 2"),
    ],
)  # fmt: skip
def test_a_copy_that_is_never_aligned_is_a_finding(body: str, copy: str, x: Content, wrong: str) -> None:
    found = said(body, copy, x)
    assert len(found) == bool(wrong)
    assert all(wrong in each for each in found)


def test_the_remainder_of_a_result_is_that_of_every_value() -> None:
    made = random.Random(7)
    naive: dict[str, Callable[[int, int], int]] = {
        "add": lambda a, b: a + b, "sub": lambda a, b: a - b, "mul": lambda a, b: a * b, "and": lambda a, b: a & b,
        "or": lambda a, b: a | b, "xor": lambda a, b: a ^ b, "min": min, "max": max,
    }  # fmt: skip
    for opcode, rule in naive.items():
        for _ in range(300):
            moduli = [1 << made.randrange(5) for _ in range(2)]
            given = [(modulus, made.randrange(modulus)) for modulus in moduli]
            modulus, rest = addresses.RULES[opcode](*given)
            values = [[rest + modulus * made.randrange(99) for modulus, rest in given] for _ in range(40)]
            assert {rule(*each) % modulus for each in values} == {rest}, (opcode, given)


def test_a_load_without_a_size_is_not_followed() -> None:
    """No assembler takes it; the fuzzer wrote it."""
    assert said(f" ld.param.wide %rd1, [x];\n{PLUS.format(8)}", LOAD, Pointer(256)) == []
