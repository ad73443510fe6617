// y = a * x. Warp 0 loads tiles of 4096 floats, warps 1 and 2 scale them, warp 3 stores them: two rings in shared memory.
constexpr int kIn = 4, kOut = 2, kFloats = 4096;
constexpr unsigned kBytes = kFloats * sizeof(float);

struct Shared {
    alignas(128) float in[kIn][kFloats];
    alignas(128) float out[kOut][kFloats];
    unsigned long long inFull[kIn], inEmpty[kIn], outFull[kOut], outEmpty[kOut];
};

__device__ unsigned at(const void *p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ void init(unsigned long long &bar, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(&bar)), "r"(arrivals) : "memory");
}

__device__ void arrive(unsigned long long &bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(&bar)) : "memory");
}

__device__ void wait(unsigned long long &bar, unsigned parity) {
    asm volatile(
        "{\n\t.reg .pred done;\nagain:\n\t"
        "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
        "@!done bra again;\n\t}" ::"r"(at(&bar)), "r"(parity) : "memory");
}

template <int Stages>
struct Ring {  // where a warp is: a producer starts with parity 1, so that its first lap does not wait
    unsigned parity;
    int stage = 0;
    __device__ void next() {
        if (++stage == Stages) stage = 0, parity ^= 1;
    }
};

__device__ void load(Shared &s, const float *x, int tiles) {  // one lane
    Ring<kIn> in{1};
    for (int i = 0; i < tiles; ++i, in.next()) {
        wait(s.inEmpty[in.stage], in.parity);
        const unsigned full = at(&s.inFull[in.stage]);
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(full), "r"(kBytes) : "memory");
        asm volatile(
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
            ::"r"(at(s.in[in.stage])), "l"(x + i * kFloats), "r"(kBytes), "r"(full) : "memory");
    }
}

__device__ void scale(Shared &s, float a, int tiles, int thread) {  // two warps: threads 0 to 63
    Ring<kIn> in{0};
    Ring<kOut> out{1};
    const int first = thread / 32 * (kFloats / 2) + thread % 32;  // each warp has one half of a tile
    for (int i = 0; i < tiles; ++i, in.next(), out.next()) {
        wait(s.inFull[in.stage], in.parity);
        wait(s.outEmpty[out.stage], out.parity);
        for (int n = 0; n < kFloats / 2; n += 32) s.out[out.stage][first + n] = a * s.in[in.stage][first + n];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");  // the bulk store must see what was written
        __syncwarp();
        if (thread % 32 == 0) {
            arrive(s.inEmpty[in.stage]);
            arrive(s.outFull[out.stage]);
        }
    }
}

__device__ void store(Shared &s, float *y, int tiles) {  // one lane
    Ring<kOut> out{0};
    for (int i = 0; i < tiles; ++i, out.next()) {
        wait(s.outFull[out.stage], out.parity);
        asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                     ::"l"(y + i * kFloats), "r"(at(s.out[out.stage])), "r"(kBytes) : "memory");
        asm volatile("cp.async.bulk.commit_group;\n\tcp.async.bulk.wait_group.read 0;" ::: "memory");
        arrive(s.outEmpty[out.stage]);
    }
}

__global__ void __launch_bounds__(128) scaleTiles(const float *x, float *y, float a, int tiles) {
    extern __shared__ __align__(128) unsigned char memory[];
    Shared &s = *reinterpret_cast<Shared *>(memory);
    if (threadIdx.x == 0) {
        for (int n = 0; n < kIn; ++n) init(s.inFull[n], 1), init(s.inEmpty[n], 2);
        for (int n = 0; n < kOut; ++n) init(s.outFull[n], 2), init(s.outEmpty[n], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    const int warp = threadIdx.x / 32;
    if (threadIdx.x == 0) load(s, x, tiles);
    if (warp == 1 || warp == 2) scale(s, a, tiles, threadIdx.x - 32);
    if (threadIdx.x == 96) store(s, y, tiles);
}
