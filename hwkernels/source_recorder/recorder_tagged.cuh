// Tagged and full records (PIPESIM_ENCODING 0 and 1): a clock and a tag that says what it is of. A part of recorder.cuh.
#pragma once

// What AT and SAY leave in agent.at, what a record adds to it, and how at goes on behind a record.
#if PIPESIM_ENCODING == 1
#define PIPESIM_PLACE(stage, parity) (((parity) & 1u) * PIPESIM_FLAG_PARITY << PIPESIM_FULL_FLAGS)
#define PIPESIM_PLACED(at, iteration, place) (((at) & ~PIPESIM_PLACE(0, 1)) | (place))
#define PIPESIM_SAYS(site, value) (site)
#define PIPESIM_ANSWERS(value) ((PIPESIM_FLAG_TRIED + (value) * PIPESIM_FLAG_PASSED) << PIPESIM_FULL_FLAGS)
#define PIPESIM_NEXT (1u << PIPESIM_FULL_SEQUENCE)
#else
#if PIPESIM_CHECKED
#define PIPESIM_PLACE(stage, parity) ((((stage) & 31) << PIPESIM_TAG_STAGE) | (((parity) & 1) << PIPESIM_TAG_PARITY))
#else
#define PIPESIM_PLACE(stage, parity) (((stage) << PIPESIM_TAG_STAGE) | ((parity) << PIPESIM_TAG_PARITY))
#endif
#define PIPESIM_PLACED(at, iteration, place) (((unsigned)(iteration) << PIPESIM_TAG_ITERATION) | (place))
#define PIPESIM_SAYS(site, value) ((site) | ((value) << PIPESIM_TAG_VALUE))
#define PIPESIM_ANSWERS(value) ((value) << PIPESIM_TAG_VALUE)
#define PIPESIM_NEXT 0u
#endif

#define PIPESIM_AT(iteration, stage, parity) pipesim_at(pipesim, (iteration), PIPESIM_PLACE(stage, parity));
#define PIPESIM_SAY(iteration, stage, parity) \
    pipesim.at = PIPESIM_PLACED(pipesim.at, iteration, PIPESIM_PLACE(stage, parity));
#define PIPESIM_RECORD(site, value) pipesim_record<true>(pipesim, PIPESIM_SAYS(site, value));
#define PIPESIM_RECORD_AGAIN(site, value) pipesim_record<false>(pipesim, PIPESIM_SAYS(site, value));
#define PIPESIM_RECORD_IF(condition, site, value) \
    if (condition) { PIPESIM_RECORD(site, value) }
#define PIPESIM_ANSWER(value) pipesim_answer(pipesim, (value));

// A buffer holds one unused record, then those that are kept, then a scratch area of PIPESIM_ROOM records for iterations
// that are not. So every record is stored, no instruction waits for a decision, and a lane that does not record is the
// same all along.
struct PipesimAgent {
    PipesimAddress kept;       // of the first record of the next iteration that is kept
    PipesimAddress pointer;    // of the next record, there or in the scratch area
    PipesimAddress scratch;    // the scratch area, behind the last record that can be kept
    unsigned at;               // what is the same in all records of a place, and their sequence, in their places of the tag
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
// READS: else the last record's clock is this one's, too.
template <bool READS>
static __device__ __forceinline__ void pipesim_record(PipesimAgent &agent, unsigned constant) {
    unsigned now = READS ? pipesim_anything() : agent.now, timer = READS ? pipesim_anything() : agent.timer;
    if (agent.records) {
        if (READS) pipesim_read(now, timer);
#if !PIPESIM_EAGER && PIPESIM_CHECKED
        if (agent.waits) pipesim_store(agent);
#elif !PIPESIM_EAGER
        pipesim_store(agent);
#endif
    }
    agent.now = now;
    agent.timer = timer;
    agent.tag = agent.at | constant;
    agent.at += PIPESIM_NEXT;
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
    agent.tag |= PIPESIM_ANSWERS(value);
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
    if (agent.since < agent.fits) agent.span = agent.fits = agent.since;  // the next iteration's go to the scratch area
    agent.since = agent.fits;
#endif
}

// After the agent's last record.
static __device__ __forceinline__ void pipesim_end(PipesimAgent &agent) {
#if !PIPESIM_EAGER && !PIPESIM_CHECKED
    if (agent.records) pipesim_store(agent);
#endif
    pipesim_close(agent);
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
    agent.at = PIPESIM_PLACED(agent.at, iteration, place);
#if PIPESIM_EAGER
    pipesim_count(agent, (unsigned)(agent.kept - agent.begin) / PIPESIM_RECORD_BYTES, pipesim_lost(agent));
#endif
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
