// A lock in global memory: the CTA that is the sixth to take it returns with it, and ten others try to take it forever.
#include "hang.cuh"

__global__ void __launch_bounds__(64) lock_kept(float *y, unsigned *lock, unsigned most) {
    if (threadIdx.x == 0) {
        while (atomicCAS(lock, 0u, blockIdx.x + 1) != 0) __nanosleep(100);
        const unsigned taken = atomicAdd(lock + 1, 1u);
        __threadfence();
        if (taken == most) return;
        atomicExch(lock, 0u);
    }
    __syncthreads();
    y[blockIdx.x * 64 + threadIdx.x] = 1;
}

void launch(const float *, float *y, unsigned *words) { lock_kept<<<16, 64>>>(y, words, 5); }
