"""Our own kernels, read from the PTX that NVRTC makes of them: proved, and in the order of their protocols."""

from collections.abc import Mapping

import pytest

from pipesim.model.coverage import LENIENT
from pipesim.model.finding import FaultKind, Verdict
from pipesim.prove.check import check
from tests.support.ptx_twins import beside_protocol, extracted, twin_ptx
from tools.corpus.operation_order import Comparison

pytest.importorskip("cuda.bindings.nvrtc")

slow = pytest.mark.slow
#: The landings that these two kernels wait for before they end, so that no copy lands in a CTA that has exited. In the
#: protocols, which end where the last tile is read, no agent waits for them.
LAST_LANDINGS = {"persistent_scheduler": {"pipe.full"}, "epilogue_residual": {"input.full", "epi_load.full"}}
#: Of each kernel, parameters that differ from the defaults, and one more change with which its protocol is another.
TWINS = [
    pytest.param("producer_consumer", {}, {"stages": 3}, id="producer_consumer"),
    pytest.param("producer_consumer", {"arrive_lanes": 32}, {"arrive_lanes": 1}, id="producer_consumer, 32 lanes"),
    pytest.param("cluster_multicast", {}, {"own_bytes": 4096}, id="cluster_multicast"),
    pytest.param("cluster_multicast", {"cluster": 4}, {"tiles": 5}, id="cluster_multicast, 4 CTAs", marks=slow),
    pytest.param("persistent_scheduler", {}, {"k_iters": 7}, id="persistent_scheduler", marks=slow),
    pytest.param("gemm_sm90", {}, {"block_n": 64}, id="gemm_sm90", marks=slow),
    pytest.param("gemm_sm90", {"lookahead": 1, "drain": 1}, {"drain": 0}, id="gemm_sm90, lookahead", marks=slow),
    pytest.param("attention_sm90", {}, {"kv_blocks": 7}, id="attention_sm90", marks=slow),
    pytest.param("attention_sm90_fused", {}, {"stages": 3}, id="attention_sm90_fused", marks=slow),
    pytest.param("epilogue_residual", {}, {"slices": 3}, id="epilogue_residual", marks=slow),
]


def unexpected(name: str, found: Comparison) -> list[str]:
    """Every difference but the last waits for landings, of which each stage has at most one."""
    waits = LAST_LANDINGS.get(name, set())
    others = [
        each
        for each in found.differences
        if each.protocol_only or each.group not in waits or [said[0] for _, said in each.kernel_only] != ["WAIT"]
    ]
    return [*map(str, others), *map(str, found.moved)]


@pytest.mark.sampled(1, 2)
@pytest.mark.parametrize(("name", "changes", "other"), TWINS)
def test_each_warp_has_the_operations_of_its_protocol_in_their_order(
    name: str, changes: Mapping[str, int], other: Mapping[str, int]
) -> None:
    kernel = extracted(name, changes)
    assert kernel.program.coverage.complete
    found = beside_protocol(name, changes, kernel)
    assert (found.matched, unexpected(name, found)) == (found.barriers, [])
    assert found.equal > 300
    assert unexpected(name, beside_protocol(name, changes, kernel, {**changes, **other}))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("mbarrier.arrive.shared::cta.b64 _, [%r", "warp 1, 2: only the protocol: 2 x ARRIVE count 1 expect 0"),
        (
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes",
            "warp 0: only the protocol: 1 x TMA_LOAD bytes 16384 to CTA 0",
        ),
    ],
)
def test_a_kernel_without_one_line_has_another_order_and_is_refuted(line: str, said: str) -> None:
    text, changes = twin_ptx("producer_consumer", ()), {"tiles": 5}
    right = beside_protocol("producer_consumer", changes, extracted("producer_consumer", changes, text))
    assert right.lines == []
    at = text.index(line)
    wrong = extracted("producer_consumer", changes, text[:at] + text[text.index(";", at) + 1 :])
    assert said in "; ".join(beside_protocol("producer_consumer", changes, wrong).lines)
    assert check(wrong.program.with_strictness(LENIENT), 500).verdict is Verdict.REFUTED


@slow
def test_a_dropped_commit_of_wgmmas_is_refuted_where_warps_wait_for_registers_of_others() -> None:
    text = twin_ptx("attention_sm90", ())
    at = text.index("wgmma.commit_group")
    wrong = extracted("attention_sm90", {}, text[:at] + text[text.index(";", at) + 1 :])
    found = check(wrong.program.with_strictness(LENIENT), 500)
    assert found.verdict is Verdict.REFUTED
    assert any(each.kind is FaultKind.RACE for each in found.refutations)
