// C = A * B^T in bf16 with fp32 sums: the kernel behind the protocol `gemm_sm90`. Needs sm_90a. A is [M][K], B [N][K],
// C [M][N], all row-major. A producer warp group, of which one thread copies, fills a ring with tiles of A and B; one or
// two consumer warp groups of 64 rows each multiply them with wgmma and store their rows of C. Persistent: CTA c computes
// the output tiles c, c + grid, c + 2 * grid, ... Roles, barriers and recording sites are those of gemm_sm90.table.h.
//
// Compile-time parameters: RING_STAGES barrier pairs (1..32), each for K_GROUP (1, 2, 4) steps of 64 of K; NUM_CONSUMER (1,
// 2); BLOCK_N (64, 128, 256); LOOKAHEAD 1: each side tries the next stage before it has to wait for it; DRAIN 1: the
// producer stays until everything is consumed. The producer starts at phase 0: consumers arrive on every empty first.
//
// Dynamic shared memory, all of it swizzled as the tensor maps say: A tiles, B tiles, C tiles (one a group), barriers.
//
// A consumer whose wait gives up goes on without waiting, arriving or storing: the warps of a group multiply together and
// meet at named barriers, so none may be missing.
#define PIPESIM_TABLE "gemm_sm90.table.h"
#include "cta.cuh"
#include "tensor_map.cuh"
#include "wgmma.cuh"

static_assert(RING_STAGES >= 1 && RING_STAGES <= 32, "RING_STAGES must be 1..32");
static_assert(K_GROUP == 1 || K_GROUP == 2 || K_GROUP == 4, "K_GROUP must be 1, 2 or 4");
static_assert(NUM_CONSUMER == 1 || NUM_CONSUMER == 2, "NUM_CONSUMER must be 1 or 2");

static constexpr unsigned GROUP_THREADS = 128, GROUP_ROWS = 64, BLOCK_K = 64, WGMMA_K = 16;
static constexpr unsigned THREADS = GROUP_THREADS * (1 + NUM_CONSUMER), BLOCK_M = GROUP_ROWS * NUM_CONSUMER;
static constexpr unsigned SLAB_BYTES = GROUP_ROWS * 128;  // 64 rows of 64 elements of bf16
static constexpr unsigned A_BYTES = BLOCK_M * BLOCK_K * 2, B_BYTES = BLOCK_N * BLOCK_K * 2;
static constexpr unsigned C_BYTES = GROUP_ROWS * BLOCK_N * 2, SLABS = BLOCK_N / 64;
static constexpr unsigned SLOTS = RING_STAGES * K_GROUP;
enum : unsigned { BYTES_A, BYTES_B, BYTES_STAGE };  // what a record's value means in bytes
static constexpr unsigned LANDING_CYCLES = 200000;  // for copies in flight when a CTA gave up: they land within microseconds
static_assert(WARPS * 32 == THREADS, "the table's warps");

// The work of one launch. M and N are multiples of the tile, K of 64: m_tiles * n_tiles output tiles of k_iters steps.
struct Problem {
    unsigned m_tiles, n_tiles, k_iters;
    unsigned raster;    // rows of tiles that are gone through together, column by column, so that L2 serves both operands
    unsigned epilogue;  // cycles that a tile's epilogue takes at least
};

// What the roles share.
struct Gemm {
    const TensorMap *a_map, *b_map, *c_map;
    Problem problem;
    unsigned a, b, c, full, empty;  // shared addresses
    unsigned groups;                // stages of a tile: k_iters / K_GROUP, rounded up
};

// The tile numbered `tile`: its first row and column.
static __device__ __forceinline__ void place(const Problem &problem, unsigned tile, unsigned &row, unsigned &column) {
    const unsigned band = problem.raster * problem.n_tiles, first = tile / band * problem.raster;
    const unsigned left = problem.m_tiles - first, high = left < problem.raster ? left : problem.raster;
    const unsigned within = tile % band;
    row = (first + within % high) * BLOCK_M;
    column = within / high * BLOCK_N;
}

// One try. Its record is stamped before it.
template <bool WARP>
static __device__ __forceinline__ bool tried(unsigned barrier, unsigned parity, unsigned site PIPESIM_PARAM) {
    PIPESIM_RECORD(site, 0)
    const bool done = agreed<WARP>(mbarrier_try_wait(barrier, parity));
    PIPESIM_ANSWER(done)
    return done;
}

// One lane. Steps beyond K are loaded, too: zeros.
static __device__ __forceinline__ void produce(const Gemm &gemm, const Patience &patience PIPESIM_PARAM) {
    RingState<RING_STAGES> ring = {0, 0};
    unsigned iteration = 0;
    bool alive = true;
    tensor_map_prefetch(gemm.a_map);
    tensor_map_prefetch(gemm.b_map);
    for (unsigned tile = blockIdx.x; alive && tile < gemm.problem.m_tiles * gemm.problem.n_tiles; tile += gridDim.x) {
        unsigned row, column;
        place(gemm.problem, tile, row, column);
        bool ready = false;
        for (unsigned k = 0; k < gemm.groups; ++k, ++iteration) {
            const unsigned full = gemm.full + 8 * ring.stage, empty = gemm.empty + 8 * ring.stage;
            PIPESIM_AT(iteration, ring.stage, ring.parity)
            if (LOOKAHEAD && k == 0) ready = tried<false>(empty, ring.parity, SITE_producer_try_empty PIPESIM_PASS);
            if (!ready) {
                PIPESIM_RECORD(SITE_producer_wait_empty, 0)
                alive = waited<false>(patience, empty, ring.parity, SITE_producer_wait_empty, iteration);
                if (!alive) break;
                PIPESIM_RECORD(SITE_producer_got_empty, 0)
            }
#if LOOKAHEAD
            PIPESIM_RECORD(SITE_producer_expect_full, BYTES_STAGE)
#else
            PIPESIM_RECORD_AGAIN(SITE_producer_expect_full, BYTES_STAGE)
#endif
            mbarrier_arrive_expect_tx(full, (A_BYTES + B_BYTES) * K_GROUP);
#pragma unroll
            for (unsigned j = 0; j < K_GROUP; ++j) {
                const unsigned slot = ring.stage * K_GROUP + j, from = (k * K_GROUP + j) * BLOCK_K;
                PIPESIM_RECORD(SITE_producer_copy_full, BYTES_A)
                tensor_load_2d(gemm.a + slot * A_BYTES, gemm.a_map, from, row, full);
                PIPESIM_RECORD(SITE_producer_copy_full, BYTES_B)
                tensor_load_2d(gemm.b + slot * B_BYTES, gemm.b_map, from, column, full);
            }
            ring.step();
            if (LOOKAHEAD && k + 1 < gemm.groups) {
                PIPESIM_SAY(iteration, ring.stage, ring.parity)
                ready = tried<false>(gemm.empty + 8 * ring.stage, ring.parity, SITE_producer_try_empty PIPESIM_PASS);
            }
        }
    }
    for (unsigned s = 0; DRAIN && alive && s < RING_STAGES; ++s, ++iteration) {
        PIPESIM_AT(iteration, ring.stage, ring.parity)
        PIPESIM_RECORD(SITE_producer_wait_empty, 0)
        alive = waited<false>(patience, gemm.empty + 8 * ring.stage, ring.parity, SITE_producer_wait_empty, iteration);
        if (alive) { PIPESIM_RECORD(SITE_producer_got_empty, 0) }
        ring.step();
    }
    patience.report->iterations[WARP_producer] = iteration;
}

static __device__ __forceinline__ unsigned bf16_pair(float low, float high) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// A warp's 16 rows of the sums, to the group's tile in shared memory: slabs of 64 columns.
static __device__ __forceinline__ void store_rows(const float (&d)[BLOCK_N / 2], unsigned tile, unsigned warp,
                                                  unsigned lane) {
    const unsigned row = 16 * warp + lane % 8 + 8 * (lane / 8 % 2);
#pragma unroll
    for (unsigned j = 0; j < BLOCK_N / 8; j += 2) {
        const unsigned to = tile + j / 8 * SLAB_BYTES + swizzled_128(row, j % 8 + lane / 16);
        asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(to),
                     "r"(bf16_pair(d[4 * j], d[4 * j + 1])), "r"(bf16_pair(d[4 * j + 2], d[4 * j + 3])),
                     "r"(bf16_pair(d[4 * j + 4], d[4 * j + 5])), "r"(bf16_pair(d[4 * j + 6], d[4 * j + 7]))
                     : "memory");
    }
}

static __device__ __forceinline__ void group_sync(unsigned group) {
    asm volatile("barrier.sync %0, %1;" ::"r"(1 + group), "n"(GROUP_THREADS) : "memory");
}

// A whole warp of a group, which never parts from its group.
static __device__ __forceinline__ void consume(const Gemm &gemm, const Patience &patience, unsigned group,
                                               unsigned warp, unsigned lane PIPESIM_PARAM) {
    RingState<RING_STAGES> ring = {0, 0};
    const unsigned mine = gemm.c + group * C_BYTES;
    unsigned iteration = 0;
    bool alive = true;
    PIPESIM_AT(0, 0, 0)
    if (warp == 0) {
        for (unsigned s = 0; s < RING_STAGES; ++s) {
            PIPESIM_SAY(0, s, 0)
            PIPESIM_RECORD(SITE_consumer_arrive_empty, 1)
            if (lane == 0) mbarrier_arrive(gemm.empty + 8 * s);
        }
        if (lane == 0) tensor_map_prefetch(gemm.c_map);
    }
    for (unsigned tile = blockIdx.x; tile < gemm.problem.m_tiles * gemm.problem.n_tiles; tile += gridDim.x) {
        float d[BLOCK_N / 2] = {};
        bool ready = false;
        for (unsigned k = 0; k < gemm.groups; ++k, ++iteration) {
            const unsigned stage = ring.stage, full = gemm.full + 8 * stage;
            if (alive) {
                if (iteration) {
                    PIPESIM_AT(iteration, stage, ring.parity)
                } else {
                    PIPESIM_SAY(0, stage, ring.parity)
                }
                if (LOOKAHEAD && k == 0) ready = tried<true>(full, ring.parity, SITE_consumer_try_full PIPESIM_PASS);
                if (!ready) {
                    PIPESIM_RECORD(SITE_consumer_wait_full, 0)
                    alive = waited_or_stopped<true>(patience, full, ring.parity, SITE_consumer_wait_full,
                                                    iteration PIPESIM_PASS);
                    PIPESIM_RECORD(SITE_consumer_got_full, 0)
                }
                if (alive) mark_wait(patience, iteration);
            }
            wgmma_hold(d);
            wgmma_fence();
#pragma unroll
            for (unsigned j = 0; j < K_GROUP; ++j) {
                const unsigned slot = stage * K_GROUP + j;
                const unsigned long long a = wgmma_k_major(gemm.a + slot * A_BYTES + group * SLAB_BYTES);
                const unsigned long long b = wgmma_k_major(gemm.b + slot * B_BYTES);
#pragma unroll
                for (unsigned i = 0; i < BLOCK_K / WGMMA_K; ++i)  // 32 bytes on, in units of 16
                    Wgmma<BLOCK_N>::shared(d, a + 2 * i, b + 2 * i, 1);
            }
            wgmma_commit();
            ring.step();
            if (LOOKAHEAD && alive && k + 1 < gemm.groups) {
                PIPESIM_SAY(iteration, ring.stage, ring.parity)
                ready = tried<true>(gemm.full + 8 * ring.stage, ring.parity, SITE_consumer_try_full PIPESIM_PASS);
                PIPESIM_SAY(iteration, stage, 0)
            }
            const bool gives_back = PIPESIM_BEFORE(warp == 0 && alive && lane == 0);
            wgmma_wait<0>();
            wgmma_hold(d);
            PIPESIM_RECORD_IF(warp == 0, SITE_consumer_arrive_empty, 1)
            // The product is finished in all four warps: one lane gives the stage back for them.
            if (gives_back) mbarrier_arrive(gemm.empty + 8 * stage);
        }
        const unsigned begun = clock_cycles();
        PIPESIM_RECORD(SITE_consumer_work_begin, 0)
        store_rows(d, mine, warp, lane);
        while (clock_cycles() - begun < gemm.problem.epilogue) {
        }
        PIPESIM_RECORD(SITE_consumer_work_end, 0)
        async_proxy_fence();
        group_sync(group);
        if (warp == 0 && elect_one()) {
            unsigned row, column;
            place(gemm.problem, tile, row, column);
            for (unsigned slab = 0; alive && slab < SLABS; ++slab)
                tensor_store_2d(gemm.c_map, column + 64 * slab, row + GROUP_ROWS * group, mine + slab * SLAB_BYTES);
            bulk_commit();
            bulk_wait_read<0>();
        }
        __syncwarp();
        group_sync(group);  // the tile in shared memory may be written again
    }
    if (lane == 0) patience.report->iterations[patience.agent] = iteration;
}

// The maps' boxes: A [BLOCK_M][64], B [BLOCK_N][64], C [64][64]. k_iters is 1 or more.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
gemm_sm90(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
          const __grid_constant__ TensorMap c_map, unsigned m_tiles, unsigned n_tiles, unsigned k_iters, unsigned raster,
          unsigned epilogue, PIPESIM_RUN_PARAMS) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned a = shared_address(memory), b = a + SLOTS * A_BYTES, c = b + SLOTS * B_BYTES;
    const unsigned barriers = c + NUM_CONSUMER * C_BYTES;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    CtaReport *report = reports + blockIdx.x;
    const Patience patience = {report, stop, deadline_ns, warp};
    const Gemm gemm = {&a_map, &b_map, &c_map, {m_tiles, n_tiles, k_iters, raster, epilogue}, a, b, c,
                       barriers + 8 * BARRIER_full, barriers + 8 * BARRIER_empty, (k_iters + K_GROUP - 1) / K_GROUP};
    CTA_BEGIN(report, barriers)
    if (warp < WARPS_producer) {
        asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(NUM_CONSUMER == 2 ? 40 : 24));
        if (warp == 0 && elect_one()) produce(gemm, patience PIPESIM_PASS);
        __syncwarp();
        __syncthreads();
        if (threadIdx.x == 0) {
            report->loop_end = clock_cycles64();
            if (report->status != STATUS_UNKNOWN) spin(LANDING_CYCLES);
            PIPESIM_ANCHOR(blockIdx.x, 1)
            report_end(report, barriers, BARRIERS);
        }
        __syncwarp();
        CTA_FLUSH(barriers)
    } else {
        asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(NUM_CONSUMER == 2 ? 232 : 240));
        const unsigned index = warp - WARP_consumer;
        consume(gemm, patience, index / 4, index % 4, lane PIPESIM_PASS);
        __syncwarp();
        __syncthreads();
        CTA_FLUSH(barriers)
    }
}
