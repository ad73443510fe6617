// A wait for one parity while `phases` phases complete, `gap` cycles apart: does it return?
//
// held: the waiter does not look before all phases have completed (it spins on a flag in device memory). Otherwise it
// already waits when the first one does. out: [runs], 1 if the wait returned, 2 if it met its deadline.
#include "operations.cuh"

static constexpr unsigned SETTLE_CYCLES = 2000;  // so that the waiter's first try has failed and is suspended

extern "C" __global__ void laps(unsigned phases, unsigned parity, unsigned gap, unsigned held, unsigned runs,
                                unsigned deadline_ns, unsigned *flag, unsigned *out) {
    __shared__ __align__(8) unsigned long long memory;
    __shared__ unsigned ready;
    const unsigned barrier = shared_address(&memory);
    for (unsigned run = 0; run < runs; ++run) {
        if (threadIdx.x == 0) {
            mbarrier_init(barrier, 1);
            ready = 0;
        }
        __syncthreads();
        const unsigned since = globaltimer_low();
        if (threadIdx.x == 0) {
            if (!held) {
                while (*(volatile unsigned *)&ready == 0 && !expired(since, deadline_ns)) {}
                spin_cycles(SETTLE_CYCLES);
            }
            for (unsigned k = 0; k < phases; ++k) {
                if (k && gap) spin_cycles(gap);
                mbarrier_arrive(barrier);
            }
            __threadfence();
            *(volatile unsigned *)flag = run + 1;
        } else if (threadIdx.x == 32) {
            if (held)
                while (*(volatile unsigned *)flag != run + 1 && !expired(since, deadline_ns)) {}
            *(volatile unsigned *)&ready = 1;
            out[run] = wait_parity<false>(barrier, parity, deadline_ns, nullptr) == WAIT_DONE ? 1 : 2;
        }
        __syncthreads();
        if (threadIdx.x == 0) mbarrier_inval(barrier);
        __syncthreads();
    }
}
