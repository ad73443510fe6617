// More kernels whose CTAs talk by words of global memory: each right, and wrong with WRONG defined as 1.
// A comment "wrong" marks a line of the finding.
#if WRONG
#define EITHER(right, wrong) wrong
#else
#define EITHER(right, wrong) right
#endif
constexpr int kThreads = 64;

__device__ unsigned acquire(const unsigned* at) {
    unsigned found;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(at) : "memory");
    return found;
}
__device__ void release(unsigned* at, unsigned value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

// The last CTA takes the counter back by a plain store, which is ordered with all that is done to it.
extern "C" __global__ void last_resets(unsigned* flags, float* x, float* y) {
    __shared__ bool last;
    x[blockIdx.x * kThreads + threadIdx.x] = 1;
    __threadfence();
    __syncthreads();
    if (threadIdx.x == 0) {
        last = atomicAdd(flags, 1) == EITHER(gridDim.x - 1, 0);
        if (last) *flags = 0; // wrong
        __threadfence();
    }
    __syncthreads();
    for (unsigned i = 0; last && i < gridDim.x; ++i) y[threadIdx.x] += x[i * kThreads + threadIdx.x];
}

// A barrier with a generation, whose count the last CTA takes back by a plain store: before others may go on.
extern "C" __global__ void plain_reset(unsigned* flags, float* x, float* y) {
    const unsigned n = gridDim.x, me = blockIdx.x;
    for (int lap = 0; lap < 2; ++lap) {
        x[(lap * n + me) * kThreads + threadIdx.x] = me;
        __syncthreads();
        if (threadIdx.x == 0) {
            const unsigned generation = *(volatile unsigned*)(flags + 1);
            __threadfence();
            if (atomicAdd(flags, 1) == n - 1) {
                EITHER(*flags = 0, );
                __threadfence();
                atomicAdd(flags + 1, 1);
                EITHER(, *flags = 0); // wrong
            } else {
                while (*(volatile unsigned*)(flags + 1) == generation) {}
            }
            __threadfence();
        }
        __syncthreads();
        y[(lap * n + me) * kThreads + threadIdx.x] = x[(lap * n + (me + 1) % n) * kThreads + threadIdx.x];
    }
}

// The counter is taken back while others may still wait for it.
extern "C" __global__ void early_reset(unsigned* flags, float* x, float* y) {
    x[blockIdx.x * kThreads + threadIdx.x] = 1;
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        atomicAdd(flags, 1);
        while (acquire(flags) < gridDim.x) {}
        __threadfence();
        if (EITHER(atomicAdd(flags + 1, 1) == gridDim.x - 1, blockIdx.x == 0)) {
            __threadfence();
            flags[0] = 0; // wrong
        }
    }
    __syncthreads();
    y[blockIdx.x * kThreads + threadIdx.x] = x[(blockIdx.x + 1) % gridDim.x * kThreads + threadIdx.x];
}

// One CTA sets the counter to 0 in the kernel that counts.
extern "C" __global__ void initialised(unsigned* flags, float* x, float* y) {
    if (threadIdx.x == 0) {
        EITHER(, if (blockIdx.x == 0) *flags = 0;)
        atomicAdd(flags, 1);
        while (acquire(flags) < gridDim.x) {} // wrong
    }
}

// A flag that is set by a plain store.
extern "C" __global__ void plain_flag(unsigned* flags, float* x, float* y) {
    if (blockIdx.x == 0) {
        x[threadIdx.x] = 1;
        __threadfence();
        __syncthreads();
        if (threadIdx.x == 0) EITHER(release(flags, 1), *flags = 1); // wrong
    } else if (blockIdx.x == 1) {
        if (threadIdx.x == 0) while (acquire(flags) == 0) {}
        __syncthreads();
        y[threadIdx.x] = x[threadIdx.x];
    }
}

// A scan: each CTA hands its sum on in the word of its flag, or beside it.
extern "C" __global__ void scan(unsigned* flags, float* x, float* y) {
    unsigned long long* sums = (unsigned long long*)flags;
    const unsigned me = blockIdx.x;
    if (threadIdx.x == 0) {
        unsigned long long sum = __float_as_uint(x[me]), before = 1ull << 32;
        if (me) do before = *(volatile unsigned long long*)(sums + me - 1); while (before >> 32 == 0);
        sum = __float_as_uint(__uint_as_float(unsigned(before)) + __uint_as_float(unsigned(sum)));
        EITHER(, if (me) y[me] = __uint_as_float(y[me - 1])); // wrong
        *(volatile unsigned long long*)(sums + me) = 1ull << 32 | sum;
        EITHER(y[me] = __uint_as_float(unsigned(sum)), if (!me) y[me] = 1);
    }
}

// Tiles are handed out by a counter, each through a word of shared memory.
extern "C" __global__ void scheduler(unsigned* flags, float* x, float* y) {
    __shared__ unsigned shared_tile;
    for (;;) {
        if (threadIdx.x == 0) shared_tile = atomicAdd(flags, 1); // wrong
        __syncthreads();
        const unsigned tile = shared_tile;
        if (tile >= 3) break;
        y[tile * kThreads + threadIdx.x] = x[tile * kThreads + threadIdx.x];
        EITHER(__syncthreads(), );
    }
}

// Tiles are handed out by a counter, and each waits for the one before it.
extern "C" __global__ void chain(unsigned* flags, float* x, float* y) {
    __shared__ unsigned shared_tile;
    if (threadIdx.x == 0) shared_tile = EITHER(atomicAdd(flags, 1), gridDim.x - 1 - atomicAdd(flags, 1));
    __syncthreads();
    const unsigned tile = shared_tile;
    if (threadIdx.x == 0 && tile) while (acquire(flags + tile) == 0) {}
    __syncthreads();
    y[(tile + 1) * kThreads + threadIdx.x] = (tile ? y[tile * kThreads + threadIdx.x] : 0) + 1; // wrong
    EITHER(__syncthreads(), );
    if (threadIdx.x == 0) release(flags + tile + 1, 1);
}

// All CTAs add to the same words by bulk reductions, which are there once their groups are complete.
extern "C" __global__ void bulk_sum(unsigned* flags, float* x, float* y) {
    __shared__ alignas(128) float tile[kThreads];
    tile[threadIdx.x] = 1;
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    __syncthreads();
    if (threadIdx.x == 0) {
        const unsigned from = __cvta_generic_to_shared(tile);
        asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], 256;" ::"l"(x), "r"(from) : "memory");
        asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        asm volatile(EITHER("cp.async.bulk.wait_group 0;", "cp.async.bulk.wait_group.read 0;") ::: "memory");
        __threadfence();
        atomicAdd(flags, 1);
        while (acquire(flags) < gridDim.x) {}
    }
    __syncthreads();
    if (blockIdx.x == 0) y[threadIdx.x] = x[threadIdx.x]; // wrong
}
