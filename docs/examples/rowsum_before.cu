// Row sums of a matrix: one warp copies tiles of 64 x 64 floats into shared memory, two warp groups add their rows.
// sums[r] is the sum of row r. The matrix has tiles * 64 rows; CTA b takes the tiles b, b + gridDim.x, ...
#ifndef STAGES
#define STAGES 4
#endif
#ifndef MATH_WARPS
#define MATH_WARPS 8
#endif

constexpr int kTileRows = 64, kTileCols = 64;
constexpr unsigned kTileBytes = kTileRows * kTileCols * sizeof(float);
constexpr int kRowsPerWarp = kTileRows / MATH_WARPS;
constexpr int kThreads = 32 * (MATH_WARPS + 1);

class TransactionBarrier {
public:
    __device__ void init(unsigned arrivals) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address()), "r"(arrivals) : "memory");
    }

    __device__ void wait(unsigned phase) const {
        asm volatile(
            "{\n\t.reg .pred done;\n"
            "again:\n\t"
            "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t"
            "@!done bra again;\n\t}" ::"r"(address()), "r"(phase) : "memory");
    }

    __device__ void arrive() {
        asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address()) : "memory");
    }

    __device__ void arriveAndExpect(unsigned bytes) {
        asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address()), "r"(bytes) : "memory");
    }

    __device__ unsigned address() const { return static_cast<unsigned>(__cvta_generic_to_shared(&word_)); }

private:
    unsigned long long word_;
};

template <int Stages>
struct PipelineState {
    int index;
    unsigned phase;
    int count;

    __device__ PipelineState &operator++() {
        ++count;
        if (++index == Stages) {
            index = 0;
            phase ^= 1;
        }
        return *this;
    }
};

template <int Stages>
struct SharedStorage {
    alignas(128) float tiles[Stages][kTileRows * kTileCols];
    TransactionBarrier full[Stages];
    TransactionBarrier empty[Stages];
};

using State = PipelineState<STAGES>;
using Storage = SharedStorage<STAGES>;

__device__ void copyTile(float *to, const float *from, TransactionBarrier &barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
        ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(__cvta_generic_to_global(from)), "r"(kTileBytes),
        "r"(barrier.address()) : "memory");
}

__device__ void load(
    Storage &shared, const float *matrix, int tiles
) {
    State state{0, 1, 0};
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, ++state) {
        TransactionBarrier &full = shared.full[state.index];
        shared.empty[state.index].wait(state.phase);
        full.arriveAndExpect(kTileBytes);
        copyTile(shared.tiles[state.index], matrix + static_cast<long long>(tile) * kTileRows * kTileCols, full);
    }
}

__device__ float rowSum(const float *row, int lane) {
    float sum = row[lane] + row[lane + 32];
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, step);
    return sum;
}

__device__ void math(
    Storage &shared, float *sums, int tiles, int warp, int lane
) {
    State state{0, 0, 0};
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, ++state) {
        shared.full[state.index].wait(state.phase);
        float mine = 0;
        for (int r = 0; r < kRowsPerWarp; ++r) {
            const float sum = rowSum(shared.tiles[state.index] + (warp * kRowsPerWarp + r) * kTileCols, lane);
            if (lane == r) mine = sum;
        }
        if (lane < kRowsPerWarp) sums[tile * kTileRows + warp * kRowsPerWarp + lane] = mine;
        __syncwarp();
        if (lane == 0) shared.empty[state.index].arrive();
    }
}

__global__ void __launch_bounds__(kThreads) rowSums(
    const float *matrix, float *sums, int tiles
) {
    extern __shared__ __align__(128) unsigned char memory[];
    Storage &shared = *reinterpret_cast<Storage *>(memory);
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

    if (threadIdx.x == 0) {
        for (int s = 0; s < STAGES; ++s) {
            shared.full[s].init(1);
            shared.empty[s].init(MATH_WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    __syncthreads();

    if (warp < MATH_WARPS) {
        math(
            shared, sums, tiles, warp, lane
        );
    } else if (lane == 0) {
        load(
            shared, matrix, tiles
        );
    }
    __syncwarp();
    __syncthreads();
}
