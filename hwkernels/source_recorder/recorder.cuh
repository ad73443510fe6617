// A flight recorder for any CUDA C++ kernel: time stamps of what its warps do with barriers, 8 bytes each. Works with NVRTC
// and nvcc (C++14 or later), includes only its parts (recorder_*.cuh beside it), needs sm_70. A recording agent is one warp,
// of which one lane records.
// `pipesim capture --kernel` is its other side: docs/own-kernel.md shows a kernel with its lines.
//
// Switches, to be defined before this file is included (or with -D):
//   PIPESIM_TRACE    0 (default): every macro below expands to nothing, and the machine code is that of a kernel without
//                    them. 1: they record.
//   PIPESIM_ENCODING what a record is (record_format.py, encodings.py). 0 (default): tagged: 8 bytes, a clock, and site,
//                    stage, parity, iteration and value. 1: full: 8 bytes, a clock, and site, parity, answer and running
//                    number; the host knows the rest. 2: positional: 4 bytes, a clock; the host knows each agent's sites
//                    in their order, and finds by a running hash whether they were executed so. The cheapest; it takes a
//                    kernel whose order depends on no data, table.cuh before this file, PIPESIM_CLOCK 0, PIPESIM_EAGER 0,
//                    a window of all iterations and a buffer for all words. PIPESIM_CHECKED 1 looks once an iteration.
//   PIPESIM_CLOCK    0 (default): stamps are %clock, records have 8 bytes. 1: %globaltimer_lo, 8 bytes.
//                    2: both, 16 bytes (clock, tag, globaltimer_lo, 0).
//   PIPESIM_MEMORY   1 (default): records go to device memory, or wherever the host made them point. 0: to shared memory
//                    of the kernel's own choice, which is cheaper, and at the end from there to device memory.
//   PIPESIM_EAGER    1: a record is stored as soon as its clock is read, so that a trap leaves all of them. 0 (default): when
//                    the agent makes its next, so that no instruction waits for the clock; this is cheaper.
//   PIPESIM_CHECKED  1 (default): every record looks whether it fits. 0: none does; this is cheaper, but an iteration must
//                    not make more than PIPESIM_ROOM records, each must make one, and they must rise by one.
//   PIPESIM_ROOM     records that an iteration makes at most (default 16); with PIPESIM_CHECKED 1, one that makes more is lost.
//   PIPESIM_COUNTED  with PIPESIM_CHECKED 0, 1: the host knows how many records an agent makes, and its buffer holds them all and
//                    PIPESIM_ROOM + 2 more. 0 (default): as many iterations are kept as fit if each makes PIPESIM_ROOM.
//   PIPESIM_MARKS    with PIPESIM_TRACE 0, 1: nothing is recorded, but PIPESIM_AT of two iterations that the host chose stores
//                    the clock, which is all that a period takes. 0 (default): not even that.
//
// A kernel uses it so (all macros are statements, except the four PARAM and PASS):
//
//   PIPESIM_KERNEL_PARAM                     Last in the kernel's parameter list, without a comma before it.
//   PIPESIM_AGENT(cta, agent, agents, records, shared)  Declares the agent's state, once in each warp. cta: number of the CTA
//                    in the grid. agent: 0 .. agents - 1, the number of this warp among those that record. agents: as many
//                    as the host knows of, else nothing is recorded. records: true in the one lane that records, false
//                    in the rest. shared: 32-bit shared address of its buffer, aligned to a record (PIPESIM_MEMORY 0;
//                    else ignored).
//   PIPESIM_PARAM, PIPESIM_PASS              Hand the state to a __device__ function: last in its parameter list and
//                    in its call, without a comma before them.
//   PIPESIM_AT(iteration, stage, parity)     At the head of each iteration of the agent's loop: what its records say.
//   PIPESIM_SAY(iteration, stage, parity)    The same in the middle of an iteration, where a record must say something else.
//   PIPESIM_RECORD(site, value)              One record. site: 0..62, value: 0..63; constants are cheapest.
//   PIPESIM_RECORD_WARP(site, value)         The same before and after bar.sync, and before bar.arrive or an arrive of each lane:
//                    the lanes wait for each other. Right after bar.sync the clock can be read before the barrier opens.
//   PIPESIM_RECORD_AGAIN(site, value)        Right after another record, with nothing between: this one has its clock.
//   PIPESIM_RECORD_IF(condition, site, value) A record where the condition holds, which may differ between warps: positional
//                    ones without a branch.
//   PIPESIM_BEFORE(condition)                The condition, as an expression, evaluated here. What decides a branch right after
//                    a record is evaluated after it otherwise, and the warp waits for that (13 cycles).
//   PIPESIM_STOP                             The agent records no more: of a warp that gave up, but goes on. It may pass
//                    further records, which leave nothing: no branch around them is needed.
//   PIPESIM_ANSWER(value)                    What the last record, whose value was 0, says after all: whether a try succeeded.
//   PIPESIM_BARRIER_WORD(cta, index, address) One thread, after the last use of the mbarrier at this 32-bit shared address by
//                    anybody: ends its life (mbarrier.inval) and keeps its word. index: BARRIER_<name> + stage, of the table.
//   PIPESIM_ANCHOR(cta, which)               One thread, which = 0 before all records and 1 after: reads both clocks.
//   PIPESIM_FLUSH(cta, agent, agents, shared)  The whole warp, converged, after its last record: writes the counts.
//
// What is kept: the iterations of the launch's window, each whole or not at all, until the buffer is full; with
// PIPESIM_CHECKED 0 it is full when PIPESIM_ROOM more might not fit. Iterations of the window that did not fit are counted.
// Records before the first PIPESIM_AT are not kept. Nothing here needs 64-bit arithmetic on stamps: the host unwraps the
// 32-bit stamps from the CTA's anchors.
//
// What the value of a record says, by the kind of its site: ARRIVE and CP_ASYNC_ARRIVE, the executing lanes times the count;
// EXPECT and COPY, which of the host's numbers of bytes; BAR_ARRIVE, BAR_ENTER and BAR_RETURN, the warps that complete the
// named barrier (threads / 32); GROUP_ENTER and GROUP_RETURN, the groups that may be unfinished; all others, 0.
#pragma once

#ifndef PIPESIM_TRACE
#define PIPESIM_TRACE 0
#endif
#ifndef PIPESIM_CLOCK
#define PIPESIM_CLOCK 0
#endif
#ifndef PIPESIM_ENCODING
#define PIPESIM_ENCODING 0
#endif
#ifndef PIPESIM_MEMORY
#define PIPESIM_MEMORY 1
#endif
#ifndef PIPESIM_CHECKED
#define PIPESIM_CHECKED 1
#endif
#ifndef PIPESIM_EAGER
#define PIPESIM_EAGER 0
#endif
#ifndef PIPESIM_ROOM
#define PIPESIM_ROOM 16
#endif
#ifndef PIPESIM_COUNTED
#define PIPESIM_COUNTED 0
#endif
#ifndef PIPESIM_MARKS
#define PIPESIM_MARKS 0
#endif

// The agents a CTA can have: its warps.
#define PIPESIM_MAX_AGENTS 32
// The mbarriers of which a CTA can leave the words.
#define PIPESIM_MAX_WORDS 64

// The tag of a tagged record, from bit 0: site (6 bits), value (6), parity (1), stage (5), low bits of the iteration (14).
#define PIPESIM_TAG_VALUE 6
#define PIPESIM_TAG_PARITY 12
#define PIPESIM_TAG_STAGE 13
#define PIPESIM_TAG_ITERATION 18

// The tag of a full record, from bit 0: site (12 bits), flags (4), sequence (16); and its flags.
#define PIPESIM_FULL_FLAGS 12
#define PIPESIM_FULL_SEQUENCE 16
#define PIPESIM_FLAG_TRIED 1u
#define PIPESIM_FLAG_PASSED 2u
#define PIPESIM_FLAG_GAVE_UP 4u
#define PIPESIM_FLAG_PARITY 8u

// The running hash of a positional stream: hash * PIPESIM_HASH_FACTOR + block + 1. A block is a site; a wait or try has
// PIPESIM_FIRST_BLOCK * (1 + 2 * stage + parity) more.
#define PIPESIM_HASH_FACTOR 0x9E3779B1u
#define PIPESIM_FIRST_BLOCK 4096u

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
    // Records in the buffer, and iterations of the window that did not fit; all ones before the launch.
    unsigned counts[PIPESIM_MAX_AGENTS][2];
};

// What the host gives to a launch that records or marks, in device memory: 64 bytes. records: [CTAs][agents][capacity] of this kernel's
// records, the first of them unused; with PIPESIM_MEMORY 0 only of the first record_ctas CTAs. capacity: 2 * PIPESIM_ROOM + 2
// or more. first, span: the window of iterations, first .. first + span - 1. agents: of a CTA, as PIPESIM_AGENT must say.
// words: [CTAs][PIPESIM_MAX_WORDS] of barriers, or null. marks: [CTAs][agents][2] clocks, at the iterations mark[0] and mark[1].
struct PipesimLaunch {
    PipesimCta *ctas;
    unsigned *records;
    unsigned capacity, record_ctas, first, span;
    unsigned agents, reserved;
    unsigned long long *words, *marks;
    unsigned mark[2];
};

#if PIPESIM_TRACE

#if PIPESIM_ENCODING == 2 && (PIPESIM_CLOCK == 2 || PIPESIM_EAGER)
#error "positional records have one clock, and are not stored at once"
#endif
#if PIPESIM_CLOCK == 2
#define PIPESIM_RECORD_BYTES 16u
#elif PIPESIM_ENCODING == 2
#define PIPESIM_RECORD_BYTES 4u
#else
#define PIPESIM_RECORD_BYTES 8u
#endif

#if PIPESIM_MEMORY == 0
typedef unsigned PipesimAddress;
#define PIPESIM_STORE "st.shared"
#define PIPESIM_REGISTER "r"
#else
typedef unsigned long long PipesimAddress;
#if PIPESIM_EAGER
#define PIPESIM_STORE "st.relaxed.sys.global"  // the host may read it while the kernel runs, or after a trap
#else
#define PIPESIM_STORE "st.global.cs"
#endif
#define PIPESIM_REGISTER "l"
#endif

// Reads the clock or clocks: right before the instruction that is recorded, or right after it.
static __device__ __forceinline__ void pipesim_read(unsigned &now, unsigned &timer) {
#if PIPESIM_CLOCK == 0
    asm volatile("mov.u32 %0, %%clock;" : "=r"(now) :: "memory");
#elif PIPESIM_CLOCK == 1
    asm volatile("mov.u32 %0, %%globaltimer_lo;" : "=r"(now) :: "memory");
#else
    asm volatile("mov.u32 %0, %%clock;\n\tmov.u32 %1, %%globaltimer_lo;" : "=r"(now), "=r"(timer) :: "memory");
#endif
}

// A use of the condition that leaves no instruction: the compiler does not move the evaluation to the branch then.
static __device__ __forceinline__ bool pipesim_before(bool condition) {
    unsigned value = condition;
    asm volatile("" : "+r"(value));
    const bool holds = value != 0;
    asm volatile("" ::"r"((unsigned)holds));
    return holds;
}

// What a lane that does not record has for a clock.
static __device__ __forceinline__ unsigned pipesim_anything() {
    unsigned value;
    asm("" : "=r"(value));
    return value;
}

static __device__ __forceinline__ PipesimAddress pipesim_begin(const PipesimLaunch &launch, unsigned cta, unsigned agent,
                                                               unsigned agents, unsigned shared) {
#if PIPESIM_MEMORY == 0
    return shared;
#else
    const unsigned long long before = ((unsigned long long)cta * agents + agent) * launch.capacity;
    return (PipesimAddress)launch.records + before * PIPESIM_RECORD_BYTES;
#endif
}

// What a kernel says must be what the host made room for; else the agent records nothing and leaves its counts unwritten,
// which the host reports.
static __device__ __forceinline__ bool pipesim_sound(const PipesimLaunch &launch, unsigned index, unsigned agents) {
    return agents == launch.agents && index < agents && launch.capacity >= 2 * PIPESIM_ROOM + 2;
}

#if PIPESIM_ENCODING == 2
#include "recorder_positional.cuh"
#else
#include "recorder_tagged.cuh"
#endif

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
#if PIPESIM_EAGER
    __threadfence_system();  // what hangs later has left this, too
#endif
}

static __device__ __forceinline__ void pipesim_flush(const PipesimLaunch &launch, unsigned cta, unsigned index,
                                                     unsigned agents, PipesimAgent &agent, unsigned shared) {
    pipesim_end(agent);
    unsigned lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    const unsigned ballot = __ballot_sync(0xffffffffu, agent.records);  // 0 where no lane records
    const unsigned recorder = (__ffs(ballot) - 1) & 31;
    const PipesimAddress begin = pipesim_begin(launch, cta, index, agents, shared) + PIPESIM_RECORD_BYTES;
    const unsigned mine = ballot ? (unsigned)(agent.kept - begin) / PIPESIM_RECORD_BYTES : 0;
    const unsigned written = __shfl_sync(0xffffffffu, mine, recorder);
    const unsigned lost = __shfl_sync(0xffffffffu, pipesim_lost(agent), recorder);
    if (lane == 0 && pipesim_sound(launch, index, agents)) {
        launch.ctas[cta].counts[index][0] = written;
        launch.ctas[cta].counts[index][1] = ballot ? lost : 0;
    }
#if PIPESIM_MEMORY == 0
    __syncwarp();
    if (cta < launch.record_ctas) {
        const unsigned long long before = ((unsigned long long)cta * agents + index) * launch.capacity + 1;
        unsigned *out = launch.records + before * (PIPESIM_RECORD_BYTES / 4);
#pragma unroll 1
        for (unsigned word = lane; word < written * (PIPESIM_RECORD_BYTES / 4); word += 32) {
            unsigned value;
            asm volatile("ld.shared.b32 %0, [%1];" : "=r"(value) : "r"((unsigned)begin + 4 * word) : "memory");
            out[word] = value;
        }
    }
#endif
}

// Ends the barrier's life and keeps its word, which only then can be read as the barrier unit holds it (measured).
static __device__ __forceinline__ void pipesim_barrier_word(const PipesimLaunch &launch, unsigned cta, unsigned index,
                                                            unsigned address) {
    unsigned long long word;
    asm volatile("mbarrier.inval.shared::cta.b64 [%1];\n\tld.shared.b64 %0, [%1];" : "=l"(word) : "r"(address) : "memory");
    if (launch.words && index < PIPESIM_MAX_WORDS)
        launch.words[(unsigned long long)cta * PIPESIM_MAX_WORDS + index] = word;
}

#define PIPESIM_KERNEL_PARAM , const PipesimLaunch *pipesim_launch
#define PIPESIM_AGENT(cta, agent, agents, records, shared) \
    PipesimAgent pipesim = pipesim_agent(*pipesim_launch, (cta), (agent), (agents), (records), (shared));
#define PIPESIM_PARAM , PipesimAgent &pipesim
#define PIPESIM_PASS , pipesim
#define PIPESIM_RECORD_WARP(site, value) \
    { \
        __syncwarp(); \
        PIPESIM_RECORD(site, value) \
        __syncwarp(); \
    }
#define PIPESIM_BEFORE(condition) pipesim_before(condition)
#define PIPESIM_STOP pipesim_stop(pipesim);
#define PIPESIM_BARRIER_WORD(cta, index, address) pipesim_barrier_word(*pipesim_launch, (cta), (index), (address));
#define PIPESIM_ANCHOR(cta, which) pipesim_anchor(pipesim_launch->ctas + (cta), (which));
#define PIPESIM_FLUSH(cta, agent, agents, shared) pipesim_flush(*pipesim_launch, (cta), (agent), (agents), pipesim, (shared));

#elif PIPESIM_MARKS

// The clock at two iterations of each agent, and nothing else.
struct PipesimAgent {
    unsigned long long *to;
    unsigned first, last;
    bool records;
};

static __device__ __forceinline__ PipesimAgent pipesim_agent(const PipesimLaunch &launch, unsigned cta, unsigned index,
                                                             unsigned agents, bool records) {
    PipesimAgent agent;
    agent.to = launch.marks + 2 * ((unsigned long long)cta * agents + index);
    agent.first = launch.mark[0];
    agent.last = launch.mark[1];
    agent.records = records && launch.marks && agents == launch.agents && index < agents;
    return agent;
}

static __device__ __forceinline__ void pipesim_mark(const PipesimAgent &agent, unsigned iteration) {
    if (agent.records && (iteration == agent.first || iteration == agent.last)) {
        unsigned long long now;
        asm volatile("mov.u64 %0, %%clock64;" : "=l"(now) :: "memory");
        agent.to[iteration == agent.last] = now;
    }
}

static __device__ __forceinline__ void pipesim_anchor(PipesimCta *cta, unsigned which) {
    unsigned long long now;
    asm volatile("mov.u64 %0, %%clock64;" : "=l"(now) :: "memory");
    cta->anchors[which].clock_before = cta->anchors[which].clock_after = now;
}

#define PIPESIM_KERNEL_PARAM , const PipesimLaunch *pipesim_launch
#define PIPESIM_AGENT(cta, agent, agents, records, shared) \
    PipesimAgent pipesim = pipesim_agent(*pipesim_launch, (cta), (agent), (agents), (records));
#define PIPESIM_PARAM , PipesimAgent &pipesim
#define PIPESIM_PASS , pipesim
#define PIPESIM_AT(iteration, stage, parity) pipesim_mark(pipesim, (iteration));
#define PIPESIM_SAY(iteration, stage, parity)
#define PIPESIM_RECORD(site, value)
#define PIPESIM_RECORD_AGAIN(site, value)
#define PIPESIM_RECORD_IF(condition, site, value)
#define PIPESIM_RECORD_WARP(site, value)
#define PIPESIM_BEFORE(condition) (condition)
#define PIPESIM_STOP
#define PIPESIM_ANSWER(value)
#define PIPESIM_BARRIER_WORD(cta, index, address)
#define PIPESIM_ANCHOR(cta, which) pipesim_anchor(pipesim_launch->ctas + (cta), (which));
#define PIPESIM_FLUSH(cta, agent, agents, shared)

#else

#define PIPESIM_KERNEL_PARAM
#define PIPESIM_AGENT(cta, agent, agents, records, shared)
#define PIPESIM_PARAM
#define PIPESIM_PASS
#define PIPESIM_AT(iteration, stage, parity)
#define PIPESIM_SAY(iteration, stage, parity)
#define PIPESIM_RECORD(site, value)
#define PIPESIM_RECORD_AGAIN(site, value)
#define PIPESIM_RECORD_IF(condition, site, value)
#define PIPESIM_RECORD_WARP(site, value)
#define PIPESIM_BEFORE(condition) (condition)
#define PIPESIM_STOP
#define PIPESIM_ANSWER(value)
#define PIPESIM_BARRIER_WORD(cta, index, address)
#define PIPESIM_ANCHOR(cta, which)
#define PIPESIM_FLUSH(cta, agent, agents, shared)

#endif
