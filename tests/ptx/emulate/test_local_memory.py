"""Local memory of a warp: words that decide, what overlaps them, and stores that may not have happened."""

from pipesim.model.coverage import LENIENT
from pipesim.prove.check import check
from pipesim.ptx.launch.values import Pointer
from tests.support.small_ptx import SET_UP, program_of, word

START = """ .local .align 8 .b8 depot[64];
 mov.u32 %r40, depot;
 ld.param.u32 %r20, [n];
 setp.eq.u32 %p6, %r20, 0;
 st.local.u32 [%r40], 1;
 st.local.u32 [%r40+8], 1;
"""
#: The kernel ends only if the word is not 0.
DECIDES = """ ld.local.{kind} %r11, [%r40];
 setp.eq.u32 %p5, %r11, 0;
 @%p5 bra over;
 @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3];
over:
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;
 @!%p9 bra again;
"""


def verdict(body: str, open_: int | None = None, kind: str = "u32") -> str:
    text = SET_UP.format(first=1, count=32) + START + body + DECIDES.format(kind=kind)
    return check(program_of(text, params=".param .u32 n", values=[word(open_)]).with_strictness(LENIENT)).verdict.value


def test_a_store_at_an_address_that_is_not_known_may_be_anywhere() -> None:
    store = " add.u32 %r41, %r40, %r20;\n st.local.u32 [%r41], 0;\n"
    assert verdict(store) == "unknown"
    assert verdict(store, 8) == "proved"
    assert verdict(store, 0) == "refuted"


def test_a_store_under_a_guard_that_is_not_known_may_have_happened() -> None:
    assert verdict(" @%p6 st.local.u32 [%r40], 0;\n") == "unknown"
    assert verdict(" @%p6 st.local.u32 [%r40+8], 0;\n") == "proved"
    assert verdict(" @%p6 st.local.u32 [%r40], 0;\n", 1) == "proved"


LOOP = """ mov.u32 %r21, 0;
next:
 ld.local.u32 %r22, [%r40+{0}];
 add.u32 %r22, %r22, 1;
 st.local.u32 [%r40+{0}], %r22;
 add.u32 %r21, %r21, 1;
 setp.lt.u32 %p7, %r21, %r20;
 @%p7 bra next;
"""


def test_what_a_loop_of_unknown_length_stores_is_not_known() -> None:
    assert verdict(LOOP.format(0)) == "unknown"
    assert verdict(LOOP.format(0), 3) == "proved"


def test_a_store_by_the_answer_of_a_try_may_have_happened() -> None:
    asks = """ setp.eq.u32 %p8, %r1, 1;
 @!%p8 bra asked;
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3+8], 0;
 @%p9 bra asked;
 st.local.u32 [%r40+{0}], 0;
asked:
 @!%p8 mbarrier.arrive.shared::cta.b64 _, [%r3+8];
"""
    assert verdict(asks.format(0)) == "unknown"
    assert verdict(asks.format(8)) == "proved"


def test_a_store_of_few_bytes_leaves_those_and_no_more() -> None:
    assert verdict(" st.local.u8 [%r40], 256;\n", kind="u8") == "refuted"
    assert verdict(" st.local.u8 [%r40], 257;\n", kind="u8") == "proved"
    assert verdict(" st.local.u16 [%r40], 257;\n st.local.u8 [%r40], 0;\n", kind="u16") == "unknown"
    assert verdict(" st.local.u8 [%r40+1], 1;\n st.local.u16 [%r40], 0;\n", kind="u16") == "refuted"


def test_what_is_there_already_is_known_after_a_store_that_may_have_happened() -> None:
    """As a loop around a try does which passes the address of the mbarrier to a function (nvcc -G)."""
    assert verdict(" @%p6 st.local.u32 [%r40], 1;\n") == "proved"
    passed = """ setp.ne.u32 %p4, %r1, 0;
 @%p4 bra met;
 @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3];
met:
call:
 st.local.u32 [%r40+8], %r{0};
 ld.local.u32 %r42, [%r40+8];
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r42], 0;
 @!%p9 bra call;
"""
    start = SET_UP.format(first=1, count=32) + START
    right, other = (start + passed.format(3), start + " add.u32 %r43, %r3, 8;\n" + passed.format(43))
    found = [check(program_of(text, params=".param .u32 n", values=[word(1)])).verdict.value for text in (right, other)]
    assert found == ["proved", "refuted"]


#: An atomic on one of 256 words, of which data decides which, by an address that was in local memory, as ``-G`` has it.
COUNT = """ .local .align 8 .b8 stack[16];
 ld.param.u64 %rd1, [x];
 ld.global.u32 %r9, [%rd1];
 and.b32 %r9, %r9, 255;
 mul.wide.u32 %rd4, %r9, 4;
 mov.u64 %rd2, tile;
 cvta.shared.u64 %rd2, %rd2;
 add.u64 %rd2, %rd2, %rd4;
 st.local.u64 [stack+8], %rd2;
 {0}
 ld.local.u64 %rd3, [stack+8];
 atom.add.u32 %r10, [%rd3], 1;
 setp.eq.u32 %p1, %r0, 32;
 @%p1 st.shared.u32 [tile+{1}], 1;
"""


def test_an_address_in_local_memory_stays_in_its_array() -> None:
    def of(between: str, other: int) -> str:
        text = SET_UP.format(first=1, count=1) + COUNT.format(between, other)
        return check(
            program_of(text, params=".param .u64 x", values=[Pointer()]).with_strictness(LENIENT)
        ).verdict.value

    assert of("", 1024) == "proved"
    assert of("", 1020) == "unknown"
    assert of("st.local.u32 [stack+12], %r9;", 1024) == "unknown"  # half of it is another word


#: A counter of eight bytes in local memory, as ``-G`` has it.
LAPS = """ .local .align 8 .b8 stack[16];
 mov.u64 %rd5, 0;
 st.local.u64 [stack+8], %rd5;
 mov.u32 %r30, 0;
next:
 mbarrier.arrive.shared::cta.b64 _, [%r3];
arrived:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], %r30;
 @!%p9 bra arrived;
 xor.b32 %r30, %r30, 1;
 ld.local.u64 %rd6, [stack+8];
 add.u64 %rd6, %rd6, 1;
 st.local.u64 [stack+8], %rd6;
 setp.lt.u64 %p7, %rd6, 100000;
 @%p7 bra next;
"""


def test_laps_that_a_counter_in_local_memory_counts_are_left_out() -> None:
    program = program_of(SET_UP.format(first=64, count=1) + LAPS)
    assert check(program).verdict.value == "proved"
    assert max(map(len, program.code)) < 100
