// Tiles handed out by a scheduler warp: Blackwell's cluster launch control (CLC) with Hopper's means. A counter in global memory
// answers in place of clusterlaunchcontrol.try_cancel; the number of the next tile goes through a ring of responses to all
// roles, the scheduler's own warp included; a throttle keeps it from fetching more than CLC_STAGES tiles before the load warp.
//
// The table has the groups clc_full, clc_empty, throttle_full and throttle_empty, and the sites of a scheduler and of a load warp.
// Cta is what the kernel's roles share, with at least
//
//   unsigned responses_at    shared address of CLC_STAGES * RESPONSE_BYTES
//   unsigned tiles           how many the CTA gets, its first included
//   Patience patience
//   unsigned group(unsigned first) const    shared address of the barriers from this one on
//
// Compile-time parameter: THROTTLE_EMPTY, 1 unless it is given. With 0 no warp arrives on throttle_empty or waits for it, which
// `pipesim check persistent_scheduler --redundant` offers: the responses already keep the load warp from running ahead.
#pragma once

#include "cta.cuh"

#ifndef THROTTLE_EMPTY
#define THROTTLE_EMPTY 1
#endif

static constexpr unsigned NONE_LEFT = 0xffffffffu, RESPONSE_BYTES = 16;

typedef RingState<CLC_STAGES> ClcState;

// What every role does for its next tile: wait for the response, read it, give the stage back with all lanes.
template <unsigned ENTER, unsigned GOT, unsigned ARRIVE, class Cta>
static __device__ __forceinline__ bool fetch(const Cta &cta, ClcState &clc, unsigned &tile, unsigned &n PIPESIM_PARAM) {
    if (!recorded_wait<true>(cta.patience, cta.group(BARRIER_clc_full), clc.stage, clc.parity, ENTER, GOT, n PIPESIM_PASS))
        return false;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(tile) : "r"(cta.responses_at + RESPONSE_BYTES * clc.stage) : "memory");
    PIPESIM_RECORD(ARRIVE, 32)
    mbarrier_arrive(cta.group(BARRIER_clc_empty) + 8 * clc.stage);
    clc.step();
    return true;
}

// The scheduler's part of the throttle: the load warp has begun the tile before.
template <class Cta>
static __device__ __forceinline__ bool may_fetch(const Cta &cta, ClcState &throttle, unsigned &n PIPESIM_PARAM) {
    if (!recorded_wait<true>(cta.patience, cta.group(BARRIER_throttle_full), throttle.stage, throttle.parity,
                             SITE_scheduler_wait_throttle_full, SITE_scheduler_got_throttle_full, n PIPESIM_PASS))
        return false;
    if (THROTTLE_EMPTY) {
        PIPESIM_RECORD(SITE_scheduler_arrive_throttle_empty, 32)
        mbarrier_arrive(cta.group(BARRIER_throttle_empty) + 8 * throttle.stage);
    }
    throttle.step();
    return true;
}

// The load warp's part, before it fetches the next: else each waits for the other.
template <class Cta>
static __device__ __forceinline__ bool begin_tile(const Cta &cta, ClcState &throttle, unsigned &n PIPESIM_PARAM) {
    if (THROTTLE_EMPTY &&
        !recorded_wait<true>(cta.patience, cta.group(BARRIER_throttle_empty), throttle.stage, throttle.parity,
                             SITE_load_wait_throttle_empty, SITE_load_got_throttle_empty, n PIPESIM_PASS))
        return false;
    PIPESIM_RECORD(SITE_load_arrive_throttle_full, 32)
    mbarrier_arrive(cta.group(BARRIER_throttle_full) + 8 * throttle.stage);
    throttle.step();
    return true;
}

// The scheduler warp. counter: the CTA's own, 0 before the launch.
template <class Cta>
static __device__ __forceinline__ void schedule(const Cta &cta, unsigned *counter, unsigned lane PIPESIM_PARAM) {
    ClcState throttle = {0, 0}, asks = {0, 1}, reads = {0, 0};
    unsigned n = 0;
    for (unsigned tile = 0; tile < cta.tiles;) {  // one request a tile: the last finds none
        if (!may_fetch(cta, throttle, n PIPESIM_PASS)) return;
        if (!recorded_wait<true>(cta.patience, cta.group(BARRIER_clc_empty), asks.stage, asks.parity,
                                 SITE_scheduler_wait_clc_empty, SITE_scheduler_got_clc_empty, n PIPESIM_PASS))
            return;
        if (lane == 0) {
            PIPESIM_RECORD(SITE_scheduler_work_begin, 0)
            const unsigned next = atomicAdd(counter, 1u) + 1;
            const unsigned answer = next < cta.tiles ? next : NONE_LEFT;
            asm volatile("st.shared.u32 [%0], %1;" ::"r"(cta.responses_at + RESPONSE_BYTES * asks.stage), "r"(answer)
                         : "memory");
            PIPESIM_RECORD(SITE_scheduler_work_end, 0)
            PIPESIM_RECORD(SITE_scheduler_arrive_clc_full, 1)
            mbarrier_arrive(cta.group(BARRIER_clc_full) + 8 * asks.stage);
        }
        __syncwarp();
        asks.step();
        if (!fetch<SITE_scheduler_wait_clc_full, SITE_scheduler_got_clc_full, SITE_scheduler_arrive_clc_empty>(
                cta, reads, tile, n PIPESIM_PASS))
            return;
    }
    for (unsigned s = 0; s < CLC_STAGES; ++s) {  // the drain: until all have read the last responses
        if (!recorded_wait<true>(cta.patience, cta.group(BARRIER_clc_empty), asks.stage, asks.parity,
                                 SITE_scheduler_wait_clc_empty, SITE_scheduler_got_clc_empty, n PIPESIM_PASS))
            return;
        asks.step();
    }
}
