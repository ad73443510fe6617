// A token runs around the CTAs of a cluster by remote arrives, `rounds` times: CTA 0 to 1, 1 to 2, ... the last to 0.
// One thread a CTA. stamps: [grid][rounds][2], %clock64 before each remote arrive and after each wait's return; a wait
// that met its deadline ends that CTA's part and leaves zeros. headers: [grid], both anchors.
#include "operations.cuh"
#include "recorder.cuh"

#if !PIPESIM_TRACE
#error "needs PIPESIM_TRACE=1 for its anchors"
#endif

extern "C" __global__ void pingpong(unsigned rounds, unsigned deadline_ns, unsigned long long *stamps,
                                    PipesimCta *headers) {
    __shared__ __align__(8) unsigned long long memory;
    const unsigned barrier = shared_address(&memory), rank = cluster_rank(), size = cluster_size();
    mbarrier_init(barrier, 1);
    mbarrier_init_fence();
    pipesim_anchor(headers + blockIdx.x, 0);
    cluster_sync();
    const unsigned next = address_in(barrier, rank + 1 < size ? rank + 1 : 0);
    unsigned long long *mine = stamps + 2ull * blockIdx.x * rounds;
    for (unsigned i = 0; i < rounds; ++i, mine += 2) {
        unsigned long long received = 0;
        if (rank) {
            if (!spin_until(barrier, i & 1, deadline_ns)) break;
            received = clock_cycles64();
        }
        const unsigned long long sent = clock_cycles64();
        remote_arrive(next);
        if (!rank) {
            if (!spin_until(barrier, i & 1, deadline_ns)) break;
            received = clock_cycles64();
        }
        mine[0] = sent;
        mine[1] = received;
    }
    cluster_sync();
    pipesim_anchor(headers + blockIdx.x, 1);
}
