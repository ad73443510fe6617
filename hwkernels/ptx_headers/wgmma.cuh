// Hopper's warp group matrix instructions (wgmma, sm_90a), bf16 times bf16 into fp32, one function an instruction.
//
// A warp group is 4 warps in a row, the first a multiple of 4; all 128 threads execute each function together, with the same
// descriptors. Order: write the operands' registers, wgmma_fence, products, wgmma_commit, wgmma_wait. A tile that threads
// wrote (and not the copy engine) also needs fence.proxy.async before.
//
// Operands in shared memory are those that a tensor map with 128-byte swizzle writes (tensor_map.cuh): rows of 128 bytes,
// eight of them to an atom of 1,024 bytes, which begins at a multiple of 1,024. The 16-byte piece c of row r lies at piece
// c ^ (r % 8). The hardware swizzles address bits, so a descriptor may begin inside of an atom.
//
//   K-major (a row is 64 elements of K): wgmma_k_major(tile + 32 * k16) for each 16 elements of K; rows follow at 128 bytes.
//   MN-major (a row is 64 elements of N, and one element of K; TRANSPOSE 1, as for V of attention):
//     wgmma_mn_major(tile + 2048 * k16, bytes from one block of 64 columns to the next).
//
// Accumulators d[N / 2] of thread t (0..127): d[4 * j + 2 * i + c] is row 16 * (t / 32) + t % 32 / 4 + 8 * i, column
// 8 * j + 2 * (t % 4) + c. A in registers, a[2 * h + i] (two bf16, the lower column in the lower half): the same row,
// columns 8 * h + 2 * (t % 4) and the next: the accumulators of 16 columns, converted to pairs in their order, are the A of
// the next product.
#pragma once

// Reserved bits are 0; address, leading and stride in units of 16 bytes; bits 62 and 63 are 1 for 128-byte swizzle.
static __device__ __forceinline__ unsigned long long wgmma_descriptor(unsigned address, unsigned leading, unsigned stride) {
    return (unsigned long long)((address & 0x3ffff) >> 4) | (unsigned long long)((leading & 0x3ffff) >> 4) << 16 |
           (unsigned long long)((stride & 0x3ffff) >> 4) << 32 | 1ull << 62;
}

// leading means nothing here; stride: from one group of 8 rows to the next.
static __device__ __forceinline__ unsigned long long wgmma_k_major(unsigned address) {
    return wgmma_descriptor(address, 16, 1024);
}

// leading: from one block of 64 columns to the next; stride: from one group of 8 rows, that is of K, to the next.
static __device__ __forceinline__ unsigned long long wgmma_mn_major(unsigned address, unsigned leading) {
    return wgmma_descriptor(address, leading, 1024);
}

static __device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }

static __device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }

// Until at most PENDING of the newest groups are not done.
template <int PENDING>
static __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// No use of these registers moves across: before wgmma_fence, and behind wgmma_wait.
template <int COUNT>
static __device__ __forceinline__ void wgmma_hold(float (&d)[COUNT]) {
#pragma unroll
    for (int i = 0; i < COUNT; ++i) asm volatile("" : "+f"(d[i])::"memory");
}

// The same for A operands in registers.
template <int COUNT>
static __device__ __forceinline__ void wgmma_hold(unsigned (&a)[COUNT][4]) {
#pragma unroll
    for (int i = 0; i < 4 * COUNT; ++i) asm volatile("" : "+r"(a[i / 4][i % 4])::"memory");
}

// The 16-byte piece of a swizzled tile: row of 128 bytes, piece 0..7.
static __device__ __forceinline__ unsigned swizzled_128(unsigned row, unsigned piece) {
    return 128 * row + 16 * (piece ^ (row & 7));
}

#define WGMMA_TEN(t) "%" #t "0, %" #t "1, %" #t "2, %" #t "3, %" #t "4, %" #t "5, %" #t "6, %" #t "7, %" #t "8, %" #t "9"
#define WGMMA_REGS_32 WGMMA_TEN() ", " WGMMA_TEN(1) ", " WGMMA_TEN(2) ", %30, %31"
#define WGMMA_REGS_64 \
    WGMMA_TEN() ", " WGMMA_TEN(1) ", " WGMMA_TEN(2) ", " WGMMA_TEN(3) ", " WGMMA_TEN(4) ", " WGMMA_TEN(5) \
        ", %60, %61, %62, %63"
#define WGMMA_REGS_128                                                                                               \
    WGMMA_TEN() ", " WGMMA_TEN(1) ", " WGMMA_TEN(2) ", " WGMMA_TEN(3) ", " WGMMA_TEN(4) ", " WGMMA_TEN(5) ", "       \
    WGMMA_TEN(6) ", " WGMMA_TEN(7) ", " WGMMA_TEN(8) ", " WGMMA_TEN(9) ", " WGMMA_TEN(10) ", " WGMMA_TEN(11)         \
        ", %120, %121, %122, %123, %124, %125, %126, %127"
#define WGMMA_D4(i) "+f"(d[i]), "+f"(d[(i) + 1]), "+f"(d[(i) + 2]), "+f"(d[(i) + 3])
#define WGMMA_D8(i) WGMMA_D4(i), WGMMA_D4((i) + 4)
#define WGMMA_D32(i) WGMMA_D8(i), WGMMA_D8((i) + 8), WGMMA_D8((i) + 16), WGMMA_D8((i) + 24)
#define WGMMA_D64 WGMMA_D32(0), WGMMA_D32(32)
#define WGMMA_D128 WGMMA_D64, WGMMA_D32(64), WGMMA_D32(96)

// Wgmma<N, TRANSPOSE>: d += A * B, or d = A * B where accumulate is 0; A is 64 x 16, B 16 x N. TRANSPOSE 1: B is MN-major.
// shared: both operands by descriptor, A K-major; registers: A from registers.
template <int N, int TRANSPOSE = 0>
struct Wgmma;

template <int TRANSPOSE>
struct Wgmma<64, TRANSPOSE> {
    static __device__ __forceinline__ void shared(float (&d)[32], unsigned long long a, unsigned long long b,
                                                  unsigned accumulate) {
        asm volatile(
            "{\n\t.reg .pred sum;\n\tsetp.ne.b32 sum, %34, 0;\n\t"
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" WGMMA_REGS_32
            "}, %32, %33, sum, 1, 1, 0, %35;\n\t}"
            : WGMMA_D32(0) : "l"(a), "l"(b), "r"(accumulate), "n"(TRANSPOSE) : "memory");
    }
    static __device__ __forceinline__ void registers(float (&d)[32], const unsigned (&a)[4], unsigned long long b,
                                                     unsigned accumulate) {
        asm volatile(
            "{\n\t.reg .pred sum;\n\tsetp.ne.b32 sum, %37, 0;\n\t"
            "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {" WGMMA_REGS_32
            "}, {%32, %33, %34, %35}, %36, sum, 1, 1, %38;\n\t}"
            : WGMMA_D32(0) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(TRANSPOSE) : "memory");
    }
};

template <int TRANSPOSE>
struct Wgmma<128, TRANSPOSE> {
    static __device__ __forceinline__ void shared(float (&d)[64], unsigned long long a, unsigned long long b,
                                                  unsigned accumulate) {
        asm volatile(
            "{\n\t.reg .pred sum;\n\tsetp.ne.b32 sum, %66, 0;\n\t"
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" WGMMA_REGS_64
            "}, %64, %65, sum, 1, 1, 0, %67;\n\t}"
            : WGMMA_D64 : "l"(a), "l"(b), "r"(accumulate), "n"(TRANSPOSE) : "memory");
    }
    static __device__ __forceinline__ void registers(float (&d)[64], const unsigned (&a)[4], unsigned long long b,
                                                     unsigned accumulate) {
        asm volatile(
            "{\n\t.reg .pred sum;\n\tsetp.ne.b32 sum, %69, 0;\n\t"
            "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {" WGMMA_REGS_64
            "}, {%64, %65, %66, %67}, %68, sum, 1, 1, %70;\n\t}"
            : WGMMA_D64 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(TRANSPOSE) : "memory");
    }
};

template <int TRANSPOSE>
struct Wgmma<256, TRANSPOSE> {
    static __device__ __forceinline__ void shared(float (&d)[128], unsigned long long a, unsigned long long b,
                                                  unsigned accumulate) {
        asm volatile(
            "{\n\t.reg .pred sum;\n\tsetp.ne.b32 sum, %130, 0;\n\t"
            "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" WGMMA_REGS_128
            "}, %128, %129, sum, 1, 1, 0, %131;\n\t}"
            : WGMMA_D128 : "l"(a), "l"(b), "r"(accumulate), "n"(TRANSPOSE) : "memory");
    }
    static __device__ __forceinline__ void registers(float (&d)[128], const unsigned (&a)[4], unsigned long long b,
                                                     unsigned accumulate) {
        asm volatile(
            "{\n\t.reg .pred sum;\n\tsetp.ne.b32 sum, %133, 0;\n\t"
            "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 {" WGMMA_REGS_128
            "}, {%128, %129, %130, %131}, %132, sum, 1, 1, %134;\n\t}"
            : WGMMA_D128 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "l"(b), "r"(accumulate), "n"(TRANSPOSE) : "memory");
    }
};
