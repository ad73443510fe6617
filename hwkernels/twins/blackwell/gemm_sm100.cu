// C = A * B^T in bf16 with fp32 sums on Blackwell: the kernel behind the protocol `gemm_sm100` with cta_group 1 and without
// lookahead. Needs sm_100a. NEVER RUN on a GPU (clc_sm100.cuh says what is known of it).
//
// A is [M][K], B [N][K], C [M][N], row-major, K and N multiples of 8; a step of K is 64 elements.
// clc_sm100.cuh has the compile-time parameters, and all that is not of this kernel alone.
#define PIPESIM_TABLE "gemm_sm100.table.h"
#include "bf16_sm100.cuh"

static __device__ __forceinline__ bool load(const Sm100 &cta PIPESIM_PARAM) {
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
            if (one) mbarrier_arrive_expect_tx(full, (A_BYTES + B_BYTES) * K_GROUP);
#pragma unroll
            for (unsigned j = 0; j < K_GROUP; ++j) {
                const unsigned slot = input.stage * K_GROUP + j, from = (k * K_GROUP + j) * BLOCK_K;
                PIPESIM_RECORD(SITE_load_copy_input_full, BYTES_A)
                if (one) tensor_load_2d(cta.a + slot * A_BYTES, cta.a_map, from, row, full);
                PIPESIM_RECORD(SITE_load_copy_input_full, BYTES_B)
                if (one) tensor_load_2d(cta.b + slot * B_BYTES, cta.b_map, from, column, full);
            }
            __syncwarp();
            input.step();
        }
        NEXT_TILE(load)
    }
    return drain(cta, input, n PIPESIM_PASS);
}

static __device__ __forceinline__ bool finish(const Sm100 &cta PIPESIM_PARAM) {
    ClcState clc = {0, 0};
    OutputState output = {0, 0};
    unsigned n = 0, tile = blockIdx.x, slices = 0;
    const unsigned tmem = find_tmem(cta);
    for (bool more = true; more;) {
        const unsigned row = cta.row(tile), column = cta.column(tile);
        EPILOGUE_WAIT(output_full, output)
        tcgen05_after_sync();
        for (unsigned slice = 0; slice < SLICES; ++slice) {
            float v[SLICE];
            load_slice(v, tmem + output.stage * BLOCK_N, slice);
            if (slice + 1 == SLICES) free_accumulator(cta, output.stage, n PIPESIM_PASS);
            if (!store_slice(cta, v, row, column + slice * SLICE, slices++ PIPESIM_PASS)) return false;
        }
        output.step();
        EPILOGUE_NEXT_TILE()
    }
    leave(cta, n PIPESIM_PASS);
    return true;
}

// The maps' boxes: A [128][64] and B [BLOCK_N][64] with 128-byte swizzle, C [128][32] with 64-byte swizzle. groups: stages of a
// tile, at least 1.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
gemm_sm100(const __grid_constant__ TensorMap a_map, const __grid_constant__ TensorMap b_map,
           const __grid_constant__ TensorMap c_map, unsigned n_tiles, unsigned groups, PIPESIM_RUN_PARAMS) {
    extern __shared__ __align__(1024) unsigned char memory[];
    const unsigned warp = threadIdx.x / 32;
    CtaReport *report = reports + blockIdx.x;
    const Sm100 cta = sm100(&a_map, &b_map, &c_map, n_tiles, groups, shared_address(memory), 0,
                            {report, stop, deadline_ns, warp});
    CTA_BEGIN(report, cta.barriers)
    end_roles(cta, run_role(cta PIPESIM_PASS));
    CTA_END(report, cta.barriers)
}
