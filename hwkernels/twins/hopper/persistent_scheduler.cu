// Moments of the rows of a matrix, by a persistent kernel whose scheduler warp hands out the rows: the kernel behind the
// protocol `persistent_scheduler`. It is the CLC protocol of Blackwell's kernels with Hopper's means: a counter in global
// memory answers in place of clusterlaunchcontrol.try_cancel. Needs sm_90.
//
// Row t is K_ITERS tiles of TILE_BYTES of float32. The load warp copies them into a ring; consumer warp c finds the mean
// of x^(c + 1) over the row. The number of the next row goes from the scheduler through a ring of responses to all roles,
// the scheduler's own warp included; a throttle keeps it from fetching more than CLC_STAGES rows before the load warp.
// Every CTA has a counter and a matrix of its own, so that it goes through as many rows as the protocol says.
//
// Compile-time parameters: STAGES 1..16, TILE_BYTES (a multiple of 16), CONSUMER_WARPS 1..8, CLC_STAGES 1..8.
#define PIPESIM_TABLE "persistent_scheduler.table.h"
#include "clc.cuh"

static_assert(STAGES >= 1 && STAGES <= 16, "STAGES must be 1..16");
static_assert(TILE_BYTES >= 16 && TILE_BYTES % 16 == 0, "TILE_BYTES must be a positive multiple of 16");
static_assert(CONSUMER_WARPS >= 1 && CONSUMER_WARPS <= 8, "CONSUMER_WARPS must be 1..8");
static_assert(CLC_STAGES >= 1 && CLC_STAGES <= 8, "CLC_STAGES must be 1..8");

#define THREADS (WARPS * 32)

typedef RingState<STAGES> PipeState;

// What the roles share: shared addresses of tiles, responses and barriers, and the sizes of the run. Its tiles are rows.
struct Cta {
    unsigned tiles_at, responses_at, barriers;
    unsigned tiles, k_iters, work;
    Patience patience;
    __device__ __forceinline__ unsigned group(unsigned first) const { return barriers + 8 * first; }
};

// One lane: the tiles of a row.
static __device__ __forceinline__ bool load_row(const Cta &cta, const unsigned char *from, PipeState &pipe,
                                                unsigned &copies, unsigned &n PIPESIM_PARAM) {
    for (unsigned k = 0; k < cta.k_iters; ++k) {
        if (!recorded_wait<false>(cta.patience, cta.group(BARRIER_pipe_empty), pipe.stage, pipe.parity,
                                  SITE_load_wait_pipe_empty, SITE_load_got_pipe_empty, n PIPESIM_PASS))
            return false;
        const unsigned full = cta.group(BARRIER_pipe_full) + 8 * pipe.stage;
        PIPESIM_RECORD(SITE_load_expect_pipe_full, 0)
        mbarrier_arrive_expect_tx(full, TILE_BYTES);
        PIPESIM_RECORD(SITE_load_copy_pipe_full, 0)
        bulk_load(cta.tiles_at + TILE_BYTES * pipe.stage, from + (unsigned long long)k * TILE_BYTES, TILE_BYTES, full);
        ++copies;
        pipe.step();
    }
    return true;
}

static __device__ __forceinline__ void load(const Cta &cta, const unsigned char *source PIPESIM_PARAM) {
    PipeState pipe = {0, 1};
    ClcState clc = {0, 0}, throttle = {0, 1};
    unsigned n = 0, copies = 0;
    for (unsigned row = 0; row < cta.tiles;) {
        if (!begin_tile(cta, throttle, n PIPESIM_PASS)) break;
        bool well = true;
        if (elect_one())
            well = load_row(cta, source + (unsigned long long)row * cta.k_iters * TILE_BYTES, pipe, copies, n PIPESIM_PASS);
        __syncwarp();
        if (!agreed<true>(well)) break;
        if (!fetch<SITE_load_wait_clc_full, SITE_load_got_clc_full, SITE_load_arrive_clc_empty>(cta, clc, row,
                                                                                            n PIPESIM_PASS))
            break;
    }
    wait_for_landing<STAGES>(cta.group(BARRIER_pipe_full), copies);
    __syncwarp();
}

// One lane's part of the sum over a tile, each x to the power of consumer + 1; a warp has one consumer.
static __device__ __forceinline__ float sum_tile(unsigned tile, unsigned consumer, unsigned lane) {
    constexpr unsigned vectors = TILE_BYTES / 16, together = 4;
    float sum = 0;
    for (unsigned first = lane; first < vectors; first += 32 * together) {
        float x[4 * together], y[4 * together];
#pragma unroll
        for (unsigned v = 0; v < together; ++v) {
            uint4 bits = {0, 0, 0, 0};
            if (first + 32 * v < vectors) bits = load_shared(tile + 16 * (first + 32 * v));
            x[4 * v] = __uint_as_float(bits.x);
            x[4 * v + 1] = __uint_as_float(bits.y);
            x[4 * v + 2] = __uint_as_float(bits.z);
            x[4 * v + 3] = __uint_as_float(bits.w);
        }
#pragma unroll
        for (unsigned i = 0; i < 4 * together; ++i) y[i] = x[i];
#pragma unroll 1
        for (unsigned p = 0; p < consumer; ++p)
#pragma unroll
            for (unsigned i = 0; i < 4 * together; ++i) y[i] *= x[i];
#pragma unroll
        for (unsigned i = 0; i < 4 * together; i += 4) sum += (y[i] + y[i + 1]) + (y[i + 2] + y[i + 3]);
    }
    return sum;
}

static __device__ __forceinline__ void consume(const Cta &cta, float *moments, unsigned consumer, unsigned lane PIPESIM_PARAM) {
    PipeState pipe = {0, 0};
    ClcState clc = {0, 0};
    unsigned n = 0;
    for (unsigned row = 0; row < cta.tiles;) {
        float mine = 0;
        for (unsigned k = 0; k < cta.k_iters; ++k) {
            if (!recorded_wait<true>(cta.patience, cta.group(BARRIER_pipe_full), pipe.stage, pipe.parity,
                                     SITE_consumer_wait_pipe_full, SITE_consumer_got_pipe_full, n PIPESIM_PASS))
                return;
            mine += sum_tile(cta.tiles_at + TILE_BYTES * pipe.stage, consumer, lane);
            asm volatile("" ::"f"(mine) : "memory");
            PIPESIM_RECORD(SITE_consumer_work_begin, 0)
            if (cta.work != 0) spin(cta.work);
            PIPESIM_RECORD(SITE_consumer_work_end, 0)
            __syncwarp();
            PIPESIM_RECORD(SITE_consumer_arrive_pipe_empty, 1)
            if (lane == 0) mbarrier_arrive(cta.group(BARRIER_pipe_empty) + 8 * pipe.stage);
            pipe.step();
        }
        for (unsigned step = 16; step > 0; step /= 2) mine += __shfl_xor_sync(FULL_WARP, mine, step);
        const float words = cta.k_iters * (TILE_BYTES / 4);
        if (lane == 0) moments[row * CONSUMER_WARPS + consumer] = words > 0 ? mine / words : 0.0f;
        if (!fetch<SITE_consumer_wait_clc_full, SITE_consumer_got_clc_full, SITE_consumer_arrive_clc_empty>(
                cta, clc, row, n PIPESIM_PASS))
            return;
    }
}

// source: [grid][rows][k_iters][TILE_BYTES]. counters: [grid], 0. moments: [grid * rows][CONSUMER_WARPS].
extern "C" __global__ void __launch_bounds__(THREADS, 1)
persistent_scheduler(const unsigned char *source, unsigned *counters, float *moments, unsigned rows, unsigned k_iters,
                     unsigned work, PIPESIM_RUN_PARAMS) {
    extern __shared__ __align__(128) unsigned char memory[];
    const unsigned tiles_at = shared_address(memory), responses_at = tiles_at + STAGES * TILE_BYTES;
    const unsigned barriers = responses_at + CLC_STAGES * RESPONSE_BYTES;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    CtaReport *report = reports + blockIdx.x;
    const Cta cta = {tiles_at, responses_at, barriers, rows, k_iters, work, {report, stop, deadline_ns, warp}};

    CTA_BEGIN(report, barriers)
    const unsigned long long first = (unsigned long long)blockIdx.x * rows;
    if (warp == WARP_scheduler)
        schedule(cta, counters + blockIdx.x, lane PIPESIM_PASS);
    else if (warp == WARP_load)
        load(cta, source + first * k_iters * TILE_BYTES PIPESIM_PASS);
    else
        consume(cta, moments + first * CONSUMER_WARPS, warp - WARP_consumer, lane PIPESIM_PASS);
    CTA_END(report, barriers)
}
