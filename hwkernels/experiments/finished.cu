// Is an access finished when the arrive after it lets an access of the other proxy go, without a proxy fence between them?
//
// ld, ldmatrix, st: a ring of one slot of 128 rows of 256 bytes. Four warps access every word of it, a row a lane, so that
// the lanes of a warp conflict in one bank and the accesses are still in the pipe at the arrive; the arrive lets a bulk copy
// overwrite the slot with the next tile, whose words all hold its number. A word that holds another number is torn. Loaded
// values are used only after the arrive. st: each thread first checks its words, then overwrites them with POISON.
//
// wgmma: the group multiplies PRODUCTS times 1.0 by 1.0, then the thread itself, or after an arrive another warp, overwrites
// B with 2.0. A sum other than the right one is torn.
//
// control: the arrive before the accesses; of wgmma, no wait_group before the arrive or the store. It must tear, or the other
// setting proves nothing.
//
// whose: whose copy overwrites. 0: of the own CTA; 1: of the other CTA of a cluster of 2; 2: CTA 0's, into both of them.
//
// out: of each CTA laps finished, words (or sums) torn, cycles from the arrive until all loaded values were used: sum of one
// thread over all laps, and least. Dynamic shared memory: A_BYTES + B_BYTES.
#include "cluster.cuh"
#include "mbarrier.cuh"
#include "ptx.cuh"
#include "tensor_map.cuh"
#include "wgmma.cuh"

static constexpr unsigned READERS = 128, THREADS = 160, ROW_BYTES = 256, WORDS = ROW_BYTES / 4;
static constexpr unsigned TILE_BYTES = READERS * ROW_BYTES, SOURCES = 16, POISON = 0xdeadbeefu;
static constexpr unsigned A_BYTES = 64 * 128, B_BYTES = 256 * 128, PRODUCTS = 16, ONE = 0x3f803f80u, TWO = 0x40004000u;
enum Kind : unsigned { LD = 0, LD_ONE_LANE = 1, LDMATRIX = 2, ST = 3, WGMMA_ST = 4, WGMMA_ARRIVE_ST = 5 };
enum Whose : unsigned { OWN = 0, OTHER = 1, BOTH = 2 };

struct Result {
    unsigned long long laps, torn, cycles, least;
};

static __device__ __forceinline__ void load_matrices(unsigned address, unsigned *v) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(v[0]), "=r"(v[1]), "=r"(v[2]), "=r"(v[3]) : "r"(address) : "memory");
}

// The accesses of one lap to the thread's own row (of ldmatrix: to the warp's 32 rows). step is 4, which the assembler does
// not know: otherwise it would make one wide access of four.
template <unsigned KIND>
static __device__ __forceinline__ void access(unsigned row, unsigned step, unsigned (&v)[WORDS]) {
#pragma unroll
    for (unsigned k = 0; k < WORDS; ++k) {
        if (KIND == LDMATRIX) {
            if (k % 4 == 0) load_matrices(row + k * step, v + k);
        } else if (KIND == ST) {
            store_shared_32(row + k * step, POISON);
        } else {
            v[k] = load_shared_32(row + k * step);
        }
    }
}

template <unsigned KIND>
static __device__ __forceinline__ void let_go(unsigned empty, unsigned whose) {
    const unsigned to = whose == OTHER ? 1 - cluster_rank() : 0;
    if (KIND == LD_ONE_LANE) {
        __syncwarp();
        if (threadIdx.x % 32 != 0) return;
    }
    if (whose == OWN)
        mbarrier_arrive(empty);
    else
        mbarrier_arrive_cluster(empty, to);
}

template <unsigned KIND, bool CONTROL>
static __device__ void read_laps(unsigned slot, unsigned full, unsigned empty, unsigned whose, unsigned laps,
                                 unsigned step, unsigned deadline_ns, Result *result) {
    const unsigned row = slot + threadIdx.x * ROW_BYTES;
    unsigned long long torn = 0, cycles = 0, least = ~0ull, lap = 0;
    for (; lap < laps; ++lap) {
        if (wait_parity<true>(full, lap & 1, deadline_ns, nullptr) != WAIT_DONE) break;
        if (threadIdx.x == 0 && lap + 1 < laps) mbarrier_arrive_expect_tx(full, TILE_BYTES);
        __syncwarp();
        const unsigned expected = (unsigned)lap % SOURCES + 1;
        unsigned v[WORDS], wrong = 0;
        if (KIND == ST) {
#pragma unroll
            for (unsigned k = 0; k < WORDS; ++k) v[k] = load_shared_32(row + 4 * k);
#pragma unroll
            for (unsigned k = 0; k < WORDS; ++k) wrong += v[k] != expected;
            if (__any_sync(FULL_WARP, wrong)) torn += wrong;
        }
        if (!CONTROL) access<KIND>(row, step, v);
        let_go<KIND>(empty, whose);
        const unsigned began = clock_cycles();
        if (CONTROL) access<KIND>(row, step, v);
        if (KIND != ST) {
#pragma unroll
            for (unsigned k = 0; k < WORDS; ++k) wrong += v[k] != expected;
            if (__any_sync(FULL_WARP, wrong)) torn += wrong;
            const unsigned passed = clock_cycles() - began;
            cycles += passed;
            least = passed < least ? passed : least;
        }
    }
    atomicAdd(&result->torn, torn);
    if (threadIdx.x == 0) {
        result->laps = lap;
        result->cycles = cycles;
        result->least = least;
    }
}

static __device__ void copy_laps(const unsigned char *source, unsigned slot, unsigned full, unsigned empty, unsigned whose,
                                 unsigned laps, unsigned deadline_ns) {
    if (whose == BOTH && cluster_rank() != 0) return;
    const unsigned short mask = whose == BOTH ? 3 : 1 << (1 - cluster_rank());
    for (unsigned lap = 0; lap < laps; ++lap) {
        if (lap && wait_parity<true>(empty, (lap - 1) & 1, deadline_ns, nullptr) != WAIT_DONE) return;
        const unsigned char *tile = source + (unsigned long long)(lap % SOURCES) * TILE_BYTES;
        if (elect_one()) {
            if (whose == OWN)
                bulk_load(slot, tile, TILE_BYTES, full);
            else
                bulk_load_multicast(slot, tile, TILE_BYTES, full, mask);
        }
        __syncwarp();
    }
}

template <unsigned KIND, bool CONTROL>
static __device__ void ring(const unsigned char *source, unsigned slot, unsigned full, unsigned empty, unsigned whose,
                            unsigned laps, unsigned step, unsigned deadline_ns, Result *result) {
    if (threadIdx.x == 0) {
        mbarrier_init(full, 1);
        mbarrier_init(empty, (KIND == LD_ONE_LANE ? READERS / 32 : READERS) * (whose == BOTH ? 2 : 1));
        mbarrier_init_fence();
        mbarrier_arrive_expect_tx(full, TILE_BYTES);
    }
    __syncthreads();
    cluster_sync();
    if (threadIdx.x < READERS)
        read_laps<KIND, CONTROL>(slot, full, empty, whose, laps, step, deadline_ns, result);
    else
        copy_laps(source, slot, full, empty, whose, laps, deadline_ns);
    __syncthreads();
    cluster_sync();
}

static __device__ __forceinline__ void fill(unsigned at, unsigned bytes, unsigned word, unsigned thread, unsigned threads) {
    for (unsigned piece = thread; piece < bytes / 16; piece += threads) store_shared(at + 16 * piece, {word, word, word, word});
}

template <unsigned KIND, bool CONTROL>
static __device__ void products(unsigned slot, unsigned empty, unsigned laps, unsigned deadline_ns, Result *result) {
    const unsigned b = slot + A_BYTES;
    const bool group = threadIdx.x < READERS;
    unsigned long long torn = 0;
    if (threadIdx.x == 0) {
        mbarrier_init(empty, READERS);
        mbarrier_init_fence();
    }
    fill(slot, A_BYTES, ONE, threadIdx.x, THREADS);
    for (unsigned lap = 0; lap < laps; ++lap) {
        bool failed = false;
        fill(b, B_BYTES, ONE, threadIdx.x, THREADS);
        async_proxy_fence();
        __syncthreads();
        if (group) {
            float sums[128] = {};
            wgmma_hold(sums);
            wgmma_fence();
#pragma unroll
            for (unsigned k = 0; k < PRODUCTS; ++k)
                Wgmma<256>::shared(sums, wgmma_k_major(slot + 32 * (k % 4)), wgmma_k_major(b + 32 * (k % 4)), 1);
            wgmma_commit();
            if (!CONTROL) wgmma_wait<0>();
            if (KIND == WGMMA_ARRIVE_ST)
                mbarrier_arrive(empty);
            else
                fill(b, B_BYTES, TWO, threadIdx.x, READERS);
            if (CONTROL) wgmma_wait<0>();
            wgmma_hold(sums);
#pragma unroll
            for (unsigned i = 0; i < 128; ++i) torn += sums[i] != 16.0f * PRODUCTS;
        } else if (KIND == WGMMA_ARRIVE_ST) {
            failed = wait_parity<true>(empty, lap & 1, deadline_ns, nullptr) != WAIT_DONE;
            fill(b, B_BYTES, TWO, threadIdx.x - READERS, THREADS - READERS);
        }
        if (__syncthreads_or(failed)) break;
        if (threadIdx.x == 0) result->laps = lap + 1;
    }
    atomicAdd(&result->torn, torn);
}

template <unsigned KIND>
static __device__ void either(bool control, const unsigned char *source, unsigned slot, unsigned full, unsigned empty,
                              unsigned whose, unsigned laps, unsigned step, unsigned deadline_ns, Result *result) {
    if (control)
        ring<KIND, true>(source, slot, full, empty, whose, laps, step, deadline_ns, result);
    else
        ring<KIND, false>(source, slot, full, empty, whose, laps, step, deadline_ns, result);
}

// source: [SOURCES][TILE_BYTES], the words of tile n hold n + 1. step: 4. out: a Result of each CTA, zeroed.
extern "C" __global__ void __launch_bounds__(THREADS, 1)
finished(unsigned kind, unsigned control, unsigned whose, unsigned laps, unsigned step, unsigned deadline_ns,
         const unsigned char *source, Result *out) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ __align__(8) unsigned long long barriers[2];
    const unsigned slot = shared_address(memory), full = shared_address(barriers), empty = full + 8;
    Result *result = out + blockIdx.x;
    switch (kind) {
        case LD: either<LD>(control, source, slot, full, empty, whose, laps, step, deadline_ns, result); break;
        case LD_ONE_LANE: either<LD_ONE_LANE>(control, source, slot, full, empty, whose, laps, step, deadline_ns, result); break;
        case LDMATRIX: either<LDMATRIX>(control, source, slot, full, empty, whose, laps, step, deadline_ns, result); break;
        case ST: either<ST>(control, source, slot, full, empty, whose, laps, step, deadline_ns, result); break;
        case WGMMA_ST:
            if (control)
                products<WGMMA_ST, true>(slot, empty, laps, deadline_ns, result);
            else
                products<WGMMA_ST, false>(slot, empty, laps, deadline_ns, result);
            break;
        default:
            if (control)
                products<WGMMA_ARRIVE_ST, true>(slot, empty, laps, deadline_ns, result);
            else
                products<WGMMA_ARRIVE_ST, false>(slot, empty, laps, deadline_ns, result);
    }
}
