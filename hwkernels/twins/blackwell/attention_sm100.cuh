// Sizes, memory and shared state of attention_sm100.cu: what one role must know of another. NEVER RUN, as the kernel.
#pragma once

#if FUSED
#define PIPESIM_TABLE "attention_sm100.table.h"
#else
#define PIPESIM_TABLE "attention_sm100_split.table.h"
#endif
static constexpr unsigned ROWS = 128;  // of a tile of queries, and lanes of tensor memory

// Arrivals of stage s of a barrier group: a slice of P behind the first is not waited for with a rescaled O.
static __device__ constexpr unsigned arrivals(unsigned count_of_first, unsigned s) {
    return count_of_first == 2 * ROWS && s ? ROWS : count_of_first;
}
#define COUNT_OF_STAGE arrivals
#define FIRST_WAIT 1
#include "cta.cuh"
#include "ptx.cuh"
#include "tensor_map.cuh"

#if FUSED  // one ring under both names
enum : unsigned {
    BARRIER_K_prod = BARRIER_KV_prod, BARRIER_K_cons = BARRIER_KV_cons,
    BARRIER_V_prod = BARRIER_KV_prod, BARRIER_V_cons = BARRIER_KV_cons,
    SITE_mma_wait_K_prod = SITE_mma_wait_KV_prod, SITE_mma_wait_V_prod = SITE_mma_wait_KV_prod,
    SITE_load_wait_K_cons = SITE_load_wait_KV_cons, SITE_load_wait_V_cons = SITE_load_wait_KV_cons,
    SITE_load_expect_K_prod = SITE_load_expect_KV_prod, SITE_load_expect_V_prod = SITE_load_expect_KV_prod,
    SITE_load_copy_K_prod = SITE_load_copy_KV_prod, SITE_load_copy_V_prod = SITE_load_copy_KV_prod,
};
#endif
static_assert(DEPTH == 64 || DEPTH == 128, "DEPTH must be 64 or 128");
static_assert(BLOCK_N == 64 || BLOCK_N == 128, "BLOCK_N must be 64 or 128");
static_assert(QK_STAGES >= 1 && DEPTH / 64 % QK_STAGES == 0, "a slice of K has whole panels of 64 columns");
static_assert(!FUSED || QK_STAGES == 1, "the fused ring carries whole tiles");
static_assert(PV_STAGES >= 1 && BLOCK_N % (32 * PV_STAGES) == 0, "a slice of P has 32 keys, or a multiple");
static_assert(KV_STAGES >= 1 + FUSED && KV_STAGES * QK_STAGES <= 32, "a record can name 32 stages");

static constexpr unsigned THREADS = 32 * WARPS;
static constexpr unsigned ROW_BYTES = 128;  // of a panel: 64 columns of a head
static constexpr unsigned CHUNK = 32;       // columns of tensor memory that a thread reads at a time
static constexpr unsigned PANELS = DEPTH / 64, SLICE_PANELS = PANELS / QK_STAGES, SLICE_KEYS = BLOCK_N / PV_STAGES;
static constexpr unsigned Q_PANEL = ROWS * ROW_BYTES, KV_PANEL = BLOCK_N * ROW_BYTES;
static constexpr unsigned Q_BYTES = PANELS * Q_PANEL, TILE_BYTES = PANELS * KV_PANEL;
static constexpr unsigned Q_SLICE = Q_BYTES / QK_STAGES, K_SLICE = TILE_BYTES / QK_STAGES;
static constexpr unsigned COLUMNS = 2 * (BLOCK_N + DEPTH) <= 256 ? 256 : 512;  // of tensor memory: S of both groups, O of both
enum : unsigned { BYTES_Q, BYTES_K, BYTES_V, BYTES_Q_AND_K };                  // what a record's value means in bytes
enum : unsigned { OF_GROUP = 1, TMEM_READ = 3 };                               // named barriers; 2 is that of group 1
using Ring = RingState<KV_STAGES>;

// Where, in a tile of panels of so many bytes, columns 16 * i of the head begin: K-major operands.
static __device__ constexpr unsigned columns_16(unsigned i, unsigned panel) { return i / 4 * panel + i % 4 * 32; }
// Where keys 16 * i begin in a panel of V, and in the P of a row, in columns of tensor memory.
static __device__ constexpr unsigned keys_16(unsigned i) { return 16 * ROW_BYTES * i; }
static __device__ constexpr unsigned weights_16(unsigned i) { return 8 * i; }
// Where 8 columns of a row lie in a tile of queries: 16 bytes, swizzled.
static __device__ constexpr unsigned columns_8(unsigned row, unsigned i) {
    return i / 8 * Q_PANEL + ROW_BYTES * row + 16 * (i % 8 ^ row % 8);
}
// The first column of S and of O of a group in tensor memory.
static __device__ constexpr unsigned column_of_s(unsigned wg) { return wg * BLOCK_N; }
static __device__ constexpr unsigned column_of_o(unsigned wg) { return 2 * BLOCK_N + wg * DEPTH; }

// What the roles share; addresses are shared ones, tmem is that of tensor memory.
struct Attention {
    const TensorMap *q_map, *k_map, *v_map, *out_map;
    unsigned q, k, v, factors, barriers;
    unsigned blocks, q_row, kv_row, tmem;
    float scale;               // of the scores, times log2(e)
    const Patience &patience;  // by reference: gave_up takes its address, and the rest stays in registers
    __device__ __forceinline__ unsigned barrier(unsigned group, unsigned stage) const { return barriers + 8 * (group + stage); }
    __device__ __forceinline__ unsigned scores(unsigned wg) const { return tmem + column_of_s(wg); }
    __device__ __forceinline__ unsigned sums(unsigned wg) const { return tmem + column_of_o(wg); }
    __device__ __forceinline__ unsigned factor_of(unsigned wg) const { return factors + 4 * (wg * ROWS + threadIdx.x % ROWS); }
};
