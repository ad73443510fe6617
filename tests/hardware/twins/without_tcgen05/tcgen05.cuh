// tcgen05.cuh for a chip that has no tcgen05: what the PTX ISA says of each instruction, done by the threads that issue it, with
// a tensor memory in device memory. Descriptors are made by the real header's functions and read here bit by bit; an instruction
// that may not be used so traps. It is slow, and nothing is asynchronous: an order that only hardware can break stays unseen.
#pragma once
#include "mbarrier.cuh"

#define tcgen05_alloc real_alloc
#define tcgen05_dealloc real_dealloc
#define tcgen05_mma real_mma
#define tcgen05_mma_tensor real_mma_tensor
#define tcgen05_commit real_commit
#define tcgen05_before_sync real_before_sync
#define tcgen05_after_sync real_after_sync
#define tcgen05_load real_load
#define tcgen05_store real_store
#define tcgen05_store_wait real_store_wait
#include "real_tcgen05.cuh"
#undef tcgen05_alloc
#undef tcgen05_dealloc
#undef tcgen05_mma
#undef tcgen05_mma_tensor
#undef tcgen05_commit
#undef tcgen05_before_sync
#undef tcgen05_after_sync
#undef tcgen05_load
#undef tcgen05_store
#undef tcgen05_store_wait

static constexpr unsigned TOGETHER = 8;  // rows of a product that one lane computes at a time, as memory is far away
static constexpr unsigned EMULATED_CTAS = 4, LANES = 128, TENSOR_COLUMNS = 512, NAN_BITS = 0x7fffffff;
__device__ unsigned tensor_memory[EMULATED_CTAS][LANES][TENSOR_COLUMNS];

static __device__ __forceinline__ void demand(bool legal) {
    if (!legal) __trap();
}

static __device__ __forceinline__ volatile unsigned &tensor_word(unsigned lane, unsigned column) {
    demand(lane < LANES && column < TENSOR_COLUMNS);
    return tensor_memory[blockIdx.x % EMULATED_CTAS][lane][column];
}

// The last columns that it can give, so that an address of 0 is no lucky guess where there are fewer than all.
template <unsigned COLUMNS>
static __device__ __forceinline__ void tcgen05_alloc(unsigned to) {
    demand(COLUMNS >= 32 && COLUMNS <= TENSOR_COLUMNS && (COLUMNS & (COLUMNS - 1)) == 0);
    for (unsigned i = threadIdx.x % 32; i < LANES * TENSOR_COLUMNS; i += 32) tensor_word(i / 512, i % 512) = NAN_BITS;
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(to), "r"(TENSOR_COLUMNS - COLUMNS) : "memory");
}

template <unsigned COLUMNS>
static __device__ __forceinline__ void tcgen05_dealloc(unsigned address) {
    demand(address == TENSOR_COLUMNS - COLUMNS);
    for (unsigned i = threadIdx.x % 32; i < LANES * TENSOR_COLUMNS; i += 32) tensor_word(i / 512, i % 512) = NAN_BITS;
}

static __device__ __forceinline__ float bf16_at(unsigned address) {
    unsigned short v;
    asm volatile("ld.shared.u16 %0, [%1];" : "=h"(v) : "r"(address) : "memory");
    return __uint_as_float((unsigned)v << 16);
}

// A shared memory descriptor with 128-byte swizzle, of an operand with 16 of K.
struct Operand {
    unsigned start, leading, stride, transposed;
    __device__ __forceinline__ Operand(unsigned long long d, unsigned is_transposed)
        : start((unsigned)(d & 0x3fff) << 4), leading((unsigned)(d >> 16 & 0x3fff) << 4),
          stride((unsigned)(d >> 32 & 0x3fff) << 4), transposed(is_transposed) {
        demand((d >> 46 & 7) == 1 && (d >> 49 & 0xfff) == 0 && d >> 61 == 2);  // version; base, mode and zeros; 128 bytes
        demand((d >> 14 & 3) == 0 && (d >> 30 & 3) == 0);
    }
    __device__ __forceinline__ float at(unsigned mn, unsigned k) const {
        const unsigned plain = transposed ? start + mn % 64 * 2 + mn / 64 * leading + k % 8 * 128 + k / 8 * stride
                                          : start + mn % 8 * 128 + mn / 8 * stride + 2 * k;
        return bf16_at(plain ^ (plain >> 7 & 7) << 4);
    }
};

// An instruction descriptor of kind::f16.
struct Instruction {
    unsigned m, n, transpose_a, transpose_b;
    __device__ __forceinline__ explicit Instruction(unsigned d)
        : m((d >> 24 & 31) * 16), n((d >> 17 & 63) * 8), transpose_a(d >> 15 & 1), transpose_b(d >> 16 & 1) {
        demand((d & 0xf) == 0 && (d >> 4 & 3) == 1 && (d >> 6 & 1) == 0);           // dense, sums in fp32
        demand((d >> 7 & 7) == 1 && (d >> 10 & 7) == 1 && (d >> 13 & 3) == 0);      // bf16, not negated
        demand((d >> 23 & 1) == 0 && d >> 29 == 0);
        demand(m == LANES && n % 16 == 0 && n >= 16 && n <= 256);
    }
};

template <typename A>
static __device__ __forceinline__ void multiply_add(unsigned d, const A &a, const Operand &b, const Instruction &shape,
                                                    unsigned accumulate) {
    demand(d >> 16 == 0);
#pragma unroll 1
    for (unsigned n = 0; n < shape.n; ++n) {
        float column[16];
#pragma unroll
        for (unsigned k = 0; k < 16; ++k) column[k] = b.at(n, k);
#pragma unroll 1
        for (unsigned m = 0; m < shape.m; m += TOGETHER) {
            float sum[TOGETHER];
#pragma unroll
            for (unsigned i = 0; i < TOGETHER; ++i) sum[i] = accumulate ? __uint_as_float(tensor_word(m + i, d + n)) : 0;
#pragma unroll
            for (unsigned k = 0; k < 16; ++k)
#pragma unroll
                for (unsigned i = 0; i < TOGETHER; ++i) sum[i] = fmaf(a.at(m + i, k), column[k], sum[i]);
#pragma unroll
            for (unsigned i = 0; i < TOGETHER; ++i) tensor_word(m + i, d + n) = __float_as_uint(sum[i]);
        }
    }
}

static __device__ __noinline__ void tcgen05_mma(unsigned d, unsigned long long a, unsigned long long b, unsigned shape,
                                                   unsigned accumulate) {
    const Instruction instruction(shape);
    multiply_add(d, Operand(a, instruction.transpose_a), Operand(b, instruction.transpose_b), instruction, accumulate);
}

struct TensorOperand {
    unsigned column;
    __device__ __forceinline__ float at(unsigned m, unsigned k) const {
        const unsigned pair = tensor_word(m, column + k / 2);
        return __uint_as_float(k % 2 ? pair & 0xffff0000 : pair << 16);
    }
};

static __device__ __noinline__ void tcgen05_mma_tensor(unsigned d, unsigned a, unsigned long long b, unsigned shape,
                                                          unsigned accumulate) {
    const Instruction instruction(shape);
    demand(a >> 16 == 0 && instruction.transpose_a == 0);
    multiply_add(d, TensorOperand{a}, Operand(b, instruction.transpose_b), instruction, accumulate);
}

static __device__ __forceinline__ void tcgen05_commit(unsigned barrier) { mbarrier_arrive(barrier); }
static __device__ __forceinline__ void tcgen05_before_sync() {}
static __device__ __forceinline__ void tcgen05_after_sync() {}

// 32x32b: a warp reaches the 32 lanes of its place in its warp group, a lane a thread.
static __device__ __forceinline__ unsigned lane_of_thread(unsigned address) {
    demand(address >> 16 == threadIdx.x / 32 % 4 * 32);
    return threadIdx.x % 128;
}
static __device__ __forceinline__ void tcgen05_load(unsigned (&v)[32], unsigned address) {
    for (unsigned i = 0; i < 32; ++i) v[i] = tensor_word(lane_of_thread(address), (address & 0xffff) + i);
}
static __device__ __forceinline__ void tcgen05_store(unsigned address, const unsigned *v) {
    for (unsigned i = 0; i < 16; ++i) tensor_word(lane_of_thread(address), (address & 0xffff) + i) = v[i];
}
static __device__ __forceinline__ void tcgen05_store_wait() {}
