// How long one try_wait takes on an mbarrier that no thread completes: the first of a thread, and TRIES more. Every try ends
// by itself at the chip's limit. out: [1 + TRIES] cycles.
#include "mbarrier.cuh"

static constexpr unsigned TRIES = 4;

static __device__ __forceinline__ unsigned clock32() {
    unsigned now;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
    return now;
}

extern "C" __global__ void __launch_bounds__(32) tries(unsigned, unsigned *out) {
    __shared__ __align__(8) unsigned long long word;
    const unsigned barrier = (unsigned)__cvta_generic_to_shared(&word);
    if (threadIdx.x) return;
    mbarrier_init(barrier, 1);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    unsigned stamps[TRIES + 2];
    stamps[0] = clock32();
#pragma unroll
    for (unsigned i = 0; i <= TRIES; ++i) {
        const unsigned found = mbarrier_try_wait(barrier, 0);
        asm volatile("st.volatile.global.u32 [%0], %1;" ::"l"(out + i), "r"(found) : "memory");  // when it is known
        stamps[i + 1] = clock32();
    }
#pragma unroll
    for (unsigned i = 0; i <= TRIES; ++i) out[i] = stamps[i + 1] - stamps[i];
}
