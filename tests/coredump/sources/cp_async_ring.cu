// Two producer warps copy by cp.async and tie the copies to the full barrier, whose count is 64 threads. The arrive is not
// .noinc: each raises the count that is pending and takes it away again.
#include "common.cuh"
constexpr int STAGES = 4, TILE = 256;
__global__ void __launch_bounds__(160) cp_async_ring(const float *x, float *y, int tiles) {
    __shared__ alignas(16) float buffer[STAGES][TILE];
    __shared__ u64 full[STAGES];
    __shared__ u64 empty[STAGES];
    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) { bar_init(&full[s], 64); bar_init(&empty[s], 3); }
        fence_init();
    }
    __syncthreads();
    if (threadIdx.x < 64) {
        for (int t = 0; t < tiles; ++t) {
            const int s = t & (STAGES - 1);
            wait_sleep(&empty[s], ((t / STAGES) & 1) ^ 1);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                         ::"r"(sptr(&buffer[s][threadIdx.x * 4])), "l"(x + t * TILE + threadIdx.x * 4) : "memory");
#ifdef RIGHT
            asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(sptr(&full[s])) : "memory");
#else
            asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(sptr(&full[s])) : "memory");
#endif
        }
        asm volatile("cp.async.wait_all;" ::: "memory");
    } else {
        float sum = 0;
        const int me = threadIdx.x - 64;
        for (int t = 0; t < tiles; ++t) {
            const int s = t & (STAGES - 1);
            wait_sleep(&full[s], (t / STAGES) & 1);
            for (int i = me; i < TILE; i += 96) sum += buffer[s][i];
            __syncwarp();
            if (me % 32 == 0) bar_arrive(&empty[s]);
        }
        y[blockIdx.x * 96 + me] = sum;
    }
}
void launch(float *x, float *y, unsigned *) { cp_async_ring<<<2, 160>>>(x, y, 16); }
