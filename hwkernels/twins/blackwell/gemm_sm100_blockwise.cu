// C = sum over k of a_scales[k] * b_scales[k] * A[k] * B[k]^T in FP8 (E4M3) with fp32 sums on Blackwell, k a block of 128 of
// K: the kernel behind the protocol `gemm_sm100_blockwise` with block_k 128 and without lookahead. Needs sm_100a. NEVER RUN on
// a GPU (clc_sm100.cuh says what is known of it).
//
// A is [M][K], B [N][K], C [M][N] in bf16, row-major. a_scales is [K / 128][M]: a scale for each row of A and block of K; they
// travel with the tiles. b_scales is [N / 128][K / 128]: a scale for each block of B, which the epilogue reads from device
// memory. Both round the blocks up; K is a multiple of 16, N of 8, M of 4.
//
// The tensor cores multiply one block into a fresh accumulator; the epilogue, a row a thread, scales it and keeps the sums in
// registers, so BLOCK_N is 64 or 128. It frees a stage's scales with one lane a warp; the MMAs' commit is the stage's other
// arrival. The protocol has all the scaling behind the arrive that frees the accumulator; here all slices but the last come
// before it: a thread has no registers for both.
//
// clc_sm100.cuh has the compile-time parameters (but K_GROUP), and all that is not of this kernel alone.
#define PIPESIM_TABLE "gemm_sm100_blockwise.table.h"
#define K_GROUP 1
#include "modular_sm100.cuh"

static_assert(BLOCK_N <= 128, "the sums of a row are in registers");
static constexpr unsigned BLOCK_K = 128, SCALES_BYTES = BLOCK_M * 4;

struct Blockwise : Sm100 {
    const TensorMap *scales_map;
    unsigned a_scales;  // shared address
    const float *b_scales;
};

static __device__ __forceinline__ bool load(const Blockwise &cta PIPESIM_PARAM) {
    ClcState throttle = {0, 1}, clc = {0, 0};
    InputState input = {0, 1};
    unsigned n = 0, tile = blockIdx.x;
    for (bool more = true; more;) {
        if (!throttle_signal(cta, throttle, n PIPESIM_PASS)) return false;
        const unsigned row = cta.row(tile), column = cta.column(tile);
        for (unsigned k = 0; k < cta.groups; ++k) {
            WAIT(load, input_empty, input)
            const unsigned full = cta.barrier(BARRIER_input_full, input.stage);
            const bool one = elect_one();
            PIPESIM_RECORD(SITE_load_expect_input_full, BYTES_STAGE)
            if (one) mbarrier_arrive_expect_tx(full, A_BYTES + B_BYTES + SCALES_BYTES);
            PIPESIM_RECORD(SITE_load_copy_input_full, BYTES_A)
            if (one) tensor_load_2d(cta.a + input.stage * A_BYTES, cta.a_map, k * BLOCK_K, row, full);
            PIPESIM_RECORD(SITE_load_copy_input_full, BYTES_B)
            if (one) tensor_load_2d(cta.b + input.stage * B_BYTES, cta.b_map, k * BLOCK_K, column, full);
            PIPESIM_RECORD(SITE_load_copy_input_full, BYTES_OWN)
            if (one) tensor_load_2d(cta.a_scales + input.stage * SCALES_BYTES, cta.scales_map, row, k, full);
            __syncwarp();
            input.step();
        }
        NEXT_TILE(load)
    }
    return drain(cta, input, n PIPESIM_PASS);
}

// An accumulator for every step of K.
static __device__ __forceinline__ bool multiply(const Blockwise &cta PIPESIM_PARAM) {
    ClcState clc = {0, 0};
    InputState input = {0, 0};
    OutputState output = {0, 1};
    unsigned n = 0, tile = blockIdx.x;
    const unsigned tmem = allocate(cta);
    for (bool more = true; more;) {
        for (unsigned k = 0; k < cta.groups; ++k) {
            WAIT(mma, input_full, input)
            WAIT(mma, output_empty, output)
            tcgen05_after_sync();
            if (elect_one()) {
                const unsigned long long a = tcgen05_k_major(cta.a + input.stage * A_BYTES);
                const unsigned long long b = tcgen05_k_major(cta.b + input.stage * B_BYTES);
#pragma unroll
                for (unsigned i = 0; i < BLOCK_K / 32; ++i)  // 32 bytes on, in units of 16
                    tcgen05_mma_fp8(tmem + output.stage * BLOCK_N, a + 2 * i, b + 2 * i, tcgen05_e4m3(BLOCK_M, BLOCK_N), i);
                tcgen05_commit(cta.barrier(BARRIER_input_empty, input.stage));
                tcgen05_commit(cta.barrier(BARRIER_output_full, output.stage));
            }
            __syncwarp();
            input.step();
            output.step();
        }
        NEXT_TILE(mma)
    }
    return deallocate(cta, tmem, n PIPESIM_PASS);
}

// The sums of this thread's row of one tile. False if a wait gave up.
static __device__ __forceinline__ bool sum_up(const Blockwise &cta, float (&sums)[SLICES][SLICE], unsigned tmem,
                                              unsigned tile, InputState &input, OutputState &output,
                                              unsigned &n PIPESIM_PARAM) {
    const float *b_scales = cta.b_scales + cta.column(tile) / 128 * cta.groups;
#pragma unroll
    for (unsigned i = 0; i < SLICES * SLICE; ++i) sums[i / SLICE][i % SLICE] = 0.0f;
    for (unsigned k = 0; k < cta.groups; ++k) {
        const float b_scale = __ldg(b_scales + k);
        EPILOGUE_WAIT(output_full, output)  // the MMAs that it completes have waited for the stage with the scales
        tcgen05_after_sync();
        const unsigned a_scale = load_shared_32(cta.a_scales + input.stage * SCALES_BYTES + 4 * threadIdx.x);
        const float scale = __uint_as_float(a_scale) * b_scale;
        __syncwarp();
        PIPESIM_SAY(n, input.stage, 0)
        PIPESIM_RECORD(SITE_epilogue_arrive_input_empty, 1)
        if (threadIdx.x % 32 == 0) mbarrier_arrive(cta.barrier(BARRIER_input_empty, input.stage));
        __syncwarp();
#pragma unroll
        for (unsigned slice = 0; slice < SLICES; ++slice) {
            float v[SLICE];
            load_slice(v, tmem + output.stage * BLOCK_N, slice);
            if (slice + 1 == SLICES) {
                free_accumulator(cta, output.stage, n PIPESIM_PASS);
                PIPESIM_RECORD(SITE_epilogue_work_begin, 0)
            }
#pragma unroll
            for (unsigned i = 0; i < SLICE; ++i) sums[slice][i] += scale * v[i];
        }
        PIPESIM_RECORD(SITE_epilogue_work_end, 0)
        input.step();
        output.step();
    }
    return true;
}

static __device__ __forceinline__ bool finish(const Blockwise &cta PIPESIM_PARAM) {
    ClcState clc = {0, 0};
    InputState input = {0, 0};
    OutputState output = {0, 0};
    unsigned n = 0, tile = blockIdx.x, slices = 0;
    const unsigned tmem = find_tmem(cta);
    for (bool more = true; more;) {
        float sums[SLICES][SLICE];
        if (!sum_up(cta, sums, tmem, tile, input, output, n PIPESIM_PASS)) return false;
        bool well = true;
#pragma unroll
        for (unsigned slice = 0; slice < SLICES; ++slice)
            well = well &&
                   store_slice(cta, sums[slice], cta.row(tile), cta.column(tile) + slice * SLICE, slices++ PIPESIM_PASS);
        if (!well) return false;
        EPILOGUE_NEXT_TILE()
    }
    leave(cta, n PIPESIM_PASS);
    return true;
}

// The maps' boxes: A [128][128] and B [BLOCK_N][128], bytes, with 128-byte swizzle, A's scales [1][128] of [K / 128][M]
// without, C [128][32] with 64-byte swizzle. groups: blocks of K.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
gemm_sm100_blockwise(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
                     const __grid_constant__ TensorMap scales_map, const __grid_constant__ TensorMap c_map,
                     const float *b_scales, unsigned n_tiles, unsigned groups, PIPESIM_RUN_PARAMS) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned warp = threadIdx.x / 32, a = shared_address(memory);
    CtaReport *report = reports + blockIdx.x;
    const Blockwise cta = {sm100(&a_map, &b_map, &c_map, n_tiles, groups, a, RING_STAGES * SCALES_BYTES,
                                 {report, stop, deadline_ns, warp}),
                           &scales_map, a + SLOTS * (A_BYTES + B_BYTES), b_scales};
    CTA_BEGIN(report, cta.barriers)
    end_roles(cta, run_role(cta PIPESIM_PASS));
    CTA_END(report, cta.barriers)
}
