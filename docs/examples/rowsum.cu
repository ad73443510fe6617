// Row sums of a matrix: one warp copies tiles of 64 x 64 floats into shared memory, two warp groups add their rows.
// sums[r] is the sum of row r. The matrix has tiles * 64 rows; CTA b takes the tiles b, b + gridDim.x, ...
#ifndef STAGES
#define STAGES 4
#endif
#ifndef MATH_WARPS
#define MATH_WARPS 8
#endif
#define PIPESIM_TABLE "rowsum.table.h"
#include "recorder.cuh"
#include "table.cuh"

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
    PIPESIM_PARAM
) {
    State state{0, 1, 0};
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, ++state) {
        TransactionBarrier &full = shared.full[state.index];
        PIPESIM_AT(state.count, state.index, state.phase)
        PIPESIM_RECORD(SITE_loader_waits, 0)
        shared.empty[state.index].wait(state.phase);
        PIPESIM_RECORD(SITE_loader_goes, 0)
        PIPESIM_RECORD(SITE_loader_expects, 0)
        full.arriveAndExpect(kTileBytes);
        PIPESIM_RECORD(SITE_loader_copies, 0)
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
    PIPESIM_PARAM
) {
    State state{0, 0, 0};
    for (int tile = blockIdx.x; tile < tiles; tile += gridDim.x, ++state) {
        PIPESIM_AT(state.count, state.index, state.phase)
        PIPESIM_RECORD(SITE_math_waits, 0)
        shared.full[state.index].wait(state.phase);
        PIPESIM_RECORD(SITE_math_goes, 0)
        PIPESIM_RECORD(SITE_math_adds, 0)
        float mine = 0;
        for (int r = 0; r < kRowsPerWarp; ++r) {
            const float sum = rowSum(shared.tiles[state.index] + (warp * kRowsPerWarp + r) * kTileCols, lane);
            if (lane == r) mine = sum;
        }
        if (lane < kRowsPerWarp) sums[tile * kTileRows + warp * kRowsPerWarp + lane] = mine;
        PIPESIM_RECORD(SITE_math_added, 0)
        __syncwarp();
        PIPESIM_RECORD(SITE_math_frees, 1)
        if (lane == 0) shared.empty[state.index].arrive();
    }
}

__global__ void __launch_bounds__(kThreads) rowSums(
    const float *matrix, float *sums, int tiles
    PIPESIM_KERNEL_PARAM
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
        PIPESIM_ANCHOR(blockIdx.x, 0)
    }
    PIPESIM_AGENT(blockIdx.x, warp, WARPS, lane == 0, 0)
    __syncthreads();

    if (warp < MATH_WARPS) {
        math(
            shared, sums, tiles, warp, lane
            PIPESIM_PASS
        );
    } else if (lane == 0) {
        load(
            shared, matrix, tiles
            PIPESIM_PASS
        );
    }
    __syncwarp();
    __syncthreads();
    if (threadIdx.x == 0) { PIPESIM_ANCHOR(blockIdx.x, 1) }
    PIPESIM_FLUSH(blockIdx.x, warp, WARPS, 0)
}
