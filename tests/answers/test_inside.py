"""Warps that wait for each other by words of shared memory, or of global memory that one CTA alone uses."""

import pytest

from pipesim.answers.check import check
from pipesim.model.coverage import Assumption
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Launch, Number, Parameter, Pointer, TensorMap
from pipesim.ptx.text.read import read_module
from pipesim.report.sentences.check import scope_parts
from pipesim.targets import Target
from tests.answers.test_together import ARRIVAL, POLL
from tests.answers.test_together import kernel as of_ctas
from tests.support.random_words import judged_inside

HEAD = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry small(.param .u64 flags, .param .u64 x)
{{ .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .shared .align 4 .b8 f[8]; .shared .align 4 .b8 b[256];
mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; and.b32 %r2, %r0, 31; shl.b32 %r3, %r2, 2; mov.u32 %r4, b;
add.u32 %r4, %r4, %r3; mov.u32 %r5, f; ld.param.u64 %rd1, [flags]; ld.param.u64 %rd2, [x];
mad.wide.u32 %rd1, %r1, 4, %rd1; mad.wide.u32 %rd2, %r1, 1024, %rd2; mad.wide.u32 %rd2, %r2, 4, %rd2;
setp.ne.u32 %p1, %r0, 0; @%p1 bra go; st.shared.u32 [%r5], 0; st.shared.u32 [%r5+4], 0; st.shared.u32 [%r4+128], 0;
go: INIT setp.ge.u32 %p2, %r0, 32; setp.ne.u32 %p3, %r2, 0; {body}
ret; }}
""".replace("INIT", "bar.sync 0;")
FLAG = """@%p2 bra other; st.DATA.u32 [AT], %r0; bar.warp.sync -1; @%p3 ret; st.release.cta.MEMORY.u32 [WORD], 1; ret;
other: spin: ld.acquire.cta.MEMORY.u32 %r7, [WORD]; setp.ne.u32 %p4, %r7, 1; @%p4 bra spin; ld.DATA.u32 %r8, [AT];"""
COUNT = """shl.b32 %r9, %r0, 2; mov.u32 %r10, b; add.u32 %r11, %r9, %r10;
xor.b32 %r12, %r9, 128; add.u32 %r12, %r12, %r10;
st.shared.u32 [%r11], %r0; bar.warp.sync -1; @%p3 bra end; atom.acq_rel.cta.shared.add.u32 %r7, [%r5], 1;
setp.ne.u32 %p4, %r7, LAST; @%p4 bra end; ld.shared.u32 %r8, [%r12]; end:"""
LOCK = """@%p3 bra end; take: atom.acquire.cta.shared.cas.b32 %r7, [%r5], 0, 1; setp.ne.u32 %p4, %r7, 0; @%p4 bra take;
ld.shared.u32 %r8, [%r4+128]; add.u32 %r8, %r8, 1; st.shared.u32 [%r4+128], %r8;
st.release.cta.shared.u32 [%r5], 0; end:"""
RACE, WEAK, DEADLOCK, WRONG = FaultKind.RACE, FaultKind.WEAK_ORDER, Ending.DEADLOCK, FaultKind.WRONG_ITEM


def kernel(body: str, grid: int = 2, head: str = HEAD, threads: int = 64) -> Target:
    module = read_module(head.format(body=body), "small.ptx")
    given = tuple(Parameter(name, Pointer()) for name in ("flags", "x"))
    made = extract(module, Launch("small", (grid, 1, 1), (threads, 1, 1), parameters=given))
    return Target("small", None, made.program, {}, "", kernel=made)


def flag(word: str, data: str) -> str:
    at = {"shared": "%r4", "global": "%rd2"}[data]
    memory = {"shared": "%r5", "global": "%rd1"}[word]
    return FLAG.replace("DATA", data).replace("MEMORY", word).replace("AT", at).replace("WORD", memory)


SHARED, GLOBAL = flag("shared", "shared"), flag("global", "shared")


@pytest.mark.parametrize(
    "body",
    [
        SHARED,
        SHARED.replace("ld.acquire.cta", "ld.volatile").replace("bra spin;", "bra spin; membar.cta;", 1),
        GLOBAL,
        GLOBAL.replace(".cta.global", ".gpu.global"),
        flag("shared", "global"),
        flag("global", "global"),
        COUNT.replace("LAST", "1"),
        LOCK,
    ],
)
def test_right_kernels_are_proved(body: str) -> None:
    found = check(kernel(body), {}, quick=True)
    assert found.verdict is Verdict.PROVED
    assert scope_parts(found)["for"] == "every CTA, at these parameters"
    assert scope_parts(found)["not judged"] == "nothing"
    assert not any(each.kind is Assumption.GLOBAL_LOOPS for each in found.scope.assuming)


@pytest.mark.parametrize(
    ("body", "kinds"),
    [
        (SHARED.replace("%r7, 1;", "%r7, 2;"), {DEADLOCK}),
        (SHARED.replace("st.release.cta.shared.u32 [%r5], 1; ", ""), {DEADLOCK}),
        (SHARED.replace("st.release.cta", "st.relaxed.cta"), {WEAK}),
        (SHARED.replace("ld.acquire.cta", "ld.relaxed.cta"), {WEAK}),
        (SHARED.replace("ld.acquire.cta", "ld.volatile"), {WEAK}),
        (SHARED.replace("st.release.cta.shared", "st.shared"), {RACE, WEAK}),  # of the flag itself
        (SHARED.replace("ld.acquire.cta.shared", "ld.shared"), {RACE, WRONG}),
        (SHARED.replace("st.shared.u32 [%r4], %r0; bar", "bar").replace("1; ret", "1; st.shared.u32 [%r4], 1; ret"),
         {RACE, FaultKind.UNINITIALISED_READ}),  # set before the store
        (GLOBAL.replace("%r7, 1;", "%r7, 2;"), {DEADLOCK}),
        (GLOBAL.replace("st.release.cta", "st.relaxed.cta"), {WEAK}),
        (GLOBAL.replace("ld.acquire.cta.global", "ld.global"), {RACE}),
        (flag("shared", "global").replace("ld.acquire.cta", "ld.relaxed.cta"), {WEAK}),
        (flag("global", "global").replace("ld.acquire.cta", "ld.relaxed.cta"), {WEAK}),
        (COUNT.replace("LAST", "0"), {RACE}),
        (COUNT.replace("LAST", "1").replace("acq_rel", "relaxed"), {WEAK}),
        (COUNT.replace("LAST", "1").replace("acq_rel", "release"), {WEAK}),
        (LOCK.replace("st.release.cta.shared.u32 [%r5], 0;", ""), {DEADLOCK}),
        (LOCK.replace("st.release", "st.relaxed"), {WEAK}),
        (LOCK.replace("cas.b32 %r7, [%r5], 0, 1", "cas.b32 %r7, [%r5], 0, 0"), {RACE, WRONG}),
    ],
)  # fmt: skip
def test_wrong_kernels_are_refuted(body: str, kinds: set[FaultKind | Ending]) -> None:
    found = check(kernel(body), {}, quick=True)
    assert found.verdict is Verdict.REFUTED
    assert {each.finding.kind for each in found.refutations} <= {*kinds, *(str(each.value) for each in kinds)}


@pytest.mark.parametrize(
    ("edit", "verdict"), [("release", Verdict.PROVED), pytest.param("relaxed", Verdict.REFUTED, marks=pytest.mark.long)]
)
def test_four_warps_take_a_lock_in_each_order(edit: str, verdict: Verdict) -> None:
    """As the pipelines of libcu++ have 24 orders in which their warps leave them."""
    body = LOCK.replace("st.release", f"st.{edit}").replace("[%r4+128]", "[%r5+4]")
    assert check(kernel(body, threads=128), {}, quick=True).verdict is verdict


#: One lane takes a number from a counter of all CTAs, and hands it to the other warp.
TAKEN = """@%p2 bra other; @%p3 bra met; atom.relaxed.gpu.global.add.u32 %r7, [%rd1], 1; setp.gt.u32 %p4, %r7, 2;
@%p4 bra met; st.shared.u32 [%r5+4], %r7; met: bar.sync 0; AGAIN @%p3 ret; st.shared.u32 [%r5+4], 9; ret;
other: bar.sync 0; ld.shared.u32 %r8, [%r5+4]; AGAIN""".replace("[%rd1]", "[%rd0]")
TAKER = HEAD.replace("ld.param.u64 %rd2, [x];", "ld.param.u64 %rd2, [x]; mov.u64 %rd0, %rd1;")


def test_a_counter_of_one_warp_orders_nothing_among_the_warps() -> None:
    """Which other CTAs count as well: a race beside it is refuted, with the program as it is without its words."""
    assert check(kernel(TAKEN.replace("AGAIN", "bar.sync 0;"), head=TAKER), {}, quick=True).verdict is Verdict.PROVED
    found = check(kernel(TAKEN.replace("AGAIN", ""), head=TAKER), {}, quick=True)
    assert {each.finding.kind for each in found.refutations} == {RACE}
    assert found.scope.policies == {}


def test_what_words_do_not_order_is_refuted_without_them() -> None:
    """A race before a flag that hands over other data: its schedule and corrections are of the kernel as any other."""
    found = check(kernel("@!%p3 st.shared.u32 [%r5+4], %r0; " + flag("global", "global")), {}, quick=True)
    assert {each.finding.kind for each in found.refutations} == {RACE}
    assert "@0" not in str(found.refutations), "which it has where words are followed"


def test_what_a_look_decides_is_not_that_of_one_order() -> None:
    peek = """setp.ne.u32 %p1, %r1, 0; @%p1 bra other; st.volatile.global.u32 [%rd1+8], 1; bra meet;
    other: ld.volatile.global.u32 %r9, [%rd1+8]; setp.eq.u32 %p3, %r9, 0; @%p3 ret; meet: """
    found = check(of_ctas(peek + ARRIVAL + POLL), {}, quick=True)  # a CTA that comes first ends, and others wait
    assert {each.finding.kind for each in found.refutations} == {Ending.DEADLOCK}


@pytest.mark.sampled(6, 12)
@pytest.mark.parametrize("seed", range(40))
def test_random_warps_agree_with_all_their_schedules(seed: int) -> None:
    assert judged_inside(seed) in ("decided", "not decided")


def test_where_words_were_followed_no_other_sizes_are_said_to_be_the_same() -> None:
    """They are read at the values of the launch alone: here at 9, and below 5 the first warp reads what it wrote."""
    head = HEAD.replace(".param .u64 x)", ".param .u64 x, .param .u32 n)")
    body = f"ld.param.u32 %r15, [n]; setp.lt.u32 %p5, %r15, 5; @%p5 ld.shared.u32 %r8, [%r4+128]; {SHARED}"
    given = (*(Parameter(name, Pointer()) for name in ("flags", "x")), Parameter("n", Number("u32", 9)))
    made = extract(
        read_module(head.format(body=body), "small.ptx"), Launch("small", (2, 1, 1), (64, 1, 1), parameters=given)
    )
    report = check(Target("small", None, made.program, {}, "", kernel=made), {}, quick=True)
    assert (report.verdict, report.nearby) == (Verdict.PROVED, ())


def test_an_atomic_on_a_word_of_shared_memory_that_nothing_has_stored_is_not_followed() -> None:
    """It was an internal error."""
    body = """mov.u32 %r7, 9; @!%p3 atom.shared.add.u32 %r7, [%r5], 1; shfl.sync.idx.b32 %r7, %r7, 0, 31, -1;
setp.ne.u32 %p4, %r7, 1; @%p4 bra end; bar.sync 2, 32; end:"""
    assert (
        check(kernel(body, 1, HEAD.replace("st.shared.u32 [%r5], 0;", "")), {}, quick=True).verdict is Verdict.UNKNOWN
    )


REUSED = """.version 8.6
.target sm_90a
.address_size 64
.visible .entry small(.param .u64 x, .param .align 64 .b8 map[128])
{ .reg .pred %p<9>; .reg .b32 %r<20>; .reg .b64 %rd<9>; .shared .align 128 .b8 b[256];
mov.u32 %r0, %tid.x; setp.ne.u32 %p1, %r0, 0; mov.u32 %r1, b; mad.lo.u32 %r1, %r0, 4, %r1; ld.param.u64 %rd1, [x];
mad.wide.u32 %rd2, %r0, 4, %rd1; xor.b32 %r2, %r0, 32; mad.wide.u32 %rd3, %r2, 4, %rd1; mov.u64 %rd4, map;
st.shared.u32 [%r1], %r0; fence.proxy.async.shared::cta; bar.sync 0; mov.u32 %r3, 0; @%p1 bra met;
cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd4, {%r3}], [b];
cp.async.bulk.commit_group; cp.async.bulk.wait_group.read 0; met: bar.sync 0; st.shared.u32 [%r1], 1;
st.global.u32 [%rd2], %r0; bar.sync 0; ld.global.u32 %r4, [%rd3]; ret; }
"""


@pytest.mark.parametrize(("sync", "verdict"), [("bar.sync 0; ld", Verdict.PROVED), ("ld", Verdict.REFUTED)])
def test_words_of_global_memory_beside_a_source_that_is_used_again(sync: str, verdict: Verdict) -> None:
    """A wait for the reads of a copy's source was left out there, and the source taken to be stored to too early."""
    parameters = (Parameter("x", Pointer()), Parameter("map", TensorMap("f32", (64,), (64,))))
    module = read_module(REUSED.replace("bar.sync 0; ld", sync), "small.ptx")
    made = extract(module, Launch("small", (1, 1, 1), (64, 1, 1), parameters=parameters))
    found = check(Target("small", None, made.program, {}, "", kernel=made), {}, quick=True)
    assert found.verdict is verdict
    assert scope_parts(found)["not judged"] == "nothing"
