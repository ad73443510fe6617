"""What instructions do to memory and order: each is judged, as its twin shows, or counted, or does nothing there."""

import pytest

from pipesim.findings.catalog import report_fault
from pipesim.model.coverage import LENIENT, NotJudgedKind
from pipesim.model.finding import FaultKind, Verdict
from pipesim.prove.check import check
from tests.support.small_ptx import SET_UP, program_of, text_of

START = SET_UP.format(first=1, count=1) + " mov.u64 %rd1, 268435456;\n setp.eq.u32 %p1, %r1, 1;\n"
STORED = " @!%p0 st.shared.v2.u64 [tile], {%rd1, %rd1};\n @!%p0 fence.proxy.async.shared::cta;\n"
GROUP = """ @!%p0 {}.global.shared::cta.bulk_group{} [%rd1], [tile], 16;
 @!%p0 cp.async.bulk.commit_group;
 @!%p0 cp.async.bulk.wait_group.read 0;
 @!%p0 st.shared.u32 [tile], 6;
"""
WAIT = " @!%p0 cp.async.bulk.wait_group.read 0;\n"
MEET = " bar.sync 0;\n"
FILL = " @!%p1 st.bulk.shared::cta [tile], 4096, 0;\n" + MEET + " @!%p0 st.shared.u32 [tile], 5;\n" + MEET
FENCED = "global.shared::cta.tensormap::generic.release.gpu.sync.aligned"
COLUMNS = ".sync.aligned.col.m16n16k16"
FRAGMENT = "{%r20, %r21, %r22, %r23, %r24, %r25, %r26, %r27}"
MAP = " @!%p0 tensormap.replace.tile.global_address.shared::cta.b1024.b64 [tile], %rd1;\n"
TENSOR = """ setp.ne.u32 %p4, %r1, 0;
 @%p4 bra allocated;
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile+2048], 32;
allocated:
 bar.sync 0;
 ld.shared.u32 %r9, [tile+2048];
 add.u32 %r8, %r9, 16;
 mov.u32 %r30, 134349824;
 mov.u64 %rd3, 72;
"""
COMMIT = "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%r3];"
RELEASE = """ bar.sync 0;
 @%p4 bra released;
 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;
released:
"""
WAITED = "again:\n mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;\n @!%p9 bra again;\n"
#: Warp 0 has the tensor unit read the tile, which warp 1 writes again when the mbarrier says so.
COPIED = f"""{STORED}{TENSOR} @!%p0 tcgen05.cp.cta_group::1.128x128b [%r9], %rd3;
 @!%p0 {COMMIT}
 @!%p1 bra written;
{WAITED} @%p1 st.shared.u32 [tile], 6;
written:
{RELEASE}"""
#: Warp 0 shifts columns, which warp 1 loads when the mbarrier says so.
LOADED = " add.u32 %r10, %r9, 2097152;\n tcgen05.ld.sync.aligned.32x32b.x1.b32 {%r20}, [%r10];\n"
LOADED += " tcgen05.wait::ld.sync.aligned;\n"
SHIFTED = f"""{TENSOR} @!%p0 tcgen05.shift.cta_group::1.down [%r9];
 @!%p0 {COMMIT}
 @!%p1 bra written;
{WAITED}{LOADED}written:
{RELEASE}"""
#: A product has its scales in columns that warp 1 stores when the mbarrier says so.
SCALED = SHIFTED.replace(LOADED, LOADED.replace("%r9, 2097152", "%r8, 2097152").replace("ld.sync", "st.sync"))
SCALED = SCALED.replace("x1.b32 {%r20}, [%r10]", "x1.b32 [%r10], {%r20}").replace("wait::ld", "wait::st")
SCALED = SCALED.replace(
    "tcgen05.shift.cta_group::1.down [%r9];",
    "tcgen05.mma.cta_group::1.kind::mxf4.block_scale [%r9], %rd3, %rd3, %r30, [%r8], [%r8], %p1;",
)
#: A right kernel, what the wrong one has instead, and words of the line of the race.
TWINS = {
    "reduce": (STORED + GROUP.format("cp.reduce.async.bulk", ".add.u32"), WAIT, "", "st.shared"),
    "multimem": (STORED + GROUP.format("multimem.cp.async.bulk", ""), WAIT, "", "st.shared"),
    "wmma.load": (
        f"{FILL} @%p1 wmma.load.a.sync.aligned.row.m16n16k16.shared.f16 {FRAGMENT}, [tile], 64;\n",
        f"5;\n{MEET}", "5;\n", "wmma.load",
    ),
    "wmma.store": (
        f" @!%p0 st.shared.u32 [tile+64], 5;\n @%p1 wmma.store.d{COLUMNS}.shared.f32 [tile], {FRAGMENT}, 32;\n",
        "32;", "16;", "5;",
    ),
    "tensormap.replace": (f" @%p1 st.shared.u32 [tile], 5;\n{MEET}{MAP}", MEET, "", "st.shared"),
    "tensormap.cp_fenceproxy": (
        f"{MAP}{MEET} @%p1 tensormap.cp_fenceproxy.{FENCED} [%rd1], [tile], 128;\n",
        MEET, "", "cp_fenceproxy",
    ),
    "tcgen05.cp": (COPIED, COMMIT, "mbarrier.arrive.shared::cta.b64 _, [%r3];", "[tile], 6"),
    "tcgen05.shift": (SHIFTED, COMMIT, "mbarrier.arrive.shared::cta.b64 _, [%r3];", "tcgen05.ld"),
    "scales": (STORED + SCALED, COMMIT, "mbarrier.arrive.shared::cta.b64 _, [%r3];", "tcgen05.st"),
}  # fmt: skip


@pytest.mark.parametrize("name", TWINS)
def test_memory_that_an_instruction_accesses_is_judged(name: str) -> None:
    right, old, new, line = TWINS[name]
    assert old in right
    text = START + right
    assert check(program_of(text, target="sm_100a").with_strictness(LENIENT)).verdict is Verdict.PROVED
    wrong = text.replace(old, new)
    program = program_of(wrong, target="sm_100a").with_strictness(LENIENT)
    fault = check(program).refutations[0].fault
    assert fault is not None
    assert fault.kind is FaultKind.RACE
    assert line in text_of(wrong).splitlines()[int(report_fault(program, fault).line.rpartition(":")[2]) - 1]


LOADS, STORES, ATOMICS = NotJudgedKind.GLOBAL_LOADS, NotJudgedKind.GLOBAL_STORES, NotJudgedKind.GLOBAL_ATOMICS
COUNTED = {
    "ld.global.u32 %r20, [%rd1];": LOADS,
    "tex.1d.v4.f32.s32 {%r20, %r21, %r22, %r23}, [image, {%r2}];": LOADS,
    "suld.b.1d.b32.trap {%r20}, [image, {%r2}];": LOADS,
    "multimem.ld_reduce.relaxed.gpu.global.add.u32 %r20, [%rd1];": LOADS,
    f"wmma.load.a.sync.aligned.row.m16n16k16.global.f16 {FRAGMENT}, [%rd1];": LOADS,
    "st.async.weak.global.u32 [%rd1], %r2;": STORES,
    "sust.b.1d.b32.trap [image, {%r2}], {%r2};": STORES,
    "multimem.st.relaxed.gpu.global.u32 [%rd1], %r20;": STORES,
    "discard.global.L2 [%rd1], 128;": STORES,
    "red.global.add.u32 [%rd1], 1;": ATOMICS,
    "red.async.relaxed.sys.global.add.u32 [%rd1], 1;": ATOMICS,
    "sured.b.add.1d.u32.trap [image, {%r2}], %r2;": ATOMICS,
    "multimem.red.release.gpu.global.add.u32 [%rd1], 1;": ATOMICS,
    "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;": NotJudgedKind.TENSOR_MAPS,
    "tensormap.replace.tile.rank.global.b1024.b32 [%rd1], 2;": NotJudgedKind.TENSOR_MAPS,
    "griddepcontrol.launch_dependents;": NotJudgedKind.DEPENDENT_LAUNCH,
    "griddepcontrol.wait;": None,
    "prefetch.global.L2 [%rd1];": None,
    "cp.async.bulk.prefetch.L2.global [%rd1], 128;": None,
    "applypriority.global.L2::evict_normal [%rd1], 128;": None,
    "createpolicy.fractional.L2::evict_last.b64 %rd3, 1.0;": None,
    "pmevent 1;": None,
    "nanosleep.u32 20;": None,
    "brkpt;": None,
    "fence.proxy.alias;": None,
}


@pytest.mark.parametrize("instruction", COUNTED)
def test_what_is_done_to_other_memory_is_counted(instruction: str) -> None:
    coverage = program_of(f"{START} {instruction}\n", target="sm_100a").coverage
    kind = COUNTED[instruction]
    assert [(each.kind, each.count) for each in coverage.not_judged] == ([] if kind is None else [(kind, 1)])
    assert not coverage.left_out
    assert coverage.complete


def test_reductions_of_the_same_bytes_come_in_any_order() -> None:
    """PTX ISA, "cp.reduce.async.bulk": each is done as a whole, so that two of them are no race."""
    text = f"""{STORED} barrier.cluster.arrive;\n barrier.cluster.wait;
 mov.u32 %r30, tile;
 add.u32 %r33, %r30, 256;
 mapa.shared::cluster.u32 %r31, %r33, 0;
 mapa.shared::cluster.u32 %r32, %r3, 0;
 mov.u32 %r40, %cluster_ctarank;
 setp.ne.u32 %p4, %r40, 0;
 @!%p0 cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes.add.u32 [%r31], [%r30], 16, [%r32];
 @%p4 bra over;
 @!%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 32;
{WAITED}over:\n barrier.cluster.arrive;\n barrier.cluster.wait;
"""
    program = program_of(START + text, cluster=2).with_strictness(LENIENT)
    assert not check(program).refutations
    assert "several reductions change the same bytes in any order" in program.coverage.reductions[0]


@pytest.mark.parametrize(
    ("arrives", "verdict", "kinds"), [(1, Verdict.UNKNOWN, set()), (2, Verdict.REFUTED, {FaultKind.OVER_ARRIVAL})]
)
def test_a_fence_that_may_run_is_no_reason_to_doubt_an_arrival(
    arrives: int, verdict: Verdict, kinds: set[FaultKind]
) -> None:
    program = program_of(
        SET_UP.format(first=1, count=1)
        + " mov.u64 %rd1, 268435456;\n ld.global.u32 %r20, [%rd1];\n setp.ne.u32 %p1, %r20, 0;\n @%p0 bra over;\n"
        " st.shared.v2.u64 [tile], {%rd1, %rd1};\n @%p1 fence.proxy.async.shared::cta;\n"
        " cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 16;\n cp.async.bulk.commit_group;\n"
        f" cp.async.bulk.wait_group 0;\n mbarrier.arrive.shared::cta.b64 _, [%r3], {arrives};\nover:\n"
    )
    assert len(program.coverage.fences) == 1
    found = check(program)
    assert (found.verdict, {each.kind for each in found.refutations}) == (verdict, kinds)


def loaded_by_the_group_itself(early: bool = False) -> str:
    """A warp group multiplies what thread 0 of its first warp loads, twice; ``early``: again before the wait."""
    load = """ @%p0 bra loaded{0};
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 2048;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd2], 2048, [%r3];
loaded{0}:
"""
    product = """full{0}:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], {0};
 @!%p9 bra full{0};
 wgmma.fence.sync.aligned;
 wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {{%r10, %r11, %r12, %r13}}, %rd1, %rd1, 1, 1, 1, 0, 0;
 wgmma.commit_group.sync.aligned;
"""
    wait, again = " wgmma.wait_group.sync.aligned 0;\n", load.format(1)
    between = again + wait if early else wait + again
    set_up = (
        SET_UP.format(first=1, count=1)
        + """ mov.u64 %rd2, 268435456;
 shr.u32 %r4, tile, 4;
 cvt.u64.u32 %rd1, %r4;
 or.b64 %rd1, %rd1, 68720001024;
"""
    )
    return set_up + load.format(0) + product.format(0) + between + product.format(1) + wait


def test_products_that_a_warp_has_waited_for_are_those_of_its_warp_group() -> None:
    """What one warp does after its wait comes after the products of all four: here the next copy to their operands."""
    right, wrong = (check(program_of(loaded_by_the_group_itself(early), 4)) for early in (False, True))
    assert right.verdict.value == "proved"
    assert {each.kind for each in wrong.refutations} == {FaultKind.RACE}
