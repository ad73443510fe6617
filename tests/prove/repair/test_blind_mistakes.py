"""Mistakes that were written before the tool was run on them: what is offered, and that it is proved."""

from __future__ import annotations

import pytest

from pipesim.model.finding import Verdict
from pipesim.prove.check import check
from pipesim.prove.repair.edits import repaired
from tests.support.blind import KERNELS
from tests.support.offered import offered_for_slip, without_places

#: Of the slips these take longest: too large, or nothing is found and all is tried.
SLOW = {
    "persistent_gemm.no_store_wait", "persistent_gemm.one_id", "persistent_gemm.reset", "attention.ke_for_ve",
    "ping_pong_mbarriers.no_order_wait", "two_groups.o_no_wait", "two_groups.k_released_late_wrong",
}  # fmt: skip
#: Of each kernel every other slip runs in ``.ci/run``, and all of them at length.
EVERY = [
    pytest.param(
        f"{name}.{slip}",
        marks=[pytest.mark.slow] * (f"{name}.{slip}" in SLOW) + [pytest.mark.long] * (place % 2),
    )
    for name, (_, slips) in KERNELS.items()
    for place, slip in enumerate(slips)
]


@pytest.mark.parametrize("name", KERNELS)
def test_each_kernel_is_right_without_a_slip(name: str) -> None:
    assert check(KERNELS[name][0]("").flatten()).verdict is Verdict.PROVED


@pytest.mark.parametrize("name", EVERY)
def test_what_is_offered_for_a_slip(name: str) -> None:
    kernel, _, slip = name.partition(".")
    program, offered = offered_for_slip(kernel, slip)
    assert sorted({without_places(each.said) for each in offered}) == list(KERNELS[kernel][1][slip])
    for each in offered:
        right = repaired(program, each.repair)
        assert right is not None
        assert check(right, 1).verdict is Verdict.PROVED
        assert "/tests/support/blind/" in each.line
