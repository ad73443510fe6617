// D = sum over k of A[k] + beta * C, tile by tile, as the last step of a split-K product with a residual: the kernel behind
// the protocol `epilogue_residual`, the twin on Hopper of Blackwell's `conv_epilogue`. Needs sm_90.
//
// The load warp copies K_ITERS tiles of A a tile of D into a ring; the mma warp (here: its sum) adds them up in an
// accumulator in shared memory; the epilogue-load warp copies the slices of C; 128 epilogue threads add both, slice by
// slice, and store each slice of D by one bulk copy. A scheduler warp hands out tiles, as in persistent_scheduler.cu.
//
// The load-order barrier lets the epilogue-load warp begin when the first loads of a tile are under way. FIRST_TILE_ONLY 1
// orders the first tile, as CUTLASS does. 0 orders every tile, as upstream does: the load warp, which no warp holds back,
// may arrive twice before the other has looked once, and then the wait misses both. order_delay and epilogue are spun
// where a schedule that goes wrong delays these warps. Nothing traps then: a wait meets its deadline.
//
// Compile-time parameters: STAGES 1..16, ACCUMULATORS 1..4, EPI_STAGES 1..8, CLC_STAGES 1..4, SLICES 1..32, SLICE_BYTES (a
// multiple of 2048), RESIDUAL and FIRST_TILE_ONLY 0 or 1.
#define PIPESIM_TABLE "epilogue_residual.table.h"
#include "clc.cuh"

static_assert(STAGES >= 1 && STAGES <= 16, "STAGES must be 1..16");
static_assert(ACCUMULATORS >= 1 && ACCUMULATORS <= 4, "ACCUMULATORS must be 1..4");
static_assert(EPI_STAGES >= 1 && EPI_STAGES <= 8, "EPI_STAGES must be 1..8");
static_assert(CLC_STAGES >= 1 && CLC_STAGES <= 4, "CLC_STAGES must be 1..4");
static_assert(SLICES >= 1 && SLICES <= 32, "SLICES must be 1..32");
static_assert(SLICE_BYTES >= 2048 && SLICE_BYTES % 2048 == 0, "SLICE_BYTES must be a positive multiple of 2048");

#define THREADS (WARPS * 32)
static constexpr unsigned TILE_BYTES = SLICES * SLICE_BYTES, OUTPUTS = 2, EPILOGUE_THREADS = 128;
static constexpr unsigned ROW_BYTES = SLICE_BYTES / EPILOGUE_THREADS;  // of a slice, for one thread
enum Bytes : unsigned { BYTES_TILE, BYTES_SLICE };  // what a record's value says was expected or copied

// What the roles share: shared addresses and the sizes of the run.
struct Cta {
    unsigned a_at, accumulators_at, source_at, d_at, responses_at, barriers;
    unsigned tiles, k_iters, epilogue, order_delay;
    float beta;
    Patience patience;
    __device__ __forceinline__ unsigned group(unsigned first) const { return barriers + 8 * first; }
};

static __device__ __forceinline__ void store_shared(unsigned address, const uint4 &v) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

// a + scale * b, four floats each.
static __device__ __forceinline__ uint4 plus(const uint4 &a, float scale, const uint4 &b) {
    uint4 v;
    v.x = __float_as_uint(__uint_as_float(a.x) + scale * __uint_as_float(b.x));
    v.y = __float_as_uint(__uint_as_float(a.y) + scale * __uint_as_float(b.y));
    v.z = __float_as_uint(__uint_as_float(a.z) + scale * __uint_as_float(b.z));
    v.w = __float_as_uint(__uint_as_float(a.w) + scale * __uint_as_float(b.w));
    return v;
}

// The 128 epilogue threads meet; true if all of them are well.
static __device__ __forceinline__ bool epilogue_meets(bool well) {
    unsigned all;
    asm volatile(
        "{\n\t.reg .pred p, q;\n\t"
        "setp.ne.u32 p, %1, 0;\n\t"
        "barrier.cta.red.and.pred q, 1, 128, p;\n\t"
        "selp.u32 %0, 1, 0, q;\n\t}" : "=r"(all) : "r"((unsigned)well) : "memory");
    return all != 0;
}

// Lets the epilogue-load warp begin. Nothing holds this back.
static __device__ __forceinline__ void order_arrive(const Cta &cta, unsigned n PIPESIM_PARAM) {
    PIPESIM_SAY(n, 0, 0)
    PIPESIM_RECORD(SITE_load_arrive_load_order, 1)
    mbarrier_arrive(cta.group(BARRIER_load_order));
}

// One lane: the tiles of A for one tile of D; after the prologue, the order.
static __device__ __forceinline__ bool load_tile(const Cta &cta, const unsigned char *from, RingState<STAGES> &pipe,
                                                 bool ordered, unsigned &copies, unsigned &n PIPESIM_PARAM) {
    const unsigned prologue = cta.k_iters < STAGES ? cta.k_iters : STAGES;
    if (ordered && prologue == 0) order_arrive(cta, n PIPESIM_PASS);
    for (unsigned k = 0; k < cta.k_iters; ++k) {
        if (!recorded_wait<false>(cta.patience, cta.group(BARRIER_input_empty), pipe.stage, pipe.parity,
                                  SITE_load_wait_input_empty, SITE_load_got_input_empty, n PIPESIM_PASS))
            return false;
        const unsigned full = cta.group(BARRIER_input_full) + 8 * pipe.stage;
        PIPESIM_RECORD(SITE_load_expect_input_full, BYTES_TILE)
        mbarrier_arrive_expect_tx(full, TILE_BYTES);
        PIPESIM_RECORD(SITE_load_copy_input_full, BYTES_TILE)
        bulk_load(cta.a_at + TILE_BYTES * pipe.stage, from + (unsigned long long)k * TILE_BYTES, TILE_BYTES, full);
        ++copies;
        pipe.step();
        if (ordered && k + 1 == prologue) order_arrive(cta, n PIPESIM_PASS);
    }
    return true;
}

static __device__ __forceinline__ void load(const Cta &cta, const unsigned char *a PIPESIM_PARAM) {
    RingState<STAGES> pipe = {0, 1};
    ClcState clc = {0, 0}, throttle = {0, 1};
    unsigned n = 0, copies = 0;
    for (unsigned tile = 0; tile < cta.tiles;) {
        if (!begin_tile(cta, throttle, n PIPESIM_PASS)) break;
        bool well = true;
        if (elect_one())
            well = load_tile(cta, a + (unsigned long long)tile * cta.k_iters * TILE_BYTES, pipe,
                             !FIRST_TILE_ONLY || tile == 0, copies, n PIPESIM_PASS);
        __syncwarp();
        if (!agreed<true>(well)) break;
        if (!fetch<SITE_load_wait_clc_full, SITE_load_got_clc_full, SITE_load_arrive_clc_empty>(cta, clc, tile,
                                                                                            n PIPESIM_PASS))
            break;
    }
    wait_for_landing<STAGES>(cta.group(BARRIER_input_full), copies);
    __syncwarp();
}

static __device__ __forceinline__ void load_source(const Cta &cta, const unsigned char *c PIPESIM_PARAM) {
    RingState<EPI_STAGES> pipe = {0, 1};
    ClcState clc = {0, 0};
    RingState<1> order = {0, 0};
    unsigned n = 0, copies = 0;
    bool well = true;
    for (unsigned tile = 0; tile < cta.tiles;) {
        if (!FIRST_TILE_ONLY || tile == 0) {
            well = recorded_wait<true>(cta.patience, cta.group(BARRIER_load_order), 0, order.parity,
                                       SITE_epilogue_load_wait_load_order, SITE_epilogue_load_got_load_order,
                                       n PIPESIM_PASS);
            order.step();
        }
        for (unsigned s = 0; RESIDUAL && s < SLICES && well; ++s) {
            well = recorded_wait<true>(cta.patience, cta.group(BARRIER_epi_load_empty), pipe.stage, pipe.parity,
                                       SITE_epilogue_load_wait_epi_load_empty, SITE_epilogue_load_got_epi_load_empty,
                                       n PIPESIM_PASS);
            if (!well) break;
            if (elect_one()) {
                const unsigned full = cta.group(BARRIER_epi_load_full) + 8 * pipe.stage;
                PIPESIM_RECORD(SITE_epilogue_load_expect_epi_load_full, BYTES_SLICE)
                mbarrier_arrive_expect_tx(full, SLICE_BYTES);
                PIPESIM_RECORD(SITE_epilogue_load_copy_epi_load_full, BYTES_SLICE)
                bulk_load(cta.source_at + SLICE_BYTES * pipe.stage,
                          c + ((unsigned long long)tile * SLICES + s) * SLICE_BYTES, SLICE_BYTES, full);
            }
            __syncwarp();
            ++copies;
            pipe.step();
        }
        if (!well || !fetch<SITE_epilogue_load_wait_clc_full, SITE_epilogue_load_got_clc_full,
                            SITE_epilogue_load_arrive_clc_empty>(cta, clc, tile, n PIPESIM_PASS))
            break;
        if (tile < cta.tiles) {
            PIPESIM_RECORD(SITE_epilogue_load_work_begin, 0)
            if (cta.order_delay != 0) spin(cta.order_delay);
            PIPESIM_RECORD(SITE_epilogue_load_work_end, 0)
            __syncwarp();
        }
    }
    wait_for_landing<EPI_STAGES>(cta.group(BARRIER_epi_load_full), copies);
    __syncwarp();
}

// One warp adds a tile of A to the accumulator, or puts it there (k 0).
static __device__ __forceinline__ void accumulate(unsigned accumulator, unsigned a, unsigned k, unsigned lane) {
    const uint4 zero = {0, 0, 0, 0};
#pragma unroll 4
    for (unsigned at = 16 * lane; at < TILE_BYTES; at += 16 * 32)
        store_shared(accumulator + at, plus(k == 0 ? zero : load_shared(accumulator + at), 1.0f, load_shared(a + at)));
}

static __device__ __forceinline__ void sum(const Cta &cta, unsigned lane PIPESIM_PARAM) {
    RingState<STAGES> pipe = {0, 0};
    RingState<ACCUMULATORS> output = {0, 1};
    ClcState clc = {0, 0};
    unsigned n = 0;
    for (unsigned tile = 0; tile < cta.tiles;) {
        if (!recorded_wait<true>(cta.patience, cta.group(BARRIER_output_empty), output.stage, output.parity,
                                 SITE_mma_wait_output_empty, SITE_mma_got_output_empty, n PIPESIM_PASS))
            return;
        const unsigned accumulator = cta.accumulators_at + TILE_BYTES * output.stage;
        for (unsigned at = 16 * lane; at < TILE_BYTES && cta.k_iters == 0; at += 16 * 32)
            store_shared(accumulator + at, uint4{0, 0, 0, 0});
        for (unsigned k = 0; k < cta.k_iters; ++k) {
            if (!recorded_wait<true>(cta.patience, cta.group(BARRIER_input_full), pipe.stage, pipe.parity,
                                     SITE_mma_wait_input_full, SITE_mma_got_input_full, n PIPESIM_PASS))
                return;
            accumulate(accumulator, cta.a_at + TILE_BYTES * pipe.stage, k, lane);
            __syncwarp();
            PIPESIM_RECORD(SITE_mma_arrive_input_empty, 1)
            if (lane == 0) mbarrier_arrive(cta.group(BARRIER_input_empty) + 8 * pipe.stage);
            pipe.step();
        }
        __syncwarp();
        PIPESIM_SAY(n, output.stage, 0)
        PIPESIM_RECORD(SITE_mma_arrive_output_full, 1)
        if (lane == 0) mbarrier_arrive(cta.group(BARRIER_output_full) + 8 * output.stage);
        output.step();
        if (!fetch<SITE_mma_wait_clc_full, SITE_mma_got_clc_full, SITE_mma_arrive_clc_empty>(cta, clc, tile,
                                                                                        n PIPESIM_PASS))
            return;
    }
}

// One slice: this thread's row of the accumulator and of the source, and of the output. False if any warp gave up.
static __device__ __forceinline__ bool finish_slice(const Cta &cta, unsigned s, unsigned accumulator_stage,
                                                    RingState<EPI_STAGES> &source, unsigned out, unsigned char *d,
                                                    bool well, unsigned &n PIPESIM_PARAM) {
    const unsigned row = ROW_BYTES * threadIdx.x;
    const unsigned accumulator = cta.accumulators_at + TILE_BYTES * accumulator_stage + SLICE_BYTES * s + row;
    uint4 values[ROW_BYTES / 16];
    if (well) {
#pragma unroll
        for (unsigned v = 0; v < ROW_BYTES / 16; ++v) values[v] = load_shared(accumulator + 16 * v);
        if (s == SLICES - 1) {
            __syncwarp();
            PIPESIM_SAY(n, accumulator_stage, 0)
            PIPESIM_RECORD(SITE_epilogue_arrive_output_empty, 32)
            mbarrier_arrive(cta.group(BARRIER_output_empty) + 8 * accumulator_stage);
        }
    }
    if (RESIDUAL && well) {
        well = recorded_wait<true>(cta.patience, cta.group(BARRIER_epi_load_full), source.stage, source.parity,
                                   SITE_epilogue_wait_epi_load_full, SITE_epilogue_got_epi_load_full, n PIPESIM_PASS);
        if (well) {
            const unsigned from = cta.source_at + SLICE_BYTES * source.stage + row;
#pragma unroll
            for (unsigned v = 0; v < ROW_BYTES / 16; ++v) values[v] = plus(values[v], cta.beta, load_shared(from + 16 * v));
            __syncwarp();
            PIPESIM_RECORD(SITE_epilogue_arrive_epi_load_empty, 32)
            mbarrier_arrive(cta.group(BARRIER_epi_load_empty) + 8 * source.stage);
            source.step();
        }
    }
    if (well) {
        PIPESIM_RECORD(SITE_epilogue_work_begin, 0)
        if (cta.epilogue != 0) spin(cta.epilogue);
        PIPESIM_RECORD(SITE_epilogue_work_end, 0)
        __syncwarp();
    }
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(OUTPUTS - 1) : "memory");
    __syncwarp();
    if (!epilogue_meets(well)) return false;
    const unsigned to = cta.d_at + SLICE_BYTES * out;
#pragma unroll
    for (unsigned v = 0; v < ROW_BYTES / 16; ++v) store_shared(to + row + 16 * v, values[v]);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    epilogue_meets(true);
    if (threadIdx.x == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                     ::"l"(__cvta_generic_to_global(d)), "r"(to), "r"(SLICE_BYTES) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    }
    __syncwarp();
    return true;
}

// The four epilogue warps. They meet once a slice and once a tile, and leave together if one of them gave up.
static __device__ __forceinline__ void finish(const Cta &cta, unsigned char *d PIPESIM_PARAM) {
    RingState<ACCUMULATORS> output = {0, 0};
    RingState<EPI_STAGES> source = {0, 0};
    ClcState clc = {0, 0};
    unsigned n = 0, out = 0;
    bool well = true;
    for (unsigned tile = 0; tile < cta.tiles && well;) {
        well = recorded_wait<true>(cta.patience, cta.group(BARRIER_output_full), output.stage, output.parity,
                                   SITE_epilogue_wait_output_full, SITE_epilogue_got_output_full, n PIPESIM_PASS);
        for (unsigned s = 0; s < SLICES; ++s) {
            unsigned char *to = d + ((unsigned long long)tile * SLICES + s) * SLICE_BYTES;
            well = finish_slice(cta, s, output.stage, source, out, to, well, n PIPESIM_PASS);
            if (!well) break;
            out ^= 1;
        }
        if (!well) break;
        output.step();
        well = fetch<SITE_epilogue_wait_clc_full, SITE_epilogue_got_clc_full, SITE_epilogue_arrive_clc_empty>(
            cta, clc, tile, n PIPESIM_PASS);
        well = epilogue_meets(well);
    }
    if (threadIdx.x == 0) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    __syncwarp();
}

// a: [grid][tiles][k_iters][TILE_BYTES]; c, d: [grid][tiles][TILE_BYTES]; all float32. counters: [grid], 0.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
epilogue_residual(const unsigned char *a, const unsigned char *c, unsigned *counters, unsigned char *d, float beta,
                  unsigned tiles, unsigned k_iters, unsigned epilogue, unsigned order_delay, PIPESIM_RUN_PARAMS) {
    extern __shared__ __align__(128) unsigned char memory[];
    const unsigned a_at = shared_address(memory), accumulators_at = a_at + STAGES * TILE_BYTES;
    const unsigned source_at = accumulators_at + ACCUMULATORS * TILE_BYTES, d_at = source_at + EPI_STAGES * SLICE_BYTES;
    const unsigned responses_at = d_at + OUTPUTS * SLICE_BYTES, barriers = responses_at + CLC_STAGES * RESPONSE_BYTES;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    CtaReport *report = reports + blockIdx.x;
    const Cta cta = {a_at, accumulators_at, source_at, d_at, responses_at, barriers, tiles, k_iters, epilogue,
                     order_delay, beta, {report, stop, deadline_ns, warp}};

    CTA_BEGIN(report, barriers)
    const unsigned long long first = (unsigned long long)blockIdx.x * tiles * TILE_BYTES;
    if (warp < WARPS_epilogue)
        finish(cta, d + first PIPESIM_PASS);
    else if (warp == WARP_scheduler)
        schedule(cta, counters + blockIdx.x, lane PIPESIM_PASS);
    else if (warp == WARP_load)
        load(cta, a + first * k_iters PIPESIM_PASS);
    else if (warp == WARP_mma)
        sum(cta, lane PIPESIM_PASS);
    else
        load_source(cta, c + first PIPESIM_PASS);
    CTA_END(report, barriers)
}
