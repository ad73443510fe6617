"""Our own kernels, read from the PTX that NVRTC makes of them: proved, and in the order of their protocols."""

from collections.abc import Mapping

import pytest

from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.strictness import LENIENT
from pipesim.prove.check import check
from tests.support.ptx_twins import Order, extracted, order_of_kernel, order_of_protocol, twin_ptx

pytest.importorskip("cuda.bindings.nvrtc")

slow = pytest.mark.slow
#: The landings that these two kernels wait for before they end, so that no copy lands in a CTA that has exited. Nobody
#: waits for them in the protocols, which end where the last tile is read.
LAST_LANDINGS = {"persistent_scheduler": {"pipe.full"}, "epilogue_residual": {"input.full", "epi_load.full"}}
TWINS = [
    pytest.param("producer_consumer", {}, id="producer_consumer"),
    pytest.param("producer_consumer", {"arrive_lanes": 32}, id="producer_consumer, 32 lanes", marks=slow),
    pytest.param("cluster_multicast", {}, id="cluster_multicast", marks=slow),
    pytest.param("persistent_scheduler", {}, id="persistent_scheduler", marks=slow),
    pytest.param("gemm_sm90", {}, id="gemm_sm90", marks=slow),
    pytest.param("gemm_sm90", {"lookahead": 1, "drain": 1}, id="gemm_sm90, lookahead", marks=slow),
    pytest.param("attention_sm90", {}, id="attention_sm90", marks=slow),
    pytest.param("attention_sm90_fused", {}, id="attention_sm90_fused", marks=slow),
    pytest.param("epilogue_residual", {}, id="epilogue_residual", marks=slow),
]


def without_last_landings(name: str, order: Order) -> Order:
    """The order of a kernel without its last waits for landings, of which each stage has at most one."""
    waits = LAST_LANDINGS.get(name, set())
    protocol = order_of_protocol(name, {})
    found: Order = {}
    for group, warps in order.items():
        found[group] = dict(warps)
        for warp, said in warps.items():
            expected = protocol[group].get(warp, [])
            if group[1] in waits and said[-1][0] == "WAIT" and len(said) == len(expected) + 1:
                found[group][warp] = said[:-1]
    return found


@pytest.mark.parametrize(("name", "changes"), TWINS)
def test_each_barrier_has_the_operations_of_the_protocol_in_their_order(name: str, changes: Mapping[str, int]) -> None:
    found = extracted(name, changes)
    assert found.program.coverage.complete
    assert without_last_landings(name, order_of_kernel(name, changes, found)) == order_of_protocol(name, changes)


def test_a_kernel_with_a_changed_line_has_another_order_and_is_refuted() -> None:
    text = twin_ptx("producer_consumer", ())
    changes = {"tiles": 5}
    protocol = order_of_protocol("producer_consumer", changes)
    right = extracted("producer_consumer", changes, text)
    assert order_of_kernel("producer_consumer", changes, right) == protocol
    for line in (
        "mbarrier.arrive.shared::cta.b64 _, [%r",
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
    ):
        at = text.index(line)
        wrong = extracted("producer_consumer", changes, text[:at] + text[text.index(";", at) + 1 :])
        assert order_of_kernel("producer_consumer", changes, wrong) != protocol
        assert check(wrong.program.judged(LENIENT), 500).verdict is Verdict.REFUTED


@slow
def test_a_dropped_commit_of_wgmmas_is_refuted_where_warps_wait_for_registers_of_others() -> None:
    text = twin_ptx("attention_sm90", ())
    at = text.index("wgmma.commit_group")
    wrong = extracted("attention_sm90", {}, text[:at] + text[text.index(";", at) + 1 :])
    found = check(wrong.program.judged(LENIENT), 500)
    assert found.verdict is Verdict.REFUTED
    assert any(each.kind is FaultKind.RACE for each in found.refutations)
