"""Bytes that lanes of a warp hand to each other, and fences that some of them execute."""

import tracemalloc

import pytest

from pipesim.model.coverage import Assumption, Strictness
from pipesim.model.finding import FaultKind
from pipesim.model.program import Program
from pipesim.prove.check import check
from pipesim.ptx.emulate.lanes.exchanges import ExchangeOrder, LaneExchanges, lanes_at
from tests.support.random_programs.lane_exchanges import SET_UP as EXCHANGED
from tests.support.random_programs.lane_exchanges import random_exchanges
from tests.support.small_ptx import SET_UP, program_of, text_of

#: %r5: the lane's own word of the tile; %r6: its neighbour's; %r7: where the other half of the warp has its word.
START = SET_UP.format(first=32, count=1) + """ mov.u64 %rd1, 268435456;
 mov.u32 %r4, tile;
 shl.b32 %r5, %r2, 2;
 add.u32 %r5, %r5, %r4;
 xor.b32 %r6, %r5, 4;
 xor.b32 %r7, %r5, 64;
 setp.lt.u32 %p1, %r2, 16;
 setp.ne.u32 %p2, %r2, 0;
 setp.ne.u32 %p3, %r2, 1;
"""  # fmt: skip
MEET = " bar.warp.sync -1;\n"
STORE, LOAD = " st.shared.u32 [%r5], %r2;\n", " ld.shared.u32 %r9, [%r6];\n"
HALVES = " mov.u32 %r12, 0xffff;\n @!%p1 mov.u32 %r12, 0xffff0000;\n bar.warp.sync %r12;\n"
ARRIVE = " mbarrier.arrive.shared::cta.b64 _, [%r3];\n"
WAIT = "again:\n mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;\n @!%p9 bra again;\n"
RELAXED, CLUSTER_WAIT = " barrier.cluster.arrive.relaxed.aligned;\n", " barrier.cluster.wait.acquire.aligned;\n"
COPY = " cp.async.ca.shared.global [%r5], [%rd1], 4;\n cp.async.commit_group;\n"
LANDED = " cp.async.wait_group 0;\n"
MATRIX = " mov.u32 %r8, 0;\n shl.b32 %r10, %r2, 4;\n add.u32 %r10, %r10, %r4;\n"
STORE_MATRIX = MATRIX + " stmatrix.sync.aligned.m8n8.x4.shared.b16 [%r10], {%r8, %r8, %r8, %r8};\n"
LOAD_MATRIX = " ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r13, %r14, %r15, %r16}, [%r10];\n"


def kernel(body: str) -> Program:
    """One warp that does this."""
    return program_of(START + body, warps=1)


def with_rules(program: Program, *strict: Assumption) -> str:
    found = check(program.with_strictness(Strictness(strict)))
    return " ".join([found.verdict.value, *sorted(each.kind.name for each in found.refutations)])


@pytest.mark.parametrize(
    ("before", "between", "after"),
    [
        (STORE, "", LOAD),
        (STORE.replace("st.", "st.volatile."), "", LOAD.replace("ld.", "ld.volatile.")),
        (STORE, " membar.cta;\n", LOAD),
        (STORE, " shfl.sync.bfly.b32 %r10, %r2, 1, 31, -1;\n", LOAD),
        (STORE, " vote.sync.ballot.b32 %r10, %p1, -1;\n", LOAD),
        (STORE, " redux.sync.add.s32 %r10, %r2, -1;\n", LOAD),
        (STORE, " match.any.sync.b32 %r10, %r2, -1;\n", LOAD),
        (STORE, " elect.sync _|%p9, -1;\n", LOAD),
        (STORE + MEET + LOAD, " elect.sync _|%p9, -1;\n", STORE),
        (STORE, HALVES, LOAD.replace("%r6", "%r7")),
        (STORE, WAIT.replace("[%r3], 0", "[%r3], 1"), LOAD),
        (ARRIVE + STORE, WAIT, LOAD),
        (STORE, RELAXED + CLUSTER_WAIT, LOAD),
        (COPY, LANDED, LOAD),
        (COPY, MEET + LANDED, LOAD),
        (STORE + MEET + LOAD, "", STORE),
        (STORE + MEET + LOAD, "", COPY + LANDED),
        (" st.shared.u32 [tile], 5;\n", "", " @!%p2 st.shared.u32 [tile], 6;\n"),
        (" st.shared.u8 [%r5], %r2;\n", "", " @!%p2 ld.shared.u32 %r9, [tile+4];\n"),
        (
            " st.shared.u32 [tile], 0;\n" + MEET + " red.shared.add.u32 [tile], 1;\n",
            "",
            " ld.shared.u32 %r9, [tile];\n",
        ),
        (STORE_MATRIX, "", LOAD),
        (STORE, "", LOAD_MATRIX),
        (STORE_MATRIX, "", LOAD_MATRIX),
        (STORE + MEET + LOAD_MATRIX, "", STORE),
    ],
)
def test_lanes_hand_bytes_to_each_other_in_step_or_as_ptx_orders_it(before: str, between: str, after: str) -> None:
    """PTX ISA, "bar.warp.sync", "cp.async.wait_group": a wait is for the copies of the own thread."""
    zero = MATRIX if before == COPY else STORE_MATRIX + MEET
    wrong, right = kernel(zero + before + between + after), kernel(zero + before + between + MEET + after)
    line = text_of(START + zero + before + between).count("\n") - 1
    assert wrong.coverage.rejoined == (f"small.ptx:{line}",)
    assert with_rules(wrong) == "proved"
    assert with_rules(wrong, Assumption.LANES) == "refuted LANES_APART"
    assert right.coverage.rejoined == ()
    assert with_rules(right, Assumption.LANES) == "proved"


@pytest.mark.parametrize(
    "body",
    [
        STORE + " ld.shared.u32 %r9, [%r5];\n",
        STORE + HALVES + LOAD,
        STORE + ARRIVE + WAIT + LOAD,
        STORE + RELAXED.replace(".relaxed", "") + CLUSTER_WAIT + LOAD,
        COPY + LANDED + " ld.shared.u32 %r9, [%r5];\n",
        COPY + " cp.async.mbarrier.arrive.noinc.shared.b64 [%r3];\n" + WAIT + LOAD,
        " st.shared.u8 [%r5], 1;\n st.shared.u8 [%r5+1], 1;\n st.shared.u8 [%r5+2], 1;\n",
        " st.shared.u32 [tile], 0;\n" + MEET + " red.shared.add.u32 [tile], 1;\n red.shared.add.u32 [tile], 2;\n",
        STORE + MEET + " @%p1 bra low;\n st.shared.u32 [%r5+256], 1;\nlow:\n @!%p1 ld.shared.u32 %r9, [%r7];\n",
    ],
)
def test_what_ptx_orders_or_no_other_lane_touches_rests_on_nothing(body: str) -> None:
    program = kernel(body)
    assert [each for each in program.coverage.assumed if "accesses what others" in each.what] == []


@pytest.mark.parametrize(
    ("order", "expected"), [(LANDED + " bar.sync 0;\n", "proved"), (" bar.sync 0;\n" + LANDED, "refuted RACE")]
)
def test_a_warp_waits_for_its_copies_before_the_barrier_after_which_another_one_reads_them(
    order: str, expected: str
) -> None:
    words = " xor.b32 %r11, %r0, 32;\n mad.lo.u32 %r5, %r0, 4, %r4;\n mad.lo.u32 %r11, %r11, 4, %r4;\n"
    read = " ld.shared.u32 %r9, [%r11];\n"
    program = program_of(START + words + COPY + order + read, warps=2)
    assert with_rules(program, Assumption.LANES) == expected


@pytest.mark.parametrize("meet", ["", " bar.warp.sync 0xffffffff;\n"])
def test_lanes_on_two_ways_of_a_branch_are_not_in_step(meet: str) -> None:
    high, low = " st.shared.u32 [%r5], 1;\n bra both;\nlow:\n", f" ld.shared.u32 %r9, [{{0}}];\nboth:\n{meet}"
    ways = f"{STORE}{MEET} @%p1 bra low;\n{high}{low}"
    wrong, right = kernel(ways.format("%r7")), kernel(ways.format("%r5"))
    assert any("two ways of a branch" in each for each in wrong.coverage.undefined)
    assert (with_rules(wrong), with_rules(right)) == ("unknown", "proved")


#: Lane 0 makes an mbarrier; {fence}; after a barrier of the CTA a copy uses it.
INIT = """ @!%p2 mbarrier.init.shared::cta.b64 [%r3+16], 1;
{0} bar.sync 0;
 @%p2 bra waits;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3+16], 128;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 128, [%r3+16];
waits:
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3+16], 0;
 @!%p9 bra again;
"""
#: All lanes store; {fence}; lane 0 copies it.
OUT = STORE + """{0} @!%p2 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 128;
 @!%p2 cp.async.bulk.commit_group;
 @!%p2 cp.async.bulk.wait_group 0;
"""  # fmt: skip
MADE, PROXY = "fence.mbarrier_init.release.cluster;\n", "fence.proxy.async.shared::cta;\n"


@pytest.mark.parametrize(
    ("body", "right", "wrong", "fault"),
    [
        (INIT, f" @!%p2 {MADE}", f" @!%p3 {MADE}", FaultKind.UNPUBLISHED_INIT),
        (INIT, f" {MADE}", f"{MEET} @!%p3 {MADE}", FaultKind.UNPUBLISHED_INIT),
        (INIT, f" @!%p3 {MADE} @!%p2 {MADE}", "", FaultKind.UNPUBLISHED_INIT),
        (INIT, f"{MEET} @!%p3 {PROXY}", f" @!%p3 {PROXY}", FaultKind.UNPUBLISHED_INIT),
        (OUT, f" {PROXY}{MEET}", f" @!%p2 {PROXY}{MEET}", FaultKind.MISSING_PROXY_FENCE),
        (OUT, f"{MEET} @!%p2 {PROXY}", f" @%p2 {PROXY}{MEET}", FaultKind.MISSING_PROXY_FENCE),
        (OUT, f" @%p2 {PROXY} @!%p2 {PROXY}{MEET}", "", FaultKind.MISSING_PROXY_FENCE),
        (OUT, f" {PROXY}{MEET} st.shared.u32 [%r5+512], 1;\n @!%p2 {PROXY}", MEET, FaultKind.MISSING_PROXY_FENCE),
    ],
)
def test_a_fence_orders_what_its_thread_has_done(body: str, right: str, wrong: str, fault: FaultKind) -> None:
    """PTX ISA, "fence.mbarrier_init": the inits of its own thread; "Proxy-preserved base causality order": between."""
    assert with_rules(kernel(body.format(right)), Assumption.INIT) == "proved"
    assert with_rules(kernel(body.format(wrong)), Assumption.INIT) == f"refuted {fault.name}"


def test_a_fence_of_one_lane_after_an_exchange_of_all_is_in_order_as_they_run_in_step() -> None:
    program = kernel(OUT.format(f" elect.sync _|%p9, -1;\n @!%p2 {PROXY}"))
    assert with_rules(program) == "proved"
    assert with_rules(program, Assumption.LANES) == "refuted LANES_APART LANES_APART"  # the fence, and the copy


#: Lane 0 makes an mbarrier, {meet} all lanes use it; lane 0 waits until its copy has read, {meet} all lanes store.
MADE_ALONE = " @!%p2 mbarrier.init.shared::cta.b64 [%r3+16], 32;\n{meet}" + WAIT.replace("[%r3], 0", "[%r3+16], 1")
READ_ALONE = OUT.format(f" {PROXY}{MEET}").replace("wait_group 0", "wait_group.read 0") + "{meet}" + STORE


@pytest.mark.parametrize("body", [MADE_ALONE, READ_ALONE])
@pytest.mark.parametrize(("meet", "named"), [(MEET, 0), ("", 1), (" elect.sync _|%p9, -1;\n", 1), (HALVES, 1)])
def test_what_one_lane_has_set_up_or_waited_for_others_use_after_they_met(body: str, meet: str, named: int) -> None:
    program = kernel(body.format(meet=meet))
    assert len(program.coverage.rejoined) == named
    assert with_rules(program, Assumption.INIT) == "proved"
    assert with_rules(program, Assumption.LANES) == ("refuted LANES_APART" if named else "proved")


@pytest.mark.parametrize(
    ("meet", "named"), [(MADE + RELAXED, 0), (RELAXED.replace(".relaxed", ""), 0), (RELAXED, 1), (PROXY + RELAXED, 0)]
)
def test_a_relaxed_arrive_at_the_cluster_hands_on_the_inits_of_a_fence_before_it(meet: str, named: int) -> None:
    program = kernel(MADE_ALONE.format(meet=meet + CLUSTER_WAIT))
    assert len(program.coverage.rejoined) == named


@pytest.mark.parametrize(
    ("barrier", "named"),
    [
        (" bar.sync 0;\n", 1),
        (" barrier.sync 0;\n", 1),
        (" bar.arrive 1, 64;\n", 1),
        (MEET, 1),
        (" bar.warp.sync 0xffff;\n", 1),
        (" bar.warp.sync 0xfff0;\n", 0),
        (" shfl.sync.bfly.b32 %r9, %r2, 1, 31, -1;\n", 0),
        ("", 0),
    ],
)
def test_lanes_that_have_ended_count_at_a_barrier_by_assumption(barrier: str, named: int) -> None:
    """PTX says it of shfl.sync and of barrier.cluster ("non-exited threads"), not of bar and bar.warp.sync."""
    ends = " setp.eq.u32 %p4, %r2, 3;\n @%p4 ret;\n"
    for body, expected in ((ends + barrier, named), (barrier, 0)):
        found = [each for each in kernel(body).coverage.assumed if each.kind is Assumption.EXITED_THREADS]
        assert len(found) == expected


#: Lane 0 stores and {first}, the others {wait} and load; what the second warp does.
ON_TWO_WAYS = """ setp.eq.u32 %p4, %r1, 0;
 @!%p4 bra other;
 @%p2 bra others;
 st.shared.u32 [tile], 1;
{first} bra met;
others:
{wait} ld.shared.u32 %r9, [tile];
 bra met;
other:
{other}met:
"""
BY_ONE, ON_SECOND = " @!%p2" + ARRIVE, ARRIVE.replace("%r3", "%r3+8")
WAIT_SECOND, TEST = WAIT.replace("%r3", "%r3+8"), WAIT.splitlines()[1].replace("try", "test") + "\n"
BULK = """ mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile+256], [%rd1], 128, [%r3];
"""
KNOWS, LATER = WAIT.replace("again", "there"), " st.shared.u32 [tile], 6;\n" + 2 * ARRIVE
BY_LANE_1 = " @%p2 bra later;\n" + KNOWS + "later:\n{0} @!%p3" + ON_SECOND
MANY = f""" mov.u32 %r20, 0;
more:
 @!%p3{ON_SECOND} add.u32 %r20, %r20, 1;
 setp.lt.u32 %p5, %r20, 2100;
 @%p5 bra more;
"""


@pytest.mark.parametrize(
    ("count", "first", "wait", "other", "verdict"),
    [
        (1, ARRIVE, WAIT, "", "proved"),
        (1, ARRIVE.replace("arrive", "arrive.relaxed.cta"), WAIT, "", "unknown"),
        (1, ARRIVE, WAIT.replace("parity", "parity.relaxed.cta"), "", "unknown"),
        (1, ARRIVE, TEST + " @%p9 bra seen;\n" + WAIT + "seen:\n", "", "proved"),
        (1, ARRIVE, TEST, "", "unknown"),
        (1, BULK, WAIT, " @!%p2" + ON_SECOND, "proved"),
        (1, BULK, WAIT_SECOND, " @!%p2" + ON_SECOND, "unknown"),
        (1, ARRIVE, WAIT_SECOND, KNOWS + " @!%p2" + ON_SECOND, "proved"),  # the other warp has waited for it
        (1, ARRIVE, WAIT_SECOND, " @!%p2" + ON_SECOND, "unknown"),  # these were proved, assuming nothing
        (1, ARRIVE, WAIT_SECOND, " @!%p2" + ON_SECOND + KNOWS, "unknown"),
        (1, ARRIVE + LATER, WAIT, "", "unknown"),  # its third phase is over as well when the others are followed
        (1, ARRIVE, WAIT_SECOND, KNOWS + " bar.sync 1, 32;\n @!%p2" + ON_SECOND, "proved"),
        (1, ARRIVE, WAIT_SECOND, " @!%p2" + ON_SECOND + KNOWS + " bar.sync 1, 32;\n", "unknown"),
        (1, ARRIVE, WAIT_SECOND, BY_LANE_1.format(MEET), "proved"),
        (1, ARRIVE, WAIT_SECOND, BY_LANE_1.format(""), "proved"),  # its lanes are taken to meet
        (3, ARRIVE, WAIT, 2 * BY_ONE, "proved"),
        (2, ARRIVE, WAIT, 2 * BY_ONE, "unknown"),  # the second warp may complete the phase alone
        (1, "", MANY, "", "unknown"),  # so many events were taken to be a meeting
    ],
)
def test_lanes_on_two_ways_are_in_order_by_what_one_releases_and_the_other_acquires_in_every_schedule(
    count: int, first: str, wait: str, other: str, verdict: str
) -> None:
    set_up = START.replace("[%r3], 32", f"[%r3], {count}")
    program = program_of(set_up + ON_TWO_WAYS.format(first=first, wait=wait, other=other))
    assert check(program).verdict.value == verdict
    assert verdict != "proved" or not program.coverage.undefined


@pytest.mark.parametrize(
    ("first", "said"),
    [
        (STORE + HALVES + BY_ONE, "proved"),  # lane 0 was followed apart, and not its half: unknown
        (STORE + BY_ONE, "proved, assuming lanes"),
        (BY_ONE + HALVES + STORE, "unknown"),
    ],
)
def test_lanes_on_one_way_of_a_branch_are_followed_together(first: str, said: str) -> None:
    other = " @!%p1 bra others;\n{} bra met;\nothers:\n" + WAIT + " ld.shared.u32 %r9, [%r7];\nmet:\n"
    program = program_of(START.replace("[%r3], 32", "[%r3], 1") + other.format(first), warps=1)
    assumed = [each.kind.value for each in program.coverage.assumed]
    assert ", assuming ".join((check(program).verdict.value, *assumed)) == said


#: One thread has a tile copied, the others arrive, and all wait for it and read it.
TILE = f""" @%p0 bra others;
{BULK} bra wait;
others:
{ARRIVE}wait:
{WAIT} ld.shared.u32 %r9, [tile+256];
"""


@pytest.mark.parametrize(
    ("between", "warps", "said"),
    [(MEET, 1, "proved"), (" bar.sync 0;\n", 2, "proved"), ("", 2, "refuted RACE")],  # two were unknown
)
def test_lanes_that_signal_one_phase_on_two_ways_are_not_followed_apart(between: str, warps: int, said: str) -> None:
    again = TILE.replace("others", "more").replace("wait:", "then:").replace("bra wait", "bra then")
    text = TILE + between + again.replace("again", "once").replace("], 0;", "], 1;")
    program = program_of(START.replace("[%r3], 32", f"[%r3], {32 * warps}") + text, warps=warps)
    assert with_rules(program) == said
    other = kernel(TILE.replace(ARRIVE, ON_SECOND))  # of two mbarriers the order matters
    assert (program.coverage.weakened, len(other.coverage.weakened)) == ((), 2)


def test_signals_order_lanes_where_a_clock_of_each_says_so() -> None:
    for seed in (*range(20), 100, 102):  # in the last ones a try, or a relaxed wait, was taken to order them
        body, right = random_exchanges(seed, signals=True)
        assert any(each.lines for each in kernel(EXCHANGED + body).coverage.assumed) is not right, body


@pytest.mark.parametrize("seed", range(6))
def test_of_random_exchanges_those_rest_on_lanes_that_no_clock_of_a_lane_orders(seed: int) -> None:
    body, right = random_exchanges(seed)
    program = kernel(EXCHANGED + body)
    assert with_rules(program) == "proved"
    assert with_rules(program, Assumption.LANES).split()[0] == ("proved" if right else "refuted")


def test_copies_that_are_never_waited_for_take_little_memory() -> None:
    """A loop of them had 579 MB: 4 KB for each ``cp.async`` of a warp."""
    mine, lanes = LaneExchanges(), (1 << 32) - 1
    tracemalloc.start()
    for n in range(1_000):
        mine.copy(0, lanes_at(lanes, range(256 * n, 256 * n + 128, 4)), 4, ())
        mine.commit(lanes)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < 1_000 * 900
    assert mine.read(0, lanes_at(1, [256 * 10 + 4]), 4, ()) is ExchangeOrder.PTX, "as long as they are under way"
    mine.copied(lanes, 0, ())
    assert mine.read(0, lanes_at(1, [256 * 10 + 4]), 4, ()) is ExchangeOrder.IN_STEP
    assert mine.read(0, lanes_at(2, [256 * 10 + 4]), 4, ()) is ExchangeOrder.PTX
