"""Fences and groups of copies that only some lanes run, or that run by a value which is not known."""

import pytest

from pipesim.model.coverage import LENIENT
from pipesim.prove.check import check
from pipesim.ptx.emulate.lanes.copy_groups import CopyGroups
from tests.support.small_ptx import SET_UP, program_of, word

START = SET_UP.format(first=1, count=1) + """ mov.u64 %rd1, 268435456;
 ld.param.u32 %r20, [n];
 setp.eq.u32 %p6, %r20, 0;
 setp.ne.u32 %p7, %r2, 0;
"""  # fmt: skip


def verdict(body: str, open_: int | None = None) -> str:
    text = START + f" setp.eq.u32 %p1, %r1, 1;\n @%p1 bra over;\n{body}over:\n"
    found = check(program_of(text, params=".param .u32 n", values=[word(open_)]).with_strictness(LENIENT))
    kinds = sorted(shown.kind.name for shown in found.refutations)
    return " ".join([found.verdict.value, *kinds])


#: A word is stored, fenced or not, and overwritten by a copy that the same warp waits for.
FENCED = """ @!%p7 st.shared.u32 [tile], 5;
{fence} bar.warp.sync -1;
 @%p7 bra issued;
 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r3], 128;
 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [tile], [%rd1], 128, [%r3];
issued:
again:
 mbarrier.try_wait.parity.shared::cta.b64 %p9, [%r3], 0;
 @!%p9 bra again;
"""


@pytest.mark.parametrize("fence", [" @%p6 {0}\n", " @!%p6 bra passed;\n {0}\npassed:\n"])
def test_a_fence_of_which_it_is_not_known_whether_it_runs_orders_nothing(fence: str) -> None:
    text = FENCED.format(fence=fence.format("fence.proxy.async.shared::cta;"))
    assert verdict(text) == "unknown"
    assert verdict(text, 0) == "proved"
    assert verdict(text, 1) == "refuted MISSING_PROXY_FENCE"


def test_a_proxy_fence_of_global_memory_orders_nothing_in_shared_memory() -> None:
    assert verdict(FENCED.format(fence=" fence.proxy.async.global;\n")) == "refuted MISSING_PROXY_FENCE"
    assert verdict(FENCED.format(fence=" fence.proxy.async;\n")) == "proved"


def test_a_group_of_bulk_stores_is_waited_for_by_the_lane_that_issued_them() -> None:
    text = """ @!%p7 st.shared.v2.u64 [tile], {{%rd1, %rd1}};
 fence.proxy.async.shared::cta;
 bar.warp.sync -1;
 @!%p7 cp.async.bulk.global.shared::cta.bulk_group [%rd1], [tile], 16;
 @!%p7 cp.async.bulk.commit_group;
 setp.eq.u32 %p8, %r2, {0};
 @%p8 cp.async.bulk.wait_group.read 0;
 bar.warp.sync -1;
 @!%p7 st.shared.u32 [tile], 6;
"""
    assert verdict(text.format(0)) == "proved"
    assert verdict(text.format(1)) == "refuted RACE"


def test_copies_of_all_lanes_are_waited_for_by_all() -> None:
    text = """ shl.b32 %r4, %r2, 4;
 mov.u32 %r5, tile;
 add.u32 %r5, %r5, %r4;
 cp.async.ca.shared.global [%r5], [%rd1], 16;
 cp.async.commit_group;
 setp.lt.u32 %p8, %r2, {0};
 @%p8 cp.async.wait_group 0;
 bar.warp.sync -1;
 ld.shared.u32 %r8, [%r5];
"""
    assert verdict(text.format(32)) == "proved"
    assert verdict(text.format(16)) == "refuted RACE"


def test_groups_that_not_all_lanes_have_are_counted_for_none() -> None:
    groups = CopyGroups()
    groups.issue(0b11)
    assert groups.commit(0b11)
    assert groups.wait(0b11, 1)
    groups.issue(0b01)
    assert groups.commit(0b01)  # the second group of one lane; the other lane still has one
    assert not groups.wait(0b11, 1)
    assert not groups.wait(0b01, 0)
    assert groups.wait(0b11, 0)
    assert not groups.issued
    groups.issue(0b10)
    assert not groups.commit(0b01)
