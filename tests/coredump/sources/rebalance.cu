// Clusters of 2: the leaf (rank 1) stores its partial sums into the root's shared memory and arrives there; the root gives the
// buffer back by a remote arrive. Every fourth step both meet at the cluster's barrier: the root before it gives the buffer back,
// the leaf after it has it.
#include "common.cuh"
struct Shared { float inbox[2][64]; u64 got[2], free[2]; };
DI void store_remote(unsigned to, float v) { asm volatile("st.shared::cluster.f32 [%0], %1;" ::"r"(to), "f"(v) : "memory"); }
DI void wait_cluster(u64 *b, unsigned parity) {
    unsigned ok = 0;
    do asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}"
                    : "=r"(ok) : "r"(sptr(b)), "r"(parity) : "memory");
    while (!ok);
}
__global__ void __cluster_dims__(2, 1, 1) __launch_bounds__(64) rebalance(const float *x, float *y, int steps) {
    __shared__ Shared sh;
    const bool root = cluster_rank() == 0;
    if (threadIdx.x < 2) { bar_init(&sh.got[threadIdx.x], 64); bar_init(&sh.free[threadIdx.x], 64); fence_init(); }
    __syncthreads();
    cluster_arrive();
    cluster_wait();
    float sum = 0;
    for (int i = 0; i < steps; ++i) {
        const int b = i & 1;
        const bool meet = (i & 3) == 3;
        if (root) {
            wait_cluster(&sh.got[b], i >> 1 & 1);
            sum += sh.inbox[b][threadIdx.x];
#ifdef RIGHT
            arrive_remote(&sh.free[b], 1);
            __syncwarp();
            if (meet) { cluster_arrive(); cluster_wait(); }
#else
            if (meet) { cluster_arrive(); cluster_wait(); }
            arrive_remote(&sh.free[b], 1);
#endif
        } else {
            store_remote(at_rank(sptr(&sh.inbox[b][threadIdx.x]), 0), x[i * 64 + threadIdx.x]);
            arrive_remote(&sh.got[b], 0);
            wait_cluster(&sh.free[b], i >> 1 & 1);
            __syncwarp();
            if (meet) { cluster_arrive(); cluster_wait(); }
        }
    }
    y[blockIdx.x * 64 + threadIdx.x] = sum;
    __syncwarp();
    cluster_arrive();
    cluster_wait();
}
void launch(float *x, float *y, unsigned *) { rebalance<<<4, 64>>>(x, y, 16); }
