// A cooperative launch that iterates with grid.sync(): a CTA whose part has converged leaves the loop alone.
#include <cooperative_groups.h>
#include "common.cuh"
namespace cg = cooperative_groups;
__global__ void __launch_bounds__(96) relax(const float *x, float *y, float limit, int most) {
    __shared__ float worst[3];
    cg::grid_group grid = cg::this_grid();
    float value = x[blockIdx.x * 96 + threadIdx.x];
    for (int i = 0; i < most; ++i) {
        value *= 0.5f;
        float w = value;
        for (int d = 16; d; d /= 2) w = fmaxf(w, __shfl_xor_sync(~0u, w, d));
        if (threadIdx.x % 32 == 0) worst[threadIdx.x / 32] = w;
        __syncthreads();
        if (WRONG_OR(true, false) && fmaxf(worst[0], fmaxf(worst[1], worst[2])) < limit) break;
        y[blockIdx.x * 96 + threadIdx.x] = value;
        grid.sync();
        value += 0.25f * y[(blockIdx.x + 1) % gridDim.x * 96 + threadIdx.x] * limit;
    }
    y[blockIdx.x * 96 + threadIdx.x] = value;
}
void launch(float *x, float *y, unsigned *) {
    float limit = 0.002f; int most = 20;
    void *args[] = {&x, &y, &limit, &most};
    OK(cudaLaunchCooperativeKernel((void *)relax, dim3(8), dim3(96), args, 0, 0));
}
