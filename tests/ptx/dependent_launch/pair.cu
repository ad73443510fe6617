// Two launches of a stream, the second with programmatic stream serialisation. The first lets it begin, meets at a barrier
// of its grid and stores; the second sets up its mbarrier meanwhile, waits for the first (with WRONG it does not), and loads.
#include "cluster.cuh"
#include "mbarrier.cuh"

extern "C" __global__ void __launch_bounds__(64) stores(float *x, unsigned *met, int value) {
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    __nanosleep(900000);
    if (threadIdx.x == 0) {
        unsigned seen;
        asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(met) : "memory");
        do asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(seen) : "l"(met) : "memory");
        while (seen < gridDim.x);
    }
    __syncthreads();
    x[blockIdx.x * 64 + threadIdx.x] = value;
}

extern "C" __global__ void __launch_bounds__(64) loads(const float *x, float *y) {
    __shared__ alignas(128) float tile[64];
    __shared__ unsigned long long full;
    if (threadIdx.x == 0) {
        mbarrier_init(shared_address(&full), 1);
        mbarrier_init_fence();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
#if !WRONG
        asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
        mbarrier_arrive_expect_tx(shared_address(&full), 256);
        bulk_load(shared_address(tile), x + 64 * blockIdx.x, 256, shared_address(&full));  // too early without the wait
    }
    while (!mbarrier_try_wait(shared_address(&full), 0)) {
    }
    y[64 * blockIdx.x + threadIdx.x] = 2 * tile[threadIdx.x];
}
