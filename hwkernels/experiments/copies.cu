// A bulk copy of `bytes` onto a barrier that expects `expected`: does the phase complete, and was everything there then?
//
// Every run: the tile is overwritten with POISON (the source has no 16-byte word of it), one thread arrives with
// expect_tx and issues the copy, all threads test without suspending, and on completion each looks at once which of its
// words still are POISON. Then the run waits until the tile has landed and the last bytes are counted.
//
// source: [sources][bytes]. out: [runs][2], first 1 if the phase completed + 2 if the tile never became the source's +
// 256 * words that had not landed, then the barrier's word after inval. bins: [64], how often a word of each 64th of the
// tile had not landed. Dynamic shared memory: the tile.
#include "operations.cuh"

static constexpr unsigned THREADS = 256, POISON = 0xdeadbeefu, LANDED_NS = 100000, COUNTED_NS = 2000;
static constexpr unsigned MOST = 16;  // words a thread looks at: a tile has at most THREADS * MOST of them

static __device__ __forceinline__ bool poisoned(uint4 v) {
    return v.x == POISON && v.y == POISON && v.z == POISON && v.w == POISON;
}

extern "C" __global__ void __launch_bounds__(THREADS, 1)
copies(const uint4 *source, unsigned sources, unsigned bytes, unsigned expected, unsigned runs, unsigned deadline_ns,
       unsigned long long *out, unsigned *bins) {
    extern __shared__ __align__(128) unsigned char tile[];
    __shared__ __align__(8) unsigned long long memory;
    const unsigned barrier = shared_address(&memory), at = shared_address(tile), words = bytes / 16;
    for (unsigned run = 0; run < runs; ++run) {
        const uint4 *from = source + (unsigned long long)(run % sources) * words;
        for (unsigned w = threadIdx.x; w < words; w += THREADS) ((uint4 *)tile)[w] = {POISON, POISON, POISON, POISON};
        asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
        if (threadIdx.x == 0) {
            mbarrier_init(barrier, 1);
            mbarrier_init_fence();
        }
        __syncthreads();
        if (threadIdx.x < 32 && elect_one()) {
            mbarrier_arrive_expect_tx(barrier, expected);
            bulk_load(at, from, bytes, barrier);
        }
        __syncwarp();
        const bool done = spin_until(barrier, 0, deadline_ns);
        unsigned missing = 0;
#pragma unroll
        for (unsigned k = 0; k < MOST; ++k) {
            const unsigned w = threadIdx.x + k * THREADS;
            if (w < words && poisoned(load_shared(at + 16 * w))) missing |= 1u << k;
        }
        const bool completed = __syncthreads_or(done);
        if (completed)
            for (unsigned k = 0; k < MOST; ++k)
                if (missing >> k & 1) atomicAdd(bins + (threadIdx.x + k * THREADS) * 64 / words, 1u);
        bool wrong = false;
        const unsigned since = globaltimer_low();
        for (unsigned w = threadIdx.x; w < words; w += THREADS) {
            while (poisoned(load_shared(at + 16 * w)) && !expired(since, LANDED_NS)) {}
            const uint4 is = load_shared(at + 16 * w), should = from[w];
            wrong |= is.x != should.x || is.y != should.y || is.z != should.z || is.w != should.w;
        }
        if (expected != bytes) spin_ns(COUNTED_NS);
        unsigned lost = 0;
        for (unsigned k = 0; k < MOST; ++k) lost += __syncthreads_count(missing >> k & 1);
        const bool damaged = __syncthreads_or(wrong);
        if (threadIdx.x == 0) {
            mbarrier_inval(barrier);
            out[2 * run] = (completed ? 1 : 0) + (damaged ? 2 : 0) + 256ull * (completed ? lost : 0);
            out[2 * run + 1] = load_shared64(barrier);
        }
        __syncthreads();
    }
}
