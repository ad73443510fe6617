"""Lanes of a warp that part: where they are taken to meet again, and what counts each of them."""

from pathlib import Path

import pytest

from pipesim.cli.main import main
from pipesim.findings.catalog import report_fault
from pipesim.model.coverage import Assumption, Strictness
from pipesim.model.ending import Ending
from pipesim.model.finding import Fault, FaultKind, Verdict
from pipesim.model.program import Program
from pipesim.model.program_json import dumps, loads
from pipesim.prove.check import Check, check
from pipesim.prove.counterexample.past import past_of
from pipesim.prove.refutation import Refutation
from pipesim.ptx.launch.values import Launch
from tests.support.kernel_files import written
from tests.support.small_ptx import SET_UP, program_of, said, text_of, word

STRICT = Strictness({Assumption.LANES})
TWO_WARPS = Launch("kernel", (1, 1, 1), (64, 1, 1))
#: Half of the lanes store what the other half does not; then {meet} all lanes arrive.
PART = (
    SET_UP.format(first=64, count=1)
    + """ setp.lt.u32 %p4, %r2, 16;
 @!%p4 bra rest;
 st.shared.u32 [tile], %r2;
rest:
{meet} mbarrier.arrive.shared::cta.b64 _, [%r3];
"""
)
WARP_SYNC = " bar.warp.sync -1;\n"
CLUSTER_WAIT = " barrier.cluster.wait.acquire;\n"


def strictly(program: Program) -> Check:
    """The verdict with lanes that go on together only where PTX says so."""
    return check(program.with_strictness(STRICT))


def test_lanes_that_part_are_taken_to_meet_where_ptx_does_not_promise_it() -> None:
    apart = program_of(PART.format(meet=""))
    assert len(apart.coverage.rejoined) == 1
    assert loads(dumps(apart)).coverage == apart.coverage
    assert check(apart).verdict is Verdict.PROVED
    found = strictly(apart)
    assert found.verdict is Verdict.REFUTED
    assert [each.kind for each in found.refutations] == [FaultKind.LANES_APART]


def test_lanes_that_only_end_need_not_meet() -> None:
    ends = PART.replace(" mbarrier.arrive.shared::cta.b64 _, [%r3];\n", "").format(meet=" add.u32 %r5, %r2, 1;\n")
    assert program_of(ends).coverage.rejoined == ()
    reads = ends + " ld.shared.u32 %r6, [tile{}];\n"
    assert len(program_of(reads.format("")).coverage.rejoined) == 1
    assert program_of(reads.format("+8")).coverage.rejoined == ()  # which none of them has stored


def test_a_place_without_an_operation_is_shown_at_the_next_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = written(tmp_path / "small.ptx", text_of(PART.format(meet=" add.u32 %r5, %r2, 1;\n")), TWO_WARPS)
    assert main(["check", kernel, "--strict-lanes"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "compute: arrive" in shown
    replay = shown.partition("--replay '")[2].partition("'")[0]
    for command in (["check", "--replay", replay], ["run", "--schedule", replay]):
        assert main([command[0], kernel, "--strict-lanes", *command[1:]]) == 1
        assert "taken to be together again" in " ".join(capsys.readouterr().out.split())
    assert "init" not in shown.partition("the schedule")[0].partition("fault")[2]


def test_a_finding_before_the_first_move_has_a_past() -> None:
    program = program_of(PART.format(meet=""))
    before = Refutation(Ending.FAULT, (), Fault(FaultKind.LANES_APART, 0, 0))
    assert past_of(program, before) == frozenset()


@pytest.mark.parametrize("meet", [WARP_SYNC, " bar.warp.sync 0xffffffff;\n", " vote.sync.all.pred %p7, %p4, -1;\n"])
def test_operations_of_all_lanes_let_them_meet(meet: str) -> None:
    together = program_of(PART.format(meet=meet))
    assert together.coverage.rejoined == ()
    assert strictly(together).verdict is Verdict.PROVED


def test_an_operation_of_some_lanes_does_not() -> None:
    some = program_of(PART.format(meet=" @%p4 bar.warp.sync 0xffff;\n"))
    assert len(some.coverage.rejoined) == 1


def test_the_report_states_it_and_the_switch_makes_it_a_finding(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kernel = written(tmp_path / "small.ptx", text_of(PART.format(meet="")), TWO_WARPS)
    assert main(["check", kernel]) == 0
    assert "--strict-lanes" in capsys.readouterr().out
    assert main(["check", kernel, "--strict-lanes"]) == 1
    shown = " ".join(capsys.readouterr().out.split())
    assert "taken to be together again" in shown
    assert "bar.warp.sync" in shown
    assert "assuming that lanes" not in shown


def test_the_cluster_barrier_counts_threads() -> None:
    whole = SET_UP.format(first=1, count=1) + " barrier.cluster.arrive.release;\n" + CLUSTER_WAIT
    program = program_of(whole, cluster=2)
    assert program.coverage.complete
    assert check(program).verdict is Verdict.PROVED
    one_lane = " setp.eq.u32 %p4, %r2, 0;\n @%p4 barrier.cluster.arrive.release;\n"
    program = program_of(SET_UP.format(first=1, count=1) + one_lane + CLUSTER_WAIT, cluster=2)
    assert not any(line.startswith("CLUSTER_ARRIVE") for line in said(program, 0))
    assert check(program).verdict is not Verdict.PROVED
    others = one_lane + " @!%p4 barrier.cluster.arrive.release;\n" + CLUSTER_WAIT
    program = program_of(SET_UP.format(first=1, count=1) + others, cluster=2)
    assert sum(line.startswith("CLUSTER_ARRIVE") for line in said(program, 0)) == 1
    assert check(program).verdict is Verdict.PROVED


def test_lanes_that_have_ended_count_at_the_barrier_of_the_cluster() -> None:
    """PTX ISA, "barrier.cluster": the wait is for all threads that have not exited."""
    half_ends = SET_UP.format(first=1, count=1) + " setp.lt.u32 %p4, %r2, 16;\n @%p4 bra {target};\n"
    rest = " barrier.cluster.arrive.release;\n" + CLUSTER_WAIT
    program = program_of(half_ends.format(target="last") + rest + "last:\n", cluster=2)
    assert check(program).verdict is Verdict.PROVED
    assert [each.what.partition(" at ")[0] for each in program.coverage.assumed] == ["threads that have ended count"]
    waits_itself = half_ends.format(target="other") + rest + " ret;\nother:\n" + SPIN + " ret;\n"
    assert check(program_of(waits_itself, cluster=2)).verdict is not Verdict.PROVED


#: Until a phase that no warp completes.
SPIN = """again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3+8], 0;
 @!%p9 bra again;
"""
SPIN_THEN_END = f""" @!%p1 bra rest;
{SPIN} ret;
rest:
"""
#: The second warp ends; the first one waits for all threads of the CTA.
ENDS = SET_UP + " setp.eq.u32 %p1, %r1, 1;\n @%p1 ret;\n{waits} st.shared.u32 [tile], %r1;\n"
#: The second warp waits until the first has ended, which waits for its arrival.
LATER = ENDS.replace("setp.eq.u32 %p1", "setp.ne.u32 %p1").replace(" @%p1 ret;\n", SPIN_THEN_END)


def test_warps_that_have_ended_count_at_a_barrier_of_all_threads() -> None:
    """As CUDA says of ``__syncthreads``, and as an H200 does with any number; not where a count is given."""
    twice = program_of(ENDS.format(first=1, count=1, waits=" bar.sync 0;\n bar.sync 1;\n bar.sync 0;\n"))
    assert check(twice).verdict is Verdict.PROVED
    assert [each.what.partition(" at ")[0] for each in twice.coverage.assumed] == ["threads that have ended count"] * 3
    with_a_count = program_of(ENDS.format(first=1, count=1, waits=" bar.sync 0, 64;\n"))
    assert check(with_a_count).verdict is Verdict.REFUTED


def test_a_warp_that_ends_later_lets_the_others_go_on_when_it_does() -> None:
    waits = " mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n bar.sync 0;\n"
    program = program_of(LATER.format(first=1, count=32, waits=waits))
    assert check(program).verdict is Verdict.PROVED
    assert said(program, 0)[-1] == said(program, 1)[-2] == "BAR_SYNC named_barrier=0 threads=64 lanes=32"


def test_lanes_of_one_value_match() -> None:
    """The lowest lane of each group of four arrives for the group; all lanes have the same half of their number."""
    groups = """ shr.u32 %r10, %r2, 2;
 activemask.b32 %r11;
 match.any.sync.b32 %r12, %r10, %r11;
 brev.b32 %r13, %r12;
 bfind.shiftamt.u32 %r14, %r13;
 setp.eq.u32 %p4, %r2, %r14;
 match.all.sync.b32 %r15|%p5, %r1, %r11;
 @%p4 mbarrier.arrive.shared::cta.b64 _, [%r3], 4;
 @%p5 mbarrier.arrive.shared::cta.b64 _, [%r3+8];
"""
    program = program_of(SET_UP.format(first=32, count=32) + groups)
    assert said(program, 1)[-2:] == [
        "ARRIVE barrier=0 count=32 expect=0 register=-1 semantics=0",
        "ARRIVE barrier=1 count=32 expect=0 register=-1 semantics=0",
    ]


#: Warp 0 stores with all lanes, and {ahead} its first lane signals it; warp 1 waits and reads.
HANDED = (
    SET_UP.format(first=1, count=1)
    + """ setp.ne.u32 %p4, %r1, 0;
 setp.ne.u32 %p5, %r2, 0;
 shl.b32 %r20, %r2, 2;
 mov.u32 %r21, tile;
 add.u32 %r21, %r21, %r20;
 mov.u32 %r22, -1;
 @%p4 bra waits;
 st.shared.u32 [%r21], %r1;
 {ahead}
 bra done;
waits:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;
 @!%p9 bra waits;
 ld.shared.u32 %r9, [tile+64];
done:
"""
)
HALVES = "and.b32 %r24, %r2, 16;\n shl.b32 %r24, 0xffff, %r24;\n bar.warp.sync %r24;\n "
ONE = "@!%p5 mbarrier.arrive.shared::cta.b64 _, [%r3];"
BRANCH = "@%p5 bra done;\n mbarrier.arrive.shared::cta.b64 _, [%r3];"


@pytest.mark.parametrize("signal", [ONE, BRANCH])
@pytest.mark.parametrize(
    "between",
    [
        "",
        "fence.acq_rel.cta;\n ",
        "elect.sync _|%p6, %r22;\n ",
        "shfl.sync.idx.b32 %r30, %r2, 0, 31, %r22;\n ",
        HALVES,
        "mov.u64 %rd1, 268435456;\n ld.global.u32 %r23, [%rd1];\n bar.warp.sync %r23;\n ",
        "shl.b32 %r23, 1, %r2;\n bar.warp.sync %r23;\n ",
    ],
)
def test_a_lane_signals_what_all_have_stored_only_after_they_met(between: str, signal: str) -> None:
    """Program order is a lane's own, and of what lanes execute together only barriers order memory.

    PTX ISA, "bar.warp.sync", and "shfl.sync" and "elect.sync", which say nothing of it.
    """
    alone = program_of(HANDED.format(ahead=between + signal))
    assert len(alone.coverage.rejoined) == 1
    assert check(alone).verdict is Verdict.PROVED
    assert [each.kind for each in strictly(alone).refutations] == [FaultKind.LANES_APART]


#: The lanes of each half meet, then those whose numbers differ by 16: so the first lane knows of all.
IN_STEPS = """setp.lt.u32 %p7, %r2, 16;
 selp.b32 %r23, 0xffff, 0xffff0000, %p7;
 bar.warp.sync %r23;
 and.b32 %r24, %r2, 15;
 shl.b32 %r24, 0x10001, %r24;
 bar.warp.sync %r24;"""


@pytest.mark.parametrize(
    "meet",
    [WARP_SYNC, "bar.warp.sync %r22;", "and.b32 %r23, %r22, %r22;\n bar.warp.sync %r23;", "bar.sync 1, 32;", IN_STEPS],
)
def test_then_it_rests_on_nothing(meet: str) -> None:
    """Also where a register names all lanes, as nvcc has it, or the lanes meet in steps."""
    together = program_of(HANDED.format(ahead=meet + "\n " + ONE))
    assert together.coverage.rejoined == ()
    assert strictly(together).verdict is Verdict.PROVED


#: Warp 0 fills the tile {n} times; of warp 1 {waits}, all lanes read, and the first lane lets it be filled again.
RING = (
    SET_UP.format(first=1, count=1)
    + """ setp.ne.u32 %p1, %r1, 0;
 setp.ne.u32 %p2, %r2, 0;
 mov.u64 %rd1, 268435456;
 mov.u32 %r4, tile;
 shl.b32 %r5, %r2, 2;
 add.u32 %r5, %r5, %r4;
 mov.u32 %r6, 0;
 @%p1 bra consumer;
 @%p2 bra done;
producer:
 and.b32 %r7, %r6, 1;
 xor.b32 %r8, %r7, 1;
empty:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3+8], %r8;
 @!%p9 bra empty;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 128, [%r3];
 add.u32 %r6, %r6, 1;
 setp.lt.u32 %p3, %r6, 3;
 @%p3 bra producer;
 bra done;
consumer:
 and.b32 %r7, %r6, 1;
 {waits}
full:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], %r7;
 @!%p9 bra full;
read:
{meet} ld.shared.u32 %r9, [%r5];
 bar.warp.sync -1;
{skip} @%p2 bra next;
 mbarrier.arrive.shared::cta.b64 _, [%r3+8];
next:
 add.u32 %r6, %r6, 1;
 setp.lt.u32 %p3, %r6, 3;
 @%p3 bra consumer;
done:
"""
)
ALONE = "@%p2 bra read;"


@pytest.mark.parametrize(
    ("waits", "meet", "skip", "expected"),
    [
        (ALONE, WARP_SYNC, "", None),
        ("", "", "", None),
        (ALONE, "", "", "read:"),
        (ALONE, " shfl.sync.idx.b32 %r30, %r2, 0, 31, -1;\n", "", "read:"),
        (ALONE, " vote.sync.ballot.b32 %r30, %p2, -1;\n", "", "read:"),
        (ALONE, HALVES, "", "read:"),
        ("", "", " activemask.b32 %r31;\n setp.ne.u32 %p4, %r31, -1;\n @%p4 bra next;\n", "activemask"),
        ("", " activemask.b32 %r31;\n", "", None),
    ],
)
def test_lanes_rely_on_what_one_of_them_has_waited_for_after_they_met(
    waits: str, meet: str, skip: str, expected: str | None
) -> None:
    """Where a lane has arrived and all wait for themselves, nothing depends on it that they are together again."""
    text = RING.format(waits=waits, meet=meet, skip=skip)
    program = program_of(text)
    assert check(program).verdict is Verdict.PROVED
    lines = text_of(text).splitlines()
    line = next((n for n, line in enumerate(lines, 1 + (expected == "read:")) if expected and expected in line), 0)
    at = [f"small.ptx:{line}"] if expected else []
    assert [each.partition(" ")[0] for each in program.coverage.rejoined] == at
    assert [each.kind for each in strictly(program).refutations] == [FaultKind.LANES_APART] * len(at)


def test_each_lane_may_signal_for_itself() -> None:
    each = HANDED.replace("[%r3], 1;", "[%r3], 32;").format(ahead="mbarrier.arrive.shared::cta.b64 _, [%r3];")
    assert strictly(program_of(each)).verdict is Verdict.PROVED


#: Each half of a warp stores, waits at {high} or at {low}, and reads what the other half has stored.
IN_TWO_BRANCHES = (
    SET_UP.format(first=1, count=1)
    + """ setp.lt.u32 %p1, %r2, 16;
 shl.b32 %r5, %r2, 2;
 mov.u32 %r6, tile;
 add.u32 %r5, %r5, %r6;
 xor.b32 %r7, %r5, 64;
 st.shared.u32 [%r5], %r2;
 @%p1 bra low;
 {high}
 ld.shared.u32 %r9, [%r7];
 bra done;
low:
 {low}
 ld.shared.u32 %r9, [%r7];
done:
"""
)


@pytest.mark.parametrize(
    ("high", "low", "expected"),
    [
        ("barrier.sync 1, 32;", "barrier.sync 1, 32;", ["proved"]),
        ("barrier.sync 0;", "barrier.sync 0;", ["proved"]),
        ("barrier.sync 1, 32;\n barrier.sync 1, 32;", "barrier.sync 1, 32;\n barrier.sync 1, 32;", ["proved"]),
        ("barrier.sync 1, 32;\n barrier.sync 1, 32;", "barrier.sync 1, 32;", ["refuted", "DEADLOCK"]),
        ("barrier.sync 1, 64;", "barrier.sync 1, 64;", ["refuted", "DEADLOCK"]),
        ("barrier.sync 1, 32;", "barrier.sync 2, 32;", ["refuted", "DEADLOCK"]),
        ("bar.sync 1, 32;", "bar.sync 1, 32;", ["refuted", "WARP_SHAPE"]),
    ],
)
def test_lanes_may_come_to_a_barrier_by_different_instructions_unless_it_is_aligned(
    high: str, low: str, expected: list[str]
) -> None:
    """PTX ISA, "barrier": ``.aligned`` means that all threads of a warp execute the same one; ``bar`` has it."""
    found = check(program_of(IN_TWO_BRANCHES.format(high=high, low=low), warps=1))
    assert [found.verdict.value, *sorted(each.kind.name for each in found.refutations)] == expected


@pytest.mark.parametrize("first", [32, 48])
def test_the_warp_is_named_whose_lanes_part_before_a_barrier(first: int) -> None:
    """Warp 0 comes to the same instruction as a whole."""
    body = f" setp.ge.u32 %p1, %r0, {first};\n @%p1 bra low;\n bar.sync 1, 64;\n bra done;\nlow:\n"
    program = program_of(SET_UP.format(first=1, count=1) + body + " bar.sync 1, 64;\ndone:\n")
    told = [report_fault(program, each.fault).claim for each in check(program).refutations if each.fault is not None]
    assert ["lanes of warp 1 execute" in each for each in told] == [True] * (first > 32)


#: Lane 0 stores, or goes to the end by a word that the others do not ask for; then all meet, after {before}.
BY_AN_EXIT_OF_ONE_LANE = (
    SET_UP.format(first=1, count=1)
    + """ ld.param.u32 %r7, [n];
 mov.u32 %r8, 0;
 @%p0 bra loop;
 setp.eq.u32 %p4, %r7, 0;
 @%p4 bra done;
 st.shared.u32 [tile], %r2;
loop:
{before} bar.sync 0;
 add.u32 %r8, %r8, 1;
 setp.lt.u32 %p5, %r8, %r7;
 @%p5 bra loop;
done:
"""
)


@pytest.mark.parametrize("before", ["", " add.u32 %r9, %r8, 1;\n", " add.u32 %r9, %r8, 1;\n mov.u32 %r10, %r9;\n"])
def test_lanes_that_can_part_for_good_meet_at_a_barrier_that_all_of_them_execute(before: str) -> None:
    """Compilers jump so for a loop of one thread before a loop of all: where both ways surely meet is the end."""
    body = BY_AN_EXIT_OF_ONE_LANE.format(before=before)
    assert check(program_of(body, params=".param .u32 n", values=[word(3)])).verdict is Verdict.PROVED
