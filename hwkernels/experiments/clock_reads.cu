// Five looks at the clocks, chosen by `mode`; what each writes to out is said at its function.
#include "operations.cuh"

static constexpr unsigned DEADLINE_NS = 20000000, READS = 32;

// How far %globaltimer moves when it moves: out[count], nanoseconds. One thread.
static __device__ void steps(unsigned count, unsigned *out) {
    unsigned long long last = globaltimer();
    for (unsigned i = 0; i < count; ++i) {
        unsigned long long now;
        do now = globaltimer();
        while (now == last);
        out[i] = (unsigned)(now - last);
        last = now;
    }
}

enum Kind { KIND_NONE, KIND_CLOCK, KIND_CLOCK64, KIND_GLOBALTIMER, KIND_GLOBALTIMER_LO, KINDS };

template <int KIND>
static __device__ __forceinline__ unsigned read_clock() {
    if (KIND == KIND_CLOCK) return clock_cycles();
    if (KIND == KIND_CLOCK64) return (unsigned)clock_cycles64();
    if (KIND == KIND_GLOBALTIMER) return (unsigned)globaltimer();
    if (KIND == KIND_GLOBALTIMER_LO) return globaltimer_low();
    return 0;
}

// Cycles that READS readings of each kind take, each used: out[KINDS][count]. One thread.
template <int KIND>
static __device__ void cost(unsigned count, unsigned *out) {
    unsigned used = 0;
#pragma unroll 1
    for (unsigned i = 0; i < count; ++i) {
        const unsigned begin = clock_cycles();
#pragma unroll
        for (unsigned k = 0; k < READS; ++k) used ^= read_clock<KIND>();
        asm volatile("" :: "r"(used) : "memory");
        out[KIND * count + i] = clock_cycles() - begin;
    }
    if (used == 0x12345678u) out[KIND * count] = 0;  // so that the readings are needed
}

// %clock right behind a CTA barrier: out[count][8], one stamp a warp. 8 warps.
static __device__ void behind_barrier(unsigned count, unsigned *out) {
    for (unsigned i = 0; i < count; ++i) {
        __syncthreads();
        const unsigned now = clock_cycles();
        if (threadIdx.x % 32 == 0) out[8 * i + threadIdx.x / 32] = now;
    }
}

static __device__ __forceinline__ bool seen(volatile unsigned *flag, unsigned value) {
    const unsigned since = globaltimer_low();
    for (unsigned tries = 1; *flag != value; ++tries)
        if (tries % 256 == 0 && expired(since, DEADLINE_NS)) return false;
    return true;
}

// Warp 0 sends a flag to warp w and gets it back, for w = 1 .. 7: out[7][count][4], the stamps sent by 0, received by
// w, sent by w, received by 0. A stamp is taken before a flag is set and after it is seen. 8 warps.
static __device__ void between_warps(unsigned count, unsigned *out) {
    __shared__ unsigned there, back;
    const unsigned warp = threadIdx.x / 32;
    for (unsigned w = 1; w < 8; ++w) {
        __syncthreads();
        if (threadIdx.x == 0) there = back = 0;
        __syncthreads();
        if (threadIdx.x % 32 == 0 && (warp == 0 || warp == w)) {
            volatile unsigned *set = warp ? &back : &there, *look = warp ? &there : &back;
            unsigned *stamps = out + (unsigned long long)(w - 1) * count * 4;
            for (unsigned i = 0; i < count; ++i, stamps += 4) {
                if (warp && !seen(look, i + 1)) break;
                const unsigned received = clock_cycles();
                const unsigned sent = clock_cycles();
                *set = i + 1;
                if (warp) {
                    stamps[1] = received;
                    stamps[2] = sent;
                    continue;
                }
                if (!seen(look, i + 1)) break;
                stamps[3] = clock_cycles();
                stamps[0] = sent;
            }
        }
    }
}

// %globaltimer of all SMs, one CTA an SM: out[count][grid][2] of 64 bits. Every CTA stamps, arrives, and stamps when it
// sees that CTA 0 let go; CTA 0 stamps when all have arrived, and again before it lets go. One thread a CTA.
static __device__ void across_chip(unsigned count, unsigned long long *out, unsigned *shared) {
    volatile unsigned *arrived = shared, *go = shared + 32;
    for (unsigned i = 0; i < count; ++i) {
        unsigned long long *stamps = out + 2 * ((unsigned long long)i * gridDim.x + blockIdx.x);
        if (blockIdx.x == 0) {
            if (!seen(arrived, (i + 1) * (gridDim.x - 1))) return;
            stamps[0] = globaltimer();
            stamps[1] = globaltimer();
            *go = i + 1;
        } else {
            stamps[0] = globaltimer();
            __threadfence();
            atomicAdd(shared, 1u);
            if (!seen(go, i + 1)) return;
            stamps[1] = globaltimer();
        }
    }
}

extern "C" __global__ void clock_reads(unsigned mode, unsigned count, void *out, unsigned *shared) {
    unsigned *words = (unsigned *)out;
    if (mode == 0) steps(count, words);
    if (mode == 1) {
        for (unsigned warm = 0; warm < 2; ++warm) {
            cost<KIND_NONE>(count, words);
            cost<KIND_CLOCK>(count, words);
            cost<KIND_CLOCK64>(count, words);
            cost<KIND_GLOBALTIMER>(count, words);
            cost<KIND_GLOBALTIMER_LO>(count, words);
        }
    }
    if (mode == 2) behind_barrier(count, words);
    if (mode == 3) between_warps(count, words);
    if (mode == 4) across_chip(count, (unsigned long long *)out, shared);
}
