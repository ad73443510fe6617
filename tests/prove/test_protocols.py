"""Every ready-made protocol at every size: proved for all schedules, but for what upstream gets wrong."""

import pytest

from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.prove.check import How, check
from pipesim.prove.refutation import Why
from pipesim.targets import find
from tests.support.lanes import long_but, slow_but
from tests.support.protocol_sizes import SIZES

FAST = ("attention_sm90", "cluster_multicast", "producer_consumer")


def refuted(name: str, params: dict[str, int]) -> bool:
    """What goes wrong in some schedule: an order barrier that may be missed; a commit to a CTA that may have ended; or
    reads without a fence, of a stage that is filled again.
    """
    sizes = find(name).defaults | params
    slices = sizes.get("block_n", 0) // 32 * sizes.get("residual", sizes.get("epilogue_load", 0))
    filled = {"gemm_sm100": slices, "conv_epilogue": slices, "gemm_sm100_blockwise": sizes.get("k_iters", 0)}
    stages = sizes["stages"] if name == "gemm_sm100_blockwise" else sizes.get("epi_stages", 0)
    if name in filled and not sizes["fence"] and sizes["tiles"] * filled[name] > stages:
        return True
    if name in ("conv_epilogue", "epilogue_residual"):
        return not sizes["first_tile_only"] and sizes["tiles"] > 1
    return name == "attention_sm100" and bool(sizes["pair_cta"] and sizes["kv_blocks"])


@pytest.mark.sampled(1, 5)
@pytest.mark.parametrize("place", long_but([0], slow_but([0], range(4))))
@pytest.mark.parametrize("name", slow_but(FAST, SIZES))
def test_it_is_proved_at_every_size(name: str, place: int) -> None:
    for params in SIZES[name][place::4]:
        found = check(find(name).build(params, twice=False), max_states=1)
        expected = Verdict.REFUTED if refuted(name, params) else Verdict.PROVED
        assert found.verdict is expected, (params, found.doubts[:3])
        assert found.how is (How.SCHEDULE if refuted(name, params) else How.CERTIFICATE)


@pytest.mark.slow
def test_the_order_of_the_loads_can_be_missed() -> None:
    """The hazard of upstream's convolution: no simulation of these sizes shows it, the proof does."""
    found = check(find("conv_epilogue").build({}))
    assert {doubt.why for doubt in found.doubts} == {Why.EARLY_PART, Why.LAP}
    shown, unfenced = found.refutations
    assert (shown.end, unfenced.kind) == (Ending.DEADLOCK, FaultKind.READ_NOT_FENCED)
    assert shown.deadlock is not None
    stuck = {blocked.agent: blocked.barrier for blocked in shown.deadlock.blocked}
    assert stuck["epilogue_load"] == "load_order[0]"
    assert check(find("conv_epilogue").build({"first_tile_only": 1, "fence": 1})).verdict is Verdict.PROVED


def test_the_last_commit_of_a_pair_may_come_too_late() -> None:
    found = check(find("attention_sm100").build({"pair_cta": 1, "fused": 0, "qk_stages": 2, "kv_blocks": 1}))
    assert {doubt.why for doubt in found.doubts} == {Why.EXIT}
    assert [shown.kind for shown in found.refutations] == [FaultKind.EXITED_CTA]
