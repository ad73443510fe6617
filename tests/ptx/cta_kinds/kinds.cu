// Kernels whose CTAs do not all do the same: a ring that warp 0 fills and warp 1 empties, with other numbers of tiles.
constexpr int kStages = 2, kTile = 32;

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

struct Ring {
    alignas(128) float tile[kStages][kTile];
    unsigned long long full[kStages], empty[kStages];
};

// Tiles first to last - 1 of x, one after the other; at the end of each `every` of them the CTA meets.
__device__ void stream(Ring& s, const float* x, float* y, int first, int last, int every) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (int i = 0; i < kStages; ++i) init(s.full[i], 1), init(s.empty[i], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();
#pragma unroll 1
    for (int tile = first; tile < last; ++tile) {
        const int stage = (tile - first) % kStages, lap = (tile - first) / kStages;
        if (warp == 0) {
            if (lane == 0) {
                wait(s.empty[stage], lap % 2 ^ 1);
                expect(s.full[stage], kTile * 4);
                copy(s.tile[stage], x + tile * kTile, kTile * 4, s.full[stage]);
            }
        } else {
            wait(s.full[stage], lap % 2);
            y[tile * kTile + lane] = s.tile[stage][lane];
            __syncwarp();
            if (lane == 0) arrive(s.empty[stage]);
        }
        if (tile % every == every - 1) __syncthreads();
    }
}

// CTAs beyond the end leave at once.
extern "C" __global__ void early_exit(const float* x, float* y, int n) {
    __shared__ Ring s;
    if (blockIdx.x * 4 * kTile >= n) return;
    stream(s, x, y, blockIdx.x * 4, blockIdx.x * 4 + 4, 1 << 20);
}

// Row blockIdx.x of a triangle.
extern "C" __global__ void causal(const float* x, float* y, int n) {
    __shared__ Ring s;
    stream(s, x, y, 0, min(static_cast<int>(blockIdx.x) / 2 + 1, n), 1 << 20);
}

// Units of work of all output tiles, `per_tile` of each, are cut into equal parts: a part begins and ends within a tile.
extern "C" __global__ void stream_k(const float* x, float* y, int n, int per_tile) {
    __shared__ Ring s;
    const int share = (n + gridDim.x - 1) / gridDim.x, first = blockIdx.x * share;
    stream(s, x, y, first, min(first + share, n), per_tile);
}

// Sequence blockIdx.y has lengths[blockIdx.y] elements; CTA blockIdx.x has 4 tiles of it.
extern "C" __global__ void varlen(const float* x, float* y, const int* lengths) {
    __shared__ Ring s;
    const int tiles = (lengths[blockIdx.y] + kTile - 1) / kTile, first = blockIdx.x * 4;
    if (first >= tiles) return;
    stream(s, x, y, first, min(first + 4, tiles), 1 << 20);
}

// Tiles of several groups, one after the other, handed out in turn: a group's last tile has less depth.
extern "C" __global__ void grouped(const float* x, float* y, const int* groups, int count) {
    __shared__ Ring s;
    int tile = blockIdx.x, group = 0;
    while (group < count && tile >= groups[group]) tile -= groups[group++];
    if (group == count) return;
    stream(s, x, y, tile, tile + (tile == groups[group] - 1 ? 1 : 3), 1 << 20);
}
