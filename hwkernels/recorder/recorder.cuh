// A flight recorder for any CUDA C++ kernel: time stamps of what its warps do with barriers, 8 bytes each. Works with NVRTC
// and nvcc (C++14 or later), includes nothing, needs sm_70. A recording agent is one warp, of which one lane records.
// `pipesim capture --kernel` is its other side: docs/own-kernel.md shows a kernel before and after.
//
// Switches, to be defined before this file is included (or with -D):
//   PIPESIM_TRACE    0 (default): every macro below expands to nothing, and the machine code is that of a kernel without
//                    them. 1: they record.
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
//   PIPESIM_STOP                             The agent records no more: of a warp that gave up, but goes on.
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

#if PIPESIM_CLOCK == 2
#define PIPESIM_RECORD_BYTES 16u
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

// A buffer holds one unused record, then those that are kept, then a scratch area of PIPESIM_ROOM records for iterations
// that are not. So every record is stored, no instruction waits for a decision, and a lane that does not record is the
// same all along.
struct PipesimAgent {
    PipesimAddress kept;       // of the first record of the next iteration that is kept
    PipesimAddress pointer;    // of the next record, there or in the scratch area
    PipesimAddress scratch;    // the scratch area, behind the last record that can be kept
    unsigned at;               // iteration, stage and parity, in their places of the tag
    unsigned first, span, fits;  // the window: its first iteration, how many it has, how many of them may be kept
    unsigned since;            // the present iteration, counted from the window's first
    unsigned now, timer, tag;  // of the last record, which is stored at the next (PIPESIM_EAGER 0)
    bool records;              // this lane records
#if PIPESIM_CHECKED
    bool keeps, full, waits;   // the iteration is kept; one was lost, so none is any more; a record is not stored yet
    unsigned lost;             // iterations of the window that were lost
#endif
#if PIPESIM_EAGER
    unsigned *counts;          // in the CTA's header: kept up to date, so that a trap leaves them
    PipesimAddress begin;      // of the first record
#endif
};

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

// Stores the last record: the one before the pointer.
static __device__ __forceinline__ void pipesim_store(const PipesimAgent &agent) {
    const PipesimAddress to = agent.pointer - PIPESIM_RECORD_BYTES;
#if PIPESIM_CLOCK == 2
    asm volatile(PIPESIM_STORE ".v4.b32 [%0], {%1, %2, %3, %4};"
                 ::PIPESIM_REGISTER(to), "r"(agent.now), "r"(agent.tag), "r"(agent.timer), "r"(0u) : "memory");
#else
    asm volatile(PIPESIM_STORE ".v2.b32 [%0], {%1, %2};"
                 ::PIPESIM_REGISTER(to), "r"(agent.now), "r"(agent.tag) : "memory");
#endif
}

#if PIPESIM_EAGER
static __device__ __forceinline__ void pipesim_count(const PipesimAgent &agent, unsigned kept, unsigned lost) {
    if (agent.records)
        asm volatile("st.relaxed.sys.global.v2.b32 [%0], {%1, %2};" ::"l"(agent.counts), "r"(kept), "r"(lost) : "memory");
}
#endif

// The clock is read under a condition that differs between lanes: else the compiler reads it into a uniform register, and
// what follows waits for it. The new reading has registers of its own, so that none waits for the store before it either.
static __device__ __forceinline__ void pipesim_record(PipesimAgent &agent, unsigned constant) {
    unsigned now, timer;
    asm("" : "=r"(now), "=r"(timer));  // anything, in a lane that does not record
    if (agent.records) {
        pipesim_read(now, timer);
#if !PIPESIM_EAGER && PIPESIM_CHECKED
        if (agent.waits) pipesim_store(agent);
#elif !PIPESIM_EAGER
        pipesim_store(agent);
#endif
    }
    agent.now = now;
    agent.timer = timer;
    agent.tag = agent.at | constant;
#if PIPESIM_CHECKED
    agent.waits = true;
    if (agent.pointer >= agent.scratch + PIPESIM_ROOM * PIPESIM_RECORD_BYTES) {  // more than an iteration may make
        agent.pointer = agent.scratch;
        if (agent.keeps) ++agent.lost;
        agent.full |= agent.keeps;
        agent.keeps = false;
    }
#endif
    agent.pointer += PIPESIM_RECORD_BYTES;
#if PIPESIM_EAGER
    if (agent.records) pipesim_store(agent);
#endif
}

// A try is stamped before it is made; its answer follows.
static __device__ __forceinline__ void pipesim_answer(PipesimAgent &agent, unsigned value) {
    agent.tag |= value << PIPESIM_TAG_VALUE;
#if PIPESIM_EAGER
    if (agent.records) pipesim_store(agent);
#endif
}

// Ends an iteration: what it recorded is kept, or its place is free again.
static __device__ __forceinline__ void pipesim_close(PipesimAgent &agent) {
#if PIPESIM_CHECKED
#if !PIPESIM_EAGER
    if (agent.records && agent.waits) pipesim_store(agent);
#endif
    agent.waits = false;
    if (agent.keeps && agent.pointer > agent.scratch) {  // it did not fit whole
        ++agent.lost;
        agent.full = true;
    } else if (agent.keeps) {
        agent.kept = agent.pointer;
    }
    agent.keeps = false;
#else
    agent.kept = agent.since < agent.fits ? agent.pointer : agent.kept;
#endif
}

// Ends the recording of an agent: what it recorded up to now is kept, what follows is not, and does not count as lost.
static __device__ __forceinline__ void pipesim_stop(PipesimAgent &agent) {
#if PIPESIM_CHECKED
    pipesim_close(agent);
    agent.pointer = agent.scratch + PIPESIM_RECORD_BYTES;
    agent.span = agent.fits = 0;
#else
#if !PIPESIM_EAGER
    if (agent.records) pipesim_store(agent);
#endif
    pipesim_close(agent);
    if (agent.since < agent.fits) agent.span = agent.fits = agent.since + 1;
    agent.since = agent.fits;
#endif
}

// Iterations of the window that did not fit, seen from the present one.
static __device__ __forceinline__ unsigned pipesim_lost(const PipesimAgent &agent) {
#if PIPESIM_CHECKED
    return agent.lost;
#else
    const unsigned begun = agent.since < 0x80000000u ? agent.since + 1 : 0;  // from the window's first on
    const unsigned inside = begun < agent.span ? begun : agent.span;
    return inside > agent.fits ? inside - agent.fits : 0;
#endif
}

// PIPESIM_CHECKED 0: the last record of an iteration is stored with the first of the next, right before it. So the iteration
// behind the last that is kept goes to the same place, as if it were kept, too; and iterations must rise by one, each with
// a record.
static __device__ __forceinline__ void pipesim_at(PipesimAgent &agent, unsigned iteration, unsigned place) {
    pipesim_close(agent);
    agent.since = iteration - agent.first;
#if PIPESIM_CHECKED
    const bool inside = agent.since < agent.fits;
    agent.keeps = inside && !agent.full;
    if (inside && agent.full) ++agent.lost;
    agent.pointer = agent.keeps ? agent.kept : agent.scratch + PIPESIM_RECORD_BYTES;
#else
    agent.pointer = agent.since <= agent.fits ? agent.kept : agent.scratch + PIPESIM_RECORD_BYTES;
#endif
    agent.at = (iteration << PIPESIM_TAG_ITERATION) | place;
#if PIPESIM_EAGER
    pipesim_count(agent, (unsigned)(agent.kept - agent.begin) / PIPESIM_RECORD_BYTES, pipesim_lost(agent));
#endif
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

static __device__ __forceinline__ PipesimAgent pipesim_agent(const PipesimLaunch &launch, unsigned cta, unsigned index,
                                                             unsigned agents, bool records, unsigned shared) {
    PipesimAgent agent;
    const PipesimAddress begin = pipesim_begin(launch, cta, index, agents, shared);
    agent.kept = agent.pointer = begin + PIPESIM_RECORD_BYTES;
    agent.scratch = begin + (launch.capacity - PIPESIM_ROOM - 1) * PIPESIM_RECORD_BYTES;
    agent.at = agent.now = agent.timer = agent.tag = 0;
    agent.since = 0xffffffffu;  // before the window
    agent.first = launch.first;
    agent.span = agent.fits = launch.span;
    agent.records = records && pipesim_sound(launch, index, agents);
#if PIPESIM_CHECKED
    agent.keeps = agent.full = agent.waits = false;
    agent.lost = 0;
#elif !PIPESIM_COUNTED
    const unsigned most = (launch.capacity - PIPESIM_ROOM - 2) / PIPESIM_ROOM - 1;
    if (agent.fits > most) agent.fits = most;
#endif
#if PIPESIM_EAGER
    agent.counts = launch.ctas[cta].counts[index & (PIPESIM_MAX_AGENTS - 1)];
    agent.begin = agent.kept;
    pipesim_count(agent, 0, 0);
#endif
    return agent;
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
#if PIPESIM_EAGER
    __threadfence_system();  // what hangs later has left this, too
#endif
}

static __device__ __forceinline__ void pipesim_flush(const PipesimLaunch &launch, unsigned cta, unsigned index,
                                                     unsigned agents, PipesimAgent &agent, unsigned shared) {
#if !PIPESIM_EAGER && !PIPESIM_CHECKED
    if (agent.records) pipesim_store(agent);
#endif
    pipesim_close(agent);
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
#if PIPESIM_CHECKED
#define PIPESIM_PLACE(stage, parity) ((((stage) & 31) << PIPESIM_TAG_STAGE) | (((parity) & 1) << PIPESIM_TAG_PARITY))
#else
#define PIPESIM_PLACE(stage, parity) (((stage) << PIPESIM_TAG_STAGE) | ((parity) << PIPESIM_TAG_PARITY))
#endif
#define PIPESIM_AT(iteration, stage, parity) pipesim_at(pipesim, (iteration), PIPESIM_PLACE(stage, parity));
#define PIPESIM_SAY(iteration, stage, parity) \
    pipesim.at = ((unsigned)(iteration) << PIPESIM_TAG_ITERATION) | PIPESIM_PLACE(stage, parity);
#define PIPESIM_RECORD(site, value) pipesim_record(pipesim, (site) | ((value) << PIPESIM_TAG_VALUE));
#define PIPESIM_RECORD_WARP(site, value) \
    { \
        __syncwarp(); \
        pipesim_record(pipesim, (site) | ((value) << PIPESIM_TAG_VALUE)); \
        __syncwarp(); \
    }
#define PIPESIM_STOP pipesim_stop(pipesim);
#define PIPESIM_ANSWER(value) pipesim_answer(pipesim, (value));
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
#define PIPESIM_RECORD_WARP(site, value)
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
#define PIPESIM_RECORD_WARP(site, value)
#define PIPESIM_STOP
#define PIPESIM_ANSWER(value)
#define PIPESIM_BARRIER_WORD(cta, index, address)
#define PIPESIM_ANCHOR(cta, which)
#define PIPESIM_FLUSH(cta, agent, agents, shared)

#endif
