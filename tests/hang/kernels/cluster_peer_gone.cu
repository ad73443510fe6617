// A cluster of two that meets each step by remote arrives: CTA 1 has half the steps and has returned, CTA 0 waits for it.
// (A barrier of the cluster would not: that counts only threads that have not exited.)
#include "hang.cuh"

__global__ void __launch_bounds__(64) cluster_peer_gone(float *y, int steps) {
    __shared__ unsigned long long ready, go;
    if (threadIdx.x == 0) {
        mbarrier_init(shared_address(&ready), 2);
        mbarrier_init(shared_address(&go), 1);
        mbarrier_init_fence();
    }
    cluster_sync();
    const unsigned rank = cluster_rank();
    const int own = rank == 0 ? steps : steps / 2;
    for (int step = 0; step < own; ++step) {
        if (threadIdx.x == 0) mbarrier_arrive_cluster(shared_address(&ready), 0);
        wait(rank == 0 ? ready : go, step % 2);
        if (rank == 0 && threadIdx.x == 0) mbarrier_arrive_cluster(shared_address(&go), 1);
    }
    y[blockIdx.x * 64 + threadIdx.x] = own;
}

void launch(const float *, float *y, unsigned *) { launch_clusters(2, 2, 64, cluster_peer_gone, y, 8); }
