"""Tile payloads: which slot a tile of a group is in, and how many bytes one stage expects."""

from __future__ import annotations

import pytest

from pipesim.errors import ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.lang.tiles import TileArray
from pipesim.pipelines import BlockScaledTilePayload, BlockwiseFP8TilePayload, StandardTilePayload


def arrays(*nbytes: int, slots: int = 6) -> list[TileArray]:
    p = Protocol("tiles")
    return [p.smem(name, slots, size) for name, size in zip(("a", "b", "c", "d"), nbytes, strict=False)]


@pytest.mark.parametrize("k_group_size", [1, 2, 3])
def test_the_slot_is_stage_times_group_plus_place_in_the_group(k_group_size: int) -> None:
    a, b = arrays(64, 32)
    payload = StandardTilePayload(a, b)
    slots = [
        payload.get_tile(stage, k_idx, k_group_size)
        for stage in range(6 // k_group_size)
        for k_idx in range(k_group_size)
    ]
    assert slots == [(a[i], b[i]) for i in range(6)], "the groups follow one another without gaps"
    assert payload.get_a_tile(1, 0, k_group_size) == a[k_group_size]
    assert payload.get_b_tile(1, 0, k_group_size) == b[k_group_size]
    assert (payload.num_pipeline_stages, list(payload.arrays)) == (6, ["a_tiles", "b_tiles"])


def test_the_scales_travel_with_the_tiles() -> None:
    a, b, sfa, sfb = arrays(64, 32, 16, 8)
    scaled = BlockScaledTilePayload(a, b, sfa, sfb)
    assert scaled.get_tile(1, 1, 2) == (a[3], b[3], sfa[3], sfb[3])
    assert (scaled.get_a_tile(0, 1, 2), scaled.get_b_tile(0, 1, 2)) == (a[1], b[1])
    assert (scaled.get_sfa_tile(2, 0, 2), scaled.get_sfb_tile(2, 0, 2)) == (sfa[4], sfb[4])
    blockwise = BlockwiseFP8TilePayload(a, b, sfa)
    assert blockwise.get_tile(5, 0, 1) == (a[5], b[5], sfa[5])
    assert (blockwise.get_a_tile(0, 0, 1), blockwise.get_b_tile(0, 0, 1)) == (a[0], b[0])
    assert blockwise.get_a_scales_tile(2, 1, 2) == sfa[5]
    assert list(blockwise.arrays) == ["a_tiles", "b_tiles", "a_scales_tiles"]


def test_a_stage_expects_every_array_of_the_group_in_both_ctas() -> None:
    a, b, sfa, sfb = arrays(64, 32, 16, 8)
    assert StandardTilePayload(a, b).stage_bytes(1) == 96
    assert StandardTilePayload(a, b).stage_bytes(4, cta_group=2) == 2 * 4 * 96
    assert BlockScaledTilePayload(a, b, sfa, sfb).stage_bytes(2) == 2 * 120
    assert BlockwiseFP8TilePayload(a, b, sfa).stage_bytes(1, cta_group=2) == 2 * 112


def test_arrays_of_one_payload_have_the_same_slots() -> None:
    (a,), (b,) = arrays(64, slots=4), arrays(64, slots=3)
    with pytest.raises(ProtocolError, match="differ in their slots: a_tiles 4, b_tiles 3") as caught:
        StandardTilePayload(a, b)
    assert "test_payload.py" in caught.value.place


@pytest.mark.parametrize("k_idx", [-1, 2])
def test_a_tile_outside_its_group_belongs_to_another_barrier(k_idx: int) -> None:
    payload = StandardTilePayload(*arrays(64, 32))
    with pytest.raises(ProtocolError, match=f"tile {k_idx} of a group of 2 in a"):
        payload.get_tile(0, k_idx, 2)


def test_a_stage_outside_the_arrays_is_an_error() -> None:
    with pytest.raises(ProtocolError, match=r"there is no a\[6\]"):
        StandardTilePayload(*arrays(64, 32)).get_tile(3, 0, 2)
