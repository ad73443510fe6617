// The instructions that only the experiments need, one function each, and bounded spinning. Addresses are 32-bit shared
// addresses.
#pragma once
#include "mbarrier.cuh"

static __device__ __forceinline__ unsigned long long globaltimer() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) :: "memory");
    return now;
}

// True once so many nanoseconds have passed since `since`, a reading of globaltimer_low(). Below 2^31.
static __device__ __forceinline__ bool expired(unsigned since, unsigned nanoseconds) {
    return globaltimer_low() - since > nanoseconds;
}

static __device__ __forceinline__ void spin_ns(unsigned nanoseconds) {
    for (const unsigned since = globaltimer_low(); !expired(since, nanoseconds);) {}
}

static __device__ __forceinline__ void spin_cycles(unsigned cycles) {
    for (const unsigned since = clock_cycles(); clock_cycles() - since < cycles;) {}
}

static __device__ __forceinline__ bool mbarrier_test_wait(unsigned barrier, unsigned parity) {
    unsigned done;
    asm volatile(
        "{\n\t.reg .pred done;\n\t"
        "mbarrier.test_wait.parity.shared::cta.b64 done, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, done;\n\t}"
        : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    return done != 0;
}

// Tests without ever suspending, so that a completion is seen as soon as it can be. False: the deadline passed.
static __device__ __forceinline__ bool spin_until(unsigned barrier, unsigned parity, unsigned deadline_ns) {
    const unsigned since = globaltimer_low();
    for (unsigned tries = 1; !mbarrier_test_wait(barrier, parity); ++tries)
        if (tries % 64 == 0 && expired(since, deadline_ns)) return false;
    return true;
}

static __device__ __forceinline__ void mbarrier_arrive_count(unsigned barrier, unsigned count) {
    asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared::cta.b64 state, [%0], %1;\n\t}"
                 ::"r"(barrier), "r"(count) : "memory");
}

static __device__ __forceinline__ void mbarrier_arrive_drop(unsigned barrier, unsigned count) {
    asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive_drop.shared::cta.b64 state, [%0], %1;\n\t}"
                 ::"r"(barrier), "r"(count) : "memory");
}

static __device__ __forceinline__ void mbarrier_arrive_no_complete(unsigned barrier, unsigned count) {
    asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.noComplete.shared::cta.b64 state, [%0], %1;\n\t}"
                 ::"r"(barrier), "r"(count) : "memory");
}

static __device__ __forceinline__ void mbarrier_expect_tx(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void mbarrier_complete_tx(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

static __device__ __forceinline__ unsigned long long load_shared64(unsigned address) {
    unsigned long long value;
    asm volatile("ld.shared.b64 %0, [%1];" : "=l"(value) : "r"(address) : "memory");
    return value;
}

static __device__ __forceinline__ unsigned cluster_rank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

static __device__ __forceinline__ unsigned cluster_size() {
    unsigned size;
    asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
    return size;
}

static __device__ __forceinline__ void cluster_sync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// The address by which this CTA reaches the same place of another CTA of its cluster.
static __device__ __forceinline__ unsigned address_in(unsigned address, unsigned rank) {
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(address), "r"(rank));
    return there;
}

static __device__ __forceinline__ void remote_arrive(unsigned there) {
    asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
}
