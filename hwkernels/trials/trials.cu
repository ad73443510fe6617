// Rules that PTX does not promise, on trial: a kernel that relies on one TRIAL of them, as often as it can, and looks whether it
// was kept. out[0] counts the tries, out[1] those in which it was not. With CONTROL the code is wrong by PTX and by the
// hardware, and out[1] must count: else nothing could be seen. Every wait is bounded.
#include "mbarrier.cuh"

enum Trial {
    NO_COMPLETE,    // an arrive.noComplete that completes its phase
    PROXIES,        // reads of a thread, an arrive, and a copy that overwrites what was read, without fence.proxy.async
    INIT,           // a copy that arrives on a barrier which its thread has initialised, without a fence
    EXIT,           // a bulk store that reads the shared memory of a CTA which has ended
    EXIT_CHECK,     // what these stores left
    LANES,          // an arrive of one lane for all, after a branch, without a barrier of the warp
    EXITED_THREADS, // bar.sync of all threads, some of which have ended
    GENERIC,        // a generic address in an instruction on .shared
    WGMMA_FENCE,    // a wgmma without wgmma.fence, on registers that were just written
    TENSOR_FENCES,  // tensor memory of one thread read by another one, without tcgen05.fence
    TENSOR_LOADS,   // registers of tcgen05.ld used before tcgen05.wait::ld
    TX_EDGE,        // a transaction count of 1,048,576
    COPY_COMMITS,   // two commits of one thread's cp.async, of which the first should arrive first
    COMMITS,        // two tcgen05.commit of one thread, likewise
    TENSOR_LANES,   // tensor memory at the lanes of the first warp, of which each warp means its own
};

static constexpr unsigned THREADS = TRIAL == TENSOR_FENCES || TRIAL == TENSOR_LANES ? 256 : 128, MOST_TRIES = 1u << 16, EXIT_WORDS = 512, ITEMS = 64;

static __device__ __forceinline__ void count(unsigned long long *out, unsigned tries, unsigned seen) {
    atomicAdd(out, (unsigned long long)tries);
    if (seen) atomicAdd(out + 1, (unsigned long long)seen);
}

static __device__ __forceinline__ unsigned tested(unsigned barrier, unsigned parity) {
    unsigned done;
    asm volatile("{\n\t.reg .pred p;\n\tmbarrier.test_wait.parity.shared::cta.b64 p, [%1], %2;\n\tselp.u32 %0, 1, 0, p;\n\t}"
                 : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    return done;
}

static __device__ __forceinline__ bool completes(unsigned barrier, unsigned parity) {
    for (unsigned i = 0; i < MOST_TRIES; ++i)
        if (tested(barrier, parity)) return true;
    return false;
}

static __device__ __forceinline__ void expect(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

static __device__ __forceinline__ void complete(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// Whether the barrier after the first one completes, and the first one has not when that is seen.
static __device__ __forceinline__ bool overtakes(unsigned first) {
    for (unsigned i = 0; i < MOST_TRIES; ++i)
        if (tested(first + 8, 0)) return !tested(first, 0);
    return false;
}

// Barrier and tcgen05.fence, which TENSOR_FENCES leaves out.
static __device__ __forceinline__ void meet(bool meets) {
#if TRIAL == 14
    asm volatile("tcgen05.fence::before_thread_sync;" ::: "memory");
#endif
    if (meets) __syncthreads();
#if TRIAL == 14
    asm volatile("tcgen05.fence::after_thread_sync;" ::: "memory");
#endif
}

static __device__ __forceinline__ unsigned mix(unsigned x) {
    x ^= x >> 16;
    x *= 0x7feb352du;
    return x ^ x >> 15;
}

extern "C" __global__ void __launch_bounds__(THREADS) trial(unsigned rounds, unsigned long long *out, unsigned *global) {
    __shared__ __align__(128) unsigned tile[THREADS * 4];
    __shared__ __align__(8) unsigned long long words[THREADS];
    const unsigned thread = threadIdx.x, warp = thread / 32, lane = thread % 32;
    const unsigned data = shared_address(tile), own = shared_address(words + thread);
    unsigned tries = 0, seen = 0;
#if TRIAL == 0
    for (; tries < rounds; ++tries) {
        mbarrier_init(own, CONTROL ? 2 : 1);
        asm volatile("{\n\t.reg .b64 s;\n\tmbarrier.arrive.noComplete.shared::cta.b64 s, [%0], 1;\n\t}" ::"r"(own) : "memory");
        seen += !tested(own, 0);
        mbarrier_inval(own);
    }
#elif TRIAL == 1  // warp 0 copies items of 1,536 bytes, the others read them; item n has n in each word
    const unsigned full = shared_address(words), empty = full + 8;
    if (thread == 0) {
        mbarrier_init(full, 1);
        mbarrier_init(empty, 96);
        mbarrier_init_fence();
    }
    __syncthreads();
    bool alive = true;
    for (; tries < rounds && alive; ++tries) {
        if (thread == 0) {
            alive = tries == 0 || completes(empty, (tries - 1) & 1);
            mbarrier_arrive_expect_tx(full, 1536);
            bulk_load(data, global + tries % ITEMS * 384, 1536, full);
        } else if (warp) {
            alive = completes(full, tries & 1);
            if (CONTROL) {
                mbarrier_arrive(empty);
                __nanosleep(2000);
            }
            const uint4 v = load_shared(data + (thread - 32) * 16);
            if (!CONTROL) mbarrier_arrive(empty);
            const unsigned item = tries % ITEMS;
            seen += v.x != item || v.y != item || v.z != item || v.w != item;
        }
    }
    if (thread == 0) completes(full, (tries - 1) & 1);
    tries = thread == 0 ? tries : 0;
#elif TRIAL == 2  // lane 0 of each warp
    if (lane == 0)
        for (; tries < (CONTROL ? 4 : rounds); ++tries) {
            mbarrier_init(own, 1);
            mbarrier_arrive_expect_tx(own, CONTROL ? 32 : 16);
            bulk_load(data + 16 * thread, global, 16, own);
            seen += !completes(own, 0);
            mbarrier_inval(own);
        }
#elif TRIAL == 3  // global: 2 KB of each CTA
    for (unsigned i = thread; i < EXIT_WORDS; i += THREADS) tile[i] = mix(blockIdx.x * EXIT_WORDS + i + rounds);
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (thread == 0) {
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], 2048;\n\tcp.async.bulk.commit_group;"
                     ::"l"(__cvta_generic_to_global(global + (size_t)blockIdx.x * EXIT_WORDS)), "r"(data) : "memory");
        if (CONTROL) tile[0] = tile[EXIT_WORDS - 1] = 0;
    }
    return;
#elif TRIAL == 4
    for (unsigned i = thread; i < EXIT_WORDS; i += THREADS)
        seen |= global[(size_t)blockIdx.x * EXIT_WORDS + i] != mix(blockIdx.x * EXIT_WORDS + i + rounds);
    seen = __syncthreads_or(seen) && thread == 0;
    tries = thread == 0;
#elif TRIAL == 5  // warps 0 and 2 write, 1 and 3 read
    const unsigned full = shared_address(words + warp / 2 * 2), empty = full + 8;
    volatile unsigned *mine = tile + warp / 2 * 32;
    if (thread % 64 == 0) {
        mbarrier_init(full, 1);
        mbarrier_init(empty, 1);
        mbarrier_init_fence();
    }
    __syncthreads();
    bool alive = true;
    for (; tries < rounds && alive; ++tries) {
        if (warp % 2 == 0) {
            alive = tries == 0 || completes(empty, (tries - 1) & 1);
            unsigned x = mix(lane * 31 + tries);
            if (CONTROL && lane == 0) mbarrier_arrive(full);
            for (unsigned i = x % 8; i > 0; --i) x = mix(x + i);  // lanes part
            mine[lane] = x == 0xffffffffu ? x : tries;
            if (!CONTROL && lane == 0) mbarrier_arrive(full);
        } else {
            alive = completes(full, tries & 1);
            seen += mine[lane] != tries;
            __syncwarp();
            if (lane == 0) mbarrier_arrive(empty);
        }
    }
    tries = thread % 64 == 0 ? tries : 0;
#elif TRIAL == 6
    if (thread >= 64 + 32 * (blockIdx.x % 2)) return;
    for (; tries < rounds; ++tries) {
        tile[thread] = tries;
        if (!CONTROL) asm volatile("bar.sync 0;" ::: "memory");
        seen += tile[(thread + 32) % 64] != tries && thread < 64;
        if (!CONTROL) asm volatile("bar.sync 0;" ::: "memory");
    }
    tries = thread == 0 ? tries : 0;
#elif TRIAL == 7
    for (; tries < rounds; ++tries) {
        unsigned found;
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(data + 4 * thread), "r"(CONTROL ? 0xffffffffu : tries) : "memory");
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(found) : "l"(tile + thread) : "memory");
        seen += found != tries;
    }
#elif TRIAL == 8
    for (unsigned i = thread; i < EXIT_WORDS; i += THREADS) tile[i] = 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned long long zeros = (data & 0x3ffff) >> 4 | 1ull << 16 | 1ull << 32;
    for (; tries < rounds; ++tries) {
        const float want = (float)(tries % 4096 + thread);
        float d[4] = {want + 1, want + 2, want + 3, want + 4};
        if (CONTROL) d[3] = 0;
        asm volatile(
            "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;\n\t"
            "wgmma.commit_group.sync.aligned;\n\twgmma.wait_group.sync.aligned 0;"
            : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]) : "l"(zeros) : "memory");
        seen += d[0] != want + 1 || d[1] != want + 2 || d[2] != want + 3 || d[3] != want + 4;
    }
    tries = thread == 0 ? tries : 0;
#elif TRIAL == 11
    for (; tries < rounds; ++tries) {
        mbarrier_init(own, 1);
        expect(own, 1048575);
        bool early = tested(own, 0);  // ptxas makes one expect_tx of two that follow each other, of 2^20, which traps
        expect(own, 1);
        complete(own, 1048575);
        mbarrier_arrive(own);
        early |= tested(own, 0);
        if (!CONTROL) complete(own, 1);
        seen += early || !tested(own, 0);
        mbarrier_inval(own);
    }
#elif TRIAL == 12  // two barriers a thread; lines of global memory that other threads have not fetched
    if (warp < 2)
        for (const unsigned first = shared_address(words + 2 * thread); tries < rounds; ++tries) {
            mbarrier_init(first, 1);
            mbarrier_init(first + 8, 1);
            if (CONTROL) asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(first + 8) : "memory");
            const unsigned line = (mix(blockIdx.x * 64 + thread) + tries) % (1u << 20);
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                         ::"r"(data + 16 * thread), "l"(__cvta_generic_to_global(global + 32 * line)) : "memory");
            asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(first) : "memory");
            if (!CONTROL) asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(first + 8) : "memory");
            seen += overtakes(first);
            completes(first, 0);
            mbarrier_inval(first);
            mbarrier_inval(first + 8);
        }
#else  // tensor memory, of Blackwell: 32 columns; warps 4 to 7 access the lanes of warps 0 to 3
    __shared__ unsigned place;
    if (warp == 0) {
        asm volatile("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%0], 32;" ::"r"(shared_address(&place)) : "memory");
        asm volatile("tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned;" ::: "memory");
    }
    __syncthreads();
    const unsigned column = place + (warp % 4 << 21);
#if TRIAL == 13  // products of 64 x 8 zeros
    for (unsigned i = thread; i < EXIT_WORDS; i += THREADS) tile[i] = 0;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    const unsigned first = shared_address(words), bits = 1u << 4 | 1u << 7 | 1u << 10 | 1u << 17 | 4u << 24;
    const unsigned long long zeros = (data & 0x3ffff) >> 4 | 1ull << 16 | 8ull << 32 | 1ull << 46;
    for (; tries < rounds && thread == 0; ++tries) {
        mbarrier_init(first, 1);
        mbarrier_init(first + 8, 1);
        mbarrier_init_fence();
        for (unsigned n = 0; n < 2; ++n) {
            if (n == (CONTROL ? 0 : 1))
                asm volatile("tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%0];" ::"r"(first + 8) : "memory");
            if (n == 0)
                asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.u32 p, 0, 1;\n\t"
                             "tcgen05.mma.cta_group::1.kind::f16 [%0], %1, %1, %2, p;\n\t"
                             "tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [%3];\n\t}"
                             ::"r"(place), "l"(zeros), "r"(bits), "r"(first) : "memory");
        }
        seen += overtakes(first);
        completes(first, 0);
        mbarrier_inval(first);
        mbarrier_inval(first + 8);
    }
    __syncthreads();
#else
    for (; tries < rounds; ++tries) {
        unsigned found = tries + thread % 128, moved = found;
        const unsigned stored = TRIAL == TENSOR_LANES && tries % 2 ? place : column;
        const unsigned loaded = TRIAL == TENSOR_LANES && tries % 2 == 0 ? place : column;
        if (thread < 128) {
            asm volatile("tcgen05.st.sync.aligned.32x32b.x1.b32 [%0], {%1};" ::"r"(stored), "r"(found) : "memory");
            if (TRIAL != TENSOR_LOADS || !CONTROL) asm volatile("tcgen05.wait::st.sync.aligned;" ::: "memory");
        }
        if (TRIAL != TENSOR_LOADS) meet(!CONTROL);
        if (thread + 128 >= THREADS) {
            asm volatile("tcgen05.ld.sync.aligned.32x32b.x1.b32 {%0}, [%1];" : "=r"(found) : "r"(loaded) : "memory");
            if (TRIAL == TENSOR_LOADS) asm volatile("add.u32 %0, %1, 1;" : "=r"(moved) : "r"(found) : "memory");
            asm volatile("tcgen05.wait::ld.sync.aligned;" ::: "memory");
            moved = TRIAL == TENSOR_LOADS ? moved - 1 : found;
        }
        seen += moved != tries + thread % 128;
        meet(true);
    }
#endif
    if (warp == 0) asm volatile("tcgen05.dealloc.cta_group::1.sync.aligned.b32 %0, 32;" ::"r"(place) : "memory");
    tries = thread == 0 ? tries : 0;
#endif
    count(out, tries, seen);
}
