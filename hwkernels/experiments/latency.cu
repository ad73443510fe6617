// How soon can a wait return after the operation that releases it? With the stamps of the recorder: %clock right before
// the operation is issued, and right after the wait has returned. One lane of a warp operates, one lane of some warp waits;
// which warps, how it waits (try_wait or test_wait) and when the operation comes change from run to run.
//
// out: [CTAs][runs], cycles from stamp to stamp, 0 where a deadline passed. clocks: [CTAs][2], nanoseconds and cycles that
// the CTA's runs took. turn: one zeroed word: where copies are timed, one CTA (or cluster) after the other has the chip to
// itself. Dynamic shared memory: where copies land. In a cluster rank 0 measures, and a CTA of another rank answers.
#include "operations.cuh"

enum Path : unsigned {
    ARRIVE, ARRIVE_EXPECT_TX, ARRIVE_OWN_CLUSTER, CP_ASYNC_NOINC, CP_ASYNC_16_NOINC,  // on a barrier of the own CTA
    COPY, COPIES_APART,    // `count` bulk copies of `bytes`, issued by one warp, or one each by as many warps
    MULTICAST, MULTICAST_THERE_AND_BACK,  // `bytes` to both CTAs: until here; until there, and a remote arrive back
    REMOTE_THERE_AND_BACK                 // a remote arrive to the CTA of rank `count`, and one back
};

static constexpr unsigned WARPS = 8, TURN_NS = 2000000000, LEAST_GAP = 200;

struct Job {
    unsigned bytes, count, runs, deadline_ns;
    const unsigned char *source;
    unsigned tiles;
};

static __device__ __forceinline__ void cp_async_16(unsigned to, const void *from) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                 ::"r"(to), "l"(__cvta_generic_to_global(from)) : "memory");
}

static __device__ __forceinline__ void cp_async_arrive_noinc(unsigned barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier) : "memory");
}

static __device__ __forceinline__ void bulk_load_both(unsigned to, const void *from, unsigned bytes, unsigned barrier) {
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
        ::"r"(to), "l"(__cvta_generic_to_global(from)), "r"(bytes), "r"(barrier), "h"((unsigned short)3) : "memory");
}

// Without a scope, as libraries write it: release.cluster would wait for a memory barrier of the whole GPU first.
static __device__ __forceinline__ void arrive_at(unsigned there) {
    asm volatile("mbarrier.arrive.shared::cluster.b64 _, [%0];" ::"r"(there) : "memory");
}

// True once the phase has completed; each try may suspend the thread.
static __device__ __forceinline__ bool try_until(unsigned barrier, unsigned parity, unsigned deadline_ns) {
    const unsigned since = globaltimer_low();
    for (unsigned tries = 1; !mbarrier_try_wait(barrier, parity); ++tries)
        if (tries % 16 == 0 && expired(since, deadline_ns)) return false;
    return true;
}

template <bool CLUSTERED>
static __device__ __forceinline__ void meet() {
    if (CLUSTERED) cluster_sync();
    else __syncthreads();
}

template <Path PATH>
static __device__ __forceinline__ void operate(const Job &job, unsigned barrier, unsigned to, const unsigned char *from,
                                               unsigned there) {
    const unsigned lane = threadIdx.x % 32, place = PATH == COPIES_APART ? threadIdx.x / 32 * job.bytes : 0;
    if (PATH == COPY) {
        if (elect_one())
            for (unsigned n = 0; n < job.count; ++n)
                bulk_load(to + n * job.bytes, from + n * job.bytes, job.bytes, barrier);
    } else if (PATH == COPIES_APART) {
        if (elect_one()) bulk_load(to + place, from + place, job.bytes, barrier);
    } else if (PATH == MULTICAST || PATH == MULTICAST_THERE_AND_BACK) {
        if (elect_one()) bulk_load_both(to, from, job.bytes, barrier);
    } else if (lane == 0) {
        if (PATH == ARRIVE) mbarrier_arrive(barrier);
        if (PATH == ARRIVE_EXPECT_TX) mbarrier_arrive_expect_tx(barrier, 0);
        if (PATH == CP_ASYNC_16_NOINC) cp_async_16(to, from);
        if (PATH == CP_ASYNC_NOINC || PATH == CP_ASYNC_16_NOINC) cp_async_arrive_noinc(barrier);
        if (PATH == ARRIVE_OWN_CLUSTER || PATH == REMOTE_THERE_AND_BACK) arrive_at(there);
    }
}

template <Path PATH>
static __device__ void measure(const Job &job, unsigned char *memory, unsigned barrier, unsigned back, unsigned *stamps,
                               unsigned *out) {
    constexpr bool CLUSTERED = PATH >= MULTICAST, COPIES = PATH >= COPY && PATH != REMOTE_THERE_AND_BACK;
    constexpr bool APART = PATH == COPIES_APART;
    constexpr bool RETURNS_BACK = PATH == MULTICAST_THERE_AND_BACK || PATH == REMOTE_THERE_AND_BACK;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = cluster_rank();
    const unsigned peer = PATH == REMOTE_THERE_AND_BACK ? job.count : 1, to = shared_address(memory);
    const unsigned total = APART || PATH == COPY ? job.bytes * job.count : job.bytes;
    const unsigned there = address_in(barrier, PATH == REMOTE_THERE_AND_BACK ? peer : rank), home = address_in(back, 0);
    for (unsigned run = 0; run < job.runs; ++run) {
        const unsigned waiter = run % WARPS, one = run / WARPS % WARPS, parity = run % 2;
        const bool suspends = run / (WARPS * WARPS) % 2, answers = RETURNS_BACK && rank == peer;
        const unsigned char *from = job.source + (unsigned long long)((blockIdx.x * 7 + run) % job.tiles) * total;
        if (COPIES && threadIdx.x == 0 && rank <= 1) mbarrier_arrive_expect_tx(barrier, total);
        if (threadIdx.x == 0) stamps[WARPS + 1] = 0;
        meet<CLUSTERED>();
        if (rank == 0 && (APART ? warp < job.count : warp == one)) {
            spin_cycles(LEAST_GAP + run * 37 % 256);
            if (lane == 0) stamps[warp] = clock_cycles();
            operate<PATH>(job, barrier, to, from, there);
        }
        if (warp == waiter && lane == 0 && (rank == 0 || answers)) {
            const unsigned awaited = RETURNS_BACK && rank == 0 ? back : barrier;
            const bool done = suspends ? try_until(awaited, parity, job.deadline_ns)
                                       : spin_until(awaited, parity, job.deadline_ns);
            const unsigned now = clock_cycles();
            if (answers) arrive_at(home);
            stamps[WARPS] = now;
            stamps[WARPS + 1] = done;
        }
        meet<CLUSTERED>();
        if (CLUSTERED && COPIES && threadIdx.x == 0 && rank <= 1) spin_until(barrier, parity, job.deadline_ns);
        if (threadIdx.x == 0 && rank == 0) {
            unsigned sent = stamps[APART ? 0 : one];
            for (unsigned w = 1; APART && w < job.count; ++w)
                if ((int)(stamps[w] - sent) < 0) sent = stamps[w];
            out[(unsigned long long)blockIdx.x * job.runs + run] = stamps[WARPS + 1] ? stamps[WARPS] - sent : 0;
        }
        meet<CLUSTERED>();
    }
}

// Returns when it is this CTA's or cluster's turn, or after a while: a launch may hold more of them than the chip.
static __device__ void take_turn(const unsigned *turn, unsigned mine) {
    for (const unsigned since = globaltimer_low(); *(const volatile unsigned *)turn != mine;) {
        if (expired(since, TURN_NS)) return;
        __nanosleep(500);
    }
}

extern "C" __global__ void __launch_bounds__(256, 1)
latency(unsigned path, unsigned bytes, unsigned count, unsigned runs, unsigned deadline_ns, const unsigned char *source,
        unsigned tiles, unsigned *turn, unsigned *out, unsigned long long *clocks) {
    extern __shared__ __align__(128) unsigned char memory[];
    __shared__ __align__(8) unsigned long long words[2];
    __shared__ unsigned stamps[WARPS + 2];
    const unsigned barrier = shared_address(words), back = shared_address(words + 1);
    const bool in_turn = path >= COPY && path != REMOTE_THERE_AND_BACK && cluster_rank() == 0;
    const Job job = {bytes, count, runs, deadline_ns, source, tiles};
    if (threadIdx.x == 0) {
        mbarrier_init(barrier, 1);
        mbarrier_init(back, 1);
        mbarrier_init_fence();
        if (in_turn) take_turn(turn, blockIdx.x / cluster_size());
    }
    cluster_sync();
    const unsigned long long began_ns = globaltimer(), began = clock_cycles64();
    switch (path) {
        case ARRIVE: measure<ARRIVE>(job, memory, barrier, back, stamps, out); break;
        case ARRIVE_EXPECT_TX: measure<ARRIVE_EXPECT_TX>(job, memory, barrier, back, stamps, out); break;
        case ARRIVE_OWN_CLUSTER: measure<ARRIVE_OWN_CLUSTER>(job, memory, barrier, back, stamps, out); break;
        case CP_ASYNC_NOINC: measure<CP_ASYNC_NOINC>(job, memory, barrier, back, stamps, out); break;
        case CP_ASYNC_16_NOINC: measure<CP_ASYNC_16_NOINC>(job, memory, barrier, back, stamps, out); break;
        case COPY: measure<COPY>(job, memory, barrier, back, stamps, out); break;
        case COPIES_APART: measure<COPIES_APART>(job, memory, barrier, back, stamps, out); break;
        case MULTICAST: measure<MULTICAST>(job, memory, barrier, back, stamps, out); break;
        case MULTICAST_THERE_AND_BACK: measure<MULTICAST_THERE_AND_BACK>(job, memory, barrier, back, stamps, out); break;
        case REMOTE_THERE_AND_BACK: measure<REMOTE_THERE_AND_BACK>(job, memory, barrier, back, stamps, out); break;
    }
    if (threadIdx.x == 0) {
        clocks[2 * blockIdx.x] = globaltimer() - began_ns;
        clocks[2 * blockIdx.x + 1] = clock_cycles64() - began;
        if (in_turn) atomicAdd(turn, 1u);
    }
}
