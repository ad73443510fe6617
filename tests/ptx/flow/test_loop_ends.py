"""Loops on which no synchronisation depends: that they end is assumed, where it does not follow from how they count."""

import pytest

from pipesim.model.coverage import Assumed, Assumption
from pipesim.model.finding import Verdict
from pipesim.prove.check import check
from tests.support.small_ptx import SET_UP, program_of, word

BEFORE = SET_UP.format(first=1, count=1) + " ld.param.u32 %r20, [n];\n mov.u32 %r9, 0;\n mov.u32 %r12, %clock;\n"
BACK = " @%p1 bra lap;\n bar.sync 0;\n"
ENDS = {
    "to a bound": " add.s32 %r9, %r9, 3;\n setp.lt.s32 %p1, %r9, %r20;\n",
    "by 1": " sub.s32 %r8, %r9, 1;\n mov.u32 %r9, %r8;\n setp.ne.s32 %p1, %r8, %r20;\n",
    "by a part": " add.s32 %r9, %r9, 4;\n sub.s32 %r8, %r9, %r18;\n setp.ne.s32 %p1, %r8, 0;\n",
    "by a size": " mov.u32 %r7, %ntid.x;\n add.s32 %r9, %r9, %r7;\n setp.lt.s32 %p1, %r9, %r20;\n",
    "a time": " mov.u32 %r7, %clock;\n sub.s32 %r8, %r7, %r12;\n setp.lt.u32 %p1, %r8, %r20;\n",
}
MAY_NOT = {
    "to and fro": " xor.b32 %r9, %r9, 1;\n setp.le.u32 %p1, %r9, 1;\n",
    "no step": " add.s32 %r9, %r9, 0;\n setp.lt.s32 %p1, %r9, %r20;\n",
    "past it": " add.s32 %r9, %r9, 4;\n setp.ne.s32 %p1, %r9, %r20;\n",
    "a moving bound": " add.s32 %r9, %r9, 1;\n add.s32 %r20, %r20, 1;\n setp.lt.s32 %p1, %r9, %r20;\n",
    "not each lap": " @%p1 add.s32 %r9, %r9, 1;\n setp.lt.s32 %p1, %r9, %r20;\n",
    "one that adds and one that subtracts": " add.s32 %r9, %r9, 1;\n sub.s32 %r8, %r20, %r9;\n sub.s32 %r9, %r8, 1;\n"
    " setp.ne.s32 %p1, %r9, 0;\n",
    "below 0": " sub.s32 %r9, %r9, 1;\n setp.ge.u32 %p1, %r9, 0;\n",
    "past 0": " sub.s32 %r12, %r12, 2;\n setp.gt.u32 %p1, %r12, 0;\n",
    "beyond all": " add.s32 %r9, %r9, 1;\n setp.le.s32 %p1, %r9, 2147483647;\n",
    "by a size less 1": " mov.u32 %r7, %ntid.x;\n add.s32 %r9, %r9, %r7;\n sub.s32 %r9, %r9, 1;\n"
    " setp.lt.s32 %p1, %r9, %r20;\n",
    "in an inner loop": " mov.u32 %r10, 0;\ninner:\n add.s32 %r9, %r9, 1;\n add.s32 %r10, %r10, 1;\n"
    " setp.lt.s32 %p3, %r10, 4;\n @%p3 bra inner;\n setp.ne.s32 %p1, %r9, 5;\n",
}
REST = " and.b32 %r19, %r20, 3;\n sub.s32 %r18, %r20, %r19;\n"  # what is left of n by fours


@pytest.mark.parametrize("loop", [*ENDS, *MAY_NOT, 2**31 - 3, 2**31 - 2])
def test_that_a_loop_ends_is_assumed_unless_it_counts_to_a_bound(loop: str | int) -> None:
    """By threes below 2^31 - 3 it comes to a number that is not below; below 2^31 - 2 to -2^31."""
    bound, loop = (loop, "to a bound") if isinstance(loop, int) else (None, loop)
    body = f"{BEFORE}{REST}lap:\n{(ENDS | MAY_NOT)[loop]}{BACK}"
    program = program_of(body, params=".param .u32 n", values=[word(bound)])
    assert check(program).verdict is Verdict.PROVED
    may_not = loop in MAY_NOT or bound == 2**31 - 2
    said = [Assumed(Assumption.LOOPS, "the loop at small.ptx:28 ends")] if may_not else []
    assert list(program.coverage.assumed) == said


@pytest.mark.parametrize(("compared", "whole"), [("%r2, 0", False), ("%r2, 40", True), ("%r20, 0", False)])
def test_a_warp_that_comes_to_a_loop_without_end_is_followed_no_further(compared: str, *, whole: bool) -> None:
    """No thread has number 40 of a warp; the parameter may be 0."""
    body = f"{BEFORE} setp.ne.u32 %p1, {compared};\n @%p1 bra past;\nstays:\n nanosleep.u32 20;\n bra stays;\npast:\n"
    program = program_of(body, params=".param .u32 n", values=[word(None)])
    assert (check(program).verdict is Verdict.PROVED) is whole
    assert bool(program.coverage.stopped) is not whole


MIDDLE = " setp.eq.u32 %p2, %r20, 0;\n @%p2 bra mid;\n"
COUNT = " add.s32 %r9, %r9, 1;\n setp.eq.s32 %p2, %r20, 9;\n"
PARTS = {
    "two entries": (f"{MIDDLE}lap:\n add.s32 %r9, %r9, 0;\nmid:\n setp.ne.s32 %p1, %r9, 7;\n{BACK}", [30]),
    "followed": (
        f"{MIDDLE}lap:\n add.s32 %r9, %r9, 0;\nmid:\n setp.ne.s32 %p1, %r1, %r1;\n bar.sync 1, 32;\n{BACK}",
        [],
    ),
    "two lines of a loop": (
        f"lap:\n setp.eq.s32 %p2, %r20, 7;\n @%p2 bra lap;\n bar.sync 0;\n setp.ne.s32 %p1, %r1, %r1;\n{BACK}",
        [28],
    ),
    "a counter in it": (
        f"lap:\n{MIDDLE}in:\n mov.u32 %r8, 1;\nmid:\n{COUNT} @%p2 bra in;\n setp.ne.s32 %p1, %r9, %r20;\n{BACK}",
        [28, 31],
    ),
}


@pytest.mark.parametrize(("loop", "lines"), PARTS.values(), ids=PARTS)
def test_lanes_may_stay_in_any_part_of_the_code_that_leads_to_itself(loop: str, lines: list[int]) -> None:
    program = program_of(f"{BEFORE}{REST}{loop}", params=".param .u32 n", values=[word(None)])
    assert check(program).verdict is Verdict.PROVED
    assert [each.what for each in program.coverage.assumed] == [f"the loop at small.ptx:{n} ends" for n in lines]


def test_a_loop_without_end_that_has_two_entries_is_not_passed_over() -> None:
    past = " setp.eq.s32 %p1, %r20, 7;\n @%p1 bra past;\n"
    body = (
        f"{BEFORE}{past}{MIDDLE}lap:\n nanosleep.u32 20;\nmid:\n add.s32 %r9, %r9, 0;\n bra lap;\npast:\n bar.sync 0;\n"
    )
    assert check(program_of(body, params=".param .u32 n", values=[word(None)])).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(("bound", "ends"), [(-1, False), (5, True)])
def test_a_signed_bound_fills_a_wider_register(bound: int, *, ends: bool) -> None:
    """As the size of a loop in 64 bits, -1 is 2^64 - 1: steps of 4 jump over it."""
    body = (
        SET_UP.format(first=1, count=1)
        + """ .reg .b64 %i, %n;
 ld.param.s32 %n, [n];
 mov.u64 %i, 0;
lap:
 add.s64 %i, %i, 4;
 setp.lt.u64 %p1, %i, %n;
"""
    )
    program = program_of(body + BACK, params=".param .u32 n", values=[word(bound)])
    assert (not program.coverage.assumed) is ends
