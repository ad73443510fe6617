// Kernels whose CTAs talk to each other by words of global memory. Of each pattern, variant 0 is right.
constexpr int kThreads = 64;

#define ADD(name, op)                                                                             \
    __device__ unsigned name(unsigned* at, unsigned by) {                                         \
        unsigned old;                                                                             \
        asm volatile(op " %0, [%1], %2;" : "=r"(old) : "l"(at), "r"(by) : "memory");              \
        return old;                                                                               \
    }
ADD(add_acq_rel, "atom.add.acq_rel.gpu.global.u32")
ADD(add_relaxed, "atom.add.relaxed.gpu.global.u32")
__device__ void red_release(unsigned* at, unsigned by) {
    asm volatile("red.add.release.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(by) : "memory");
}
__device__ void red_release_cta(unsigned* at, unsigned by) {
    asm volatile("red.add.release.cta.global.u32 [%0], %1;" ::"l"(at), "r"(by) : "memory");
}
__device__ void red_relaxed(unsigned* at, unsigned by) {
    asm volatile("red.add.relaxed.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(by) : "memory");
}
__device__ unsigned acquire(const unsigned* at) {
    unsigned found;
    asm volatile("ld.acquire.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(at) : "memory");
    return found;
}
__device__ unsigned relaxed(const unsigned* at) {
    unsigned found;
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(found) : "l"(at) : "memory");
    return found;
}
__device__ void release(unsigned* at, unsigned value) {
    asm volatile("st.release.gpu.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}
__device__ void release_cta(unsigned* at, unsigned value) {
    asm volatile("st.release.cta.global.u32 [%0], %1;" ::"l"(at), "r"(value) : "memory");
}

// Each CTA writes a row, all meet at a counter, each reads the row of the next CTA.
template <int kWrong>
__device__ void counter_barrier(unsigned* flags, float* x, float* y) {
    const unsigned n = gridDim.x, me = blockIdx.x;
    if (kWrong != 2) x[me * kThreads + threadIdx.x] = me;
    __syncthreads();
    if (threadIdx.x == 0) {
        if (kWrong == 3) red_relaxed(flags, 1);
        else if (kWrong == 4) red_release_cta(flags, 1);
        else if (kWrong != 6 || me) red_release(flags, 1);
        const unsigned wanted = kWrong == 1 ? n + 1 : kWrong == 7 ? n - 1 : n;
        if (kWrong == 5) while (relaxed(flags) < wanted) {}
        else while (acquire(flags) < wanted) {}
        if (kWrong == 2) x[me * kThreads] = me;
    }
    __syncthreads();
    y[me * kThreads + threadIdx.x] = x[(me + 1) % n * kThreads + (kWrong == 2 ? 0 : threadIdx.x)];
}

// The same with a counter that goes on, for several laps.
template <int kWrong>
__device__ void lap_barrier(unsigned* flags, float* x, float* y) {
    const unsigned n = gridDim.x, me = blockIdx.x;
    for (unsigned lap = 1; lap <= 3; ++lap) {
        x[me * kThreads + threadIdx.x] = lap;
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(flags, 1);
            while (*(volatile unsigned*)flags < lap * n) {}
            __threadfence();
        }
        __syncthreads();
        y[me * kThreads + threadIdx.x] += x[(me + 1) % n * kThreads + threadIdx.x];
        if (kWrong == 1) continue;  // the next lap writes over what the other reads
        __syncthreads();
        if (threadIdx.x == 0) {
            __threadfence();
            atomicAdd(flags + 1, 1);
            while (*(volatile unsigned*)(flags + 1) < lap * n) {}
            __threadfence();
        }
        __syncthreads();
    }
}

// A barrier with a count that the last CTA takes back, and a generation.
template <int kWrong>
__device__ void generation_barrier(unsigned* flags, float* x, float* y) {
    const unsigned n = gridDim.x, me = blockIdx.x;
    for (int lap = 0; lap < 2; ++lap) {
        x[(lap * n + me) * kThreads + threadIdx.x] = me;
        __syncthreads();
        if (threadIdx.x == 0) {
            const unsigned generation = *(volatile unsigned*)(flags + 1);
            if (kWrong != 1) __threadfence();
            if (atomicAdd(flags, 1) == n - 1) {
                if (kWrong != 3) *(volatile unsigned*)flags = 0;
                __threadfence();
                if (kWrong != 2) atomicAdd(flags + 1, 1);
            } else {
                while (*(volatile unsigned*)(flags + 1) == generation) {}
            }
            __threadfence();
        }
        __syncthreads();
        y[(lap * n + me) * kThreads + threadIdx.x] = x[(lap * n + (me + 1) % n) * kThreads + threadIdx.x];
    }
}

// What cooperative_groups does for grid.sync(): the first CTA adds what is missing to the highest bit.
template <int kWrong>
__device__ void bit_barrier(unsigned* flags, float* x, float* y) {
    const unsigned n = gridDim.x, me = blockIdx.x;
    for (int lap = 0; lap < 2; ++lap) {
        x[(lap * n + me) * kThreads + threadIdx.x] = me;
        __syncthreads();
        if (threadIdx.x == 0) {
            const unsigned by = me ? 1 : 0x80000000 - (n - 1) + (kWrong == 1);
            if (kWrong != 2) __threadfence();
            const unsigned old = atomicAdd(flags, by);
            while ((((old ^ *(volatile unsigned*)flags) & 0x80000000) == 0)) {}
            __threadfence();
        }
        __syncthreads();
        y[(lap * n + me) * kThreads + threadIdx.x] = x[(lap * n + (me + 1) % n) * kThreads + threadIdx.x];
    }
}

// Split-K: each CTA waits for its turn, adds to the tile, and gives the turn to the next.
template <int kWrong>
__device__ void semaphore(unsigned* flags, float* x, float* y) {
    const unsigned me = blockIdx.x, n = gridDim.x;
    if (threadIdx.x == 0) while (acquire(flags) != (kWrong == 1 ? me + 1 : me)) {}
    __syncthreads();
    y[threadIdx.x] += x[me * kThreads + threadIdx.x];
    if (kWrong != 2) __syncthreads();
    if (threadIdx.x == 0 && !(kWrong == 3 && !me)) release(flags, me + 1 == n ? 0 : me + 1);
}

// Stream-K: a CTA leaves its part of a tile, and the one before it adds that to its own.
template <int kWrong>
__device__ void fix_up(unsigned* flags, float* x, float* y) {
    const unsigned me = blockIdx.x, n = gridDim.x;
    if (me) {
        if (kWrong == 1 && threadIdx.x == 0) release(flags + me, 1);
        x[me * kThreads + threadIdx.x] = me;
        __syncthreads();
        if (kWrong != 1 && threadIdx.x == 0) {
            if (kWrong == 2) release_cta(flags + me, 1);
            else if (kWrong != 3) release(flags + me, 1);
        }
    }
    if (me + 1 < n) {
        if (threadIdx.x == 0) while (acquire(flags + me + 1) == 0) {}
        if (kWrong != 4) __syncthreads();
        y[me * kThreads + threadIdx.x] = x[(me + 1) * kThreads + threadIdx.x];
    }
}

// The last CTA that comes adds up what all have left.
template <int kWrong>
__device__ void last_block(unsigned* flags, float* x, float* y) {
    __shared__ bool last;
    const unsigned me = blockIdx.x, n = gridDim.x;
    x[me * kThreads + threadIdx.x] = me;
    if (kWrong == 2) __threadfence();
    if (kWrong != 1) __syncthreads();
    if (threadIdx.x == 0) {
        if (kWrong != 2 && kWrong != 3) __threadfence();
        last = atomicAdd(flags, 1) == n - 1;
        if (kWrong != 4) __threadfence();
    }
    __syncthreads();
    if (last) {
        float sum = 0;
        for (unsigned i = 0; i < n; ++i) sum += x[i * kThreads + threadIdx.x];
        y[threadIdx.x] = sum;
    }
}

// A lock around a sum.
template <int kWrong>
__device__ void lock(unsigned* flags, float* x, float* y) {
    const unsigned me = blockIdx.x;
    if (threadIdx.x == 0) {
        while (atomicCAS(flags, 0, 1) != 0) {}
        if (kWrong != 2) __threadfence();
    }
    __syncthreads();
    y[threadIdx.x] += x[me * kThreads + threadIdx.x];
    __syncthreads();
    if (threadIdx.x == 0 && kWrong != 1) {
        if (kWrong != 3) __threadfence();
        atomicExch(flags, 0);
    }
}

// Two CTAs hand each other a row, back and forth: one flag says full, the other one empty.
template <int kWrong>
__device__ void ring(unsigned* flags, float* x, float* y) {
    const bool producer = blockIdx.x == 0;
    if (blockIdx.x > 1) return;
    for (unsigned lap = 1; lap <= 3; ++lap) {
        if (producer) {
            if (kWrong != 1 && threadIdx.x == 0) while (acquire(flags + 1) < lap - 1) {}
            __syncthreads();
            x[threadIdx.x] = lap;
            __syncthreads();
            if (threadIdx.x == 0) release(flags + (kWrong == 2 ? 1 : 0), lap);
        } else {
            if (threadIdx.x == 0) while (acquire(flags) < lap) {}
            __syncthreads();
            y[lap * kThreads + threadIdx.x] = x[threadIdx.x];
            __syncthreads();
            if (threadIdx.x == 0) release(flags + 1, lap);
        }
    }
}

// One flag that is set by the producer and taken back by the consumer.
template <int kWrong>
__device__ void hand_over(unsigned* flags, float* x, float* y) {
    if (blockIdx.x > 1) return;
    for (int lap = 0; lap < 3; ++lap) {
        if (blockIdx.x == 0) {
            if (threadIdx.x == 0) while (acquire(flags) != 0) {}
            __syncthreads();
            x[threadIdx.x] = lap;
            __syncthreads();
            if (threadIdx.x == 0) {
                release(flags, 1);
                if (kWrong == 1) release(flags, 0);  // before the other one has seen it
            }
        } else {
            if (threadIdx.x == 0) while (acquire(flags) != 1) {}
            __syncthreads();
            if (kWrong == 2 && threadIdx.x == 0) release(flags, 0);
            y[lap * kThreads + threadIdx.x] = x[threadIdx.x];
            __syncthreads();
            if (kWrong != 1 && kWrong != 2 && threadIdx.x == 0) release(flags, 0);
        }
    }
}

// All-reduce: each CTA says to each other one that its row is there.
template <int kWrong>
__device__ void all_reduce(unsigned* flags, float* x, float* y) {
    const unsigned me = blockIdx.x, n = gridDim.x;
    x[me * kThreads + threadIdx.x] = me;
    if (kWrong != 1) __syncthreads();
    if (threadIdx.x < n) {
        release(flags + threadIdx.x * n + me, 1);
        while (acquire(flags + me * n + threadIdx.x) == (kWrong == 2 ? 1 : 0)) {}
    }
    __syncthreads();
    float sum = 0;
    for (unsigned i = 0; i < n; ++i) sum += x[i * kThreads + threadIdx.x];
    y[me * kThreads + threadIdx.x] = sum;
}

// Two flags: the sizes are ready, the rows are ready; the reader of both waits for the second alone.
template <int kWrong>
__device__ void two_flags(unsigned* flags, float* x, float* y) {
    if (blockIdx.x == 0) {
        x[threadIdx.x] = 1;
        __syncthreads();
        if (threadIdx.x == 0) release(flags + (kWrong == 1), 1);
        __syncthreads();
        x[kThreads + threadIdx.x] = 2;
        __syncthreads();
        if (threadIdx.x == 0) release(flags + (kWrong != 1), 1);
    } else if (blockIdx.x == 1) {
        if (threadIdx.x == 0) while (acquire(flags + 1) == 0) {}
        __syncthreads();
        y[threadIdx.x] = x[threadIdx.x] + x[kThreads + threadIdx.x];
    }
}

#define KERNEL(name, wrong)                                                                                      \
    extern "C" __global__ void name##_##wrong(unsigned* flags, float* x, float* y) { name<wrong>(flags, x, y); }
#define KERNELS(name) KERNEL(name, 0) KERNEL(name, 1) KERNEL(name, 2)
KERNELS(counter_barrier) KERNEL(counter_barrier, 3) KERNEL(counter_barrier, 4) KERNEL(counter_barrier, 5)
KERNEL(counter_barrier, 6) KERNEL(counter_barrier, 7)
KERNEL(lap_barrier, 0) KERNEL(lap_barrier, 1)
KERNELS(generation_barrier) KERNEL(generation_barrier, 3)
KERNELS(bit_barrier)
KERNELS(semaphore) KERNEL(semaphore, 3)
KERNELS(fix_up) KERNEL(fix_up, 3) KERNEL(fix_up, 4)
KERNELS(last_block) KERNEL(last_block, 3) KERNEL(last_block, 4)
KERNELS(lock) KERNEL(lock, 3)
KERNELS(ring)
KERNELS(hand_over)
KERNELS(all_reduce)
KERNEL(two_flags, 0) KERNEL(two_flags, 1)
