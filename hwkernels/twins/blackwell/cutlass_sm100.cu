// C = A * B^T in bf16 with fp32 sums on Blackwell as CUTLASS's warp-specialised kernel hands it from warp to warp: the kernel
// behind the protocol `cutlass_sm100` with cta_group 1 and residual 0. No CUTLASS is in it. Needs sm_100a. NEVER RUN on a GPU
// (clc_sm100.cuh says what is known of it).
//
// A is [M][K], B [N][K], C [M][N], row-major, K and N multiples of 8; a step of K is 64 elements. Where it differs from
// gemm_sm100.cu: a role but the load warp asks for its next tile before it works on this one; both sides of the ring try the next
// stage before they need it; the epilogue waits until the other warps are there; the MMA warp drains its accumulators, so that
// no barrier has to tell it to give tensor memory back; a slice's buffer is waited for after the store before, not before the
// write. The load-order barriers are there, and nobody uses them without a residual.
//
// clc_sm100.cuh has the compile-time parameters (but K_GROUP).
#define PIPESIM_TABLE "cutlass_sm100.table.h"
#define K_GROUP 1
#include "clc_sm100.cuh"

static constexpr unsigned BLOCK_K = 64;

// One try of all lanes, stamped before it.
static __device__ __forceinline__ bool tried(const Sm100 &cta, unsigned group, unsigned stage, unsigned parity, unsigned site,
                                             unsigned &n PIPESIM_PARAM) {
    PIPESIM_AT(n, stage, parity)
    PIPESIM_RECORD(site, 0)
    const bool done = agreed<true>(mbarrier_try_wait(cta.barrier(group, stage), parity));
    PIPESIM_ANSWER(done)
#if PIPESIM_TRACE
    ++n;
#else
    if (done) mark_wait(cta.patience, n++);  // as the wait that it saves; n counts nothing else in the epilogue, which is marked
#endif
    return done;
}
#define TRY(role, group, ring) \
    tried(cta, BARRIER_##group, (ring).stage, (ring).parity, SITE_##role##_try_##group, n PIPESIM_PASS)

// All lanes of the warps that must be there before the epilogue begins.
static __device__ __forceinline__ void let_epilogue_begin(const Sm100 &cta, unsigned site, unsigned &n PIPESIM_PARAM) {
    PIPESIM_AT(n, 0, 0)
    PIPESIM_RECORD(site, 32)
    mbarrier_arrive(cta.barrier(BARRIER_epilogue_throttle, 0));
    ++n;
}

// Some steps of a tile. The last try is for nothing. False if a wait gave up.
static __device__ __forceinline__ bool load_steps(const Sm100 &cta, InputState &input, unsigned tile, unsigned first,
                                                  unsigned last, unsigned &n PIPESIM_PARAM) {
    bool ready = TRY(load, input_empty, input);
    for (unsigned k = first; k < last; ++k) {
        if (!ready) WAIT(load, input_empty, input)
        const unsigned stage = input.stage, full = cta.barrier(BARRIER_input_full, stage);
        const bool one = elect_one();
        PIPESIM_SAY(n, stage, 0)
        PIPESIM_RECORD(SITE_load_expect_input_full, BYTES_STAGE)
        if (one) mbarrier_arrive_expect_tx(full, A_BYTES + B_BYTES);
        __syncwarp();
        input.step();
        ready = TRY(load, input_empty, input);
        PIPESIM_SAY(n, stage, 0)
        PIPESIM_RECORD(SITE_load_copy_input_full, BYTES_A)
        if (one) tensor_load_2d(cta.a + stage * A_BYTES, cta.a_map, k * BLOCK_K, cta.row(tile), full);
        PIPESIM_RECORD(SITE_load_copy_input_full, BYTES_B)
        if (one) tensor_load_2d(cta.b + stage * B_BYTES, cta.b_map, k * BLOCK_K, cta.column(tile), full);
        __syncwarp();
    }
    return true;
}

static __device__ __forceinline__ bool load(const Sm100 &cta PIPESIM_PARAM) {
    ClcState throttle = {0, 1}, clc = {0, 0};
    InputState input = {0, 1};
    const unsigned prologue = cta.groups < RING_STAGES ? cta.groups : RING_STAGES;
    unsigned n = 0, tile = blockIdx.x;
    let_epilogue_begin(cta, SITE_load_arrive_epilogue_throttle, n PIPESIM_PASS);
    for (bool more = true; more;) {
        if (!throttle_signal(cta, throttle, n PIPESIM_PASS)) return false;
        if (!load_steps(cta, input, tile, 0, prologue, n PIPESIM_PASS)) return false;
        if (!load_steps(cta, input, tile, prologue, cta.groups, n PIPESIM_PASS)) return false;
        NEXT_TILE(load)
    }
    return drain(cta, input, n PIPESIM_PASS);
}

static __device__ __forceinline__ bool multiply(const Sm100 &cta PIPESIM_PARAM) {
    ClcState clc = {0, 0};
    InputState input = {0, 0};
    OutputState output = {0, 1};
    unsigned n = 0, tile = blockIdx.x;
    const unsigned tmem = allocate(cta);
    let_epilogue_begin(cta, SITE_mma_arrive_epilogue_throttle, n PIPESIM_PASS);
    for (bool more = true; more;) {
        NEXT_TILE(mma)
        WAIT(mma, output_empty, output)
        tcgen05_after_sync();
        bool ready = TRY(mma, input_full, input);
        for (unsigned k = 0; k < cta.groups; ++k) {
            if (!ready) WAIT(mma, input_full, input)
            tcgen05_after_sync();
            const unsigned stage = input.stage;
            input.step();
            if (k + 1 < cta.groups) ready = TRY(mma, input_full, input);
            if (elect_one()) {
                multiply_bf16(cta, tmem + output.stage * BLOCK_N, stage, k);
                tcgen05_commit(cta.barrier(BARRIER_input_empty, stage));
                if (k + 1 == cta.groups) tcgen05_commit(cta.barrier(BARRIER_output_full, output.stage));
            }
            __syncwarp();
        }
        output.step();
    }
    for (unsigned s = 0; s < ACCUMULATORS; ++s) {  // until the epilogue has read every tile
        WAIT(mma, output_empty, output)
        output.step();
    }
    tcgen05_after_sync();
    tcgen05_dealloc<COLUMNS>(tmem);
    return true;
}

static __device__ __forceinline__ bool finish(const Sm100 &cta PIPESIM_PARAM) {
    ClcState clc = {0, 0};
    OutputState output = {0, 0};
    const RingState<1> begin = {0, 0};
    unsigned n = 0, tile = blockIdx.x, slices = 0;
    const bool may_begin = WAITED(epilogue, epilogue_throttle, begin);
    const unsigned tmem = find_tmem(cta);
    if (!epilogue_meets(may_begin)) return false;
    for (bool more = true; more;) {
        const unsigned row = cta.row(tile), column = cta.column(tile);
        EPILOGUE_NEXT_TILE()
        const bool ready = TRY(epilogue, output_full, output);
        if (!ready) EPILOGUE_WAIT(output_full, output)
        tcgen05_after_sync();
        for (unsigned slice = 0; slice < SLICES; ++slice) {
            float v[SLICE];
            unsigned pairs[SLICE / 2];
            load_slice(v, tmem + output.stage * BLOCK_N, slice);
            if (slice + 1 == SLICES) free_accumulator(cta, output.stage, n PIPESIM_PASS);
            convert(pairs, v PIPESIM_PASS);
            if (!store_rows(cta, cta.d + slices++ % 2 * SLICE_BYTES, pairs, row, column + slice * SLICE)) return false;
            if (!acquire_buffer()) return false;
        }
        output.step();
    }
    return true;
}

// The maps' boxes: A [128][64] and B [BLOCK_N][64] with 128-byte swizzle, C [128][32] with 64-byte swizzle. groups: steps of a
// tile, at least 1.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
cutlass_sm100(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
              const __grid_constant__ TensorMap c_map, unsigned n_tiles, unsigned groups, PIPESIM_RUN_PARAMS) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned warp = threadIdx.x / 32;
    CtaReport *report = reports + blockIdx.x;
    const Sm100 cta = sm100(&a_map, &b_map, &c_map, n_tiles, groups, shared_address(memory), 0,
                            {report, stop, deadline_ns, warp});
    CTA_BEGIN(report, cta.barriers)
    bool done = true;
    if (warp == WARP_scheduler) {
        unsigned n = 0;
        let_epilogue_begin(cta, SITE_scheduler_arrive_epilogue_throttle, n PIPESIM_PASS);
        done = schedule(cta, n PIPESIM_PASS);
    } else if (warp != WARP_idle) {
        done = run_role(cta PIPESIM_PASS);
    }
    end_roles(cta, done);
    CTA_END(report, cta.barriers)
}
