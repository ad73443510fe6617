// Two locks in global memory, taken in different order: CTA 0 has the first and wants the second, CTA 1 has the second
// and wants the first. CTA 2 wants the first, too. A word of a lock is 0 or 1, so that it does not say who has it.
#include "hang.cuh"

static __device__ void take(unsigned *lock) {
    while (atomicExch(lock, 1u) != 0) __nanosleep(50);
    __threadfence();
}

static __device__ void give(unsigned *lock) {
    __threadfence();
    atomicExch(lock, 0u);
}

__global__ void __launch_bounds__(32) two_locks(float *y, unsigned *locks, unsigned *taken) {
    if (threadIdx.x == 0) {
        unsigned *first = locks + (blockIdx.x == 1), *second = locks + (blockIdx.x != 1);
        if (blockIdx.x == 2)
            while (*(volatile unsigned *)taken < 2) {
            }
        take(first);
        atomicAdd(taken, 1u);
        while (*(volatile unsigned *)taken < 2) {
        }
        take(second);
        *y += 1;
        give(second);
        give(first);
    }
}

void launch(const float *, float *y, unsigned *words) { two_locks<<<3, 32>>>(y, words + 4, words); }
