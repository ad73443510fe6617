// Executes flat programs with the hardware's own barriers, copies and fences: each warp carries out the list of operations
// of one agent, each cluster one program. job.py packs the lists, and defines OP_<name>, ENGINE_<name> and FENCE_<name>.
//
// Memory holds items: every 32-bit word of an item is its number + 1. A write writes that, a copy copies it from device
// memory, and a read that names an item counts the words that are another one's.
//
// No launch hangs. Every wait is bounded; the last warp of each CTA is a watchdog. It ends a program in which nothing has
// happened for the deadline, also one whose warps wait at named barriers, where nothing bounds a wait: it arrives at
// these until they are free, and each reports the operation at which it was.
#include "cluster.cuh"
#include "ptx.cuh"
#include "report.cuh"

typedef unsigned long long u64;

// One program: 16 words. Positions count 32-bit words from the beginning of the buffer that the kernel is given. agents:
// [CTA][warp] of {first operation, how many, its number, how many agents record}. code: 8 words an operation. turns: of each
// operation, 0 without turns. sync: {stop, turns taken, CTAs that have ended, phases of
// the cluster's barrier that an agent has passed}. barriers: the shared offsets of those whose
// words a CTA reports. inits: {CTA, offset, count, 0} of
// the mbarriers that another CTA's agent would initialise. global, stores: where its parts of these buffers begin, in bytes.
struct Job {
    unsigned agents, code, turns, sync, seed, delay, last_turn, item_bytes, smem_bytes, barriers, barrier_count, global, stores,
        inits, init_count, reserved;
};

// What all programs of a launch have. status: [CTA of the launch][warp] of {operation, how it ended, wrong reads, operation of
// the first wrong one}. items: of each its bytes.
struct Buffers {
    unsigned *words, *status;
    u64 items, global, stores;
};

enum End : unsigned { RUNNING, FINISHED, BLOCKED };
enum : unsigned { NONE = 0xffffffffu, MOST_WARPS = 32, REGISTERS = 32, LANDS = 1u << 31, LANDED_NS = 5000 };  // copies land within microseconds

// What the warps of a CTA tell the watchdog, and it them: that the program is given up.
struct Shared {
    volatile unsigned stop, at[MOST_WARPS], ended[MOST_WARPS], named[MOST_WARPS], threads[MOST_WARPS];
};

struct Operation {
    unsigned op, a, b, c, d, e, f, site;
};

static __device__ __forceinline__ unsigned in_cta(unsigned offset, unsigned rank) {
    unsigned there;
    asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(there) : "r"(offset), "r"(rank));
    return there;
}

static __device__ __forceinline__ unsigned hash32(unsigned x) {
    x ^= x >> 16, x *= 0x7feb352du, x ^= x >> 15, x *= 0x846ca68bu;
    return x ^ x >> 16;
}

// Now and then a long pause, mostly a short one.
static __device__ void pause_at_random(unsigned seed, unsigned place, unsigned delay) {
    const unsigned drawn = hash32(hash32(seed) ^ place * 0x9E3779B1u);
    const unsigned cycles = (drawn >> 8) % ((drawn & 7) ? 1 + delay / 32 : 1 + delay), begun = clock_cycles();
    while (clock_cycles() - begun < cycles) {}
}

static __device__ void pause_ns(unsigned ns) {
    const unsigned begun = globaltimer_low();
    while (globaltimer_low() - begun < ns) {}
}

struct Warp {
    const Job &job;
    const Buffers &buffers;
    Shared &shared;
    volatile unsigned *sync;
    unsigned base, rank, warp, lane, deadline_ns, wrong, first_wrong, pc, passed;
    u64 registers[REGISTERS];
    float product[4];

    __device__ unsigned barrier(const Operation &o) const { return base + o.a; }

    // False: the program has been given up, or is now.
    __device__ bool waited(WaitEnd end) {
        if (end == WAIT_DEADLINE && lane == 0) sync[0] = 1;
        return end == WAIT_DONE;
    }

    __device__ bool wait(const Operation &o) {
        return waited(wait_parity<true>(barrier(o), o.c, deadline_ns, (const unsigned *)&sync[0]));
    }

    // Until this many turns have been taken.
    __device__ bool wait_turn(unsigned turn) {
        const unsigned begun = globaltimer_low();
        for (unsigned tries = 1;; ++tries) {
            if (agreed<true>(sync[1] >= turn)) return true;
            if (tries % 64) continue;
            if (!agreed<true>(sync[0] == 0)) return false;
            if (!agreed<true>(globaltimer_low() - begun <= deadline_ns)) return waited(WAIT_DEADLINE);
        }
    }

    __device__ u64 arrive(const Operation &o) {
        const unsigned at = barrier(o);
        u64 state = 0;
        if (o.b) {
            const unsigned there = in_cta(at, o.b - 1);
            if (o.d)
                asm volatile("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;" ::"r"(there), "r"(o.d)
                             : "memory");
            if (o.op == OP_ARRIVE)
                asm volatile("mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(there), "r"(o.c)
                             : "memory");
            else
                asm volatile("mbarrier.arrive_drop.release.cluster.shared::cluster.b64 _, [%0], %1;" ::"r"(there), "r"(o.c)
                             : "memory");
            return 0;
        }
        if (o.d) asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(at), "r"(o.d) : "memory");
        if (o.op == OP_ARRIVE)
            asm volatile("mbarrier.arrive.release.cluster.shared::cta.b64 %0, [%1], %2;" : "=l"(state) : "r"(at), "r"(o.c) : "memory");
        else if (o.op == OP_ARRIVE_DROP)
            asm volatile("mbarrier.arrive_drop.release.cluster.shared::cta.b64 %0, [%1], %2;"
                         : "=l"(state) : "r"(at), "r"(o.c) : "memory");
        else
            asm volatile("mbarrier.arrive.noComplete.release.cta.shared::cta.b64 %0, [%1], %2;"
                         : "=l"(state) : "r"(at), "r"(o.c) : "memory");
        return state;
    }

    __device__ void expect(const Operation &o) {
        const unsigned at = barrier(o);
        if (o.op == OP_COMPLETE_TX)
            asm volatile("mbarrier.complete_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;"
                         ::"r"(in_cta(at, o.b ? o.b - 1 : rank)), "r"(o.c) : "memory");
        else
            asm volatile("mbarrier.expect_tx.relaxed.cluster.shared::cluster.b64 [%0], %1;"
                         ::"r"(in_cta(at, o.b ? o.b - 1 : rank)), "r"(o.c) : "memory");
    }

    // One try, of a parity or of the phase of a token.
    __device__ bool found(const Operation &o) {
        unsigned done;
        const unsigned at = barrier(o);
        if (o.op == OP_TEST_STATE || o.op == OP_WAIT_STATE)
            asm volatile("{\n\t.reg .pred done;\n\tmbarrier.test_wait.acquire.cluster.shared::cta.b64 done, [%1], %2;\n\t"
                         "selp.u32 %0, 1, 0, done;\n\t}" : "=r"(done) : "r"(at), "l"(registers[o.e]) : "memory");
        else
            asm volatile("{\n\t.reg .pred done;\n\tmbarrier.test_wait.parity.acquire.cluster.shared::cta.b64 done, [%1], %2;\n\t"
                         "selp.u32 %0, 1, 0, done;\n\t}" : "=r"(done) : "r"(at), "r"(o.c) : "memory");
        return agreed<true>(done != 0);
    }

    __device__ bool wait_state(const Operation &o) {
        const unsigned begun = globaltimer_low();
        while (!found(o)) {
            if (!agreed<true>(sync[0] == 0)) return false;
            if (!agreed<true>(globaltimer_low() - begun <= deadline_ns)) return waited(WAIT_DEADLINE);
        }
        return true;
    }

    // False: the watchdog freed it.
    __device__ bool named(const Operation &o) {
        if (lane == 0) {
            shared.threads[warp] = o.c;
            shared.named[warp] = o.a + 1;
        }
        __syncwarp();
        asm volatile("bar.sync %0, %1;" ::"r"(o.a), "r"(o.c) : "memory");
        if (lane == 0) shared.named[warp] = 0;
        __syncwarp();
        return agreed<true>(shared.stop == 0);
    }

    __device__ void load(const Operation &o) {
        const u64 from = buffers.items + (u64)o.e * job.item_bytes;
        const unsigned to = base + o.c, at = barrier(o);
        if (o.f & 0xffff) {
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%0], [%1], %2, [%3], %4;"
                         ::"r"(to), "l"(from), "r"(o.d), "r"(at), "h"((unsigned short)o.f) : "memory");
        } else {
            const unsigned there = o.f >> 16, barrier_there = o.b ? o.b - 1 : rank;
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];"
                         ::"r"(in_cta(to, there)), "l"(from), "r"(o.d), "r"(in_cta(at, barrier_there)) : "memory");
        }
    }

    // What an engine does between its issue and its commit; the whole warp.
    __device__ void transfer(const Operation &o) {
        const unsigned at = base + o.c;
        if (o.a == ENGINE_BULK) {
            if (lane == 0)
                asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;"
                             ::"l"(buffers.stores + job.stores + o.f * 16ull), "r"(at), "r"(o.d) : "memory");
        } else if (o.a == ENGINE_CP_ASYNC) {
            for (unsigned i = 16 * lane; i < o.d; i += 512)
                asm volatile("cp.async.cg.shared.global [%0], [%1], 16;"
                             ::"r"(at + i), "l"(buffers.items + (u64)o.e * job.item_bytes + i) : "memory");
        } else if (o.op == OP_TRANSFER_READ) {
            const u64 operand = (u64)((at & 0x3ffff) >> 4) | 1ull << 16 | 1ull << 32;
            asm volatile("wgmma.fence.sync.aligned;\n\t"
                         "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0, %1, %2, %3}, %4, %4, 1, 1, 1, 0, 0;"
                         : "+f"(product[0]), "+f"(product[1]), "+f"(product[2]), "+f"(product[3]) : "l"(operand) : "memory");
        }
    }

    __device__ void commit(unsigned engine) {
        if (engine == ENGINE_BULK) {
            if (lane == 0) asm volatile("cp.async.bulk.commit_group;" ::: "memory");
        } else if (engine == ENGINE_CP_ASYNC) {
            asm volatile("cp.async.commit_group;" ::: "memory");
        } else {
            asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
        }
    }

#define WAIT_FOR_GROUPS(N)                                                                                           \
    case N:                                                                                                          \
        if (engine == ENGINE_BULK) {                                                                                 \
            if (lane == 0) asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(N) : "memory");                     \
        } else if (engine == ENGINE_CP_ASYNC)                                                                        \
            asm volatile("cp.async.wait_group %0;" ::"n"(N) : "memory");                                             \
        else                                                                                                         \
            asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(N) : "memory");                                   \
        break;

    __device__ void wait_groups(unsigned engine, unsigned groups) {
        switch (groups) {
            WAIT_FOR_GROUPS(0) WAIT_FOR_GROUPS(1) WAIT_FOR_GROUPS(2) WAIT_FOR_GROUPS(3)
            WAIT_FOR_GROUPS(4) WAIT_FOR_GROUPS(5) WAIT_FOR_GROUPS(6) WAIT_FOR_GROUPS(7)
        }
        __syncwarp();
    }

    // a: 1 for global memory. b: rank + 1 of another CTA.
    __device__ void access(const Operation &o) {
        const bool writes = o.op == OP_WRITE;
        unsigned differ = 0;
        for (unsigned i = 4 * lane; i < o.d; i += 128) {
            unsigned value = o.e;
            if (o.a) {
                volatile unsigned *at = (volatile unsigned *)(buffers.global + job.global + o.c + i);
                if (writes) *at = value; else value = *at;
            } else {
                const unsigned at = in_cta(base + o.c + i, o.b ? o.b - 1 : rank);
                if (writes)
                    asm volatile("st.shared::cluster.b32 [%0], %1;" ::"r"(at), "r"(value) : "memory");
                else
                    asm volatile("ld.shared::cluster.b32 %0, [%1];" : "=r"(value) : "r"(at) : "memory");
            }
            differ += o.e && value != o.e;
        }
        if (__any_sync(FULL_WARP, differ)) {
            if (!wrong) first_wrong = pc;
            ++wrong;
        }
        __syncwarp();
    }

    __device__ void fence(unsigned kind) {
        if (kind == FENCE_MBARRIER_INIT) mbarrier_init_fence();
        else if (kind == FENCE_PROXY_ASYNC) asm volatile("fence.proxy.async;" ::: "memory");
        else if (kind == FENCE_ACQ_REL) asm volatile("fence.acq_rel.gpu;" ::: "memory");
        else asm volatile("fence.sc.gpu;" ::: "memory");
    }

    // By one lane, after what all lanes did before.
    template <typename Effect>
    __device__ void once(Effect effect) {
        __syncwarp();
        if (lane == 0) effect();
        __syncwarp();
    }

    __device__ u64 token(u64 mine) { return __shfl_sync(FULL_WARP, mine, 0); }

    // False: it was given up. ANSWER: whether a try found its phase complete.
    __device__ bool carry_out(const Operation &o, unsigned &answer, unsigned &skip) {
        u64 state = 0;
        switch (o.op) {
            case OP_INIT: once([&] { mbarrier_init(barrier(o), o.c); }); break;
            case OP_INVAL: once([&] { asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(barrier(o)) : "memory"); }); break;
            case OP_ARRIVE:
            case OP_ARRIVE_DROP:
            case OP_ARRIVE_NO_COMPLETE:
                once([&] { state = arrive(o); });
                if (o.e != NONE) registers[o.e] = token(state);
                break;
            case OP_EXPECT_TX:
            case OP_COMPLETE_TX: once([&] { expect(o); }); break;
            case OP_WAIT_UNLESS:
                if (registers[o.e]) break;
                [[fallthrough]];
            case OP_WAIT: return wait(o);
            case OP_TRY_WAIT:
            case OP_TEST_WAIT: registers[o.e] = answer = found(o); break;
            case OP_TEST_STATE: registers[o.d] = answer = found(o); break;
            case OP_WAIT_STATE: return wait_state(o);
            case OP_PENDING_COUNT: {
                unsigned count;
                asm volatile("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(registers[o.e]));
                registers[o.d] = count;
                break;
            }
            case OP_CP_ASYNC_ARRIVE:
                if (lane < o.c && o.d)
                    asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(barrier(o)) : "memory");
                else if (lane < o.c)
                    asm volatile("cp.async.mbarrier.arrive.shared::cta.b64 [%0];" ::"r"(barrier(o)) : "memory");
                __syncwarp();
                break;
            case OP_BAR_SYNC: return named(o);
            case OP_BAR_ARRIVE: asm volatile("bar.arrive %0, %1;" ::"r"(o.a), "r"(o.c) : "memory"); break;
            case OP_CLUSTER_ARRIVE: asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory"); break;
            case OP_CLUSTER_WAIT:
                asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
                if (lane == 0) atomicMax((unsigned *)&sync[3], ++passed);
                __syncwarp();
                return agreed<true>(sync[0] == 0);
            case OP_FENCE: fence(o.a); break;
            case OP_TMA_LOAD: once([&] { load(o); }); break;
            case OP_TRANSFER_READ:
            case OP_TRANSFER_WRITE: __syncwarp(); transfer(o); break;
            case OP_COMMIT: commit(o.a); break;
            case OP_WAIT_GROUP: wait_groups(o.a, o.c); break;
            case OP_READ:
            case OP_WRITE: access(o); break;
            case OP_WORK: {
                const unsigned begun = clock_cycles();
                while (clock_cycles() - begun < o.c) {}
                break;
            }
            case OP_JUMP_IF: skip = registers[o.e] == o.c ? o.d : 0; break;
            default: break;  // marks of loops, registers of the warp, and work of an engine: of times alone
        }
        return true;
    }
};

// Frees what waits once the program is given up, and takes part in the cluster's barrier as all threads must: it arrives
// when an agent has passed the phase before. It stays until all CTAs have ended, which may still touch this one's memory.
static __device__ void watch(Shared &shared, volatile unsigned *sync, unsigned warps, unsigned ctas, unsigned lane,
                             unsigned deadline_ns) {
    unsigned arrived = 0, seen = 0, since = globaltimer_low();
    bool ended = false;
    for (;;) {
        const bool stopped = !agreed<true>(sync[0] == 0);
        if (stopped && lane == 0) shared.stop = 1;
        const unsigned moved = __reduce_add_sync(FULL_WARP, lane < warps ? shared.at[lane] + shared.ended[lane] : 0);
        const bool running = __any_sync(FULL_WARP, lane < warps && !shared.ended[lane]);
        const unsigned passed = __shfl_sync(FULL_WARP, sync[3], 0);
        if (!running && !ended) {
            ended = true;
            if (lane == 0) atomicAdd((unsigned *)&sync[2], 1);
        }
        if (!stopped && arrived <= passed) {
            if (arrived) asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
            asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
            ++arrived;
        }
        const unsigned now = __shfl_sync(FULL_WARP, globaltimer_low(), 0);
        if (moved != seen) seen = moved, since = now;
        // An agent may be at the cluster's barrier, of a program that is given up: it is free when all others end.
        if (agreed<true>(sync[2] >= ctas) || now - since > 8 * deadline_ns) {
            if (stopped) pause_ns(LANDED_NS * 10);
            return;
        }
        if (lane == 0 && now - since > deadline_ns + deadline_ns / 2) sync[0] = 1;
        for (unsigned w = 0; stopped && w < warps; ++w) {
            const unsigned name = __shfl_sync(FULL_WARP, shared.named[w], 0);
            const unsigned threads = __shfl_sync(FULL_WARP, shared.threads[w], 0);
            if (name) asm volatile("bar.arrive %0, %1;" ::"r"(name - 1), "r"(threads) : "memory");
            pause_ns(2000);
            __syncwarp();
        }
        pause_ns(500);
        __syncwarp();
    }
}

// What a CTA tells the host at its end: as kernels that record do.
static __device__ void report(CtaReport &report, const Job &job, const unsigned *words, const Shared &shared, unsigned base,
                              unsigned warps, bool stopped, u64 begun) {
    report.loop_begin = begun;
    report.loop_end = clock_cycles64();
    report.status = stopped ? STATUS_DEADLINE : STATUS_FINISHED;
    for (unsigned w = 0; stopped && w < warps; ++w) {
        if (shared.ended[w] == FINISHED) continue;
        const uint4 agent = ((const uint4 *)(words + job.agents))[cluster_rank() * warps + w];
        const unsigned site = words[job.code + 8 * (agent.x + shared.at[w] - 1) + 7] & 0xffff;
        report.agent = agent.z;
        report.site = site ? site - 1 : 0;
    }
    for (unsigned b = 0; b < job.barrier_count; ++b)
        report.barrier_words[b] = mbarrier_inval(base + words[job.barriers + b]);
}

extern "C" __global__ void __launch_bounds__(1024) interpreter(const Job *jobs, unsigned *words, u64 items, u64 global,
                                                               u64 stores, unsigned *status, unsigned ctas,
                                                               PIPESIM_RUN_PARAMS) {
    extern __shared__ __align__(1024) unsigned char memory[];
    __shared__ Shared shared;
    const Job &job = jobs[blockIdx.x / ctas];
    const Buffers buffers = {words, status, items, global, stores};
    const unsigned rank = blockIdx.x % ctas, warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32 - 1;
    const unsigned base = shared_address(memory);
    volatile unsigned *sync = words + job.sync;
    for (unsigned i = threadIdx.x; i < job.smem_bytes / 4; i += blockDim.x) ((unsigned *)memory)[i] = 0;
    if (lane == 0) shared.at[warp] = shared.ended[warp] = shared.named[warp] = 0;
    if (threadIdx.x == 0) shared.stop = 0;
    asm volatile("fence.proxy.async;" ::: "memory");
    cluster_sync();
    for (unsigned i = threadIdx.x; i < job.init_count; i += blockDim.x) {
        const uint4 init = ((const uint4 *)(words + job.inits))[i];
        if (init.x == rank) mbarrier_init(base + init.y, init.z);
    }
    mbarrier_init_fence();
    if (threadIdx.x == 0) { PIPESIM_ANCHOR(blockIdx.x, 0) }
    __syncwarp();
    cluster_sync();  // not __syncthreads: the program may use that barrier
    const u64 begun = clock_cycles64();
    if (warp == warps) {
        watch(shared, sync, warps, ctas, lane, deadline_ns);
        if (lane == 0) {
            if (reports) report(reports[blockIdx.x], job, words, shared, base, warps, sync[0] != 0, begun);
            PIPESIM_ANCHOR(blockIdx.x, 1)
        }
        return;
    }
    const uint4 agent = ((const uint4 *)(words + job.agents))[rank * warps + warp];
    if (agent.z == NONE) {  // no agent has this warp
        if (lane == 0) shared.ended[warp] = FINISHED;
        return;
    }
    PIPESIM_AGENT(blockIdx.x, agent.z, agent.w, lane == 0, 0)
    PIPESIM_AT(0, 0, 0)
    Warp me = {job, buffers, shared, sync, base, rank, warp, lane, deadline_ns, 0, NONE, 0, 0};
    for (unsigned i = 0; i < REGISTERS; ++i) me.registers[i] = 0;
    for (unsigned i = 0; i < 4; ++i) me.product[i] = 0;
    bool runs = true;
    unsigned pc = 0;
#pragma unroll 1
    for (; pc < agent.y; ++pc) {
        const uint4 *at = (const uint4 *)(words + job.code) + 2 * (agent.x + pc);
        const uint4 low = at[0], high = at[1];
        const Operation o = {low.x & 0xff, low.y, low.z, low.w, high.x, high.y, high.z, high.w};
        const unsigned turn = job.turns ? words[job.turns + agent.x + pc] : 0, number = turn & ~LANDS;
        me.pc = pc;
        if (lane == 0) shared.at[warp] = pc + 1;
        if (job.delay) pause_at_random(job.seed, agent.x + pc, job.delay);
        if (turn) {
            runs = me.wait_turn(number - 1);
            if (turn & LANDS) pause_ns(LANDED_NS);
        }
        if (!runs || !agreed<true>(shared.stop == 0)) {
            runs = false;
            break;
        }
        const bool takes = number && number <= job.last_turn;
        if (takes && o.op == OP_BAR_SYNC && lane == 0) sync[1] = number;
        const bool skipped = o.op == OP_WAIT_UNLESS && me.registers[o.e];
        const unsigned before = skipped ? 0 : o.site & 0xffff, after = skipped ? 0 : o.site >> 16;
        if (before) {
            PIPESIM_SAY(0, 0, low.x >> 8)
            PIPESIM_RECORD(before - 1, 0)
        }
        unsigned answer = NONE, skip = 0;
        runs = me.carry_out(o, answer, skip);
        if (!runs) break;
        if (answer != NONE && before) { PIPESIM_ANSWER(answer) }
        if (after) { PIPESIM_RECORD(after - 1, 0) }
        __syncwarp();
        if (takes && o.op != OP_BAR_SYNC && lane == 0) sync[1] = number;
        __syncwarp();
        pc += skip;
    }
    PIPESIM_FLUSH(blockIdx.x, agent.z, agent.w, 0)
    if (lane == 0) {
        // The products are looked at, or the compiler would leave them out.
        if (me.product[0] + me.product[1] + me.product[2] + me.product[3] == -1.0f) me.first_wrong = 0;
        ((uint4 *)status)[blockIdx.x * warps + warp] = make_uint4(pc, runs ? FINISHED : BLOCKED, me.wrong, me.first_wrong);
        __threadfence();
        shared.ended[warp] = runs ? FINISHED : BLOCKED;
    }
}
