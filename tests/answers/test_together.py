"""CTAs that wait for each other by words of global memory: what is proved, and what is refuted at which line.

The kernels are those of ``tests/ptx/flags/flags.cu``: of each pattern variant 0 is right, the others are wrong.
"""

import random
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache
from itertools import product

import pytest

from hwkernels.device.compile import compile_ptx
from pipesim.answers.check import check
from pipesim.answers.every_cta.together import Together, programs_together
from pipesim.model.coverage import LENIENT, ON_GLOBAL, Assumption, NotJudgedKind, Strictness
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.prove.check import How
from pipesim.prove.check import check as prove
from pipesim.prove.refutation import sides_of
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Array, Field, Launch, Number, Parameter, Pointer
from pipesim.ptx.text.read import read_module
from pipesim.report.sentences.check import scope_parts
from pipesim.targets import Target, find, target_of
from tests.support.paths import ROOT
from tests.support.random_words import Step, described, judged, judged_inside, judged_talk, judged_weak

FOLDER = ROOT / "tests" / "ptx" / "flags"
SOURCE = (FOLDER / "flags.cu").read_text().splitlines()
DEADLOCK, RACE, WEAK, NARROW = Ending.DEADLOCK, FaultKind.RACE, FaultKind.WEAK_ORDER, FaultKind.NARROW_SCOPE

#: Of each wrong kernel the kind, and words of the line at which an agent waits or makes the second access.
WRONG: dict[str, tuple[FaultKind | Ending, str]] = {
    "counter_barrier_1": (DEADLOCK, "acquire(flags) < wanted"),  # a count of one too many
    "counter_barrier_2": (RACE, "x[me * kThreads] = me;"),  # the counter goes up before the store
    "counter_barrier_3": (WEAK, "y[me"),  # no release
    "counter_barrier_4": (NARROW, "y[me"),  # a release of .cta scope
    "counter_barrier_5": (WEAK, "y[me"),  # no acquire
    "counter_barrier_6": (DEADLOCK, "acquire(flags) < wanted"),  # one CTA never comes
    "counter_barrier_7": (RACE, "y[me"),  # a count of one too few
    "lap_barrier_1": (RACE, "= lap;"),  # the next lap overwrites what others read
    "generation_barrier_1": (WEAK, "y[(lap"),  # no fence before the arrival
    "generation_barrier_2": (DEADLOCK, "== generation"),  # the generation is never changed
    "generation_barrier_3": (DEADLOCK, "== generation"),  # the count is not taken back
    "bit_barrier_1": (RACE, "y[(lap"),  # the first CTA adds one too many
    "bit_barrier_2": (WEAK, "y[(lap"),
    "semaphore_1": (DEADLOCK, "acquire(flags) !="),  # each waits for another one's turn
    "semaphore_2": (RACE, "y[threadIdx.x] +="),  # the turn is given before all warps have added
    "semaphore_3": (DEADLOCK, "acquire(flags) !="),  # the first one does not give the turn
    "fix_up_1": (RACE, "x[me * kThreads + threadIdx.x] = me;"),  # set before the stores
    "fix_up_2": (NARROW, "y[me"),
    "fix_up_4": (RACE, "y[me"),  # other warps do not wait for the one that waits
    "last_block_1": (RACE, "sum += x"),  # counted before all warps have stored
    "last_block_3": (WEAK, "sum += x"),  # no fence
    "last_block_4": (WEAK, "sum += x"),  # no fence after the atomic
    "lock_1": (DEADLOCK, "atomicCAS"),  # not given back
    "lock_2": (WEAK, "y[threadIdx.x] +="),  # no fence after it is taken
    "lock_3": (WEAK, "y[threadIdx.x] +="),  # no fence before it is given back
    "ring_1": (RACE, "x[threadIdx.x] = lap"),  # the producer does not wait for the consumer
    "ring_2": (DEADLOCK, "acquire(flags) < lap"),  # it sets the other flag
    "hand_over_1": (DEADLOCK, "acquire(flags)"),  # taken back before the other one has seen it
    "hand_over_2": (RACE, "x[threadIdx.x]"),  # taken back before the row is read
    "all_reduce_1": (RACE, "sum += x"),
    "all_reduce_2": (DEADLOCK, "== (kWrong"),  # it waits for the wrong value
    "two_flags_1": (RACE, "y[threadIdx.x] ="),  # the two flags in the wrong order
}
#: Of this one it is not known who else writes the words in a larger grid, as CTAs differ: of 3 CTAs.
SMALL = ("all_reduce_2",)
RIGHT = (
    "counter_barrier", "lap_barrier", "generation_barrier", "bit_barrier", "semaphore", "fix_up", "last_block", "lock",
    "ring", "hand_over", "all_reduce", "two_flags",
)  # fmt: skip


SOMEWHERE = Pointer()


@cache
def text() -> str:
    return (FOLDER / "flags.ptx").read_text()


def read(
    name: str, whole: str, grid: int = 132, names: Sequence[str] = ("flags", "x", "y"), flags: Pointer = SOMEWHERE
) -> Target:  # fmt: skip
    given = tuple(Parameter(each, Pointer() if n else flags) for n, each in enumerate(names))
    module = read_module(whole, "flags.ptx", name)
    made = extract(module, Launch(name, (grid, 1, 1), (64, 1, 1), parameters=given))
    return Target(name, None, made.program, {}, "", kernel=made)


def target(name: str, grid: int = 132) -> Target:
    return read(name, text(), grid)


def shown(name: str) -> set[tuple[FaultKind | Ending, str]]:
    """The kinds and lines of what is wrong with the first program that is."""
    kernel = target(name, 3 if name in SMALL else 132).kernel
    assert kernel is not None
    for _, made in programs_together(kernel, Together(), LENIENT):
        program, found = made.program, prove(made.program)
        waits = {program.line(agent, len(program.code[agent]) - 1) for agent in program.cut}
        lines = {
            (each.kind, line)
            for each in found.refutations
            for line in (sides_of(program, each.fault) if each.fault is not None else waits)
        }
        if found.verdict is Verdict.REFUTED:
            return {(kind, SOURCE[int(line.rpartition(":")[2]) - 1]) for kind, line in lines}
    return set()


MANY_ORDERS = ("last_block", "generation_barrier", "bit_barrier", "lap_barrier")


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.slow] * (each in MANY_ORDERS)) for each in RIGHT]
)
def test_right_kernels_are_proved_for_several_numbers_of_ctas(name: str) -> None:
    ctas = 6 if name == "all_reduce" else 40  # each waits for each other
    found = check(target(f"{name}_0", ctas), {}, quick=True)
    assert found.verdict is Verdict.PROVED
    assert found.scope.together[0] == 2
    assert found.scope.words[0] == ("flags[1]" if name in ("fix_up", "two_flags") else "flags[0]")
    assert {each.kind for each in found.scope.not_judged if each.names} <= {*ON_GLOBAL}  # of other CTAs
    zeros = [each.what for each in found.scope.assuming if each.kind is Assumption.POLICIES]
    assert any(each.endswith("is 0 at the launch") for each in zeros)
    loops = [each.what for each in found.scope.assuming if each.kind is Assumption.GLOBAL_LOOPS]
    most = found.scope.together[-1]
    meet = name in ("counter_barrier", "lap_barrier")
    assert found.scope.meet is meet
    assert found.scope.any_ctas == (65_536 if meet else 0)
    assert (most == ctas) is (name in WHOLE)
    said = f"{ctas} CTAs wait for each other, and order what they access, as {most} do"
    assert loops == ([] if name in WHOLE or name == "last_block" else [said])


#: Of these a grid of 40 CTAs is followed whole: no answer of an atomic decides what they do.
WHOLE = ("all_reduce", "counter_barrier", "lap_barrier", "semaphore", "fix_up", "ring", "hand_over", "two_flags")


@pytest.mark.slow
@pytest.mark.parametrize(("name", "ctas"), [("grid_barrier_hangs", 8), ("split_k_hangs", 6)])
def test_ctas_of_which_one_leaves_early_are_followed_whole(name: str, ctas: int) -> None:
    """Both hang on a GPU: some CTAs, followed in a smaller grid, say nothing of that."""
    found = check(find(str(ROOT / "tests" / "hang" / "records" / "words" / f"{name}.ptx")), {}, quick=True)
    assert [each.finding.kind for each in found.refutations] == [DEADLOCK]
    assert found.scope.policies == {"together": (ctas,)}


@pytest.mark.parametrize("name", WRONG)
def test_wrong_kernels_are_refuted_at_the_line_that_is_wrong(name: str) -> None:
    kind, words = WRONG[name]
    found = shown(name)
    assert {each for each, _ in found} == {kind}
    assert any(words in line for _, line in found), found


#: Of the kernels of ``reports.cu`` how many CTAs are followed, and the kinds of what is wrong with the wrong one.
REPORTS: dict[str, tuple[int, set[FaultKind]]] = {
    "last_resets": (4, {RACE, WEAK}),  # the first one takes the count back
    "plain_reset": (3, {RACE, WEAK}),  # after it has let the others go on
    "early_reset": (3, {RACE}),
    "initialised": (3, {RACE}),
    "plain_flag": (4, {RACE, WEAK}),
    "scan": (4, {RACE, WEAK}),  # the sum beside the word of the flag
    "scheduler": (3, {RACE}),  # the next tile comes while a warp has yet to load this one
    "chain": (4, {RACE}),  # a flag before the tile is stored
    "bulk_sum": (4, {RACE}),
}


@pytest.mark.parametrize(
    "name", [pytest.param(each, marks=[pytest.mark.long] * (each == "plain_reset")) for each in REPORTS]
)
def test_kernels_of_the_kinds_that_are_reported_are_refuted_where_they_are_wrong(name: str) -> None:
    pytest.importorskip("cuda.bindings.nvrtc")
    source, (ctas, kinds) = FOLDER / "reports.cu", REPORTS[name]
    right, wrong = (check(read(name, compile_ptx(source, {"WRONG": n}), ctas), {}, quick=True) for n in (0, 1))
    assert right.verdict is Verdict.PROVED
    assert right.scope.together == ((ctas,) if name != "scheduler" else ())  # what is handed out is that of one CTA
    assert {each.finding.kind for each in wrong.refutations} == kinds
    lines = source.read_text().splitlines()
    mine = next(n for n, line in enumerate(lines) if f" {name}(" in line)
    marked = next(n for n in range(mine, len(lines)) if "// wrong" in lines[n]) + 1
    assert f"reports.cu:{marked}" in str([each.finding for each in wrong.refutations])


@pytest.mark.slow
def test_a_refutation_says_how_it_is_seen_again() -> None:
    found = check(target("counter_barrier_1"), {}, quick=True)
    assert found.verdict is Verdict.REFUTED
    assert found.scope.policies == {"together": (2,)}
    assert found.heading.grid == 2
    assert "flags[0]" in str(found.refutations[0].finding)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "old", "new", "why"),
    [
        ("counter_barrier_0", "mov.u32 \t%r1, %nctaid.x", "mov.u32 \t%r1, 300", "more CTAs than are followed together"),
        (
            "counter_barrier_0",
            "ld.acquire.gpu.global.u32 %r7, [%rd3]",
            "ld.acquire.gpu.global.u32 %r7, [%rd3+2]",
            "parts of the word",
        ),
    ],
)
def test_what_is_not_understood_is_not_judged(name: str, old: str, new: str, why: str) -> None:
    begin = text().index(f".entry {name}(")
    before, mine = text()[:begin], text()[begin:]
    assert old in mine
    found = check(read(name, before + mine.replace(old, new, 1), 300), {}, quick=True)
    assert (found.verdict, found.how) == (Verdict.UNKNOWN, How.OPEN_WORDS)
    ((said,),) = [each.names for each in found.scope.not_judged if each.kind is NotJudgedKind.WORDS]
    assert why in said
    assert any(each.kind is Assumption.GLOBAL_LOOPS for each in found.scope.assuming)


#: CTA 0 waits for a word that a later one sets.
LATER = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry later(.param .u64 flags)
{ .reg .pred %p<4>; .reg .b32 %r<8>; .reg .b64 %rd<4>;
mov.u32 %r3, %tid.x; setp.ne.u32 %p0, %r3, 0; @%p0 ret;
ld.param.u64 %rd1, [flags]; mov.u32 %r1, %ctaid.x; setp.eq.u32 %p1, %r1, 0; @%p1 bra wait;
setp.ne.u32 %p2, %r1, SETS; @%p2 ret;
st.release.gpu.global.u32 [%rd1+4], 1; ret;
wait: ld.acquire.gpu.global.u32 %r2, [%rd1+4]; setp.eq.u32 %p3, %r2, 0; @%p3 bra wait;
ret; }
"""


@pytest.mark.parametrize(
    ("sets", "grid", "together"),
    [("6", 132, (132,)), ("6", 300, ()), ("200", 132, ()), ("1", 132, (2, 3, 4, 132)), ("1", 300, (2, 3, 4))],
)
def test_who_sets_a_word_may_be_a_cta_that_is_not_followed(sets: str, grid: int, together: tuple[int, ...]) -> None:
    found = check(read("later", LATER.replace("SETS", sets), grid, names=("flags",)), {}, quick=True)
    assert found.verdict is (Verdict.PROVED if together else Verdict.UNKNOWN)
    assert found.scope.together == together


def kernel(
    body: str, grid: int = 3, threads: int = 1, which: str = "%ctaid.x", given: Pointer = SOMEWHERE
) -> Target:  # fmt: skip
    """Threads ``%r0`` of each CTA ``%r1`` do this: ``%rd1`` are words, ``%rd2`` data, ``%rd3`` the CTA's own."""
    whole = f""".version 8.6
.target sm_90a
.address_size 64
.visible .entry small(.param .u64 flags, .param .u64 x, .param .u64 y)
{{ .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .reg .f32 %f<9>;
mov.u32 %r0, %tid.x; setp.ge.u32 %p0, %r0, {threads}; @%p0 ret; mov.u32 %r1, {which};
ld.param.u64 %rd1, [flags]; ld.param.u64 %rd2, [x]; ld.param.u64 %rd4, [y]; mad.wide.u32 %rd3, %r1, 4, %rd4;
{body}
ret; }}
"""
    return read("small", whole, grid, flags=given)


#: A barrier of 3 CTAs, twice, with nothing else in the outer loop that synchronises.
TWICE = """mov.u32 %r9, 0;
again: membar.gl; red.global.add.u32 [%rd1], 1; mad.lo.u32 %r2, %r9, 3, 3;
spin: ld.volatile.global.u32 %r8, [%rd1]; setp.lt.u32 %p2, %r8, %r2; @%p2 bra spin;
membar.gl; st.global.u32 [%rd3], %r9; add.u32 %r9, %r9, 1; setp.lt.u32 %p3, %r9, 2; @%p3 bra again;"""


def test_a_wait_ends_where_its_loop_does_not_where_the_loop_around_it_does() -> None:
    assert check(kernel(TWICE), {}, quick=True).verdict is Verdict.PROVED


#: CTA 1 waits for CTA 0, or takes a lock: as long as ``MORE`` says.
TRIES = {
    "load": """setp.ne.u32 %p1, %r1, 0; @%p1 bra wait;
st.global.u32 [%rd2], 1; st.release.gpu.global.u32 [%rd1], 1; ret;
wait: setp.ne.u32 %p1, %r1, 1; @%p1 ret; mov.u32 %r9, 0;
spin: ld.acquire.gpu.global.u32 %r8, [%rd1]; add.u32 %r9, %r9, 1; setp.eq.u32 %p2, %r8, 0; MORE @%p2 bra spin;
ld.global.u32 %r7, [%rd2]; st.global.u32 [%rd3], %r7;""",
    "lock": """mov.u32 %r9, 0;
spin: atom.acquire.gpu.global.cas.b32 %r8, [%rd1], 0, 1;
add.u32 %r9, %r9, 1; setp.ne.u32 %p2, %r8, 0; MORE @%p2 bra spin;
ld.global.u32 %r7, [%rd2]; st.global.u32 [%rd2], %r7; st.release.gpu.global.u32 [%rd1], 0;""",
}


@pytest.mark.parametrize("limited", [False, True])
@pytest.mark.parametrize("what", TRIES)
def test_a_loop_of_a_limited_number_of_tries_is_no_wait(what: str, *, limited: bool) -> None:
    more = "setp.lt.u32 %p3, %r9, 100; and.pred %p2, %p2, %p3;" if limited else ""
    found = check(kernel(TRIES[what].replace("MORE", more)), {}, quick=True)
    assert found.verdict is (Verdict.UNKNOWN if limited else Verdict.PROVED)
    assert any(each.kind is NotJudgedKind.WORDS for each in found.scope.not_judged) is limited


#: Each CTA adds to the same word of data and counts; the last one reads it. How, and what comes before.
ADDED = """BEFORE
red.global.add.f32 [%rd2], 0f3F800000; FENCE
atom.global.add.u32 %r8, [%rd1], 1; setp.ne.u32 %p1, %r8, 2; @%p1 ret; FENCE
READ"""
ZEROED = "setp.ne.u32 %p1, %r1, 0; @!%p1 st.global.u32 [%rd2], 0;"
WEAK_LOAD, VOLATILE = "ld.global.f32 %f1, [%rd2];", "ld.volatile.global.f32 %f1, [%rd2];"
RESET = "st.global.u32 [%rd1], 0;"  # by the last one
UPDATES = "ld.volatile.global.u32 %r9, [%rd2]; add.u32 %r9, %r9, 1; st.volatile.global.u32 [%rd2], %r9;"
BY_ATOMIC = "atom.global.add.f32 %f1, [%rd2], 0f00000000; st.global.f32 [%rd3], %f1;"


@pytest.mark.parametrize(
    ("before", "fence", "how", "verdict"),
    [
        ("", "membar.gl;", "", Verdict.PROVED),
        ("", "membar.gl;", WEAK_LOAD, Verdict.PROVED),
        ("", "", WEAK_LOAD, Verdict.REFUTED),
        ("", "membar.gl;", WEAK_LOAD + RESET, Verdict.PROVED),
        ("", "", WEAK_LOAD + RESET, Verdict.REFUTED),
        (ZEROED, "membar.gl;", "", Verdict.REFUTED),
        (ZEROED.replace("st.", "st.volatile."), "", "", Verdict.UNKNOWN),
        ("", "", VOLATILE, Verdict.UNKNOWN),
        ("", "membar.gl;", VOLATILE, Verdict.PROVED),
        ("", "", BY_ATOMIC, Verdict.UNKNOWN),
        ("", "membar.gl;", BY_ATOMIC, Verdict.PROVED),
    ],
)
def test_atomics_need_no_order_but_with_what_is_none(before: str, fence: str, how: str, verdict: Verdict) -> None:
    body = ADDED.replace("BEFORE", before).replace("FENCE", fence).replace("READ", how)
    found = check(kernel(body), {}, quick=True)
    assert found.verdict is verdict
    open_ = any(each.kind is NotJudgedKind.SHARED_DATA for each in found.scope.not_judged)
    assert open_ is (found.how is How.OPEN_DATA) is (verdict is Verdict.UNKNOWN)


@pytest.mark.parametrize("expects", ["0", "%r8"])
def test_who_compares_with_what_the_last_try_returned_does_not_wait_for_the_lock(expects: str) -> None:
    """``while ((expected = atomicCAS(lock, expected, 1)) != 0);``: two of three CTAs enter. It was proved."""
    lock = TRIES["lock"].replace("MORE", "").replace("mov.u32 %r9", "mov.u32 %r8, 0; mov.u32 %r9")
    found = check(kernel(lock.replace("[%rd1], 0, 1", f"[%rd1], {expects}, 1"), 3), {}, quick=True)
    assert (found.verdict is Verdict.PROVED) is (expects == "0")


#: A sum under a lock: how it is taken, added to, given back, and what comes after.
LOCKED = """WHICH
spin: atom.relaxed.gpu.global.cas.b32 %r8, [%rd1], 0, 1; setp.ne.u32 %p2, %r8, 0; @%p2 bra spin; TAKEN
ld.volatile.global.u32 %r9, [%rd2]; add.u32 %r9, %r9, 1; st.volatile.global.u32 [%rd2], %r9; GIVEN
AFTER"""
GIVES = "atom.relaxed.gpu.global.exch.b32 %r7, [%rd1], 0;"
ANY_LOCK = "ld.global.u32 %r5, [%rd3]; mad.wide.u32 %rd1, %r5, 4, %rd1;"
LATE = "st.volatile.global.u32 [%rd2], 7;"


@pytest.mark.parametrize(
    ("which", "taken", "given", "after", "wrong"),
    [
        ("", "membar.gl;", "membar.gl;" + GIVES, "", None),
        ("", "", "membar.gl;" + GIVES, "", WEAK),
        ("", "membar.gl;", GIVES, "", WEAK),
        ("", "membar.gl;", "membar.gl; st.relaxed.gpu.global.u32 [%rd1], 0;", "", None),
        ("", "membar.gl;", "st.relaxed.gpu.global.u32 [%rd1], 0;", "", WEAK),
        ("", "membar.gl;" + GIVES, "", "", RACE),  # given back before the sum is stored
        ("", "membar.gl;", "membar.gl;" + GIVES, UPDATES, RACE),
        ("", "membar.gl;", "membar.gl;" + GIVES, LATE, "data that CTAs share"),  # a strong store, which is no update
        (ANY_LOCK, "membar.gl;", "membar.gl;" + GIVES, "", "at an address that is not known"),
    ],
)
def test_strong_data_under_a_lock_is_judged(
    which: str, taken: str, given: str, after: str, wrong: FaultKind | str | None
) -> None:
    body = LOCKED.replace("WHICH", which).replace("TAKEN", taken).replace("GIVEN", given).replace("AFTER", after)
    found = check(kernel(body), {}, quick=True)
    if isinstance(wrong, str):
        assert found.verdict is Verdict.UNKNOWN
        assert wrong in scope_parts(found)["not judged"]
    else:
        assert [each.finding.kind for each in found.refutations] == ([wrong] if wrong else [])
        assert found.verdict is (Verdict.REFUTED if wrong else Verdict.PROVED)
        assert "strong_data" in found.scope.policies or not wrong
    again = kernel(body).kernel
    for name, (value,) in found.scope.policies.items():
        again = again and again.with_setting(name, value)
    assert not found.refutations or (again and prove(again.program).verdict is Verdict.REFUTED)


POLL = "spin: ld.acquire.gpu.global.u32 %r8, [%rd1]; setp.lt.u32 %p2, %r8, 3; @%p2 bra spin;"
RELAXED_POLL = POLL.replace("acquire", "relaxed").replace("lt", "ne")
UPDATE = UPDATES.replace("%r9", "%r8")
TURN = """spin: ld.acquire.gpu.global.u32 %r8, [%rd1]; setp.ne.u32 %p2, %r8, %r1; @%p2 bra spin;
UPDATE add.u32 %r9, %r1, 1; st.release.gpu.global.u32 [%rd1], %r9;"""
AT = "mad.wide.s32 %rd5, %r4, 4, %rd2; st.global.u32 [%rd5], %r0;"
ARRIVAL = "red.release.gpu.global.add.u32 [%rd1], 1; "
#: A lock that the sixth CTA keeps; the first try is before the loop, as a compiler writes it.
KEPT = """atom.acquire.gpu.global.cas.b32 %r8, [%rd1], 0, 1; setp.eq.u32 %p2, %r8, 0; @%p2 bra mine;
spin: atom.acquire.gpu.global.cas.b32 %r8, [%rd1], 0, 1; setp.ne.u32 %p2, %r8, 0; @%p2 bra spin;
mine: atom.relaxed.gpu.global.add.u32 %r9, [%rd1+4], 1; setp.eq.u32 %p3, %r9, 5; @%p3 bra end;
st.release.gpu.global.u32 [%rd1], 0;
end:"""


@pytest.mark.parametrize("grid", [16, pytest.param(132, marks=pytest.mark.long)])
def test_a_lock_that_a_later_cta_keeps_is_found_in_the_whole_grid(grid: int) -> None:
    found = check(kernel(KEPT, grid), {}, quick=True)
    assert [each.finding.kind for each in found.refutations] == [DEADLOCK]
    assert found.scope.policies == {"together": (grid,)}
    assert check(kernel(KEPT, 5), {}, quick=True).verdict is Verdict.PROVED


@pytest.mark.slow
def test_a_loop_that_few_ctas_never_enter_is_taken_to_end() -> None:
    found = check(kernel(KEPT, 300), {}, quick=True)
    assert found.verdict is Verdict.PROVED
    said = [each.what for each in found.scope.assuming if each.kind is Assumption.GLOBAL_LOOPS]
    assert "300 CTAs wait for each other, and order what they access, as 2 do" in said
    strict = kernel(KEPT, 300).with_strictness(frozenset({Assumption.GLOBAL_LOOPS}))
    assert check(strict, {}, quick=True).verdict is Verdict.UNKNOWN


#: CTA 1 waits for the second of two words, looks at the first one, and hangs if that was not set.
LOOK = """setp.ne.u32 %p1, %r1, 0; @%p1 bra one;
st.relaxed.gpu.global.u32 [%rd1], 1; SET st.relaxed.gpu.global.u32 [%rd1+4], 1; bra end;
one: ld.relaxed.gpu.global.u32 %r8, [%rd1+4]; setp.eq.u32 %p2, %r8, 0; @%p2 bra one; SEEN
ld.relaxed.gpu.global.u32 %r9, [%rd1]; setp.eq.u32 %p3, %r9, 1; @%p3 bra end;
hang: ld.relaxed.gpu.global.u32 %r9, [%rd1+8]; setp.eq.u32 %p3, %r9, 0; @%p3 bra hang;
end:"""


@pytest.mark.parametrize(("before", "after"), [(True, True), (False, True), (True, False), (False, False)])
def test_a_look_sees_what_memory_has_in_order_and_not_what_a_schedule_has(*, before: bool, after: bool) -> None:
    """Without a fence on either side it was proved."""
    fence = "fence.acq_rel.gpu;"
    found = check(kernel(LOOK.replace("SET", fence * before).replace("SEEN", fence * after), 2), {}, quick=True)
    assert found.verdict is (Verdict.PROVED if before and after else Verdict.UNKNOWN)


#: Of 2 CTAs each says that it comes, and enters if the other one has not said so.
BOTH = """mul.lo.u32 %r3, %r1, 4; cvt.u64.u32 %rd5, %r3; add.u64 %rd6, %rd1, %rd5; sub.u64 %rd7, %rd1, %rd5;
red.relaxed.gpu.global.add.u32 [%rd6], 1; FENCE atom.HOW.gpu.global.add.u32 %r8, [%rd7+4], 256; and.b32 %r8, %r8, 255;
setp.ne.u32 %p2, %r8, 0; @%p2 bra end; st.global.u32 [%rd2], %r1;
end:"""


@pytest.mark.parametrize(
    ("fence", "how", "known"),
    [
        ("", "relaxed", False),
        ("fence.acq_rel.gpu;", "relaxed", False),
        ("", "acq_rel", False),  # the first write to each word releases nothing
        ("fence.sc.gpu;", "relaxed", True),
        ("membar.gl;", "relaxed", True),
    ],
)
def test_atomics_on_two_words_may_each_miss_the_other_s_write(fence: str, how: str, *, known: bool) -> None:
    """PTX allows that both enter, though in each order of all atomics one does not: it was proved without fence.sc."""
    found = check(kernel(BOTH.replace("FENCE", fence).replace("HOW", how), 2), {}, quick=True)
    assert (found.scope.together == (2,)) is known
    assert ("may miss what others wrote" in scope_parts(found)["not judged"]) is not known


#: CTA 0 adds to two words; CTA 1 asks for the second one, or waits for it, then asks for the first one, and may hang.
PASSED = """setp.ne.u32 %p1, %r1, 0; @%p1 bra one;
red.relaxed.gpu.global.add.u32 [%rd1], 1; FENCE red.RELEASE.gpu.global.add.u32 [%rd1+4], 1; bra end;
one: SEEN FENCE
atom.relaxed.gpu.global.add.u32 %r9, [%rd1], 256; setp.eq.u32 %p3, %r9, 1; @%p3 bra end;
hang: ld.relaxed.gpu.global.u32 %r9, [%rd1+8]; setp.eq.u32 %p3, %r9, 0; @%p3 bra hang;
end:"""
ASKED = "atom.ACQUIRE.gpu.global.add.u32 %r8, [%rd1+4], 256; setp.eq.u32 %p2, %r8, 0; @%p2 bra end;"
WAITED = "wait: ld.ACQUIRE.gpu.global.u32 %r8, [%rd1+4]; setp.eq.u32 %p2, %r8, 0; @%p2 bra wait;"


@pytest.mark.parametrize("seen", [ASKED, WAITED])
@pytest.mark.parametrize(
    ("fence", "release", "acquire", "known"),
    [
        ("", "relaxed", "relaxed", False),
        ("", "release", "relaxed", False),
        ("", "relaxed", "acquire", False),
        ("fence.acq_rel.cta;", "relaxed", "relaxed", False),
        ("fence.acq_rel.gpu;", "relaxed", "relaxed", True),
        ("", "release", "acquire", True),
    ],
)
def test_atomics_on_two_words_are_not_in_the_order_in_which_they_are_written(
    fence: str, release: str, acquire: str, seen: str, *, known: bool
) -> None:
    """It was proved: only an order of all accesses has the first word written where the second one is."""
    body = PASSED.replace("SEEN", seen).replace("FENCE", fence)
    found = check(kernel(body.replace("RELEASE", release).replace("ACQUIRE", acquire), 2), {}, quick=True)
    assert found.verdict is (Verdict.PROVED if known else Verdict.UNKNOWN)
    assert known or "may miss what others wrote" in scope_parts(found)["not judged"]


def test_what_an_order_of_all_atomics_shows_is_refuted_without_fences() -> None:
    body = PASSED.replace("SEEN", ASKED).replace("FENCE", "").replace("%r9, 1;", "%r9, 2;")
    found = check(kernel(body.replace("RELEASE", "relaxed").replace("ACQUIRE", "relaxed"), 2), {}, quick=True)
    assert [each.finding.kind for each in found.refutations] == [DEADLOCK]


@pytest.mark.parametrize(("fence", "known"), [("membar.gl", True), ("fence.acq_rel.gpu", False)])
def test_a_full_fence_of_each_thread_before_a_barrier_counts_for_what_one_thread_says(
    fence: str, *, known: bool
) -> None:
    """``__threadfence(); __syncthreads(); if (!threadIdx.x) atomicAdd``: no release pattern, but two ``fence.sc``."""
    begin = text().index(".entry last_block_2(")
    found = check(read("last_block_2", text()[:begin] + text()[begin:].replace("membar.gl", fence), 2), {}, quick=True)
    assert found.verdict is (Verdict.PROVED if known else Verdict.REFUTED)
    assert [each.finding.kind for each in found.refutations] == ([] if known else [WEAK])


#: A scan in which each CTA looks back: at the sums of those before it (flag 1), up to one that has all of them (2).
LOOKS_BACK = """mad.wide.u32 %rd5, %r1, 4, %rd1; mad.wide.u32 %rd6, %r1, 4, %rd2; mov.u32 %r3, %r1;
mov.f32 %f1, 0f00000000;
setp.eq.u32 %p1, %r1, 0; @%p1 bra all; st.global.f32 [%rd6], %f1; SUM st.relaxed.gpu.global.u32 [%rd5], 1;
back: sub.u32 %r3, %r3, 1; mad.wide.u32 %rd7, %r3, 4, %rd1; mad.wide.u32 %rd8, %r3, 4, %rd2;
spin: ld.relaxed.gpu.global.u32 %r8, [%rd7]; setp.eq.u32 %p2, %r8, 0; @%p2 bra spin; SEEN
setp.eq.u32 %p3, %r8, 2; @%p3 bra last; ld.global.f32 %f2, [%rd8]; add.f32 %f1, %f1, %f2; bra back;
last: ld.global.f32 %f2, [%rd8+512]; add.f32 %f1, %f1, %f2;
all: st.global.f32 [%rd6+512], %f1; ALL st.relaxed.gpu.global.u32 [%rd5], 2;"""


@pytest.mark.slow
@pytest.mark.parametrize("missing", ["", "SUM", "SEEN", "ALL"])
def test_a_scan_may_see_either_flag_of_those_before_it(missing: str) -> None:
    body = LOOKS_BACK
    for place in ("SUM", "SEEN", "ALL"):
        body = body.replace(place, "" if place == missing else "fence.acq_rel.gpu;")
    found = check(kernel(body, 4), {}, quick=True)
    assert found.scope.together == (() if missing else (4,))
    assert {each.finding.kind for each in found.refutations} == ({WEAK} if missing else set())
    again = kernel(body, 4).kernel
    for name, (value,) in found.scope.policies.items():
        again = again and again.with_setting(name, value)
    assert not found.refutations or (again and prove(again.program).verdict is Verdict.REFUTED)


#: Each CTA hands its sum on to the next one, in one word with a flag.
HANDS_ON = """ld.global.u32 %r4, [%rd3]; mov.u32 %r5, 0; setp.eq.u32 %p1, %r1, 0; @%p1 bra first;
mad.wide.u32 %rd5, %r1, 8, %rd1; spin: LOAD @%p2 bra spin; add.u32 %r4, %r4, %r5;
first: mad.wide.u32 %rd5, %r1, 8, %rd1; STORE"""
HIGH = "ld.relaxed.gpu.global.u64 %rd6, [%rd5-8]; mov.b64 {%r5, %r6}, %rd6; setp.eq.u32 %p2, %r6, 0;"
LOW = "ld.volatile.global.u64 %rd6, [%rd5-8]; and.b64 %rd6, %rd6, 1; setp.eq.u64 %p2, %rd6, 0;"
PAIR = "ld.relaxed.gpu.global.v2.u32 {%r5, %r6}, [%rd5-8]; setp.eq.u32 %p2, %r6, 0;"
IN_HIGH = "mov.u32 %r6, 1; mov.b64 %rd6, {%r4, %r6}; st.relaxed.gpu.global.u64 [%rd5], %rd6;"
IN_LOW = "cvt.u64.u32 %rd6, %r4; shl.b64 %rd6, %rd6, 1; or.b64 %rd6, %rd6, 1; st.volatile.global.u64 [%rd5], %rd6;"
IN_PAIR = "mov.u32 %r6, 1; st.relaxed.gpu.global.v2.u32 [%rd5], {%r4, %r6};"


@pytest.mark.parametrize(
    ("load", "store", "verdict"),
    [
        (HIGH, IN_HIGH, Verdict.PROVED),
        (LOW, IN_LOW, Verdict.PROVED),
        (PAIR, IN_PAIR, Verdict.PROVED),
        (HIGH.replace("%rd5-8", "%rd5"), IN_HIGH, Verdict.REFUTED),  # it waits for itself
        (PAIR.replace("%rd5-8", "%rd5"), IN_PAIR, Verdict.REFUTED),
        (HIGH.replace("%r6, 0", "%r6, 1"), IN_HIGH, Verdict.REFUTED),  # it reads before there is a sum, and then hangs
        (LOW.replace("%rd6, 1", "%rd6, 2"), IN_LOW, Verdict.UNKNOWN),  # the bit is one of the sum
        (PAIR.replace("%p2, %r6, 0;", "%p2, %r5, 0;"), IN_PAIR, Verdict.UNKNOWN),
        (PAIR, IN_PAIR.replace("{%r4,", "{%r1,"), Verdict.UNKNOWN),  # two numbers, which may be seen apart
        (HIGH, IN_PAIR, Verdict.UNKNOWN),  # accesses that overlap in part
    ],
)
def test_a_wait_may_be_for_a_part_of_a_word_whose_rest_is_data(load: str, store: str, verdict: Verdict) -> None:
    found = check(kernel(HANDS_ON.replace("LOAD", load).replace("STORE", store), 8), {}, quick=True)
    assert found.verdict is verdict
    assert [each.finding.kind for each in found.refutations] == [DEADLOCK] * (verdict is Verdict.REFUTED)
    assert (8 in found.scope.together) is (verdict is Verdict.PROVED)


@pytest.mark.parametrize(("part", "verdict"), [("%r6", Verdict.PROVED), ("%r5", Verdict.UNKNOWN)])
@pytest.mark.parametrize("atomic", ["or.b64 %rd6, [%rd1], 0;", "cas.b64 %rd6, [%rd1], 0, 0;"])
def test_an_atomic_may_wait_until_a_part_is_0(atomic: str, part: str, verdict: Verdict) -> None:
    """CTA 1 stores data into the low half: where it comes first, CTA 0 may wait for ever. All were proved."""
    body = f"""setp.eq.u32 %p1, %r1, 1; @%p1 bra one; spin: atom.relaxed.gpu.global.{atomic}
    mov.b64 {{%r5, %r6}}, %rd6; setp.ne.u32 %p2, {part}, 0; @%p2 bra spin; bra end;
    one: ld.global.u32 %r4, [%rd3]; mov.u32 %r6, 0; mov.b64 %rd6, {{%r4, %r6}};
    st.relaxed.gpu.global.u64 [%rd1], %rd6; end:"""
    assert check(kernel(body, 2), {}, quick=True).verdict is verdict


@pytest.mark.parametrize(("moves", "verdict"), [("", Verdict.PROVED), ("add.u64 %rd5, %rd1, 8;", Verdict.UNKNOWN)])
def test_a_look_before_a_loop_is_at_the_word_of_the_loop(moves: str, verdict: Verdict) -> None:
    """Nobody writes the word of the look, and the loop may wait for another one. It was refuted as a deadlock."""
    at, load = "[%rd1+8]" if moves else "[%rd1]", "ld.relaxed.gpu.global.u32 %r5, [%rd5];"
    body = f"""setp.eq.u32 %p1, %r1, 1; @%p1 bra one; mov.u64 %rd5, %rd1; {load} bra test; again: {moves}
    {load} test: setp.eq.u32 %p2, %r5, 0; @%p2 bra again; bra end; one: st.relaxed.gpu.global.u32 {at}, 1; end:"""
    assert check(kernel(body, 2), {}, quick=True).verdict is verdict


#: The same by all lanes of a warp at once, which look at the words of 32 CTAs before: up to one that has all (3).
WIDE = """ld.global.u32 %r4, [%rd3]; mad.wide.u32 %rd5, %r1, 8, %rd1; setp.eq.u32 %p4, %r0, 0; mov.u32 %r5, 0;
setp.eq.u32 %p1, %r1, 0; @%p1 bra last; mov.u32 %r6, 2; @%p4 st.relaxed.gpu.global.v2.u32 [%rd5+256], {%r6, %r4};
mul.wide.u32 %rd7, %r0, 8; sub.u64 %rd6, %rd5, %rd7; LOAD bra in;
spin: nanosleep.u32 40; LOAD
in: setp.ENDS.u32 %p2, %r8, 1; vote.sync.VOTE.pred %p2, %p2, -1; @%p2 bra spin;
setp.eq.u32 %p2, %r8, 3; vote.sync.any.pred %p2, %p2, -1; @!%p2 bra end; add.u32 %r5, %r5, %r9;
last: add.u32 %r4, %r4, %r5; mov.u32 %r6, LAST; @%p4 st.relaxed.gpu.global.v2.u32 [%rd5+256], {%r6, %r4};
end:""".replace("LOAD", "ld.relaxed.gpu.global.v2.u32 {%r8, %r9}, [%rd6+248];")


@pytest.mark.parametrize(
    ("ends", "vote", "last", "verdict"),
    [
        ("eq", "any", "3", Verdict.PROVED),
        ("eq", "any", "1", Verdict.REFUTED),  # who looks late waits without end
        ("lt", "all", "3", Verdict.UNKNOWN),  # it ends with any of the words
    ],
)
def test_lanes_may_wait_for_many_words_at_once(ends: str, vote: str, last: str, verdict: Verdict) -> None:
    words = Array("u32", tuple(n for cta in range(35) for n in (int(cta >= 32), 0)))
    body = WIDE.replace("ENDS", ends).replace("VOTE", vote).replace("LAST", last)
    made = kernel(body, 3, 32, given=Pointer(contents=(Field(0, words),)))
    found = check(made, {}, quick=True)
    assert found.verdict is verdict
    assert [each.finding.kind for each in found.refutations] == [DEADLOCK] * (verdict is Verdict.REFUTED)


#: CTA 0 waits for the words of both others, each in a lane, and reads what they have written.
OF_BOTH = """setp.eq.u32 %p1, %r1, 0; @%p1 bra wait; setp.ne.u32 %p1, %r0, 0; @%p1 bra end;
mad.wide.u32 %rd5, %r1, 4, %rd2; st.global.u32 [%rd5], 1; mad.wide.u32 %rd6, %r1, 4, %rd1;
st.release.gpu.global.u32 [%rd6], 1; bra end;
wait: mad.wide.u32 %rd6, %r0, 4, %rd1;
spin: ld.acquire.gpu.global.u32 %r8, [%rd6+4]; setp.eq.u32 %p2, %r8, 0; vote.sync.VOTE.pred %p3, %p2, 3; @%p3 bra spin;
bar.warp.sync 3; ld.global.u32 %r7, [%rd2+4]; ld.global.u32 %r7, [%rd2+8];
end:"""


@pytest.mark.parametrize(("vote", "verdict"), [("any", Verdict.PROVED), ("all", Verdict.UNKNOWN)])
def test_lanes_that_wait_for_any_word_do_not_wait_for_all(vote: str, verdict: Verdict) -> None:
    """It was proved: the second word may be there, or not."""
    assert check(kernel(OF_BOTH.replace("VOTE", vote), 3, 2), {}, quick=True).verdict is verdict


#: CTA 1 counts its looks, and writes what CTA 0 reads if these are many.
COUNTED = """setp.ne.u32 %p1, %r1, 0; @%p1 bra wait;
st.relaxed.gpu.global.u32 [%rd1], 1; ld.global.u32 %r8, [%rd2]; bra end;
wait: mov.u32 %r9, 0;
spin: ld.relaxed.gpu.global.u32 %r8, [%rd1]; STEP; setp.eq.u32 %p2, %r8, 0; @%p2 bra spin;
setp.gt.u32 %p3, %r9, 2; @%p3 st.global.u32 [%rd2], 1;
end:"""


@pytest.mark.parametrize(
    ("step", "verdict"), [("mov.u32 %r9, 1", Verdict.PROVED), ("add.u32 %r9, %r9, 1", Verdict.UNKNOWN)]
)
def test_how_often_a_wait_has_looked_is_not_known(step: str, verdict: Verdict) -> None:
    """It was taken to be once, so that a race was proved to be none."""
    assert check(kernel(COUNTED.replace("STEP", step), 2), {}, quick=True).verdict is verdict


#: CTA 1 sees either flag of CTA 0, or, after it has waited for another word, the second one alone.
EITHER = """setp.ne.u32 %p1, %r1, 0; @%p1 bra one; st.release.gpu.global.u32 [%rd1], 1;
st.release.gpu.global.u32 [%rd1], 2; st.global.u32 [%rd2], 5; st.release.gpu.global.u32 [%rd1+4], 1; bra end;
one: WAIT
either: ld.acquire.gpu.global.u32 %r9, [%rd1]; setp.eq.u32 %p2, %r9, 0; @%p2 bra either;
setp.eq.u32 %p3, %r9, 2; @%p3 bra end; st.global.u32 [%rd2], 7;
end:"""


@pytest.mark.parametrize(
    ("wait", "wrong"), [("", True), (POLL.replace("[%rd1]", "[%rd1+4]").replace("3;", "1;"), False)]
)
def test_a_wait_sees_no_value_that_the_order_of_memory_excludes(wait: str, *, wrong: bool) -> None:
    found = check(kernel(EITHER.replace("WAIT", wait), 2), {}, quick=True)
    assert [each.finding.kind for each in found.refutations] == ([RACE] if wrong else [])
    assert wrong or found.scope.together == (2,)


#: CTA 1 waits for a word that CTA 0 writes, and loads it once more as any data.
LOADED_AGAIN = """setp.ne.u32 %p1, %r1, 0; @%p1 bra spin; BEFORE st.SET.gpu.global.u32 [%rd1], 3; bra end;
POLL ld.global.u32 %r9, [%rd1]; st.global.u32 [%rd3], %r9;
end:"""
#: Who holds a lock loads it as any data, while the other one may take it as soon as it is given back.
HELD_AND_LOADED = """spin: atom.TAKE.gpu.global.cas.b32 %r8, [%rd1], 0, 1; setp.ne.u32 %p2, %r8, 0; @%p2 bra spin;
fence.acq_rel.gpu; ld.global.u32 %r9, [%rd1]; st.global.u32 [%rd2], %r9; fence.acq_rel.gpu;
atom.relaxed.gpu.global.exch.b32 %r8, [%rd1], 0;"""
ONE_BEFORE = "st.relaxed.gpu.global.u32 [%rd1], 1;"


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        (LOADED_AGAIN.replace("BEFORE", "").replace("SET", "relaxed").replace("POLL", RELAXED_POLL), False),
        (LOADED_AGAIN.replace("BEFORE", ONE_BEFORE).replace("SET", "release").replace("POLL", POLL), False),
        (LOADED_AGAIN.replace("BEFORE", ONE_BEFORE).replace("SET", "relaxed").replace("POLL", RELAXED_POLL), True),
        (HELD_AND_LOADED.replace("TAKE", "acquire"), False),
        (HELD_AND_LOADED.replace("TAKE", "relaxed"), True),
    ],
)
def test_a_weak_load_of_a_word_comes_after_all_writes_of_it_or_is_a_race(body: str, *, wrong: bool) -> None:
    """All were proved. What a strong load has observed comes before a weak one, but not what came before that."""
    found = check(kernel(body, 2), {}, quick=True)
    assert {each.finding.kind for each in found.refutations} == ({WEAK} if wrong else set())
    assert found.scope.together == (() if wrong else (2,))


#: CTA 0 writes a word and then a flag; CTA 1 waits for the flag. What it does then, and CTA 2.
TOLD = """setp.eq.u32 %p1, %r1, 0; setp.eq.u32 %p3, %r1, 1; @%p1 bra zero; @%p3 bra one; THEN bra end;
zero: FIRST st.RELEASE.gpu.global.u32 [%rd1+8], 1; bra end;
one: ld.ACQUIRE.gpu.global.u32 %r8, [%rd1+8]; setp.eq.u32 %p2, %r8, 0; @%p2 bra one; NEXT
end:"""
LAST = "st.relaxed.gpu.global.u32 [%rd1], 3;"
#: What CTA 0 does depends on the answer, so that the order of writes is that of the program.
ANSWERED = "atom.relaxed.gpu.global.exch.b32 %r9, [%rd1], 1; setp.eq.u32 %p4, %r9, 9; @%p4 bra end;"


@pytest.mark.parametrize(
    ("first", "after", "then", "wrong"),
    [
        (ONE_BEFORE, LAST, POLL, None),  # memory may have 3 before 1, and CTA 2 waits for ever
        (ONE_BEFORE + LAST, POLL.replace("lt", "eq").replace("3;", "1;"), "", None),  # it may see what was there first
        (ANSWERED, LAST + "ld.global.u32 %r9, [%rd1]; st.global.u32 [%rd3], %r9;", "", WEAK),
    ],
)
def test_memory_has_writes_in_order_where_release_and_acquire_order_them(
    first: str, after: str, then: str, wrong: FaultKind | None
) -> None:
    """The first two were proved. A store has observed nothing: in the last one a weak load is a race."""
    body = TOLD.replace("FIRST", first).replace("NEXT", after).replace("THEN", then)
    for release, acquire in (("release", "acquire"), ("release", "relaxed"), ("relaxed", "acquire")):
        found = check(kernel(body.replace("RELEASE", release).replace("ACQUIRE", acquire)), {}, quick=True)
        right = (release, acquire) == ("release", "acquire")
        assert found.verdict is (Verdict.PROVED if right else Verdict.UNKNOWN if wrong is None else Verdict.REFUTED)
        assert {each.finding.kind for each in found.refutations} == ({wrong} if wrong and not right else set())
        assert found.scope.together == ((3,) if right else ())


@pytest.mark.parametrize("scope", ["gpu", "cta"])
def test_a_fence_of_one_cta_does_not_keep_another_from_an_older_value(scope: str) -> None:
    """A thread that sees it waits for what no one writes. With both scopes it was proved."""
    fence = f"fence.acq_rel.{scope};"
    looks = f"{fence} ld.relaxed.gpu.global.u32 %r9, [%rd1]; setp.eq.u32 %p4, %r9, 1; @%p4 bra end; "
    never = "again: ld.relaxed.gpu.global.u32 %r9, [%rd1+8]; setp.ne.u32 %p4, %r9, 2; @%p4 bra again;"
    body = TOLD.replace("FIRST", ONE_BEFORE + fence).replace("NEXT", looks + never).replace("THEN", "")
    found = check(kernel(body.replace("RELEASE", "relaxed").replace("ACQUIRE", "relaxed")), {}, quick=True)
    assert found.verdict is (Verdict.PROVED if scope == "gpu" else Verdict.UNKNOWN)


@pytest.mark.parametrize(("guard", "found"), [("", Verdict.REFUTED), ("@%p4 ", Verdict.UNKNOWN)])
def test_a_race_with_what_may_not_happen_is_not_known(guard: str, found: Verdict) -> None:
    """What another kernel left in memory, or this one, decides whether CTA 1 stores. Both were refuted."""
    stores = "st.global.u32 [%rd2], 3;"
    may = f"ld.global.u32 %r9, [%rd3+64]; setp.eq.u32 %p4, %r9, 77; {guard}{stores}"
    body = TOLD.replace("FIRST", "").replace("1; bra end;\none", f"1; {stores} bra end;\none").replace("NEXT", may)
    body = body.replace("THEN", "").replace("RELEASE", "release").replace("ACQUIRE", "acquire")
    assert check(kernel(body), {}, quick=True).verdict is found


@pytest.mark.parametrize(("seen", "known"), [("", True), ("+8", False)])
def test_a_write_comes_after_the_one_of_that_word_that_its_agent_has_seen(seen: str, *, known: bool) -> None:
    """Though nothing is acquired."""
    body = TOLD.replace("FIRST", ONE_BEFORE).replace("NEXT", LAST).replace("THEN", POLL)
    body = body.replace("[%rd1+8]; setp.eq", f"[%rd1{seen}]; setp.eq").replace("RELEASE", "relaxed")
    found = check(kernel(body.replace("ACQUIRE", "relaxed")), {}, quick=True)
    assert found.verdict is (Verdict.PROVED if known else Verdict.UNKNOWN)


@pytest.mark.parametrize("again", ["ld.acquire.gpu.global.u32 %r9, [%rd1];", "ld.acquire.cta.global.u32 %r9, [%rd1];"])
def test_a_second_load_may_acquire_what_the_first_one_waits_for(again: str) -> None:
    """It was refuted where nothing is made of the second value."""
    body = """setp.ne.u32 %p1, %r1, 0; @%p1 bra spin; st.global.u32 [%rd2], 7; st.release.gpu.global.u32 [%rd1], 3; ret;
    POLL AGAIN ld.global.u32 %r9, [%rd2]; st.global.u32 [%rd3], %r9;"""
    found = check(kernel(body.replace("POLL", RELAXED_POLL).replace("AGAIN", again), 2), {}, quick=True)
    assert {each.finding.kind for each in found.refutations} == ({NARROW} if ".cta" in again else set())


#: As BOTH, but one warp of each CTA says that it comes, and the other one asks, after a barrier.
OF_TWO_WARPS = """mul.lo.u32 %r3, %r1, 4; cvt.u64.u32 %rd5, %r3; add.u64 %rd6, %rd1, %rd5; sub.u64 %rd7, %rd1, %rd5;
setp.ne.u32 %p1, %r0, 0; setp.ne.u32 %p3, %r0, 32; @%p1 bra met;
red.relaxed.gpu.global.add.u32 [%rd6], 1; BEFORE
met: bar.sync 0; @%p3 bra end; AFTER
atom.relaxed.gpu.global.add.u32 %r8, [%rd7+4], 256; and.b32 %r8, %r8, 255;
setp.ne.u32 %p2, %r8, 0; @%p2 bra end; st.global.u32 [%rd2], %r1;
end:"""


@pytest.mark.parametrize(
    ("before", "after", "known"),
    [
        ("", "", False),
        ("fence.acq_rel.gpu;", "fence.acq_rel.gpu;", False),
        ("membar.gl;", "", True),
        ("", "membar.gl;", True),
    ],
)
def test_warps_that_meet_at_a_barrier_may_miss_what_others_wrote(before: str, after: str, *, known: bool) -> None:
    """It was proved: that the barrier joins what two warps do was not seen."""
    body = OF_TWO_WARPS.replace("BEFORE", before).replace("AFTER", after)
    found = check(kernel(body, 2, 64), {}, quick=True)
    assert (found.scope.together == (2,)) is known
    assert ("may miss what others wrote" in scope_parts(found)["not judged"]) is not known


#: One thread tries to take a lock, and hands the answer to all threads of its CTA, as Triton does.
HANDED = """.shared .align 4 .b8 got[4]; setp.ne.u32 %p1, %r0, 0; mov.u32 %r5, 0; mad.wide.u32 %rd5, %r0, 4, %rd2;
again: BEFORE @%p1 bra told; atom.HOW.gpu.global.cas.b32 %r8, [%rd1], 0, 1; st.shared.u32 [got], %r8; TRIES
told: bar.sync 0; ld.shared.u32 %r9, [got]; setp.ne.u32 %p2, %r9, 0; @%p2 bra again;
ld.global.u32 %r10, [%rd5]; add.u32 %r10, %r10, %r5; st.global.u32 [%rd5], %r10; bar.sync 0;
@%p1 bra end; GIVEN
end:"""
GIVEN_BACK = "atom.release.gpu.global.exch.b32 %r7, [%rd1], 0;"


@pytest.mark.parametrize(
    ("how", "given", "wrong"), [("acquire", GIVEN_BACK, None), ("relaxed", GIVEN_BACK, WEAK), ("acquire", "", DEADLOCK)]
)
def test_a_wait_whose_answer_one_thread_hands_to_all_is_one(
    how: str, given: str, wrong: FaultKind | Ending | None
) -> None:
    body = HANDED.replace("BEFORE", "bar.sync 0;").replace("HOW", how).replace("TRIES", "").replace("GIVEN", given)
    found = check(kernel(body, 2, 64), {}, quick=True)
    assert {each.finding.kind for each in found.refutations} == ({wrong} if wrong is not None else set())
    assert found.scope.together == (() if wrong is not None else (2,))


@pytest.mark.parametrize(
    ("before", "tries", "one"),
    [
        ("bar.sync 0;", "", True),
        ("bar.sync 0;", "add.u32 %r5, %r5, 1;", False),  # rounds are counted
        ("", "", False),  # the next round may overwrite what a thread has yet to load
        ("bar.sync 0;", "st.global.u32 [%rd3], %r8;", False),
    ],
)
def test_a_round_that_leaves_something_is_no_part_of_a_wait(before: str, tries: str, *, one: bool) -> None:
    body = HANDED.replace("BEFORE", before).replace("TRIES", tries).replace("HOW", "acquire").replace("GIVEN", "")
    endless = body.replace("@%p2 bra again;", "bra again;")
    for text, found in ((body, one), (endless, False)):
        made = kernel(text, 2, 64).kernel
        assert made is not None
        assert bool(made.kernel.code.regions.loops.voted) is found


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        ("%r9, [got]", "%r9, [got+4]"),
        ("st.shared.u32", "st.shared.u8"),
        ("ld.shared", "@%p1 ld.shared"),
        ("st.shared", "@%p1 st.shared"),
        ("%p2, %r9, 0", "%p2, %r9, %r0"),  # threads leave in different rounds
        ("st.shared.u32 [got], %r8", "shr.u32 %r8, %r8, 8; st.shared.u32 [got], %r8"),
    ],
)
def test_what_is_not_handed_to_all_as_it_is_is_no_wait(text: str, instead: str) -> None:
    body = HANDED.replace("got[4]", "got[8]").replace("BEFORE", "bar.sync 0;").replace("HOW", "acquire")
    body = body.replace("TRIES", "").replace("GIVEN", GIVEN_BACK)
    for each, one in ((body, True), (body.replace(text, instead), False)):
        made = kernel(each, 2, 64).kernel
        assert made is not None
        assert bool(made.kernel.code.regions.loops.voted) is one


@pytest.mark.parametrize(
    "edits",
    [  # the second warp comes to the barriers of one round; each warp has a lock
        {
            "again:": "setp.ge.u32 %p4, %r0, 32; @%p4 bra outs; again:",
            "end:": "bra end; outs: bar.sync 0; bar.sync 0; end:",
        },
        {"%r0, 0;": "%r9, 0;", "setp.ne.u32 %p1": "and.b32 %r9, %r0, 31; setp.ne.u32 %p1"},
    ],
)
def test_a_round_that_others_do_not_go_through_is_no_part_of_a_wait(edits: dict[str, str]) -> None:
    """The first was proved: it hangs where the lock is not free at once."""
    body = HANDED.replace("BEFORE", "bar.sync 0;").replace("HOW", "acquire").replace("TRIES", "")
    body = body.replace("GIVEN", GIVEN_BACK).replace(
        "st.global.u32 [%rd5], %r10; bar.sync 0;", "st.global.u32 [%rd5], %r10;"
    )
    for text, instead in edits.items():
        body = body.replace(text, instead, 1)
    assert check(kernel(body, 2, 64), {}, quick=True).verdict is Verdict.UNKNOWN


#: As HANDED, and what is done under the lock depends on a word that the first one changes (Triton's layer norm).
FIRST_ONE = HANDED.replace(
    "ld.global.u32 %r10, [%rd5];",
    """ld.global.u32 %r6, [%rd1+8]; MET mov.u32 %r10, 0;
setp.ne.s32 %p3, %r6, 0; @%p3 bra more; @!%p1 atom.global.acq_rel.gpu.exch.b32 %r7, [%rd1+8], 1; bra store;
more: ld.global.u32 %r10, [%rd5];
store: """,
)


@pytest.mark.parametrize(
    ("how", "met", "verdict"),
    [
        ("acquire", "bar.sync 0;", Verdict.PROVED),
        ("relaxed", "bar.sync 0;", Verdict.REFUTED),
        ("acquire", "", Verdict.UNKNOWN),
    ],
)
def test_a_weak_load_may_decide_what_is_done_under_a_lock(how: str, met: str, verdict: Verdict) -> None:
    """Without the barrier a warp loads the word while another one of its CTA changes it."""
    body = FIRST_ONE.replace("BEFORE", "bar.sync 0;").replace("HOW", how).replace("TRIES", "").replace("MET", met)
    found = check(kernel(body.replace("GIVEN", GIVEN_BACK), 2, 64), {}, quick=True)
    assert found.verdict is verdict
    assert {each.finding.kind for each in found.refutations} <= {WEAK}
    assert found.scope.together == ((2,) if verdict is Verdict.PROVED else ())


#: Two atomics under one lock, whose answers both decide, and how the lock is taken and given back.
TWO_UNDER_LOCK = """spin: atom.relaxed.gpu.global.cas.b32 %r8, [%rd1], 0, 1;
setp.ne.u32 %p2, %r8, 0; @%p2 bra spin; TAKEN
atom.relaxed.gpu.global.add.u32 %r9, [%rd1+4], 1; atom.relaxed.gpu.global.add.u32 %r10, [%rd1+8], 1; GIVEN
atom.relaxed.gpu.global.exch.b32 %r7, [%rd1], 0;
setp.eq.u32 %p3, %r9, %r10; @%p3 bra end;
hang: ld.relaxed.gpu.global.u32 %r9, [%rd1+12]; setp.eq.u32 %p3, %r9, 0; @%p3 bra hang;
end:"""


@pytest.mark.parametrize(("taken", "given"), [("membar.gl;", "membar.gl;"), ("", "membar.gl;"), ("membar.gl;", "")])
def test_a_lock_orders_what_is_asked_under_it(taken: str, given: str) -> None:
    body = TWO_UNDER_LOCK.replace("TAKEN", taken.replace("membar.gl", "fence.acq_rel.gpu"))
    found = check(kernel(body.replace("GIVEN", given.replace("membar.gl", "fence.acq_rel.gpu")), 2), {}, quick=True)
    assert found.verdict is (Verdict.PROVED if taken and given else Verdict.UNKNOWN)


#: An atomic between two barriers of the CTAs, whose words are no part of a circle that memory leaves open.
BETWEEN = ARRIVAL + POLL + "atom.acq_rel.gpu.global.add.u32 %r9, [%rd1+4], 1;" + ARRIVAL + POLL.replace("spin", "again")


def test_an_atomic_between_barriers_of_the_grid_misses_nothing() -> None:
    body = BETWEEN.replace("%r8, 3; @%p2 bra again", "%r8, 6; @%p2 bra again")
    found = check(
        kernel(f"{body} setp.ne.u32 %p3, %r9, 0; @%p3 bra end; st.global.u32 [%rd2], 1; end:"), {}, quick=True
    )
    assert (found.verdict, found.scope.together) == (Verdict.PROVED, (3,))


def test_described_atomics_on_two_words_may_each_miss_the_other_s_write() -> None:
    both = [
        [Step("add", me, 1, "relaxed"), Step("count", 1 - me, 0, "relaxed", 1), Step("write", 0)] for me in range(2)
    ]
    assert check(target_of(lambda: described(both)), {}, quick=True).verdict is Verdict.UNKNOWN


#: A warp that stores 32 words, which the next CTA loads where one lane has waited for the lane that says so.
OF_LANES = """mad.wide.u32 %rd5, %r0, 4, %rd2; setp.ne.u32 %p3, %r0, 0; setp.ne.u32 %p1, %r1, 0; @%p1 bra take;
st.global.u32 [%rd5], %r0; BEFORE @%p3 bra end; st.release.gpu.global.u32 [%rd1], 3; bra end;
take: @%p3 bra all; POLL
all: AFTER ld.global.u32 %r9, [%rd5]; st.global.u32 [%rd5+512], %r9;
end:""".replace("POLL", POLL)
MEET = "bar.warp.sync -1;"


@pytest.mark.parametrize(
    ("body", "grid", "wrong", "said"),
    [
        (UPDATE, 3, True, "stores what it made of them, which is not atomic"),
        ("red.global.add.u32 [%rd2], 1;", 3, False, "nothing"),
        (UPDATE.replace("[%rd2]", "[%rd3]"), 3, False, "nothing"),
        (ARRIVAL + POLL + UPDATES, 3, True, "two concurrent accesses to the same bytes"),
        (TURN.replace("UPDATE", UPDATE), 9, False, "nothing"),
        (ARRIVAL + POLL + "red.relaxed.cta.global.add.u32 [%rd2], 1;", 3, True, "writes x (flags.ptx:8)"),
        (ARRIVAL + POLL + "red.relaxed.gpu.global.add.u32 [%rd2], 1;", 3, False, "2 atomics on global memory"),
        ("cvt.rn.f32.u32 %f1, %r1; cvt.rzi.s32.f32 %r4, %f1;" + AT, 3, False, "the result of cvt.rzi.s32.f32 decides"),
        ("shl.b32 %r4, %r1, 30;" + AT, 3, False, "its addresses in all CTAs are not in one buffer"),
        (
            "atom.global.add.u32 %r8, [%rd1], 1; setp.ne.u32 %p1, %r8, 0; @%p1 ret;" + RESET,
            3,
            True,
            "two accesses to the same bytes are ordered by a relaxed operation",
        ),
        ("multimem.red.relaxed.gpu.global.add.u32 [%rd2], %r1;", 3, False, "nothing"),
        ("multimem.red.global.add.u32 [%rd2], %r1;", 3, False, "1 atomic on global memory (flags.ptx:8: not followed)"),
        ("multimem.st.weak.global.u32 [%rd2], %r1;", 3, True, "CTA 1 both write bytes 0 to 3"),
        ("multimem.st.relaxed.gpu.global.u32 [%rd2], %r1;", 3, False, "what orders it is not followed"),
        (
            "mad.wide.u32 %rd5, %r1, 16, %rd2; multimem.st.weak.global.v4.f32 [%rd5], {%f1, %f1, %f1, %f2};",
            3,
            False,
            "nothing",
        ),
        ("multimem.ld_reduce.weak.global.add.u32 %r9, [%rd2]; " + ZEROED, 3, True, "which CTA 1 reads"),
        (
            "multimem.red.release.gpu.global.add.u32 [%rd3], 1; " + POLL + RESET,
            3,
            None,
            "a store to a multicast address",
        ),
        (ARRIVAL.replace("release.gpu", "relaxed.cta") + POLL, 3, None, "red.relaxed.cta.global.add.u32: its scope"),
    ],
)
def test_what_is_wrong_and_what_is_not_judged_is_said(body: str, grid: int, said: str, *, wrong: bool | None) -> None:
    """``wrong``: None where it is not known whether CTAs hang."""
    found = check(kernel(body, grid), {}, quick=True)
    assert found.verdict is {True: Verdict.REFUTED, False: Verdict.PROVED, None: Verdict.UNKNOWN}[wrong]
    claim = str(found.refutations[0].finding) if wrong else scope_parts(found)["not judged"]
    assert said in claim


#: CTA 0 stores 16 bytes by a bulk copy, and says so.
BULK = """.shared .align 16 .b8 tile[16]; mov.u32 %r5, tile; setp.ne.u32 %p1, %r1, 0; @%p1 bra spin;
st.shared.v4.u32 [%r5], {%r1, %r1, %r1, %r1}; fence.proxy.async.shared::cta;
cp.async.bulk.global.shared::cta.bulk_group [%rd2], [%r5], 16; cp.async.bulk.commit_group; WAIT
st.HOW.gpu.global.u32 [%rd1], 3; ret;
POLL ld.global.u32 %r9, [%rd2]; st.global.u32 [%rd3], %r9;""".replace("POLL", POLL)


@pytest.mark.parametrize(
    ("wait", "how", "wrong"),
    [
        ("cp.async.bulk.wait_group 0;", "release", None),
        ("cp.async.bulk.wait_group 0;", "relaxed", WEAK),
        ("cp.async.bulk.wait_group.read 0;", "release", RACE),
        ("", "release", RACE),
    ],
)
def test_what_a_bulk_copy_stores_is_there_for_others_once_its_group_is_complete(
    wait: str, how: str, wrong: FaultKind | None
) -> None:
    found = check(kernel(BULK.replace("WAIT", wait).replace("HOW", how), 2), {}, quick=True)
    assert [getattr(each.finding, "kind", None) for each in found.refutations] == ([wrong] if wrong else [])
    assert wrong or found.scope.not_judged == ()


#: Two warps of CTA 0 change a word, which CTA 1 loads when a flag says so.
WRITTEN_BY_WARPS = """setp.eq.u32 %p1, %r1, 1; setp.ne.u32 %p2, %r0, 0; setp.ge.u32 %p3, %r0, 32; @%p1 bra one;
@%p3 bra other; FIRST; bra met; other: SECOND; met: bar.sync 0; @%p2 bra end; st.release.gpu.global.u32 [%rd1], 3;
bra end; one: @%p2 bra end; POLL ld.global.u32 %r9, [%rd2]; st.global.u32 [%rd3], %r9; end:"""
ADDS = "red.relaxed.cta.global.add.u32 [%rd2], 1"
SETS = "st.relaxed.gpu.global.u32 [%rd2], 1"


@pytest.mark.parametrize(
    ("first", "second", "verdict"),
    [
        (ADDS, ADDS, Verdict.PROVED),
        (ADDS, ADDS.replace("cta", "gpu"), Verdict.PROVED),
        (SETS, SETS.replace("gpu", "cta"), Verdict.PROVED),
        (SETS, SETS.replace("relaxed.gpu.", ""), Verdict.REFUTED),
        (SETS, ADDS, Verdict.PROVED),
    ],
)
def test_strong_writes_of_warps_of_one_cta_are_no_race(first: str, second: str, verdict: Verdict) -> None:
    """They were refuted, also where each CTA has words of its own."""
    made = WRITTEN_BY_WARPS.replace("FIRST", first).replace("SECOND", second).replace("POLL", POLL)
    assert check(kernel(made, 2, 64), {}, quick=True).verdict is verdict


def test_what_is_to_be_corrected_is_on_the_side_that_lacks_a_fence() -> None:
    """It was the writer's, which has one."""
    (shown,) = check(target("last_block_4", 3), {}, quick=True).refutations
    assert shown.finding.correction.startswith("execute fence.sc, which is __threadfence(), after the relaxed read of")


def test_atomics_of_cta_scope_are_no_race_where_each_cta_has_its_words() -> None:
    assert judged_inside(26147) == "decided"


#: CTAs 0 and 1 change the same bytes, and CTA 2 loads them when both have said that they are done.
OF_TWO_CTAS = """.shared .align 128 .b8 tile[16]; mov.u32 %r5, tile; mov.u32 %r6, 0;
st.shared.v4.u32 [%r5], {%r6, %r6, %r6, %r6}; fence.proxy.async; setp.eq.u32 %p1, %r1, 2; setp.eq.u32 %p2, %r1, 1;
@%p1 bra two; @%p2 bra one; FIRST bra met; one: SECOND met: ARRIVAL bra end;
two: POLL ld.global.u32 %r9, [%rd2]; st.global.u32 [%rd3], %r9; end:"""
REDUCES = """cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd2], [%r5], 16; cp.async.bulk.commit_group;
cp.async.bulk.wait_group 0;"""
ONE_ATOMIC = "red.relaxed.gpu.global.add.u32 [%rd2], 1;"
PACKED = "red.relaxed.gpu.global.add.noftz.f16x2 [%rd2], %r6;"
ONE_AFTER_ANOTHER = "st.release.gpu.global.u32 [%rd2+64], 3;", POLL.replace("%rd1", "%rd2+64").replace("spin", "wait")


@pytest.mark.parametrize(
    ("first", "second", "fault"),
    [
        (REDUCES, REDUCES, None),
        (REDUCES, REDUCES.replace("add.u32", "add.noftz.f16"), RACE),  # elements that overlap in part
        (REDUCES, ONE_ATOMIC, RACE),  # by another proxy
        (ONE_ATOMIC + ONE_AFTER_ANOTHER[0], ONE_AFTER_ANOTHER[1] + REDUCES, FaultKind.MISSING_PROXY_FENCE),
        (ONE_ATOMIC + "fence.proxy.async;" + ONE_AFTER_ANOTHER[0], ONE_AFTER_ANOTHER[1] + REDUCES, None),
        (ONE_ATOMIC, PACKED, RACE),  # two elements, not one
        (PACKED, "st.global.u32 [%rd2+4], 3;", None),  # it has 4 bytes
        (PACKED, ".reg .b16 %h; mov.b16 %h, 0;" + PACKED.replace("x2 [%rd2], %r6", " [%rd2+2], %h"), None),
        (REDUCES, SETS + ";", RACE),
        (SETS + ";", SETS.replace(", 1", ", 2") + ";", None),
        (SETS + ";", SETS.replace("gpu", "cta") + ";", RACE),
    ],
)
def test_bulk_reductions_are_no_race_with_what_is_strong_for_them(
    first: str, second: str, fault: FaultKind | None
) -> None:
    made = OF_TWO_CTAS.replace("FIRST", first).replace("SECOND", second)
    made = made.replace("ARRIVAL", ARRIVAL).replace("POLL", POLL.replace("%r8, 3", "%r8, 2"))
    found = check(kernel(made, 3), {}, quick=True)
    assert found.verdict is (Verdict.PROVED if fault is None else Verdict.REFUTED)
    assert {each.finding.kind for each in found.refutations} == ({fault} if fault else set())


#: Reductions: the bytes of an element, how many there are, and what is added.
REDUCTIONS = {"u32": (4, 1, "%r6"), "u64": (8, 1, "%q"), "noftz.f16x2": (2, 2, "%r6"), "noftz.f16": (2, 1, "%h")}
BY_LANES = "and.b32 %r7, %r0, {}; mad.wide.u32 %rd5, %r7, {}, %rd2; red.relaxed.gpu.global.add.{} [%rd5+{}], {};"
ALL_LOADED = f""".reg .b16 %h; .reg .b64 %q; mov.b16 %h, 0; mov.u64 %q, 0; mov.u32 %r6, 0;
setp.eq.u32 %p1, %r1, 2; setp.eq.u32 %p2, %r1, 1; setp.ne.u32 %p3, %r0, 0; @%p1 bra two; @%p2 bra one; FIRST bra met;
one: SECOND met: bar.warp.sync -1; @%p3 bra end; {ARRIVAL} bra end;
two: {POLL.replace("%r8, 3", "%r8, 2")} mad.wide.u32 %rd5, %r0, 4, %rd2; ld.global.u32 %r9, [%rd5]; end:"""


@pytest.mark.parametrize("seed", range(9, 17))
def test_reductions_by_lanes_of_two_ctas_are_a_race_where_elements_overlap_in_part(seed: int) -> None:
    rng, of_each, made = random.Random(seed), list[set[tuple[int, int]]](), ALL_LOADED
    for name in ("FIRST", "SECOND"):
        kind, mask, at = rng.choice(list(REDUCTIONS)), rng.choice((0, 1, 7)), rng.choice((0, 0, 8, 16))
        size, count, value = REDUCTIONS[kind]
        starts = range(at, at + size * count * (mask + 1), size)
        of_each.append({(start, start + size) for start in starts})
        made = made.replace(name, BY_LANES.format(mask, size * count, kind, at, value))
    races = any(a < d and c < b and (a, b) != (c, d) for (a, b), (c, d) in product(*of_each))
    assert check(kernel(made, 3, 8), {}, quick=True).verdict is not (Verdict.PROVED if races else Verdict.REFUTED)


#: Two warps store to the same words what they load.
OF_WARPS = """and.b32 %r4, %r0, 31; mad.wide.u32 %rd5, %rLANE, 4, %rd2; ld.global.u32 %r8, [%rd5];
mad.wide.u32 %rd6, %r1, 128, %rd4; mad.wide.u32 %rd6, %r4, 4, %rd6; st.global.u32 [%rd6], %r8;"""


@pytest.mark.parametrize(("lane", "said"), [("4", "nothing"), ("0", "other warps, or copies under way")])
def test_warps_are_taken_to_store_the_same_where_they_load_the_same(lane: str, said: str) -> None:
    found = check(kernel(OF_WARPS.replace("LANE", lane), 3, 64), {}, quick=True)
    assert said in scope_parts(found)["not judged"]
    assert any(each.kind is Assumption.EQUAL_STORES for each in found.scope.assuming) is (said == "nothing")


@pytest.mark.parametrize(("pairs", "value", "assumed"), [(1, "%r0", True), (0, "%r0", False), (1, "7", False)])
def test_lanes_are_taken_to_store_the_same_to_the_same_word(pairs: int, value: str, *, assumed: bool) -> None:
    at = f"shr.u32 %r4, %r0, {pairs}; mad.wide.u32 %rd6, %r1, 128, %rd4; mad.wide.u32 %rd6, %r4, 4, %rd6;"
    found = check(kernel(f"{at} st.global.u32 [%rd6], {value};", 3, 32), {}, quick=True)
    assert any(each.kind is Assumption.EQUAL_STORES for each in found.scope.assuming) is assumed


@pytest.mark.parametrize(("before", "after"), [(MEET, MEET), ("", MEET), (MEET, "")])
def test_lanes_that_rely_on_one_that_waits_or_signals_alone_are_an_assumption(before: str, after: str) -> None:
    body = OF_LANES.replace("BEFORE", before).replace("AFTER", after)
    found = check(kernel(body, 2, 32), {}, quick=True)
    assert found.verdict is Verdict.PROVED
    assert any(each.kind is Assumption.LANES for each in found.scope.assuming) is (not before or not after)


#: CTAs wait for a word that they do not set themselves: what sets it, if anything does, and how it is read.
OUTSIDE = "SET spin: ld.HOW.global.u32 %r8, [%rd1]; setp.eq.u32 %p2, %r8, 0; @%p2 bra spin; LATE"
STORE, ELSEWHERE = "st.release.gpu.global.u32 [%rd1], 1;", "st.release.gpu.global.u32 [%rd1+4], 1;"


@pytest.mark.parametrize(
    ("early", "how", "late", "wrong"),
    [
        ("", "acquire.sys", "", False),
        ("", "volatile", "", False),
        ("", "acquire.gpu", "", False),  # an earlier kernel
        (ELSEWHERE, "acquire.sys", "", False),  # the host
        (ELSEWHERE, "acquire.gpu", "", True),
        ("", "acquire.sys", STORE, True),  # after the wait
        ("", "acquire.gpu", STORE, True),
    ],
)
def test_a_word_that_nothing_in_the_grid_writes_is_set_outside(early: str, how: str, late: str, *, wrong: bool) -> None:
    body = OUTSIDE.replace("SET", early).replace("HOW", how).replace("LATE", late)
    found = check(kernel(body), {}, quick=True)
    assert found.verdict is (Verdict.REFUTED if wrong else Verdict.UNKNOWN)
    said = [each.names for each in found.scope.not_judged if each.kind is NotJudgedKind.WORDS]
    assert wrong or said == [("flags.ptx:8: nothing in the grid writes the word that a CTA waits for",)]


@pytest.mark.slow
def test_grid_sync_of_cooperative_groups_is_a_barrier_of_the_grid() -> None:
    whole = (FOLDER / "grid_sync.ptx").read_text()
    right = check(read("grid_sync", whole, names=("x", "y")), {}, quick=True)
    assert (right.verdict, right.scope.words) == (Verdict.PROVED, ("workspace[1]",))
    assert any(each.kind is Assumption.RESIDENCY for each in right.scope.assuming)
    wrong = read("grid_sync", whole.replace("atom.add.release.gpu", "atom.add.relaxed.gpu"), names=("x", "y"))
    assert check(wrong, {}, quick=True).verdict is Verdict.REFUTED


@pytest.mark.slow
def test_ctas_that_wait_for_later_ones_have_to_fit_on_the_device() -> None:
    """64 threads: 32 CTAs on each of 132 SMs."""
    fits = check(target("counter_barrier_0", 4_224), {}, quick=True)
    assert fits.verdict is Verdict.PROVED
    said = [each.what for each in fits.scope.assuming if each.kind is Assumption.RESIDENCY]
    assert said == ["4,224 CTAs at a time on 132 SMs, and the grid has 4,224"]
    more = check(target("counter_barrier_0", 4_225), {}, quick=True)
    assert more.verdict is Verdict.REFUTED
    assert more.scope.policies == {"together": (4,), "resident": (3,)}
    assert "room on the device" in str(more.refutations[0].finding)
    assert check(target("fix_up_0", 100_000), {}, quick=True).verdict is Verdict.PROVED  # each wait ends
    strict = check(target("counter_barrier_0").with_strictness(Strictness({Assumption.RESIDENCY})), {}, quick=True)
    assert [each.names for each in strict.scope.not_judged if each.kind is NotJudgedKind.WORDS] == [
        ("flags.cu:50 (flags.ptx:70): they have to be on the device at the same time",)
    ]


#: The first 135 CTAs wait for the last one. SHARED: bytes of each, of which one fits on an SM.
FOR_LAST = """.shared .align 16 .b8 tile[SHARED]; setp.eq.u32 %p1, %r1, 136; @%p1 bra set;
setp.gt.u32 %p1, %r1, 134; @%p1 ret;
spin: ld.acquire.gpu.global.u32 %r8, [%rd1]; setp.eq.u32 %p2, %r8, 0; @%p2 bra spin; ret;
set: st.release.gpu.global.u32 [%rd1], 1;"""


@pytest.mark.slow
@pytest.mark.parametrize(("shared", "wrong"), [(16, False), (200_000, True)])
def test_a_grid_that_is_followed_whole_has_as_many_ctas_on_the_device_as_fit(shared: int, *, wrong: bool) -> None:
    """With 136 of 137 resident none hangs."""
    found = check(kernel(FOR_LAST.replace("SHARED", str(shared)), 137), {}, quick=True)
    assert found.verdict is (Verdict.REFUTED if wrong else Verdict.PROVED)
    assert not wrong or found.scope.policies == {"together": (137,), "resident": (132,)}


@pytest.mark.parametrize(
    ("name", "verdict"), [("counter_barrier_0", Verdict.PROVED), ("counter_barrier_3", Verdict.REFUTED)]
)
def test_pointers_that_the_launch_has_as_numbers_are_global_memory(name: str, verdict: Verdict) -> None:
    """Both were proved: where CUDA puts memory was taken for the window of shared memory."""
    numbers = (Parameter(each, Number("u64", 0x7F3A_1200_0000 + (n << 24))) for n, each in enumerate(("x", "y")))
    given = (Parameter("flags", Pointer()), *numbers)
    made = extract(read_module(text(), "flags.ptx", name), Launch(name, (3, 1, 1), (64, 1, 1), parameters=given))
    found = check(Target(name, None, made.program, {}, "", kernel=made), {}, quick=True)
    assert found.verdict is verdict
    assert verdict is Verdict.REFUTED or "x is not a pointer in the launch file" in scope_parts(found)["not judged"]


#: Seeds of kernels in each of which another order of atomics, or a store without a lock, is what is wrong.
FOUND_ONCE = (166, 186, 292, 296, 1069, 1482, 3064)


@pytest.mark.parametrize("seed", FOUND_ONCE)
def test_kernels_that_were_judged_wrongly_once(seed: int) -> None:
    assert judged(seed) == "decided"


@pytest.mark.sampled(0, 20)
@pytest.mark.parametrize(("judge", "first"), [*product([judged_talk, judged_weak], range(0, 400, 20))])
def test_random_kernels_that_ask_more_do_what_the_verdict_says(judge: Callable[[int], str], first: int) -> None:
    found = Counter(map(judge, range(first, first + 20)))
    assert found.keys() <= {"decided", "not decided"}
    assert found["decided"] > 10


@pytest.mark.sampled(0, 1)
@pytest.mark.parametrize("first", range(100, 1_100, 25))
def test_random_kernels_do_what_the_verdict_says(first: int) -> None:
    found = Counter(map(judged, range(first, first + 25)))
    assert found.keys() <= {"decided", "not decided"}
    assert found["decided"] > 17


#: Two threads of each CTA wait for the state that their arrive returned, before one waits for another CTA.
STATE = f""".shared .b64 bar; setp.ne.u32 %p1, %r0, 0; @!%p1 mbarrier.init.shared.b64 [bar], COUNT; bar.sync 0;
mbarrier.arrive.shared.b64 %rd5, [bar];
again: mbarrier.try_wait.shared.b64 %p3, [bar], %rd5; @!%p3 bra again; @%p1 ret; {TRIES["load"].replace("MORE", "")}"""


@pytest.mark.parametrize(("count", "verdict"), [("2", Verdict.PROVED), ("3", Verdict.REFUTED)])
def test_a_wait_for_a_word_is_none_for_a_state(count: str, verdict: Verdict) -> None:
    assert check(kernel(STATE.replace("COUNT", count), threads=2), {}, quick=True).verdict is verdict
