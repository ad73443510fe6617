// The PTX of thread block clusters: ranks, the cluster's own barrier, remote arrives and multicast copies. Needs sm_90.
#pragma once

static __device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

// All threads of the cluster; what was written before is seen after.
static __device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// One arrive by every executing lane on the barrier at the same offset in the CTA of this rank.
static __device__ __forceinline__ void mbarrier_arrive_cluster(unsigned barrier, unsigned rank) {
    asm volatile(
        "{\n\t.reg .b32 there;\n\t"
        "mapa.shared::cluster.u32 there, %0, %1;\n\t"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n\t}" ::"r"(barrier), "r"(rank) : "memory");
}

// Copies to the same offset in every CTA of the mask, and counts the bytes on the barrier at the same offset in each.
static __device__ __forceinline__ void bulk_load_multicast(unsigned to, const void *from, unsigned bytes,
                                                           unsigned barrier, unsigned short mask) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
        ::"r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier), "h"(mask) : "memory");
}
