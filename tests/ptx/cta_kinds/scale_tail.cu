// y = a * x. A CTA has kTiles tiles of x: warp 0 loads them, and warp 1 scales them.
constexpr int kStages = 2, kTile = 32, kTiles = 4;

__device__ unsigned at(const void* p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ void init(unsigned long long& bar, int count) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(at(&bar)), "r"(count) : "memory");
}
__device__ void arrive(unsigned long long& bar) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(at(&bar)) : "memory");
}
__device__ void expect(unsigned long long& bar, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(at(&bar)), "r"(bytes) : "memory");
}
__device__ void wait(unsigned long long& bar, unsigned parity) {
    unsigned done = 0;
    while (!done) {
        asm volatile(
            "{ .reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
            : "=r"(done) : "r"(at(&bar)), "r"(parity) : "memory");
    }
}
__device__ void copy(void* to, const void* from, unsigned bytes, unsigned long long& bar) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::
                 "r"(at(to)), "l"(from), "r"(bytes), "r"(at(&bar)) : "memory");
}

extern "C" __global__ void scale_tail(const float* x, float* y, float a, int n) {
    __shared__ alignas(128) float tile[kStages][kTile];
    __shared__ unsigned long long full[kStages], empty[kStages];
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < kStages; ++i) init(full[i], 1), init(empty[i], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
#pragma unroll 1
    for (int i = 0; i < kTiles; ++i) {
        const int begin = (blockIdx.x * kTiles + i) * kTile, stage = i % kStages, lap = i / kStages;
        if (begin >= n) break;
        if (warp == 0) {
            if (begin + kTile > n) continue;  // not a whole tile: it is read from x
            if (lane == 0) {
                wait(empty[stage], lap % 2 ^ 1);
                expect(full[stage], kTile * 4);
                copy(tile[stage], x + begin, kTile * 4, full[stage]);
            }
        } else {
            wait(full[stage], lap % 2);
            if (begin + lane < n) y[begin + lane] = a * (begin + kTile > n ? x[begin + lane] : tile[stage][lane]);
            __syncwarp();
            if (lane == 0) arrive(empty[stage]);
        }
    }
}
