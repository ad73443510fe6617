// Sums of the columns of a matrix, by clusters of two CTAs that share their tiles: each CTA loads half of a tile by a tensor
// map and multicasts it to both. CTA r of a cluster multiplies its sums with r + 1, so that the two differ.
// Tiles have 64 rows of 32 floats, with the 128-byte swizzle; cluster c takes tiles c * tiles, ..., c * tiles + tiles - 1.
#ifndef STAGES
#define STAGES 3
#endif
#ifndef MATH_WARPS
#define MATH_WARPS 4
#endif
#ifndef WRONG
#define WRONG 0  // 1: the loader sends its half to its own CTA alone
#endif
#define PIPESIM_TABLE "exchange.table.h"
#include "recorder.cuh"
#include "table.cuh"

struct alignas(64) CUtensorMap {
    unsigned long long opaque[16];
};

constexpr unsigned kCtas = 2, kRows = 64, kColumns = 32, kRowsPerWarp = kRows / MATH_WARPS;
constexpr unsigned kHalfBytes = TILE_BYTES / kCtas, kEveryone = (1u << kCtas) - 1;
static_assert(TILE_BYTES == kRows * kColumns * sizeof(float), "a tile has 64 rows of 32 floats");

struct Shared {
    alignas(1024) unsigned char tiles[STAGES][TILE_BYTES];
    unsigned long long full[STAGES], empty[STAGES];
};

__device__ inline unsigned address(const void *p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ inline unsigned clusterRank() {
    unsigned rank;
    asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}

__device__ inline void clusterSync() {
    asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::: "memory");
}

__device__ inline void init(unsigned long long &barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(&barrier)), "r"(arrivals) : "memory");
}

__device__ inline void wait(unsigned long long &barrier, unsigned phase) {
    asm volatile(
        "{\n\t.reg .pred done;\n"
        "again:\n\tmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 done, [%0], %1;\n\t@!done bra again;\n\t}"
        ::"r"(address(&barrier)), "r"(phase) : "memory");
}

__device__ inline void arriveAt(unsigned long long &barrier, unsigned rank) {
    asm volatile(
        "{\n\t.reg .b32 there;\n\tmapa.shared::cluster.u32 there, %0, %1;\n\t"
        "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there];\n\t}" ::"r"(address(&barrier)), "r"(rank) : "memory");
}

__device__ inline void arriveAndExpect(unsigned long long &barrier, unsigned bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address(&barrier)), "r"(bytes) : "memory");
}

__device__ inline void loadHalf(unsigned char *to, const CUtensorMap &map, unsigned row, unsigned long long &full) {
    asm volatile(
        "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster"
        " [%0], [%1, {%2, %3}], [%4], %5;"
        ::"r"(address(to)), "l"(&map), "r"(0), "r"(row), "r"(address(&full)),
        "h"(static_cast<unsigned short>(WRONG == 1 ? 1u << clusterRank() : kEveryone)) : "memory");
}

__device__ void loader(Shared &shared, const CUtensorMap &map, unsigned first, unsigned tiles PIPESIM_PARAM) {
    const unsigned rank = clusterRank();
    for (unsigned i = 0; i < tiles + STAGES; ++i) {
        const unsigned stage = i % STAGES, phase = i / STAGES % 2 ^ 1;
        PIPESIM_AT(i, stage, phase)
        PIPESIM_RECORD(SITE_loader_wait_empty, 0)
        wait(shared.empty[stage], phase);
        PIPESIM_RECORD(SITE_loader_got_empty, 0)
        if (i >= tiles) continue;  // until all that this CTA sent has been given back
        PIPESIM_RECORD(SITE_loader_expect_full, 0)
        arriveAndExpect(shared.full[stage], TILE_BYTES);
        PIPESIM_RECORD(SITE_loader_copy_full, 1)
        loadHalf(shared.tiles[stage] + rank * kHalfBytes, map, (first + i) * kRows + rank * kRows / kCtas,
                 shared.full[stage]);
    }
}

__device__ void math(Shared &shared, float *sums, unsigned tiles, unsigned warp, unsigned lane PIPESIM_PARAM) {
    const unsigned rank = clusterRank();
    for (unsigned i = 0; i < tiles; ++i) {
        const unsigned stage = i % STAGES, phase = i / STAGES % 2;
        PIPESIM_AT(i, stage, phase)
        PIPESIM_RECORD(SITE_math_wait_full, 0)
        wait(shared.full[stage], phase);
        PIPESIM_RECORD(SITE_math_got_full, 0)
        float sum = 0;
        for (unsigned row = warp * kRowsPerWarp; row < (warp + 1) * kRowsPerWarp; ++row) {
            const unsigned at = row * 128 + (lane * 4 ^ (row & 7) << 4);
            sum += *reinterpret_cast<const float *>(shared.tiles[stage] + at);
        }
        PIPESIM_RECORD(SITE_math_work_begin, 0)
        for (unsigned long long begin = clock64(); clock64() - begin < 400;) {}
        PIPESIM_RECORD(SITE_math_work_end, 0)
        sums[(i * MATH_WARPS + warp) * kColumns + lane] = sum * (rank + 1);
        __syncwarp();
        for (unsigned to = 0; to < kCtas; ++to) {
            PIPESIM_RECORD(SITE_math_arrive_empty, 1)
            if (lane == 0) arriveAt(shared.empty[stage], to);
        }
    }
}

__global__ void __launch_bounds__(32 * (MATH_WARPS + 1))
exchange(const __grid_constant__ CUtensorMap matrix, float *sums, unsigned tiles PIPESIM_KERNEL_PARAM) {
    extern __shared__ __align__(1024) unsigned char memory[];
    Shared &shared = *reinterpret_cast<Shared *>(memory);
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    if (threadIdx.x == 0) {
        for (unsigned s = 0; s < STAGES; ++s) {
            init(shared.full[s], 1);
            init(shared.empty[s], kCtas * MATH_WARPS);
        }
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        PIPESIM_ANCHOR(blockIdx.x, 0)
    }
    PIPESIM_AGENT(blockIdx.x, warp, WARPS, lane == 0, 0)
    __syncthreads();
    clusterSync();
    if (warp < MATH_WARPS)
        math(shared, sums + blockIdx.x * tiles * MATH_WARPS * kColumns, tiles, warp, lane PIPESIM_PASS);
    else if (lane == 0)
        loader(shared, matrix, blockIdx.x / kCtas * tiles, tiles PIPESIM_PASS);
    __syncwarp();
    __syncthreads();
    if (threadIdx.x == 0) {
        PIPESIM_ANCHOR(blockIdx.x, 1)
        for (unsigned s = 0; s < STAGES; ++s) {
            PIPESIM_BARRIER_WORD(blockIdx.x, BARRIER_full + s, address(&shared.full[s]))
            PIPESIM_BARRIER_WORD(blockIdx.x, BARRIER_empty + s, address(&shared.empty[s]))
        }
    }
    PIPESIM_FLUSH(blockIdx.x, warp, WARPS, 0)
}
