"""Numbers in registers that are wider than their type, the carry, and masks of the lanes that execute."""

import pytest

from pipesim.ptx.emulate.arithmetic.integers import extended
from tests.support.small_ptx import SET_UP, program_of, said

#: One arrive if %r11 is the given word.
DECIDES = " setp.ne.u32 %p5, %r11, {0};\n @%p5 bra over;\n mbarrier.arrive.shared::cta.b64 _, [%r3];\nover:\n"
UPPER = " shr.u64 %rd5, %rd5, 32;\n cvt.u32.u64 %r11, %rd5;\n"


def is_(word: int, body: str) -> bool:
    program = program_of(SET_UP.format(first=32, count=1) + body + DECIDES.format(word), warps=1)
    assert program.coverage.complete
    return "ARRIVE" in " ".join(said(program, 0))


@pytest.mark.parametrize(
    ("word", "body"),
    [
        (0xFFFFFFFF, " mov.u32 %r10, 255;\n cvt.s8.s32 %r11, %r10;\n"),
        (0x7F, " mov.u32 %r10, 127;\n cvt.s8.s32 %r11, %r10;\n"),
        (255, " mov.u32 %r10, 511;\n cvt.u8.u32 %r11, %r10;\n"),
        (0xFFFF8000, " mov.u32 %r10, 32768;\n cvt.s32.s16 %r11, %r10;\n"),
        (0xFFFFFFFF, " st.shared.u32 [tile], -1;\n ld.shared.s32 %rd5, [tile];\n" + UPPER),
        (0, " st.shared.u32 [tile], -1;\n ld.shared.u32 %rd5, [tile];\n" + UPPER),
        (0xFFFFFF80, " st.shared.u8 [tile], 128;\n ld.shared.s8 %r11, [tile];\n"),
        (0x80, " st.shared.u8 [tile], 128;\n ld.shared.u8 %r11, [tile];\n"),
    ],
)  # fmt: skip
def test_a_register_that_is_wider_than_its_number_gets_copies_of_the_sign(word: int, body: str) -> None:
    assert is_(word, body)
    assert not is_(word ^ 1, body)


def test_lanes_whose_guard_does_not_hold_are_not_active() -> None:
    half = " setp.lt.u32 %p7, %r2, 16;\n mov.u32 %r11, 0;\n @{0}%p7 activemask.b32 %r11;\n{1}"
    first = " shfl.sync.idx.b32 %r11, %r11, {0}, 31, -1;\n"
    assert is_(0xFFFF, half.format("", first.format(0)))
    assert is_(0xFFFF0000, half.format("!", first.format(31)))
    assert is_(0xFFFFFFFF, " activemask.b32 %r11;\n")


def test_a_carry_is_added_and_a_borrow_subtracted() -> None:
    body = " mov.u32 %r10, -2;\n {0}.cc.u32 %r10, %r10, {1};\n {0}c.u32 %r11, 7, 0;\n"
    for opcode, by, word in (("add", 1, 7), ("add", 2, 8), ("sub", -2, 7), ("sub", -1, 6)):
        assert is_(word, body.format(opcode, by))


@pytest.mark.parametrize(
    "body", [" addc.u32 %r11, 0, 0;\n", " mov.u32 %r10, 2147483648;\n slct.u32.f32 %r11, 1, 2, %r10;\n"]
)
def test_a_carry_that_nothing_wrote_and_the_sign_of_a_float_are_not_known(body: str) -> None:
    program = program_of(SET_UP.format(first=32, count=1) + body + DECIDES.format(1), warps=1)
    assert program.coverage.stopped
    assert "slct" not in body or is_(2, body.replace("f32", "s32"))


def test_a_guard_that_is_one_of_two_results_is_not_used_after_it_is_written() -> None:
    body = " setp.eq.u32 %p7, 0, 0;\n @%p7 setp.ne.u32 %p7|%p8, 1, 1;\n selp.u32 %r11, 1, 0, %p8;\n"
    program = program_of(SET_UP.format(first=32, count=1) + body + DECIDES.format(1), warps=1)
    assert program.coverage.stopped


def test_lanes_are_extended_one_by_one() -> None:
    assert [extended(a, 8, 16) for a in (127, 128, 255)] == [127, 0xFF80, 0xFFFF]
    assert extended(0x80000000, 32, 16) == 0x80000000
