// A ring of STAGES tiles between one producer warp and CONSUMER_WARPS consumer warps: the kernel behind the protocol
// `producer_consumer`. Needs sm_90. Its roles, barriers and recording sites are those of producer_consumer.table.h.
//
// Per tile, the producer's one running lane waits until empty[stage] is free, announces the bytes at full[stage]
// (arrive.expect_tx) and issues one bulk copy. Each consumer warp waits for full[stage] with all lanes, sums its share of
// the tile's 32-bit words into checksums[cta][tile][warp], spins `work` cycles, and arrives on empty[stage] with
// ARRIVE_LANES lanes. Both sides count stages and parities as ProducerConsumerPipeline does: the producer starts at 1.
//
// Compile-time parameters: STAGES 1..32, TILE_BYTES (a multiple of 16), CONSUMER_WARPS 1..8, ARRIVE_LANES 1 or 32.
// PIPESIM_BREAK makes it wrong on purpose: 1, the consumer reads the tile before it waits for full, not after;
// 2, the consumer never arrives, so that a wait must end by its deadline.
//
// Dynamic shared memory: tiles, the barriers, then (traced or not) room for the records of all agents.
#define PIPESIM_TABLE "producer_consumer.table.h"
#include "mbarrier.cuh"
#include "recorder.cuh"
#include "table.cuh"

#ifndef PIPESIM_BREAK
#define PIPESIM_BREAK 0
#endif

static_assert(STAGES >= 1 && STAGES <= 32, "STAGES must be 1..32");
static_assert(TILE_BYTES >= 16 && TILE_BYTES % 16 == 0, "TILE_BYTES must be a positive multiple of 16");
static_assert(CONSUMER_WARPS >= 1 && CONSUMER_WARPS <= 8, "CONSUMER_WARPS must be 1..8");
static_assert(ARRIVE_LANES == 1 || ARRIVE_LANES == 32, "ARRIVE_LANES must be 1 or 32");

#define THREADS (WARPS * 32)
static constexpr unsigned SPIN_LIMIT_NS = 1000000;  // for copies in flight when a CTA gives up: they land within microseconds
static constexpr unsigned MAX_REPORTED_AGENTS = 16;

enum Status : unsigned { STATUS_UNKNOWN = 0, STATUS_FINISHED = 1, STATUS_DEADLINE = 2, STATUS_STOPPED = 3 };

// How a CTA's run went, traced or not: 112 bytes. marks: the clock of the last consumer warp at iterations mark0, mark1.
struct CtaReport {
    unsigned status, site, agent, iteration;  // the last three: of the first wait that gave up
    unsigned long long loop_begin, loop_end, marks[2];
    unsigned iterations[MAX_REPORTED_AGENTS];  // tiles that each agent went through
};

// What the roles share.
struct Ring {
    unsigned tiles_at, full, empty;  // shared addresses of the tiles and of the two barrier groups
    unsigned tiles, work, deadline_ns;
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
        PIPESIM_RECORD(SITE_producer_wait_empty, 0)
        const WaitEnd end = wait_parity<false>(empty, parity, ring.deadline_ns, ring.stop);
        if (end != WAIT_DONE) {
            give_up(ring, stop, end, SITE_producer_wait_empty, WARP_producer, i);
            break;
        }
        PIPESIM_RECORD(SITE_producer_got_empty, 0)
        PIPESIM_RECORD(SITE_producer_expect_full, 0)
        mbarrier_arrive_expect_tx(full, TILE_BYTES);
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
    if (i < ring.tiles) {  // nobody may read these tiles any more, but they must not land in a CTA that has ended
        for (unsigned k = i > STAGES ? i - STAGES : 0; k < i; ++k)
            wait_parity<false>(ring.full + 8 * (k % STAGES), (k / STAGES) & 1, SPIN_LIMIT_NS, nullptr);
    }
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

static __device__ __forceinline__ void spin(unsigned cycles) {
    const unsigned begin = clock_cycles();
    while (clock_cycles() - begin < cycles) {
    }
}

// A whole warp, which never parts: waits are agreed on by all lanes.
static __device__ __forceinline__ void consume(const Ring &ring, unsigned *stop, unsigned consumer, unsigned lane,
                                               unsigned *checksum, unsigned mark, unsigned mark1 PIPESIM_PARAM) {
    unsigned i = 0, stage = 0, parity = 0;
    unsigned long long *reached = ring.report->marks;
    for (; i < ring.tiles; ++i) {
        const unsigned full = ring.full + 8 * stage, empty = ring.empty + 8 * stage;
        const unsigned tile = ring.tiles_at + stage * TILE_BYTES;
        if (i == mark) {
            if (consumer == CONSUMER_WARPS - 1 && lane == 0) *reached++ = clock_cycles64();
            mark = mark1;
        }
        PIPESIM_AT(i, stage, parity)
        unsigned sum = 0;
        if constexpr (PIPESIM_BREAK == 1) sum = sum_share(tile, consumer, lane);
        PIPESIM_RECORD(SITE_consumer_wait_full, 0)
        const WaitEnd end = wait_parity<true>(full, parity, ring.deadline_ns, ring.stop);
        if (end != WAIT_DONE) {
            if (lane == 0) give_up(ring, stop, end, SITE_consumer_wait_full, WARP_consumer + consumer, i);
            break;
        }
        PIPESIM_RECORD(SITE_consumer_got_full, 0)
        if constexpr (PIPESIM_BREAK != 1) sum = sum_share(tile, consumer, lane);
        // The store needs the sum, and a warp issues in order: the stamp after it is later than the tile's last read.
        if (lane == 0) asm volatile("st.global.u32 [%0], %1;" ::"l"(checksum), "r"(sum) : "memory");
        checksum += CONSUMER_WARPS;
        PIPESIM_RECORD(SITE_consumer_work_begin, 0)
        if (ring.work != 0) spin(ring.work);
        PIPESIM_RECORD(SITE_consumer_work_end, 0)
        __syncwarp();
        if constexpr (PIPESIM_BREAK != 2) {
            PIPESIM_RECORD(SITE_consumer_arrive_empty, ARRIVE_LANES)
            if (lane < ARRIVE_LANES) mbarrier_arrive(empty);
        }
        if (++stage == STAGES) {
            stage = 0;
            parity ^= 1;
        }
    }
    if (lane == 0) ring.report->iterations[WARP_consumer + consumer] = i;
}

// Fills the tiles with a pattern, so that a read before the copy landed cannot find a former launch's data.
static __device__ __forceinline__ void poison_tiles(unsigned tiles_at) {
    for (unsigned word = threadIdx.x; word < STAGES * (TILE_BYTES / 4); word += THREADS)
        asm volatile("st.shared.u32 [%0], %1;" ::"r"(tiles_at + 4 * word), "r"(0xa5a5a5a5u) : "memory");
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
}

// source: [source_tiles][TILE_BYTES], with grid * source_tiles below 2^32; source_step = tiles % source_tiles.
// checksums: [grid][tiles][CONSUMER_WARPS]. stop: 0, set by the first wait that gives up, or by the host. mark0, mark1:
// iterations, or 2^32 - 1. headers: [grid]. records: [record_ctas][WARPS][capacity] records. The last four are used only
// by a traced build, which needs WARPS * capacity records of shared memory behind the barriers.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
producer_consumer(const unsigned char *source, unsigned source_tiles, unsigned source_step, unsigned tiles,
                  unsigned work, unsigned deadline_ns, unsigned mark0, unsigned mark1, unsigned *checksums,
                  CtaReport *reports, unsigned *stop, PipesimCta *headers, unsigned *records, unsigned capacity,
                  unsigned record_ctas) {
    extern __shared__ __align__(128) unsigned char memory[];
    const unsigned tiles_at = shared_address(memory);
    const unsigned barriers = tiles_at + STAGES * TILE_BYTES;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32;
    CtaReport *report = reports + blockIdx.x;
    const Ring ring = {tiles_at, barriers + 8 * BARRIER_full, barriers + 8 * BARRIER_empty, tiles, work, deadline_ns,
                       stop, report};

    if constexpr (PIPESIM_BREAK == 1) poison_tiles(tiles_at);
    if (threadIdx.x == 0) {
#define PIPESIM_ROLE(name, warps)
#define PIPESIM_SITE(name, role, kind, barrier)
#define PIPESIM_BARRIER(name, stages, count) \
    for (unsigned s = 0; s < STAGES_##name; ++s) mbarrier_init(barriers + 8 * (BARRIER_##name + s), COUNT_##name);
#include PIPESIM_TABLE
        mbarrier_init_fence();
        PIPESIM_ANCHOR(headers + blockIdx.x, 0)
    }
    PIPESIM_AGENT(barriers + 8 * BARRIERS + warp * capacity * PIPESIM_RECORD_BYTES, capacity, lane == 0)
    __syncthreads();
    if (threadIdx.x == 0) report->loop_begin = clock_cycles64();
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
        PIPESIM_ANCHOR(headers + blockIdx.x, 1)
    }
    __syncwarp();
    PIPESIM_FLUSH(headers + blockIdx.x, warp, barriers + 8 * BARRIERS + warp * capacity * PIPESIM_RECORD_BYTES, capacity,
                  blockIdx.x < record_ctas,
                  records + (unsigned long long)(blockIdx.x * WARPS + warp) * capacity * (PIPESIM_RECORD_BYTES / 4))
}
