// What every kernel of the registry tells the host of a run, and how its waits give up.
// A kernel's parameter list ends with PIPESIM_RUN_PARAMS; the host appends these by itself.
#pragma once

#include "mbarrier.cuh"
#include "recorder.cuh"

static constexpr unsigned MAX_REPORTED_AGENTS = 16;
static constexpr unsigned MAX_REPORTED_BARRIERS = 64;

enum Status : unsigned { STATUS_UNKNOWN = 0, STATUS_FINISHED = 1, STATUS_DEADLINE = 2, STATUS_STOPPED = 3 };

// 624 bytes; layout.REPORT. site, agent, iteration: of the first wait that gave up. barrier_words: as read after
// mbarrier.inval when all agents had ended, in the table's order. marks: two clocks between which an untraced launch takes its
// period (see Patience). iterations: what a kernel likes to say of its agents.
struct CtaReport {
    unsigned status, site, agent, iteration;
    unsigned long long loop_begin, loop_end, marks[2];
    unsigned iterations[MAX_REPORTED_AGENTS];
    unsigned long long barrier_words[MAX_REPORTED_BARRIERS];
};

// deadline_ns: how long a wait may take, below 2^31. stop: 0 before the launch, set by the first wait that gives up.
#define PIPESIM_RUN_PARAMS unsigned deadline_ns, CtaReport *reports, unsigned *stop PIPESIM_KERNEL_PARAM

// The shared address of a warp's records, behind the barriers, where a build has them in shared memory (PIPESIM_MEMORY 0): the
// launch has room there for WARPS * capacity of them, and 8 bytes more. A kernel may have them elsewhere, and say so before.
#ifndef RECORDS_BEHIND
#define RECORDS_BEHIND(barriers, warp) \
    ((((barriers) + 8 * BARRIERS + 15) & ~15u) + (warp) * pipesim_launch->capacity * PIPESIM_RECORD_BYTES)
#endif

// Where the host left in a report which wait of this agent to mark: agent in the upper half, and below it the number of waits
// that have returned then, from 1 on. 0: none of this agent's.
static __device__ __forceinline__ unsigned mark_of(const CtaReport *report, unsigned agent, unsigned which) {
    const unsigned long long mark = report->marks[which];
    return mark >> 32 == agent ? (unsigned)mark : 0;
}

// What bounds the waits of one agent, and, untraced, which of them to mark.
struct Patience {
    CtaReport *report;
    unsigned *stop;
    unsigned deadline_ns, agent;
#if !PIPESIM_TRACE
    unsigned first_mark = mark_of(report, agent, 0), last_mark = mark_of(report, agent, 1);
#endif
};

// After a wait has returned; before: how many of the agent's had. A recorded launch has the times in its records.
static __device__ __forceinline__ void mark_wait(const Patience &patience, unsigned before) {
#if !PIPESIM_TRACE
    if (before + 1 == patience.first_mark) patience.report->marks[0] = clock_cycles64();
    if (before + 1 == patience.last_mark) patience.report->marks[1] = clock_cycles64();
#endif
}

static __device__ __noinline__ void gave_up(const Patience &patience, WaitEnd how, unsigned site, unsigned iteration) {
    if (how == WAIT_DEADLINE) atomicExch(patience.stop, 1u);
    const unsigned status = how == WAIT_DEADLINE ? STATUS_DEADLINE : STATUS_STOPPED;
    if (atomicCAS(&patience.report->status, STATUS_UNKNOWN, status) == STATUS_UNKNOWN) {
        patience.report->site = site;
        patience.report->agent = patience.agent;
        patience.report->iteration = iteration;
    }
}

// A wait of all 32 lanes (WARP) or of one; false if it gave up, which is reported once. The caller then leaves its loop.
template <bool WARP>
static __device__ __forceinline__ bool waited(const Patience &patience, unsigned barrier, unsigned parity, unsigned site,
                                              unsigned iteration) {
    const WaitEnd end = wait_parity<WARP>(barrier, parity, patience.deadline_ns, patience.stop);
    if (end == WAIT_DONE) return true;
    if (!WARP || threadIdx.x % 32 == 0) gave_up(patience, end, site, iteration);
    return false;
}

// The same for an agent that goes on when it has given up, past records that then leave nothing. So a wait that went well has
// no branch before its record.
template <bool WARP>
static __device__ __forceinline__ bool waited_or_stopped(const Patience &patience, unsigned barrier, unsigned parity,
                                                         unsigned site, unsigned iteration PIPESIM_PARAM) {
    if (waited<WARP>(patience, barrier, parity, site, iteration)) return true;
    PIPESIM_STOP
    return false;
}

// One lane or a whole warp, when this CTA gave up: no agent waits for the last copies of a ring any more, but they must not land
// in a CTA that has ended. copies: how many were made, the first into stage 0.
static constexpr unsigned LANDING_NS = 1000000;  // they land within microseconds
template <unsigned STAGES_OF_RING>
static __device__ __forceinline__ void wait_for_landing(unsigned full, unsigned copies) {
    for (unsigned c = copies > STAGES_OF_RING ? copies - STAGES_OF_RING : 0; c < copies; ++c)
        wait_parity<false>(full + 8 * (c % STAGES_OF_RING), (c / STAGES_OF_RING) & 1, LANDING_NS, nullptr);
}

// A place in a ring: its stage and the parity that this side waits for. A producer begins with parity 1.
template <unsigned STAGES_OF_RING>
struct RingState {
    unsigned stage, parity;
    __device__ __forceinline__ void step() {
        if (++stage == STAGES_OF_RING) {
            stage = 0;
            parity ^= 1;
        }
    }
};

static __device__ __forceinline__ void spin(unsigned cycles) {
    const unsigned begin = clock_cycles();
    while (clock_cycles() - begin < cycles) {
    }
}

// A wait with its two records: they say stage and parity. n counts the agent's steps, one up a call.
template <bool WARP>
static __device__ __forceinline__ bool recorded_wait(const Patience &patience, unsigned group, unsigned stage,
                                                     unsigned parity, unsigned enter, unsigned got,
                                                     unsigned &n PIPESIM_PARAM) {
    PIPESIM_AT(n, stage, parity)
    PIPESIM_RECORD(enter, 0)
    const bool done = waited<WARP>(patience, group + 8 * stage, parity, enter, n);
    if (done) {
        PIPESIM_RECORD(got, 0)
        mark_wait(patience, n);
    }
    ++n;
    return done;
}

// One thread, when all agents of the CTA have ended and no agent signals it any more.
static __device__ __forceinline__ void report_end(CtaReport *report, unsigned barriers, unsigned count) {
    atomicCAS(&report->status, STATUS_UNKNOWN, STATUS_FINISHED);
    for (unsigned b = 0; b < count; ++b) report->barrier_words[b] = mbarrier_inval(barriers + 8 * b);
}
