"""Copies by a tensor map in global memory that the kernel has changed, and what has to come between."""

import pytest

from pipesim.answers.check import check
from pipesim.ptx.extract import extract
from pipesim.ptx.launch.values import Field, Launch, Parameter, Pointer, TensorMap
from pipesim.ptx.text.read import read_module
from pipesim.targets import Target
from tests.support.small_ptx import SET_UP, text_of

BEGIN = SET_UP.format(first=1, count=1) + " ld.param.u64 %rd1, [out];\n setp.ne.u32 %p1, %r0, 32;\n"
FIELDS = "".join(
    f" @!%p0 tensormap.replace.tile.{field}.global.b1024.b32 [%rd1], {value};\n"
    for field, value in {"elemtype": "7", "rank": "0", "box_dim": "0, 16"}.items()
)
RELEASE = " @!%p0 fence.proxy.tensormap::generic.release.gpu;\n"
ACQUIRE = " @!%p0 fence.proxy.tensormap::generic.acquire.gpu [%rd1], 128;\n"
COPY = """ @!%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 64;
 @!%p0 cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [tile], [%rd1, {%r0}], [%r3];
"""
WAIT = "again:\n mbarrier.try_wait.parity.shared::cta.b64 %p2, [%r3], 0;\n @!%p2 bra again;\n"
ELSEWHERE, MEET = (ACQUIRE + COPY).replace("%p0", "%p1").replace("{%r0}", "{%r2}"), " bar.sync 0;\n"
OF_EACH_LANE = MEET + " xor.b32 %r4, %r0, 1;\n mad.wide.u32 %rd2, %r4, 128, %rd1;\n setp.ge.u32 %p3, %r0, 2;\n"
OF_EACH_LANE += ACQUIRE.replace("%p0", "%p3").replace("%rd1", "%rd2")
FIELD = " @!%p0 st.global.u32 [%rd1+4], 3;\n"
COMPLETE = " cp.async.bulk.commit_group;\n cp.async.bulk.wait_group 0;\n"
BULK = " mov.u32 %r4, tile;\n mad.lo.u32 %r4, %r0, 4, %r4;\n st.shared.u32 [%r4+256], 0;\n fence.proxy.async;\n" + MEET
BULK += " @!%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile+256], 128;\n"
UNALIGNED = " add.u64 %rd1, %rd1, 64;\n"
BOX = FIELDS.splitlines(keepends=True)[2].replace("16;", "8;")
BY_DATA = " ld.global.u32 %r4, [%rd1+4096];\n setp.eq.and.u32 %p4, %r4, 7, !%p0;\n" + BOX.replace("!%p0", "%p4")
NARROW = COPY.replace("64;", "32;")
AS_GIVEN = Pointer(contents=(Field(0, TensorMap("f32", (64,), (16,))),))


@pytest.mark.parametrize(
    ("body", "given", "found"),
    [
        (FIELDS + RELEASE + ACQUIRE + COPY, Pointer(), "proved"),
        (FIELDS + ACQUIRE + RELEASE + COPY, Pointer(), "refuted"),
        (FIELDS + RELEASE + MEET + ELSEWHERE, Pointer(), "proved"),
        (FIELDS + MEET + RELEASE + ELSEWHERE, Pointer(), "not judged"),  # the acquire may come first
        (UNALIGNED + FIELDS + RELEASE + FIELD + ACQUIRE + COPY, Pointer(), "not judged"),
        (COPY + FIELDS + RELEASE, AS_GIVEN, "not judged"),  # the copy may still read it
        (FIELDS + RELEASE + OF_EACH_LANE + COPY, Pointer(), "not judged"),  # lane 1 has acquired it
        (BULK + RELEASE + COMPLETE + ACQUIRE + COPY, AS_GIVEN, "not judged"),
        (FIELD + COPY, AS_GIVEN, "refuted"),
        (FIELD + RELEASE + ACQUIRE + COPY, AS_GIVEN, "proved"),
        (BOX + RELEASE + ACQUIRE + COPY, AS_GIVEN, "refuted"),  # 32 bytes and not 64
        (BOX + RELEASE + ACQUIRE + NARROW, AS_GIVEN, "proved"),
        (FIELDS + BY_DATA + RELEASE + ACQUIRE + NARROW, Pointer(), "not judged"),  # it may still be 64
    ],
)
def test_a_changed_map_is_released_and_then_acquired_before_a_copy(body: str, given: Pointer, found: str) -> None:
    text = text_of(BEGIN + body + WAIT, ".param .u64 out")
    launch = Launch("kernel", (1, 1, 1), (64, 1, 1), parameters=(Parameter("out", given),))
    made = extract(read_module(text, "small.ptx"), launch)
    report = check(Target("small", None, made.program, {}, "", kernel=made), {}, quick=True)
    is_open = any(each.names for each in report.heading.coverage.not_judged) and not report.refutations
    assert ("not judged" if is_open else report.verdict.value) == found
