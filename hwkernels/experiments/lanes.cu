// n lanes of one warp arrive on a fresh barrier of count m: all in one instruction, or (apart) one after the other.
// out, in memory that outlives a trap: of each run the barrier's word after inval, 0 where a run did not come so far.
#include "operations.cuh"

extern "C" __global__ void lanes(unsigned n, unsigned m, unsigned apart, unsigned runs, unsigned long long *out) {
    __shared__ __align__(8) unsigned long long memory;
    const unsigned barrier = shared_address(&memory), lane = threadIdx.x;
    for (unsigned run = 0; run < runs; ++run) {
        if (lane == 0) mbarrier_init(barrier, m);
        __syncwarp();
        if (apart) {
#pragma unroll 1
            for (unsigned turn = 0; turn < n; ++turn) {
                if (lane == turn) mbarrier_arrive(barrier);
                __syncwarp();
            }
        } else if (lane < n) {
            mbarrier_arrive(barrier);
        }
        __syncwarp();
        if (lane == 0) {
            mbarrier_inval(barrier);
            *(volatile unsigned long long *)(out + run) = load_shared64(barrier);
        }
        __syncwarp();
    }
}
