// Forward attention of one tile of queries a CTA, as attention_sm90.cu, but with K and V in one ring: the kernel behind the
// protocol `attention_sm90_fused`. Needs sm_90a. Roles, barriers and sites: attention_sm90_fused.table.h.
//
// One lane of the producer warp group loads Q once, then K0, V0, K1, V1, ... through one ring of STAGES slots: it acquires a
// slot, expects the tile's bytes, issues one copy and steps (TMAProducerPipeline in its fused form; it starts at parity 1, so
// that no group primes the ring). Each of NUM_CONSUMER warp groups has 64 queries. In block n it takes V_(n-1), which came first,
// then K_n, and issues the scores Q K_n^T and the product of the former weights P with V_(n-1); it does the softmax of block n
// while the latter runs. A warp gives the slot of K_n back when the scores are done, and that of V_(n-1), which it held
// meanwhile, by its number when that product is: one lane of each warp arrives. Turns: as in attention_sm90.cu.
//
// A wait that gives up is reported; its warp goes on, but waits, arrives and records no more, so that no other waits for it
// at a named barrier or in a product.
//
// Compile-time parameters: DEPTH 64 or 128, BLOCK_N 64 or 128 keys, STAGES, NUM_CONSUMER 1 or 2, PINGPONG 0 or 1. Dynamic
// shared memory, at a multiple of 1,024: Q, the slots, the barriers.
#define PIPESIM_TABLE "attention_sm90_fused.table.h"
#define QK_STAGES 1  // the ring carries whole tiles
#include "attention_sm90.cuh"

static_assert(STAGES >= 2 && STAGES <= 32, "a V is held while the next K is waited for; a record can name 32 stages");

enum Bytes : unsigned { BYTES_TILE, BYTES_QUERIES };  // what a record's value says of an EXPECT or a COPY

// Shared addresses and sizes.
struct Attention {
    unsigned q, kv, barriers, blocks;
    float scale;  // of the scores, times log2(e)
    __device__ __forceinline__ unsigned barrier(unsigned group, unsigned stage) const { return barriers + 8 * (group + stage); }
    __device__ __forceinline__ unsigned slot(unsigned stage) const { return kv + stage * TILE_BYTES; }
};

// The producer's lane. tile: 2n is K of block n, 2n + 1 its V.
static __device__ __forceinline__ bool load_tile(const Attention &at, const Patience &patience, RingState<STAGES> &ring,
                                                 unsigned tile, const TensorMap *map, unsigned row PIPESIM_PARAM) {
    if (!load<SITE_producer_wait_kv_empty, SITE_producer_got_kv_empty, SITE_producer_expect_kv_full,
              SITE_producer_copy_kv_full>(patience, at.barrier(BARRIER_kv_full, ring.stage),
                                          at.barrier(BARRIER_kv_empty, ring.stage), ring.stage, ring.parity, tile, BYTES_TILE,
                                          TILE_BYTES, at.slot(ring.stage), map, row, 0 PIPESIM_PASS))
        return false;
    ring.step();
    return true;
}

static __device__ __forceinline__ void produce(const Attention &at, const Patience &patience, const TensorMap *q,
                                               const TensorMap *k, const TensorMap *v, unsigned q_row,
                                               unsigned kv_row PIPESIM_PARAM) {
    RingState<STAGES> ring = {0, 1};
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
        const unsigned row = kv_row + n * BLOCK_N;
        fine = load_tile(at, patience, ring, 2 * n, k, row PIPESIM_PASS) &&
               load_tile(at, patience, ring, 2 * n + 1, v, row PIPESIM_PASS);
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
    RingState<STAGES> ring;
#if PIPESIM_TRACE
    __device__ __forceinline__ void mark() {}
#else
    unsigned taken = 0;  // waits that have returned
    __device__ __forceinline__ void mark() {
        if (alive) mark_wait(patience, taken++);
    }
#endif
};

// Waits for the next tile of the ring and steps past it: its slot.
static __device__ __forceinline__ unsigned take_tile(Consumer &my, unsigned tile PIPESIM_PARAM) {
    const unsigned slot = my.ring.stage;
    take<SITE_consumer_wait_kv_full, SITE_consumer_got_kv_full>(my.alive, my.patience, my.at.barrier(BARRIER_kv_full, slot),
                                                                slot, my.ring.parity, tile PIPESIM_PASS);
    my.mark();
    my.ring.step();
    return slot;
}

// given: how many slots this warp has given back before.
static __device__ __forceinline__ void give_tile_back(const Consumer &my, unsigned slot, unsigned given PIPESIM_PARAM) {
    give_back<SITE_consumer_arrive_kv_empty>(my.alive, my.at.barrier(BARRIER_kv_empty, slot), slot, 0, given PIPESIM_PASS);
}

// Issues scores = Q K^T of the tile in a slot.
static __device__ __forceinline__ void multiply_keys(const Consumer &my, float (&scores)[BLOCK_N / 2], unsigned slot) {
    wgmma_hold(scores);
    issue_scores(scores, my.queries, wgmma_k_major(my.at.slot(slot)), 0);
    wgmma_commit();
}

// sums: of this thread, rows and columns as wgmma.cuh says. Tiles are taken in the ring's order, K0, V0, K1, V1, ..., and given
// back in the order K0, K1, V0, K2, V1, ...
static __device__ __forceinline__ void attend(Consumer &my, float (&sums)[DEPTH / 2], Rows &rows PIPESIM_PARAM) {
    const unsigned blocks = my.at.blocks;
    float scores[BLOCK_N / 2], factor[2];
    unsigned pairs[BLOCK_N / 16][4];
    take_turn(my.group);
    const unsigned first = take_tile(my, 0 PIPESIM_PASS);
    multiply_keys(my, scores, first);
    if (my.group == 0 || blocks > 1) pass_turn(my.group);  // no group waits for the last turn
    wgmma_wait<0>();
    wgmma_hold(scores);
    give_tile_back(my, first, 0 PIPESIM_PASS);
    weigh(my.at.scale, scores, rows, factor, 0, first PIPESIM_PASS);
    prepare(scores, pairs, sums, factor);
#pragma unroll 1
    for (unsigned n = 1; n < blocks; ++n) {
        PIPESIM_AT(n, 0, 0)
        take_turn(my.group);
        const unsigned held = take_tile(my, 2 * n - 1 PIPESIM_PASS);
        const unsigned keys = take_tile(my, 2 * n PIPESIM_PASS);
        multiply_keys(my, scores, keys);
        issue_values(sums, pairs, my.at.slot(held));
        if (my.group == 0 || n + 1 < blocks) pass_turn(my.group);
        wgmma_wait<1>();
        wgmma_hold(scores);
        give_tile_back(my, keys, 2 * n - 1 PIPESIM_PASS);
        weigh(my.at.scale, scores, rows, factor, n, keys PIPESIM_PASS);
        wgmma_wait<0>();
        wgmma_hold(sums);
        give_tile_back(my, held, 2 * n PIPESIM_PASS);
        prepare(scores, pairs, sums, factor);
    }
    PIPESIM_AT(blocks, 0, 0)
    const unsigned last = take_tile(my, 2 * blocks - 1 PIPESIM_PASS);
    issue_values(sums, pairs, my.at.slot(last));
    wgmma_wait<0>();
    wgmma_hold(sums);
    give_tile_back(my, last, 2 * blocks - 1 PIPESIM_PASS);
}

static __device__ __forceinline__ void consume(const Attention &at, const Patience &patience, unsigned *out PIPESIM_PARAM) {
    const unsigned group = threadIdx.x / 128 - WARP_consumer / 4;
    Consumer my = {at, patience, group, wgmma_k_major(at.q + group * GROUP_ROWS * ROW_BYTES), true, {0, 0}};
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

// Arguments: those of attention_sm90.cu.
extern "C" __global__ void __launch_bounds__(384, 1)
attention_sm90_fused(const __grid_constant__ TensorMap queries, const __grid_constant__ TensorMap keys,
                     const __grid_constant__ TensorMap values, unsigned *out, unsigned blocks, unsigned tiles_of_head,
                     float scale, PIPESIM_RUN_PARAMS) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned q = (shared_address(memory) + 1023) & ~1023u, kv = q + Q_BYTES;
    const Attention at = {q, kv, kv + STAGES * TILE_BYTES, blocks, scale};
    const unsigned warp = threadIdx.x / 32;
    CtaReport *report = reports + blockIdx.x;
    const Patience patience = {report, stop, deadline_ns, warp};

    CTA_BEGIN(report, at.barriers)
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
