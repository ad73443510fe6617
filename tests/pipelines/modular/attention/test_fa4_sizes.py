"""The sizes of ``FA4Config``, computed by hand for several configurations, and what ``KVTile`` makes of them.

A CTA of a B200 has 227 * 1024 = 232,448 bytes. Beside the ring there are the address of tensor memory (4 bytes), 12
barriers and a Q1Sync for each slice that K might arrive in (8 bytes each), Q, its scales, and 1,024 bytes of factors.
"""

from __future__ import annotations

from typing import Any

import pytest

from pipesim.errors import ConfigurationError, ParameterError, ProtocolError
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.pipelines import (
    BF16,
    FP8,
    FP32,
    FA4Config,
    KVTile,
    TensorMapSwizzle,
    TileLayout,
    TMAConsumerPipeline,
    TMAProducerPipeline,
)

MLA: dict[str, Any] = {"ov_depth": 128, "rope_dtype": BF16, "is_mla": True}
SCALED: dict[str, Any] = {**MLA, "dtype": FP8, "scale_dtype": FP32}

# depth, arguments → BN, fused, kv, qk; bytes of shared memory; columns of tensor memory
SIZES: list[tuple[int, dict[str, Any], tuple[int, bool, int, int], int, int]] = [
    # 4 + 13 * 8 + 256 * 64 * 2 + 1024 = 33,900; a tile 192 * 64 * 2 + 16 = 24,592; 8 of them fit
    (64, {}, (192, False, 4, 1), 33_900 + 8 * 24_592, 512),
    # 4 + 14 * 8 + 65,536 + 1024 = 66,676, with Q1Sync for two slices; a tile 32,784; 5 fit: odd, so one ring
    (128, {}, (128, True, 5, 1), 66_676 + 5 * 32_784, 512),
    # a tile is half as large in each CTA: 16,400; 10 fit, and 5 * 16 bytes of barriers for the second slice of K
    (128, {"pair_cta": True}, (128, False, 5, 2), 66_676 + 10 * 16_400 + 80, 512),
    # 4 + 12 * 8 + 128 * 128 * 2 + 1024 = 33,892: no Q1Sync, half of Q
    (128, {"num_qo": 1}, (128, False, 3, 2), 33_892 + 6 * 32_784 + 48, 512),
    # 4 + 14 * 8 + 32,768 + 1024 = 33,908; a tile 16,400; 12 fit
    (128, {"dtype": FP8}, (128, False, 6, 2), 33_908 + 12 * 16_400 + 96, 512),
    # 64 keys beside 192 columns of output; 3 slices of K: 4 + 15 * 8 + 98,304 + 1024 = 99,452; 5 tiles of 24,592
    (192, {}, (64, True, 5, 1), 99_452 + 5 * 24_592, 512),
    # MLA: Q is 192 deep, 4 + 13 * 8 + 256 * (128 + 64) * 2 + 1024 = 99,436; a tile 32,784, the rope part of a K 16,384
    # more: 3 tiles, of which 2 may be K
    (192, MLA, (128, True, 3, 1), 99_436 + 3 * 32_784 + 2 * 16_384, 512),
    # with one Q tile 4 + 12 * 8 + 49,152 + 1024 = 50,276: 4 tiles, 2 of them K
    (192, {**MLA, "num_qo": 1}, (128, False, 2, 1), 50_276 + 4 * 32_784 + 2 * 16_384, 512),
    # one byte but for the rope part, and 4 bytes of scale a row: 4 + 104 + 256 * (128 + 64 * 2) + 1024 + 1024 = 67,692;
    # a tile 16,400, of a K 128 * (64 * 2 + 4) = 16,896 more; 6 tiles
    (192, SCALED, (128, False, 3, 1), 67_692 + 6 * 16_400 + 3 * 16_896, 512),
    # the rope part in one byte, too: 4 + 104 + 49,152 + 1024 = 50,284; of a K 8,192 more; 8 tiles
    (192, {**MLA, "dtype": FP8, "rope_dtype": FP8}, (128, False, 4, 1), 50_284 + 8 * 16_400 + 4 * 8_192, 512),
    # pages of 128 keys do not fit 192: 128 keys, tiles of 16,400, 12 of them
    (64, {"page_size": 128}, (128, False, 6, 1), 33_900 + 12 * 16_400, 384),
    # pages of 64 do: three in a tile
    (64, {"page_size": 64}, (192, False, 4, 1), 33_900 + 8 * 24_592, 512),
    # rows of 64 bytes: 96 stays 96; 160 keys, 3 slices: 4 + 15 * 8 + 49,152 + 1024 = 50,300; 5 tiles of 30,736
    (96, {"swizzle_mode": TensorMapSwizzle.SWIZZLE_64B}, (160, True, 5, 1), 50_300 + 5 * 30_736, 512),
    # rows of 32 bytes: 80 stays 80; 176 keys, 5 slices: 4 + 17 * 8 + 40,960 + 1024 = 42,124; 6 of 28,176, 4 * 48 more
    (80, {"swizzle_mode": TensorMapSwizzle.SWIZZLE_32B}, (176, False, 3, 5), 42_124 + 6 * 28_176 + 192, 512),
]  # fmt: skip


@pytest.mark.parametrize(("depth", "arguments", "stages", "smem", "tmem"), SIZES)
def test_stages_and_memory(
    depth: int, arguments: dict[str, Any], stages: tuple[int, bool, int, int], smem: int, tmem: int
) -> None:
    config = FA4Config.for_b200(depth, **arguments)
    assert (config.BN, config.use_fused_kv, config.num_kv_stages, config.num_qk_stages) == stages
    assert (config.smem_used, config.tmem_used) == (smem, tmem)
    assert config.supported()


def test_the_rope_part_of_mla() -> None:
    bf16, scaled = FA4Config.for_b200(192, **MLA), FA4Config.for_b200(192, **SCALED)
    for config in bf16, scaled:
        assert (config.qk_depth, config.ov_depth, config.rope_depth()) == (192, 128, 64)
        assert (config.padded_qk_depth, config.padded_ov_depth, config.BK0, config.BK1) == (192, 128, 192, 128)
    assert (bf16.q_nope_bytes(), bf16.q_rope_bytes()) == (256 * 128 * 2, 256 * 64 * 2)
    assert (scaled.q_nope_bytes(), scaled.q_rope_bytes()) == (256 * 128, 256 * 64 * 2)
    assert (bf16.num_rope_buffers(), bf16.num_k_scale_bufs()) == (2, 0), "beside a fused ring of 3"
    assert (scaled.num_rope_buffers(), scaled.num_k_scale_bufs()) == (0, 3), "in the K tiles of split rings"
    assert FA4Config(FP8, 128, 64, 5, use_fused_kv=True, scale_dtype=FP32).num_k_scale_bufs() == 3
    plain = FA4Config.for_b200(128)
    assert (plain.rope_depth(), plain.q_rope_bytes(), plain.num_rope_buffers(), plain.num_k_scale_bufs()) == (0,) * 4


def test_one_byte_elements_are_swizzled_by_64_bytes() -> None:
    assert FA4Config.for_b200(128, FP8).swizzle_mode is TensorMapSwizzle.SWIZZLE_64B
    assert FA4Config.for_b200(128).swizzle_mode is TensorMapSwizzle.SWIZZLE_128B
    assert [mode.bytes() for mode in TensorMapSwizzle] == [16, 32, 64, 128]


@pytest.mark.parametrize(
    ("mode", "padded"),
    [("SWIZZLE_NONE", 72), ("SWIZZLE_32B", 80), ("SWIZZLE_64B", 96), ("SWIZZLE_128B", 128)],
)
def test_a_depth_is_padded_to_the_atom_of_the_swizzle(mode: str, padded: int) -> None:
    config = FA4Config(BF16, 72, 64, 2, swizzle_mode=TensorMapSwizzle[mode])
    assert (config.padded_qk_depth, config.padded_ov_depth, config.padded_depth) == (padded,) * 3


def test_rows_and_columns() -> None:
    config, pair, one = (FA4Config.for_b200(128, **a) for a in ({}, {"pair_cta": True}, {"num_qo": 1}))
    assert [(c.MMA_M, c.BM, c.MMA_K) for c in (config, pair, one)] == [(128, 256, 16), (256, 256, 16), (128, 128, 16)]
    assert FA4Config.for_b200(128, FP8).MMA_K == 32
    assert (config.TMEM_S0, config.TMEM_S1, config.TMEM_C0, config.TMEM_C1) == (0, 128, 64, 192)
    assert (config.TMEM_O0, config.TMEM_O1, config.num_threads) == (256, 384, 512)
    wide = FA4Config.for_b200(64)
    assert (wide.TMEM_S1, wide.TMEM_C0, wide.TMEM_C1, wide.TMEM_O0, wide.TMEM_O1) == (192, 96, 288, 384, 448)


@pytest.mark.parametrize(
    ("arguments", "fused", "rows", "pair_rows"),
    [
        ({}, False, 256, 256),
        ({"group": 4}, True, 64, 64),
        ({"group": 3}, False, 256, 256),
        ({"group": 4, "pair_cta": True}, True, 64, 128),
        ({"group": 8, "num_qo": 1}, True, 16, 16),
    ],
)
def test_the_heads_of_a_group_may_share_a_tile(
    arguments: dict[str, Any], fused: bool, rows: int, pair_rows: int
) -> None:
    config = FA4Config.for_b200(128, num_q_heads=24, **arguments)
    assert (config.fuse_gqa, config.BM_eff(), config.PairBM_eff()) == (fused, rows, pair_rows)
    assert config.num_kv_heads == 24 // config.group
    assert not FA4Config.for_b200(192, group=4, **MLA).fuse_gqa


@pytest.mark.parametrize(
    ("depth", "arguments", "said"),
    [
        (256, {"ov_depth": 256}, "leave 0 keys a tile"),
        (512, {}, "leave 0 keys a tile"),
        (128, {"page_size": 24}, "in pages of 24"),
        (320, {"num_qo": 1, "ov_depth": 128, "rope_dtype": BF16, "is_mla": True}, "depth 320"),
        (640, {**MLA}, "0 tiles of K and V fit"),
    ],
)
def test_what_upstream_does_not_take(depth: int, arguments: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        FA4Config.for_b200(depth, **arguments)


@pytest.mark.parametrize(
    "wrong",
    [
        {"ov_depth": 64},
        {"rope_dtype": BF16},
        {"ov_depth": 192, "rope_dtype": BF16},
        {"is_mla": True, "num_qk_stages": 2},
        {"group": 0},
    ],
)
def test_a_configuration_by_hand_must_make_sense(wrong: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        FA4Config(BF16, 128, 64, 2, **wrong)


# KVTile


def test_tiles_of_a_split_ring_hold_the_rope_part_in_k() -> None:
    config = FA4Config.for_b200(192, num_qo=1, **MLA)
    k, v = KVTile(BF16, config), KVTile(BF16, config, is_k=False)
    assert (k.tile_layout, v.tile_layout) == (TileLayout(128, 192, k_major=True), TileLayout(128, 128, k_major=False))
    assert (k.nope_bytes, k.rope_bytes, k.scale_bytes, k.full_bytes) == (32_768, 16_384, 0, 49_152)
    assert (k.tile_bytes, k.slot_bytes, k.elements_full, k.num_qk_stages_effective) == (49_152, 49_152, 24_576, 1)
    assert (v.tile_bytes, v.slot_bytes, v.full_bytes, v.rope_bytes, v.scale_bytes) == (32_768, 32_768, 32_768, 0, 0)


def test_slots_of_a_fused_ring_hold_k_without_its_rope_part() -> None:
    config = FA4Config.for_b200(192, **MLA)
    k, v = KVTile(BF16, config), KVTile(BF16, config, is_k=False)
    assert (k.slot_bytes, v.slot_bytes, k.full_bytes, k.rope_bytes) == (32_768, 32_768, 49_152, 16_384)


def test_the_rope_part_of_another_type_and_the_scales() -> None:
    config = FA4Config.for_b200(192, **SCALED)
    k, v = KVTile(FP8, config), KVTile(FP8, config, is_k=False)
    assert (k.nope_bytes, k.rope_bytes, k.scale_bytes, k.full_bytes) == (16_384, 16_384, 512, 32_768)
    assert (v.full_bytes, v.scale_bytes, k.tile_layout.swizzle_mode) == (16_384, 0, TensorMapSwizzle.SWIZZLE_64B)
    rings = 3 * (k.slot_bytes + v.slot_bytes + k.scale_bytes) + 12 * 8
    assert config.smem_used == 67_692 + rings, "what the tiles take is what the configuration reserves"


def test_slices_of_k() -> None:
    pair = KVTile(BF16, FA4Config.for_b200(128, pair_cta=True))
    assert (pair.num_qk_stages_effective, pair.tile_bytes, pair.slot_bytes, pair.nope_bytes) == (
        2,
        8_192,
        16_384,
        16_384,
    )


def made(config: FA4Config, slot_bytes: int) -> tuple[int, int]:
    """What ``TMAProducerPipeline`` of K loads at once, and what ``TMAConsumerPipeline`` says that a tile has."""
    found: list[tuple[int, int]] = []
    p = Protocol("k")
    smem, b = p.smem("K", config.num_kv_stages, slot_bytes), p.mbarriers("b", 2 * config.num_kv_stages, count=1)

    @p.role("r")
    def r(_: Warp) -> None:
        consumer = TMAConsumerPipeline(b, smem, dtype=config.dtype, config=config)
        producer = TMAProducerPipeline(b, smem, dtype=config.dtype, config=config)
        found.append((producer.get_tile().smem.nbytes, consumer.full_kv_bytes))

    p.flatten(twice=False)
    return found[0]


def test_one_load_brings_k_with_its_rope_part_where_both_are_of_one_type() -> None:
    assert made(FA4Config.for_b200(192, num_qo=1, **MLA), 49_152) == (49_152, 49_152)


@pytest.mark.parametrize(("arguments", "slot_bytes"), [(MLA, 32_768), (SCALED, 32_768)])
def test_where_one_load_cannot_the_pipeline_says_so(arguments: dict[str, Any], slot_bytes: int) -> None:
    with pytest.raises(ProtocolError, match="and its rope part of 16384 are not one tile") as caught:
        made(FA4Config.for_b200(192, **arguments), slot_bytes)
    assert "rope_bytes" in caught.value.correction
