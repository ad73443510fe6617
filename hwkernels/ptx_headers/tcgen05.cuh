// Blackwell's matrix instructions and its launch control (sm_100a), one function an instruction. NEVER RUN: compiled only,
// for want of a Blackwell GPU; the encodings are those of the PTX documentation.
#pragma once

// A tile with 128-byte swizzle: 8 rows of 128 bytes to an atom, atoms 1,024 bytes apart. Bit 46 is the version of the
// descriptor, 2 at bit 61 the swizzle.
static __device__ constexpr unsigned long long tcgen05_tile(unsigned address, unsigned leading) {
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)(leading >> 4) << 16 |
           (unsigned long long)(1024 >> 4) << 32 | 1ull << 46 | 2ull << 61;
}

// K-major: a row is 128 bytes of K; leading means nothing here.
static __device__ constexpr unsigned long long tcgen05_k_major(unsigned address) { return tcgen05_tile(address, 16); }

// MN-major: a row is 64 bf16 elements of N, and one of K; leading: from one block of 64 columns of N to the next.
static __device__ constexpr unsigned long long tcgen05_mn_major(unsigned address, unsigned leading) {
    return tcgen05_tile(address, leading);
}

// Of kind::f16: fp32 sums (1 at bit 4), A and B bf16 (1 at bits 7 and 10), A K-major, B too or MN-major (1 at bit 16),
// N / 8 at bit 17, M / 16 at bit 24.
static __device__ constexpr unsigned tcgen05_bf16(unsigned m, unsigned n, unsigned b_mn_major = 0) {
    return 1u << 4 | 1u << 7 | 1u << 10 | b_mn_major << 16 | n / 8 << 17 | m / 16 << 24;
}

// Of kind::f8f6f4: the same with A and B of E4M3 (0 at bits 7 and 10).
static __device__ constexpr unsigned tcgen05_e4m3(unsigned m, unsigned n) { return 1u << 4 | n / 8 << 17 | m / 16 << 24; }

// A whole warp. columns: a power of two, 32..512. Writes the address of the first column to shared memory.
template <unsigned COLUMNS>
static __device__ __forceinline__ void tcgen05_alloc(unsigned to) {
    asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], %1;" ::"r"(to), "n"(COLUMNS) : "memory");
    asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
}

template <unsigned COLUMNS>
static __device__ __forceinline__ void tcgen05_dealloc(unsigned address) {
    asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, %1;" ::"r"(address), "n"(COLUMNS) : "memory");
}

// One thread: D = A * B^T, or += where accumulate is not 0. 16 of K.
static __device__ __forceinline__ void tcgen05_mma(unsigned d, unsigned long long a, unsigned long long b, unsigned shape,
                                                   unsigned accumulate) {
    asm volatile(
        "{\n\t.reg .pred sum;\n\tsetp.ne.b32 sum, %4, 0;\n\t"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %2, %3, sum;\n\t}"
        ::"r"(d), "l"(a), "l"(b), "r"(shape), "r"(accumulate) : "memory");
}

// The same in FP8: 32 of K.
static __device__ __forceinline__ void tcgen05_mma_fp8(unsigned d, unsigned long long a, unsigned long long b, unsigned shape,
                                                       unsigned accumulate) {
    asm volatile(
        "{\n\t.reg .pred sum;\n\tsetp.ne.b32 sum, %4, 0;\n\t"
        "tcgen05.mma.cta_group::1.kind::f8f6f4 [%0], %1, %2, %3, sum;\n\t}"
        ::"r"(d), "l"(a), "l"(b), "r"(shape), "r"(accumulate) : "memory");
}

// In bf16, with A in tensor memory: a row a lane, two of its elements of K a column, the lower one in the lower half.
static __device__ __forceinline__ void tcgen05_mma_tensor(unsigned d, unsigned a, unsigned long long b, unsigned shape,
                                                          unsigned accumulate) {
    asm volatile(
        "{\n\t.reg .pred sum;\n\tsetp.ne.b32 sum, %4, 0;\n\t"
        "tcgen05.mma.cta_group::1.kind::f16 [%0], [%1], %2, %3, sum;\n\t}"
        ::"r"(d), "r"(a), "l"(b), "r"(shape), "r"(accumulate) : "memory");
}

// One arrive on a barrier of this CTA when all that this thread multiplied before is done.
static __device__ __forceinline__ void tcgen05_commit(unsigned barrier) {
    asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(barrier) : "memory");
}

static __device__ __forceinline__ void tcgen05_before_sync() { asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory"); }
static __device__ __forceinline__ void tcgen05_after_sync() { asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory"); }

#define TCGEN05_8(i)                                                                                                    \
    "=r"(v[i]), "=r"(v[(i) + 1]), "=r"(v[(i) + 2]), "=r"(v[(i) + 3]), "=r"(v[(i) + 4]), "=r"(v[(i) + 5]), "=r"(v[(i) + 6]), \
        "=r"(v[(i) + 7])
// A whole warp: 32 columns of its 32 lanes, a lane a thread; waits for them.
static __device__ __forceinline__ void tcgen05_load(unsigned (&v)[32], unsigned address) {
    asm volatile(
        "tcgen05.ld.sync.aligned.32x32b.x32.b32 {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, "
        "%17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31}, [%32];\n\t"
        "tcgen05.wait::ld.sync.aligned;"
        : TCGEN05_8(0), TCGEN05_8(8), TCGEN05_8(16), TCGEN05_8(24) : "r"(address) : "memory");
}

// A whole warp: 16 columns of its 32 lanes, a lane a thread. tcgen05_store_wait waits for all that the thread stored.
static __device__ __forceinline__ void tcgen05_store(unsigned address, const unsigned *v) {
    asm volatile(
        "tcgen05.st.sync.aligned.32x32b.x16.b32 [%16], {%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15};"
        ::"r"(v[0]), "r"(v[1]), "r"(v[2]), "r"(v[3]), "r"(v[4]), "r"(v[5]), "r"(v[6]), "r"(v[7]), "r"(v[8]), "r"(v[9]),
        "r"(v[10]), "r"(v[11]), "r"(v[12]), "r"(v[13]), "r"(v[14]), "r"(v[15]), "r"(address) : "memory");
}
static __device__ __forceinline__ void tcgen05_store_wait() { asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory"); }

// One thread asks for the next CTA of the grid that was not launched: 16 bytes of answer, which complete the barrier.
static __device__ __forceinline__ void clc_try_cancel(unsigned answer, unsigned barrier) {
    asm volatile("clusterlaunchcontrol.try_cancel.async.shared::cta.mbarrier::complete_tx::bytes.b128 [%0], [%1];"
                 ::"r"(answer), "r"(barrier) : "memory");
}

// Whether the answer names a CTA, and its number in x.
static __device__ __forceinline__ bool clc_answer(unsigned answer, unsigned &x) {
    unsigned found;
    asm volatile(
        "{\n\t.reg .pred found;\n\t.reg .b128 answer;\n\tld.shared.b128 answer, [%2];\n\t"
        "clusterlaunchcontrol.query_cancel.is_canceled.pred.b128 found, answer;\n\t"
        "selp.u32 %0, 1, 0, found;\n\tmov.u32 %1, 0;\n\t"
        "@found clusterlaunchcontrol.query_cancel.get_first_ctaid::x.b32.b128 %1, answer;\n\t}"
        : "=r"(found), "=r"(x) : "r"(answer) : "memory");
    return found != 0;
}
