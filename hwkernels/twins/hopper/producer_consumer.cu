// A ring of STAGES tiles between one producer warp and CONSUMER_WARPS consumer warps: the kernel behind the protocol
// `producer_consumer`. Needs sm_90. Its roles, barriers and recording sites are those of producer_consumer.table.h.
//
// Per tile, the producer's one running lane waits until empty[stage] is free, announces the bytes at full[stage]
// (arrive.expect_tx) and issues one bulk copy. Each consumer warp waits for full[stage] with all lanes, sums its share of
// the tile's 32-bit words into checksums[cta][tile][warp], spins `work` cycles, and arrives on empty[stage] with
// ARRIVE_LANES lanes. Both sides count stages and parities as ProducerConsumerPipeline does: the producer starts at 1.
//
// Compile-time parameters: STAGES 1..32, TILE_BYTES (a multiple of 16), CONSUMER_WARPS 1..8, ARRIVE_LANES 1 or 32.
// PIPESIM_FAULT makes it wrong on purpose, at one iteration that the host names: see the list below.
//
// Dynamic shared memory: tiles, the barriers, then (traced or not) room for the records of all agents.
#define PIPESIM_TABLE "producer_consumer.table.h"
#define PIPESIM_CHECKED 0
#define PIPESIM_ROOM 6  // the sites of the longer role, and one more of a fault
// The shared address of a warp's records: right behind the barriers.
#define RECORDS_BEHIND(barriers, warp) \
    ((barriers) + 8 * BARRIERS + (warp) * pipesim_launch->capacity * PIPESIM_RECORD_BYTES)
#include "cta.cuh"

#ifndef PIPESIM_FAULT
#define PIPESIM_FAULT 0
#endif

// What goes wrong at the iteration named, in the producer or in consumer warp 0. Counted as FAULTS in pipesim/trace/schema.py.
enum Fault : unsigned {
    FAULT_NONE,
    FAULT_MISSING_ARRIVE,    // the consumer does not arrive on empty
    FAULT_EXTRA_ARRIVE,      // it arrives twice
    FAULT_WRONG_PARITY,      // it waits for full with the other parity
    FAULT_EXPECT_MORE,       // the producer expects 16 bytes more than it copies
    FAULT_EXPECT_LESS,       // it expects half of them, in whole units of 16
    FAULT_RELEASE_EARLY,     // the consumer arrives before it reads
    FAULT_NO_ACQUIRE,        // the producer does not wait for empty
    FAULT_LEAVES_EARLY,      // the consumer leaves before this iteration
    FAULT_SWAPPED_STAGES,    // the consumer takes this iteration and the next in the wrong order
    FAULT_PHASE_NOT_TOGGLED  // the consumer does not toggle its parity at the first wrap from this iteration on
};
static constexpr Fault FAULT = (Fault)PIPESIM_FAULT;
static constexpr unsigned LESS_BYTES = TILE_BYTES / 32 * 16;

// Right after the record of the wait, unless that is what is left out.
#define RECORD_EXPECT(value)                                   \
    if constexpr (FAULT == FAULT_NO_ACQUIRE) {                 \
        PIPESIM_RECORD(SITE_producer_expect_full, value)       \
    } else {                                                   \
        PIPESIM_RECORD_AGAIN(SITE_producer_expect_full, value) \
    }

static_assert(STAGES >= 1 && STAGES <= 32, "STAGES must be 1..32");
static_assert(TILE_BYTES >= 16 && TILE_BYTES % 16 == 0, "TILE_BYTES must be a positive multiple of 16");
static_assert(CONSUMER_WARPS >= 1 && CONSUMER_WARPS <= 8, "CONSUMER_WARPS must be 1..8");
static_assert(ARRIVE_LANES == 1 || ARRIVE_LANES == 32, "ARRIVE_LANES must be 1 or 32");

#define THREADS (WARPS * 32)
static constexpr unsigned RELEASE_CYCLES = 20000;

// What the roles share.
struct Ring {
    unsigned tiles_at, full, empty;  // shared addresses of the tiles and of the two barrier groups
    unsigned tiles, work, deadline_ns, fault_at;
    const unsigned *stop;
    CtaReport *report;
};

static __device__ void give_up(const Ring &ring, unsigned *stop, WaitEnd how, unsigned site, unsigned agent,
                               unsigned iteration) {
    if (how == WAIT_DEADLINE) atomicExch(stop, 1u);
    if (atomicCAS(&ring.report->status, STATUS_UNKNOWN, how == WAIT_DEADLINE ? STATUS_DEADLINE : STATUS_STOPPED) ==
        STATUS_UNKNOWN) {
        ring.report->site = site;
        ring.report->agent = agent;
        ring.report->iteration = iteration;
    }
}

// One lane. The tile read at iteration i is number (cta * tiles + i) % source_tiles of the source, where source_step is
// tiles % source_tiles.
static __device__ __forceinline__ void produce(const Ring &ring, unsigned *stop, const unsigned char *source,
                                               unsigned source_tiles, unsigned source_step PIPESIM_PARAM) {
    unsigned next = blockIdx.x * source_step % source_tiles;
    const unsigned char *from = source + (unsigned long long)next * TILE_BYTES;
    unsigned i = 0, stage = 0, parity = 1;
    for (; i < ring.tiles; ++i) {
        const unsigned full = ring.full + 8 * stage, empty = ring.empty + 8 * stage;
        PIPESIM_AT(i, stage, parity)
        const bool faulty = FAULT != FAULT_NONE && i == ring.fault_at;
        if (!(FAULT == FAULT_NO_ACQUIRE && faulty)) {
            PIPESIM_RECORD(SITE_producer_wait_empty, 0)
            const WaitEnd end = wait_parity<false>(empty, parity, ring.deadline_ns, ring.stop);
            if (end != WAIT_DONE) {
                give_up(ring, stop, end, SITE_producer_wait_empty, WARP_producer, i);
                break;
            }
            PIPESIM_RECORD(SITE_producer_got_empty, 0)
        }
        if ((FAULT == FAULT_EXPECT_MORE || FAULT == FAULT_EXPECT_LESS) && faulty) {
            RECORD_EXPECT(1)
            mbarrier_arrive_expect_tx(full, FAULT == FAULT_EXPECT_MORE ? TILE_BYTES + 16 : LESS_BYTES);
        } else {
            RECORD_EXPECT(0)
            mbarrier_arrive_expect_tx(full, TILE_BYTES);
        }
        PIPESIM_RECORD(SITE_producer_copy_full, 0)
        bulk_load(ring.tiles_at + stage * TILE_BYTES, from, TILE_BYTES, full);
        from += TILE_BYTES;
        if (++next == source_tiles) {
            next = 0;
            from = source;
        }
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    ring.report->iterations[WARP_producer] = i;
    // Nobody may read these tiles any more, but they must not land in a CTA that has ended.
    if (FAULT != FAULT_NONE || i < ring.tiles) wait_for_landing<STAGES>(ring.full, i);
}

// The sum of this warp's share of a tile, in every lane. Shares are contiguous and equal; the last warp takes the rest.
static __device__ __forceinline__ unsigned sum_share(unsigned tile, unsigned consumer, unsigned lane) {
    constexpr unsigned vectors = TILE_BYTES / 16;
    constexpr unsigned share = vectors / CONSUMER_WARPS, largest = vectors - share * (CONSUMER_WARPS - 1);
    constexpr unsigned rounds = (largest + 31) / 32;
    constexpr bool even = vectors % (32 * CONSUMER_WARPS) == 0;
    const unsigned first = consumer * share, last = consumer == CONSUMER_WARPS - 1 ? vectors : first + share;
    unsigned sum = 0;
#pragma unroll 16
    for (unsigned round = 0; round < rounds; ++round) {
        const unsigned vector = first + 32 * round + lane;
        if (even || vector < last) {
            const uint4 v = load_shared(tile + 16 * vector);
            sum += (v.x + v.y) + (v.z + v.w);
        }
    }
    return __reduce_add_sync(FULL_WARP, sum);
}

// A whole warp, which never parts: waits are agreed on by all lanes.
static __device__ __forceinline__ void consume(const Ring &ring, unsigned *stop, unsigned consumer, unsigned lane,
                                               unsigned *checksum, unsigned mark, unsigned mark1 PIPESIM_PARAM) {
    unsigned i = 0, next = 0, next_parity = 0;
    unsigned long long *reached = ring.report->marks;
    for (; i < ring.tiles; ++i) {
        unsigned stage = next, parity = next_parity;
        const bool faulty = FAULT != FAULT_NONE && consumer == 0 && i == ring.fault_at;
        if (FAULT == FAULT_LEAVES_EARLY && faulty) break;
        if (FAULT == FAULT_SWAPPED_STAGES && consumer == 0) {  // the other of this iteration and its neighbour
            if (faulty) {
                stage = next + 1 == STAGES ? 0 : next + 1;
                parity = next_parity ^ (stage == 0);
            } else if (i == ring.fault_at + 1) {
                stage = next == 0 ? STAGES - 1 : next - 1;
                parity = next_parity ^ (next == 0);
            }
        }
        if (FAULT == FAULT_WRONG_PARITY && faulty) parity ^= 1;
        const unsigned full = ring.full + 8 * stage, empty = ring.empty + 8 * stage;
        const unsigned tile = ring.tiles_at + stage * TILE_BYTES;
        if (i == mark) {
            if (consumer == CONSUMER_WARPS - 1 && lane == 0) *reached++ = clock_cycles64();
            mark = mark1;
        }
        PIPESIM_AT(i, stage, parity)
        PIPESIM_RECORD(SITE_consumer_wait_full, 0)
        const WaitEnd end = wait_parity<true>(full, parity, ring.deadline_ns, ring.stop);
        if (end != WAIT_DONE) {
            if (lane == 0) give_up(ring, stop, end, SITE_consumer_wait_full, WARP_consumer + consumer, i);
            break;
        }
        PIPESIM_RECORD(SITE_consumer_got_full, 0)
        if (FAULT == FAULT_RELEASE_EARLY && faulty) {
            PIPESIM_RECORD(SITE_consumer_arrive_empty, ARRIVE_LANES)
            if (lane < ARRIVE_LANES) mbarrier_arrive(empty);
            spin(RELEASE_CYCLES);  // long enough for the next copy to land over what is read
        }
        const unsigned sum = sum_share(tile, consumer, lane);
        // The store needs the sum, and a warp issues in order: the stamp after it is later than the tile's last read.
        if (lane == 0) asm volatile("st.global.u32 [%0], %1;" ::"l"(checksum), "r"(sum) : "memory");
        checksum += CONSUMER_WARPS;
        const bool works = PIPESIM_BEFORE(ring.work != 0);
        PIPESIM_RECORD(SITE_consumer_work_begin, 0)
        if (works) spin(ring.work);
        PIPESIM_RECORD(SITE_consumer_work_end, 0)
        __syncwarp();
        if (!((FAULT == FAULT_MISSING_ARRIVE || FAULT == FAULT_RELEASE_EARLY) && faulty)) {
            PIPESIM_RECORD(SITE_consumer_arrive_empty, ARRIVE_LANES)
            if (lane < ARRIVE_LANES) mbarrier_arrive(empty);
        }
        if (FAULT == FAULT_EXTRA_ARRIVE && faulty) {
            PIPESIM_RECORD(SITE_consumer_arrive_empty, ARRIVE_LANES)
            if (lane < ARRIVE_LANES) mbarrier_arrive(empty);
        }
        if (++next == STAGES) {
            next = 0;
            if (FAULT == FAULT_PHASE_NOT_TOGGLED && consumer == 0 && i >= ring.fault_at && i - ring.fault_at < STAGES)
                continue;
            next_parity ^= 1;
        }
    }
    if (lane == 0) ring.report->iterations[WARP_consumer + consumer] = i;
}

// Fills the tiles with a pattern, so that a read before the copy landed cannot find a former launch's data: in a kernel
// with a fault.
static __device__ __forceinline__ void poison_tiles(unsigned tiles_at) {
    for (unsigned word = threadIdx.x; word < STAGES * (TILE_BYTES / 4); word += THREADS)
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(tiles_at + 4 * word), "r"(0xa5a5a5a5u) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// source: [source_tiles][TILE_BYTES], with grid * source_tiles below 2^32; source_step = tiles % source_tiles.
// checksums: [grid][tiles][CONSUMER_WARPS]. stop: 0, set by the first wait that gives up, or by the host. mark0, mark1:
// iterations, or 2^32 - 1. fault_at: the iteration of PIPESIM_FAULT. A traced build whose records go to shared memory
// needs WARPS * capacity records of it behind the barriers.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
producer_consumer(const unsigned char *source, unsigned source_tiles, unsigned source_step, unsigned tiles,
                  unsigned work, unsigned deadline_ns, unsigned mark0, unsigned mark1, unsigned *checksums,
                  CtaReport *reports, unsigned *stop, unsigned fault_at PIPESIM_KERNEL_PARAM) {
    extern __shared__ __align__(128) unsigned char memory[];
    const unsigned tiles_at = shared_address(memory);
    const unsigned barriers = tiles_at + STAGES * TILE_BYTES;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    CtaReport *report = reports + blockIdx.x;
    const Ring ring = {tiles_at, barriers + 8 * BARRIER_full, barriers + 8 * BARRIER_empty, tiles, work, deadline_ns,
                       fault_at, stop, report};

    if constexpr (FAULT != FAULT_NONE) poison_tiles(tiles_at);
    CTA_BEGIN(report, barriers)
    if (warp == WARP_producer) {
        if (elect_one()) produce(ring, stop, source, source_tiles, source_step PIPESIM_PASS);
    } else {
        const unsigned consumer = warp - WARP_consumer;
        unsigned *checksum = checksums + (unsigned long long)blockIdx.x * tiles * CONSUMER_WARPS + consumer;
        consume(ring, stop, consumer, lane, checksum, mark0, mark1 PIPESIM_PASS);
    }
    __syncwarp();
    __syncthreads();
    if (threadIdx.x == 0) {
        report->loop_end = clock_cycles64();
        atomicCAS(&report->status, STATUS_UNKNOWN, STATUS_FINISHED);
        PIPESIM_ANCHOR(blockIdx.x, 1)
        for (unsigned b = 0; b < BARRIERS; ++b) report->barrier_words[b] = mbarrier_inval(barriers + 8 * b);
    }
    __syncwarp();
    CTA_FLUSH(barriers)
}
