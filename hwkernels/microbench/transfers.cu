// How long an SM's copy engine takes over loads and stores, alone and when they meet: one lane of each of WARPS warps
// starts, so many cycles after a common time, some copies between shared and device memory. All loops are bounded.
//
// plan: [WARPS][4]: a Kind, cycles, copies, bytes of each (of a box of the tensor map 8,192). out: [WARPS][4]: when the
// warp begins, has started all, finds them landed or read from shared memory, and finds them written to device memory
// (a load: the third again); in cycles since the common time. Of the last of ROUNDS: code and data are in caches by then.
#include "bench.cuh"
#include "tensor_map.cuh"

enum Kind : unsigned { NOTHING, LOAD, STORE, LOAD_BOX, STORE_BOX };

static constexpr unsigned WARPS = 4, ROUNDS = 4, AHEAD = 1500, TRIES = 1u << 12, AREA = 48 * 1024, BOX = 8192;

static __device__ __forceinline__ bool loads(unsigned kind) { return kind == LOAD || kind == LOAD_BOX; }

static __device__ __forceinline__ void start(unsigned kind, unsigned count, unsigned bytes, unsigned area,
                                             unsigned char *memory, const TensorMap *map, int row, unsigned barrier) {
    if (loads(kind)) mbarrier_arrive_expect_tx(barrier, count * bytes);
    for (unsigned i = 0; i < count; ++i) {
        const unsigned at = area + i * bytes % AREA;  // copies may overlap: nobody reads what they bring
        if (kind == LOAD) bulk_load(at, memory + i * bytes, bytes, barrier);
        if (kind == LOAD_BOX) tensor_load_2d(at, map, 0, row + 64 * i, barrier);
        if (kind == STORE)
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                         ::"l"(memory + i * bytes), "r"(at), "r"(bytes) : "memory");
        if (kind == STORE_BOX) tensor_store_2d(map, 0, row + 64 * i, at);
    }
    if (!loads(kind)) bulk_commit();
}

extern "C" __global__ void __launch_bounds__(128)
transfers(const unsigned *plan, unsigned char *memory, const __grid_constant__ TensorMap map, unsigned *out) {
    extern __shared__ __align__(1024) unsigned char shared[];
    __shared__ volatile unsigned begins;
    __shared__ unsigned long long barriers[WARPS];
    const unsigned warp = threadIdx.x / 32, area = ((shared_address(shared) + 1023) & ~1023u) + warp * AREA;
    const unsigned barrier = shared_address(barriers) + 8 * warp;
    const unsigned kind = plan[4 * warp], later = plan[4 * warp + 1], count = plan[4 * warp + 2];
    const unsigned bytes = kind == LOAD_BOX || kind == STORE_BOX ? BOX : plan[4 * warp + 3];
    unsigned char *mine = memory + warp * (1u << 20);
    if (threadIdx.x < WARPS) mbarrier_init(shared_address(barriers) + 8 * threadIdx.x, 1);
    mbarrier_init_fence();
    tensor_map_prefetch(&map);
    unsigned at[4] = {}, first = 0;
#pragma unroll 1
    for (unsigned round = 0; round < ROUNDS; ++round) {
        __syncthreads();
        if (threadIdx.x == 0) begins = clock_cycles() + AHEAD;
        __syncthreads();
        first = begins;
        if (kind != NOTHING && elect_one()) {
            spin_until(first + later);
            at[0] = clock_cycles();
            start(kind, count, bytes, area, mine, &map, 8192 * warp, barrier);
            at[1] = clock_cycles();
            if (loads(kind))
                for (unsigned i = 0; i < TRIES && !mbarrier_try_wait(barrier, round & 1); ++i) {}
            else
                bulk_wait_read<0>();
            at[2] = clock_cycles();
            bulk_wait<0>();
            at[3] = clock_cycles();
        }
        __syncwarp();
    }
    if (threadIdx.x % 32 == 0)
        for (unsigned i = 0; i < 4; ++i) out[4 * warp + i] = kind == NOTHING ? 0 : at[i] - first;
}
