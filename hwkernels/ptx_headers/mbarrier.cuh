// The PTX that a ring of bulk copies needs, one function an instruction. Addresses are 32-bit shared addresses.
#pragma once

static constexpr unsigned FULL_WARP = 0xffffffffu;

static __device__ __forceinline__ unsigned shared_address(const void *pointer) {
    return (unsigned)__cvta_generic_to_shared(pointer);
}

// True in one lane of a converged warp: lane 0 on the chips measured. The assembler knows that a branch on it has one
// lane, and issues a bulk copy in it once, without a loop over lanes.
static __device__ __forceinline__ bool elect_one() {
    unsigned elected;
    asm volatile(
        "{\n\t.reg .pred one;\n\t"
        "elect.sync _|one, 0xffffffff;\n\t"
        "selp.u32 %0, 1, 0, one;\n\t}"
        : "=r"(elected));
    return elected != 0;
}

static __device__ __forceinline__ void mbarrier_init(unsigned barrier, unsigned count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(count) : "memory");
}

// Makes the init visible to the copy engine; the CTA still has to meet before anybody touches a barrier.
static __device__ __forceinline__ void mbarrier_init_fence() {
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

// Ends the barrier's life and gives its word, which only then can be read as the barrier unit holds it (measured).
static __device__ __forceinline__ unsigned long long mbarrier_inval(unsigned barrier) {
    unsigned long long word;
    asm volatile("mbarrier.inval.shared::cta.b64 [%1];\n\tld.shared.b64 %0, [%1];" : "=l"(word) : "r"(barrier) : "memory");
    return word;
}

// One arrive by every executing lane.
static __device__ __forceinline__ void mbarrier_arrive(unsigned barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}

static __device__ __forceinline__ void mbarrier_arrive_expect_tx(unsigned barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}

// True if the phase of this parity has completed; may suspend the thread for a time that the hardware chooses.
static __device__ __forceinline__ bool mbarrier_try_wait(unsigned barrier, unsigned parity) {
    unsigned done;
    asm volatile(
        "{\n\t.reg .pred done;\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%1], %2;\n\t"
        "selp.u32 %0, 1, 0, done;\n\t}"
        : "=r"(done) : "r"(barrier), "r"(parity) : "memory");
    return done != 0;
}

static __device__ __forceinline__ void bulk_load(unsigned to, const void *from, unsigned bytes, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        ::"r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier) : "memory");
}

static __device__ __forceinline__ uint4 load_shared(unsigned address) {
    uint4 v;
    asm volatile("ld.shared.v4.u32 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w) : "r"(address));
    return v;
}

static __device__ __forceinline__ unsigned clock_cycles() {
    unsigned now;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now) :: "memory");
    return now;
}

static __device__ __forceinline__ unsigned long long clock_cycles64() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now) :: "memory");
    return now;
}

static __device__ __forceinline__ unsigned globaltimer_low() {
    unsigned now;
    asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(now) :: "memory");
    return now;
}

enum WaitEnd : unsigned { WAIT_DONE = 0, WAIT_DEADLINE = 1, WAIT_STOPPED = 2 };

// Whether x holds: of the thread, or of all 32 lanes where a whole warp waits, so that a warp never parts at a wait.
template <bool WARP>
static __device__ __forceinline__ bool agreed(bool x) {
    return WARP ? __all_sync(FULL_WARP, x) : x;
}

// The part of a wait that is reached only when the first try failed. It looks at the time every 16 tries and at the stop
// flag (null: none) every 100 us, so that neither delays a wait that ends in time. deadline_ns must be below 2^31.
template <bool WARP>
static __device__ WaitEnd wait_slowly(unsigned barrier, unsigned parity, unsigned deadline_ns, const unsigned *stop) {
    unsigned started = 0, polled = 0;
    for (unsigned tries = 1;; ++tries) {
        if (agreed<WARP>(mbarrier_try_wait(barrier, parity))) return WAIT_DONE;
        if (tries % 16 != 0) continue;
        const unsigned now = globaltimer_low();
        if (tries == 16) started = polled = now;
        bool stopped = false;
        if (now - polled > 100000) {
            polled = now;
            stopped = stop != nullptr && *(const volatile unsigned *)stop != 0;
        }
        if (!agreed<WARP>(!stopped)) return WAIT_STOPPED;
        if (!agreed<WARP>(now - started <= deadline_ns)) return WAIT_DEADLINE;
    }
}

template <bool WARP>
static __device__ __forceinline__ WaitEnd wait_parity(unsigned barrier, unsigned parity, unsigned deadline_ns,
                                                      const unsigned *stop) {
    if (agreed<WARP>(mbarrier_try_wait(barrier, parity))) return WAIT_DONE;
    return wait_slowly<WARP>(barrier, parity, deadline_ns, stop);
}
