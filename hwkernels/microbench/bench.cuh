// What the micro-kernels share.
#pragma once

#include "mbarrier.cuh"

// Until the SM's clock reads `until`, or so many times has not.
static __device__ __forceinline__ void spin_until(unsigned until) {
    for (unsigned i = 0; i < 1u << 16 && (int)(clock_cycles() - until) < 0; ++i) {}
}

template <int COUNT>
static __device__ __forceinline__ float total(const float (&d)[COUNT]) {
    float sum = 0;
#pragma unroll
    for (int i = 0; i < COUNT; ++i) sum += d[i];
    return sum;
}
