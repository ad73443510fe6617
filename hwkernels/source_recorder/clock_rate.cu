// Tells the rate of the SM clock: both clocks, read together twice, with a wait between. One thread.
#include "recorder.cuh"

extern "C" __global__ void clock_rate(unsigned wait_ns PIPESIM_KERNEL_PARAM) {
#if PIPESIM_TRACE
    PIPESIM_ANCHOR(0, 0)
    const unsigned long long begin = pipesim_globaltimer();
    while (pipesim_globaltimer() - begin < wait_ns) {
    }
    PIPESIM_ANCHOR(0, 1)
#endif
}
