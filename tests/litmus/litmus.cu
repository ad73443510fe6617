// What every litmus kernel has around the instructions of its threads: where its words lie, when its threads begin, and
// what is counted. One launch has `instances` of a test, each with words of its own that are 0 at first. run.py writes
// threads.h: kCtas, kCluster, kValues, kFinals and kWords, and what each thread does.
using u32 = unsigned int;
using u64 = unsigned long long;
using u8 = unsigned char;

constexpr u32 kPerRole = 128;       // threads of one role in a CTA, each of another instance
constexpr u32 kMostTries = 1 << 20;  // of a wait inside a CTA
constexpr u32 kMostTriesToMeet = 4000;
constexpr u32 kMostStress = 1 << 14;  // accesses of a thread that only makes traffic
constexpr u32 kStressWords = 1 << 16;

struct Launch {
    char* memory;      // `instances` words x, then y, then z, `stride` bytes apart
    u8* found;         // of each value of the outcome those of all instances
    u32* meeting;      // of each group and round how many CTAs have come; then how many have ended, and a place of stress
    u64* counts;       // by the values of an outcome, two bits each: how many instances had it
    u32 groups, rounds, stride, seed;
};

__device__ inline u32 mixed(u32 x) {
    x = (x ^ (x >> 16)) * 0x7feb352du;
    x = (x ^ (x >> 15)) * 0x846ca68bu;
    return x ^ (x >> 16);
}

__device__ inline u32 shared_address(const void* at) { return static_cast<u32>(__cvta_generic_to_shared(at)); }

__device__ inline void init(u64* barrier, u32 count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count) : "memory");
}

template <bool kRelaxed>
__device__ inline void arrive(u64* barrier) {
    if (kRelaxed) {
        asm volatile("mbarrier.arrive.relaxed.cta.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
    } else {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(shared_address(barrier)) : "memory");
    }
}

template <bool kRelaxed>
__device__ inline void wait(u64* barrier, u32 parity) {
    u32 done = 0;
    for (u32 n = 0; n < kMostTries && !done; ++n) {
        if (kRelaxed) {
            asm volatile("{.reg .pred p; mbarrier.try_wait.parity.relaxed.cta.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                         : "=r"(done) : "r"(shared_address(barrier)), "r"(parity) : "memory");
        } else {
            asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                         : "=r"(done) : "r"(shared_address(barrier)), "r"(parity) : "memory");
        }
    }
}

__device__ inline u32 bulk_load(char* from, uint4* slot, u64* barrier, u32 parity) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 16;" ::"r"(shared_address(barrier)) : "memory");
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 16, [%2];"
                 ::"r"(shared_address(slot)), "l"(from), "r"(shared_address(barrier)) : "memory");
    wait<false>(barrier, parity);
    u32 value;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(value) : "r"(shared_address(slot)) : "memory");
    return value;
}

// kWait: 2 until it is complete, 1 until its source is free, 0 not at all.
template <int kWait>
__device__ inline void bulk_store(char* to, uint4* slot) {
    asm volatile("st.shared.v4.u32 [%0], {1, 0, 0, 0}; fence.proxy.async.shared::cta;" ::"r"(shared_address(slot)) : "memory");
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 16; cp.async.bulk.commit_group;"
                 ::"l"(to), "r"(shared_address(slot)) : "memory");
    if (kWait == 2) asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
    if (kWait == 1) asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}

// The CTAs of a group come to a round at about the same time; a CTA that waits too long goes on alone.
__device__ inline void meet(u32* count, u32 ctas) {
    __syncthreads();
    if (threadIdx.x == 0 && ctas > 1) {
        atomicAdd(count, 1);
        for (u32 n = 0; n < kMostTriesToMeet && *static_cast<volatile u32*>(count) < ctas; ++n) {}
    }
    __syncthreads();
}

// Loads that bring the words of an instance into the L1 cache, with their first values.
__device__ inline void touch(char* const* words, u32 drawn) {
    u32 sum = 0, found;
    for (u32 n = 0; n < 3; ++n) {
        asm volatile("ld.global.u32 %0, [%1];" : "=r"(found) : "l"(words[n]) : "memory");
        sum += found;
    }
    if (sum == 0x5eed5eed) *reinterpret_cast<volatile u32*>(words[0]) = drawn;  // never: so that they are made
}

// What CTAs do that are no part of a test: accesses to few lines, until all others have ended.
__device__ inline void stress(const Launch& l, u32 testing) {
    u32* const ended = l.meeting + l.groups * l.rounds;
    u32* const place = ended + 64;
    u32 at = mixed(l.seed + blockIdx.x), sum = 0;
    const u32 lines = l.seed & 2 ? 64 : kStressWords / 32, lane = threadIdx.x % 32;
    for (u32 n = 0; n < kMostStress; ++n) {
        at = mixed(at + n);
        u32* const word = place + at % lines * 32 + lane;
        if (at & 0x1000) atomicAdd(word, 1);
        else if (at & 0x2000) *static_cast<volatile u32*>(word) = n;
        else sum += *static_cast<volatile u32*>(word);
        if (n % 32 == 0 && *static_cast<volatile u32*>(ended) >= testing) break;
    }
    if (sum == 0x5eed5eed) place[0] = sum;
}

__device__ inline u32 class_of(u32 value) { return value & 3; }
__device__ inline u32 class_of(u64 value) { return static_cast<u32>(value | value >> 31) & 3; }

// How many instances had each outcome: values that threads found, then the last values of the words in `finals`.
__device__ inline void count(const Launch& l, u32 values, const u32* finals, u32 words) {
    const u32 instances = l.groups * l.rounds * kPerRole;
    __shared__ u32 here[4096];
    for (u32 n = threadIdx.x; n < 4096; n += blockDim.x) here[n] = 0;
    __syncthreads();
    for (u32 i = blockIdx.x * blockDim.x + threadIdx.x; i < instances; i += gridDim.x * blockDim.x) {
        u32 key = 0;
        for (u32 v = 0; v < values; ++v) key |= l.found[static_cast<u64>(v) * instances + i] << 2 * v;
        for (u32 w = 0; w < words; ++w) {
            const u64 at = (static_cast<u64>(finals[w]) * instances + i) * l.stride;
            key |= class_of(*reinterpret_cast<u32*>(l.memory + at)) << 2 * (values + w);
        }
        atomicAdd(&here[key], 1);
    }
    __syncthreads();
    for (u32 n = threadIdx.x; n < 4096; n += blockDim.x) {
        if (here[n]) atomicAdd(&l.counts[n], static_cast<u64>(here[n]));
    }
}

__shared__ __align__(128) uint4 slots[512];  // of each thread
__shared__ u64 done[512], middle;

#include "threads.h"

extern "C" __global__ void litmus(Launch l, u32 counting) {
    if (counting) return count(l, kValues, kFinals, kWords);
    if (blockIdx.x >= l.groups * kCtas) return stress(l, l.groups * kCtas);
    const u32 instances = l.groups * l.rounds * kPerRole, me = threadIdx.x % kPerRole, role = threadIdx.x / kPerRole;
    const bool apart = (l.seed & 1) && !kCluster;
    const u32 group = apart ? blockIdx.x % l.groups : blockIdx.x / kCtas;
    const u32 cta = apart ? blockIdx.x / l.groups : blockIdx.x % kCtas;
    init(&done[threadIdx.x], 1);
    if (threadIdx.x == 0) init(&middle, kPerRole);
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    for (u32 round = 0; round < l.rounds; ++round) {
        const u32 drawn = mixed(l.seed * 7919 + blockIdx.x * 64 + round);
        const u32 other = role + cta ? mixed(l.seed + round) % kPerRole : 0;  // lanes of one instance are not alike
        const u32 i = (round * l.groups + group) * kPerRole + (me ^ other);
        char* words[3];
        for (u64 n = 0; n < 3; ++n) words[n] = l.memory + (n * instances + i) * l.stride;
        if (drawn & 1) touch(words, drawn);
        meet(l.meeting + round * l.groups + group, kCtas);
        for (u32 n = (drawn >> 8) % ((drawn & 6) ? 64 : 512); n; --n) asm volatile("" ::: "memory");
        run(cta, role, words[0], words[1], words[2], l.found + i, instances, round);
    }
    __syncthreads();
    if (threadIdx.x == 0) atomicAdd(l.meeting + l.groups * l.rounds, 1);
}
