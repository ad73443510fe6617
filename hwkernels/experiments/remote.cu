// In a cluster of 2, CTA 0 arrives on CTA 1's barrier: while CTA 1 waits for it, or (exited) long after CTA 1 has ended.
// out, in memory that outlives a trap: of CTA 0, then of CTA 1. 8: begun; 4: done; CTA 1 adds 1 if its wait returned.
#include "operations.cuh"

static constexpr unsigned GONE_NS = 1000000, AFTER_NS = 100000;

extern "C" __global__ void remote(unsigned exited, unsigned deadline_ns, unsigned *out) {
    __shared__ __align__(8) unsigned long long memory;
    volatile unsigned *said = out + cluster_rank();
    const unsigned barrier = shared_address(&memory);
    mbarrier_init(barrier, 1);
    mbarrier_init_fence();
    cluster_sync();
    *said = 8;
    __threadfence_system();
    if (cluster_rank() == 0) {
        if (exited) spin_ns(GONE_NS);
        remote_arrive(address_in(barrier, 1));
        spin_ns(AFTER_NS);
        *said = 4;
    } else if (!exited) {
        const bool returned = spin_until(barrier, 0, deadline_ns);
        *said = 4 + returned;
    } else {
        *said = 4;
        __threadfence_system();
        return;
    }
    if (!exited) cluster_sync();
}
