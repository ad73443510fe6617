// mbarrier.cuh with longer deadlines, since a product without tensor cores takes milliseconds. The kernels count nanoseconds in
// 31 bits, which is 2 seconds at most: here a wait that meets its deadline begins again some times before it gives up.
#pragma once

#define wait_parity real_wait_parity
#include "real_mbarrier.cuh"
#undef wait_parity

static constexpr unsigned DEADLINES = 16;

template <bool WARP>
static __device__ __forceinline__ WaitEnd wait_parity(unsigned barrier, unsigned parity, unsigned deadline_ns,
                                                      const unsigned *stop) {
    WaitEnd end = WAIT_DEADLINE;
#pragma unroll 1
    for (unsigned turn = 0; turn < DEADLINES && end == WAIT_DEADLINE; ++turn)
        end = real_wait_parity<WARP>(barrier, parity, deadline_ns, stop);
    return end;
}
