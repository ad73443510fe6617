// What attention_sm90.cu and attention_sm90_fused.cu share: sizes, loads and waits with their records, turns, products, softmax.
// PIPESIM_TABLE and QK_STAGES are defined before. A tile is kept in panels of 64 columns of the head, rows of 128 bytes, swizzled
// (wgmma.cuh); a slice of K has some of its panels.
#pragma once

#include "cta.cuh"
#include "ptx.cuh"
#include "tensor_map.cuh"
#include "wgmma.cuh"

static_assert(DEPTH == 64 || DEPTH == 128, "DEPTH must be 64 or 128");
static_assert(BLOCK_N == 64 || BLOCK_N == 128, "BLOCK_N must be 64 or 128");
static_assert(QK_STAGES >= 1 && DEPTH / 64 % QK_STAGES == 0, "a slice of K has whole panels of 64 columns");
static_assert(NUM_CONSUMER == 1 || NUM_CONSUMER == 2, "NUM_CONSUMER must be 1 or 2");

static constexpr unsigned GROUP_ROWS = 64;  // queries of a warp group
static constexpr unsigned ROW_BYTES = 128;  // of a panel
static constexpr unsigned DESCRIPTOR_UNIT = 16;  // bytes by which a descriptor that is 1 larger begins later
static constexpr unsigned PANELS = DEPTH / 64, SLICE_PANELS = PANELS / QK_STAGES;
static constexpr unsigned Q_PANEL = NUM_CONSUMER * GROUP_ROWS * ROW_BYTES, KV_PANEL = BLOCK_N * ROW_BYTES;
static constexpr unsigned Q_BYTES = PANELS * Q_PANEL, TILE_BYTES = PANELS * KV_PANEL, SLICE_BYTES = TILE_BYTES / QK_STAGES;
static constexpr unsigned LANDING_CYCLES = 2000000;  // copies in flight when the producer gives up land within microseconds
static constexpr bool TAKES_TURNS = PINGPONG && NUM_CONSUMER == 2;

// The producer's lane: a tile or a slice of it into a free slot. kind: what the record's value says of its bytes.
template <unsigned ENTER, unsigned RETURN, unsigned EXPECT, unsigned COPY>
static __device__ __forceinline__ bool load(const Patience &patience, unsigned full, unsigned empty, unsigned stage,
                                            unsigned parity, unsigned pass, unsigned kind, unsigned bytes, unsigned to,
                                            const TensorMap *map, unsigned row, unsigned panel PIPESIM_PARAM) {
    PIPESIM_SAY(pass, stage, parity)
    PIPESIM_RECORD(ENTER, 0)
    if (!waited<false>(patience, empty, parity, ENTER, pass)) return false;
    PIPESIM_RECORD(RETURN, 0)
    PIPESIM_RECORD_AGAIN(EXPECT, kind)
    mbarrier_arrive_expect_tx(full, bytes);
    PIPESIM_RECORD(COPY, kind)
    tensor_load_3d(to, map, 0, row, panel, full);
    return true;
}

// A consumer warp: what it does with barriers. alive: none of its waits gave up; of one that did, records leave nothing.

template <unsigned ENTER, unsigned RETURN>
static __device__ __forceinline__ void take(bool &alive, const Patience &patience, unsigned full, unsigned stage,
                                            unsigned parity, unsigned pass PIPESIM_PARAM) {
    if (!alive) return;
    PIPESIM_SAY(pass, stage, parity)
    PIPESIM_RECORD(ENTER, 0)
    const WaitEnd end = wait_parity<true>(full, parity, patience.deadline_ns, patience.stop);
    alive = end == WAIT_DONE;
    if (!alive) {  // as waited() does it; one branch, so that nothing else stands between the wait and what follows
        if (threadIdx.x % 32 == 0) gave_up(patience, end, ENTER, pass);
        PIPESIM_STOP
    }
    PIPESIM_RECORD(RETURN, 0)
}

template <unsigned SITE>
static __device__ __forceinline__ void give_back(bool alive, unsigned empty, unsigned stage, unsigned parity,
                                                 unsigned pass PIPESIM_PARAM) {
    PIPESIM_SAY(pass, stage, parity)
    PIPESIM_RECORD(SITE, 1)
    if (alive && threadIdx.x % 32 == 0) mbarrier_arrive(empty);
}

// Named barriers 1 + NUM_CONSUMER + group, as in the protocol: all of the group wait, all of the other arrive.
static __device__ __forceinline__ void take_turn(unsigned group) {
    __syncwarp();
    if (TAKES_TURNS) named_sync<256>(1 + NUM_CONSUMER + group);
}
static __device__ __forceinline__ void pass_turn(unsigned group) {
    if (TAKES_TURNS) named_arrive<256>(1 + NUM_CONSUMER + (1 - group));
}

// And what it computes.

// The largest score, and the sum of weights in this thread's columns, of rows i = 0 and 1 of the thread.
struct Rows {
    float largest[2], sum[2];
};

// scores become weights; factor: what to multiply former sums with.
static __device__ __forceinline__ void softmax(float (&scores)[BLOCK_N / 2], Rows &rows, float (&factor)[2], float scale) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float largest = rows.largest[i];
#pragma unroll
        for (int j = 0; j < BLOCK_N / 8; ++j) largest = fmaxf(largest, fmaxf(scores[4 * j + 2 * i], scores[4 * j + 2 * i + 1]));
        largest = fmaxf(largest, __shfl_xor_sync(FULL_WARP, largest, 1));  // the four threads that share a row
        largest = fmaxf(largest, __shfl_xor_sync(FULL_WARP, largest, 2));
        factor[i] = exp2_fast((rows.largest[i] - largest) * scale);  // 0 at first, when rows.largest is -infinity
        const float offset = largest * scale;
        float sum = 0;
#pragma unroll
        for (int j = 0; j < BLOCK_N / 8; ++j) {
#pragma unroll
            for (int c = 0; c < 2; ++c) {
                const float weight = exp2_fast(fmaf(scores[4 * j + 2 * i + c], scale, -offset));
                scores[4 * j + 2 * i + c] = weight;
                sum += weight;
            }
        }
        rows.largest[i] = largest;
        rows.sum[i] = rows.sum[i] * factor[i] + sum;
    }
}

// Weights as the A operand of the next product; former sums to the new scale.
static __device__ __forceinline__ void prepare(const float (&weights)[BLOCK_N / 2], unsigned (&pairs)[BLOCK_N / 16][4],
                                               float (&sums)[DEPTH / 2], const float (&factor)[2]) {
#pragma unroll
    for (int i = 0; i < DEPTH / 2; ++i) sums[i] *= factor[i / 2 % 2];
#pragma unroll
    for (int i = 0; i < BLOCK_N / 4; ++i) {
        pairs[i / 4][i % 4] = bf16_pair(weights[2 * i], weights[2 * i + 1]);
    }
    wgmma_hold(pairs);
}

// The softmax of a block, between two records of the stage that was last waited for.
static __device__ __forceinline__ void weigh(float scale, float (&scores)[BLOCK_N / 2], Rows &rows,
                                             float (&factor)[2], unsigned block, unsigned stage PIPESIM_PARAM) {
    PIPESIM_SAY(block, stage, 0)
    PIPESIM_RECORD(SITE_consumer_work_begin, 0)
    softmax(scores, rows, factor, scale);
    wgmma_hold(scores);
    PIPESIM_RECORD(SITE_consumer_work_end, 0)
}

// Issues what a slice adds to scores = Q K^T. queries, keys: descriptors of the group's rows in the first panel, and of the
// tile. The first slice of a block comes after wgmma_hold(scores), and begins the sums.
static __device__ __forceinline__ void issue_scores(float (&scores)[BLOCK_N / 2], unsigned long long queries,
                                                    unsigned long long keys, unsigned slice) {
    __syncwarp();
    wgmma_fence();
#pragma unroll
    for (unsigned panel = slice * SLICE_PANELS; panel < (slice + 1) * SLICE_PANELS; ++panel) {
#pragma unroll
        for (unsigned k16 = 0; k16 < 4; ++k16) {
            Wgmma<BLOCK_N>::shared(scores, queries + (panel * Q_PANEL + 32 * k16) / DESCRIPTOR_UNIT,
                                   keys + (panel * KV_PANEL + 32 * k16) / DESCRIPTOR_UNIT, panel + k16 != 0);
        }
    }
}

// Issues and commits sums += P V of the tile of values at a shared address.
static __device__ __forceinline__ void issue_values(float (&sums)[DEPTH / 2], const unsigned (&pairs)[BLOCK_N / 16][4],
                                                    unsigned tile) {
    const unsigned long long values = wgmma_mn_major(tile, KV_PANEL);
    __syncwarp();
    wgmma_hold(sums);
    wgmma_fence();
#pragma unroll
    for (unsigned k16 = 0; k16 < BLOCK_N / 16; ++k16)
        Wgmma<DEPTH, 1>::registers(sums, pairs[k16], values + 16 * ROW_BYTES * k16 / DESCRIPTOR_UNIT, 1);
    wgmma_commit();
}

// out: pairs of bf16, at the group's first row. Rows without keys are zeros.
static __device__ __forceinline__ void store(unsigned *out, const float (&sums)[DEPTH / 2], const Rows &rows) {
    const unsigned thread = threadIdx.x % 128, lane = thread % 32;
#pragma unroll
    for (int i = 0; i < 2; ++i) {
        float sum = rows.sum[i];
        sum += __shfl_xor_sync(FULL_WARP, sum, 1);
        sum += __shfl_xor_sync(FULL_WARP, sum, 2);
        const float factor = sum > 0 ? 1 / sum : 0;
        unsigned *row = out + (16 * (thread / 32) + lane / 4 + 8 * i) * (DEPTH / 2) + lane % 4;
#pragma unroll
        for (int j = 0; j < DEPTH / 8; ++j)
            row[4 * j] = bf16_pair(sums[4 * j + 2 * i] * factor, sums[4 * j + 2 * i + 1] * factor);
    }
}
