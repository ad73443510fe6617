// What Modular's kernels of Blackwell have beside clc_sm100.cuh: a slice waits for its buffer before it is written, and a
// barrier tells that tensor memory is not read any more. NEVER RUN on a GPU.
#pragma once

#include "clc_sm100.cuh"

// The MMA warp gives it back when the epilogue has read its last tile.
static __device__ __forceinline__ bool deallocate(const Sm100 &cta, unsigned tmem, unsigned &n PIPESIM_PARAM) {
    const RingState<1> end = {0, 0};
    WAIT(mma, tmem_dealloc, end)
    tcgen05_after_sync();
    tcgen05_dealloc<COLUMNS>(tmem);
    return true;
}

// The epilogue stores one slice: v is this thread's row of it. slices counts those of all tiles; two are on their way. False if
// one of its warps gave up.
static __device__ __forceinline__ bool store_slice(const Sm100 &cta, const float (&v)[SLICE], unsigned row, unsigned column,
                                                   unsigned slices PIPESIM_PARAM) {
    unsigned pairs[SLICE / 2];
    convert(pairs, v PIPESIM_PASS);
    return acquire_buffer() && store_rows(cta, cta.d + slices % 2 * SLICE_BYTES, pairs, row, column);
}

// The epilogue's end: its stores are done, and it reads no tensor memory any more.
static __device__ __forceinline__ void leave(const Sm100 &cta, unsigned n PIPESIM_PARAM) {
    end_stores();
    PIPESIM_SAY(n, 0, 0)
    PIPESIM_RECORD(SITE_epilogue_arrive_tmem_dealloc, 32)
    mbarrier_arrive(cta.barrier(BARRIER_tmem_dealloc, 0));
}
