// Each CTA waits for a flag of the one before it. CTA 2 sets the flag of itself, not that of CTA 3.
#include "hang.cuh"

__global__ void __launch_bounds__(64) wrong_flag(const float *x, float *y, unsigned long long *flags, unsigned steps) {
    const unsigned me = blockIdx.x;
    if (threadIdx.x == 0 && me > 0) {
        unsigned long long seen;
        do asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(seen) : "l"(flags + me) : "memory");
        while (seen != steps);
        __threadfence();
    }
    __syncthreads();
    y[me * 64 + threadIdx.x] = x[me * 64 + threadIdx.x];
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned next = me == 2 ? me : me + 1;
        asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(flags + next), "l"(steps + 0ull) : "memory");
    }
}

void launch(const float *x, float *y, unsigned *words) {
    wrong_flag<<<5, 64>>>(x, y, (unsigned long long *)words, 3);
}
