"""What warps do, read from small kernels: lanes, waits, unknown values, and where a warp is not followed further."""

import pytest

from pipesim.explain.causes import with_causes
from pipesim.model.coverage import Assumed, Assumption
from pipesim.model.finding import Verdict
from pipesim.model.ops import Op, operand
from pipesim.prove.check import How, check
from pipesim.prove.counterexample.play import Play
from pipesim.ptx.emulate.cluster import EmulationLimits
from pipesim.ptx.launch.values import Pointer
from pipesim.report.findings.finding import deadlock_lines
from tests.support.small_ptx import SET_UP, extraction_of, program_of, said, word

READ_TWO = SET_UP.format(first=1, count=1)
BY_WARP = SET_UP.format(first=32, count=32)
INIT = ["INIT barrier=0 count=1", "INIT barrier=1 count=1", "FENCE fence=0 semantics=2"]
MEET = "BAR_SYNC named_barrier=0 threads=64 lanes=32"
SPIN = """again{0}:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3{1}], {2};
 @!%p9 bra again{0};
"""
ARRIVE = " mbarrier.arrive.shared::cta.b64 _, [%r3{0}];\n"
RING = """ mov.u32 %r10, 0;
 setp.eq.u32 %p1, %r1, 1;
 @%p1 bra reader;
writer:
 xor.b32 %r11, %r10, 1;
 and.b32 %r11, %r11, 1;
free:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3+8], %r11;
 @!%p9 bra free;
 st.shared.u32 [tile], %r10;
 setp.ne.u32 %p2, %r2, 0;
 @%p2 bra written;
 mbarrier.arrive.shared::cta.b64 _, [%r3];
written:
 add.u32 %r10, %r10, 1;
 setp.lt.u32 %p3, %r10, {laps};
 @%p3 bra writer;
 bra.uni over;
reader:
 and.b32 %r11, %r10, 1;
full:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], %r11;
 @!%p9 bra full;
 ld.shared.u32 %r12, [tile];
 setp.ne.u32 %p2, %r2, 0;
 @!%p2 mbarrier.arrive.shared::cta.b64 _, [%r3+8];
 add.u32 %r10, %r10, 1;
 setp.lt.u32 %p3, %r10, {laps};
 @%p3 bra reader;
over:
"""


def test_a_loop_that_spins_on_a_try_is_a_wait_and_lanes_together_are_one_arrival():
    program = program_of(READ_TWO + SPIN.format(0, "+8", 1) + " @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3];\n")
    wait = "WAIT barrier=1 parity=1 semantics=0"
    assert said(program, 0) == [*INIT, MEET, wait, "ARRIVE barrier=0 count=1 expect=0 register=-1 semantics=0"]
    assert said(program, 1) == [MEET, wait]
    assert program.coverage.complete


def test_lanes_that_part_arrive_as_often_as_they_are():
    half = " setp.lt.u32 %p4, %r2, 16;\n @!%p4 bra rest;\n" + ARRIVE.format("+8") + "rest:\n" + ARRIVE.format("")
    program = program_of(READ_TWO + half, warps=1)
    assert said(program, 0)[4:] == [
        "ARRIVE barrier=1 count=16 expect=0 register=-1 semantics=0",
        "ARRIVE barrier=0 count=32 expect=0 register=-1 semantics=0",
    ]


def test_a_ring_is_proved_and_its_words_are_followed_through_shared_memory():
    program = program_of(READ_TWO + RING.format(laps=3))
    found = check(program)
    assert (found.verdict, found.how) == (Verdict.PROVED, How.CERTIFICATE)
    reads = [line for line in said(program, 1) if line.startswith("READ")]
    writes = [line for line in said(program, 0) if line.startswith("WRITE")]
    assert [r.removeprefix("READ") for r in reads] == [w.removeprefix("WRITE") for w in writes]
    assert len(set(reads)) == 3


def test_its_mutants_are_not():
    for right, wrong in (
        ("xor.b32 %r11, %r10, 1;", "mov.u32 %r11, %r10;"),
        ("@%p2 bra written;", "bra written;"),
        ("@!%p2 mbarrier.arrive.shared::cta.b64 _, [%r3+8];", ""),
        ("@!%p9 bra full;", ""),
    ):
        text = RING.format(laps=3)
        assert right in text
        program = program_of(READ_TWO + text.replace(right, wrong))
        assert check(program).verdict is Verdict.REFUTED, wrong


def test_a_warp_that_waits_when_nobody_can_go_on_ends_with_that_wait_and_nothing_is_proved():
    program = program_of(READ_TWO + SPIN.format(0, "", 0) + ARRIVE.format(""))
    assert said(program, 1) == [MEET, "WAIT barrier=0 parity=0 semantics=0"]
    assert program.coverage.blocked == ("warps 0 to 1: waiting at small.ptx:23 when every warp waits",)
    assert check(program).verdict is Verdict.REFUTED


LATER = """ mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r3], 0;
 st.shared.u32 [tile], 7;
 fence.acq_rel.cta;
 @%p5 bra known;
""" + SPIN.format(0, "", 0) + "known:\n" + ARRIVE.format("+8")  # fmt: skip


FIRST = " setp.eq.u32 %p1, %r1, 0;\n @%p1 bra first;\n"


def test_a_try_with_work_before_its_wait_is_a_try_and_a_wait_that_depends_on_it():
    program = program_of(BY_WARP + FIRST + LATER + " bra over;\nfirst:\n" + ARRIVE.format("") + "over:\n")
    names = [line.split()[0] for line in said(program, 1)]
    assert names == ["BAR_SYNC", "TRY_WAIT", "WRITE", "FENCE", "WAIT_UNLESS", "ARRIVE"]
    code = program.code[1]
    assert code[1][:4] == (Op.TRY_WAIT, 0, 0, 0)
    assert code[4][:4] == (Op.WAIT_UNLESS, 0, 0, 0)


TWO = """ mbarrier.try_wait.parity.shared::cta.b64 %p5, [%r3], 0;
 mbarrier.try_wait.parity.shared::cta.b64 %p6, [%r3+8], 0;
 st.shared.u32 [tile+2048], 7;
 and.pred %p7, %p5, %p6;
 @%p7 bra known;
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p8, [%r3], 0;
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3+8], 0;
 and.pred %p10, %p8, %p9;
 @!%p10 bra again;
known:
 ld.shared.u32 %r9, [tile];
 bra over;
first:
""" + ARRIVE.format("") + " st.shared.u32 [tile], 7;\n" + ARRIVE.format("+8") + "over:\n"  # fmt: skip


@pytest.mark.parametrize(
    ("right", "wrong", "proved"),
    [
        ("", "", True),
        ("bra known;", "bra known;\n st.shared.u32 [tile+1024], 7;", False),  # what is not a wait
        ("%p7, %p5, %p6", "%p7, %p5, %p5", False),  # the second is not waited for
        ("and.pred %p7", "or.pred %p7", False),
        ("and.pred %p7, %p5, %p6;", "xor.pred %p7, %p5, %p6;\n not.pred %p7, %p7;", False),
        ("and.pred %p10", "or.pred %p10", False),
        ("and.pred %p10, %p8, %p9", "and.pred %p10, %p5, %p9", False),  # it waits for an answer that stays "not yet"
        ("@!%p10 bra again;", "", False),
        (ARRIVE.format("+8"), "", False),
        ("parity.shared::cta.b64 %p6", "parity.acquire.cluster.shared::cta.b64 %p6", True),
        ("parity.shared::cta.b64 %p6", "parity.acquire.cta.shared::cta.b64 %p6", True),  # the default, written out
        ("parity.shared::cta.b64 %p5", "parity.relaxed.cta.shared::cta.b64 %p5", False),
        ("parity.shared::cta.b64 %p6", "parity.relaxed.cta.shared::cta.b64 %p6", False),
        (
            " st.shared.u32 [tile], 7;\n" + ARRIVE.format("+8"),
            ARRIVE.format("+8") + " st.shared.u32 [tile], 7;\n",
            False,
        ),
    ],
)
def test_two_tries_whose_loop_waits_for_both_are_two_waits(right: str, wrong: str, proved: bool) -> None:
    assert right in TWO
    program = program_of(BY_WARP + FIRST + TWO.replace(right, wrong, 1))
    assert (check(program).verdict is Verdict.PROVED) is proved
    if proved:
        names = [line.split()[0] for line in said(program, 1)]
        assert names == ["BAR_SYNC", "TRY_WAIT", "TRY_WAIT", "WRITE", "WAIT", "WAIT", "READ"]


def test_a_try_right_before_its_wait_is_the_wait():
    near = LATER.replace(" st.shared.u32 [tile], 7;\n fence.acq_rel.cta;\n", "")
    program = program_of(BY_WARP + FIRST + near + " bra over;\nfirst:\n" + ARRIVE.format("") + "over:\n")
    assert [line.split()[0] for line in said(program, 1)] == ["BAR_SYNC", "WAIT", "ARRIVE"]


@pytest.mark.parametrize(
    ("tries", "faults"),
    [
        (("", ""), []),
        ((".acquire.cta", ".acquire.cluster"), []),
        ((".relaxed.cta", ""), ["WEAK_ORDER"]),
        (("", ".relaxed.cta"), ["WEAK_ORDER"]),
    ],
)
def test_a_relaxed_try_that_skips_an_acquiring_wait_orders_no_data(tries: tuple[str, str], faults: list[str]) -> None:
    ask = " mbarrier.try_wait.parity{}.shared::cta.b64 %p5, [%r3], 0;\n @%p5 bra known;\n"
    text = "".join(map(ask.format, tries)) + SPIN.format(0, "", 0) + "known:\n ld.shared.u32 %r9, [tile];\n bra over;\n"
    text += "first:\n st.shared.u32 [tile], 7;\n" + ARRIVE.format("") + "over:\n"
    found = check(program_of(BY_WARP + FIRST + text))
    assert found.verdict is (Verdict.REFUTED if faults else Verdict.PROVED)
    assert [each.kind.name for each in found.refutations] == faults


@pytest.mark.parametrize(
    ("first", "then", "faults"),
    [
        ("", "", []),
        (".acquire.cta", "", []),  # what PTX gives a try without both, as compilers write it out
        (".acquire.cta", ".acquire.cluster", ["NARROW_SCOPE"]),
        (".acquire.cta", ".acquire.cta", ["NARROW_SCOPE"]),
        (".relaxed.cta", "", ["WEAK_ORDER"]),
    ],
)
def test_a_try_of_cta_scope_before_a_wait_without_scope_is_written_as_that_wait(
    first: str, then: str, faults: list[str]
) -> None:
    met = " barrier.cluster.arrive.release;\n barrier.cluster.wait.acquire;\n"
    text = " mov.u32 %r4, %cluster_ctarank;\n setp.ne.u32 %p1, %r4, 0;\n @%p1 bra other;\n setp.ne.u32 %p2, %r2, 0;\n"
    text += f" mbarrier.try_wait.parity{first}.shared::cta.b64 %p5, [%r3], 0;\n ld.shared.u32 %r8, [tile+64];\n"
    text += " @%p5 bra known;\n" + SPIN.format(0, "", 0).replace("parity", f"parity{then}") + "known:\n"
    text += " ld.shared.u32 %r9, [tile];\n bra over;\nother:\n mov.u32 %r5, tile;\n"
    text += " mapa.shared::cluster.u32 %r6, %r5, 0;\n mapa.shared::cluster.u32 %r7, %r3, 0;\n"
    text += " @!%p0 st.shared::cluster.u32 [%r6], 7;\n"
    text += " @!%p0 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%r7];\nover:\n"
    start = SET_UP.format(first=1, count=1) + " st.shared.u32 [tile+64], 1;\n bar.warp.sync -1;\n"
    found = check(program_of(start + met + text + met, 1, cluster=2))
    assert found.verdict is (Verdict.REFUTED if faults else Verdict.PROVED)
    assert [each.kind.name for each in found.refutations] == faults


def test_what_differs_by_the_answer_of_a_try_otherwise_is_not_followed():
    text = FIRST + LATER.replace("@%p5 bra known;", "@%p5 bra known;\n" + ARRIVE.format("+8"))
    program = program_of(BY_WARP + text + " bra over;\nfirst:\n" + ARRIVE.format("") + "over:\n")
    assert "depends on the result of a try_wait" in program.coverage.stopped[0]
    assert check(program).how is How.CUT
    assert check(program).verdict is Verdict.UNKNOWN


PARAM = ".param .u32 laps"
UNTIL = """ ld.param.u32 %r20, [laps];
 setp.eq.u32 %p6, %r20, 0;
 @%p6 bra over;
""" + ARRIVE.format("") + "over:\n"  # fmt: skip


def test_a_branch_on_an_open_parameter_that_decides_an_arrive_names_the_word():
    program = program_of(READ_TWO + UNTIL, params=PARAM, values=[word(None)])
    (said_of_both,) = program.coverage.stopped
    assert said_of_both == (
        "warps 0 to 1: not followed beyond small.ptx:24: a branch depends on "
        "byte 0 of the parameters, which --set 0=VALUE gives (line 22 of the PTX)"
    )
    assert check(program).verdict is Verdict.UNKNOWN
    known = program_of(READ_TWO + UNTIL, params=PARAM, values=[word(0)])
    assert known.coverage.complete
    assert check(known).verdict is Verdict.PROVED


def test_a_branch_on_an_array_that_is_not_given_names_all_of_it():
    load = " ld.param.u64 %rd10, [laps];\n ld.global.u64 %rd11, [%rd10+8];\n setp.eq.u64 %p6, %rd11, 0;\n"
    text = READ_TWO + load + UNTIL.partition(";\n")[2].partition(";\n")[2]
    stopped = program_of(text, params=".param .u64 laps", values=[Pointer()]).coverage.stopped
    assert "which --set 0:8=VALUE gives" in stopped[0]
    assert stopped[1] == "give all that the kernel needs with --set 0:0=u64:VALUE,VALUE"


def test_a_branch_on_it_that_decides_no_more_than_numbers_is_run_both_ways():
    numbers = UNTIL.replace(ARRIVE.format(""), " mov.u32 %r30, 5;\n mov.u32 %r31, 1;\n")
    before = " mov.u32 %r30, 5;\n mov.u32 %r31, 2;\n"
    after = " setp.eq.u32 %p7, %r{0}, {1};\n @%p7 bra end;\n" + ARRIVE.format("") + "end:\n"
    same = program_of(READ_TWO + before + numbers + after.format(30, 5), params=PARAM, values=[word(None)])
    assert same.coverage.complete
    differs = program_of(READ_TWO + before + numbers + after.format(31, 2), params=PARAM, values=[word(None)])
    assert "byte 0 of the parameters" in differs.coverage.stopped[0]


BOUNDED = """ mov.u32 %r40, %globaltimer_lo;
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3+8], 1;
 @%p9 bra done;
 mov.u32 %r41, %globaltimer_lo;
 sub.u32 %r41, %r41, %r40;
 setp.lt.u32 %p8, %r41, 1000;
 @%p8 bra again;
 trap;
done:
"""


def test_the_time_out_of_a_wait_is_not_followed_and_said():
    program = program_of(READ_TWO + BOUNDED)
    assert said(program, 1) == [MEET, "WAIT barrier=1 parity=1 semantics=0"]
    assert Assumed(Assumption.TIME_OUTS, "the wait at small.ptx:24 does not time out") in program.coverage.assumed
    assert check(program).verdict is Verdict.PROVED


TRY = " mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3+8], 1;\n"
SELECTED = " selp.u32 %r30, 1, 0, %p9;\n setp.ne.u32 %p8, %r30, 0;\n"


@pytest.mark.parametrize(
    ("once", "verdict"),
    [
        (TRY + " @%p9 bra done;\n trap;\ndone:\n", Verdict.PROVED),
        (TRY + " @!%p9 bra late;\n bra.uni done;\nlate:\n trap;\ndone:\n", Verdict.PROVED),
        (TRY + SELECTED + " @%p8 bra done;\n trap;\ndone:\n", Verdict.PROVED),
        (TRY + " @%p9 bra done;\n" + TRY + " @%p9 bra done;\n trap;\ndone:\n", Verdict.PROVED),
        (TRY + " @!%p9 trap;\n", Verdict.UNKNOWN),
        (TRY + " mov.pred %p8, %p9;\n" + TRY + " or.pred %p8, %p8, %p9;\n @!%p8 trap;\n", Verdict.UNKNOWN),
        (TRY + " @%p9 bra done;\n" + TRY + " @%p9 bra done;\ndone:\n", Verdict.REFUTED),
    ],
)
def test_a_try_whose_no_is_a_trap_is_a_wait(once: str, verdict: Verdict):
    """The other warp fills the tile and arrives: who reads it has waited, or the launch has ended in a trap."""
    fill = " setp.eq.u32 %p1, %r1, 0;\n @%p1 bra reads;\n st.shared.u32 [tile], 5;\n"
    fill += " mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n bra.uni end;\nreads:\n"
    program = program_of(SET_UP.format(first=1, count=32) + fill + once.replace("], 1", "], 0")
                         + " ld.shared.u32 %r31, [tile];\nend:\n")  # fmt: skip
    assert check(program).verdict is verdict
    assert (verdict is Verdict.PROVED) is any(each.kind is Assumption.TIME_OUTS for each in program.coverage.assumed)


def test_a_loop_that_only_values_end_which_are_not_known_is_not_followed_for_ever():
    """A lock in shared memory: what an atomic on it returns is not known, and each lap is within the one before."""
    lock = "again:\n atom.shared.cas.b32 %r30, [tile], 0, 1;\n setp.ne.u32 %p8, %r30, 0;\n @%p8 bra again;\n"
    found = extraction_of(SET_UP.format(first=1, count=1) + lock + " st.shared.u32 [tile], 0;\n", 1)
    assert "a branch depends on the result of an atomic (atom.shared.cas.b32)" in found.program.coverage.stopped[0]
    assert found.instructions < 1_000


def test_a_warp_that_traps_is_not_followed():
    program = program_of(READ_TWO + " trap;\n")
    assert "the kernel traps here" in program.coverage.stopped[0]
    assert check(program).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize("access", ["shared.u32 [tile]", "local.u32 [printed]"])
def test_a_trap_by_data_is_not_taken_also_after_an_access(access):
    """As of an ``assert`` that prints before it traps."""
    checked = f""" .local .align 4 .b32 printed;
 st.local.u32 [printed], 128;
 ld.global.u64 %rd2, [%rd1];
 setp.eq.s64 %p6, %rd2, 0;
 @!%p6 bra good;
 st.{access}, 5;
 trap;
good:
 ld.local.u32 %r30, [printed];
 add.u32 %r30, %r30, %r3;
 @!%p0 st.shared.u32 [%r30], 5;
 bar.sync 0;
"""
    program = program_of(SET_UP.format(first=1, count=1) + checked)
    assert not program.coverage.stopped
    assert [each.kind for each in program.coverage.assumed] == [Assumption.TRAPS]


ALONE = """ setp.eq.u32 %p1, %r0, 1;
 @%p1 bra waits;
 setp.ne.u32 %p1, %r0, 0;
 @%p1 bra over;
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3+8], 0;
 @!%p9 bra again;
 mbarrier.arrive.shared::cta.b64 _, [%r3];
 bra.uni over;
waits:
 mbarrier.arrive.shared::cta.b64 _, [%r3+8];
full:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;
 @!%p9 bra full;
over:
"""


def test_lanes_of_a_warp_that_wait_for_each_other_are_agents_of_their_own():
    program = program_of(READ_TWO + ALONE, warps=1)
    assert sorted(agent.lanes for agent in program.agents) == [0b10, 0xFFFFFFFD]
    assert program.coverage.complete
    assert check(program).verdict is Verdict.PROVED
    syncs = [op[2:] for op in program.operations if op[0] == Op.BAR_SYNC]
    assert sorted(syncs) == [(32, 1), (32, 31)]


CLOCK = """ mov.u32 %r20, 1;
 mov.u32 %r21, 1;
spin:
 mov.u32 %r22, %clock;
 {body}
 setp.lt.u32 %p5, %r22, 100;
 @%p5 bra spin;
 bar.sync %r23, 64;
"""


def test_what_each_iteration_of_a_loop_of_unknown_length_computes_again_is_known_after_it():
    again = program_of(READ_TWO + CLOCK.format(body="add.u32 %r24, %r20, 1; add.u32 %r23, %r24, 1;"))
    assert again.coverage.complete
    assert again.named_barriers == ((0, 0), (0, 3))
    counted = program_of(READ_TWO + CLOCK.format(body="add.u32 %r21, %r21, 1; add.u32 %r23, %r21, 1;"))
    assert "the number of a named barrier is not known" in counted.coverage.stopped[0]
    guarded = program_of(READ_TWO + CLOCK.format(body="mov.u32 %r23, 2; @%p0 add.u32 %r23, %r20, 2;"))
    assert "the number of a named barrier is not known" in guarded.coverage.stopped[0]


FACTOR = """ mov.b32 %r41, {0};
 mov.b32 %r42, {1};
 {2}.f32 %r43, %r41, %r42;
 setp.{3}.f32 %p1, %r43, {4};
 @%p1 bra over;
 @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3];
over:
"""


def test_a_factor_that_decides_an_arrive_is_computed_as_the_gpu_rounds_it():
    def arrives(*given: str) -> bool:
        return any("ARRIVE barrier=0" in each for each in said(program_of(READ_TWO + FACTOR.format(*given)), 0))

    assert not arrives("0f3F800000", "0f00000000", "mul", "eq", "0f00000000")
    assert arrives("0f3F800000", "0f3F800000", "mul", "eq", "0f00000000")
    # 1 + 2^-24 is rounded to the even neighbour, 1; 1 + 3 * 2^-24 to 1 + 2^-22
    assert not arrives("0f3F800000", "0f33800000", "add", "eq", "0f3F800000")
    assert not arrives("0f3F800001", "0f33800000", "add", "eq", "0f3F800002")
    assert arrives("0f3F800001", "0f33800000", "add", "eq", "0f3F800001")
    # the largest number twice is infinite, and infinity less itself no number
    assert not arrives("0f7F7FFFFF", "0f7F7FFFFF", "add", "eq", "0f7F800000")
    assert not arrives("0f7F800000", "0f7F800000", "sub", "nan", "0f00000000")


def test_the_larger_number_that_is_not_negative():
    text = """ mov.u32 %r4, {0};
 max.relu.s32 %r5, %r4, {1};
 setp.eq.u32 %p1, %r5, {2};
 @!%p1 bra over;
 @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3];
over:
"""
    for a, b, largest in ((-5, -3, 0), (-5, 3, 3), (7, 3, 7)):
        assert "ARRIVE" in " ".join(said(program_of(READ_TWO + text.format(a, b, largest)), 0))
        assert "ARRIVE" not in " ".join(said(program_of(READ_TWO + text.format(a, b, largest + 1)), 0))


def test_ways_of_an_answer_that_differ_by_waits_and_tries_are_branches_and_a_wrong_one_is_refuted():
    again = """ mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;
 @%p9 bra done;
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], {second};
 @%p9 bra done;
""" + SPIN.format(0, "", 0) + "done:\n ld.shared.u32 %r12, [tile];\n"  # fmt: skip
    body = READ_TWO + " setp.eq.u32 %p1, %r1, 1;\n @%p1 bra reader;\n st.shared.u32 [tile], %r2;\n"
    body += " bar.warp.sync -1;\n @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3];\n bra.uni over;\nreader:\n"
    right = program_of(body + again.format(second=0) + "over:\n")
    assert check(right).verdict is Verdict.PROVED
    wrong = program_of(body + again.format(second=1) + "over:\n")
    assert any(line.startswith("JUMP_IF") for line in said(wrong, 1))
    assert check(wrong).verdict is Verdict.REFUTED


#: Warp 0 waits for the second arrival of warp 1, which waits for an arrival that warp 0 makes after its wait.
CROSSED = (
    READ_TWO
    + " setp.eq.u32 %p1, %r1, 1;\n @%p1 bra other;\n"
    + SPIN.format(0, "", 0)
    + " @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3+8];\n bra.uni over;\nother:\n"
    + SPIN.format(1, "+8", 0)
    + " setp.eq.u32 %p2, %r2, 0;\n @%p2 mbarrier.arrive.shared::cta.b64 _, [%r3];\nover:\n"
)


def test_nothing_is_claimed_of_what_follows_the_waits_of_a_deadlock():
    program = program_of(CROSSED)
    assert len(program.coverage.blocked) == 2
    (refuted,) = check(program).refutations
    deadlock = refuted.deadlock
    assert deadlock is not None
    assert deadlock.cut
    assert with_causes(program, Play(program, refuted.schedule).state, deadlock, ()).correction == ""
    lines = "\n".join(deadlock_lines(deadlock, 200))
    assert lines.count("nothing that was read sends what is missing") == 2
    assert "no operation of the program" not in lines


def test_a_deadlock_of_what_was_read_has_no_warp_that_goes_on_unread():
    """Two warps free a slot that counts one arrival: the writer misses a phase, or takes the slot too early."""
    program = program_of(READ_TWO + RING.format(laps=4).replace("setp.eq.u32 %p1", "setp.ge.u32 %p1"), 3)
    assert len(program.coverage.blocked) == 2
    stuck = [each.deadlock for each in check(program).refutations if each.deadlock is not None]
    assert [deadlock.finished for deadlock in stuck] == [()]


@pytest.mark.parametrize(
    "either", [" or.pred %p7, %p0, %p6;\n", " or.pred %p7, %p6, %p0;\n", " setp.eq.or.u32 %p7, %r20, 0, %p0;\n"]
)
def test_one_of_two_conditions_holds_whatever_the_other_is(either: str):
    """``if (tid != 0 || word == 0) skip``: what the word decides is thread 0's alone, and other warps store nothing."""
    body = READ_TWO + UNTIL.partition(" @%p6")[0] + either + " @%p7 bra over;\n st.shared.u32 [tile], %r20;\nover:\n"
    program = program_of(body, params=PARAM, values=[word(None)])
    assert program.coverage.complete
    assert not program.coverage.assumed
    assert said(program, 1) == [MEET]


def test_copies_from_places_that_are_not_known_are_different_items():
    copy = " @!%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 16, [%r3];\n"
    expect = " @!%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;\n"
    program = program_of(READ_TWO + "".join(expect + copy + SPIN.format(n, "", n) for n in (0, 1)))
    first, second = (op for op in program.code[0] if op[0] == Op.TMA_LOAD)
    assert operand(first, "item") != operand(second, "item")


def test_a_loop_with_an_init_around_a_try_is_none_of_its_answer():
    body = READ_TWO + SPIN.format(0, "+8", 1).replace(" @!", " mbarrier.init.shared::cta.b64 [%r3+16], 1;\n @!")
    assert "depends on the result of a try_wait" in program_of(body).coverage.stopped[0]


#: Warp 0 stores a tile and then a flag, for which warp 1 waits before it reads the tile.
FLAG = (
    READ_TWO
    + " setp.eq.u32 %p1, %r1, 1;\n @%p1 bra reader;\n st.shared.u32 [tile+4], %r2;\n"
    + " @!%p0 st.release.cta.shared.u32 [tile], 1;\n bra.uni over;\nreader:\n"
    + " {load}.shared.u32 %r10, [tile];\n setp.eq.u32 %p3, %r10, 0;\n @%p3 bra reader;\n"
    + " ld.shared.u32 %r11, [tile+4];\nover:\n"
)


@pytest.mark.parametrize(
    ("load", "verdict"),
    [
        ("ld.acquire.cta", Verdict.UNKNOWN),
        ("ld.relaxed.cta", Verdict.UNKNOWN),
        ("ld.volatile", Verdict.UNKNOWN),
        ("ld", Verdict.REFUTED),
    ],
)
def test_a_wait_for_a_flag_in_shared_memory_is_not_refuted(load: str, verdict: Verdict):
    program = program_of(FLAG.replace("{load}", load))
    assert check(program, 2_000).verdict is verdict
    assert any("looks at a word of shared memory" in each for each in program.coverage.weakened) == (load != "ld")


#: Warp 0 stores, and its first lane signals it; warp 1 asks for a parity, goes back by the answer, and reads.
ASKS = (
    SET_UP.format(first=1, count=1)
    + """ setp.eq.u32 %p1, %r1, 1;
 setp.ne.u32 %p5, %r0, 0;
 @%p1 bra again;
 st.shared.u32 [tile], %r2;
 bar.warp.sync -1;
 @!%p5 mbarrier.arrive.shared::cta.b64 _, [%r3];
 bra done;
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], {parity};
 {back} bra again;
 {fence} ld.shared.u32 %r9, [tile];
done:
"""
)
FENCE, INVERTED = "fence.acq_rel.cta;\n", " not.pred %p8, %p9;\n"


@pytest.mark.parametrize("on_no", ["@!%p9", f"{INVERTED} @%p8"])
@pytest.mark.parametrize("on_yes", ["@%p9", f"{INVERTED} @!%p8"])
def test_a_loop_that_goes_back_on_yes_waits_for_the_other_parity_and_orders_nothing(on_no: str, on_yes: str) -> None:
    """PTX ISA, "mbarrier.try_wait": yes of the phase before the one under way; it acquires if it returns true."""

    def found(parity: int, back: str, fence: str = "") -> list[str]:
        shown = check(program_of(ASKS.format(parity=parity, back=back, fence=fence)))
        return [shown.verdict.value, *sorted(each.kind.name for each in shown.refutations)]

    assert found(0, on_no) == found(1, on_yes, FENCE) == ["proved"]
    assert found(1, on_yes) == ["refuted", "WEAK_ORDER"]
    assert found(1, on_no) == found(0, on_yes, FENCE) == ["refuted", "DEADLOCK", "RACE"]


@pytest.mark.parametrize(
    "name", ["warpid", "nwarpid", "gridid", "smid", "clock", "is_explicit_cluster", "total_smem_size", "envreg3", "pm0"]
)
def test_a_special_register_that_the_launch_does_not_decide_is_not_known(name):
    program = program_of(
        READ_TWO
        + f" mov.u32 %r30, %{name};\n setp.ne.u32 %p5, %r30, 1;\n @%p5 bra end;\n"
        + ARRIVE.format("")
        + "end:\n"
    )
    assert f"the special register %{name}" in program.coverage.stopped[0]


@pytest.mark.parametrize(
    ("name", "lane_0", "lane_31"),
    [
        ("laneid", 0, 31), ("lanemask_eq", 1, 1 << 31), ("lanemask_lt", 0, 0x7FFFFFFF), ("lanemask_le", 1, 0xFFFFFFFF),
        ("lanemask_gt", 0xFFFFFFFE, 0), ("lanemask_ge", 0xFFFFFFFF, 1 << 31), ("tid.x", 0, 31), ("ntid.x", 32, 32),
        ("cluster_ctarank", 0, 0), ("cluster_nctarank", 2, 2), ("is_explicit_cluster", 1, 1), ("nclusterid.x", 1, 1),
        ("nctaid.x", 2, 2), ("clusterid.x", 0, 0), ("dynamic_smem_size", 0, 0),
    ],
)  # fmt: skip
def test_a_special_register_that_the_launch_decides(name, lane_0, lane_31):
    asks = f" mov.u32 %r30, %{name};\n setp.eq.u32 %p5, %r2, 0;\n selp.u32 %r31, {lane_0}, {lane_31}, %p5;\n"
    asks += " setp.eq.u32 %p6, %r2, 0;\n setp.eq.u32 %p5, %r2, 31;\n or.pred %p6, %p6, %p5;\n"
    asks += " @!%p6 bra end;\n setp.ne.u32 %p5, %r30, %r31;\n @%p5 bra end;\n" + ARRIVE.format("") + "end:\n"
    assert said(program_of(READ_TWO + asks, 1, cluster=2), 0)[-1].startswith("ARRIVE barrier=0 count=2")


def test_what_runs_before_have_had_of_a_limit_changes_no_message():
    """The limit is that of all runs of a cluster together, and is said as it was asked for."""
    rest = EmulationLimits(instructions=60).without(40).without(30)
    assert (rest.instructions, rest.asked) == (-10, 60)
    endless = "again:\n st.shared.u32 [tile], 0;\n bra again;\n"
    (said_of_it,) = extraction_of(SET_UP.format(first=1, count=1) + endless, 1, limits=rest).program.coverage.stopped
    assert "the limit of 60 warp instructions was reached" in said_of_it
