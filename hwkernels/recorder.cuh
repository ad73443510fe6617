// A flight recorder for any CUDA C++ kernel: time stamps in shared memory, copied to device memory at the end of the CTA.
// Works with NVRTC and nvcc, includes nothing. One recording agent is one warp, of which one lane records.
//
//   PIPESIM_TRACE   0 (default): every macro below expands to nothing, and the machine code is that of a kernel without
//                   them. 1: they record.
//   PIPESIM_CLOCK   0 (default): stamps are %clock, records have 8 bytes. 1: %globaltimer_lo, 8 bytes.
//                   2: both, 16 bytes (clock, tag, globaltimer_lo, 0).
//
// A kernel uses it so (all macros are statements, except PIPESIM_PARAM and PIPESIM_PASS):
//
//   PIPESIM_AGENT(begin, capacity, records)  Declares the agent's state. begin: 32-bit shared address of its buffer, aligned
//                   to a record; capacity: records it holds; records: true in the one lane that records, false in the rest.
//   PIPESIM_PARAM, PIPESIM_PASS              Hand the state to a __device__ function: last in its parameter list and
//                   in its call, without a comma before them.
//   PIPESIM_AT(iteration, stage, parity)     Once an iteration: what its records say of themselves.
//   PIPESIM_RECORD(site, value)              One record. site: constant 0..63; value: constant 0..63.
//   PIPESIM_ANCHOR(cta, which)               One thread, which = 0 before all records and 1 after: reads both clocks.
//   PIPESIM_FLUSH(cta, agent, begin, capacity, keep, out)  The whole warp, converged, after its last record: writes the counts
//                   and, if keep, copies the records to out (32-bit words in device memory).
//
// Buffers keep the first records; the pointer runs on past their end, so that both counts are exact below 2^27 records an
// agent. Nothing here needs 64-bit arithmetic: the host unwraps the 32-bit stamps from the CTA's anchors.
#pragma once

#ifndef PIPESIM_TRACE
#define PIPESIM_TRACE 0
#endif
#ifndef PIPESIM_CLOCK
#define PIPESIM_CLOCK 0
#endif

// The agents a CTA can have: its warps.
#define PIPESIM_MAX_AGENTS 32

// The tag of a record, from bit 0: site (6 bits), value (6), parity (1), stage (5), low bits of the iteration (14).
#define PIPESIM_TAG_VALUE 6
#define PIPESIM_TAG_PARITY 12
#define PIPESIM_TAG_STAGE 13
#define PIPESIM_TAG_ITERATION 18

// One reading of both clocks at an edge of %globaltimer. The edge, at which the timer went from globaltimer_before to
// globaltimer, lies strictly between the two clocks: clock_before was read before the last unchanged reading of the timer,
// clock_after after the first changed one.
struct PipesimAnchor {
    unsigned long long globaltimer_before, globaltimer, clock_before, clock_after;
};

// What each CTA says of its recording: 336 bytes.
struct PipesimCta {
    unsigned smid, reserved[3];
    PipesimAnchor anchors[2];
    unsigned counts[PIPESIM_MAX_AGENTS][2];  // records in the buffer, records dropped
};

#if PIPESIM_TRACE

#if PIPESIM_CLOCK == 2
#define PIPESIM_RECORD_BYTES 16u
#else
#define PIPESIM_RECORD_BYTES 8u
#endif

struct PipesimAgent {
    unsigned pointer;  // shared address of the next record
    unsigned end;      // first address behind the buffer; 0 in a lane that does not record
    unsigned at;       // iteration, stage and parity, in their places of the tag
};

// Reads the clock and stores the record in one block, so that nothing comes between. One comparison serves as the bounds
// check and as the choice of the recording lane.
static __device__ __forceinline__ void pipesim_record(PipesimAgent &agent, unsigned constant) {
#if PIPESIM_CLOCK == 0
    asm volatile(
        "{\n\t.reg .pred fits;\n\t.reg .b32 now;\n\t"
        "setp.lt.u32 fits, %0, %1;\n\t"
        "mov.u32 now, %%clock;\n\t"
        "@fits st.shared.v2.b32 [%0], {now, %2};\n\t"
        "add.u32 %0, %0, 8;\n\t}"
        : "+r"(agent.pointer) : "r"(agent.end), "r"(agent.at | constant) : "memory");
#elif PIPESIM_CLOCK == 1
    asm volatile(
        "{\n\t.reg .pred fits;\n\t.reg .b32 now;\n\t"
        "setp.lt.u32 fits, %0, %1;\n\t"
        "mov.u32 now, %%globaltimer_lo;\n\t"
        "@fits st.shared.v2.b32 [%0], {now, %2};\n\t"
        "add.u32 %0, %0, 8;\n\t}"
        : "+r"(agent.pointer) : "r"(agent.end), "r"(agent.at | constant) : "memory");
#else
    asm volatile(
        "{\n\t.reg .pred fits;\n\t.reg .b32 now, timer, none;\n\t"
        "setp.lt.u32 fits, %0, %1;\n\t"
        "mov.u32 none, 0;\n\t"
        "mov.u32 now, %%clock;\n\t"
        "mov.u32 timer, %%globaltimer_lo;\n\t"
        "@fits st.shared.v4.b32 [%0], {now, %2, timer, none};\n\t"
        "add.u32 %0, %0, 16;\n\t}"
        : "+r"(agent.pointer) : "r"(agent.end), "r"(agent.at | constant) : "memory");
#endif
}

static __device__ __forceinline__ unsigned long long pipesim_clock() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now) :: "memory");
    return now;
}

static __device__ __forceinline__ unsigned long long pipesim_globaltimer() {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now) :: "memory");
    return now;
}

static __device__ __forceinline__ void pipesim_anchor(PipesimCta *cta, unsigned which) {
    PipesimAnchor anchor;
    unsigned long long before = pipesim_clock();
    anchor.globaltimer_before = anchor.globaltimer = pipesim_globaltimer();
    do {  // a pass begins with the clock from before the latest reading, which is the last unchanged one so far
        anchor.clock_before = before;
        before = pipesim_clock();
        anchor.globaltimer = pipesim_globaltimer();
    } while (anchor.globaltimer == anchor.globaltimer_before);
    anchor.clock_after = pipesim_clock();
    cta->anchors[which] = anchor;
    if (which == 0) {
        unsigned smid;
        asm volatile("mov.u32 %0, %%smid;" : "=r"(smid));
        cta->smid = smid;
    }
}

static __device__ __forceinline__ void pipesim_flush(PipesimCta *cta, unsigned index, const PipesimAgent &agent,
                                                     unsigned begin, unsigned capacity, bool keep, unsigned *out) {
    unsigned lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    const unsigned recorder = __ffs(__ballot_sync(0xffffffffu, agent.end != 0)) - 1;  // all ones where no lane records
    const unsigned reached = __shfl_sync(0xffffffffu, agent.pointer, recorder & 31);
    const unsigned all = recorder < 32 ? (reached - begin) / PIPESIM_RECORD_BYTES : 0;
    const unsigned written = all < capacity ? all : capacity;
    if (lane == 0) {
        cta->counts[index][0] = written;
        cta->counts[index][1] = all - written;
    }
    if (keep) {
#pragma unroll 1
        for (unsigned word = lane; word < written * (PIPESIM_RECORD_BYTES / 4); word += 32) {
            unsigned value;
            asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"(begin + 4 * word) : "memory");
            out[word] = value;
        }
    }
}

#define PIPESIM_AGENT(begin, capacity, records) \
    PipesimAgent pipesim = {(begin), (records) ? (begin) + (capacity) * PIPESIM_RECORD_BYTES : 0u, 0u};
#define PIPESIM_PARAM , PipesimAgent &pipesim
#define PIPESIM_PASS , pipesim
#define PIPESIM_AT(iteration, stage, parity)                                                         \
    pipesim.at = ((unsigned)(iteration) << PIPESIM_TAG_ITERATION) | ((stage) << PIPESIM_TAG_STAGE) | \
                 ((parity) << PIPESIM_TAG_PARITY);
#define PIPESIM_RECORD(site, value) pipesim_record(pipesim, (site) | ((value) << PIPESIM_TAG_VALUE));
#define PIPESIM_ANCHOR(cta, which) pipesim_anchor((cta), (which));
#define PIPESIM_FLUSH(cta, agent, begin, capacity, keep, out) \
    pipesim_flush((cta), (agent), pipesim, (begin), (capacity), (keep), (out));

#else

#define PIPESIM_AGENT(begin, capacity, records)
#define PIPESIM_PARAM
#define PIPESIM_PASS
#define PIPESIM_AT(iteration, stage, parity)
#define PIPESIM_RECORD(site, value)
#define PIPESIM_ANCHOR(cta, which)
#define PIPESIM_FLUSH(cta, agent, begin, capacity, keep, out)

#endif
