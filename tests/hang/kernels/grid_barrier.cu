// All CTAs meet at a counter in global memory. CTA 5 has no rows and returns before it, so that it stays at 7 of 8.
#include "hang.cuh"

__global__ void __launch_bounds__(64) grid_barrier(float *y, unsigned *arrived, int rows) {
    const int row = blockIdx.x < 5 ? blockIdx.x : blockIdx.x == 5 ? rows : blockIdx.x - 1;
    if (row >= rows) return;
    y[row * 64 + threadIdx.x] = row;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(arrived, 1u);
        unsigned seen;
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(arrived) : "memory");
        while (seen < gridDim.x);
    }
    __syncthreads();
    y[threadIdx.x * 8 + blockIdx.x] += 1;
}

void launch(const float *, float *y, unsigned *words) { grid_barrier<<<8, 64>>>(y, words + 2, 7); }
