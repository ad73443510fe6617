// Copies of boxes of a tensor, between device and shared memory, by the copy engine (sm_90). The tensor's address, shape,
// strides, box and swizzle are in a tensor map, which the host makes (tensor_maps.py) and hands over in device memory or as
// a __grid_constant__ parameter. Coordinates count elements, the innermost dimension first; what lies outside of the tensor is
// loaded as zeros, and counts among the bytes; a store leaves it out. One thread issues (elect_one).
//
// With 128-byte swizzle the shared address is a multiple of 1,024.
#pragma once

struct alignas(64) TensorMap {
    unsigned long long opaque[16];
};

// Once in each CTA, by the thread that will use a map in device memory that the host wrote before the launch.
static __device__ __forceinline__ void tensor_map_acquire(const TensorMap *map) {
    asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;" ::"l"(map) : "memory");
}

static __device__ __forceinline__ void tensor_map_prefetch(const TensorMap *map) {
    asm volatile("prefetch.tensormap [%0];" ::"l"(map) : "memory");
}

static __device__ __forceinline__ void tensor_load_2d(unsigned to, const TensorMap *map, int x, int y, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
        ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(barrier) : "memory");
}

static __device__ __forceinline__ void tensor_load_3d(unsigned to, const TensorMap *map, int x, int y, int z,
                                                      unsigned barrier) {
    asm volatile(
        "cp.async.bulk.tensor.3d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3, %4}], [%5];"
        ::"r"(to), "l"(map), "r"(x), "r"(y), "r"(z), "r"(barrier) : "memory");
}

// Stores belong to the thread's bulk group: bulk_commit, then bulk_wait or bulk_wait_read in the same thread. Threads that wrote
// the shared tile need async_proxy_fence and a barrier before.
static __device__ __forceinline__ void tensor_store_2d(const TensorMap *map, int x, int y, unsigned from) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];"
                 ::"l"(map), "r"(x), "r"(y), "r"(from) : "memory");
}

static __device__ __forceinline__ void async_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }

static __device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Until at most PENDING of the newest groups have not read their shared memory.
template <int PENDING>
static __device__ __forceinline__ void bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}

// Until at most PENDING of the newest groups are not done: what they wrote is visible to this thread.
template <int PENDING>
static __device__ __forceinline__ void bulk_wait() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(PENDING) : "memory");
}
