// What CTAs pay to talk by words of global memory. KIND says what is measured. `words` are zero before a launch. Every loop
// that waits is bounded: a number is NONE where one gave up.
// Of the CTAs of a launch the first `count` take part. out: the cycles of each round of CTA 0, at most MOST. They are kept in
// shared memory, so that no fence waits for them.
enum Kind {
    LOADS,     // ld.acquire, one after the other
    RELAXED,   // st.relaxed, one after the other
    RELEASES,  // st.release after a store of data to another line, until the thread continues
    ADDS,      // red.release of a counter after such a store, until the thread continues
    BARRIER    // a barrier of the grid: __syncthreads, an addition, a loop until all have added, __syncthreads
};

static constexpr unsigned MOST = 256, TRIES = 1u << 18, NONE = 0xffffffffu;
static constexpr unsigned APART = 32;  // words from the data of one CTA to that of the next: a line

static __device__ __forceinline__ unsigned clock32() {
    unsigned now;
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now)::"memory");
    return now;
}

static __device__ __forceinline__ unsigned load(const unsigned *word) {
    unsigned value;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(value) : "l"(word) : "memory");
    return value;
}

static __device__ __forceinline__ void release(unsigned *word, unsigned value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(word), "r"(value) : "memory");
}

static __device__ __forceinline__ void store(unsigned *data, unsigned value) {
    asm volatile("st.global.u32 [%0], %1;" ::"l"(data), "r"(value) : "memory");
}

static __device__ __forceinline__ void add(unsigned *word) {
    asm volatile("red.release.gpu.global.add.u32 [%0], 1;" ::"l"(word) : "memory");
}

// Whether the word has become this much, within the bound.
static __device__ __forceinline__ bool reaches(const unsigned *word, unsigned least) {
#pragma unroll 1
    for (unsigned i = 0; i < TRIES; ++i)
        if (load(word) >= least) return true;
    return false;
}

// All that take part begin together.
static __device__ bool meet(unsigned *counter, unsigned count) {
    add(counter);
    return reaches(counter, count);
}

extern "C" __global__ void __launch_bounds__(64) words(unsigned rounds, unsigned count, unsigned *words,
                                                       unsigned *out) {
    __shared__ unsigned laps[MOST];
    const unsigned me = blockIdx.x;
    if (me >= count || (KIND != BARRIER && threadIdx.x)) return;
    unsigned *const mine = words;
    unsigned *const data = words + 8192 + me * APART, *const start = words + 8191;
    bool ended = threadIdx.x || meet(start, count);
    if (KIND == BARRIER) ended = __syncthreads_and(ended);
    unsigned seen = 0, before = clock32();
    for (unsigned i = 0; i < rounds && ended; ++i) {
        if (KIND == LOADS) seen += load(mine + seen);
        if (KIND == RELAXED) asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(mine), "r"(i) : "memory");
        if (KIND == RELEASES || KIND == ADDS) store(data, i);
        if (KIND == RELEASES) release(mine, i);
        if (KIND == ADDS) add(mine);
        if (KIND == BARRIER) {
            __syncthreads();
            if (threadIdx.x == 0) {
                add(mine);
                ended = reaches(mine, (i + 1) * count);
            }
            ended = __syncthreads_and(ended);
        }
        const unsigned now = clock32() + (seen == NONE);
        if (threadIdx.x == 0) laps[i] = now - before;
        before = now;
    }
    for (unsigned i = 0; me == 0 && threadIdx.x == 0 && i < rounds; ++i) out[i] = ended ? laps[i] : NONE;
}
