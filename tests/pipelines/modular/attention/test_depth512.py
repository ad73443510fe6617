"""``Depth512SM100Config`` and ``Depth512MBars``: heads of depth 256 and 512, on pairs of CTAs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pipesim.errors import ConfigurationError, ParameterError, ProtocolError
from pipesim.lang.predicate import elect
from pipesim.lang.protocol import Protocol
from pipesim.lang.warp import Warp
from pipesim.model.ending import Ending
from pipesim.model.finding import FaultKind, Verdict
from pipesim.model.ops import Engine, Op
from pipesim.pipelines import (
    BF16,
    FP8,
    FP32,
    Depth512MBarLayout,
    Depth512MBars,
    Depth512SM100Config,
    KVTile,
    RolePipeline,
    StagedPipeline,
    TensorMapSwizzle,
    TileLayout,
    TMAConsumerPipeline,
    TMAProducerPipeline,
)
from pipesim.prove.check import check

# depth, dtype → BN, kv, qk; MMA_M, BM; BK0, BK1, columns of V; bytes of shared memory
SIZES: list[tuple[int, Any, tuple[int, int, int], tuple[int, int], tuple[int, int, int], int]] = [
    # Q 64 * 512 * 2, P 64 * 256 * 2, factors 64 * 4, 10 barriers: 4 + 65,536 + 32,768 + 256 + 80 = 98,644;
    # a slot 128 * 128 * 2 + 16 = 32,784; 4 fit into 133,804
    (512, BF16, (256, 4, 4), (128, 64), (128, 128, 128), 98_644 + 4 * 32_784),
    # Q 128 * 256 * 2, P 128 * 128 * 2, factors 512, 8 barriers: 4 + 65,536 + 32,768 + 512 + 64 = 98,884;
    # a slot 64 * 128 * 2 + 16 = 16,400; 8 fit into 133,564
    (256, BF16, (128, 8, 2), (256, 128), (128, 64, 128), 98_884 + 8 * 16_400),
    # 4 + 32,768 + 16,384 + 256 + 80 = 49,492; 11 slots of 16,400, which is also what 32 barriers leave
    (512, FP8, (256, 11, 4), (128, 64), (128, 128, 128), 49_492 + 11 * 16_400),
    # 4 + 32,768 + 16,384 + 512 + 64 = 49,732; 22 slots of 8,208 would fit, (32 - 8) / 2 = 12 have barriers
    (256, FP8, (128, 12, 2), (256, 128), (128, 64, 128), 49_732 + 12 * 8_208),
]  # fmt: skip


@pytest.mark.parametrize(("depth", "dtype", "stages", "rows", "slices", "smem"), SIZES)
def test_sizes_and_stages(
    depth: int, dtype: Any, stages: tuple[int, int, int], rows: tuple[int, int], slices: tuple[int, int, int], smem: int
) -> None:
    config = Depth512SM100Config.for_b200(depth, dtype)
    assert (config.BN, config.num_kv_stages, config.num_qk_stages) == stages
    mma_and_cta = (config.MMA_M, config.BM)
    assert mma_and_cta == rows
    assert (config.BK0, config.BK1, config.v_cols_per_cta) == slices
    assert (config.smem_used, config.tmem_used) == (smem, 512)
    assert (config.cta_group, config.num_threads, config.num_pv_stages) == (2, 384, 2)
    assert (config.split_o, config.num_fixed_mbars) == ((True, 10) if depth == 512 else (False, 8))
    assert Depth512MBarLayout.of(config).size == config.num_fixed_mbars + 2 * config.num_kv_stages <= 32
    assert config.supported()


def test_columns_of_tensor_memory() -> None:
    wide, narrow = Depth512SM100Config.for_b200(512), Depth512SM100Config.for_b200(256)
    assert (wide.TMEM_O, wide.TMEM_O_hi, wide.TMEM_S_even, wide.TMEM_S_odd) == (0, 128, 256, 384)
    assert (narrow.TMEM_O, narrow.TMEM_S_even, narrow.TMEM_S_odd) == (0, 256, 384)


def test_groups_pages_swizzle() -> None:
    grouped = Depth512SM100Config.for_b200(512, group=8, num_q_heads=16)
    assert (grouped.fuse_gqa, grouped.BM_eff(), grouped.num_kv_heads, grouped.rope_depth()) == (True, 8, 2, 0)
    assert Depth512SM100Config.for_b200(256, group=3).BM_eff() == 128
    assert Depth512SM100Config.for_b200(512, page_size=64).BN == 256
    assert Depth512SM100Config.for_b200(256, FP8).swizzle_mode is TensorMapSwizzle.SWIZZLE_64B


@pytest.mark.parametrize(
    ("call", "kind", "said"),
    [
        (lambda: Depth512SM100Config.for_b200(128), ConfigurationError, "depth 128"),
        (lambda: Depth512SM100Config.for_b200(384), ConfigurationError, "depth 384"),
        (lambda: Depth512SM100Config.for_b200(512, ov_depth=256), ConfigurationError, "ov_depth 256"),
        (lambda: Depth512SM100Config.for_b200(512, FP32), ConfigurationError, "leave room for 1 slots"),
        (lambda: Depth512SM100Config(BF16, 320, 64, 4), ParameterError, "of depth 320"),
        (lambda: Depth512SM100Config(BF16, 512, 64, 4, ov_depth=256), None, ""),
        (
            lambda: Depth512SM100Config(BF16, 384, 64, 4),
            ParameterError,
            "a slice of K of 4096 elements and one of V of",
        ),
        (lambda: Depth512SM100Config(BF16, 512, 63, 4), ParameterError, "BN even"),
        (lambda: Depth512MBarLayout(0), ParameterError, "at least 1 slot"),
    ],
)
def test_what_makes_no_sense_is_an_error(call: Callable[[], Any], kind: Any, said: str) -> None:
    if kind is None:
        assert call()
        return
    with pytest.raises(kind, match=said):
        call()


@pytest.mark.parametrize(("depth", "dtype", "slot"), [(512, BF16, 32_768), (256, BF16, 16_384), (512, FP8, 16_384)])
def test_a_slot_holds_a_slice_of_k_or_of_v(depth: int, dtype: Any, slot: int) -> None:
    config = Depth512SM100Config.for_b200(depth, dtype)
    k, v = KVTile(dtype, config), KVTile(dtype, config, is_k=False)
    mode = config.swizzle_mode
    assert k.tile_layout == TileLayout(config.BN // 2, 128, k_major=True, swizzle_mode=mode)
    assert v.tile_layout == TileLayout(128, config.BN // 2, k_major=False, swizzle_mode=mode)
    for tile in k, v:
        assert tile.tile_bytes == tile.slot_bytes == tile.full_bytes == config.kv_stage_bytes == slot
        assert (tile.num_qk_stages_effective, tile.rope_bytes, tile.scale_bytes) == (1, 0, 0)


# barriers

TABLE = {
    True: [
        ("PO_lo", 512), ("PO_hi", 256), ("S_even_cons", 256), ("S_odd_cons", 256), ("C_prod", 128), ("C_cons", 128),
        ("S_even_prod", 1), ("S_odd_prod", 1), ("O_mma_lo", 1), ("O_mma_hi", 1),
    ],
    False: [
        ("PO_lo", 512), ("S_even_cons", 256), ("S_odd_cons", 256), ("C_prod", 128), ("C_cons", 128),
        ("S_even_prod", 1), ("S_odd_prod", 1), ("O_mma_lo", 1),
    ],
}  # fmt: skip


@pytest.mark.parametrize("split_o", [True, False])
@pytest.mark.parametrize("at", [0, 3])
def test_layout_and_counts(split_o: bool, at: int) -> None:
    layout = Depth512MBarLayout(3, split_o)
    p = Protocol("barriers")
    b = p.mbarriers("b", at + layout.size)
    p.init(lambda: Depth512MBars(b[at], layout).init())
    p.role("r")(lambda _: None)
    program = p.flatten()
    counts = {op[1]: op[2] for op in program.code[0] if op[0] == Op.INIT}
    fixed = TABLE[split_o]
    expected = [*fixed, *[("KV_prod", 1)] * 3, *[("KV_cons", 1)] * 3]
    assert [counts[at + i] for i in range(layout.size)] == [count for _, count in expected]
    assert len(counts) == layout.size == len(fixed) + 6 == Depth512MBars.num_mbars(layout)
    assert [program.barriers[at + i].name for i in range(layout.size)] == [name for name, _ in expected]


# producer or consumer, CTAs of the MMA, then the barrier of each side
PIPELINES: dict[str, tuple[bool, int, str, str]] = {
    "producer_s_even": (True, 2, "S_even_prod", "S_even_cons"),
    "producer_s_odd": (True, 2, "S_odd_prod", "S_odd_cons"),
    "consumer_s_even": (False, 1, "S_even_prod", "S_even_cons"),
    "consumer_s_odd": (False, 1, "S_odd_prod", "S_odd_cons"),
    "producer_c": (True, 1, "C_prod", "C_cons"),
    "consumer_c": (False, 1, "C_prod", "C_cons"),
    "producer_o_lo": (True, 2, "O_mma_lo", "PO_lo"),
    "producer_o_hi": (True, 2, "O_mma_hi", "PO_hi"),
    "consumer_o_lo": (False, 1, "O_mma_lo", "PO_lo"),
    "consumer_o_hi": (False, 1, "O_mma_hi", "PO_hi"),
}


def in_a_role(layout: Depth512MBarLayout, body: Callable[[Depth512MBars], Any]) -> None:
    p = Protocol("barriers")
    storage = p.mbarriers("b", layout.size, count=1)
    p.role("r")(lambda _: body(Depth512MBars(storage, layout)))
    p.flatten()


@pytest.mark.parametrize("name", PIPELINES)
def test_each_pipeline_lies_over_its_barriers(name: str) -> None:
    is_producer, group, producer, consumer = PIPELINES[name]
    layout = Depth512MBarLayout(2)

    def body(mbars: Depth512MBars) -> None:
        pipe: RolePipeline = getattr(mbars, name)()
        assert (pipe.is_producer, pipe.cta_group, pipe.num_stages) == (is_producer, group, 1)
        assert pipe.producer_mbar_base.index == layout.offset(producer)
        assert pipe.consumer_mbar_base.index == layout.offset(consumer)

    in_a_role(layout, body)


def test_single_barriers_and_the_halves_that_depth_256_has_not() -> None:
    def wide(mbars: Depth512MBars) -> None:
        assert (mbars.po_lo_mbar().index, mbars.po_hi_mbar().index, mbars.get_kv_mbars().index) == (0, 1, 10)

    def narrow(mbars: Depth512MBars) -> None:
        assert (mbars.po_lo_mbar().index, mbars.get_kv_mbars().index) == (0, 8)
        for call in mbars.po_hi_mbar, mbars.producer_o_hi, mbars.consumer_o_hi:
            with pytest.raises(ProtocolError, match=r"these Depth512MBars have no (PO_hi|O_mma_hi)"):
                call()

    in_a_role(Depth512MBarLayout(2), wide)
    in_a_role(Depth512MBarLayout(2, split_o=False), narrow)
    with pytest.raises(ProtocolError, match="Depth512MBars needs 14 mbarriers; b has 13"):
        Depth512MBars(Protocol("few").mbarriers("b", 13), Depth512MBarLayout(2))


# the ring of slices, as one CTA sees it


def ring(tiles: int = 3, *, config: Depth512SM100Config, forgets: bool = False, waits: bool = True) -> Protocol:
    """Load and MMA over the fused ring: for each tile the slices of K, then those of V, each in a slot of its own."""
    p = Protocol("ring")
    layout = Depth512MBarLayout.of(config)
    tile = KVTile(config.dtype, config)
    smem = p.smem("kv", config.num_kv_stages, tile.slot_bytes)
    b = p.mbarriers("b", layout.size)
    p.init(lambda: Depth512MBars(b, layout).init())
    slices = config.num_qk_stages + config.num_pv_stages * (2 if config.split_o else 1)

    @p.role("load")
    def load(w: Warp) -> None:
        kv = TMAProducerPipeline(Depth512MBars(b, layout).get_kv_mbars(), smem, dtype=config.dtype, config=config)
        with w.elect_one():
            for i in range(tiles * slices):
                if waits:
                    kv.acquire()
                to = kv.get_tile(elect())
                w.tma_load(to.smem, to.mbar, i)
                kv.commit_step()

    @p.role("mma")
    def mma(w: Warp) -> None:
        ring = StagedPipeline(Depth512MBars(b, layout).get_kv_mbars(), config.num_kv_stages)
        kv = TMAConsumerPipeline(ring, smem, dtype=config.dtype, config=config)
        with w.elect_one():
            for i in range(tiles * slices):
                kv.wait()
                w.mma(Engine.TCGEN05, reads=[(kv.get(), i)])
                if forgets and i == 1:
                    kv.pipeline.state.step()
                else:
                    kv.release(elect())

    return p


@pytest.mark.parametrize("depth", [256, 512])
def test_the_ring_of_slices_is_proved(depth: int) -> None:
    result = check(ring(config=Depth512SM100Config.for_b200(depth)).flatten())
    assert (result.verdict, result.refutations) == (Verdict.PROVED, ())


@pytest.mark.parametrize(
    ("wrong", "kind"), [({"forgets": True}, Ending.DEADLOCK), ({"waits": False}, FaultKind.OVER_ARRIVAL)]
)
def test_a_slot_that_is_not_given_back_and_one_that_is_not_waited_for(wrong: dict[str, bool], kind: Any) -> None:
    result = check(ring(config=Depth512SM100Config.for_b200(512), **wrong).flatten())
    assert result.verdict is Verdict.REFUTED
    assert kind in [each.kind for each in result.refutations]
