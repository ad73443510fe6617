// The CTA that counts last adds all parts and sets a flag, for which the others wait. The counter is to go from 7 to 0, and
// goes on to 8: the second launch begins there, its CTAs count 8, 0, 1, ... 6, and none of them is the last.
#include "hang.cuh"

__global__ void __launch_bounds__(64) last_block(const float *x, float *y, unsigned *count, unsigned *sum_of) {
    __shared__ bool last;
    y[64 + blockIdx.x * 64 + threadIdx.x] = x[blockIdx.x * 64 + threadIdx.x] + 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicInc(count, RIGHT ? gridDim.x - 1 : gridDim.x) == gridDim.x - 1;
        __threadfence();
    }
    __syncthreads();
    if (last) {
        float sum = 0;
        for (unsigned n = 0; n < gridDim.x; ++n) sum += y[64 + n * 64 + threadIdx.x];
        y[threadIdx.x] += sum;
        __syncthreads();
        if (threadIdx.x == 0)
            asm volatile("st.release.gpu.global.u32 [%0], 1;" ::"l"(sum_of) : "memory");
    }
    unsigned seen = 0;
    while (seen == 0) asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(sum_of) : "memory");
    y[64 + blockIdx.x * 64 + threadIdx.x] /= y[threadIdx.x];
}

void launch(const float *x, float *y, unsigned *words) {
    last_block<<<8, 64>>>(x, y, words, words + 16);
    last_block<<<8, 64>>>(x, y, words, words + 17);
}

bool is_right(const float *y) { return y[0] == 16 && y[63] == 16 && y[64] == 1 / 16.f; }
