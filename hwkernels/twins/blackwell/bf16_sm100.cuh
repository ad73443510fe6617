// The MMA warp of Blackwell's kernels that multiply bf16 (clc_sm100.cuh): one accumulator for each tile. NEVER RUN.
#pragma once

#include "modular_sm100.cuh"

static constexpr unsigned BLOCK_K = 64;  // elements of a step

static __device__ __forceinline__ bool multiply(const Sm100 &cta PIPESIM_PARAM) {
    ClcState clc = {0, 0};
    InputState input = {0, 0};
    OutputState output = {0, 1};
    unsigned n = 0, tile = blockIdx.x;
    const unsigned tmem = allocate(cta);
    for (bool more = true; more;) {
        WAIT(mma, output_empty, output)
        tcgen05_after_sync();
        for (unsigned k = 0; k < cta.groups; ++k) {
            WAIT(mma, input_full, input)
            tcgen05_after_sync();
            if (elect_one()) {
#pragma unroll
                for (unsigned j = 0; j < K_GROUP; ++j)
                    multiply_bf16(cta, tmem + output.stage * BLOCK_N, input.stage * K_GROUP + j, k | j);
                tcgen05_commit(cta.barrier(BARRIER_input_empty, input.stage));
                if (k + 1 == cta.groups) tcgen05_commit(cta.barrier(BARRIER_output_full, output.stage));
            }
            __syncwarp();
            input.step();
        }
        output.step();
        NEXT_TILE(mma)
    }
    return deallocate(cta, tmem, n PIPESIM_PASS);
}
