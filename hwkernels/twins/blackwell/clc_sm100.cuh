// What Blackwell's GEMMs share, as pipesim/protocols/blackwell/sm100.py does: the tile scheduler with its throttle (CLC),
// tensor memory's life, and the output's way out, slice by slice. Needs sm_100a.
//
// NEVER RUN on a GPU, for want of one. What is known: it compiles for sm_100a, the tables are the protocols', and on the CPU,
// with each function of one instruction doing what the PTX documentation says, as it was read here, the values are exact and
// every warp does what its protocol says, operation by operation (tests/hardware/twins/test_blackwell_emulated.py). Memory order is
// not in that.
//
// The grid has a CTA for every output tile of 128 x BLOCK_N, n_tiles of them side by side; those that run take over the tiles
// of those that were not launched yet. Every wait is bounded: a function that contains one returns false if it gave up, and
// the CTA ends with a report (landing_sm100.cuh).
//
// PIPESIM_TABLE names a table with the roles epilogue (4 warps, from a multiple of 4 on), scheduler, load and mma. Parameters:
// RING_STAGES barrier pairs, each for K_GROUP steps of 128 bytes of K; ACCUMULATORS in tensor memory; CLC_STAGES; BLOCK_N (64,
// 128 or 256; ACCUMULATORS * BLOCK_N a power of two, 512 at most). A traced build with BLOCK_N 256 needs PIPESIM_ROOM 32.
//
// Dynamic shared memory: A tiles, B tiles, what a kernel has of its own, two slices of the output, answers of the scheduler,
// tensor memory's address, barriers.
#pragma once

#include "cta.cuh"
#include "landing_sm100.cuh"
#include "ptx.cuh"
#include "tcgen05.cuh"
#include "tensor_map.cuh"

static constexpr unsigned THREADS = WARPS * 32, EPILOGUE_THREADS = 128, BLOCK_M = 128, SLICE = 32, SLICES = BLOCK_N / SLICE;
static constexpr unsigned A_BYTES = BLOCK_M * 128, B_BYTES = BLOCK_N * 128, SLICE_BYTES = BLOCK_M * SLICE * 2;
static constexpr unsigned SLOTS = RING_STAGES * K_GROUP, COLUMNS = ACCUMULATORS * BLOCK_N, ANSWER_BYTES = 16;
static_assert(BLOCK_N == 64 || BLOCK_N == 128 || BLOCK_N == 256, "BLOCK_N must be 64, 128 or 256");
static_assert((COLUMNS & (COLUMNS - 1)) == 0 && COLUMNS <= 512, "tensor memory is allocated in powers of two");
static_assert(WARPS_epilogue == 4 && WARP_epilogue % 4 == 0, "a warp reads the lanes of its place among four");
static constexpr unsigned TMEM_READY = 1, EPILOGUE = 2;  // named barriers
// What a record's value means in bytes; OWN: a tile that only this kernel has.
enum : unsigned { BYTES_A, BYTES_B, BYTES_STAGE, BYTES_ANSWER, BYTES_OWN };

using InputState = RingState<RING_STAGES>;
using OutputState = RingState<ACCUMULATORS>;
using ClcState = RingState<CLC_STAGES>;

// What the roles share; addresses are shared ones. groups: stages of the ring for each tile.
struct Sm100 {
    const TensorMap *a_map, *b_map, *d_map;
    unsigned n_tiles, groups;
    unsigned a, b, d, answers, tmem_at, barriers;
    Patience patience;
    __device__ __forceinline__ unsigned barrier(unsigned group, unsigned stage) const {
        return barriers + 8 * (group + stage);
    }
    __device__ __forceinline__ unsigned row(unsigned tile) const { return tile / n_tiles * BLOCK_M; }
    __device__ __forceinline__ unsigned column(unsigned tile) const { return tile % n_tiles * BLOCK_N; }
};

// a: where A's tiles begin; own: bytes between B's tiles and the output's slices, a multiple of 512.
static __device__ __forceinline__ Sm100 sm100(const TensorMap *a_map, const TensorMap *b_map, const TensorMap *d_map,
                                              unsigned n_tiles, unsigned groups, unsigned a, unsigned own,
                                              const Patience &patience) {
    const unsigned b = a + SLOTS * A_BYTES, d = b + SLOTS * B_BYTES + own, answers = d + 2 * SLICE_BYTES;
    const unsigned tmem_at = answers + CLC_STAGES * ANSWER_BYTES;
    return {a_map, b_map, d_map, n_tiles, groups, a, b, d, answers, tmem_at, tmem_at + 16, patience};
}

static __device__ __forceinline__ bool wait_for(const Sm100 &cta, unsigned group, unsigned stage, unsigned parity,
                                                unsigned enter, unsigned got, unsigned &n PIPESIM_PARAM) {
    return recorded_wait<true>(cta.patience, cta.barrier(group, 0), stage, parity, enter, got, n PIPESIM_PASS);
}

// All lanes. n counts an agent's waits. WAITED: whether the wait did not give up; WAIT: if it did, the function returns false.
#define WAITED(role, group, ring)                                                           \
    wait_for(cta, BARRIER_##group, (ring).stage, (ring).parity, SITE_##role##_wait_##group, \
             SITE_##role##_got_##group, n PIPESIM_PASS)
#define WAIT(role, group, ring) \
    if (!WAITED(role, group, ring)) return false;

// The scheduler.

// Whether there is another tile (more), and which: every lane of every role's warps reads the answer and gives its stage back.
// False if its wait gave up.
template <unsigned ENTER, unsigned GOT, unsigned ARRIVE>
static __device__ __forceinline__ bool next_tile(const Sm100 &cta, ClcState &clc, bool &more, unsigned &tile,
                                                 unsigned &n PIPESIM_PARAM) {
    if (!wait_for(cta, BARRIER_clc_full, clc.stage, clc.parity, ENTER, GOT, n PIPESIM_PASS)) return false;
    more = clc_answer(cta.answers + ANSWER_BYTES * clc.stage, tile);
    async_proxy_fence();
    PIPESIM_RECORD(ARRIVE, 32)
    mbarrier_arrive(cta.barrier(BARRIER_clc_empty, clc.stage));
    clc.step();
    return true;
}
#define FOUND_NEXT(role)                                                                                \
    next_tile<SITE_##role##_wait_clc_full, SITE_##role##_got_clc_full, SITE_##role##_arrive_clc_empty>( \
        cta, clc, more, tile, n PIPESIM_PASS)
#define NEXT_TILE(role) \
    if (!FOUND_NEXT(role)) return false;

// The scheduler warp: for every signal of the load warp a request, the last of which finds no tile.
static __device__ __forceinline__ bool schedule(const Sm100 &cta, unsigned n PIPESIM_PARAM) {
    ClcState throttle = {0, 0}, request = {0, 1}, clc = {0, 0};
    unsigned tile = 0;
    for (bool more = true; more;) {
        WAIT(scheduler, clc_throttle_full, throttle)
        PIPESIM_RECORD(SITE_scheduler_arrive_clc_throttle_empty, 32)
        mbarrier_arrive(cta.barrier(BARRIER_clc_throttle_empty, throttle.stage));
        throttle.step();
        WAIT(scheduler, clc_empty, request)
        PIPESIM_RECORD(SITE_scheduler_expect_clc_full, BYTES_ANSWER)
        PIPESIM_RECORD(SITE_scheduler_copy_clc_full, BYTES_ANSWER)
        if (elect_one()) {
            const unsigned full = cta.barrier(BARRIER_clc_full, request.stage);
            mbarrier_arrive_expect_tx(full, ANSWER_BYTES);
            clc_try_cancel(cta.answers + ANSWER_BYTES * request.stage, full);
        }
        __syncwarp();
        request.step();
        NEXT_TILE(scheduler)
    }
    for (unsigned s = 0; s < CLC_STAGES; ++s) {  // until everybody has taken every answer
        WAIT(scheduler, clc_empty, request)
        request.step();
    }
    return true;
}

// The load warp, before the loads of a tile: the scheduler may ask for one tile more.
static __device__ __forceinline__ bool throttle_signal(const Sm100 &cta, ClcState &throttle, unsigned &n PIPESIM_PARAM) {
    WAIT(load, clc_throttle_empty, throttle)
    PIPESIM_RECORD(SITE_load_arrive_clc_throttle_full, 32)
    mbarrier_arrive(cta.barrier(BARRIER_clc_throttle_full, throttle.stage));
    throttle.step();
    return true;
}

// The load warp, behind its last tile: until all that it loaded is consumed.
static __device__ __forceinline__ bool drain(const Sm100 &cta, InputState &input, unsigned &n PIPESIM_PARAM) {
    for (unsigned s = 0; s < RING_STAGES; ++s) {
        WAIT(load, input_empty, input)
        input.step();
    }
    return true;
}

// Tensor memory.

// The MMA warp: the address of the accumulators, which the epilogue is told.
static __device__ __forceinline__ unsigned allocate(const Sm100 &cta) {
    tcgen05_alloc<COLUMNS>(cta.tmem_at);
    __syncwarp();
    const unsigned tmem = load_shared_32(cta.tmem_at);
    tcgen05_before_sync();
    named_arrive<TMEM_READY, 32 + EPILOGUE_THREADS>();
    return tmem;
}

// The row of a tile that is this thread's.
static __device__ __forceinline__ unsigned epilogue_thread() { return threadIdx.x - 32 * WARP_epilogue; }

// An epilogue warp: the address of the accumulators' first columns in its lanes.
static __device__ __forceinline__ unsigned find_tmem(const Sm100 &cta) {
    named_sync<TMEM_READY, 32 + EPILOGUE_THREADS>();
    tcgen05_after_sync();
    return load_shared_32(cta.tmem_at) + (epilogue_thread() / 32 * 32 << 16);
}

// One lane of the MMA warp: a tile of A times a tile of B in bf16, 64 of K, into an accumulator.
static __device__ __forceinline__ void multiply_bf16(const Sm100 &cta, unsigned accumulator, unsigned slot,
                                                     unsigned accumulate) {
    const unsigned long long a = tcgen05_k_major(cta.a + slot * A_BYTES), b = tcgen05_k_major(cta.b + slot * B_BYTES);
#pragma unroll
    for (unsigned i = 0; i < 4; ++i)  // 32 bytes on, in units of 16
        tcgen05_mma(accumulator, a + 2 * i, b + 2 * i, tcgen05_bf16(BLOCK_M, BLOCK_N), accumulate | i);
}

// An epilogue warp: one slice of an accumulator, a row a thread.
static __device__ __forceinline__ void load_slice(float (&v)[SLICE], unsigned accumulator, unsigned slice) {
    unsigned bits[SLICE];
    tcgen05_load(bits, accumulator + slice * SLICE);
#pragma unroll
    for (unsigned i = 0; i < SLICE; ++i) v[i] = __uint_as_float(bits[i]);
}

// Every epilogue thread has read its last column of an accumulator: the MMAs of another tile may begin.
static __device__ __forceinline__ void free_accumulator(const Sm100 &cta, unsigned stage, unsigned n PIPESIM_PARAM) {
    tcgen05_before_sync();
    PIPESIM_SAY(n, stage, 0)
    PIPESIM_RECORD(SITE_epilogue_arrive_output_empty, 32)
    mbarrier_arrive(cta.barrier(BARRIER_output_empty, stage));
}

// The output.

// All threads of the epilogue; true if none of its warps gave up.
static __device__ __forceinline__ bool epilogue_meets(bool well) { return named_all<EPILOGUE, EPILOGUE_THREADS>(well); }

// Where 16 bytes of a row of a slice lie, with 64-byte swizzle.
static __device__ __forceinline__ unsigned swizzled_64(unsigned row, unsigned piece) {
    return 64 * row + 16 * (piece ^ (row >> 1 & 3));
}

static __device__ __forceinline__ void convert(unsigned (&pairs)[SLICE / 2], const float (&v)[SLICE] PIPESIM_PARAM) {
    PIPESIM_RECORD(SITE_epilogue_work_begin, 0)
#pragma unroll
    for (unsigned i = 0; i < SLICE / 2; ++i) pairs[i] = bf16_pair(v[2 * i], v[2 * i + 1]);
    PIPESIM_RECORD(SITE_epilogue_work_end, 0)
}

// A free buffer of the output gets a slice, each thread's row of it, and is stored by one lane. False if a warp of the epilogue
// gave up: one that did comes to the next meeting of the four all the same, and then all of them leave.
static __device__ __forceinline__ bool store_rows(const Sm100 &cta, unsigned out, const unsigned (&pairs)[SLICE / 2],
                                                  unsigned row, unsigned column) {
#pragma unroll
    for (unsigned piece = 0; piece < 4; ++piece)
        store_shared(out + swizzled_64(epilogue_thread(), piece),
                     {pairs[4 * piece], pairs[4 * piece + 1], pairs[4 * piece + 2], pairs[4 * piece + 3]});
    async_proxy_fence();
    if (!epilogue_meets(true)) return false;
    if (epilogue_thread() / 32 == 0 && elect_one()) {
        tensor_store_2d(cta.d_map, column, row, out);
        bulk_commit();
    }
    __syncwarp();
    return true;
}

// All threads of the epilogue, once a buffer is free: the store before the last has read its rows. False as above.
static __device__ __forceinline__ bool acquire_buffer() {
    if (epilogue_thread() / 32 == 0 && elect_one()) bulk_wait_read<1>();
    __syncwarp();
    return epilogue_meets(true);
}

// The epilogue's next tile: the four warps meet here beyond what the protocol says, as none may wait for one that gave up.
#define EPILOGUE_NEXT_TILE()                                  \
    if (!epilogue_meets(FOUND_NEXT(epilogue))) return false;
// A wait between two meetings.
#define EPILOGUE_WAIT(group, ring)              \
    if (!WAITED(epilogue, group, ring)) {       \
        epilogue_meets(false);                  \
        return false;                           \
    }

// The epilogue's end, whether it gave up or not: nothing is stored any more.
static __device__ __forceinline__ void end_stores() {
    if (epilogue_thread() / 32 == 0 && elect_one()) bulk_wait<0>();
    __syncwarp();
}

// Every role's warps, by the functions of the kernel; another role's warps are not for this. False if a wait gave up.
template <class Kernel>
static __device__ __forceinline__ bool run_role(const Kernel &cta PIPESIM_PARAM) {
    const unsigned warp = threadIdx.x / 32;
    if (warp == WARP_mma) return multiply(cta PIPESIM_PASS);
    if (warp == WARP_load) return load(cta PIPESIM_PASS);
    if (warp == WARP_scheduler) return schedule(cta, 0 PIPESIM_PASS);
    const bool done = finish(cta PIPESIM_PASS);
    end_stores();
    return done;
}

// All threads, when the roles have ended: the MMA warp that gave up still has tensor memory to give back.
static __device__ __forceinline__ void end_roles(const Sm100 &cta, bool done) {
    if (!all_done(done) && threadIdx.x / 32 == WARP_mma && !done) tcgen05_dealloc<COLUMNS>(load_shared_32(cta.tmem_at));
}
