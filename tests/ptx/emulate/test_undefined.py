"""What PTX does not allow of operands is a finding; what it leaves undefined otherwise forbids a proof."""

import pytest

from pipesim.findings.catalog import report_fault
from pipesim.model.coverage import LENIENT, Assumption, Strictness
from pipesim.model.finding import FaultKind
from pipesim.prove.check import How, check
from tests.support.small_ptx import SET_UP, program_of, text_of

START = SET_UP.format(first=1, count=1) + " mov.u64 %rd1, 268435456;\n setp.eq.u32 %p1, %r1, 1;\n"
WAIT = """again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [{0}], 0;
 @!%p9 bra again;
"""


def verdict(body: str, cluster: int = 1, warps: int = 2) -> str:
    found = check(program_of(START + body, warps, cluster=cluster).with_strictness(LENIENT))
    return found.verdict.value if found.how is not How.UNDEFINED else "undefined"


def copied(size: int, place: str = "[tile]", expected: int | None = None) -> str:
    return f""" mov.u32 %r20, {size};
 @%p0 bra issued;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], {size if expected is None else expected};
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes {place}, [%rd1], %r20, [%r3];
issued:
{WAIT.format("%r3")}"""


MEET = " barrier.cluster.arrive;\n barrier.cluster.wait;\n"
BOX = " mov.u32 %r20, 0;\n @!%p0 cp.async.bulk.tensor.1d.global.shared::cta.bulk_group [%rd1, {%r20}], [tile+128];\n"
TENSOR = """ setp.ne.u32 %p4, %r1, 0;
 @%p4 bra allocated;
 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [tile], 32;
allocated:
 bar.sync 0;
 ld.shared.u32 %r9, [tile];
 shl.b32 %r10, %r1, 21;
 add.u32 %r9, %r9, %r10;
 tcgen05.st.sync.aligned.32x32b.x2.b32 [%r9], {%r20, %r21};
 tcgen05.wait::st.sync.aligned;
 tcgen05.ld.sync.aligned.16x64b.x2.b32 {%r20, %r21}, [%r9+1048576];
 tcgen05.wait::ld.sync.aligned;
 bar.sync 0;
 @%p4 bra released;
 tcgen05.dealloc.cta_group::1.sync.aligned.b32 %r9, 32;
released:
"""
MULTICAST = " mov.u32 %r22, 1;\n" + copied(16).replace("bytes [tile]", "bytes.multicast::cluster [tile]")
MULTICAST = MULTICAST.replace("%r20, [%r3]", "%r20, [%r3], %r22")
SHUFFLE = """ mov.u32 %r9, 65535;
 setp.gt.u32 %p4, %r2, 15;
 @%p4 bra others;
 shfl.sync.bfly.b32 %r20, %r2, 8, 31, %r9;
others:
 bar.sync 0;
"""
#: A right kernel, an edit of it, words of the finding and of its line, and CTAs of the cluster.
ILLEGAL = [
    (copied(32), "%r20, 32", "%r20, 24", "a bulk copy of 24 bytes, not a multiple of 16", "cp.async", 1),
    (copied(16), "[tile]", "[tile+8]", "a bulk copy at byte 136 of shared memory, not at", "cp.async", 1),
    (copied(4096), "4096", "4112", "a copy of bytes 128 to 4,240 of shared memory, of which a CTA has", "cp.async", 1),
    (copied(16), "%r20, [%r3]", "%r20, [%r3+4]", "an mbarrier at byte 4 of shared memory, not at", "cp.async", 1),
    (copied(16), "_, [%r3]", "_, [%r3+4]", "an mbarrier at byte 4", "arrive.expect_tx", 1),
    (copied(16), "%p9, [%r3]", "%p9, [%r3+4]", "an mbarrier at byte 4", "try_wait", 1),
    (" @!%p0 mbarrier.init.shared::cta.b64 [%r3+16], 1;\n", "+16", "+20", "an mbarrier at byte 20", "init", 1),
    (" @!%p0 st.shared.v2.u64 [tile+128], {%rd1, %rd1};\n", "+128", "+136", "a store at byte 264", "st.shared", 1),
    (" @!%p0 red.shared.add.u32 [tile+4], 1;\n", "+4", "+6", "an atomic at byte 134", "red.shared", 1),
    (" mov.u32 %r9, 15;\n bar.sync %r9, 64;\n", "15", "16", "a CTA has no named barrier 16", "bar.sync %r9", 1),
    (" mov.u32 %r9, 64;\n bar.sync 1, %r9;\n", "64", "0", "named barrier 1 with no threads", "bar.sync 1", 1),
    (" setmaxnreg.inc.sync.aligned.u32 96;\n", "96", "100", "setmaxnreg for 100 registers", "setmaxnreg", 1),
    (MULTICAST, "%r22, 1", "%r22, 2", "a multicast to the CTAs 0b10 of a cluster of 1", "cp.async", 1),
    (
        f" mapa.shared::cluster.u32 %r10, %r3, 1;\n @!%p0 st.shared::cluster.u32 [%r10+256], 1;\n{MEET}",
        "%r3, 1", "%r3, 2", "the address is in CTA 2 of a cluster of 2", "st.shared", 2,
    ),
    (SHUFFLE, "%r9, 65535", "%r9, -1", "its mask names lanes that took another branch", "shfl.sync", 1),
    (TENSOR, "%r9, %r10;\n tcgen05.st", "%r9, 4194304;\n tcgen05.st", "accesses lane 64 of tensor", "tcgen05.st", 1),
    (TENSOR, "%r9, %r10;\n tcgen05.st", "%r9, 12582912;\n tcgen05.st", "accesses lane 192 of tensor", "tcgen05.st", 1),
    (TENSOR, "[%r9+1048576]", "[%r9+2097152]", "accesses lane 32 of tensor memory", "tcgen05.ld", 1),
]  # fmt: skip


@pytest.mark.parametrize(("right", "old", "new", "said", "line", "cluster"), ILLEGAL)
def test_an_operand_that_is_not_allowed_is_a_finding(
    right: str, old: str, new: str, said: str, line: str, cluster: int
) -> None:
    warps = 4 if "setmaxnreg" in right else 2
    if "mapa" not in right:  # where both CTAs store to one place
        assert verdict(right, cluster, warps) == "proved"
    wrong = START + right.replace(old, new)
    program = program_of(wrong, warps, cluster=cluster).with_strictness(LENIENT)
    (found,) = check(program).refutations
    assert found.fault is not None
    fault = report_fault(program, found.fault)
    assert fault.kind is FaultKind.ILLEGAL_OPERAND
    assert said in fault.claim
    assert line in text_of(wrong).splitlines()[int(fault.line.rpartition(":")[2]) - 1]
    assert fault.correction


@pytest.mark.parametrize("by", ["0", "%r10;\n add.u32 %r9, %r9, 8388608"])
def test_lanes_of_the_first_warp_and_lanes_that_do_not_exist_mean_those_of_each(by: str) -> None:
    """Modular's kernels give every warp the address of lane 0, others add 128 in the second CTA of a pair."""
    right, lane_0 = (program_of(START + TENSOR.replace("%r9, %r10", f"%r9, {each}")) for each in ("%r10", by))
    assert Assumption.TENSOR_LANES not in {each.kind for each in right.coverage.assumed}
    assert Assumption.TENSOR_LANES in {each.kind for each in lane_0.coverage.assumed}
    assert check(lane_0.with_strictness(LENIENT)).verdict.value == "proved"
    strict = check(lane_0.with_strictness(Strictness({Assumption.TENSOR_LANES})))
    assert {each.kind for each in strict.refutations} == {FaultKind.ILLEGAL_OPERAND}


def test_a_tensor_copy_has_its_box_at_a_multiple_of_128() -> None:
    def kinds(body: str) -> set[FaultKind]:
        return {each.kind for each in check(program_of(START + body)).refutations if isinstance(each.kind, FaultKind)}

    assert FaultKind.ILLEGAL_OPERAND not in kinds(BOX)
    assert kinds(BOX.replace("+128", "+64")) == {FaultKind.ILLEGAL_OPERAND}


def test_what_may_not_run_or_lie_elsewhere_is_not_sure_to_be_illegal() -> None:
    """A store under a guard that is not known; a variable whose place is ptxas's to choose."""
    store = (
        " ld.global.u32 %r8, [%rd1];\n setp.eq.u32 %p5, %r8, 0;\n @%p5 st.shared.v2.u64 [tile+{0}], {{%rd1, %rd1}};\n"
    )
    assert verdict(store.format(8)) == "unknown"
    assert verdict(copied(16, place="[bars+40]")) == "undefined"


def test_what_is_not_allowed_forbids_a_proof() -> None:
    init = " @!{} mbarrier.init.shared::cta.b64 [%r3+16], 1;\n"
    assert verdict(init.format("%p0")) == "proved"
    assert verdict(init.format("%p1")) == "undefined"
    waits = " @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3];\n" + WAIT.format("%r3")
    assert verdict(waits) == "proved"
    assert verdict(waits.replace("], 0", "], 2")) == "undefined", "PTX has the parities 0 and 1"


def test_a_copy_of_no_bytes_completes_none() -> None:
    assert verdict(copied(0)) == "proved"
    assert verdict(copied(0, expected=16)) == "refuted"


def test_a_wait_is_for_an_mbarrier_of_the_own_cta() -> None:
    meet = " barrier.cluster.arrive;\n barrier.cluster.wait;\n"
    text = " mapa.shared::cluster.u32 %r10, %r3, {0};\n" + meet + " @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3];\n"
    text += WAIT.format("%r10") + meet
    own = " mov.u32 %r11, %cluster_ctarank;\n"
    assert verdict(own + text.format("%r11"), cluster=2) == "proved"
    assert verdict(text.format(1), cluster=2) == "undefined"


def test_a_wait_by_state_is_for_this_phase_or_the_last_one() -> None:
    meet = " mbarrier.arrive.shared::cta.b64 %rd{0}, [%r3+8];\nw{0}:\n"
    meet += " mbarrier.test_wait.shared::cta.b64 %p9, [%r3+8], %rd{1};\n @!%p9 bra w{0};\n"
    twice = SET_UP.format(first=1, count=64) + meet.format(4, 4) + meet.format(5, 5)
    found = [check(program_of(twice + meet.format(6, state))).verdict.value for state in (4, 5, 6)]
    assert found == ["unknown", "refuted", "proved"]


def test_halves_of_a_proxy_fence_and_copies_with_bytes_missing_are_unknown() -> None:
    half = " fence.proxy.async::generic.{0}.sync_restrict::shared::cluster.cluster;\n"
    odd = copied(16).replace("bytes [", "bytes.ignore_oob [").replace(", 16, [", ", 16, 0, 4, [")
    for text in half.format("acquire"), half.format("release"), odd:
        assert "is not known" in program_of(START + text).coverage.stopped[0]


def test_a_source_in_shared_memory_is_read_and_how_long_is_left_out() -> None:
    text = """ mov.u32 %r30, tile;
 add.u32 %r31, %r30, 1024;
 {0} st.shared.v2.u64 [tile+1024], {{%rd1, %rd1}};
 {1} @%p0 bra issued;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 16;
 cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%r30], [%r31], 16, [%r3];
issued:
"""
    meet = "fence.proxy.async.shared::cta;\n bar.sync 0;\n"
    ordered = text.format("@%p1", meet) + WAIT.format("%r3")
    assert verdict(ordered) == "proved"
    assert verdict(text.format("@%p1", "fence.proxy.async.shared::cta;\n") + WAIT.format("%r3")) == "refuted"
    (said,) = program_of(START + ordered).coverage.left_out
    assert said.endswith("how long it reads its source in shared memory")
    again = START + ordered + " bar.sync 0;\n @!%p0 st.shared.u32 [tile+"
    assert check(program_of(again + "1040], 1;\n").with_strictness(LENIENT)).verdict.value == "proved"
    late = check(program_of(again + "1036], 1;\n").with_strictness(LENIENT))
    assert late.how is How.PERHAPS  # perhaps while the copy still reads it
    unfenced = check(program_of(START + ordered.replace("fence.proxy.async.shared::cta;\n", "")))
    assert {each.kind for each in unfenced.refutations} == {FaultKind.MISSING_PROXY_FENCE}


@pytest.mark.parametrize(
    "exchange",
    ["vote.sync.any.pred %p7, %p4, {0};", "shfl.sync.idx.b32 %r9, %r2, 0, 31, {0};", "elect.sync _|%p7, {0};"],
)
def test_lanes_of_a_mask_exchange_values_on_one_way(exchange: str) -> None:
    """Those that wait for what comes after the exchange never get there: PTX has all lanes of the mask wait."""
    half = f""" setp.lt.u32 %p4, %r2, 16;
 @!%p4 bra others;
 {exchange}
 @!%p0 mbarrier.arrive.shared::cta.b64 _, [%r3];
 bra done;
others:
 {WAIT.format("%r3")}done:
"""
    assert verdict(half.format("0xffff")) == "proved"
    assert verdict(half.format(-1)) == "undefined"
    ended = f" setp.ge.u32 %p4, %r2, 16;\n @%p4 bra done;\n {exchange}\ndone:\n"
    assert verdict(ended.format(-1)) == "proved"
