"""The sizes at which every protocol is run: none, one, around the number of stages, several laps, and variants."""

from collections.abc import Mapping

Params = dict[str, int]


def around(trip: str, s: int, /, **fixed: int) -> list[Params]:
    """Trips 0, 1, S-1, S, S+1 and 2S of a ring of S stages."""
    return [{trip: n, **fixed} for n in sorted({0, 1, s - 1, s, s + 1, 2 * s})]


SIZES: Mapping[str, list[Params]] = {
    "attention_sm100": [
        *around("kv_blocks", 5),
        *around("kv_blocks", 3, num_qo=1, fused=0, kv_stages=3, qk_stages=2),
        {"depth": 64, "block_n": 192, "fused": 0, "kv_stages": 4}, {"element_bytes": 1, "fused": 0, "kv_stages": 6,
                                                                   "qk_stages": 2},
        *around("kv_blocks", 5, pair_cta=1, fused=0, qk_stages=2)[:4], {"pair_cta": 1, "kv_blocks": 7},
        {"kv_stages": 2, "kv_blocks": 7}, {"kv_stages": 2, "kv_blocks": 7, "num_qo": 1}, {"fused": 0, "kv_stages": 1},
        {"pv_stages": 1}, {"pv_stages": 4, "softmax": 4000}, {"correction": 5000},
    ],
    "attention_sm90": [
        *around("kv_blocks", 2),
        *around("kv_blocks", 2, qk_stages=2, pingpong=0),
        {"num_consumer": 1}, {"stages": 1, "qk_stages": 2}, {"stages": 3, "kv_blocks": 7, "depth": 64},
        *around("kv_blocks", 4, fused=1, stages=4),
        {"fused": 1, "stages": 4, "num_consumer": 1}, {"fused": 1, "stages": 4, "num_consumer": 3, "depth": 64},
        {"fused": 1, "stages": 3, "kv_blocks": 7}, {"fused": 1, "stages": 4, "kv_blocks": 9, "block_n": 64},
    ],
    "attention_sm90_fused": [
        *around("kv_blocks", 3, stages=3),
        *around("kv_blocks", 2, stages=2, pingpong=0),
        {}, {"num_consumer": 1}, {"num_consumer": 1, "stages": 2, "kv_blocks": 5}, {"stages": 4, "kv_blocks": 7},
        {"kv_blocks": 11, "depth": 64, "block_n": 64}, {"stages": 7, "kv_blocks": 15, "depth": 64, "softmax": 4000},
    ],
    "cluster_multicast": [
        *around("tiles", 4),
        *around("tiles", 2, stages=2, cluster=4),
        {"cluster": 1, "tiles": 9}, {"cluster": 8, "tiles": 6, "consumer_warps": 1}, {"stages": 2, "consumer_warps": 3},
    ],
    "conv_epilogue": [
        *around("tiles", 2, k_iters=5),
        *around("k_iters", 4, first_tile_only=1),
        {"residual": 0}, {"residual": 0, "k_iters": 1, "tiles": 6}, {"epi_stages": 1}, {"clc_stages": 0, "tiles": 1},
        {"stages": 1, "accumulators": 1, "tiles": 2}, {"block_n": 64, "epi_stages": 2, "tiles": 5},
        {"epi_stages": 1, "k_iters": 1, "tiles": 6, "epilogue": 900, "first_tile_only": 1},
    ],
    "cutlass_sm100": [
        *around("k_tiles", 4, tiles=2),
        {"tiles": 1, "residual": 1}, {"tiles": 2, "accumulators": 1}, {"tiles": 5, "k_tiles": 3, "residual": 1},
        {"cta_group": 2, "residual": 1}, {"cta_group": 2, "tiles": 5, "k_tiles": 1}, {"cta_group": 2, "k_tiles": 0},
        {"stages": 1, "accumulators": 1, "clc_stages": 1, "residual": 1, "k_tiles": 5},
        {"clc_stages": 4, "tiles": 9, "k_tiles": 1}, {"block_n": 32, "accumulators": 3, "residual": 1, "tiles": 7},
        {"block_n": 256, "stages": 3, "residual": 1},
    ],
    "cutlass_sm90_cooperative": [
        *around("tiles", 2, stages=2, k_tiles=3),
        {"k_tiles": 1}, {"k_tiles": 4}, {"k_tiles": 5}, {"residual": 1}, {"cluster": 2}, {"tiles": 0, "residual": 1},
        {"cluster": 2, "residual": 1, "tiles": 3, "k_tiles": 3}, {"residual": 1, "block_n": 32, "tiles": 5},
    ],
    "cutlass_sm90_pingpong": [
        *around("tiles", 4, k_tiles=3),
        {"k_tiles": 1}, {"k_tiles": 3}, {"k_tiles": 4}, {"k_tiles": 5}, {"stages": 2, "k_tiles": 1, "tiles": 7},
        {"residual": 1}, {"residual": 1, "tiles": 1}, {"residual": 1, "block_n": 32, "tiles": 9, "k_tiles": 2},
        {"cluster": 2}, {"cluster": 2, "tiles": 0}, {"cluster": 2, "residual": 1, "tiles": 7, "k_tiles": 3},
        {"epilogue": 3000, "residual": 1},
    ],
    "epilogue_residual": [
        *around("tiles", 2, k_iters=2),
        *around("k_iters", 4, tiles=3),
        {"residual": 0}, {"epi_stages": 1, "accumulators": 1, "clc_stages": 1}, {"stages": 1, "tiles": 3},
        {"first_tile_only": 0, "tiles": 1}, {"slices": 1, "tiles": 9}, {"order_delay": 9000, "epilogue": 0},
    ],
    "gemm_sm100": [
        *around("k_iters", 6),
        *around("tiles", 2, accumulators=2, k_iters=3),
        {"cta_group": 2}, {"cta_group": 2, "k_group_size": 2, "tiles": 5}, {"cta_group": 2, "tiles": 0},
        {"cta_group": 2, "k_iters": 0}, {"cta_group": 2, "lookahead": 1, "k_group_size": 4, "k_iters": 6},
        {"clc_stages": 0, "tiles": 1}, {"clc_stages": 0, "tiles": 0}, {"lookahead": 1},
        {"stages": 1, "accumulators": 1},
        {"cluster_n": 2, "k_iters": 7}, {"cluster_m": 2, "cluster_n": 2, "stages": 2, "k_iters": 3},
        {"cluster_m": 4, "stages": 2, "k_iters": 3}, {"cta_group": 2, "cluster_m": 4, "stages": 2, "k_iters": 3},
        {"cta_group": 2, "cluster_n": 2, "k_iters": 5, "lookahead": 1},
        {"cta_group": 2, "cluster_m": 4, "cluster_n": 2, "stages": 2, "tiles": 2, "k_iters": 3},
        {"cluster_m": 2, "cluster_n": 2, "clc_stages": 0, "tiles": 1},
        {"epilogue_load": 1, "tiles": 5, "k_iters": 3}, {"epilogue_load": 1, "epi_stages": 1, "cta_group": 2},
        {"epilogue_load": 1, "load_order": 2, "tiles": 5, "k_iters": 3},
        {"epilogue_load": 1, "load_order": 1, "tiles": 1},
    ],
    "gemm_sm100_block_scaled": [
        *around("k_iters", 4),
        *around("tiles", 2, k_iters=3),
        {"nvfp4": 1}, {"nvfp4": 1, "cta_group": 2, "stages": 2}, {"cta_group": 2, "tiles": 0},
        {"cta_group": 2, "clc_stages": 0, "tiles": 1}, {"block_n": 256, "accumulators": 1},
        {"cluster_m": 2, "cluster_n": 2, "stages": 2, "k_iters": 3},
        {"cta_group": 2, "cluster_m": 4, "cluster_n": 2, "stages": 2, "tiles": 2, "k_iters": 3},
    ],
    "gemm_sm100_blockwise": [
        *around("k_iters", 4),
        *around("tiles", 2, accumulators=2, k_iters=3),
        {"accumulators": 1}, {"stages": 1}, {"lookahead": 1}, {"clc_stages": 0, "tiles": 1},
        {"block_n": 64, "clc_stages": 1},
        {"cta_group": 2, "k_iters": 5}, {"cluster_m": 2, "cluster_n": 2, "stages": 2, "k_iters": 3},
        {"cta_group": 2, "cluster_m": 4, "stages": 2, "k_iters": 3},
        {"cta_group": 2, "cluster_n": 2, "k_iters": 3, "lookahead": 1, "tiles": 3},
    ],
    "gemm_sm100_grouped": [
        *around("k_iters", 4),
        *[{"tiles": tiles, "k_iters": 3} for tiles in (1, 2, 3, 4, 5, 6)],
        {"group_tiles": 2, "tiles": 5}, {"nvfp4": 1, "stages": 2, "tiles": 3}, {"accumulators": 1},
        {"cta_group": 2, "tiles": 1}, {"cta_group": 2, "tiles": 2, "k_iters": 3}, {"cta_group": 2, "tiles": 6},
        {"cta_group": 2, "tiles": 3, "all_stages": 1}, {"cta_group": 2, "tiles": 5, "k_iters": 1, "all_stages": 1},
    ],
    "gemm_sm100_grouped_1d1d": [
        *around("k_iters", 4),
        *around("tiles", 2, k_iters=3),
        {"nvfp4": 1, "stages": 2, "tiles": 3}, {"accumulators": 1}, {"block_n": 64, "tiles": 7, "k_iters": 2},
        {"cta_group": 2, "tiles": 0}, {"cta_group": 2, "tiles": 5, "k_iters": 3}, {"cta_group": 2, "nvfp4": 1},
    ],
    "gemm_sm90": [
        *around("k_iters", 4),
        *around("tiles", 4, k_iters=3, stages=4, k_group_size=2),
        {"tma": 0}, {"tma": 0, "num_consumer": 1, "k_group_size": 4}, {"num_consumer": 1, "stages": 1},
        {"stages": 6, "tiles": 3, "k_iters": 7, "block_n": 64},
        {"lookahead": 1, "drain": 1, "k_iters": 3}, {"lookahead": 1, "stages": 1}, {"drain": 1, "tiles": 0},
    ],
    "persistent_scheduler": [
        *around("tiles", 2),
        *around("k_iters", 4, tiles=3),
        {"clc_stages": 1}, {"clc_stages": 4, "tiles": 9}, {"atomic": 9000, "work": 0},
        {"consumer_warps": 4, "stages": 1},
    ],
    "producer_consumer": [
        *around("tiles", 4),
        *around("tiles", 2, stages=2, arrive_lanes=32), {"stages": 1, "tiles": 3},
        {"stages": 8, "consumer_warps": 8, "tiles": 33}, {"tile_bytes": 16, "work": 0}, {"stages": 2, "tiles": 9},
    ],
}  # fmt: skip
