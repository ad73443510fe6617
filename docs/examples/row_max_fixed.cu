// The largest value of each half of each row of x: y[2 * r] and y[2 * r + 1]. Warp 0 loads tiles, warps 1 and 2 each read a half.
constexpr int kStages = 3, kTile = 1024, kHalf = kTile / 2;

struct Shared {
    alignas(128) float tile[kStages][kTile];
    unsigned long long full[kStages], empty[kStages];
};

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

extern "C" __global__ void row_max(const float* x, float* y, int rows, int n) {
    extern __shared__ __align__(128) unsigned char raw[];
    Shared& s = *reinterpret_cast<Shared*>(raw);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < kStages; ++i) init(s.full[i], 1), init(s.empty[i], 2);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
    int tile = 0;  // of all rows of this CTA
    for (int row = blockIdx.x; row < rows; row += gridDim.x) {
        float best = -3.4e38f;
        for (int begin = 0; begin < n; begin += kTile, ++tile) {
            const int stage = tile % kStages, lap = tile / kStages, left = min(kTile, n - begin);
            if (warp == 0) {
                if (lane == 0) {
                    wait(s.empty[stage], lap % 2 ^ 1);
                    expect(s.full[stage], left * 4);
                    copy(s.tile[stage], x + row * static_cast<long long>(n) + begin, left * 4, s.full[stage]);
                }
                continue;
            }
            const int first = (warp - 1) * kHalf;
            wait(s.full[stage], lap % 2);
            for (int i = first + lane; i < min(first + kHalf, left); i += 32) best = fmaxf(best, s.tile[stage][i]);
            __syncwarp();
            if (lane == 0) arrive(s.empty[stage]);
        }
        for (int step = 16; step; step /= 2) best = fmaxf(best, __shfl_xor_sync(~0u, best, step));
        if (warp != 0 && lane == 0) y[2 * row + warp - 1] = best;
    }
}
