// Cross-correlation of many signals with one, by clusters of CTAs: the kernel behind the protocol `cluster_multicast`.
// Needs sm_90.
//
// Each CTA has a signal of its own; the CTAs of a cluster share another one. Per tile of both, a CTA copies its own tile
// and one part of the shared tile, which is multicast to all CTAs of the cluster. Consumer warp c of a CTA finds the dot
// product of the own tile with the shared one, turned by 4 * c words. A stage is given back to all CTAs of the cluster by
// remote arrives, because all of them write into it; the producer drains its ring before the CTA may end, so that no peer
// signals a CTA that is gone.
//
// Compile-time parameters: CLUSTER 1, 2, 4 or 8, STAGES 1..32, OWN_BYTES and SHARED_BYTES, which must be equal, a multiple
// of 16 * CLUSTER, CONSUMER_WARPS 1..8.
#define PIPESIM_TABLE "cluster_multicast.table.h"
#include "cluster.cuh"
#include "cta.cuh"

static_assert(CLUSTER == 1 || CLUSTER == 2 || CLUSTER == 4 || CLUSTER == 8, "CLUSTER must be 1, 2, 4 or 8");
static_assert(STAGES >= 1 && STAGES <= 32, "STAGES must be 1..32");
static_assert(OWN_BYTES == SHARED_BYTES, "OWN_BYTES and SHARED_BYTES must be equal");
static_assert(SHARED_BYTES > 0 && SHARED_BYTES % (16 * CLUSTER) == 0, "SHARED_BYTES must be a multiple of 16 * CLUSTER");
static_assert(CONSUMER_WARPS >= 1 && CONSUMER_WARPS <= 8, "CONSUMER_WARPS must be 1..8");

#define THREADS (WARPS * 32)
static constexpr unsigned PART_BYTES = SHARED_BYTES / CLUSTER;
enum Bytes : unsigned { BYTES_TILE, BYTES_OWN, BYTES_PART };  // what a record's value says was expected or copied

// What the roles share: shared addresses of the tiles and of the two barrier groups.
struct Ring {
    unsigned own_at, shared_at, full, empty;
    unsigned tiles, work;
    Patience patience;
};

static __device__ __forceinline__ void copy_tile(const Ring &ring, unsigned stage, const unsigned char *own,
                                                 const unsigned char *shared, unsigned rank PIPESIM_PARAM) {
    const unsigned full = ring.full + 8 * stage, part = ring.shared_at + SHARED_BYTES * stage + PART_BYTES * rank;
    PIPESIM_RECORD(SITE_producer_expect_full, BYTES_TILE)
    mbarrier_arrive_expect_tx(full, OWN_BYTES + SHARED_BYTES);
    PIPESIM_RECORD(SITE_producer_copy_full, BYTES_OWN)
    bulk_load(ring.own_at + OWN_BYTES * stage, own, OWN_BYTES, full);
    PIPESIM_RECORD(SITE_producer_copy_full, BYTES_PART)
    if (CLUSTER == 1)
        bulk_load(part, shared, PART_BYTES, full);
    else
        bulk_load_multicast(part, shared + PART_BYTES * rank, PART_BYTES, full, (unsigned short)((1u << CLUSTER) - 1));
}

// One lane.
static __device__ __forceinline__ void produce(const Ring &ring, const unsigned char *own, const unsigned char *shared,
                                               unsigned rank PIPESIM_PARAM) {
    RingState<STAGES> state = {0, 1};
    unsigned n = 0, i = 0;
    for (; i < ring.tiles; ++i) {
        if (!recorded_wait<false>(ring.patience, ring.empty, state.stage, state.parity, SITE_producer_wait_empty,
                                  SITE_producer_got_empty, n PIPESIM_PASS))
            break;
        copy_tile(ring, state.stage, own + (unsigned long long)i * OWN_BYTES,
                  shared + (unsigned long long)i * SHARED_BYTES, rank PIPESIM_PASS);
        state.step();
    }
    bool well = i == ring.tiles;
    for (unsigned s = 0; s < STAGES && well; ++s) {  // the drain: until every CTA has given back what was sent to it
        well = recorded_wait<false>(ring.patience, ring.empty, state.stage, state.parity, SITE_producer_wait_empty,
                                    SITE_producer_got_empty, n PIPESIM_PASS);
        state.step();
    }
    // A CTA that gave up still waits, for a while, for what is under way to it.
    for (unsigned k = i > STAGES ? i - STAGES : 0; k < i && !well; ++k)
        wait_parity<false>(ring.full + 8 * (k % STAGES), (k / STAGES) & 1, LANDING_NS, nullptr);
}

// The dot product of both tiles, the shared one turned by `turn` vectors, in every lane.
static __device__ __forceinline__ float correlate(unsigned own, unsigned shared, unsigned turn, unsigned lane) {
    constexpr unsigned vectors = OWN_BYTES / 16;
    float sum = 0;
#pragma unroll 4
    for (unsigned vector = lane; vector < vectors; vector += 32) {
        const uint4 a = load_shared(own + 16 * vector), b = load_shared(shared + 16 * ((vector + turn) % vectors));
        sum += (__uint_as_float(a.x) * __uint_as_float(b.x) + __uint_as_float(a.y) * __uint_as_float(b.y)) +
               (__uint_as_float(a.z) * __uint_as_float(b.z) + __uint_as_float(a.w) * __uint_as_float(b.w));
    }
    for (unsigned step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(FULL_WARP, sum, step);
    return sum;
}

// A whole warp, which never parts at a wait.
static __device__ __forceinline__ void consume(const Ring &ring, float *out, unsigned consumer, unsigned lane PIPESIM_PARAM) {
    RingState<STAGES> state = {0, 0};
    unsigned n = 0;
    for (unsigned i = 0; i < ring.tiles; ++i) {
        if (!recorded_wait<true>(ring.patience, ring.full, state.stage, state.parity, SITE_consumer_wait_full,
                                 SITE_consumer_got_full, n PIPESIM_PASS))
            return;
        const float sum = correlate(ring.own_at + OWN_BYTES * state.stage, ring.shared_at + SHARED_BYTES * state.stage,
                                    consumer, lane);
        // The store needs the sum, and a warp issues in order: what follows comes after the tiles' last read.
        if (lane == 0) asm volatile("st.global.f32 [%0], %1;" ::"l"(out + i * CONSUMER_WARPS), "f"(sum) : "memory");
        PIPESIM_RECORD(SITE_consumer_work_begin, 0)
        if (ring.work != 0) spin(ring.work);
        PIPESIM_RECORD(SITE_consumer_work_end, 0)
        __syncwarp();
        if (lane == 0) {
#pragma unroll
            for (unsigned rank = 0; rank < CLUSTER; ++rank) {
                PIPESIM_RECORD(SITE_consumer_arrive_empty, 1)
                mbarrier_arrive_cluster(ring.empty + 8 * state.stage, rank);
            }
        }
        __syncwarp();
        state.step();
    }
}

// own: [grid][tiles][OWN_BYTES]; shared: [grid / CLUSTER][tiles][SHARED_BYTES]; sums: [grid * tiles][CONSUMER_WARPS].
extern "C" __global__ void __launch_bounds__(THREADS, 1)
cluster_multicast(const unsigned char *own, const unsigned char *shared, float *sums, unsigned tiles, unsigned work,
                  PIPESIM_RUN_PARAMS) {
    extern __shared__ __align__(128) unsigned char memory[];
    const unsigned own_at = shared_address(memory), shared_at = own_at + STAGES * OWN_BYTES;
    const unsigned barriers = shared_at + STAGES * SHARED_BYTES;
    const unsigned warp = threadIdx.x / 32, lane = threadIdx.x % 32, rank = CLUSTER == 1 ? 0 : cluster_rank();
    CtaReport *report = reports + blockIdx.x;
    const Ring ring = {own_at, shared_at, barriers + 8 * BARRIER_full, barriers + 8 * BARRIER_empty, tiles, work,
                       {report, stop, deadline_ns, warp}};

    CTA_INIT(barriers)
    cluster_sync();  // no CTA is signalled before its barriers are there
    if (threadIdx.x == 0) report->loop_begin = clock_cycles64();
    if (warp == WARP_producer) {
        const unsigned char *mine = own + (unsigned long long)blockIdx.x * tiles * OWN_BYTES;
        const unsigned char *ours = shared + (unsigned long long)(blockIdx.x / CLUSTER) * tiles * SHARED_BYTES;
        if (elect_one()) produce(ring, mine, ours, rank PIPESIM_PASS);
    } else {
        const unsigned consumer = warp - WARP_consumer;
        consume(ring, sums + (unsigned long long)blockIdx.x * tiles * CONSUMER_WARPS + consumer, consumer, lane PIPESIM_PASS);
    }
    __syncwarp();
    __syncthreads();
    if (threadIdx.x == 0) {
        report->loop_end = clock_cycles64();
        PIPESIM_ANCHOR(blockIdx.x, 1)
    }
    __syncwarp();
    CTA_FLUSH(barriers)
    // A CTA that gave up was not drained: it stays until its peers have ended or given up, too. The others just end.
    __syncthreads();
    if (*(volatile unsigned *)&report->status != STATUS_UNKNOWN) cluster_sync();
    __syncthreads();
    if (threadIdx.x == 0) report_end(report, barriers, BARRIERS);
}
