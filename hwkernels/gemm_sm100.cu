// C = A * B^T in bf16 with fp32 sums on Blackwell: the kernel behind the protocol `gemm_sm100` with cta_group 1 and without
// lookahead. Needs sm_100a. NEVER RUN: it compiles, and its table is the protocol's; nothing else is known of it.
//
// A is [M][K], B [N][K], C [M][N], row-major. The grid has a CTA for every output tile of 128 x BLOCK_N; those that run take
// over the tiles of those that were not launched yet (CLC). Four epilogue warps, a scheduler, a load and an MMA warp.
//
// Compile-time parameters: RING_STAGES barrier pairs, each for K_GROUP steps of 64 of K; ACCUMULATORS in tensor memory;
// CLC_STAGES; BLOCK_N (64, 128, 256; ACCUMULATORS * BLOCK_N a power of two, 512 at most).
#define PIPESIM_TABLE "gemm_sm100.table.h"
#include "cta.cuh"
#include "tcgen05.cuh"
#include "tensor_map.cuh"

static constexpr unsigned THREADS = WARPS * 32, BLOCK_M = 128, BLOCK_K = 64, SLICE = 32, SLICES = BLOCK_N / SLICE;
static constexpr unsigned A_BYTES = BLOCK_M * BLOCK_K * 2, B_BYTES = BLOCK_N * BLOCK_K * 2, C_BYTES = BLOCK_M * SLICE * 2;
static constexpr unsigned SLOTS = RING_STAGES * K_GROUP, COLUMNS = ACCUMULATORS * BLOCK_N, ANSWER_BYTES = 16;
static_assert((COLUMNS & (COLUMNS - 1)) == 0 && COLUMNS <= 512, "tensor memory is allocated in powers of two");
enum : unsigned { BYTES_A, BYTES_B, BYTES_STAGE, BYTES_ANSWER };  // what a record's value means in bytes
static constexpr unsigned TMEM_READY = 1, EPILOGUE = 2;           // named barriers

using InputState = RingState<RING_STAGES>;
using OutputState = RingState<ACCUMULATORS>;
using ClcState = RingState<CLC_STAGES>;

// What the roles share; addresses are shared ones. n counts an agent's steps.
struct Gemm {
    const TensorMap *a_map, *b_map, *c_map;
    unsigned n_tiles, groups;
    unsigned a, b, c, answers, tmem_at, barriers;
    Patience patience;
    __device__ __forceinline__ unsigned barrier(unsigned group, unsigned stage) const {
        return barriers + 8 * (group + stage);
    }
};

// All lanes, or one; a kernel whose wait gives up ends by a trap.
#define WAIT(WARP, role, group, ring)                                                                                \
    if (!recorded_wait<WARP>(gemm.patience, gemm.barriers + 8 * BARRIER_##group, (ring).stage, (ring).parity,          \
                             SITE_##role##_wait_##group, SITE_##role##_got_##group, n PIPESIM_PASS))                 \
        __trap();
#define SITE_load_wait_clc_throttle_empty SITE_load_wait_throttle_empty
#define SITE_load_got_clc_throttle_empty SITE_load_got_throttle_empty
#define SITE_scheduler_wait_clc_throttle_full SITE_scheduler_wait_throttle_full
#define SITE_scheduler_got_clc_throttle_full SITE_scheduler_got_throttle_full

// The tile that comes next: every lane of the role's warps reads the answer and gives its stage back.
#define NEXT_TILE(role)                                                                                              \
    WAIT(true, role, clc_full, clc)                                                                                  \
    more = clc_answer(gemm.answers + ANSWER_BYTES * clc.stage, tile);                                                \
    async_proxy_fence();                                                                                             \
    PIPESIM_RECORD(SITE_##role##_arrive_clc_empty, 32)                                                               \
    mbarrier_arrive(gemm.barrier(BARRIER_clc_empty, clc.stage));                                                     \
    clc.step();

static __device__ __forceinline__ void schedule(const Gemm &gemm PIPESIM_PARAM) {
    ClcState throttle = {0, 0}, request = {0, 1}, clc = {0, 0};
    unsigned n = 0, tile = 0;
    for (bool more = true; more;) {
        WAIT(true, scheduler, clc_throttle_full, throttle)
        PIPESIM_RECORD(SITE_scheduler_arrive_throttle_empty, 32)
        mbarrier_arrive(gemm.barrier(BARRIER_clc_throttle_empty, throttle.stage));
        throttle.step();
        WAIT(true, scheduler, clc_empty, request)
        PIPESIM_RECORD(SITE_scheduler_expect_clc_full, BYTES_ANSWER)
        PIPESIM_RECORD(SITE_scheduler_copy_clc_full, BYTES_ANSWER)
        if (elect_one()) {
            const unsigned full = gemm.barrier(BARRIER_clc_full, request.stage);
            mbarrier_arrive_expect_tx(full, ANSWER_BYTES);
            clc_try_cancel(gemm.answers + ANSWER_BYTES * request.stage, full);
        }
        __syncwarp();
        request.step();
        NEXT_TILE(scheduler)
    }
    for (unsigned s = 0; s < CLC_STAGES; ++s) {
        WAIT(true, scheduler, clc_empty, request)
        request.step();
    }
}

static __device__ __forceinline__ void load(const Gemm &gemm PIPESIM_PARAM) {
    ClcState throttle = {0, 1}, clc = {0, 0};
    InputState input = {0, 1};
    unsigned n = 0, tile = blockIdx.x;
    for (bool more = true; more;) {
        WAIT(true, load, clc_throttle_empty, throttle)
        PIPESIM_RECORD(SITE_load_arrive_throttle_full, 32)
        mbarrier_arrive(gemm.barrier(BARRIER_clc_throttle_full, throttle.stage));
        throttle.step();
        const unsigned row = tile / gemm.n_tiles * BLOCK_M, column = tile % gemm.n_tiles * BLOCK_N;
        for (unsigned k = 0; k < gemm.groups; ++k) {
            WAIT(true, load, input_empty, input)
            const unsigned full = gemm.barrier(BARRIER_input_full, input.stage);
            const bool one = elect_one();
            PIPESIM_RECORD(SITE_load_expect_input_full, BYTES_STAGE)
            if (one) mbarrier_arrive_expect_tx(full, (A_BYTES + B_BYTES) * K_GROUP);
#pragma unroll
            for (unsigned j = 0; j < K_GROUP; ++j) {
                const unsigned slot = input.stage * K_GROUP + j, from = (k * K_GROUP + j) * BLOCK_K;
                PIPESIM_RECORD(SITE_load_copy_input_full, BYTES_A)
                if (one) tensor_load_2d(gemm.a + slot * A_BYTES, gemm.a_map, from, row, full);
                PIPESIM_RECORD(SITE_load_copy_input_full, BYTES_B)
                if (one) tensor_load_2d(gemm.b + slot * B_BYTES, gemm.b_map, from, column, full);
            }
            __syncwarp();
            input.step();
        }
        NEXT_TILE(load)
    }
    for (unsigned s = 0; s < RING_STAGES; ++s) {
        WAIT(true, load, input_empty, input)
        input.step();
    }
}

static __device__ __forceinline__ void multiply(const Gemm &gemm PIPESIM_PARAM) {
    ClcState clc = {0, 0};
    InputState input = {0, 0};
    OutputState output = {0, 1}, end = {0, 0};
    unsigned n = 0, tile = blockIdx.x;
    tcgen05_alloc<COLUMNS>(gemm.tmem_at);
    unsigned tmem;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(tmem) : "r"(gemm.tmem_at) : "memory");
    tcgen05_before_sync();
    asm volatile("barrier.arrive %0, %1;" ::"n"(TMEM_READY), "n"(32 + 128) : "memory");
    for (bool more = true; more;) {
        WAIT(true, mma, output_empty, output)
        tcgen05_after_sync();
        for (unsigned k = 0; k < gemm.groups; ++k) {
            WAIT(true, mma, input_full, input)
            if (elect_one()) {
#pragma unroll
                for (unsigned j = 0; j < K_GROUP; ++j) {
                    const unsigned slot = input.stage * K_GROUP + j;
                    const unsigned long long a = tcgen05_k_major(gemm.a + slot * A_BYTES);
                    const unsigned long long b = tcgen05_k_major(gemm.b + slot * B_BYTES);
#pragma unroll
                    for (unsigned i = 0; i < BLOCK_K / 16; ++i)  // 32 bytes on, in units of 16
                        tcgen05_mma(tmem + output.stage * BLOCK_N, a + 2 * i, b + 2 * i, tcgen05_bf16(BLOCK_M, BLOCK_N),
                                    k | j | i);
                }
                tcgen05_commit(gemm.barrier(BARRIER_input_empty, input.stage));
                if (k + 1 == gemm.groups) tcgen05_commit(gemm.barrier(BARRIER_output_full, output.stage));
            }
            __syncwarp();
            input.step();
        }
        output.step();
        NEXT_TILE(mma)
    }
    WAIT(true, mma, tmem_dealloc, end)
    tcgen05_dealloc<COLUMNS>(tmem);
}

static __device__ __forceinline__ unsigned bf16_pair(unsigned low, unsigned high) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(__uint_as_float(high)), "f"(__uint_as_float(low)));
    return pair;
}

static __device__ __forceinline__ void epilogue_sync() {
    asm volatile("barrier.sync %0, %1;" ::"n"(EPILOGUE), "n"(128) : "memory");
}

// 32 columns of a warp's 32 rows, to a tile in shared memory with 64-byte swizzle.
static __device__ __forceinline__ void store_row(const unsigned (&v)[32], unsigned tile, unsigned row) {
#pragma unroll
    for (unsigned piece = 0; piece < 4; ++piece) {
        const unsigned to = tile + 64 * row + 16 * (piece ^ (row >> 1 & 3)), at = 8 * piece;
        asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(to), "r"(bf16_pair(v[at], v[at + 1])),
                     "r"(bf16_pair(v[at + 2], v[at + 3])), "r"(bf16_pair(v[at + 4], v[at + 5])),
                     "r"(bf16_pair(v[at + 6], v[at + 7])) : "memory");
    }
}

static __device__ __forceinline__ void finish(const Gemm &gemm, unsigned warp, unsigned lane PIPESIM_PARAM) {
    ClcState clc = {0, 0};
    OutputState output = {0, 0};
    unsigned n = 0, tile = blockIdx.x, slices = 0, tmem;
    asm volatile("barrier.sync %0, %1;" ::"n"(TMEM_READY), "n"(32 + 128) : "memory");
    tcgen05_after_sync();
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(tmem) : "r"(gemm.tmem_at) : "memory");
    for (bool more = true; more;) {
        const unsigned row = tile / gemm.n_tiles * BLOCK_M, column = tile % gemm.n_tiles * BLOCK_N;
        WAIT(true, epilogue, output_full, output)
        tcgen05_after_sync();
        for (unsigned slice = 0; slice < SLICES; ++slice, ++slices) {
            unsigned v[32];
            tcgen05_load(v, tmem + (32 * warp << 16) + output.stage * BLOCK_N + slice * SLICE);
            if (slice + 1 == SLICES) {
                tcgen05_before_sync();
                PIPESIM_RECORD(SITE_epilogue_arrive_output_empty, 32)
                mbarrier_arrive(gemm.barrier(BARRIER_output_empty, output.stage));
            }
            const unsigned out = gemm.c + slices % 2 * C_BYTES;
            PIPESIM_RECORD(SITE_epilogue_work_begin, 0)
            PIPESIM_RECORD(SITE_epilogue_work_end, 0)
            if (warp == 0 && elect_one()) bulk_wait_read<1>();  // the store before the last has read its rows
            __syncwarp();
            epilogue_sync();
            store_row(v, out, 32 * warp + lane);
            async_proxy_fence();
            epilogue_sync();
            if (warp == 0 && elect_one()) {
                tensor_store_2d(gemm.c_map, column + slice * SLICE, row, out);
                bulk_commit();
            }
            __syncwarp();
        }
        output.step();
        NEXT_TILE(epilogue)
    }
    if (warp == 0 && elect_one()) bulk_wait<0>();
    __syncwarp();
    PIPESIM_SAY(n, 0, 0)
    PIPESIM_RECORD(SITE_epilogue_arrive_tmem_dealloc, 32)
    mbarrier_arrive(gemm.barrier(BARRIER_tmem_dealloc, 0));
}

// The maps' boxes: A [128][64] and B [BLOCK_N][64] with 128-byte swizzle, C [128][32] with 64-byte swizzle. groups: stages of a
// tile, at least 1.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
gemm_sm100(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
           const __grid_constant__ TensorMap c_map, unsigned n_tiles, unsigned groups, PIPESIM_RUN_PARAMS) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned a = shared_address(memory), b = a + SLOTS * A_BYTES, c = b + SLOTS * B_BYTES;
    const unsigned answers = c + 2 * C_BYTES, tmem_at = answers + CLC_STAGES * ANSWER_BYTES, barriers = tmem_at + 16;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    CtaReport *report = reports + blockIdx.x;
    const Gemm gemm = {&a_map, &b_map, &c_map, n_tiles, groups, a, b, c, answers, tmem_at, barriers,
                       {report, stop, deadline_ns, warp}};
    CTA_BEGIN(report, barriers)
    if (warp == WARP_mma)
        multiply(gemm PIPESIM_PASS);
    else if (warp == WARP_load)
        load(gemm PIPESIM_PASS);
    else if (warp == WARP_scheduler)
        schedule(gemm PIPESIM_PASS);
    else
        finish(gemm, warp, lane PIPESIM_PASS);
    CTA_END(report, barriers)
}
