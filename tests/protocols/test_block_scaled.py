"""Blackwell's block-scaled and grouped GEMM: what they add to the default kernel, and where upstream's is wrong."""

from typing import Any

import pytest

from pipesim.errors import ParameterError
from pipesim.model.coverage import Assumption, Strictness
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Space
from pipesim.model.program import Program
from pipesim.pipelines import BlockScaledTilePayload
from pipesim.protocols.blackwell import grouped_1d1d
from pipesim.protocols.blackwell.block_scaled import BlockScaled
from pipesim.prove.check import Check, check
from pipesim.targets import find


def agent(program: Program, name: str) -> int:
    return next(a for a in range(len(program.agents)) if program.agent_name(a) == name)


def test_accumulators_and_scales_share_tensor_memory() -> None:
    program = find("gemm_sm100_block_scaled").build({"nvfp4": 1, "stages": 4})
    columns = {t.name: t.slots * t.nbytes // 512 for t in program.tiles if t.space == Space.TENSOR}
    assert columns == {"accumulator": 2 * 128, "sfa_tmem": 4 * 16, "sfb_tmem": 4 * 16}
    with pytest.raises(ParameterError) as caught:
        find("gemm_sm100_block_scaled").build({"accumulators": 2, "block_n": 256})
    assert caught.value.fact == "accumulators = 2 with block_n = 256 and the scales of stages = 4 need 560 columns"


def wrong_scale(self: BlockScaled, *args: Any) -> list[Any]:
    """The products read the scales, which nobody has copied."""
    _, ctx, slot, step, _ = args
    return [(self.tiles.sfa_tmem[slot].mapa(rank), self.item(ctx, "sfa_tiles", step)) for rank in ctx.group_ranks]


def without_scales(payload: BlockScaledTilePayload, k_group_size: int, cta_group: int = 1) -> int:
    return cta_group * k_group_size * (payload.a_tiles.nbytes + payload.b_tiles.nbytes)


@pytest.mark.parametrize(
    ("where", "name", "instead", "kinds"),
    [
        (BlockScaled, "_copy_scales", wrong_scale, {FaultKind.UNINITIALISED_READ}),
        (
            BlockScaledTilePayload,
            "stage_bytes",
            without_scales,
            {FaultKind.RACE, FaultKind.UNINITIALISED_READ, Ending.DEADLOCK},
        ),
    ],
)
@pytest.mark.parametrize("pair", [1, 2])
def test_a_wrong_twin_is_found(
    where: type, name: str, instead: Any, kinds: set[Any], pair: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(where, name, instead)
    program = find("gemm_sm100_block_scaled").build({"k_iters": 3, "stages": 2, "tiles": 2, "cta_group": pair})
    found = check(program.with_strictness(Strictness({Assumption.TENSOR_MEMORY})))
    assert found.verdict is Verdict.REFUTED
    assert {shown.kind for shown in found.refutations} <= kinds


# grouped


def pair_of(tiles: int, **params: int) -> Check:
    sizes = {"cta_group": 2, "tiles": tiles, "k_iters": 1, "stages": 2} | params
    return check(find("gemm_sm100_grouped").build(sizes))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("tiles", [3, 4])
def test_it_does_not_where_a_stage_was_used_an_even_number_of_times(tiles: int) -> None:
    found = pair_of(tiles)
    assert found.verdict is Verdict.REFUTED
    kinds = {shown.kind for shown in found.refutations}
    assert kinds
    assert kinds <= {Ending.DEADLOCK, FaultKind.EXITED_CTA}
    stuck = {b.agent: b.barrier for s in found.refutations if s.deadlock for b in s.deadlock.blocked}
    assert stuck.get("scheduler@0", "clc.empty").startswith("clc.empty")
    assert pair_of(tiles, all_stages=1).verdict is Verdict.PROVED


@pytest.mark.parametrize("pair", [1, 2])
@pytest.mark.parametrize("tiles", [0, 1, 2, 3, 5])
def test_the_ring_of_two_slots_is_proved(tiles: int, pair: int) -> None:
    program = find("gemm_sm100_grouped_1d1d").build({"tiles": tiles, "k_iters": 2, "stages": 2, "cta_group": pair})
    assert check(program, max_states=1).verdict is Verdict.PROVED


@pytest.mark.parametrize(
    ("warps", "shown"),
    [(5, {FaultKind.RACE, FaultKind.WRONG_ITEM, FaultKind.OVER_ARRIVAL, Ending.DEADLOCK}), (7, {Ending.DEADLOCK})],
)
def test_a_slot_that_counts_another_number_of_warps_is_found(
    warps: int, shown: set[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(grouped_1d1d, "_CONSUMER_WARPS", warps)
    found = check(find("gemm_sm100_grouped_1d1d").build({"tiles": 4, "k_iters": 1}))
    assert found.verdict is Verdict.REFUTED
    assert {each.kind for each in found.refutations} <= shown
