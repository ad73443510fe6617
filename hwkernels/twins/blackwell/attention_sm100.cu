// Forward attention on Blackwell: O = softmax(Q K^T * scale) V, bf16 in and out, fp32 between. The kernel behind the protocol
// `attention_sm100` with num_qo 2, pair_cta 0 and element_bytes 2. Needs sm_100a. NEVER RUN on such a chip: it compiles, its
// table is the protocol's, and with NVIDIA's account of each instruction in its place it computes and does what it should: on
// the CPU, and on Hopper, where only that of tcgen05 has to be replaced.
//
// A CTA has two tiles of 128 queries, one for each softmax group, which share all keys and values. The MMA warp writes the
// scores S = Q K^T of a block to tensor memory. A softmax group, a row a thread, reads them, tells the correction group by what
// to rescale the sums O, and writes the weights P over the first half of S, slice by slice. The correction group rescales O,
// then the MMA warp adds P V to it; the product of group 1 comes one block late. At the end each softmax group divides its O
// and stores it where its queries were. The load warp fills the slots of K and V: FUSED 1, one ring that carries K and V in
// turn; FUSED 0, a ring each, K in QK_STAGES slices of the head. Every wait is bounded: a function that contains one returns
// false if it gave up, and the CTA ends with a report (landing_sm100.cuh).
//
// Beyond what PTX promises, which orders two products only if they have one shape and one place for their sums: S is written
// over a P that an earlier product of the same thread reads, with no wait between. Upstream relies on that order, too.
// setmaxnreg: PTX wants one and the same in all warps of a warp group, so idle warps keep 40 registers, not upstream's 24.
//
// Compile-time parameters: DEPTH 64 or 128; BLOCK_N 64 or 128 keys; KV_STAGES; FUSED; QK_STAGES 1 .. DEPTH / 64, 1 where FUSED;
// PV_STAGES, slices of P of 32 keys or more. Dynamic shared memory, at a multiple of 1,024: Q, the slots of K and V, the
// factors, the address of tensor memory, the barriers. A tile is kept in panels of 64 columns of the head, rows of 128 bytes,
// swizzled.
#include "attention_sm100.cuh"
#include "landing_sm100.cuh"
#include "tcgen05.cuh"

// The site of a softmax group, a barrier group of one, and the lanes of tensor memory of this warp: its number in its group.
#define SITE_OF(wg, what) ((wg) ? SITE_softmax1_##what : SITE_softmax0_##what)
#define SITE_OF_PAIR(wg, what, group, side) \
    ((wg) ? SITE_softmax1_##what##_##group##1_##side : SITE_softmax0_##what##_##group##0_##side)
#define BARRIER_OF(letter, wg, side) ((wg) ? BARRIER_##letter##1_##side : BARRIER_##letter##0_##side)
static __device__ __forceinline__ unsigned lanes_of_warp() { return threadIdx.x / 32 % 4 * 32 << 16; }

// All lanes. n counts an agent's waits, from 1 on: what comes before the first belongs to iteration 0.
static __device__ __forceinline__ bool wait_for(const Attention &at, unsigned group, unsigned stage, unsigned parity,
                                                unsigned site, unsigned &n PIPESIM_PARAM) {
    return recorded_wait<true>(at.patience, at.barriers + 8 * group, stage, parity, site, site + 1, n PIPESIM_PASS);
}

// All lanes.
static __device__ __forceinline__ void arrive(const Attention &at, unsigned group, unsigned stage, unsigned site,
                                              unsigned n PIPESIM_PARAM) {
    PIPESIM_SAY(n - 1, stage, 0)
    PIPESIM_RECORD(site, 32)
    mbarrier_arrive(at.barrier(group, stage));
}

// The load warp.

static __device__ __forceinline__ void load_q1(const Attention &at PIPESIM_PARAM) {
#pragma unroll
    for (unsigned j = 0; j < QK_STAGES; ++j) {
        const bool one = elect_one();
        const unsigned full = at.barrier(BARRIER_Q1Sync, j);
        PIPESIM_SAY(0, j, 0)
        PIPESIM_RECORD(SITE_load_expect_Q1Sync, BYTES_Q)
        if (one) mbarrier_arrive_expect_tx(full, Q_SLICE);
        PIPESIM_RECORD(SITE_load_copy_Q1Sync, BYTES_Q)
        if (one) tensor_load_3d(at.q + Q_BYTES + j * Q_SLICE, at.q_map, 0, at.q_row + ROWS, j * SLICE_PANELS, full);
        __syncwarp();
    }
}

// K of a block, with the first the first tile of queries, which needs no wait.
static __device__ __forceinline__ bool load_k(const Attention &at, Ring &k, unsigned block, unsigned &n PIPESIM_PARAM) {
#pragma unroll
    for (unsigned j = 0; j < QK_STAGES; ++j) {
        const unsigned stage = QK_STAGES * k.stage + j, full = at.barrier(BARRIER_K_prod, stage);
        if (block) {
            if (!wait_for(at, BARRIER_K_cons, stage, k.parity, SITE_load_wait_K_cons, n PIPESIM_PASS)) return false;
        } else {
            PIPESIM_SAY(0, stage, 0)
        }
        const bool one = elect_one();
        PIPESIM_RECORD(SITE_load_expect_K_prod, block ? BYTES_K : BYTES_Q_AND_K)
        if (one) mbarrier_arrive_expect_tx(full, block ? K_SLICE : Q_SLICE + K_SLICE);
        if (block == 0) {
            PIPESIM_RECORD(SITE_load_copy_K_prod, BYTES_Q)
            if (one) tensor_load_3d(at.q + j * Q_SLICE, at.q_map, 0, at.q_row, j * SLICE_PANELS, full);
        }
        PIPESIM_RECORD(SITE_load_copy_K_prod, BYTES_K)
        if (one)
            tensor_load_3d(at.k + stage * K_SLICE, at.k_map, 0, at.kv_row + block * BLOCK_N, j * SLICE_PANELS, full);
        __syncwarp();
    }
    k.step();
    return true;
}

static __device__ __forceinline__ bool load_v(const Attention &at, Ring &v, unsigned block, unsigned &n PIPESIM_PARAM) {
    if (!wait_for(at, BARRIER_V_cons, v.stage, v.parity, SITE_load_wait_V_cons, n PIPESIM_PASS)) return false;
    const bool one = elect_one();
    const unsigned full = at.barrier(BARRIER_V_prod, v.stage);
    PIPESIM_RECORD(SITE_load_expect_V_prod, BYTES_V)
    if (one) mbarrier_arrive_expect_tx(full, TILE_BYTES);
    PIPESIM_RECORD(SITE_load_copy_V_prod, BYTES_V)
    if (one) tensor_load_3d(at.v + v.stage * TILE_BYTES, at.v_map, 0, at.kv_row + block * BLOCK_N, 0, full);
    __syncwarp();
    v.step();
    return true;
}

static __device__ __forceinline__ bool load(const Attention &at PIPESIM_PARAM) {
    Ring k = {0, 1}, of_v = {0, 1};
    Ring &v = FUSED ? k : of_v;
    unsigned n = 1;
    if (at.blocks == 0) return true;
    PIPESIM_AT(0, 0, 0)
    for (unsigned block = 0; block < at.blocks; ++block) {
        if (!load_k(at, k, block, n PIPESIM_PASS)) return false;
        if (block == 0) load_q1(at PIPESIM_PASS);
        if (!load_v(at, v, block, n PIPESIM_PASS)) return false;
    }
    return true;
}

// The MMA warp. One lane issues and commits; which one is the same each time.

// S = Q K^T of a group, slice by slice of the head. Group 1 is the last to read K, and gives it back.
template <unsigned WG>
static __device__ __forceinline__ bool multiply_q(const Attention &at, Ring &k, unsigned block, unsigned &n PIPESIM_PARAM) {
#pragma unroll
    for (unsigned j = 0; j < QK_STAGES; ++j) {
        const unsigned stage = QK_STAGES * k.stage + j;
        if (WG == 0 && !wait_for(at, BARRIER_K_prod, stage, k.parity, SITE_mma_wait_K_prod, n PIPESIM_PASS)) return false;
        if (WG == 1 && block == 0 && !wait_for(at, BARRIER_Q1Sync, j, 0, SITE_mma_wait_Q1Sync, n PIPESIM_PASS))
            return false;
        tcgen05_after_sync();
        if (elect_one()) {
#pragma unroll
            for (unsigned i = 0; i < 4 * SLICE_PANELS; ++i) {  // 16 columns of the head
                const unsigned a = at.q + WG * Q_BYTES + j * Q_SLICE + columns_16(i, Q_PANEL);
                const unsigned b = at.k + stage * K_SLICE + columns_16(i, KV_PANEL);
                tcgen05_mma(at.scores(WG), tcgen05_k_major(a), tcgen05_k_major(b), tcgen05_bf16(ROWS, BLOCK_N), j | i);
            }
            if (WG == 1) tcgen05_commit(at.barrier(BARRIER_K_cons, stage));
            if (j + 1 == QK_STAGES) tcgen05_commit(at.barrier(BARRIER_OF(S, WG, prod), 0));
        }
        __syncwarp();
    }
    if (WG == 1) k.step();
    return true;
}

// O += P V of a group, slice by slice of P; the first slice says, too, that O is rescaled. Group 1 gives V back.
template <unsigned WG>
static __device__ __forceinline__ bool multiply_v(const Attention &at, unsigned slot, unsigned block, unsigned &n PIPESIM_PARAM) {
#pragma unroll
    for (unsigned j = 0; j < PV_STAGES; ++j) {
        const unsigned site = WG ? SITE_mma_wait_S1_cons : SITE_mma_wait_S0_cons;
        if (!wait_for(at, BARRIER_OF(S, WG, cons), j, block & 1, site, n PIPESIM_PASS)) return false;
        tcgen05_after_sync();
        if (elect_one()) {
#pragma unroll
            for (unsigned i = j * SLICE_KEYS / 16; i < (j + 1) * SLICE_KEYS / 16; ++i) {  // 16 keys: 8 columns of P, 16 rows of V
                const unsigned long long b = tcgen05_mn_major(at.v + slot * TILE_BYTES + keys_16(i), KV_PANEL);
                tcgen05_mma_tensor(at.sums(WG), at.scores(WG) + weights_16(i), b, tcgen05_bf16(ROWS, DEPTH, 1), block | i);
            }
            if (j + 1 == PV_STAGES) {
                tcgen05_commit(at.barrier(BARRIER_O_prod, WG));
                if (WG == 1) tcgen05_commit(at.barrier(BARRIER_V_cons, slot));
            }
        }
        __syncwarp();
    }
    return true;
}

static __device__ __forceinline__ bool multiply(const Attention &at PIPESIM_PARAM) {
    Ring k = {0, 0}, of_v = {0, 0};
    Ring &v = FUSED ? k : of_v;
    unsigned n = 1, held = 0;
#pragma unroll 1
    for (unsigned block = 0; block < at.blocks; ++block) {
        if (!multiply_q<0>(at, k, block, n PIPESIM_PASS)) return false;
        if (block && !multiply_v<1>(at, held, block - 1, n PIPESIM_PASS)) return false;
        if (!multiply_q<1>(at, k, block, n PIPESIM_PASS)) return false;
        if (!wait_for(at, BARRIER_V_prod, v.stage, v.parity, SITE_mma_wait_V_prod, n PIPESIM_PASS)) return false;
        held = v.stage;
        v.step();
        if (!multiply_v<0>(at, held, block, n PIPESIM_PASS)) return false;
    }
    return at.blocks == 0 || multiply_v<1>(at, held, at.blocks - 1, n PIPESIM_PASS);
}

// A softmax warp: a thread has a row of 32 * (warp of its group) + lane.

// The largest score of a row, and the sum of its weights.
struct Row {
    float largest, sum;
};

// Scores to weights, over the first half of the scores, slice by slice.
static __device__ __forceinline__ void write_p(const Attention &at, unsigned wg, const unsigned (&s)[BLOCK_N / CHUNK][CHUNK],
                                               Row &row, unsigned n PIPESIM_PARAM) {
    const unsigned to = at.scores(wg) + lanes_of_warp();
    const float offset = row.largest * at.scale;
#pragma unroll
    for (unsigned j = 0; j < PV_STAGES; ++j) {
        PIPESIM_SAY(n - 1, 0, 0)
        PIPESIM_RECORD(SITE_OF(wg, work_begin), 0)
#pragma unroll
        for (unsigned c = j * SLICE_KEYS / CHUNK; c < (j + 1) * SLICE_KEYS / CHUNK; ++c) {
            unsigned pairs[CHUNK / 2];
#pragma unroll
            for (unsigned i = 0; i < CHUNK / 2; ++i) {
                const float low = exp2_fast(fmaf(__uint_as_float(s[c][2 * i]), at.scale, -offset));
                const float high = exp2_fast(fmaf(__uint_as_float(s[c][2 * i + 1]), at.scale, -offset));
                row.sum += low + high;
                pairs[i] = bf16_pair(low, high);
            }
            tcgen05_store(to + c * CHUNK / 2, pairs);
        }
        PIPESIM_RECORD(SITE_OF(wg, work_end), 0)
        tcgen05_store_wait();
        tcgen05_before_sync();
        arrive(at, BARRIER_OF(S, wg, cons), j, SITE_OF_PAIR(wg, arrive, S, cons), n PIPESIM_PASS);
    }
}

// The last sum over the sum of weights, to where the queries were. False if its wait gave up.
static __device__ __forceinline__ bool divide(const Attention &at, unsigned wg, const Row &row, unsigned &n PIPESIM_PARAM) {
    const unsigned r = threadIdx.x % ROWS, out = at.q + wg * Q_BYTES;
    const float factor = 1 / row.sum;
    if (!wait_for(at, BARRIER_O_prod, wg, at.blocks - 1 & 1, SITE_OF(wg, wait_O_prod), n PIPESIM_PASS)) return false;
    tcgen05_after_sync();
    PIPESIM_RECORD(SITE_OF(wg, work_begin), 0)
#pragma unroll
    for (unsigned c = 0; c < DEPTH / CHUNK; ++c) {
        unsigned v[CHUNK];
        tcgen05_load(v, at.sums(wg) + lanes_of_warp() + c * CHUNK);
#pragma unroll
        for (unsigned i = 0; i < CHUNK; i += 8) {
            const unsigned to = out + columns_8(r, (c * CHUNK + i) / 8);
            unsigned pairs[4];
#pragma unroll
            for (unsigned p = 0; p < 4; ++p)
                pairs[p] = bf16_pair(__uint_as_float(v[i + 2 * p]) * factor, __uint_as_float(v[i + 2 * p + 1]) * factor);
            store_shared(to, {pairs[0], pairs[1], pairs[2], pairs[3]});
        }
    }
    PIPESIM_RECORD(SITE_OF(wg, work_end), 0)
    async_proxy_fence();
    return true;
}

// The group meets, and one lane stores its rows to device memory, unless a warp of the group gave up.
static __device__ __forceinline__ void store_tile(const Attention &at, unsigned wg, bool done) {
    const bool all = wg ? named_all<OF_GROUP + 1, ROWS>(done) : named_all<OF_GROUP, ROWS>(done);
    if (all && threadIdx.x % 128 < 32 && elect_one()) {
        tensor_store_3d(at.out_map, 0, at.q_row + wg * ROWS, 0, at.q + wg * Q_BYTES);
        bulk_commit();
        bulk_wait<0>();
    }
    __syncwarp();
}

static __device__ __forceinline__ bool weigh_blocks(const Attention &at, unsigned wg, Row &row, unsigned &n PIPESIM_PARAM) {
#pragma unroll 1
    for (unsigned block = 0; block < at.blocks; ++block) {
        unsigned s[BLOCK_N / CHUNK][CHUNK];
        if (!wait_for(at, BARRIER_OF(S, wg, prod), 0, block & 1, SITE_OF_PAIR(wg, wait, S, prod), n PIPESIM_PASS))
            return false;
        tcgen05_after_sync();
        float largest = row.largest;
#pragma unroll
        for (unsigned c = 0; c < BLOCK_N / CHUNK; ++c) {
            tcgen05_load(s[c], at.scores(wg) + lanes_of_warp() + c * CHUNK);
#pragma unroll
            for (unsigned i = 0; i < CHUNK; ++i) largest = fmaxf(largest, __uint_as_float(s[c][i]));
        }
        const float factor = exp2_fast((row.largest - largest) * at.scale);  // 0 at first, when row.largest is -infinity
        row = {largest, row.sum * factor};
        if (block) {
            store_shared_32(at.factor_of(wg), __float_as_uint(factor));
            arrive(at, BARRIER_OF(C, wg, prod), 0, SITE_OF_PAIR(wg, arrive, C, prod), n PIPESIM_PASS);
        }
        write_p(at, wg, s, row, n PIPESIM_PASS);
        if (!wait_for(at, BARRIER_OF(C, wg, cons), 0, block & 1 ^ 1, SITE_OF_PAIR(wg, wait, C, cons), n PIPESIM_PASS))
            return false;
    }
    return true;
}

// Whether all warps of both groups are done; then tensor memory is given back.
static __device__ __forceinline__ bool weigh(const Attention &at, unsigned wg PIPESIM_PARAM) {
    Row row = {__uint_as_float(0xff800000), 0};
    unsigned n = 1;
    bool done = weigh_blocks(at, wg, row, n PIPESIM_PASS);
    if (at.blocks) {
        if (done) done = divide(at, wg, row, n PIPESIM_PASS);
        store_tile(at, wg, done);
        tcgen05_before_sync();
        done = named_all<TMEM_READ, 2 * ROWS>(done);
        tcgen05_after_sync();
    }
    if (done && threadIdx.x < 32) tcgen05_dealloc<COLUMNS>(at.tmem);
    return done;
}

// A warp of the correction group.

template <unsigned WG>
static __device__ __forceinline__ bool rescale(const Attention &at, unsigned block, unsigned &n PIPESIM_PARAM) {
    const unsigned sums = at.sums(WG) + lanes_of_warp();
    const unsigned site = WG ? SITE_correction_wait_C1_prod : SITE_correction_wait_C0_prod;
    if (!wait_for(at, BARRIER_OF(C, WG, prod), 0, block & 1, site, n PIPESIM_PASS)) return false;
    const float factor = __uint_as_float(load_shared_32(at.factor_of(WG)));
    if (!wait_for(at, BARRIER_O_prod, WG, block & 1, SITE_correction_wait_O_prod, n PIPESIM_PASS)) return false;
    tcgen05_after_sync();
    PIPESIM_RECORD(SITE_correction_work_begin, 0)
    if (__any_sync(FULL_WARP, factor != 1)) {  // no row of the warp has a new largest score: O stays as it is
#pragma unroll
        for (unsigned c = 0; c < DEPTH / CHUNK; ++c) {
            unsigned v[CHUNK];
            tcgen05_load(v, sums + c * CHUNK);
#pragma unroll
            for (unsigned i = 0; i < CHUNK; ++i) v[i] = __float_as_uint(__uint_as_float(v[i]) * factor);
            tcgen05_store(sums + c * CHUNK, v);
            tcgen05_store(sums + c * CHUNK + CHUNK / 2, v + CHUNK / 2);
        }
        tcgen05_store_wait();
    }
    PIPESIM_RECORD(SITE_correction_work_end, 0)
    tcgen05_before_sync();
    arrive(at, BARRIER_OF(S, WG, cons), 0, WG ? SITE_correction_arrive_S1_cons : SITE_correction_arrive_S0_cons,
           n PIPESIM_PASS);
    arrive(at, BARRIER_OF(C, WG, cons), 0, WG ? SITE_correction_arrive_C1_cons : SITE_correction_arrive_C0_cons,
           n PIPESIM_PASS);
    return true;
}

static __device__ __forceinline__ bool correct(const Attention &at PIPESIM_PARAM) {
    unsigned n = 1;
    if (at.blocks == 0) return true;
    PIPESIM_AT(0, 0, 0)
    arrive(at, BARRIER_S0_cons, 0, SITE_correction_arrive_S0_cons, n PIPESIM_PASS);  // there is no O yet to rescale
    arrive(at, BARRIER_S1_cons, 0, SITE_correction_arrive_S1_cons, n PIPESIM_PASS);
#pragma unroll 1
    for (unsigned block = 0; block + 1 < at.blocks; ++block) {
        if (!rescale<0>(at, block, n PIPESIM_PASS)) return false;
        if (!rescale<1>(at, block, n PIPESIM_PASS)) return false;
    }
    return true;
}

// The maps: [heads * rows][DEPTH] of bf16 as [DEPTH / 64][heads * rows][64]; a box of q_map has 128 rows and the panels of a
// slice, of k_map BLOCK_N rows and those panels, of v_map BLOCK_N rows and all panels, of out_map 128 rows and all panels. A
// CTA has 256 queries from 256 * blockIdx.x on; tiles_of_head CTAs belong to a head of blocks * BLOCK_N keys. With 0 blocks
// nothing is stored. scale: 1 / sqrt(DEPTH) * log2(e).
extern "C" __global__ void __launch_bounds__(THREADS, 1)
attention_sm100(const __grid_constant__ TensorMap q_map, const __grid_constant__ TensorMap k_map,
                const __grid_constant__ TensorMap v_map, const __grid_constant__ TensorMap out_map, unsigned blocks,
                unsigned tiles_of_head, float scale, PIPESIM_RUN_PARAMS) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned q = (shared_address(memory) + 1023) & ~1023u, k = q + 2 * Q_BYTES, ring = KV_STAGES * TILE_BYTES;
    const unsigned v = FUSED ? k : k + ring, factors = v + ring, tmem_at = factors + 2 * ROWS * 4, barriers = tmem_at + 16;
    const unsigned warp = threadIdx.x / 32, kv_row = blockIdx.x / tiles_of_head * blocks * BLOCK_N;
    CtaReport *report = reports + blockIdx.x;
    if (warp == 0) tcgen05_alloc<COLUMNS>(tmem_at);
    tcgen05_before_sync();
    CTA_BEGIN(report, barriers)
    tcgen05_after_sync();
    const unsigned tmem = load_shared_32(tmem_at);
    const Patience patience = {report, stop, deadline_ns, warp};
    const Attention at = {&q_map, &k_map, &v_map, &out_map, q, k, v, factors, barriers, blocks,
                          blockIdx.x * 2 * ROWS, kv_row, tmem, scale, patience};
    bool done = true;
    if (warp < WARP_correction) {
        take_registers<192>();
        done = weigh(at, warp / 4 PIPESIM_PASS);
    } else if (warp < WARP_mma) {
        leave_registers<88>();
        done = correct(at PIPESIM_PASS);
    } else {
        leave_registers<40>();
        if (warp == WARP_mma) done = multiply(at PIPESIM_PASS);
        if (warp == WARP_load) done = load(at PIPESIM_PASS);
    }
    if (!all_done(done) && warp == 0 && !done) tcgen05_dealloc<COLUMNS>(tmem);  // else it was given back
    CTA_END(report, barriers)
}
