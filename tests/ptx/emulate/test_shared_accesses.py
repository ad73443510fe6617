"""Accesses to shared memory that are more than a load or store of known lanes: each wrong kernel has a right twin."""

import pytest

from pipesim.model.coverage import LENIENT, Assumption
from pipesim.model.finding import Fault, FaultKind
from pipesim.model.ops import Op
from pipesim.model.program import Program
from pipesim.prove.check import check
from tests.support.small_ptx import SET_UP, program_of, word

START = SET_UP.format(first=1, count=1) + " mov.u64 %rd1, 268435456;\n setp.eq.u32 %p1, %r1, 1;\n"
MEET = " bar.sync 0;\n"
LANES = " shl.b32 %r4, %r2, 2;\n mov.u32 %r5, tile;\n add.u32 %r5, %r5, %r4;\n"
#: The kernel ends only if what was loaded is not the given value.
DECIDES = """ setp.eq.u32 %p5, %r11, {0};
 @%p5 bra over;
 @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3];
over:
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;
 @!%p9 bra again;
"""


def by_warps(first: str, second: str, between: str = "") -> str:
    """What warp 0 does, and what warp 1 does after that or at any time."""
    return f"{START} @%p1 bra one;\n {first}\none:\n{between} @!%p1 bra both;\n {second}\nboth:\n"


def verdict(body: str, open_: int | None = None) -> str:
    found = check(program_of(body, params=".param .u32 n", values=[word(open_)]).with_strictness(LENIENT))
    kinds = sorted(shown.kind.name for shown in found.refutations)
    return " ".join([found.verdict.value, *kinds])


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ("red.shared.add.u32 [tile], 1;", "st.shared.u32 [tile], 5;"),
        ("st.shared.u32 [tile], 5;", "atom.shared.add.u32 %r9, [tile], 1;"),
        ("st.bulk.weak.shared::cta [tile], 1024, 0;", "st.shared.u32 [tile+512], 5;"),
        ("mov.u32 %r6, tile;\n cvt.u64.u32 %rd2, %r6;\n cvta.shared.u64 %rd2, %rd2;\n red.add.u32 [%rd2], 1;",
         "st.shared.u32 [tile], 5;"),
    ],
)  # fmt: skip
def test_what_changes_shared_memory_is_ordered_or_a_race(first: str, second: str) -> None:
    assert verdict(by_warps(first, second)) == "refuted RACE"
    assert verdict(by_warps(first, second, MEET)) == "proved"


def test_atomics_may_come_in_any_order() -> None:
    assert verdict(by_warps("red.shared.add.u32 [tile], 1;", "red.shared.add.u32 [tile], 2;")) == "proved"


def test_what_an_atomic_of_many_lanes_leaves_is_not_known() -> None:
    zero = f"{START}{LANES} @!%p0 st.shared.u32 [tile], 0;\n{MEET}"
    load = f"{MEET} ld.shared.u32 %r11, [tile];\n"
    assert verdict(zero + load + DECIDES.format(1)) == "proved"
    assert verdict(zero + " @!%p1 red.shared.add.u32 [%r5], 1;\n" + load + DECIDES.format(1)) == "unknown"


def test_of_lanes_that_store_to_one_place_any_may_be_last() -> None:
    store = f"{START}{LANES}{{0}} @!%p1 st.shared.u32 [%r5], %r2;\n{MEET} ld.shared.u32 %r11, [tile];\n"
    assert verdict(store.format("") + DECIDES.format(1)) == "proved"
    pairs = " and.b32 %r4, %r2, 1;\n shl.b32 %r4, %r4, 2;\n mov.u32 %r5, tile;\n add.u32 %r5, %r5, %r4;\n"
    assert verdict(store.format(pairs) + DECIDES.format(1)) == "unknown"


def test_warps_that_store_known_values_to_the_same_bytes_store_the_same_or_race() -> None:
    store = (
        START + LANES + " st.shared.u32 [%r5], {0};\n" + MEET + " ld.shared.u32 %r11, [tile+4];\n" + DECIDES.format(7)
    )
    assert verdict(store.format("%r2")) == "proved"
    assert verdict(store.format("%r0")) == "refuted RACE"


def test_stores_of_one_instruction_are_compared_whatever_a_warp_has_stored_just_before() -> None:
    word_of_launch = START + " ld.param.u32 %r20, [n];\n @!%p0 st.shared.u32 [tile+12], 5;\n"
    assert verdict(word_of_launch + " st.shared.u32 [tile], %r20;\n") == "proved"
    twice = " @!%p1 st.shared.u32 [tile], %r20;\n @%p1 st.shared.u32 [tile], %r20;\n"
    assert verdict(word_of_launch + twice) == "refuted RACE"


def test_a_store_under_a_guard_that_is_not_known_may_have_happened() -> None:
    one = f"{START} @!%p0 st.shared.u32 [tile], 1;\n ld.param.u32 %r20, [n];\n setp.eq.u32 %p6, %r20, 0;\n"
    store = " @%p0 bra stored;\n @%p6 st.shared.u32 [tile+{0}], 0;\nstored:\n" + MEET + " ld.shared.u32 %r11, [tile];\n"
    assert verdict(one + store.format(4) + DECIDES.format(0)) == "proved"
    assert verdict(one + store.format(0) + DECIDES.format(0)) == "unknown"
    assert verdict(one + store.format(0) + DECIDES.format(0), 1) == "proved"


@pytest.mark.parametrize("access", ["st.shared.u32 [tile+{0}], 3;", "ld.shared.u32 %r8, [tile+{0}];"])
def test_an_access_after_a_copy_of_the_same_lane_is_after_its_issue(access: str) -> None:
    copy = " @!%p0 cp.async.ca.shared.global [tile], [%rd1], 16;\n"
    own = f"{START} @!%p0 st.shared.u32 [tile+16], 1;\n{copy} @!%p0 {{0}}\n"
    end = " cp.async.wait_all;\n"
    assert verdict(own.format(access.format(16)) + end) == "proved"
    assert verdict(own.format(access.format(0)) + end) == "refuted RACE"
    assert verdict(own.format("cp.async.wait_all;") + f" @!%p0 {access.format(0)}\n") == "proved"


def test_cp_async_copies_4_8_or_16_bytes() -> None:
    copy = START + " @!%p0 cp.async.ca.shared.global [tile], [%rd1], {};\n cp.async.wait_all;\n"
    found = [verdict(copy.format(size)) for size in (0, 4, 8, 12, 16)]
    assert found == ["refuted ILLEGAL_OPERAND", "proved", "proved", "refuted ILLEGAL_OPERAND", "proved"]


def test_two_copies_of_one_lane_into_the_same_bytes_race_also_in_one_group() -> None:
    """PTX ISA, "cp.async": nothing orders two of them that the executing thread has not waited for."""
    copy = " @!%p0 cp.async.ca.shared.global [{}], [%rd1{}], 16;\n"
    two = START + copy.format("tile", "") + "{0}" + copy.format("{1}", "+64")
    end = " cp.async.wait_all;\n"
    assert verdict(two.format("", "tile+16") + end) == "proved"
    assert verdict(two.format(end, "tile") + end) == "proved"
    assert verdict(two.format("", "tile") + end) == "refuted RACE"
    again = " mov.u32 %r9, 0;\nmore:\n" + two.format("", "tile+16")[len(START) :]
    again += "{0} add.u32 %r9, %r9, 1;\n setp.lt.u32 %p5, %r9, 2;\n @%p5 bra more;\n" + end
    assert verdict(START + again.format("")) == "refuted RACE"
    assert verdict(START + again.format(end)) == "proved"


@pytest.mark.parametrize(
    ("store", "shared", "apart"),
    [
        ("st.shared.u32 [{}], %r2;", "%r6", "%r5"),  # of different values
        ("ld.global.u32 %r8, [%rd1];\n st.shared.u32 [{}], %r8;", "%r6", "%r5"),  # of what is not known
        ("st.shared.u32 [{}], %r2;", "tile", "%r5"),
        ("cp.async.ca.shared.global [{}], [%rd1], 4;", "%r6", "%r5"),
    ],
)
def test_lanes_that_store_to_the_same_bytes_in_one_instruction_store_the_same(
    store: str, shared: str, apart: str
) -> None:
    """PTX orders lanes no more than warps. That the values are equal is assumed, unless they are known to be."""
    pairs = f"{START}{LANES} and.b32 %r6, %r5, -8;\n"

    def assumed(stored: str) -> list[Assumption]:
        return [each.kind for each in program_of(f"{pairs} {stored}\n", 1).coverage.assumed]

    assert assumed(store.format(shared)) == [Assumption.EQUAL_STORES]
    assert not assumed(store.format(apart))
    assert not assumed("st.shared.u32 [tile], 7;")
    assert not assumed("mov.u32 %r9, 7;\n st.shared.u32 [%r6], %r9;")


#: The value is an index, too, so that it is followed.
INDEX = """ ld.param.u32 %r9, [n];
 {op}
 st.shared.u32 [tile], %r10;
 and.b32 %r11, %r10, 3;
 mad.lo.u32 %r11, %r11, 4, tile;
 ld.shared.u32 %r12, [%r11+256];
"""


def test_an_access_that_a_parameter_would_bound_names_that() -> None:
    masked = " ld.param.u32 %r9, [n];\n ld.global.u32 %r8, [%rd1];\n and.b32 %r10, %r8, %r9;\n"
    body = f"{START}{masked} add.u32 %r10, %r10, tile;\n st.shared.u8 [%r10], %r2;\n"
    (said,) = program_of(body, params=".param .u32 n", values=[word(None)]).coverage.unread
    assert said.endswith("it depends on byte 0 of the parameters, which --set 0=VALUE gives")


@pytest.mark.parametrize(("op", "equal"), [("mov.u32 %r10, %r9;", True), ("add.u32 %r10, %r9, %r2;", False)])
def test_a_lane_and_a_parameter_that_is_not_given_are_not_the_same_in_each_lane(op: str, *, equal: bool) -> None:
    """It was proved with no assumption."""
    program = program_of(START + INDEX.format(op=op), 1, params=".param .u32 n", values=[word(None)])
    assert [each.kind for each in program.coverage.assumed] == [Assumption.EQUAL_STORES] * (not equal)


def test_each_access_is_that_of_its_own_instruction() -> None:
    """Also where a warp loads and stores before it copies, with nothing in between: each has the line of the PTX."""
    body = f"{START} ld.shared.u32 %r8, [tile+64];\n st.shared.u32 [tile+32], %r8;\n"
    program = program_of(f"{body} cp.async.ca.shared.global [tile], [%rd1], 16;\n cp.async.wait_all;\n")
    code, kinds = program.code[0], (Op.READ, Op.WRITE, Op.TRANSFER_WRITE)
    lines = [int(program.line(0, pc).rpartition(":")[2]) for pc, op in enumerate(code) if op[0] in kinds]
    assert [line - lines[0] for line in lines] == [0, 1, 2]


def test_a_flag_that_is_awaited_orders_what_is_not_followed() -> None:
    sets = "st.shared.u32 [tile+4], 5;\n st.release.cta.shared.u32 [tile], 1;"
    loop = "flag:\n ld.{0}shared.u32 %r8, [tile];\n setp.eq.u32 %p5, %r8, 0;\n @%p5 bra flag;\n"
    loop += " ld.shared.u32 %r9, [tile+4];"
    zero = f"{START} @!%p0 st.shared.u32 [tile], 0;\n{MEET}"
    assert verdict(zero + by_warps(sets, loop.format("acquire.cta.")).removeprefix(START)) == "unknown"
    assert verdict(zero + by_warps(sets, loop.format("")).removeprefix(START)) == "refuted RACE WRONG_ITEM"


#: A copy of 4,096 bytes and who reads it: warp 1 loads a word of each 64 bytes of it, twice in each iteration.
RING = (
    SET_UP.format(first=1, count=1)
    + """ setp.ne.u32 %p1, %r2, 0;
 setp.eq.u32 %p2, %r1, 1;
 mov.u32 %r10, 0;
 mov.u64 %rd1, 268435456;
 mov.u32 %r5, tile;
 mad.lo.u32 %r6, %r2, 64, %r5;
 @%p2 bra consumer;
 @%p1 bra over;
produce:
 and.b32 %r11, %r10, 1;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 4096;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r5], [%rd1], 4096, [%r3];
empty:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3+8], %r11;
 @!%p9 bra empty;
 add.u32 %r10, %r10, 1;
 setp.lt.u32 %p8, %r10, 4;
 @%p8 bra produce;
 bra over;
consumer:
 and.b32 %r11, %r10, 1;
full:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], %r11;
 @!%p9 bra full;
{early} ld.shared.u32 %r20, [%r6];
 ld.shared.u32 %r21, [%r6+2048];
 bar.warp.sync -1;
{late} add.u32 %r10, %r10, 1;
 setp.lt.u32 %p8, %r10, 4;
 @%p8 bra consumer;
over:
"""
)
ARRIVE = " @!%p1 mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n"


def _places(race: Fault) -> list[tuple[int, int]]:
    return [(race.agent, race.pc), (race.other_agent, race.other_pc)]


def _reads(program: Program) -> int:
    return sum(op[0] == Op.READ for op in program.operations)


def test_loads_of_many_words_of_one_copy_are_one_read() -> None:
    program = program_of(RING.format(early="", late=ARRIVE))
    assert _reads(program) == 4
    assert not check(program).refutations
    wrong_program = program_of(RING.format(early=ARRIVE, late=""))
    wrong = check(wrong_program)
    races = [shown.fault for shown in wrong.refutations if shown.kind is FaultKind.RACE]
    lines = {wrong_program.line(*who) for each in races if each for who in _places(each)}
    assert lines == {"small.ptx:33", "small.ptx:47"}


@pytest.mark.parametrize(("at", "reads", "says"), [(4, 32, "proved"), (1024, 32, "refuted RACE"), (3840, 1, "proved")])
def test_loads_are_apart_where_something_between_them_is_written(at: int, reads: int, says: str) -> None:
    """Also where it is written after they were read: only the whole kernel says what is between them."""
    fill = START + " @!%p0 st.bulk.weak.shared::cta [tile], 4096, 0;\n" + MEET
    loads = " mov.u32 %r5, tile;\n mad.lo.u32 %r6, %r2, 64, %r5;\n ld.shared.u32 %r20, [%r6];\n"
    body = fill + by_warps(loads, f"st.shared.u32 [tile+{at}], 5;").removeprefix(START)
    assert (_reads(program_of(body)), verdict(body)) == (reads, says)
