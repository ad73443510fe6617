// How a CTA of the registry's kernels begins and ends: barriers of the table, recorder, anchors and report.
#pragma once

#include "mbarrier.cuh"
#include "table.cuh"
#include "recorder.cuh"
#include "report.cuh"

// One thread: every barrier of the table, from this shared address on, and the fence.
static __device__ __forceinline__ void init_barriers(unsigned barriers) {
#define PIPESIM_ROLE(name, warps)
#define PIPESIM_SITE(name, role, kind, barrier)
#define PIPESIM_BARRIER(name, stages, count) \
    for (unsigned s = 0; s < STAGES_##name; ++s) mbarrier_init(barriers + 8 * (BARRIER_##name + s), COUNT_##name);
#include PIPESIM_TABLE
#undef PIPESIM_BARRIER
#undef PIPESIM_SITE
#undef PIPESIM_ROLE
    mbarrier_init_fence();
}

// All threads, before the roles part: statements, which also declare each warp's recorder. In a cluster, CTA_INIT alone, as
// the CTAs meet before the loop begins.
#define CTA_INIT(barriers)                                                              \
    if (threadIdx.x == 0) {                                                             \
        init_barriers(barriers);                                                        \
        PIPESIM_ANCHOR(blockIdx.x, 0)                                                   \
    }                                                                                   \
    PIPESIM_AGENT(blockIdx.x, threadIdx.x / 32, WARPS, threadIdx.x % 32 == 0,           \
                  RECORDS_BEHIND(barriers, threadIdx.x / 32))                           \
    __syncthreads();
#define CTA_BEGIN(report, barriers) \
    CTA_INIT(barriers)              \
    if (threadIdx.x == 0) (report)->loop_begin = clock_cycles64();

// All threads, when the roles have ended and no agent signals the CTA any more.
#define CTA_END(report, barriers)                                                       \
    __syncwarp();                                                                       \
    __syncthreads();                                                                    \
    if (threadIdx.x == 0) {                                                             \
        (report)->loop_end = clock_cycles64();                                          \
        PIPESIM_ANCHOR(blockIdx.x, 1)                                                   \
        report_end(report, barriers, BARRIERS);                                         \
    }                                                                                   \
    __syncwarp();                                                                       \
    CTA_FLUSH(barriers)

// A whole warp, after its last record.
#define CTA_FLUSH(barriers) \
    PIPESIM_FLUSH(blockIdx.x, threadIdx.x / 32, WARPS, RECORDS_BEHIND(barriers, threadIdx.x / 32))
