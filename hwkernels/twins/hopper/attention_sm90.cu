// Forward attention of one tile of queries a CTA: O = softmax(Q K^T * scale) V, bf16 in and out, fp32 between. The kernel
// behind the protocol `attention_sm90` with fused=0. Needs sm_90a. Roles, barriers and sites: attention_sm90.table.h.
//
// One lane of the producer warp group loads Q once, then K and V block by block through two rings of STAGES slots: K in
// QK_STAGES slices of the head, each with barriers of its own, V whole; in the order K0, K1, V0, K2, V1, ... The lane acquires
// a slice, expects its bytes and issues one copy (TMAProducerPipeline over StagedPipeline; the producer starts at parity 1).
// Each of NUM_CONSUMER warp groups has 64 queries. In block n it issues the scores Q K_n^T, slice by slice, and the product
// of the former weights P with V_(n-1); it does the softmax of block n while the latter runs. A warp gives a slice back
// when the products that read it are done: one lane of each warp arrives. With PINGPONG two groups take turns at the tensor
// cores, by named barriers, so that one multiplies while the other does its softmax.
//
// A wait that gives up is reported; its warp goes on, but waits, arrives and records no more, so that no other waits for it
// at a named barrier or in a product.
//
// Compile-time parameters: DEPTH 64 or 128, BLOCK_N 64 or 128 keys, QK_STAGES 1 .. DEPTH / 64, STAGES, NUM_CONSUMER 1 or 2,
// PINGPONG 0 or 1. Dynamic shared memory, at a multiple of 1,024: Q, the slots of K, the slots of V, the barriers. A tile is
// kept in panels of 64 columns of the head, rows of 128 bytes, swizzled (wgmma.cuh).
#define PIPESIM_TABLE "attention_sm90.table.h"
#include "attention_sm90.cuh"

static_assert(STAGES >= 1 && STAGES * QK_STAGES <= 32, "a record can name 32 stages");

enum Bytes : unsigned { BYTES_SLICE, BYTES_VALUES, BYTES_QUERIES };  // what a record's value says of an EXPECT or a COPY

// Shared addresses and sizes.
struct Attention {
    unsigned q, k, v, barriers, blocks;
    float scale;  // of the scores, times log2(e)
    __device__ __forceinline__ unsigned barrier(unsigned group, unsigned stage) const { return barriers + 8 * (group + stage); }
};

// The producer's lane.

static __device__ __forceinline__ bool load_keys(const Attention &at, const Patience &patience, RingState<STAGES> &k,
                                                 unsigned block, const TensorMap *map, unsigned row PIPESIM_PARAM) {
#pragma unroll
    for (unsigned q = 0; q < QK_STAGES; ++q) {
        const unsigned stage = QK_STAGES * k.stage + q;
        if (!load<SITE_producer_wait_k_empty, SITE_producer_got_k_empty, SITE_producer_expect_k_full,
                  SITE_producer_copy_k_full>(patience, at.barrier(BARRIER_k_full, stage), at.barrier(BARRIER_k_empty, stage),
                                             stage, k.parity, QK_STAGES * block + q, BYTES_SLICE, SLICE_BYTES,
                                             at.k + stage * SLICE_BYTES, map, row + block * BLOCK_N,
                                             q * SLICE_PANELS PIPESIM_PASS))
            return false;
    }
    k.step();
    return true;
}

static __device__ __forceinline__ bool load_values(const Attention &at, const Patience &patience, RingState<STAGES> &v,
                                                   unsigned block, const TensorMap *map, unsigned row PIPESIM_PARAM) {
    if (!load<SITE_producer_wait_v_empty, SITE_producer_got_v_empty, SITE_producer_expect_v_full, SITE_producer_copy_v_full>(
            patience, at.barrier(BARRIER_v_full, v.stage), at.barrier(BARRIER_v_empty, v.stage), v.stage, v.parity, block,
            BYTES_VALUES, TILE_BYTES, at.v + v.stage * TILE_BYTES, map, row + block * BLOCK_N, 0 PIPESIM_PASS))
        return false;
    v.step();
    return true;
}

static __device__ __forceinline__ void produce(const Attention &at, const Patience &patience, const TensorMap *q,
                                               const TensorMap *k, const TensorMap *v, unsigned q_row,
                                               unsigned kv_row PIPESIM_PARAM) {
    RingState<STAGES> keys = {0, 1}, values = {0, 1};
    PIPESIM_AT(0, 0, 0)
    PIPESIM_RECORD(SITE_producer_expect_q_full, BYTES_QUERIES)
    mbarrier_arrive_expect_tx(at.barrier(BARRIER_q_full, 0), Q_BYTES);
    PIPESIM_RECORD(SITE_producer_copy_q_full, BYTES_QUERIES)
    tensor_load_3d(at.q, q, 0, q_row, 0, at.barrier(BARRIER_q_full, 0));
    bool fine = true;
    for (unsigned n = 0; fine && n < at.blocks; ++n) {
        if (n) {
            PIPESIM_AT(n, 0, 0)
        }
        fine = load_keys(at, patience, keys, n, k, kv_row PIPESIM_PASS) &&
               (n == 0 || load_values(at, patience, values, n - 1, v, kv_row PIPESIM_PASS));
    }
    if (fine && at.blocks) {
        PIPESIM_AT(at.blocks, 0, 0)
        fine = load_values(at, patience, values, at.blocks - 1, v, kv_row PIPESIM_PASS);
    }
    if (!fine) spin(LANDING_CYCLES);  // no copy may land in a CTA that has ended
}

// A consumer warp's way through the blocks.
struct Consumer {
    const Attention &at;
    const Patience &patience;
    unsigned group;
    unsigned long long queries;  // descriptor of the group's rows in the first panel
    bool alive;
    RingState<STAGES> keys, values;
#if PIPESIM_TRACE
    __device__ __forceinline__ void mark() {}
#else
    unsigned taken = 0;  // waits that have returned
    __device__ __forceinline__ void mark() {
        if (alive) mark_wait(patience, taken++);
    }
#endif
};

// Issues scores = Q K^T of a block, each slice when it has landed.
static __device__ __forceinline__ void multiply_keys(Consumer &my, float (&scores)[BLOCK_N / 2], unsigned block PIPESIM_PARAM) {
    const unsigned long long keys = wgmma_k_major(my.at.k + my.keys.stage * TILE_BYTES);
    wgmma_hold(scores);
#pragma unroll
    for (unsigned q = 0; q < QK_STAGES; ++q) {
        const unsigned stage = QK_STAGES * my.keys.stage + q;
        take<SITE_consumer_wait_k_full, SITE_consumer_got_k_full>(my.alive, my.patience, my.at.barrier(BARRIER_k_full, stage),
                                                                  stage, my.keys.parity, QK_STAGES * block + q PIPESIM_PASS);
        my.mark();
        issue_scores(scores, my.queries, keys, q);
    }
    wgmma_commit();
}

// Issues sums += P V of a block.
static __device__ __forceinline__ void multiply_values(Consumer &my, float (&sums)[DEPTH / 2],
                                                       const unsigned (&pairs)[BLOCK_N / 16][4], unsigned block PIPESIM_PARAM) {
    take<SITE_consumer_wait_v_full, SITE_consumer_got_v_full>(my.alive, my.patience,
                                                              my.at.barrier(BARRIER_v_full, my.values.stage), my.values.stage,
                                                              my.values.parity, block PIPESIM_PASS);
    my.mark();
    issue_values(sums, pairs, my.at.v + my.values.stage * TILE_BYTES);
}

static __device__ __forceinline__ void give_keys_back(Consumer &my, unsigned block PIPESIM_PARAM) {
#pragma unroll
    for (unsigned q = 0; q < QK_STAGES; ++q) {
        const unsigned stage = QK_STAGES * my.keys.stage + q;
        give_back<SITE_consumer_arrive_k_empty>(my.alive, my.at.barrier(BARRIER_k_empty, stage), stage, my.keys.parity,
                                                QK_STAGES * block + q PIPESIM_PASS);
    }
    my.keys.step();
}

static __device__ __forceinline__ void give_values_back(Consumer &my, unsigned block PIPESIM_PARAM) {
    give_back<SITE_consumer_arrive_v_empty>(my.alive, my.at.barrier(BARRIER_v_empty, my.values.stage), my.values.stage,
                                            my.values.parity, block PIPESIM_PASS);
    my.values.step();
}

// sums: of this thread, rows and columns as wgmma.cuh says.
static __device__ __forceinline__ void attend(Consumer &my, float (&sums)[DEPTH / 2], Rows &rows PIPESIM_PARAM) {
    const unsigned blocks = my.at.blocks;
    float scores[BLOCK_N / 2], factor[2];
    unsigned pairs[BLOCK_N / 16][4];
    take_turn(my.group);
    multiply_keys(my, scores, 0 PIPESIM_PASS);
    if (my.group == 0 || blocks > 1) pass_turn(my.group);  // no group waits for the last turn
    wgmma_wait<0>();
    wgmma_hold(scores);
    const unsigned first = QK_STAGES * my.keys.stage + QK_STAGES - 1;
    give_keys_back(my, 0 PIPESIM_PASS);
    weigh(my.at.scale, scores, rows, factor, 0, first PIPESIM_PASS);
    prepare(scores, pairs, sums, factor);
#pragma unroll 1
    for (unsigned n = 1; n < blocks; ++n) {
        PIPESIM_AT(n, 0, 0)
        take_turn(my.group);
        multiply_keys(my, scores, n PIPESIM_PASS);
        multiply_values(my, sums, pairs, n - 1 PIPESIM_PASS);
        if (my.group == 0 || n + 1 < blocks) pass_turn(my.group);
        wgmma_wait<1>();
        wgmma_hold(scores);
        give_keys_back(my, n PIPESIM_PASS);
        weigh(my.at.scale, scores, rows, factor, n, my.values.stage PIPESIM_PASS);
        wgmma_wait<0>();
        wgmma_hold(sums);
        give_values_back(my, n - 1 PIPESIM_PASS);
        prepare(scores, pairs, sums, factor);
    }
    PIPESIM_AT(blocks, 0, 0)
    multiply_values(my, sums, pairs, blocks - 1 PIPESIM_PASS);
    wgmma_wait<0>();
    wgmma_hold(sums);
    give_values_back(my, blocks - 1 PIPESIM_PASS);
}

static __device__ __forceinline__ void consume(const Attention &at, const Patience &patience, unsigned *out PIPESIM_PARAM) {
    const unsigned group = threadIdx.x / 128 - WARP_consumer / 4;
    Consumer my = {at, patience, group, wgmma_k_major(at.q + group * GROUP_ROWS * ROW_BYTES), true, {0, 0}, {0, 0}};
    Rows rows = {{-__int_as_float(0x7f800000), -__int_as_float(0x7f800000)}, {0, 0}};
    float sums[DEPTH / 2];
#pragma unroll
    for (int i = 0; i < DEPTH / 2; ++i) sums[i] = 0;
    if (group == 1 && at.blocks) pass_turn(group);  // group 0 goes first
    PIPESIM_AT(0, 0, 0)
    take<SITE_consumer_wait_q_full, SITE_consumer_got_q_full>(my.alive, patience, at.barrier(BARRIER_q_full, 0), 0, 0,
                                                              0 PIPESIM_PASS);
    my.mark();
    if (at.blocks) attend(my, sums, rows PIPESIM_PASS);
    store(out + group * GROUP_ROWS * (DEPTH / 2), sums, rows);
}

// queries, keys, values: [heads * rows][DEPTH] of bf16 as [DEPTH / 64][heads * rows][64]; a box of queries has all rows of a CTA
// and all panels, one of keys BLOCK_N rows and the panels of a slice, one of values all. out: as queries. A CTA has tile
// blockIdx.x of the queries, of which tiles_of_head belong to a head of blocks * BLOCK_N keys. scale: 1 / sqrt(DEPTH) * log2(e).
extern "C" __global__ void __launch_bounds__(384, 1)
attention_sm90(const __grid_constant__ TensorMap queries, const __grid_constant__ TensorMap keys,
               const __grid_constant__ TensorMap values, unsigned *out, unsigned blocks, unsigned tiles_of_head,
               float scale, PIPESIM_RUN_PARAMS) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned q = (shared_address(memory) + 1023) & ~1023u, k = q + Q_BYTES, v = k + STAGES * TILE_BYTES;
    const Attention at = {q, k, v, v + STAGES * TILE_BYTES, blocks, scale};
    const unsigned warp = threadIdx.x / 32;
    CtaReport *report = reports + blockIdx.x;
    const Patience patience = {report, stop, deadline_ns, warp};

    // What CTA_BEGIN does; through init_barriers, the compiler would order the instructions of the recorded builds otherwise.
    if (threadIdx.x == 0) {
#define PIPESIM_ROLE(name, warps)
#define PIPESIM_SITE(name, role, kind, barrier)
#define PIPESIM_BARRIER(name, stages, count) \
    for (unsigned s = 0; s < STAGES_##name; ++s) mbarrier_init(at.barrier(BARRIER_##name, s), COUNT_##name);
#include PIPESIM_TABLE
        mbarrier_init_fence();
        PIPESIM_ANCHOR(blockIdx.x, 0)
    }
    PIPESIM_AGENT(blockIdx.x, warp, WARPS, threadIdx.x % 32 == 0, RECORDS_BEHIND(at.barriers, warp))
    __syncthreads();
    if (threadIdx.x == 0) report->loop_begin = clock_cycles64();
    if (warp < WARP_consumer) {
        leave_registers<40>();
        if (warp == WARP_producer && elect_one()) {
            const unsigned row = blockIdx.x / tiles_of_head * blocks * BLOCK_N;
            produce(at, patience, &queries, &keys, &values, blockIdx.x * NUM_CONSUMER * GROUP_ROWS, row PIPESIM_PASS);
        }
    } else {
        take_registers<232>();
        consume(at, patience, out + blockIdx.x * (NUM_CONSUMER * GROUP_ROWS * DEPTH / 2) PIPESIM_PASS);
    }
    CTA_END(report, at.barriers)
}
