// A cluster of two: CTA 1 should say to CTA 0 that it is ready, but arrives on its own barrier. CTA 0 waits for its
// mbarrier, CTA 1 at the cluster's barrier for CTA 0.
#include "hang.cuh"

__global__ void __launch_bounds__(64) remote_arrive_missing(float *y, unsigned leader) {
    __shared__ unsigned long long ready;
    if (threadIdx.x == 0) {
        mbarrier_init(shared_address(&ready), 2);
        mbarrier_init_fence();
    }
    cluster_sync();
    if (threadIdx.x == 32) mbarrier_arrive_cluster(shared_address(&ready), cluster_rank() == 1 ? 1 : leader);
    if (cluster_rank() == leader) wait(ready, 0);
    cluster_sync();
    y[blockIdx.x * 64 + threadIdx.x] = leader;
}

void launch(const float *, float *y, unsigned *) { launch_clusters(4, 2, 64, remote_arrive_missing, y, 0u); }
