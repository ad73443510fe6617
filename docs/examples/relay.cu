// Doubles the numbers of a matrix, tile by tile: four warps load tiles with cp.async, four calculate, one stores.
// The loads count on mbarriers, the second ring goes round over named barriers, and a tile leaves by a bulk store.
// Tiles have 128 rows of 16 floats; CTA b takes the tiles b * tiles, ..., b * tiles + tiles - 1.
#ifndef STAGES
#define STAGES 3
#endif
#ifndef NOINC
#define NOINC 1  // the arrival of a cp.async is one of those that the barrier expects; 0: it only delays the phase
#endif
#ifndef WORK
#define WORK 300  // cycles of work on a tile
#endif
#ifndef WRONG
#define WRONG 0  // 1 to 8: one mistake, for trying what pipesim says of it
#endif
#define PIPESIM_TABLE "relay.table.h"
#include "recorder.cuh"
#include "table.cuh"

constexpr unsigned kSlots = 2, kLanes = 128, kTileBytes = 64 * kLanes;
constexpr unsigned kMathBarrier = 1, kFreeBarrier = 2;  // named barriers: the math warps, and one for each free slot
static_assert(NOINC == 1 || WRONG != 1, "WRONG 1 forgets a .noinc");
static_assert(NOINC == 0 || WRONG != 2, "WRONG 2 adds a .noinc");

struct Shared {
    alignas(128) float4 in[STAGES][4 * kLanes];
    alignas(128) float4 out[kSlots][4 * kLanes];
    unsigned long long inFull[STAGES], inEmpty[STAGES], outFull[kSlots];
};

__device__ inline unsigned address(const void *p) { return static_cast<unsigned>(__cvta_generic_to_shared(p)); }

__device__ inline void init(unsigned long long &barrier, unsigned arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address(&barrier)), "r"(arrivals) : "memory");
}

__device__ inline void wait(unsigned long long &barrier, unsigned phase) {
    asm volatile(
        "{\n\t.reg .pred done;\n"
        "again:\n\tmbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n\t@!done bra again;\n\t}"
        ::"r"(address(&barrier)), "r"(phase) : "memory");
}

__device__ inline void arrive(unsigned long long &barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(address(&barrier)) : "memory");
}

__device__ inline void arriveWhenCopied(unsigned long long &barrier, bool noinc) {
    if (noinc)
        asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(address(&barrier)) : "memory");
    else
        asm volatile("cp.async.mbarrier.arrive.shared.b64 [%0];" ::"r"(address(&barrier)) : "memory");
}

__device__ inline void namedSync(unsigned barrier, unsigned threads) {
    asm volatile("bar.sync %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ inline void namedArrive(unsigned barrier, unsigned threads) {
    asm volatile("bar.arrive %0, %1;" ::"r"(barrier), "r"(threads) : "memory");
}

__device__ void math(Shared &shared, unsigned tiles, unsigned thread PIPESIM_PARAM) {
    const unsigned lane = thread % 32, share = thread / 32 * 128 + lane;
    for (unsigned i = 0; i < tiles; ++i) {
        const unsigned stage = i % STAGES, slot = i % kSlots;
        PIPESIM_AT(i, stage, i / STAGES % 2)
        PIPESIM_RECORD(SITE_math_wait_in_full, 0)
        wait(shared.inFull[stage], i / STAGES % 2);
        PIPESIM_RECORD(SITE_math_got_in_full, 0)
        float4 part[4];
        for (unsigned n = 0; n < 4; ++n) part[n] = shared.in[stage][share + 32 * n];
        for (unsigned n = 0; n < 4; ++n)
            part[n] = make_float4(2 * part[n].x, 2 * part[n].y, 2 * part[n].z, 2 * part[n].w);
        __syncwarp();
        PIPESIM_RECORD(SITE_math_arrive_in_empty, 1)
        if (lane == 0) arrive(shared.inEmpty[stage]);
        PIPESIM_RECORD(SITE_math_work_begin, 0)
        for (unsigned long long begin = clock64(); clock64() - begin < WORK;) {}
        PIPESIM_RECORD(SITE_math_work_end, 0)

        PIPESIM_RECORD_WARP(slot ? SITE_math_sync_3 : SITE_math_sync_2, kLanes / 32 + 1)
        namedSync(kFreeBarrier + slot, WRONG == 4 ? kLanes : kLanes + 32);
        PIPESIM_RECORD_WARP(slot ? SITE_math_synced_3 : SITE_math_synced_2, kLanes / 32 + 1)
        for (unsigned n = 0; n < 4; ++n) shared.out[slot][share + 32 * n] = part[n];
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        PIPESIM_RECORD_WARP(SITE_math_sync_1, kLanes / 32)
        namedSync(kMathBarrier, WRONG == 8 ? kLanes + 32 : kLanes);
        PIPESIM_RECORD_WARP(SITE_math_synced_1, kLanes / 32)
        if (thread < 32) {
            PIPESIM_SAY(i, slot, i / kSlots % 2)
            PIPESIM_RECORD(SITE_math_arrive_out_full, 1)
            if (lane == 0) arrive(shared.outFull[slot]);
        }
    }
}

__device__ void load(Shared &shared, const float4 *matrix, unsigned tiles, unsigned thread PIPESIM_PARAM) {
    const unsigned lane = thread % 32, share = thread / 32 * 128 + lane;
    for (unsigned i = 0; i < tiles; ++i) {
        const unsigned stage = i % STAGES;
        PIPESIM_AT(i, stage, i / STAGES % 2 ^ 1)
        PIPESIM_RECORD(SITE_load_wait_in_empty, 0)
        wait(shared.inEmpty[stage], i / STAGES % 2 ^ 1);
        PIPESIM_RECORD(SITE_load_got_in_empty, 0)
        for (unsigned n = 0; n < 4; ++n)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                         ::"r"(address(&shared.in[stage][share + 32 * n])),
                         "l"(__cvta_generic_to_global(matrix + i * 4ull * kLanes + share + 32 * n)) : "memory");
        PIPESIM_RECORD_WARP(SITE_load_cp_async_arrive_in_full, 32)
        arriveWhenCopied(shared.inFull[stage], (NOINC && WRONG != 1) || WRONG == 2);
        if (!NOINC) {
            PIPESIM_RECORD_WARP(SITE_load_arrive_in_full, 32)
            arrive(shared.inFull[stage]);
        }
    }
}

__device__ void store(Shared &shared, float4 *doubled, unsigned tiles, unsigned lane PIPESIM_PARAM) {
    PIPESIM_AT(0, 0, 0)
    for (unsigned slot = kSlots; slot-- > 0;) {
        PIPESIM_RECORD_WARP(slot ? SITE_store_bar_arrive_3 : SITE_store_bar_arrive_2, kLanes / 32 + 1)
        if (WRONG == 6)
            namedSync(kFreeBarrier + slot, kLanes + 32);
        else
            namedArrive(kFreeBarrier + slot, kLanes + 32);
    }
    for (unsigned i = 0; i < tiles; ++i) {
        const unsigned slot = i % kSlots;
        PIPESIM_AT(i, slot, i / kSlots % 2)
        PIPESIM_RECORD(SITE_store_wait_out_full, 0)
        wait(shared.outFull[slot], i / kSlots % 2);
        PIPESIM_RECORD(SITE_store_got_out_full, 0)
        if (lane == 0) {
            asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                         ::"l"(__cvta_generic_to_global(doubled + i * 4ull * kLanes)), "r"(address(shared.out[slot])),
                         "r"(kTileBytes) : "memory");
            PIPESIM_RECORD(SITE_store_group_commit_bulk, 0)
            asm volatile("cp.async.bulk.commit_group;" ::: "memory");
            PIPESIM_RECORD(SITE_store_wait_group_bulk, 0)
            asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
            PIPESIM_RECORD(SITE_store_got_group_bulk, 0)
        }
        __syncwarp();
        if (i + kSlots < tiles && WRONG != 3) {
            PIPESIM_RECORD_WARP(slot ? SITE_store_bar_arrive_3 : SITE_store_bar_arrive_2, kLanes / 32 + 1)
            namedArrive(kFreeBarrier + slot + (WRONG == 5 ? kSlots : 0), WRONG == 7 ? kLanes + 64 : kLanes + 32);
        }
    }
}

__global__ void __launch_bounds__(288) relay(const float4 *matrix, float4 *doubled, unsigned tiles PIPESIM_KERNEL_PARAM) {
    extern __shared__ __align__(128) unsigned char memory[];
    Shared &shared = *reinterpret_cast<Shared *>(memory);
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    const unsigned long long first = 4ull * kLanes * tiles * blockIdx.x;
    if (threadIdx.x == 0) {
        for (unsigned s = 0; s < STAGES; ++s) {
            init(shared.inFull[s], kLanes);
            init(shared.inEmpty[s], WARPS_math);
        }
        for (unsigned s = 0; s < kSlots; ++s) init(shared.outFull[s], 1);
        asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
        PIPESIM_ANCHOR(blockIdx.x, 0)
    }
    PIPESIM_AGENT(blockIdx.x, warp, WARPS, lane == 0, 0)
    __syncthreads();
    if (warp < WARP_load)
        math(shared, tiles, threadIdx.x PIPESIM_PASS);
    else if (warp < WARP_store)
        load(shared, matrix + first, tiles, threadIdx.x - kLanes PIPESIM_PASS);
    else
        store(shared, doubled + first, tiles, lane PIPESIM_PASS);
    __syncthreads();
    if (threadIdx.x == 0) {
        PIPESIM_ANCHOR(blockIdx.x, 1)
        for (unsigned s = 0; s < STAGES; ++s) {
            PIPESIM_BARRIER_WORD(blockIdx.x, BARRIER_in_full + s, address(&shared.inFull[s]))
            PIPESIM_BARRIER_WORD(blockIdx.x, BARRIER_in_empty + s, address(&shared.inEmpty[s]))
        }
        for (unsigned s = 0; s < kSlots; ++s) {
            PIPESIM_BARRIER_WORD(blockIdx.x, BARRIER_out_full + s, address(&shared.outFull[s]))
        }
    }
    PIPESIM_FLUSH(blockIdx.x, warp, WARPS, 0)
}
