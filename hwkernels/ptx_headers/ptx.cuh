// What several kernels need of PTX beside the copy engine and the tensor cores: shared memory by its address, named barriers,
// registers and numbers. One function an instruction.
#pragma once

static __device__ __forceinline__ unsigned load_shared_32(unsigned address) {
    unsigned value;
    asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(address) : "memory");
    return value;
}

static __device__ __forceinline__ void store_shared(unsigned address, const uint4 &v) {
    asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(v.x), "r"(v.y), "r"(v.z), "r"(v.w)
                 : "memory");
}

static __device__ __forceinline__ void store_shared_32(unsigned address, unsigned value) {
    asm volatile("st.shared.b32 [%0], %1;" ::"r"(address), "r"(value) : "memory");
}

// A whole warp, at a named barrier of this many threads in all.
template <unsigned NAME, unsigned COUNT>
static __device__ __forceinline__ void named_arrive() {
    asm volatile("barrier.arrive %0, %1;" ::"n"(NAME), "n"(COUNT) : "memory");
}

template <unsigned NAME, unsigned COUNT>
static __device__ __forceinline__ void named_sync() {
    asm volatile("barrier.sync %0, %1;" ::"n"(NAME), "n"(COUNT) : "memory");
}

// The same where the barrier's number is not a constant.
template <unsigned COUNT>
static __device__ __forceinline__ void named_arrive(unsigned name) {
    asm volatile("bar.arrive %0, %1;" ::"r"(name), "n"(COUNT) : "memory");
}

template <unsigned COUNT>
static __device__ __forceinline__ void named_sync(unsigned name) {
    asm volatile("bar.sync %0, %1;" ::"r"(name), "n"(COUNT) : "memory");
}

static __device__ __forceinline__ unsigned bf16_pair(float low, float high) {
    unsigned pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

// 2 to the power of x; exact for x = 0, and 0 for -infinity.
static __device__ __forceinline__ float exp2_fast(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// All warps of a warp group: this many registers a thread from now on, more or fewer than before.
template <unsigned COUNT>
static __device__ __forceinline__ void take_registers() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(COUNT));
}

template <unsigned COUNT>
static __device__ __forceinline__ void leave_registers() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(COUNT));
}
