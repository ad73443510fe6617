"""Accesses at addresses that are not known, and strong loads, between the barriers of a whole CTA."""

import pytest

from pipesim.model.finding import Verdict
from pipesim.prove.check import check
from tests.support.small_ptx import SET_UP, program_of

READ_TWO = SET_UP.format(first=1, count=1)
MEET = " bar.sync 0;\n"
NO_BARRIERS = " mov.u32 %r0, %tid.x;\n shr.u32 %r1, %r0, 5;\n and.b32 %r2, %r0, 31;\n"
#: Each thread stores where data says, and reads what is at another such place.
DATA = " ld.global.u32 %r20, [%rd1];\n and.b32 %r20, %r20, 252;\n mov.u32 %r21, tile;\n add.u32 %r21, %r21, %r20;\n"
SCATTER, GATHER = " st.shared.u32 [%r21], %r2;\n", " ld.shared.u32 %r22, [%r21];\n"
READ = " ld.shared.u32 %r22, [tile];\n"
COUNT, CLEAR = " red.shared.add.u32 [%r21], 1;\n", " st.shared.u32 [tile], 0;\n"
ONE = " setp.ne.u32 %p1, %r1, 0;\n @%p1 bra others;\n"  # warp 0 alone
ARRIVES = " bar.arrive 1, 64;\n" + SCATTER + " bra end;\n"  # and goes on before the other warp has come


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (ONE + SCATTER + "others:\n" + MEET + GATHER, Verdict.PROVED),
        (ONE + SCATTER + "others:\n" + GATHER, Verdict.UNKNOWN),
        (SCATTER + MEET + GATHER, Verdict.PROVED),  # where two warps store to the same place they store the same
        (SCATTER + MEET + READ, Verdict.PROVED),  # what nothing else has written
        (SCATTER + READ, Verdict.UNKNOWN),
        (COUNT + MEET + GATHER, Verdict.PROVED),
        (COUNT + GATHER, Verdict.UNKNOWN),
        (COUNT + " red.shared.add.u32 [tile], 1;\n", Verdict.PROVED),
        (ONE + CLEAR + "others:\n" + MEET + COUNT, Verdict.PROVED),
        (ONE + CLEAR + "others:\n" + COUNT, Verdict.UNKNOWN),
        (ONE + " bar.sync 1, 32;\n" + SCATTER + "others:\n" + GATHER, Verdict.UNKNOWN),  # not of the whole CTA
        (ONE + CLEAR + "others:\n" + GATHER + MEET, Verdict.UNKNOWN),
        (ONE + ARRIVES + "others:\n bar.sync 1, 64;\n" + GATHER + "end:\n", Verdict.UNKNOWN),
    ],
)
def test_what_data_decides_is_apart_by_barriers_of_the_whole_cta(body: str, verdict: Verdict):
    assert check(program_of(NO_BARRIERS + DATA + body), 2_000).verdict is verdict


@pytest.mark.parametrize(("rows", "verdict"), [(8, Verdict.PROVED), (7, Verdict.UNKNOWN)])
def test_each_thread_has_its_own_column_of_a_table(rows: int, verdict: Verdict):
    """As counters of a radix sort: data decides the row, and the threads of two warps are side by side."""
    column = f" shr.u32 %r20, %r20, 6;\n shl.b32 %r20, %r20, {rows};\n mad.lo.u32 %r21, %r0, 4, %r20;\n"
    column += " mov.u32 %r23, tile;\n add.u32 %r21, %r21, %r23;\n"
    assert check(program_of(NO_BARRIERS + DATA + column + GATHER + SCATTER), 2_000).verdict is verdict


#: A loop that data ends: a search, one that stores, and ones that may wait for another thread.
LOOP = " mov.u32 %r30, %r21;\nmore:\n {}\n add.u32 %r30, %r30, %r31;\n setp.ne.u32 %p5, %r31, 0;\n @%p5 bra more;\n"
SEARCH = LOOP.format("ld.shared.u32 %r31, [%r30];")
FILL = LOOP.format("ld.global.u32 %r31, [%rd1];\n st.shared.u32 [%r30], %r31;")
LOOK = LOOP.format("ld.shared.u32 %r31, [%r30];\n ld.volatile.shared.u32 %r32, [tile];\n or.b32 %r31, %r31, %r32;")
LOCK = LOOP.format("atom.shared.cas.b32 %r31, [tile+8], 0, 1;\n ld.shared.u32 %r32, [%r30];")


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        (ONE + CLEAR + "others:\n" + MEET + SEARCH, Verdict.PROVED),
        (ONE + CLEAR + "others:\n" + SEARCH, Verdict.UNKNOWN),
        (FILL + MEET + SEARCH.replace("more", "next"), Verdict.PROVED),
        (FILL + SEARCH.replace("more", "next"), Verdict.UNKNOWN),
        (ONE + CLEAR + "others:\n" + MEET + LOOK, Verdict.UNKNOWN),
        (ONE + CLEAR + "others:\n" + MEET + LOCK, Verdict.UNKNOWN),
    ],
)
def test_a_loop_that_data_ends_accesses_shared_memory_anywhere(body: str, verdict: Verdict):
    assert check(program_of(NO_BARRIERS + DATA + body), 2_000).verdict is verdict


@pytest.mark.parametrize(("index", "verdict"), [("252", Verdict.PROVED), ("-4", Verdict.UNKNOWN)])
def test_an_atomic_that_may_change_an_mbarrier_is_not_proved(index: str, verdict: Verdict):
    body = READ_TWO + DATA.replace("252", index) + COUNT
    assert check(program_of(body), 2_000).verdict is verdict
    assert check(program_of(body.replace("tile", "bars")), 2_000).verdict is Verdict.UNKNOWN


#: Warp 0 leaves a word, which all read by a strong load; then one waits for an arrival that never comes.
HANGS = "wait:\n mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;\n @!%p9 bra wait;\nover:\n"
LEFT = (
    ONE
    + " @!%p0 st.shared.u32 [tile], 7;\nothers:\n{meet} ld.volatile.shared.u32 %r20, [tile];\n"
    + " setp.ne.u32 %p4, %r20, 7;\n @%p4 bra over;\n"
)


@pytest.mark.parametrize(("meet", "verdict"), [(MEET, Verdict.REFUTED), ("", Verdict.UNKNOWN)])
def test_a_strong_load_of_what_a_barrier_orders_leaves_a_finding_certain(meet: str, verdict: Verdict):
    program = program_of(READ_TWO + LEFT.format(meet=meet) + HANGS)
    assert check(program, 2_000).verdict is verdict
    assert bool(program.coverage.weakened) == (verdict is Verdict.UNKNOWN)


@pytest.mark.parametrize(("used", "verdict"), [(12, Verdict.PROVED), (13, Verdict.REFUTED)])
def test_the_last_words_of_a_vector_that_nothing_uses_are_not_read(used: int, verdict: Verdict):
    store = " st.shared.v2.u32 [tile], {%r2, %r2};\n st.shared.u32 [tile+8], %r2;\n"  # three words of four
    load = f" ld.shared.v4.u32 {{%r10, %r11, %r12, %r13}}, [tile];\n setp.eq.u32 %p7, %r{used}, 0;\n"
    body = NO_BARRIERS + " setp.ne.u32 %p1, %r0, 0;\n @%p1 bra others;\n" + store + "others:\n" + MEET + load
    assert check(program_of(body), 2_000).verdict is verdict
